"""Full-width tabular CFR on poker games: every board, every hand, every action in every iteration, no sampling.

The variants differ in how sums of earlier iterations shrink (`Discounting`): CFR (Zinkevich et al. 2007), CFR+
(Tammelin 2014), Linear CFR and Discounted CFR (Brown and Sandholm 2019). Updates alternate: player 0's strategy is new
when player 1 updates. Boards that differ by a renaming of suits are visited once, with their multiplicity.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import inf

import numpy as np
import numpy.typing as npt

from deepcfr.boards.boards import Board, Boards, Deal, OnBoard, Visit, kept_bytes
from deepcfr.boards.last_round import CFRStep, LastRound
from deepcfr.boards.regret_kernels import add_regrets, descend, predict_regrets
from deepcfr.boards.rounds import RoundTree
from deepcfr.boards.sweep import RoundPass, Scratch
from deepcfr.boards.tables import BoardTables, Int16Table
from deepcfr.config import RunConfig
from deepcfr.core.errors import GameError
from deepcfr.core.parallel import Workers
from deepcfr.core.rng import key
from deepcfr.core.types import Doubles, Floats
from deepcfr.game.board_index import count_classes
from deepcfr.game.poker import PokerGame
from deepcfr.policy.tables import RangePolicy
from deepcfr.solve.base import PLAYERS, Discounting, FullWidthSolver, discounting

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


def update(
    rounds: list[RoundTree],
    tables: tuple[list[BoardTables], list[BoardTables]],
    player: int,
    variant: Discounting,
    t: int,
    scratch: Scratch,
    seed: int = 0,
    matched: Sequence[BoardTables] = (),
    tremble: float = 0.0,
    last: LastRound | None = None,
    on_board: OnBoard | None = None,
) -> Visit:
    """Iteration t of CFR on a board for one player; a visit returns the player's values at the round roots, [1, X', U].

    `tables` are the regrets and the average strategies of every round, which a visit changes; a predictive variant also
    has `matched`, what regret matching reads. `seed` is that of the random rounding of 16 bits. Both players take every
    action with a probability of `tremble` at least, in what the player learns from and in the weights of its average
    strategy. With `last`, which fits tables without rounding and no predictive variant, its boards are updated together.
    """
    keep_positive, keep_negative, keep_average = variant.factors(t)
    least = 0.0 if variant.floor else -inf
    step = CFRStep(keep_positive, keep_negative, keep_average, least, tremble)

    def deal_last(board: Board, at_leaves: Floats) -> Doubles:
        assert last
        return last.update(board, at_leaves, (tables[0][-1], tables[1][-1]), player, step, on_board)

    def visit(board: Board, reach: Floats, deal: Deal) -> Floats:
        tree = rounds[board.round]
        regrets, averages = (table[board.round] for table in tables)
        regret, average = regrets.load(board), averages.load(board)
        read = matched[board.round].load(board) if variant.predictive else regret
        play = RoundPass(tree, board, reach, scratch)
        play.sigma = scratch.array(f"strategy {board.round}", regret.shape)
        descend(
            tree.actor, tree.first_edge, tree.edge_row, tree.row, player,
            read, average, keep_average, play.sigma, play.rows[player], play.rows[1 - player], tremble,
        )  # fmt: skip
        values = play.up([(player, False)], partial(deal_last, board) if last and tree is rounds[-2] else deal)
        add_regrets(
            tree.actor, tree.first_edge, tree.edge_child, player,
            keep_positive, keep_negative, least, values[0], regret,
        )  # fmt: skip
        if variant.predictive:
            predict_regrets(tree.actor, tree.first_edge, tree.edge_child, player, values[0], regret, read)
            matched[board.round].store(board, read, player)
        regrets.store(board, regret, player)
        stream = key(seed, "rounding", t, player, board.round, board.index) >> 32 if averages.rounded else None
        averages.store(board, average, player, stream)
        return values[:, tree.roots]

    return visit
