"""Full-width tabular CFR on poker games: every board, every hand, every action in every iteration, no sampling.

Updates alternate: player 0's strategy is new when player 1 updates. Boards that differ by a renaming of suits are visited
once, with their multiplicity.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from deepcfr.boards.boards import Board, Boards, kept_bytes
from deepcfr.boards.last_round import LastRound
from deepcfr.boards.rounds import RoundTree
from deepcfr.boards.sweep import Scratch
from deepcfr.boards.tables import BoardTables, Int16Table
from deepcfr.config import RunConfig
from deepcfr.core.errors import GameError
from deepcfr.core.parallel import Workers
from deepcfr.game.board_index import count_classes
from deepcfr.game.poker import PokerGame
from deepcfr.policy.tables import RangePolicy
from deepcfr.solve.base import PLAYERS, FullWidthSolver
from deepcfr.solve.full_width import discounting, update

_BYTES = {"float64": 8, "float32": 4, "int16": 2}


class VectorCFR(FullWidthSolver):
    """The state of a full-width solver: iterate over `iterations()` to advance it."""

    name = "vector-cfr"
    game: PokerGame

    def __init__(self, game: PokerGame, config: RunConfig) -> None:
        if game.suits != "canonical":
            raise GameError("Full-width CFR merges boards by suit, so it needs a game that shows canonical suits.")
        super().__init__(game, config)
        self.workers = Workers(config.runtime.threads)
        self.boards = Boards(game, merge=True, keep=True)
        self._discounting = discounting(config)
        self._scratch = Scratch()
        rounds = list(zip(self.boards.rounds, self.boards.kept, strict=True))
        self._regrets = [self._table(tree, boards) for tree, boards in rounds]
        self._averages = [self._table(tree, boards) for tree, boards in rounds]
        # what regret matching reads, if that is more than the regrets
        self._matched = [self._table(tree, boards) for tree, boards in rounds] if self._discounting.predictive else []
        together = len(rounds) > 1 and config.solve.precision != "int16" and not self._discounting.predictive
        self._last = LastRound(self.boards, self.workers) if together else None
        # decisions and ends of every board, once for each canonical hand and traversing player
        self._touched = 2 * sum(
            (tree.num_nodes - len(tree.round_leaves)) * sum(map(len, boards)) for tree, boards in rounds
        )

    @staticmethod
    def memory_bytes(game: PokerGame, config: RunConfig) -> int:
        rules, tree = game.rules, game.tree
        decisions = tree.round[: tree.num_decisions]
        total = kept_bytes(rules, merge=True)
        for round_ in range(rules.num_rounds):
            groups = tuple(n for n in rules.board_cards[: round_ + 1] if n)
            hands = count_classes(rules.num_ranks, rules.num_suits, (rules.hole_cards, *groups))
            edges = int(tree.legal[: tree.num_decisions][decisions == round_].sum())
            tables = 3 if discounting(config).predictive else 2
            total += tables * _BYTES[config.solve.precision] * hands * edges
        return total

    def _table(self, tree: RoundTree, boards: list[Board]) -> BoardTables:
        if self.config.solve.precision == "int16":
            return Int16Table(tree, boards)
        return BoardTables(tree, boards, self.config.solve.precision)

    @property
    def precision(self) -> str:
        return self.config.solve.precision

    def _iterate(self) -> int:
        for player in PLAYERS:
            visit = update(
                self.boards.rounds, (self._regrets, self._averages), player, self._discounting, self.iteration + 1,
                self._scratch, self.config.seed, self._matched, last=self._last,
            )  # fmt: skip
            self.boards.visit_all(visit, self.workers)
        return self._touched

    def arrays(self) -> dict[str, npt.NDArray[np.generic]]:
        return {
            f"{name}-{round_}-{part}": array
            for name, tables in (("regret", self._regrets), ("average", self._averages), ("matched", self._matched))
            for round_, table in enumerate(tables)
            for part, array in table.arrays().items()
        }

    def average_policy(self) -> RangePolicy:
        """The average strategy, which converges to an equilibrium."""
        return RangePolicy(self.boards, self._averages, "average")

    def current_policy(self) -> RangePolicy:
        return RangePolicy(self.boards, self._matched or self._regrets, "current")
