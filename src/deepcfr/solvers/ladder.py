"""Monte Carlo CFR on raise-ladder games (Lin 2024, section 10): `solvers.mccfr` with betting that is stepped, not listed.

Iterations, weights, threads without locks, floors and shapes are those of `deepcfr.solvers.mccfr`, whose settings it reads;
`deepcfr.sampling.ladder` says what a row of the tables is.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from deepcfr.abstraction.texture import Buckets
from deepcfr.config import TabularConfig
from deepcfr.errors import ConfigError
from deepcfr.games.ladder_betting import LadderGame
from deepcfr.parallel import Workers
from deepcfr.policies.ladder import LadderTable, compact, expand
from deepcfr.rng import key
from deepcfr.sampling.ladder import Run, ladder_layout, ladder_traversals
from deepcfr.sampling.mccfr import SHAPES, Learning
from deepcfr.sampling.walk_tree import poker_situations
from deepcfr.solvers.tabular import TabularRecord

PLAYERS = (0, 1)
MOST_CHUNK = 1_024  # traversals that a thread runs at a time
_TRIAL = 200  # traversals that are enough to say how long many take

Table = npt.NDArray[np.floating]


def memory_bytes(game: LadderGame, counts: tuple[int, ...], precision: str) -> int:
    """What regrets and averages take at most; pages of rows that never occur take nothing."""
    return 2 * ladder_layout(game, counts).size * np.dtype(precision).itemsize


class LadderMCCFR:
    """The state of a solver of a raise-ladder game: iterate over `iterations()` to advance it.

    As with `MCCFR` no generator has a state to save. A solver that is made for `play` has no tables until some are put in.
    Raises ConfigError for settings that it does not offer.
    """

    def __init__(
        self, game: LadderGame, config: TabularConfig, buckets: Buckets, seed: int = 0, threads: int = 1
    ) -> None:
        _require_supported(game, config, threads)
        self.game, self.config, self.buckets, self.seed = game, config, buckets, seed
        self.iteration = 0
        self.nodes_touched = 0
        self.workers = Workers(threads)
        self.layout = ladder_layout(game, buckets.counts)
        # pages of zeros take no memory until a traversal comes to them
        self._regret: Table = np.zeros(self.layout.size, config.precision)
        self._average: npt.NDArray[np.floating] | npt.NDArray[np.uint8] = np.zeros(self.layout.size, config.precision)

    def iterations(self) -> Iterator[TabularRecord]:
        """One CFR iteration each, from where the state is up to the configured number."""
        while self.iteration < self.config.iterations:
            start = time.perf_counter()
            t = self.iteration + 1
            touched = sum(self._traverse(t, player) for player in PLAYERS)
            self.iteration = t
            self.nodes_touched += touched
            yield TabularRecord(t, touched, time.perf_counter() - start)

    def seconds_per_iteration(self) -> float:
        """What an iteration will take, by a few traversals with empty tables."""
        few = min(self.config.traversals, _TRIAL)
        config = replace(self.config, traversals=few, iterations=2)
        trial = LadderMCCFR(self.game, config, self.buckets, self.seed, self.workers.count)
        records = list(trial.iterations())  # the first one compiles
        trial.workers.shutdown()
        return records[1].iteration_seconds * self.config.traversals / few

    def _traverse(self, t: int, traverser: int) -> int:
        """K traversals for one player; returns the nodes touched, histories and deals."""
        config, total = self.config, self.config.traversals
        deal_stream = key(self.seed, "deal", t, traverser)
        action_stream = np.uint64(key(self.seed, "action", t, traverser))
        weight = float(t) if config.weighting == "linear" else 1.0
        unit = float(self.game.rules.unit_chips)
        shape = SHAPES.index(config.reward_shape) if config.reward_on == "payoff" else 0
        chunk = min(MOST_CHUNK, -(-total // self.workers.count))
        learning = self._learning(t)

        def run_chunk(first: int) -> int:
            situations = poker_situations(self.buckets, min(chunk, total - first), deal_stream, first)
            run = Run(traverser, weight, action_stream, first, unit, shape)
            ladder, tables = self.game.ladder, (self._regret, self._average)
            return int(ladder_traversals(ladder, self.layout, *tables, situations, run, learning))

        return sum(self.workers.map(run_chunk, range(0, total, chunk)))

    def _learning(self, t: int) -> Learning:
        """The floor under strategies in iteration t, and the shape of regrets."""
        config = self.config
        return Learning(
            start=config.exploration_start,
            slope=config.exploration_slope,
            end=config.exploration_end if config.exploration_start > 0 else 0,
            games=(t - 1) * config.traversals,
            shape=SHAPES.index(config.reward_shape) if config.reward_on == "regret" else 0,
        )

    def arrays(self) -> dict[str, npt.NDArray[np.generic]]:
        """The live state, that a checkpoint saves and restores by copying into; both are flat, of `config.precision`."""
        return {"regret": self._regret, "average": self._average}

    def compact(self) -> npt.NDArray[np.uint8]:
        """The average strategy in the compact form of `policies.ladder`."""
        return compact(self.average_policy())

    def put_compact(self, data: npt.NDArray[np.uint8]) -> None:
        """Play what `compact` gave; training cannot go on from it. Raises CheckpointError if it is damaged."""
        self._average = expand(data, self.layout.size)

    def average_policy(self) -> LadderTable:
        """The average strategy; it has no copy of the table and follows the solver."""
        return LadderTable(self.game, self.buckets, self._average, "average")

    def current_policy(self) -> LadderTable:
        """The newest strategy, by regret matching."""
        return LadderTable(self.game, self.buckets, self._regret, "current")


def _require_supported(game: LadderGame, config: TabularConfig, threads: int) -> None:
    problems = []
    if threads < 1:
        problems.append(f"Monte Carlo CFR needs at least 1 thread, and {threads} were asked for.")
    if config.algorithm != "mccfr":
        problems.append(f"{game.name} is solved with mccfr, and '{config.algorithm}' was asked for.")
    if config.sampler != "external":
        problems.append(f"{game.name} is solved with external sampling, and '{config.sampler}' was asked for.")
    if config.precision not in ("float32", "float64"):
        problems.append(f"{game.name} is solved in float32 or float64, and '{config.precision}' was asked for.")
    if problems:
        raise ConfigError(problems)
