"""What a fit minimises over: examples drawn with replacement, of which the usual kind is the samples of a memory."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

import torch

from deepcfr.config import FitConfig
from deepcfr.config.records import Weighting
from deepcfr.games.base import card_codes
from deepcfr.memory.reservoir import Memory
from deepcfr.training.networks import SplitNetwork
from deepcfr.types import Samples

Loss = Callable[[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]
Weights = Callable[[torch.Tensor, int], torch.Tensor]
_SCALE_SAMPLES = 1 << 20


class Examples(Protocol):
    """Training examples of any shape; one example is what is drawn, held out and counted."""

    @property
    def share(self) -> int:
        """At most this many examples go to one call of `loss` that wants a gradient, so that it stays in the cache."""

    def __len__(self) -> int: ...

    def scale(self) -> float:
        """The unit of the targets, their root mean square; 1 if they are fitted as they are."""

    def loss(self, network: SplitNetwork, index: torch.Tensor) -> torch.Tensor:
        """The sum over the examples `index`, int64 [I], of their weighted losses, with targets in units of `network.scale`.

        It must not read a value back from the device, and outputs must be made float32 before they meet the targets:
        under autocast networks return bfloat16.
        """


class IndexedExamples(Examples, Protocol):
    """Examples that are all here, so that they are drawn by their numbers."""

    @property
    def draws(self) -> int:
        """Indices are drawn below this number; several may stand for one example, each for another part of it."""

    @property
    def odds(self) -> torch.Tensor | None:
        """The probability with which each index is taken once it is drawn, float32 [draws]; None if all always are."""

    def group(self, index: torch.Tensor) -> torch.Tensor:
        """A number, int64 [I], that examples share if one tells the target of another: they are held out together."""


def linear_weights(iteration: torch.Tensor, newest: int) -> torch.Tensor:
    """Linear CFR's sample weights, 2 t / T for a sample of iteration t (section 5.3), float32 [I]."""
    return iteration.float() * (2.0 / newest)


def uniform_weights(iteration: torch.Tensor, newest: int) -> torch.Tensor:  # noqa: ARG001
    """Every iteration alike, float32 [I]."""
    return torch.ones(len(iteration), device=iteration.device)


def quadratic_weights(iteration: torch.Tensor, newest: int) -> torch.Tensor:
    """The weights of averages in Discounted CFR with gamma = 2 (Brown and Sandholm 2019), 3 t^2 / T^2, float32 [I]."""
    return 3 * (iteration.float() / newest).square()


WEIGHTS: dict[Weighting, Weights] = {
    "linear": linear_weights,
    "uniform": uniform_weights,
    "quadratic": quadratic_weights,
}


@dataclass(frozen=True)
class Objective:
    """What a fit to samples of infosets minimises.

    `legal` is bool [K, A], `unit`, float32 [K], what targets at each public infoset are divided by, and `rounds`, int64
    [K], the round of each, which balanced draws need. `weights(sample iterations, iteration)` gives the weight of each
    sample: of its loss, or of its chance to be drawn.
    """

    legal: torch.Tensor
    loss: Loss
    weights: Weights
    iteration: int
    unit: torch.Tensor | None = None
    rounds: torch.Tensor | None = None

    def of(self, network: SplitNetwork, batch: Samples, config: FitConfig) -> torch.Tensor:
        """The sum of the losses of a mini-batch, drawn as `config` says."""
        predicted = network(batch.infosets).float()
        weights = self.weights if config.draw == "uniform" else uniform_weights
        targets = self.in_units(batch.target, batch.infosets.node) / network.scale
        weight = weights(batch.iteration, self.iteration)
        return self.loss(predicted, targets, self.legal[batch.infosets.node], weight)

    def in_units(self, targets: torch.Tensor, node: torch.Tensor) -> torch.Tensor:
        """Targets [I, A] at public infosets `node`, int [I], as they are fitted."""
        return targets if self.unit is None else targets / self.unit[node][:, None]

    def mean_square(self, memory: Memory, targets: torch.Tensor, most: int = _SCALE_SAMPLES) -> float:
        """That of the legal targets, float32 [samples, A], from an even subset of about `most` samples of a memory."""
        some = slice(0, None, 1 + len(memory) // most)
        node = memory.filled("node")[some].int()
        return float(self.in_units(targets[some], node)[self.legal[node]].double().square().mean())

    def mass(self, memory: Memory) -> torch.Tensor:
        """The sum of the samples' weights in each round, float64 [K]; all in the first if rounds are not known."""
        weight = self.weights(memory.filled("iteration"), self.iteration).double()
        sums = torch.zeros(len(self.legal), dtype=torch.float64, device=weight.device)
        if self.rounds is None:
            sums[0] = weight.sum()
            return sums
        by_node = torch.zeros_like(sums).index_add_(0, memory.filled("node").int(), weight)
        return sums.index_add_(0, self.rounds, by_node)

    def odds(self, memory: Memory, config: FitConfig, mass: torch.Tensor | None = None) -> torch.Tensor | None:
        """The chance with which each sample is taken once it is drawn, float32; None if it always is.

        Balanced draws take as much weight from every round, of which `mass` [K] is in a memory that this is a part of.
        """
        if config.draw == "uniform" or not len(memory):
            return None
        odds = self.weights(memory.filled("iteration"), self.iteration)
        if config.draw == "balanced":
            assert self.rounds is not None
            by_round = self.mass(memory) if mass is None else mass
            odds /= by_round[self.rounds].float()[memory.filled("node").int()]
        return odds / odds.max()


class InfosetExamples:
    """The samples of a memory, each an infoset with its target; source: Algorithm 1 and section 5.2.

    See `Objective` for the arguments. With `merge_infosets` every sample's target is first replaced by the weighted mean
    target of all samples of the same infoset: the loss changes by a constant only, so the minimiser is the same, but
    mini-batches lose the sampling noise. `mass` is for a memory that is a part of one.
    """

    share = 1 << 40  # a worker's part of a mini-batch is never cut further

    def __init__(
        self,
        memory: Memory,
        objective: Objective,
        config: FitConfig,
        mass: torch.Tensor | None = None,
    ) -> None:
        self._memory, self.objective, self._config = memory, objective, config
        self._targets = memory.filled("target")
        if config.merge_infosets and len(memory):
            weight = objective.weights(memory.filled("iteration"), objective.iteration)
            self._targets = memory.mean_targets(weight)
        self._odds = objective.odds(memory, config, mass)

    @property
    def memory(self) -> Memory:
        """Where the samples are."""
        return self._memory

    def replace_targets(self, targets: torch.Tensor) -> None:
        """Take other targets for the same samples, float32 [samples, A]."""
        self._targets = targets

    def __len__(self) -> int:
        return len(self._memory)

    @property
    def draws(self) -> int:
        """One for each sample."""
        return len(self._memory)

    @property
    def odds(self) -> torch.Tensor | None:
        """In proportion to the weights, and in balanced draws also to one over the weight of the round."""
        return self._odds

    def scale(self) -> float:
        """The root mean square of legal targets, from an even subset of a large memory; 1 when all are 0."""
        if not self._config.scale_targets:
            return 1.0
        mean = self.objective.mean_square(self._memory, self._targets)
        return math.sqrt(mean) if mean > 0 else 1.0

    def samples(self, index: torch.Tensor) -> Samples:
        """Those of the examples `index`, int64 [I], with the targets that are fitted."""
        return replace(self._memory[index], target=self._targets[index])

    def loss(self, network: SplitNetwork, index: torch.Tensor) -> torch.Tensor:
        return self.objective.of(network, self.samples(index), self._config)

    def group(self, index: torch.Tensor) -> torch.Tensor:
        """The cards that the player sees, or the node in a game without cards.

        A merged target is that of an infoset, so samples of one infoset belong together. Samples of one hand at other
        nodes of the same board come from the same traversals and have related targets, so they belong there as well.
        """
        cards = self._memory.filled("cards")[index]
        if not cards.shape[1]:
            return self._memory.filled("node")[index].long()
        return card_codes(cards, self._memory.encoding)
