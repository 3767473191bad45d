"""CFR-D: the first betting round is stored, and the second is solved again when play gets there.

An iteration updates the first round by counterfactual values at its leaves. They are means over all boards of the
second round, of which only a sample is played: each of its boards keeps regrets, and makes one iteration of CFR too.
Values of the others are predicted: a regression on the sample says what a hand is worth by its strength on a board and
by what it wins from the range that arrives if nobody bets. The mean prediction is known exactly, so only what the
regression does not explain is estimated from the sample.

What CFR learns on a board depends on the first round through the ranges that arrive in every iteration, and those are
stored. So the policy solves any board by the same iterations with the same ranges, and plays what full-width CFR would
have stored there. Nothing in it assumes the ranges of the end, so it is safe without a gadget: its exploitability is at
most the regrets of both rounds, and the error of the sample is in those of the first.

Source: Burch, Johanson and Bowling (2014, "Solving imperfect information games using decomposition"), whose CFR-D
solves every subgame in every iteration and plays it by a gadget.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from deepcfr.boards.boards import Board, Boards, Deal, count_boards, kept_bytes
from deepcfr.boards.rounds import RoundTree
from deepcfr.boards.sweep import RoundPass, Scratch, showdowns
from deepcfr.boards.tables import BoardTables
from deepcfr.config import RunConfig, SearchConfig
from deepcfr.config.records import CFRConfig
from deepcfr.core.errors import GameError
from deepcfr.core.parallel import Workers
from deepcfr.core.rng import key
from deepcfr.core.types import Doubles, Floats, Ints
from deepcfr.game.poker import PokerGame
from deepcfr.policy.base import UniformPolicy
from deepcfr.policy.network import FirstRound, WithFirstRound
from deepcfr.search.policy import ResolvingPolicy
from deepcfr.search.subgame import SubgameSolver, against, subgame
from deepcfr.solve.base import PLAYERS, Array, SavedState, TabularSolver
from deepcfr.solve.first_round import FirstRoundTable
from deepcfr.solve.full_width import DISCOUNTED, update
from deepcfr.solve.vector_cfr import VectorCFR

_POINTS = np.linspace(-1, 1, 6)[:, None]  # strengths between which values are interpolated
_FEATURES = 2 * len(_POINTS)
_RIDGE = 1e-9
_DISCOUNTED = CFRConfig(weighting="discounted", fallback="uniform")


class CFRD(TabularSolver):
    """The state of a run on a game of two betting rounds: iterate over `iterations()` to advance it.

    Raises GameError for other games.
    """

    name = "cfr-d"
    game: PokerGame

    def __init__(self, game: PokerGame, config: RunConfig) -> None:
        if game.suits != "canonical":
            raise GameError("CFR-D merges boards by suit, so it needs a game that shows canonical suits.")
        if game.rules.num_rounds != 2:
            raise GameError(
                f"CFR-D is for games of two betting rounds, and {game.name} has {game.rules.num_rounds}: use dcfr or mccfr."
            )
        self.game, self.config = game, config
        self.workers = Workers(config.runtime.threads)
        self._first = FirstRoundTable(game, _DISCOUNTED)  # which refuses games with public cards from the start
        self._scratch = Scratch()
        self.ranges = self._reach()[None].astype(np.float32)  # [t + 1, 2, X, U], at the ends of the first round

    @staticmethod
    def memory_bytes(game: PokerGame, config: RunConfig) -> int:
        """Bytes of all boards, and of the regrets on those that are played, computed before they are allocated."""
        boards = count_boards(game.rules, merge=True)[-1]
        tables = VectorCFR.memory_bytes(game, replace(config, solver="dcfr")) - kept_bytes(game.rules, merge=True)
        return kept_bytes(game.rules, merge=True) + tables * min(config.solve.boards, boards) // (2 * boards)

    def describe(self) -> str:
        count = min(self.config.solve.boards, count_boards(self.game.rules, merge=True)[-1])
        return f"cfr-d on {self.game.name}: {self.config.iterations:,} iterations of {count:,} boards"

    def _iterate(self) -> int:
        for player in PLAYERS:
            self._update(player, self.iteration + 1)
        self.ranges = np.concatenate([self.ranges, self._reach()[None]], dtype=np.float32, casting="same_kind")
        return 2 * self._tree.num_nodes * sum(map(len, self._played))

    def _update(self, player: int, t: int) -> None:
        play = self._pass()
        values = play.up([(player, False)], lambda reach: self._values_at_leaves(player, t, np.asarray(reach))[None])
        self._first.add_strategy(player, t)
        self._first.add_values(values[0], player, t)

    def _values_at_leaves(self, player: int, t: int, reach: Floats) -> Doubles:
        """An iteration of a player on all boards of the sample: estimated values [X, U], for `reach` [2, X, U]."""
        tables = [self._regrets] * 2, [self._unkept] * 2  # of the second round only
        learn = update(self._boards.rounds, tables, player, DISCOUNTED, t, self._scratch)
        products = np.empty((len(self._played), reach.shape[1], _FEATURES, _FEATURES + 1))

        def visit(board: Board, reach: Floats, deal: Deal) -> Floats:
            explained = self._features(board, np.asarray(reach[1 - player], np.float64))
            found = np.concatenate([explained, learn(board, reach, deal)])
            products[board.index] = np.einsum("fxu,gxu->xfg", explained * board.weight, found)
            return found

        sampled = self._boards.deal(visit, self._first.board, reach, self.workers, choose=lambda _: self._played)
        moments = products.sum(0)  # of one leaf [F, F + 1]: normal equations for values by features
        moments[..., :-1] += np.eye(_FEATURES) * (_RIDGE * moments[..., :-1].max((1, 2), initial=_RIDGE, keepdims=True))
        weights = np.linalg.solve(moments[..., :-1], moments[..., -1:])[..., 0]
        known = np.einsum("fvu,xv->fxu", self._means, reach[1 - player])
        return sampled[-1] + np.einsum("xf,fxu->xu", weights, known - sampled[:-1])

    def _features(self, board: Board, reach: Doubles) -> Doubles:
        """The features of each hand against a range `reach` [X, U], which are known on all boards: [F, X, U].

        The reach that it meets, and what it wins less what it loses to it at a showdown, by its strength on the board.
        """
        everyone = np.ones((1, len(board)))
        strength = showdowns(board, everyone, self._scratch) / np.maximum(against(board, everyone), 1)  # from -1 to 1
        near = np.clip(1 - np.abs(strength - _POINTS) / (_POINTS[1] - _POINTS[0]), 0, None)[:, None]
        return np.concatenate([near * against(board, reach), near * showdowns(board, reach, self._scratch)])

    def _pass(self) -> RoundPass:
        """The first round, with both players' reach by the current strategy."""
        first = self._first
        play = RoundPass(first.tree, first.board, np.ones((2, 1, len(first.board))), self._scratch)
        play.down(first.strategy().probabilities)
        return play

    def _reach(self) -> Floats:
        """Both players' reach at the ends of the first round by the current strategy, [2, X, U]."""
        return self._pass().reach_at_leaves()

    # what training needs and play does not

    @cached_property
    def _boards(self) -> Boards:
        return Boards(self.game, merge=True, keep=True)

    @cached_property
    def _tree(self) -> RoundTree:
        return self._boards.rounds[1]

    @cached_property
    def _means(self) -> Doubles:
        """The features of each hand against each hand with a reach of 1, [F, U', U]: means over all boards."""

        def visit(board: Board, reach: Floats, deal: Deal) -> Floats:  # noqa: ARG001
            return self._features(board, np.asarray(reach[0], np.float64))

        return self._boards.deal(visit, self._first.board, np.eye(len(self._first.board))[None], self.workers)

    @cached_property
    def _played(self) -> list[Board]:
        """The sample: distinct boards, whose weights make sums over them unbiased."""
        boards = self._boards.kept[1]
        chance = inclusion(np.array([board.copies for board in boards], np.float64), self.config.solve.boards)
        start = np.random.default_rng(key(self.config.seed, "boards")).random()
        place = np.floor(start + np.cumsum(np.where(chance < 1, chance, 0)))  # systematic sampling of the others
        chosen = np.flatnonzero((chance >= 1) | (np.diff(place, prepend=0.0) > 0))
        return [replace(boards[i], index=n, weight=boards[i].weight / chance[i]) for n, i in enumerate(chosen)]

    @cached_property
    def _regrets(self) -> BoardTables:
        return BoardTables(self._tree, self._played, self.config.solve.precision)

    @cached_property
    def _unkept(self) -> BoardTables:
        """Averages, which `update` adds to and nobody reads."""
        return _OneBoard(self._tree, [max(self._played, key=len)], self.config.solve.precision)

    # the contract

    def average_policy(self) -> ReplayingPolicy:
        return ReplayingPolicy(self.game, self._first.average_strategy(), self.ranges)

    def current_policy(self) -> ReplayingPolicy:
        return ReplayingPolicy(self.game, self._first.strategy(), self.ranges, current=True)

    def arrays(self) -> dict[str, Array]:
        return self._live(memories=True)

    def _live(self, memories: bool) -> dict[str, Array]:
        played: dict[str, Array] = {"average": self._first.average, "ranges": self.ranges}
        # the current strategy of the first round is in its regrets, which are few
        return played | ({"regret": self._first.regret, "regret-boards": self._regrets.values} if memories else {})

    def _restore_facts(self, saved: SavedState) -> None:
        super()._restore_facts(saved)
        self.ranges = np.zeros((self.iteration + 1, *self.ranges.shape[1:]), np.float32)


class _OneBoard(BoardTables):
    """Space for the largest board, which all boards share."""

    def load(self, board: Board) -> npt.NDArray[np.floating]:
        return self.values[: self._tree.num_edges * len(board)].reshape(self._tree.num_edges, -1)


class ReplayingPolicy(ResolvingPolicy):
    """A table in the first round; in the second what CFR plays after the `ranges` [T + 1, 2, X, U] that arrived.

    That is the average strategy, or with `current` the last one.
    """

    def __init__(self, game: PokerGame, first_round: FirstRound, ranges: Floats, *, current: bool = False) -> None:
        super().__init__(WithFirstRound(UniformPolicy(game), first_round), SearchConfig("unsafe", (1,)))
        self._ranges, self._current = ranges, current
        self.kind = f"{'current' if current else 'average'} of cfr-d"

    def _in_subgame(self, board: Board, roots: Ints, player: int) -> Floats:  # noqa: ARG002
        inside = subgame(self.game, self._boards.rounds, board, roots)
        solver = SubgameSolver(inside, np.ones((2, len(roots), len(board))))
        solver.follow(self._ranges[:, :, roots][..., board.up])
        return solver.policy(current=self._current).on_board(inside.rounds[1], inside.root)


def inclusion(sizes: Doubles, count: int) -> Doubles:
    """The chances [n] of n things to be in a sample of `count`: in proportion to `sizes` [n], but at most 1."""
    count = min(count, len(sizes))
    chance: Doubles = np.minimum(count * sizes / sizes.sum(), 1.0)
    while chance.sum() < count - 1e-6:
        left = chance < 1
        chance[left] = np.minimum((count - np.count_nonzero(~left)) * sizes[left] / sizes[left].sum(), 1.0)
    return chance
