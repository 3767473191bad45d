"""Fits to a memory in shards, which draw for themselves and may be in other processes.

A reservoir keeps some of the m_s samples that it has seen, all with the same chance. So a sample of everything that shards
have seen is one of shard s with chance m_s / sum m, and then any of those that it keeps. Weighted draws are the same with
weights. What is drawn depends on the shards and on the fit's stream only, not on where the shards are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch

from deepcfr.config import FitConfig
from deepcfr.memory.reservoir import Memory
from deepcfr.rng import key
from deepcfr.training.draw import Draw
from deepcfr.training.examples import IndexedExamples, InfosetExamples, Objective, Weights
from deepcfr.training.networks import SplitNetwork
from deepcfr.types import Infosets, Samples

BLOCK, LONGEST = 1 << 15, 1 << 22  # samples of a shard, on average, and of all, that are asked for at a time
_BLOCKS = 8  # of a fit, at least, if it is that long


@dataclass(frozen=True)
class Order:
    """Which memory a fit draws from, and how: all that a shard has to know."""

    memory: str  # its name
    weights: Weights
    iteration: int
    config: FitConfig


@dataclass(frozen=True)
class Survey:
    """What one shard has for an order."""

    seen: int
    held: int
    mass: torch.Tensor  # float64 [K], of each round: the weights of the samples that it holds; 0 if all are drawn alike
    mean_square: float  # of targets, in their units; 0 if they are not scaled

    @property
    def times(self) -> float:
        """How many samples seen one that is held stands for."""
        return self.seen / max(1, self.held)


class Shards(Protocol):
    """The shards of a run's memories, by number, wherever they are."""

    def survey(self, order: Order) -> Mapping[int, Survey]:
        """What each shard has."""

    def aim(self, order: Order, mass: torch.Tensor) -> None:
        """Get ready to draw for an order; `mass` [K] is the weight of each round in all shards together."""

    def draw(self, order: Order, counts: Mapping[int, int], stream: int) -> Callable[[], Mapping[int, Samples]]:
        """Begin to draw so many samples of each shard, with replacement, and return what waits for them."""


class ShardSampler:
    """One memory in one shard: what it has, and draws from it."""

    def __init__(self, memory: Memory, objective: Objective, config: FitConfig) -> None:
        self._memory, self._objective, self._config = memory, objective, config
        self._examples: InfosetExamples | None = None

    def survey(self) -> Survey:
        """See `Survey`."""
        memory, objective = self._memory, self._objective
        mass, mean = torch.zeros(len(objective.legal), dtype=torch.float64), 0.0
        if self._config.draw != "uniform":
            mass = objective.mass(memory).cpu()
        if len(memory) and self._config.scale_targets:
            mean = objective.mean_square(memory, memory.filled("target"))
        return Survey(memory.seen, len(memory), mass, mean)

    def aim(self, mass: torch.Tensor) -> None:
        """See `Shards.aim`."""
        device = self._memory.filled("target").device
        self._examples = InfosetExamples(self._memory, self._objective, self._config, mass.to(device))

    def draw(self, count: int, stream: int) -> Samples:
        """So many samples, with replacement, by their odds."""
        assert self._examples is not None
        index = torch.empty(count, dtype=torch.int64, device=self._memory.filled("target").device)
        if count:
            Draw(self._examples, 0.0, stream, index.device).fill(index)
        return self._memory[index]


class ShardedExamples:
    """The samples of a memory in shards. They come in blocks, and an index is one into the block that is here."""

    share = 1 << 40  # a worker's part of a mini-batch is never cut further

    def __init__(
        self, shards: Shards, order: Order, objective: Objective, surveys: Mapping[int, Survey] | None = None
    ) -> None:
        """With `surveys`, another process has asked the shards for them, and has them ready to draw."""
        self._shards, self.order, self._objective = shards, order, objective
        self.surveys = surveys or shards.survey(order)
        mass = torch.zeros(len(objective.legal), dtype=torch.float64)
        for survey in self.surveys.values():
            mass += survey.times * survey.mass
        shares = np.array([self._share(survey, mass) for survey in self.surveys.values()])
        self._shares = shares / max(shares.sum(), 1e-300)
        if len(self) and surveys is None:
            shards.aim(order, mass)
        self._block: Samples | None = None

    def _share(self, survey: Survey, mass: torch.Tensor) -> float:
        """A shard's share of all draws, not normalised."""
        if self.order.config.draw == "uniform":
            return float(survey.seen)
        own = survey.mass[mass > 0]
        return survey.times * float(own.sum() if self.order.config.draw == "weighted" else (own / mass[mass > 0]).sum())

    @property
    def block(self) -> int:
        """Samples to be asked for together: so many of each shard that the asking itself takes little."""
        return min(BLOCK * len(self.surveys), LONGEST)

    def __len__(self) -> int:
        return sum(survey.held for survey in self.surveys.values())

    def scale(self) -> float:
        """The root mean square of legal targets of all that was seen; 1 when all are 0 or nothing is scaled."""
        if not self.order.config.scale_targets:
            return 1.0
        seen = sum(survey.seen for survey in self.surveys.values())
        mean = sum(survey.mean_square * survey.seen for survey in self.surveys.values()) / max(1, seen)
        return math.sqrt(mean) if mean > 0 else 1.0

    def loss(self, network: SplitNetwork, index: torch.Tensor) -> torch.Tensor:
        """See `Examples`."""
        assert self._block is not None
        return self._objective.of(network, self._block[index], self.order.config)

    def ask(self, count: int, stream: int) -> Callable[[], Samples]:
        """Begin to draw so many samples of all shards, mixed, and return what waits for them."""
        numbers = list(self.surveys)
        which = np.random.default_rng(stream).choice(len(numbers), size=count, p=self._shares)
        counts = np.bincount(which, minlength=len(numbers))
        found = self._shards.draw(self.order, dict(zip(numbers, counts.tolist(), strict=True)), stream)

        def wait() -> Samples:
            parts = found()
            place = torch.from_numpy(np.argsort(which, kind="stable"))
            order = torch.empty_like(place)
            order[place] = torch.arange(count)
            return _joined([parts[number] for number in numbers])[order]

        return wait

    def take(self, samples: Samples, room: int) -> None:
        """Make these the block that indices are of; it stays at the same addresses, of which there are `room`."""
        if self._block is None:
            device = self._objective.legal.device
            self._block = Samples(
                Infosets(_room(samples.infosets.node, room, device), _room(samples.infosets.cards, room, device)),
                _room(samples.target, room, device),
                _room(samples.iteration, room, device),
            )
        for column, new in zip(_columns(self._block), _columns(samples), strict=True):
            column[: len(new)] = new


AnyExamples = IndexedExamples | ShardedExamples


class BlockDraw:
    """Draws from shards, a block at a time; the next is on its way while one is used, so a fit has several."""

    def __init__(self, examples: ShardedExamples, stream: int, sizes: Sequence[int]) -> None:
        """`sizes` are how many examples each `fill` takes."""
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


def _joined(parts: list[Samples]) -> Samples:
    node, cards, target, iteration = (torch.cat(column) for column in zip(*map(_columns, parts), strict=True))
    return Samples(Infosets(node, cards), target, iteration)
