"""Fitting networks to memories of hands: an example is one hand with all its decisions of a betting round.

The loss is that of Algorithm 1 with its expectation over nodes taken exactly. External sampling visits an infoset with a
probability in proportion to its reach; here every infoset of a drawn hand is in the mini-batch, and its reach is its
weight.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch

from deepcfr.memory.hands import HandMemory
from deepcfr.training.examples import Draw, Weights
from deepcfr.training.losses import masked_softmax
from deepcfr.training.networks import SplitNetwork

_SCALE_HANDS = 1 << 12
# infosets below this reach count less than their reach: their target is a quotient of two tiny numbers
_LEAST_REACH = 1e-3
_OFFSETS = 1024  # places at which a grid of decisions can begin
_EVEN = 0.05  # share of the chance that is spread evenly over decisions, so that none is never drawn

_Part = Callable[[torch.Tensor], torch.Tensor]
HandLoss = Callable[[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]
"""(outputs [I, n, A], values [I, n, A] in the same unit, reach [I, n], legal [n, A] or [I, n, A]) to the loss of each
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


@dataclass(frozen=True)
class _Grid:
    """Systematic sampling of decisions: a grid of step 1 over the cumulative probabilities, from a random offset."""

    count: int  # nodes drawn, k
    chance: torch.Tensor  # float32 [n], with which each node is drawn; their sum is k
    end: torch.Tensor  # float32 [n], running sum

    def nodes(self, offset: torch.Tensor) -> torch.Tensor:
        """For each offset in (0, 1), [I], the nodes that its grid falls on, int64 [I, k]; all different."""
        points = offset[:, None] + torch.arange(self.count, device=offset.device)
        return torch.searchsorted(self.end, points, right=True).clamp_(max=len(self.end) - 1)


class HandExamples:
    """An example is one hand from each of several memories (players, rounds), so all memories are drawn equally often.

    A drawn hand of any round stands for one deal, as each traversal of external sampling visits every round once, so the
    rounds are in proportion. `weights(sample iterations, iteration)` gives the weight of each hand. Memories that are
    shorter than the longest repeat their rows evenly.

    With `decisions` only so many of a hand's infosets are in a mini-batch, drawn in proportion to their mean reach and
    weighted by the inverse of that chance: the expectation is the same, and a mini-batch holds more hands for its cost.

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
        decisions: int = 0,
        compress: float = 0.0,
    ) -> None:
        self.odds = None  # hands are drawn uniformly, and weighted in the loss
        self.parts = [part for part in parts if len(part.memory)]
        self._loss, self._weights, self._iteration = loss, weights, iteration
        self._most = max((len(part.memory) for part in self.parts), default=0)
        self._scaled = scaled
        self._knee = 0.0
        self._knee = compress * self._positive()
        self._mass = self._mean_weight()
        self._grids = [self._grid(part, decisions) for part in self.parts]

    def share(self, network: SplitNetwork) -> int:
        """The number of examples whose infosets fit into the processor's cache."""
        return max(1, network.infosets_at_once // self.infosets)

    @property
    def infosets(self) -> int:
        """The number of infosets in an example."""
        sizes = zip(self.parts, self._grids, strict=True)
        return sum(len(part.nodes) if grid is None else grid.count for part, grid in sizes)

    @property
    def draws(self) -> int:
        """The number of indices: each stands for a hand and for the offset of the grid of its decisions."""
        return self._most * _OFFSETS

    def __len__(self) -> int:
        return self._most

    def _row(self, part: HandPart, index: torch.Tensor) -> torch.Tensor:
        return index // _OFFSETS * len(part.memory) // self._most

    def _grid(self, part: HandPart, decisions: int) -> _Grid | None:
        """The grid that draws a part's decisions; None if all decisions are used."""
        if not 0 < decisions < len(part.nodes):
            return None
        _, reach, weight = self._some(part)
        share = (reach * weight[:, None]).double().mean(0)
        share = share / share.sum() + _EVEN / len(share)
        chance = share * (decisions / share.sum())
        for _ in range(len(chance)):  # decisions with probability above 1 are always drawn; the others share the rest
            always = chance >= 1
            if bool(always.all()) or float(chance.clamp(max=1).sum()) >= decisions - 1e-9:
                break
            left = decisions - int(always.sum())
            chance = torch.where(always, 1.0, chance * (left / chance[~always].sum()))
        grid = _Grid(decisions, chance, chance.clamp(max=1).cumsum(0).float())
        offsets = (torch.arange(_OFFSETS, device=chance.device) + 0.5) / _OFFSETS
        met = grid.nodes(offsets).flatten().bincount(minlength=len(chance))
        return replace(grid, chance=met / _OFFSETS)  # the probability over these offsets, not over all offsets

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

    def _mean_weight(self) -> float:
        """The mean over hands of the weight of all their infosets together."""
        found = [float((reach.sum(1) * weight).mean()) for _, reach, weight in map(self._some, self.parts)]
        mean = sum(found) / max(1, len(found))
        return mean if mean > 0 else 1.0

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
        offset = (index % _OFFSETS + 0.5) / _OFFSETS
        total = torch.zeros((), device=nodes.device)
        for part, grid in zip(self.parts, self._grids, strict=True):
            hands = part.memory[self._row(part, index)]
            values = torch.zeros(len(index), part.legal.numel(), device=nodes.device)
            values[:, part.place] = self._compressed(part, hands.values, hands.reach) / network.scale
            values, reach = values.view(len(index), *part.legal.shape), hands.reach
            weight = self._weights(hands.iteration, self._iteration)[:, None]
            legal, here = part.legal, nodes[part.nodes]
            if grid is not None:
                drawn = grid.nodes(offset)
                legal, here, weight = legal[drawn], here[drawn], weight / grid.chance[drawn]
                values, reach = values.take_along_dim(drawn[..., None], 1), reach.take_along_dim(drawn, 1)
            outputs = network.joint(network.encode_cards(hands.cards)[:, None], here)
            total = total + (self._loss(outputs, values, reach, legal) * weight).sum()
        return total / (self._mass * len(self.parts))

    def draw(self, stream: int, sizes: Sequence[int], device: torch.device) -> Draw:  # noqa: ARG002
        """Start to draw from `stream` for a fit; `sizes` are the numbers of examples of each `fill`."""
        return Draw(self, stream, device)
