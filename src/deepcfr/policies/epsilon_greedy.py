"""Action values as a strategy: the best legal action, with some exploration."""

from __future__ import annotations

import torch
from torch.nn import functional


def epsilon_greedy(values: torch.Tensor, legal: torch.Tensor, epsilon: float = 0.0) -> torch.Tensor:
    """The action of the largest value with probability 1 - epsilon, otherwise a uniform legal one; [..., A].

    `values` and `legal` are [I, A], or any shapes that broadcast; the first of equal values counts as the largest.
    """
    best = values.masked_fill(~legal, -torch.inf).argmax(-1)
    greedy = functional.one_hot(best, values.shape[-1]).to(values.dtype)
    return (1 - epsilon) * greedy + epsilon * legal / legal.sum(-1, keepdim=True)
