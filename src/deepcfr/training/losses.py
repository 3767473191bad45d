"""The losses of Algorithm 1, advantages and average strategy, and of history values, weighted and masked; gradients."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch.nn import functional


def advantage_loss(
    predicted: torch.Tensor, advantage: torch.Tensor, legal: torch.Tensor, weight: torch.Tensor
) -> torch.Tensor:
    """Sum over samples of w * sum over legal actions of (predicted - advantage)^2.

    `predicted`, `advantage` and `legal` are [I, A] or [I, k, A], `weight` is [I] or [I, 1]. Source: Algorithm 1, the
    loss of theta_p.
    """
    return (functional.mse_loss(predicted, advantage, reduction="none") * legal).sum(-1).mul(weight).sum()


def value_loss(predicted: torch.Tensor, value: torch.Tensor, legal: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """As `advantage_loss`, over the actions whose `value` is known, not NaN."""
    known = ~value.isnan() & legal
    return advantage_loss(predicted, value.nan_to_num(0.0), known, weight)


def strategy_loss(
    logits: torch.Tensor, strategy: torch.Tensor, legal: torch.Tensor, weight: torch.Tensor
) -> torch.Tensor:
    """Sum over samples of w * sum over legal actions of (softmax(logits) - strategy)^2.

    Shapes as in `advantage_loss`. Source: Algorithm 1, the loss of theta_Pi, with logits as in section 5.1.
    """
    return functional.mse_loss(masked_softmax(logits, legal), strategy, reduction="none").sum(-1).mul(weight).sum()


def masked_log_softmax(logits: torch.Tensor, legal: torch.Tensor) -> torch.Tensor:
    """Log-probabilities of the legal actions, and 0 elsewhere; shapes as in `masked_softmax`."""
    return logits.masked_fill(~legal, -torch.inf).log_softmax(-1).masked_fill(~legal, 0.0)


def masked_softmax(logits: torch.Tensor, legal: torch.Tensor) -> torch.Tensor:
    """Softmax over the legal actions, exactly 0 elsewhere; [I, A], or any shapes that broadcast."""
    return logits.masked_fill(~legal, -torch.inf).softmax(-1)


def gradients(loss: torch.Tensor, parameters: Sequence[torch.Tensor]) -> tuple[torch.Tensor | None, ...]:
    """The gradient of `loss` for each parameter, stored row by row; None for a parameter that it does not depend on.

    Torch's fused Adam pairs numbers by their place in memory. On a processor it silently applies a transposed gradient to
    the wrong weights, and on CUDA it raises an error. `torch.autograd.grad` returns some gradients transposed.
    """
    found = torch.autograd.grad(loss, parameters, allow_unused=True)
    return tuple(None if gradient is None else gradient.contiguous() for gradient in found)
