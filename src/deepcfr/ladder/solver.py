"""Monte Carlo CFR on raise-ladder games (Lin 2024, section 10), which step the betting instead of listing its tree.

Settings, iterations, weights, lock-free threads, floors and shapes are those of `deepcfr.solvers.mccfr`.
`deepcfr.ladder.traversals` defines the rows of the tables.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
import numpy.typing as npt

from deepcfr.abstraction.buckets import Abstraction, lossless
from deepcfr.abstraction.texture import TEXTURE, Buckets, TextureBuckets
from deepcfr.config import SolveConfig, TabularConfig
from deepcfr.errors import ConfigError, GameError
from deepcfr.games.ladder_game import LadderGame
from deepcfr.games.rules import PokerRules
from deepcfr.ladder.policies import LadderTable, compact, expand
from deepcfr.ladder.traversals import Run, ladder_layout, ladder_traversals
from deepcfr.memory.reservoir import Array, SavedState
from deepcfr.policies.base import Policy, UniformPolicy
from deepcfr.policies.initial import RANGES, RangeBuckets, range_buckets, shares, start_round
from deepcfr.sampling.mccfr import SHAPES
from deepcfr.sampling.traversal_tree import poker_situations
from deepcfr.solvers.sampled import UNIFORM, Chunk, SampledSolver, Table, require_supported
from deepcfr.types import Doubles, require_like

_COMPACT = "average-compact"


def memory_bytes(game: LadderGame, counts: tuple[int, ...], precision: str) -> int:
    """Upper bound on the bytes of regrets and averages; pages of rows that never occur take no memory."""
    return 2 * ladder_layout(game, counts).size * np.dtype(precision).itemsize


class LadderMCCFR(SampledSolver):
    """Monte Carlo solver of a raise-ladder game. Raises ConfigError for unsupported settings."""

    game: LadderGame
    name = "ladder-mccfr"
    most_chunk = 1_024
    trial = 200

    def __init__(
        self, game: LadderGame, config: TabularConfig, buckets: Buckets, seed: int = 0, threads: int = 1
    ) -> None:
        require_supported(game.name, config, threads)
        if config.sampler != "external":
            raise ConfigError(
                f"{game.name} is solved with external sampling only, but the sampler is '{config.sampler}'."
            )
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
            start_ladder(table, self.game, self._ranges)

    @cached_property
    def _ranges(self) -> RangeBuckets:
        """Buckets of the initial strategy."""
        return range_buckets(self.buckets)

    def initial_policy(self) -> Policy:
        """The strategy before training."""
        if self.config.initial == UNIFORM:
            return UniformPolicy(self.game)
        return LadderTable(self.game, self._ranges, ladder_table(self.game), "initial")

    def _saved_arrays(self, memories: bool) -> dict[str, Array]:
        """Without `memories` only the average strategy, in the compact form of `ladder.policies`."""
        return super()._saved_arrays(True) if memories else {_COMPACT: compact(self.average_policy())}

    def restore(self, saved: SavedState, memories: bool) -> None:
        """Restore a saved state; training cannot resume from the compact form.

        Raises CheckpointError if the compact form is damaged.
        """
        if saved.facts["memories"]:
            super().restore(saved, memories)
            return
        self.iteration, self.nodes_touched = int(saved.facts["iteration"]), int(saved.facts["nodes_touched"])
        found = saved.array(_COMPACT)
        require_like(_COMPACT, found, np.empty(found.size, np.uint8))
        self._played = expand(np.array(found), self.layout.size)

    def memory_bytes(self, memories: bool) -> int:
        """Upper bound on the bytes of a saved state: an entry of the compact form takes at most one byte."""
        return super().memory_bytes(True) if memories else self.layout.size

    def average_policy(self) -> LadderTable:
        """The average strategy; it shares the solver's table and changes with it."""
        policy = self._policy(self._played, "average")
        policy.threshold = self.config.threshold
        return policy

    def current_policy(self) -> LadderTable:
        """The current strategy, by regret matching."""
        return self._policy(self._regret, "current")

    def _policy(self, table: Table | npt.NDArray[np.uint8], kind: str) -> LadderTable:
        policy = LadderTable(self.game, self.buckets, table, kind)
        policy.initial = None if self.config.initial == UNIFORM else self.initial_policy
        return policy


def build_ladder_solver(game: LadderGame, config: SolveConfig, abstraction: Abstraction | None = None) -> LadderMCCFR:
    """Build a solver for a raise-ladder game; `abstraction` is the one that the settings name, if any.

    Raises ConfigError for unsupported settings, and GameError for buckets that do not fit the game.
    """
    buckets = abstraction or ladder_buckets(game.source.deck, config.solve.abstraction)
    return LadderMCCFR(game, config.solve, buckets, config.seed, config.runtime.threads)


def ladder_buckets(deck: PokerRules, abstraction: str) -> Buckets:
    """Build the built-in buckets of a raise-ladder game: texture or lossless.

    Raises ConfigError for another abstraction, and for a game with too many hands to be lossless.
    """
    if abstraction == TEXTURE:
        return TextureBuckets(deck)
    if abstraction == "lossless":
        try:
            return lossless(deck)
        except GameError as error:
            reason = " ".join(error.problems).removesuffix(": ask for fewer buckets instead.")
            raise ConfigError(f"{reason}: use --abstraction {TEXTURE} or a folder.") from error
    raise ConfigError(f"The abstraction '{abstraction}' of {deck.name} is in a folder, but was not loaded from it.")


def ladder_table(game: LadderGame) -> Doubles:
    """The initial strategy of a raise-ladder game: flat, in the `ladder_layout` with RANGES buckets in each round.

    A row has all rungs above the chosen ones; play ignores rungs that the stacks forbid.
    """
    ladder = game.ladder
    layout = ladder_layout(game, (RANGES,) * game.rules.num_rounds)
    table = np.zeros(layout.size)
    most = ladder.rungs.shape[1]
    for round_, block in enumerate(layout.block.tolist()):
        pattern = np.zeros((RANGES, block))
        for code in np.flatnonzero(layout.offset[round_] >= 0).tolist():
            opened, chosen = code >> most, code & ((1 << most) - 1)
            owes_blind = round_ == 0 and not opened and ladder.blinds[0] != ladder.blinds[1]
            row = shares(bool(chosen) or owes_blind, int(ladder.length[round_]) - chosen.bit_length())
            at = layout.offset[round_, code]
            pattern[:, at : at + row.shape[1]] = row
        copies = (round_ + 1) ** 2 * int(layout.pots[round_])
        start = int(layout.start[round_])
        part = table[start : start + RANGES * copies * block].reshape(RANGES, copies, block)
        part[:] = pattern[:, None]
    return table


def start_ladder(table: Table, game: LadderGame, ranges: RangeBuckets) -> None:
    """Fill a solver's flat table, in the layout of the finer buckets, with the initial strategy."""
    coarse = ladder_table(game)
    fine, own = ladder_layout(game, ranges.finer.counts), ladder_layout(game, ranges.counts)
    for round_, range_of in enumerate(ranges.ranges):
        width = (round_ + 1) ** 2 * int(fine.pots[round_] * fine.block[round_])
        start_round(table, coarse, (int(fine.start[round_]), int(own.start[round_])), width, range_of)
