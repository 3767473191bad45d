"""The two losses of Neural Fictitious Self-Play (Heinrich and Silver 2016, Algorithm 1): action values and imitation."""

from __future__ import annotations

import torch
from torch.nn import functional

from deepcfr.games.base import card_codes
from deepcfr.sampling.episodes import Transitions
from deepcfr.training.networks import SplitNetwork
from deepcfr.types import Encoding, Infosets


def outputs_at(network: SplitNetwork, infosets: Infosets, encoding: Encoding) -> torch.Tensor:
    """What the network says, in units of its `scale`, float32 [I, A]; on a CPU each distinct infoset is computed once.

    In small games a mini-batch holds most of its infosets many times. To find that out costs a device more than it saves.
    """
    if infosets.cards.device.type != "cpu":
        return network(infosets)  # type: ignore[no-any-return]
    code = card_codes(infosets.cards, encoding) * len(encoding.legal) + infosets.node
    distinct, place = torch.unique(code, return_inverse=True)
    example = torch.empty(len(distinct), dtype=torch.int64)
    example[place] = torch.arange(len(place))  # any of them will do
    return functional.embedding(place, network(infosets[example]))


@torch.no_grad()
def q_targets(target: SplitNetwork, transitions: Transitions, encoding: Encoding) -> torch.Tensor:
    """r + max over legal a' of Q(s', a' | theta^Q'), or r where the player does not decide again; float32 [I].

    `target` is the target network; the result is in units of `target.scale`. Nothing is discounted.
    Source: Algorithm 1, the loss of theta^Q.
    """
    following = transitions.following
    illegal = ~encoding.legal[following.node]
    values = outputs_at(target, following, encoding).masked_fill(illegal, -torch.inf).amax(1)
    return transitions.reward / target.scale + values.masked_fill(transitions.terminal, 0.0)


def q_loss(network: SplitNetwork, target: SplitNetwork, transitions: Transitions, encoding: Encoding) -> torch.Tensor:
    """Mean over transitions of (Q(s, a | theta^Q) - target)^2; Algorithm 1, the loss of theta^Q."""
    values = outputs_at(network, transitions.infosets, encoding).gather(1, transitions.action[:, None])[:, 0]
    return (values - q_targets(target, transitions, encoding)).square().mean()


def imitation_loss(logits: torch.Tensor, strategy: torch.Tensor, legal: torch.Tensor) -> torch.Tensor:
    """Mean over samples of -sum over legal actions of strategy * log Pi; Algorithm 1, the loss of theta^Pi.

    All are [I, A]; `strategy` is 1 for the action that was taken.
    """
    log_policy = logits.masked_fill(~legal, -torch.inf).log_softmax(1).masked_fill(~legal, 0.0)
    return -(strategy * log_policy).sum(1).mean()
