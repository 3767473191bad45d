"""Exact best-response and profile values of a poker game: rounds by recursion, boards by enumeration, hands all at once.

The reach of both players goes down the betting tree, chance deals every board (one per suit class, with its multiplicity,
when the strategy is suit-symmetric), and counterfactual values come back up. Nothing is sampled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import comb

import numpy as np
import numpy.typing as npt

from deepcfr.games.isomorphism import extend_board, pack_cards
from deepcfr.games.poker import PokerGame
from deepcfr.parallel import Workers
from deepcfr.ranges.boards import HandSpace, round_trees
from deepcfr.ranges.kernels import leaf_values, pull_values, push_reach

HandStrategy = Callable[[npt.NDArray[np.int64], npt.NDArray[np.uint8]], npt.NDArray[np.floating]]
"""(nodes [n], cards uint8 [U, C] in the game's encoding) to action probabilities, [n, U, A]."""


@dataclass(frozen=True)
class SweepResult:
    """Values in the game's unit, for a game played from the deal."""

    best_response: tuple[float, float]  # what each player gains by a best response to the other's strategy
    profile: tuple[float, float]  # what each player gains when both keep to the strategy
    boards: int  # full boards enumerated
    merged: bool  # whether suit-isomorphic boards were merged


@dataclass(frozen=True)
class _Values:
    best: npt.NDArray[np.float64]  # [P, E, H] at the entries of a round
    profile: npt.NDArray[np.float64]
    boards: int  # full boards behind them


class Sweep:
    """A full-width pass over a poker game, for one strategy that both players follow.

    `merge` enumerates one board of each suit class, which is right only for suit-symmetric strategies. Boards go to
    `workers`.
    """

    def __init__(
        self,
        game: PokerGame,
        strategy: HandStrategy,
        workers: Workers,
        *,
        merge: bool,
        on_board: Callable[[int, int], None] | None = None,
    ) -> None:
        self.game, self.strategy, self.workers, self.merge = game, strategy, workers, merge
        self.hands = HandSpace(game)
        self.rounds = round_trees(game)
        self.on_board = on_board

    def run(self) -> SweepResult:
        """Enumerate everything; see `SweepResult`."""
        reach = np.ones((2, 1, len(self.hands)))
        rules = self.game.rules
        values = self._deal(0, (), (), reach) if rules.board_cards[0] else self._play_round(0, (), (), reach)
        deals = comb(rules.num_cards, rules.hole_cards) * comb(rules.num_cards - rules.hole_cards, rules.hole_cards)
        best = values.best[:, 0].sum(axis=1) / deals
        profile = values.profile[:, 0].sum(axis=1) / deals
        return SweepResult(
            (float(best[0]), float(best[1])), (float(profile[0]), float(profile[1])), values.boards, self.merge
        )

    def _play_round(
        self, round_: int, board: tuple[int, ...], groups: tuple[int, ...], reach: npt.NDArray[np.float64]
    ) -> _Values:
        """Values at the entries of a round on `board`, from the reach [P, E, H] there; dead hands have value 0."""
        tree = self.rounds[round_]
        live = self.hands.on_board(np.array(board, np.uint8))
        cards, column = self._encode(live.holes, board)
        strategy = self.strategy(tree.nodes, cards)
        slots = np.zeros((2, tree.num_slots, len(live.index)))
        slots[:, tree.entries] = reach[:, :, live.index]
        push_reach(tree.actor, tree.child, strategy, column, slots)
        best = np.zeros_like(slots)
        leaf_values(
            tree.leaf_kind, tree.leaf_payoff, len(tree.nodes), slots, live.holes, live.order, live.strength,
            self.hands.num_cards, best,
        )  # fmt: skip
        profile = best.copy()
        boards = 1
        if len(tree.exits):
            later = self._deal(round_ + 1, board, groups, self._spread(slots[:, tree.exits], live.index))
            best[:, tree.exits] = later.best[..., live.index]
            profile[:, tree.exits] = later.profile[..., live.index]
            boards = later.boards
        pull_values(tree.actor, tree.child, strategy, column, True, best)
        pull_values(tree.actor, tree.child, strategy, column, False, profile)
        values = (self._spread(v[:, tree.entries], live.index) for v in (best, profile))
        return _Values(next(values), next(values), boards)

    def _spread(self, values: npt.NDArray[np.float64], index: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        spread = np.zeros((*values.shape[:-1], len(self.hands)))
        spread[..., index] = values
        return spread

    def _encode(
        self, holes: npt.NDArray[np.uint8], board: tuple[int, ...]
    ) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
        """The distinct infosets' cards [U, C] as the game shows them, and the column of every hand [H]."""
        rows = self.game.views_of(holes, board)
        if self.game.suits == "raw":
            return rows, np.arange(len(rows))
        _, first, column = np.unique(pack_cards(rows), return_index=True, return_inverse=True)
        return rows[first], column

    def _deal(
        self, round_: int, board: tuple[int, ...], groups: tuple[int, ...], reach: npt.NDArray[np.float64]
    ) -> _Values:
        """The mean over all deals of the next round's cards of the values at its entries, [P, E, H] in all hands."""
        rules = self.game.rules
        new_cards = rules.board_cards[round_]
        classes = extend_board(board, groups, new_cards, rules.num_ranks, rules.num_suits, merge=self.merge)
        grown = (*groups, new_cards) if new_cards else groups
        best = np.zeros((2, reach.shape[1], len(self.hands)))
        profile = np.zeros_like(best)
        boards = 0
        jobs = [(round_, (*board, *(int(c) for c in cards)), grown, reach) for cards in classes.cards]
        for done, (values, copies) in enumerate(zip(self._map(jobs), classes.multiplicity, strict=True)):
            best += copies * values.best
            profile += copies * values.profile
            boards += values.boards
            if self.on_board and round_ == self._first_deal():
                self.on_board(done + 1, len(jobs))
        chance = 1.0 / comb(rules.num_cards - 2 * rules.hole_cards - len(board), new_cards)
        if self.merge:
            best = self.hands.symmetrise(best, board, groups)
            profile = self.hands.symmetrise(profile, board, groups)
        return _Values(chance * best, chance * profile, boards)

    def _map(
        self, jobs: list[tuple[int, tuple[int, ...], tuple[int, ...], npt.NDArray[np.float64]]]
    ) -> Iterator[_Values]:
        """Play the jobs in order; the first round with several boards spreads them over threads."""
        if jobs[0][0] != self._first_deal():
            return (self._play_round(*job) for job in jobs)
        return self.workers.map(lambda job: self._play_round(*job), jobs)

    def _first_deal(self) -> int:
        return next((r for r, cards in enumerate(self.game.rules.board_cards) if cards > 0), 0)
