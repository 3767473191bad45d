"""Regret matching: from advantages to a strategy (Deep CFR, equation 4)."""

from __future__ import annotations

import torch


def regret_matching(advantage: torch.Tensor, legal: torch.Tensor, fallback: str = "highest") -> torch.Tensor:
    """Probabilities in proportion to positive advantages, [I, A], 0 for illegal actions.

    `advantage` is float [I, A], `legal` bool [I, A]. Where no advantage is positive, `fallback` "highest" plays the
    highest advantage with exact ties sharing the probability (so that all-zero advantages give the uniform strategy), and
    "uniform" plays all legal actions alike. Source: equation 4 and section 2.1.
    """
    positive = advantage.clamp(min=0) * legal
    largest = positive.amax(-1, keepdim=True)
    if fallback == "uniform":
        other = legal.to(advantage.dtype)
    else:
        masked = advantage.masked_fill(~legal, -torch.inf)
        other = (masked == masked.amax(-1, keepdim=True)).to(advantage.dtype)
    # in units of the largest, so that neither tiny nor huge advantages leave the range of the sum
    weight = torch.where(largest > 0, positive / largest, other)
    return weight / weight.sum(-1, keepdim=True)
