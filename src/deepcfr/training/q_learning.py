"""The two losses of Neural Fictitious Self-Play (Heinrich and Silver 2016, Algorithm 1): action values and imitation."""

from __future__ import annotations

import torch

from deepcfr.sampling.episodes import Transitions
from deepcfr.training.networks import SplitNetwork


@torch.no_grad()
def q_targets(target: SplitNetwork, transitions: Transitions, legal: torch.Tensor) -> torch.Tensor:
    """r + max over legal a' of Q(s', a' | theta^Q'), or r where the player does not decide again; float32 [I].

    `target` is the target network, `legal` is bool [K, A]; the result is in units of `target.scale`. Nothing is discounted.
    Source: Algorithm 1, the loss of theta^Q.
    """
    following = transitions.following
    values: torch.Tensor = target(following).masked_fill(~legal[following.node], -torch.inf).amax(1)
    return transitions.reward / target.scale + values.masked_fill(transitions.terminal, 0.0)


def q_loss(network: SplitNetwork, target: SplitNetwork, transitions: Transitions, legal: torch.Tensor) -> torch.Tensor:
    """Mean over transitions of (Q(s, a | theta^Q) - target)^2; Algorithm 1, the loss of theta^Q."""
    values: torch.Tensor = network(transitions.infosets).gather(1, transitions.action[:, None])[:, 0]
    return (values - q_targets(target, transitions, legal)).square().mean()


def imitation_loss(logits: torch.Tensor, strategy: torch.Tensor, legal: torch.Tensor) -> torch.Tensor:
    """Mean over samples of -sum over legal actions of strategy * log Pi; Algorithm 1, the loss of theta^Pi.

    All are [I, A]; `strategy` is 1 for the action that was taken.
    """
    log_policy = logits.masked_fill(~legal, -torch.inf).log_softmax(1).masked_fill(~legal, 0.0)
    return -(strategy * log_policy).sum(1).mean()
