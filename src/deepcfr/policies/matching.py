"""Strategies from advantages by regret matching."""

from __future__ import annotations

import torch


def regret_matching(advantage: torch.Tensor, legal: torch.Tensor, fallback: str = "highest") -> torch.Tensor:
    """Probabilities proportional to positive advantages, [I, A], 0 for illegal actions.

    `advantage` is float [I, A], `legal` bool [I, A]. Where no advantage is positive, `fallback` "highest" plays the
    highest advantage; exact ties share the probability, so all-zero advantages give the uniform strategy. `fallback`
    "uniform" plays all legal actions with the same probability. Source: equation 4 and section 2.1.
    """
    positive = advantage.clamp(min=0) * legal
    largest = positive.amax(-1, keepdim=True)
    if fallback == "uniform":
        other = legal.to(advantage.dtype)
    else:
        masked = advantage.masked_fill(~legal, -torch.inf)
        other = (masked == masked.amax(-1, keepdim=True)).to(advantage.dtype)
    # scaled by the largest, so that the sum neither underflows nor overflows
    weight = torch.where(largest > 0, positive / largest, other)
    return weight / weight.sum(-1, keepdim=True)
