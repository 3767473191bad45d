"""The parts of Monte Carlo CFR that all games share: traversals in threads, weights, floors, shapes and tables."""

from __future__ import annotations

import dataclasses
import time
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import replace
from typing import ClassVar, Literal, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from deepcfr.config import TabularConfig, solve_config_from_table
from deepcfr.errors import ConfigError
from deepcfr.games.ladder_game import LadderGame
from deepcfr.games.poker import PokerGame
from deepcfr.games.tree_game import TreeGame
from deepcfr.parallel import Workers
from deepcfr.rng import key
from deepcfr.sampling.mccfr import SHAPES, Learning
from deepcfr.solvers.tabular import TabularRecord, TabularSolver

PLAYERS = (0, 1)
EXPLORATION = 0.6  # share of uniform play in the traverser's policy in outcome sampling (Lanctot et al. 2009)
_FLOOR_SLOPE, _FLOOR_END = -2.5e-7, 40_000  # change of a floor after every game, and its last game (Lin 2024, 6.2)
UNIFORM: Literal["uniform"] = "uniform"  # the strategy of tables of zeros

Table = npt.NDArray[np.floating]


class Chunk(NamedTuple):
    """Some of a player's traversals in an iteration, which one thread runs."""

    first: int  # number of the first traversal
    size: int  # how many
    deal_stream: int
    action_stream: np.uint64
    traverser: int
    weight: float  # of regrets and strategies
    learning: Learning


class SampledSolver(TabularSolver):
    """The state of a Monte Carlo solver: iterate over `iterations()` to advance it.

    Every random stream is derived from (seed, purpose, iteration, player), so there is no generator state to save.
    """

    game: PokerGame | TreeGame | LadderGame
    most_chunk: ClassVar[int]  # traversals that a thread runs at a time
    trial: ClassVar[int]  # traversals of the trial for a forecast

    def __init__(self, config: TabularConfig, seed: int, threads: int, entries: int) -> None:
        self.config, self.seed = config, seed
        self.iteration = 0
        self.nodes_touched = 0
        self.workers = Workers(threads)
        # pages of zeros take no memory until a traversal writes to them
        self._regret: Table = np.zeros(entries, config.precision)
        self._average: Table = np.zeros(entries, config.precision)

    @abstractmethod
    def _anew(self, config: TabularConfig) -> Self:
        """A solver of the same game at its start, with other settings."""

    @abstractmethod
    def _begin(self) -> None:
        """Fill both tables with the initial strategy."""

    @abstractmethod
    def _run(self, chunk: Chunk) -> int:
        """Run the traversals of a chunk; returns the nodes touched, histories and deals."""

    def iterations(self) -> Iterator[TabularRecord]:
        """One CFR iteration each, from where the state is up to the configured number."""
        if self.iteration == 0 and self.config.initial != UNIFORM:
            self._begin()
        while self.iteration < self.config.iterations:
            start = time.perf_counter()
            t = self.iteration + 1
            touched = sum(self._traverse(t, player) for player in PLAYERS)
            self.iteration = t
            self.nodes_touched += touched
            yield TabularRecord(t, touched, time.perf_counter() - start)

    def describe(self) -> str:
        """One line that describes the run: algorithm, game and sizes."""
        settings = self.config
        return (
            f"Monte Carlo CFR on {self.game.name}: {settings.iterations:,} iterations of {2 * settings.traversals:,} "
            f"traversals, {settings.sampler} sampling, abstraction {settings.abstraction}, seed {self.seed}"
        )

    def seconds_per_iteration(self) -> float:
        """Forecast from a few traversals with empty tables."""
        few = min(self.config.traversals, self.trial)
        trial = self._anew(replace(self.config, traversals=few, iterations=2, initial=UNIFORM))
        records = list(trial.iterations())  # the first one compiles
        trial.workers.shutdown()
        return records[1].iteration_seconds * self.config.traversals / few

    def arrays(self) -> dict[str, npt.NDArray[np.generic]]:
        """The live state; a checkpoint saves it and restores by copying into it; both are flat, of `config.precision`."""
        return {"regret": self._regret, "average": self._average}

    def _traverse(self, t: int, traverser: int) -> int:
        """Run iteration t's traversals for one player; returns the nodes touched, histories and deals."""
        deal_stream = key(self.seed, "deal", t, traverser)
        action_stream = np.uint64(key(self.seed, "action", t, traverser))
        weight = float(t) if self.config.weighting == "linear" else 1.0
        total, learning = self.config.traversals, self._learning(t)
        size = max(1, min(self.most_chunk, -(-total // self.workers.count)))
        chunks = (
            Chunk(first, min(size, total - first), deal_stream, action_stream, traverser, weight, learning)
            for first in range(0, total, size)
        )
        return sum(self.workers.map(self._run, chunks))

    def _learning(self, t: int) -> Learning:
        """The floor under strategies in iteration t, and the shape of regrets."""
        config = self.config
        return Learning(
            start=config.exploration_start,
            slope=_FLOOR_SLOPE,
            end=_FLOOR_END if config.exploration_start > 0 else 0,
            games=(t - 1) * config.traversals,
            shape=SHAPES.index(config.reward_shape) if config.reward_on == "regret" else 0,
        )


def require_supported(game: str, config: TabularConfig, threads: int) -> None:
    """Raise ConfigError for settings that Monte Carlo CFR of a game does not offer, and for less than one thread.

    `game` is named as in a configuration.
    """
    if config.algorithm != "mccfr":
        raise ConfigError(f"The algorithm of a Monte Carlo solver must be mccfr, but is '{config.algorithm}'.")
    if threads < 1:
        raise ConfigError(f"Monte Carlo CFR needs at least 1 thread, but 'threads' is {threads}.")
    solve_config_from_table({"game": game, "solve": dataclasses.asdict(config)})  # checks kinds of values, too
