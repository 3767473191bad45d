"""What a fit minimises over: examples drawn with replacement, of which the usual kind is the samples of a memory."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Protocol

import torch

from deepcfr.config import FitConfig
from deepcfr.config.records import Weighting
from deepcfr.games.base import card_codes
from deepcfr.memory.reservoir import Memory
from deepcfr.training.networks import SplitNetwork

Loss = Callable[[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]
Weights = Callable[[torch.Tensor, int], torch.Tensor]
_SCALE_SAMPLES = 1 << 20


class Examples(Protocol):
    """Training examples of any shape; one example is what is drawn, held out and counted."""

    @property
    def share(self) -> int:
        """At most this many examples go to one call of `loss` that wants a gradient, so that it stays in the cache."""

    @property
    def draws(self) -> int:
        """Indices are drawn below this number; several may stand for one example, each for another part of it."""

    @property
    def odds(self) -> torch.Tensor | None:
        """The probability with which each index is taken once it is drawn, float32 [draws]; None if all always are."""

    def __len__(self) -> int: ...

    def scale(self) -> float:
        """The unit of the targets, their root mean square; 1 if they are fitted as they are."""

    def loss(self, network: SplitNetwork, index: torch.Tensor) -> torch.Tensor:
        """The sum over the examples `index`, int64 [I], of their weighted losses, with targets in units of `network.scale`.

        It must not read a value back from the device, and outputs must be made float32 before they meet the targets:
        under autocast networks return bfloat16.
        """

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


class InfosetExamples:
    """The samples of a memory, each an infoset with its target; source: Algorithm 1 and section 5.2.

    `legal` is bool [K, A], `unit`, float32 [K], what targets at each public infoset are divided by, and `rounds`, int64
    [K], the round of each, which balanced draws need. `weights(sample iterations, iteration)` gives the weight of each
    sample: of its loss, or of its chance to be drawn. With `merge_infosets` every sample's target is first replaced by the
    weighted mean target of all samples of the same infoset: the loss changes by a constant only, so the minimiser is the
    same, but mini-batches lose the sampling noise.
    """

    share = 1 << 40  # a worker's part of a mini-batch is never cut further

    def __init__(
        self,
        memory: Memory,
        legal: torch.Tensor,
        loss: Loss,
        weights: Weights,
        iteration: int,
        config: FitConfig,
        unit: torch.Tensor | None = None,
        rounds: torch.Tensor | None = None,
    ) -> None:
        self._unit = unit
        self._memory, self._legal, self._loss, self._weights, self._iteration = memory, legal, loss, weights, iteration
        self._scaled = config.scale_targets
        self._targets = memory.filled("target")
        if config.merge_infosets and len(memory):
            self._targets = memory.mean_targets(weights(memory.filled("iteration"), iteration))
        self._odds = None
        if config.draw != "uniform" and len(memory):
            odds = weights(memory.filled("iteration"), iteration)
            if config.draw == "balanced":
                assert rounds is not None
                odds /= _sums(odds, rounds, memory.filled("node").int())
            self._odds = odds / odds.max()

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
        if not self._scaled:
            return 1.0
        some = slice(0, None, 1 + len(self) // _SCALE_SAMPLES)
        node = self._memory.filled("node")[some].int()
        mean = float(self._in_units(self._targets[some], node)[self._legal[node]].double().square().mean())
        return math.sqrt(mean) if mean > 0 else 1.0

    def loss(self, network: SplitNetwork, index: torch.Tensor) -> torch.Tensor:
        batch = self._memory[index]
        predicted = network(batch.infosets).float()
        legal = self._legal[batch.infosets.node]
        weights = self._weights if self._odds is None else uniform_weights
        weight = weights(batch.iteration, self._iteration)
        targets = self._in_units(self._targets[index], batch.infosets.node)
        return self._loss(predicted, targets / network.scale, legal, weight)

    def _in_units(self, targets: torch.Tensor, node: torch.Tensor) -> torch.Tensor:
        return targets if self._unit is None else targets / self._unit[node][:, None]

    def group(self, index: torch.Tensor) -> torch.Tensor:
        """The cards that the player sees, or the node in a game without cards.

        A merged target is that of an infoset, so samples of one infoset belong together. Samples of one hand at other
        nodes of the same board come from the same traversals and have related targets, so they belong there as well.
        """
        cards = self._memory.filled("cards")[index]
        if not cards.shape[1]:
            return self._memory.filled("node")[index].long()
        return card_codes(cards, self._memory.encoding)


def _sums(weight: torch.Tensor, rounds: torch.Tensor, node: torch.Tensor) -> torch.Tensor:
    """For every sample at a public infoset `node`, int [I], the sum of `weight` [I] over all those of its round."""
    by_node = torch.zeros(len(rounds), dtype=torch.float64, device=weight.device).index_add_(0, node, weight.double())
    by_round = torch.zeros_like(by_node).index_add_(0, rounds, by_node)
    return by_round[rounds].float()[node]
