"""Training examples of a fit, drawn with replacement; usually the samples of a memory."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol

import torch

from deepcfr.config import FitConfig
from deepcfr.config.records import Weighting
from deepcfr.core.rng import generator
from deepcfr.core.types import Infosets, Samples
from deepcfr.network.memory import Memory
from deepcfr.network.networks import SplitNetwork

Loss = Callable[[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]
Weights = Callable[[torch.Tensor, int], torch.Tensor]
UNDIVIDED = 1 << 40  # a share that is larger than any mini-batch
_SCALE_SAMPLES = 1 << 20
_CANDIDATES = 1 << 18  # examples drawn at a time, where odds decide which of them are taken


class Examples(Protocol):
    """Training examples of any shape, drawn by index; one example is what is drawn and counted."""

    def share(self, network: SplitNetwork) -> int:
        """At most this many examples go to one call of `loss` that wants a gradient, so that it stays in the cache."""

    def __len__(self) -> int: ...

    def scale(self) -> float:
        """The unit of the targets, their root mean square; 1 if they are fitted as they are."""

    def loss(self, network: SplitNetwork, index: torch.Tensor) -> torch.Tensor:
        """The sum over the examples `index`, int64 [I], of their weighted losses, with targets in units of
        `network.scale`.

        It must not read a value back from the device.
        """

    @property
    def draws(self) -> int:
        """Indices are drawn below this number; several may stand for one example, each for another part of it."""

    @property
    def odds(self) -> torch.Tensor | None:
        """The acceptance probability of each drawn index, float32 [draws]; None if every draw is accepted."""


class Draw:
    """Draws examples with replacement, from `stream`, by their odds if they have any."""

    def __init__(self, examples: Examples, stream: int, device: torch.device) -> None:
        self._examples, self._device = examples, device
        self._generator = generator(stream, str(device))

    def fill(self, index: torch.Tensor) -> None:
        """Overwrite `index` with examples drawn with replacement."""
        flat, filled, odds = index.view(-1), 0, self._examples.odds
        if odds is None:
            torch.randint(self._examples.draws, flat.shape, generator=self._generator, out=flat)
            return
        while filled < len(flat):
            some = torch.randint(
                self._examples.draws, (min(len(flat), _CANDIDATES),), generator=self._generator, device=self._device
            )
            uniform = torch.rand(some.shape, generator=self._generator, device=self._device)
            some = some[uniform < odds[some]][: len(flat) - filled]
            flat[filled : filled + len(some)] = some
            filled += len(some)


def linear_weights(iteration: torch.Tensor, newest: int) -> torch.Tensor:
    """Linear CFR's sample weights, 2 t / T for a sample of iteration t (section 5.3), float32 [I]."""
    return iteration.float() * (2.0 / newest)


def uniform_weights(iteration: torch.Tensor, newest: int) -> torch.Tensor:  # noqa: ARG001
    """Weight 1 for every sample, float32 [I]."""
    return torch.ones(len(iteration), device=iteration.device)


def quadratic_weights(iteration: torch.Tensor, newest: int) -> torch.Tensor:
    """The weights of averages in Discounted CFR with gamma = 2 (Brown and Sandholm 2019), 3 t^2 / T^2, float32 [I]."""
    return 3 * (iteration.float() / newest).square()


WEIGHTS: dict[Weighting, Weights] = {
    "linear": linear_weights,
    "uniform": uniform_weights,
    "quadratic": quadratic_weights,
    "discounted": uniform_weights,  # the rows of a panel have their weights in them
}


@dataclass(frozen=True)
class Objective:
    """The loss of a fit to samples of infosets.

    `legal` is bool [K, A], `unit`, float32 [K], what targets at each public infoset are divided by, and `rounds`, int64
    [K], the round of each, which balanced draws need. `weights(sample iterations, iteration)` gives the weight of each
    sample: of its loss, or of its chance to be drawn. Targets are fitted in units of their root mean square if
    `scaled`; probabilities have no unit.
    """

    legal: torch.Tensor
    loss: Loss
    weights: Weights
    iteration: int
    unit: torch.Tensor | None = None
    rounds: torch.Tensor | None = None
    scaled: bool = True

    def of(self, network: SplitNetwork, batch: Samples, config: FitConfig) -> torch.Tensor:
        """The sum of the losses of a mini-batch drawn with the settings of `config`."""
        weights = uniform_weights if config.draw == "balanced" else self.weights
        weight = weights(batch.iteration, self.iteration)
        node = batch.infosets.node
        if node.dim() == 2:  # a sample is a hand with several decisions, and has the mean of their losses
            weight = (weight / node.shape[1])[:, None]
        targets = self.in_units(batch.target, node)
        batch_loss = _compiled_batch_loss() if node.is_cuda else _batch_loss
        return batch_loss(self.loss, network, batch.infosets, targets, self.legal, weight)

    def in_units(self, targets: torch.Tensor, node: torch.Tensor) -> torch.Tensor:
        """Targets [..., A] at public infosets `node`, int [...], as they are fitted."""
        return targets if self.unit is None else targets / self.unit[node][..., None]

    def mean_square(self, memory: Memory, targets: torch.Tensor, most: int = _SCALE_SAMPLES) -> float:
        """The mean square of the legal targets, [samples, ..., A], but NaN, over an even subset of about `most` samples."""
        some = slice(0, None, 1 + len(memory) // most)
        node = memory.filled("node")[some].int()
        return float(self.in_units(targets[some], node)[self.legal[node]].double().square().nanmean())

    def mass(self, memory: Memory) -> torch.Tensor:
        """The sum of the samples' weights in each round, float64 [K]."""
        assert self.rounds is not None
        weight = self.weights(memory.filled("iteration"), self.iteration).double()
        sums = torch.zeros(len(self.legal), dtype=torch.float64, device=weight.device)
        by_node = torch.zeros_like(sums).index_add_(0, first_nodes(memory).int(), weight)
        return sums.index_add_(0, self.rounds, by_node)

    def odds(self, memory: Memory, config: FitConfig) -> torch.Tensor | None:
        """The acceptance probability of each drawn sample, float32; None if every draw is accepted.

        Balanced draws take as much weight from every round.
        """
        if config.draw != "balanced" or not len(memory):
            return None
        by_round = self.mass(memory)
        odds = self.weights(memory.filled("iteration"), self.iteration)
        odds /= by_round[self.rounds].float()[first_nodes(memory).int()]
        return odds / odds.max()


def _batch_loss(
    loss: Loss,
    network: SplitNetwork,
    infosets: Infosets,
    targets: torch.Tensor,
    legal: torch.Tensor,
    weight: torch.Tensor,
) -> torch.Tensor:
    """The `loss` of a mini-batch, with targets in units of `network.scale`; nothing here depends on the iteration."""
    return loss(network(infosets), targets / network.scale, legal[infosets.node.long()], weight)


@cache
def _compiled_batch_loss() -> Any:
    """The same for CUDA, where its many small operations become few kernels.

    Torch compiles it at the first step, again for another loss, network shape or batch size, and needs a C compiler for
    that. Its compiler takes two seconds to import, so nothing else loads it.
    """
    return torch.compile(_batch_loss, dynamic=False)


def first_nodes(memory: Memory) -> torch.Tensor:
    """The node of every sample, or the first of its nodes, which are all of one round and one player, [samples]."""
    node = memory.filled("node")
    return node if node.dim() == 1 else node[:, 0]


class InfosetExamples:
    """The samples of a memory, each an infoset with its target; source: Algorithm 1 and section 5.2.

    Arguments as for `Objective`. With merged draws every sample's target is first replaced by the weighted mean
    target of all samples of the same infoset: the loss changes by a constant only, so the minimiser is the same, but
    mini-batches lose the sampling noise.
    """

    def __init__(self, memory: Memory, objective: Objective, config: FitConfig) -> None:
        self.memory, self.objective, self._config = memory, objective, config
        #: the fitted targets of the samples, float32 [samples, A], or [samples, D, A] if a sample has D decisions
        self.targets = memory.filled("target")
        if config.draw == "merged" and len(memory):
            weight = objective.weights(memory.filled("iteration"), objective.iteration)
            self.targets = memory.mean_targets(weight)
        #: the acceptance probability of each sample, as `Objective.odds` says
        self.odds = objective.odds(memory, config)

    def share(self, network: SplitNetwork) -> int:
        """A worker's share of a mini-batch is divided further only if a sample has several decisions."""
        node = self.memory.filled("node")
        return UNDIVIDED if node.dim() == 1 else max(1, network.infosets_at_once // node.shape[1])

    def __len__(self) -> int:
        return len(self.memory)

    @property
    def draws(self) -> int:
        """The number of samples."""
        return len(self.memory)

    def scale(self) -> float:
        """The root mean square of legal targets, from an even subset of a large memory; 1 if all are 0 or not scaled."""
        if not self.objective.scaled:
            return 1.0
        mean = self.objective.mean_square(self.memory, self.targets)
        return math.sqrt(mean) if mean > 0 else 1.0

    def samples(self, index: torch.Tensor) -> Samples:
        """The samples at `index`, int64 [I], with the fitted targets."""
        node, cards, iteration = (self.memory.rows(name, index) for name in ("node", "cards", "iteration"))
        return Samples(Infosets(node.int(), cards), self.targets.index_select(0, index), iteration)

    def loss(self, network: SplitNetwork, index: torch.Tensor) -> torch.Tensor:
        return self.objective.of(network, self.samples(index), self._config)
