"""Fitting networks to memories of hands: an example is one hand with all its decisions of a betting round.

The loss is that of Algorithm 1 with its expectation over nodes taken exactly. External sampling visits an infoset with a
probability in proportion to its reach; here every infoset of a drawn hand is in the mini-batch, and its reach is its
weight.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch

from deepcfr.network.examples import Weights
from deepcfr.network.fit import masked_softmax
from deepcfr.network.memory import HandMemory
from deepcfr.network.networks import SplitNetwork

_SCALE_HANDS = 1 << 12
# infosets below this reach count less than their reach: their target is a quotient of two tiny numbers
_LEAST_REACH = 1e-3
_INDICES = 1024  # that stand for a hand: their number decides which hands a stream draws

_Part = Callable[[torch.Tensor], torch.Tensor]
HandLoss = Callable[[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]
"""(outputs [I, n, A], values [I, n, A] in the same unit, reach [I, n], legal [n, A]) to the loss of each
infoset, [I, n]."""


def hand_advantage_loss(
    outputs: torch.Tensor, values: torch.Tensor, reach: torch.Tensor, legal: torch.Tensor
) -> torch.Tensor:
    """reach * (output - values / reach)^2, summed over legal actions, [I, n].

    Written as (reach * output - values)^2 / reach, and with the divisor no less than 0.001, so that nothing is divided by
    a reach near 0. Source: Algorithm 1, the loss of theta_p, in expectation over external sampling.
    """
    error = (outputs * reach[..., None] - values) * legal
    return error.square().sum(-1) / reach.clamp(min=_LEAST_REACH)


def hand_strategy_loss(
    outputs: torch.Tensor, values: torch.Tensor, reach: torch.Tensor, legal: torch.Tensor
) -> torch.Tensor:
    """reach * (softmax(output) - values / reach)^2, summed over legal actions, [I, n]; written as above.

    Source: Algorithm 1, the loss of theta_Pi, in expectation over external sampling.
    """
    return hand_advantage_loss(masked_softmax(outputs, legal), values, reach, legal)


@dataclass(frozen=True)
class HandPart:
    """A memory of one player's hands in one round, and the nodes and actions that its columns stand for."""

    memory: HandMemory
    nodes: torch.Tensor  # int64 [n], public infoset indices
    legal: torch.Tensor  # bool [n, A]
    place: torch.Tensor  # int64 [E], where each edge stands in a flat [n * A]


class HandExamples:
    """An example is one hand from each of several memories (players, rounds), so all memories are drawn equally often.

    A drawn hand of any round stands for one deal, as each traversal of external sampling visits every round once, so the
    rounds are in proportion. `weights(sample iterations, iteration)` gives the weight of each hand. Memories that are
    shorter than the longest repeat their rows evenly.

    With `compress` negative targets x become -c log(1 - x / c), where c is `compress` times the root mean square of the
    positive ones. Regret matching reads only the positive part of an advantage, and the order if there is none, which this
    keeps. Towards an equilibrium positive advantages shrink while the negative ones of bad actions stay, and most of the
    loss would be spent on how bad they are. Targets must be exact means: compressing noisy ones would bias their mean.
    """

    def __init__(
        self,
        parts: list[HandPart],
        loss: HandLoss,
        weights: Weights,
        iteration: int,
        *,
        scaled: bool,
        compress: float = 0.0,
    ) -> None:
        self.odds = None  # hands are drawn uniformly, and weighted in the loss
        self.parts = [part for part in parts if len(part.memory)]
        self._loss, self._weights, self._iteration = loss, weights, iteration
        self._most = max((len(part.memory) for part in self.parts), default=0)
        self._scaled = scaled
        self._knee = 0.0
        self._knee = compress * self._positive()
        found = [float((reach.sum(1) * weight).mean()) for _, reach, weight in map(self._some, self.parts)]
        mean = sum(found) / max(1, len(found))
        self._mass = mean if mean > 0 else 1.0

    def share(self, network: SplitNetwork) -> int:
        """The number of examples whose infosets fit into the processor's cache."""
        return max(1, network.infosets_at_once // self.infosets)

    @property
    def infosets(self) -> int:
        """The number of infosets in an example."""
        return sum(len(part.nodes) for part in self.parts)

    @property
    def draws(self) -> int:
        """The number of indices, several of which stand for a hand."""
        return self._most * _INDICES

    def __len__(self) -> int:
        return self._most

    def _row(self, part: HandPart, index: torch.Tensor) -> torch.Tensor:
        return index // _INDICES * len(part.memory) // self._most

    def _some(self, part: HandPart) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Values [I, E], reach [I, n] and weight [I] of an even subset of a memory."""
        hands = part.memory[slice(0, None, 1 + len(part.memory) // _SCALE_HANDS)]
        values = self._compressed(part, hands.values, hands.reach)
        return values, hands.reach, self._weights(hands.iteration, self._iteration)

    def _compressed(self, part: HandPart, values: torch.Tensor, reach: torch.Tensor) -> torch.Tensor:
        """Values [I, E] with negative targets on a logarithmic scale; reach is [I, n]."""
        if not self._knee:
            return values
        knee = self._knee * reach[:, part.place // part.legal.shape[1]].clamp(min=_LEAST_REACH)
        return torch.where(values < 0, -knee * torch.log1p(values.clamp(max=0).neg() / knee), values)

    def _positive(self) -> float:
        """The root mean square of the positive targets, weighted as in the loss; 0 if there is none."""
        return self._root_mean_square(lambda values: values.clamp(min=0), lambda values: values > 0)

    def scale(self) -> float:
        """The root mean square of the targets, weighted as in the loss; 1 when all are 0 or nothing is scaled."""
        if not self._scaled:
            return 1.0
        found = self._root_mean_square(lambda values: values, torch.ones_like)
        return found if found > 0 else 1.0

    def _root_mean_square(self, of: _Part, counted: _Part) -> float:
        """Of a part of the targets, and over those that are `counted`."""
        squares = mass = 0.0
        for part in self.parts:
            values, reach, weight = self._some(part)
            per_edge = reach[:, part.place // part.legal.shape[1]]
            square = of(values).square() / per_edge.clamp(min=_LEAST_REACH)
            squares += float((square.sum(1) * weight).mean())
            mass += float(((per_edge * counted(values)).sum(1) * weight).mean())
        return math.sqrt(squares / mass) if mass > 0 else 0.0

    def loss(self, network: SplitNetwork, index: torch.Tensor) -> torch.Tensor:
        nodes = network.encode_nodes()
        total = torch.zeros((), device=nodes.device)
        for part in self.parts:
            hands = part.memory[self._row(part, index)]
            values = torch.zeros(len(index), part.legal.numel(), device=nodes.device)
            values[:, part.place] = self._compressed(part, hands.values, hands.reach) / network.scale
            values = values.view(len(index), *part.legal.shape)
            weight = self._weights(hands.iteration, self._iteration)[:, None]
            outputs = network.joint(network.encode_cards(hands.cards)[:, None], nodes[part.nodes])
            total = total + (self._loss(outputs, values, hands.reach, part.legal) * weight).sum()
        return total / (self._mass * len(self.parts))
