"""Fits to a memory in shards; each shard draws its own samples and may be in another process.

A reservoir keeps each of the m_s samples that it has seen with the same probability. So a uniform sample of everything
seen comes from shard s with probability m_s / sum m, and is then any sample that the shard keeps. Weighted draws use sums
of weights instead. Draws depend only on the shards and on the fit's stream, not on where the shards are.

With merged draws every shard sends the sum of its targets at each of its infosets, and receives the means over all
shards, so that it draws merged targets: the same as those of one memory with all samples.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import torch

from deepcfr.config import FitConfig
from deepcfr.memory.reservoir import InfosetSums, Memory
from deepcfr.rng import key
from deepcfr.training.examples import UNDIVIDED, Draw, InfosetExamples, Objective, Weights
from deepcfr.training.networks import SplitNetwork
from deepcfr.types import Infosets, Samples, joined

BLOCK, LONGEST = 1 << 15, 1 << 22  # samples requested at a time: of each shard on average, and of all shards
_BLOCKS = 8  # of a fit, at least, if it is that long


@dataclass(frozen=True)
class Order:
    """The memory that a fit draws from, and the settings of its draws."""

    memory: str  # its name
    weights: Weights
    iteration: int
    config: FitConfig


@dataclass(frozen=True)
class Means:
    """Mean targets of infosets over all shards."""

    code: torch.Tensor  # int64 [G], ascending; see `InfosetSums`
    target: torch.Tensor  # float32 [G, A]


@dataclass(frozen=True)
class Survey:
    """Sums over one shard's samples for an order."""

    seen: int
    held: int
    mass: torch.Tensor  # float64 [K], of each round: the weights of the samples that it holds; 0 if all are drawn alike
    mean_square: float = 0.0  # of the targets that are drawn, in their units; 0 if they are not scaled
    sums: InfosetSums | None = None  # if targets are to be merged

    @property
    def times(self) -> float:
        """The number of seen samples that each kept sample represents."""
        return self.seen / max(1, self.held)


class Shards(Protocol):
    """The shards of a run's memories by number, in this process or in others."""

    def survey(self, order: Order) -> Mapping[int, Survey]:
        """The survey of each shard."""

    def aim(self, order: Order, mass: torch.Tensor, means: Means | None) -> Mapping[int, float]:
        """Prepare draws for an order, and return each shard's `Survey.mean_square` of the targets that it draws.

        `mass` [K] is the weight of each round in all shards together; `means` are the targets if they are merged.
        """

    def draw(self, order: Order, counts: Mapping[int, int], stream: int) -> Callable[[], Mapping[int, Samples]]:
        """Start to draw `counts` samples of each shard, with replacement; the result waits for them."""


class ShardSampler:
    """Surveys and draws of one memory in one shard."""

    def __init__(self, memory: Memory, objective: Objective, config: FitConfig) -> None:
        self._memory, self._objective, self._config = memory, objective, config
        self._examples: InfosetExamples | None = None
        self._infosets: tuple[torch.Tensor, torch.Tensor] | None = None  # their codes, and each sample's place there

    def survey(self) -> Survey:
        """The survey of this shard."""
        memory, objective, sums = self._memory, self._objective, None
        mass = torch.zeros(len(objective.legal), dtype=torch.float64)
        if self._config.draw == "balanced":
            mass = objective.mass(memory).cpu()
        if self._config.draw == "merged" and len(memory):
            weight = objective.weights(memory.filled("iteration"), objective.iteration)
            found, place = memory.target_sums(weight)
            sums = InfosetSums(found.code.cpu(), found.weight.cpu(), found.target.cpu())
            self._infosets = sums.code, place
        return Survey(memory.seen, len(memory), mass, sums=sums)

    def aim(self, mass: torch.Tensor, means: Means | None) -> float:
        """Prepare draws for an order; arguments and result as for `Shards.aim`."""
        memory, targets = self._memory, self._memory.filled("target")
        unmerged = replace(self._config, draw="balanced" if self._config.draw == "balanced" else "uniform")
        self._examples = InfosetExamples(memory, self._objective, unmerged, mass.to(targets.device))
        if self._infosets and means:
            code, place = self._infosets
            targets = means.target[torch.searchsorted(means.code, code)].to(targets.device)[place]
            self._examples.targets = targets
            self._infosets = None
        is_scaled = len(memory) and self._objective.scaled
        return self._objective.mean_square(memory, targets) if is_scaled else 0.0

    def draw(self, count: int, stream: int) -> Samples:
        """Draw `count` samples with replacement, by their odds."""
        assert self._examples is not None
        index = torch.empty(count, dtype=torch.int64, device=self._memory.filled("target").device)
        if count:
            Draw(self._examples, stream, index.device).fill(index)
        return self._examples.samples(index)


class ShardedExamples:
    """The samples of a memory in shards. They arrive in blocks; an index points into the current block."""

    def __init__(
        self, shards: Shards, order: Order, objective: Objective, surveys: Mapping[int, Survey] | None = None
    ) -> None:
        """If `surveys` are given, another process has called `survey` and `aim` on the shards already."""
        self._shards, self.order, self._objective = shards, order, objective
        self.surveys = surveys or shards.survey(order)
        mass = torch.zeros(len(objective.legal), dtype=torch.float64)
        for survey in self.surveys.values():
            mass += survey.times * survey.mass
        shares = np.array([self._share(survey, mass) for survey in self.surveys.values()])
        self._shares = shares / max(shares.sum(), 1e-300)
        if len(self) and surveys is None:
            squares = shards.aim(order, mass, _means(list(self.surveys.values())))
            self.surveys = {n: replace(s, mean_square=squares[n], sums=None) for n, s in self.surveys.items()}
        self._block: Samples | None = None

    def share(self, network: SplitNetwork) -> int:  # noqa: ARG002
        """A worker's share of a mini-batch is not divided further."""
        return UNDIVIDED

    def _share(self, survey: Survey, mass: torch.Tensor) -> float:
        """The unnormalised probability that a draw is from this shard."""
        if self.order.config.draw != "balanced":
            return float(survey.seen)
        return survey.times * float((survey.mass[mass > 0] / mass[mass > 0]).sum())

    @property
    def block(self) -> int:
        """The number of samples requested at once, large enough that the cost of a request is small."""
        return min(BLOCK * len(self.surveys), LONGEST)

    def __len__(self) -> int:
        return sum(survey.held for survey in self.surveys.values())

    def scale(self) -> float:
        """The root mean square of legal targets of all that was seen; 1 when all are 0 or nothing is scaled."""
        if not self._objective.scaled:
            return 1.0
        seen = sum(survey.seen for survey in self.surveys.values())
        mean = sum(survey.mean_square * survey.seen for survey in self.surveys.values()) / max(1, seen)
        return math.sqrt(mean) if mean > 0 else 1.0

    def loss(self, network: SplitNetwork, index: torch.Tensor) -> torch.Tensor:
        """The sum over the examples `index` of the current block of their weighted losses."""
        assert self._block is not None
        return self._objective.of(network, self._block[index], self.order.config)

    def ask(self, count: int, stream: int) -> Callable[[], Samples]:
        """Start to draw `count` samples of all shards, mixed; the result waits for them."""
        numbers = list(self.surveys)
        which = np.random.default_rng(stream).choice(len(numbers), size=count, p=self._shares)
        counts = np.bincount(which, minlength=len(numbers))
        found = self._shards.draw(self.order, dict(zip(numbers, counts.tolist(), strict=True)), stream)

        def wait() -> Samples:
            parts = found()
            place = torch.from_numpy(np.argsort(which, kind="stable"))
            order = torch.empty_like(place)
            order[place] = torch.arange(count)
            samples: Samples = joined([parts[number] for number in numbers])
            return samples[order]

        return wait

    def draw(self, stream: int, sizes: Sequence[int], device: torch.device) -> BlockDraw:  # noqa: ARG002
        """Start to draw from `stream` for a fit; `sizes` are the numbers of examples of each `fill`."""
        return BlockDraw(self, stream, sizes)

    def take(self, samples: Samples, room: int) -> None:
        """Make `samples` the current block. It keeps its addresses, with space for `room` samples."""
        if self._block is None:
            device = self._objective.legal.device
            self._block = Samples(
                Infosets(_room(samples.infosets.node, room, device), _room(samples.infosets.cards, room, device)),
                _room(samples.target, room, device),
                _room(samples.iteration, room, device),
            )
        for column, new in zip(_columns(self._block), _columns(samples), strict=True):
            column[: len(new)] = new


class BlockDraw:
    """Draws from shards, a block at a time; the next block is fetched while one is used."""

    def __init__(self, examples: ShardedExamples, stream: int, sizes: Sequence[int]) -> None:
        """`sizes` are the numbers of examples of each `fill`."""
        self._examples, self._stream = examples, stream
        self._blocks = together(sizes, min(examples.block, sum(sizes) // _BLOCKS))
        self._number = self._used = self._here = 0
        self._waiting = self._ask()

    def _ask(self) -> Callable[[], Samples] | None:
        if self._number == len(self._blocks):
            return None
        return self._examples.ask(self._blocks[self._number], key(self._stream, "block", self._number))

    def fill(self, index: torch.Tensor) -> None:
        """Overwrite `index`, int64 of any shape and contiguous, with new examples, as many as the next of `sizes`."""
        if self._used == self._here:
            assert self._waiting is not None
            samples = self._waiting()
            self._examples.take(samples, max(self._blocks))
            self._used, self._here = 0, len(samples)
            self._number += 1
            self._waiting = self._ask()
        first, self._used = self._used, self._used + index.numel()
        assert self._used <= self._here
        torch.arange(first, self._used, out=index.view(-1))


def _means(surveys: Sequence[Survey]) -> Means | None:
    """The mean targets over all samples that shards have seen; None if no shard has sums."""
    found = [(survey.times, survey.sums) for survey in surveys if survey.sums]
    if not found:
        return None
    code = torch.unique(torch.cat([sums.code for _, sums in found]))
    weight = torch.zeros(len(code), dtype=torch.float64)
    target = torch.zeros(len(code), found[0][1].target.shape[1], dtype=torch.float64)
    for times, sums in found:
        place = torch.searchsorted(code, sums.code)
        weight[place] += times * sums.weight
        target[place] += times * sums.target
    return Means(code, (target / weight[:, None]).float())


def together(sizes: Sequence[int], most: int) -> list[int]:
    """Sums of neighbouring sizes, each of at most `most` unless one size is more than that."""
    sums: list[int] = []
    for size in sizes:
        if sums and sums[-1] + size <= most:
            sums[-1] += size
        else:
            sums.append(size)
    return sums


def _columns(samples: Samples) -> tuple[torch.Tensor, ...]:
    return samples.infosets.node, samples.infosets.cards, samples.target, samples.iteration


def _room(like: torch.Tensor, rows: int, device: torch.device) -> torch.Tensor:
    return torch.empty(rows, *like.shape[1:], dtype=like.dtype, device=device)
