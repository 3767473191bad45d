"""The two losses of Neural Fictitious Self-Play (Heinrich and Silver 2016, Algorithm 1): action values and imitation."""

from __future__ import annotations

import torch
from torch.nn import functional

from deepcfr.games.base import card_codes, distinct
from deepcfr.reinforcement.episodes import Transitions
from deepcfr.training.losses import masked_log_softmax
from deepcfr.training.networks import SplitNetwork
from deepcfr.types import Encoding, Infosets


def outputs_at(network: SplitNetwork, infosets: Infosets, encoding: Encoding) -> torch.Tensor:
    """The network's outputs in units of its `scale`, float32 [I, A]; a CPU computes each distinct infoset once.

    In small games most infosets occur many times in a mini-batch. On a GPU finding the repetitions costs more than it
    saves.
    """
    if infosets.cards.device.type != "cpu":
        return network(infosets)  # type: ignore[no-any-return]
    code = card_codes(infosets.cards, encoding) * len(encoding.legal) + infosets.node
    example, place = distinct(code)
    return functional.embedding(place, network(infosets[example]))


@torch.no_grad()
def q_targets(target: SplitNetwork, transitions: Transitions, encoding: Encoding) -> torch.Tensor:
    """r + max over legal a' of Q(s', a' | theta^Q'), or r without a further decision; float32 [I].

    `target` is the target network; the result is in units of `target.scale`. There is no discount.
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

    All are [I, A]; `strategy` is 1 for the chosen action.
    """
    return -(strategy * masked_log_softmax(logits, legal)).sum(1).mean()


def epsilon_greedy(values: torch.Tensor, legal: torch.Tensor, epsilon: float = 0.0) -> torch.Tensor:
    """The action of largest value with probability 1 - epsilon, otherwise a uniform legal action; [..., A].

    `values` and `legal` are [I, A], or any shapes that broadcast. Ties go to the first action.
    """
    best = values.masked_fill(~legal, -torch.inf).argmax(-1)
    greedy = functional.one_hot(best, values.shape[-1]).to(values.dtype)
    return (1 - epsilon) * greedy + epsilon * legal / legal.sum(-1, keepdim=True)
