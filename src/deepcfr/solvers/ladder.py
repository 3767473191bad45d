"""Monte Carlo CFR on raise-ladder games (Lin 2024, section 10): `solvers.mccfr` with betting that is stepped, not listed.

Iterations, weights, threads without locks, floors and shapes are those of `deepcfr.solvers.mccfr`, whose settings it reads;
`deepcfr.sampling.ladder` says what a row of the tables is.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
import numpy.typing as npt

from deepcfr.abstraction.texture import Buckets
from deepcfr.config import TabularConfig
from deepcfr.errors import ConfigError
from deepcfr.games.ladder_betting import LadderGame
from deepcfr.policies.initial import RangeBuckets, ladder_table, range_buckets, start_ladder
from deepcfr.policies.ladder import LadderPolicy, LadderTable, LadderUniform, compact, expand
from deepcfr.sampling.ladder import Run, ladder_layout, ladder_traversals
from deepcfr.sampling.mccfr import SHAPES
from deepcfr.sampling.walk_tree import poker_situations
from deepcfr.solvers.sampled import UNIFORM, Chunk, SampledSolver, Table, setting_problems


def memory_bytes(game: LadderGame, counts: tuple[int, ...], precision: str) -> int:
    """What regrets and averages take at most; pages of rows that never occur take nothing."""
    return 2 * ladder_layout(game, counts).size * np.dtype(precision).itemsize


class LadderMCCFR(SampledSolver):
    """A Monte Carlo solver of a raise-ladder game. One that is made for play has empty tables until some are put in.

    Raises ConfigError for settings that it does not offer.
    """

    most_chunk = 1_024
    trial = 200

    def __init__(
        self, game: LadderGame, config: TabularConfig, buckets: Buckets, seed: int = 0, threads: int = 1
    ) -> None:
        _require_supported(game, config, threads)
        self.game, self.buckets, self.layout = game, buckets, ladder_layout(game, buckets.counts)
        super().__init__(config, seed, threads, self.layout.size)
        self._played: Table | npt.NDArray[np.uint8] = self._average

    def _anew(self, config: TabularConfig) -> LadderMCCFR:
        return LadderMCCFR(self.game, config, self.buckets, self.seed, self.workers.count)

    def _run(self, chunk: Chunk) -> int:
        situations = poker_situations(self.buckets, chunk.size, chunk.deal_stream, chunk.first)
        shape = SHAPES.index(self.config.reward_shape) if self.config.reward_on == "payoff" else 0
        unit = float(self.game.rules.unit_chips)
        run = Run(chunk.traverser, chunk.weight, chunk.action_stream, chunk.first, unit, shape)
        tables = (self._regret, self._average)
        return int(ladder_traversals(self.game.ladder, self.layout, *tables, situations, run, chunk.learning))

    def _begin(self) -> None:
        for table in (self._regret, self._average):
            start_ladder(table, self.game, self._ranges, self.config.initial_weight)

    @cached_property
    def _ranges(self) -> RangeBuckets:
        """What a player tells apart in its initial strategy."""
        return range_buckets(self.buckets)

    def initial_policy(self) -> LadderPolicy:
        """What training starts from."""
        if self.config.initial == UNIFORM:
            return LadderUniform(self.game)
        return LadderTable(self.game, self._ranges, ladder_table(self.game), "initial")

    def compact(self) -> npt.NDArray[np.uint8]:
        """The average strategy in the compact form of `policies.ladder`."""
        return compact(self.average_policy())

    def put_compact(self, data: npt.NDArray[np.uint8]) -> None:
        """Play what `compact` gave; training cannot go on from it. Raises CheckpointError if it is damaged."""
        self._played = expand(data, self.layout.size)

    def average_policy(self) -> LadderTable:
        """The average strategy; it has no copy of the table and follows the solver."""
        return self._policy(self._played, "average")

    def current_policy(self) -> LadderTable:
        """The newest strategy, by regret matching."""
        return self._policy(self._regret, "current")

    def _policy(self, table: Table | npt.NDArray[np.uint8], kind: str) -> LadderTable:
        policy = LadderTable(self.game, self.buckets, table, kind)
        policy.initial = None if self.config.initial == UNIFORM else self.initial_policy
        return policy


def _require_supported(game: LadderGame, config: TabularConfig, threads: int) -> None:
    problems = list(setting_problems(config, threads))
    if config.sampler != "external":
        problems.append(f"{game.name} is solved with external sampling, and '{config.sampler}' was asked for.")
    if problems:
        raise ConfigError(problems)
