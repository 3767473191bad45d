"""Exact costs of a person's decisions against one agent, in games that are small enough to enumerate.

The value of an action is the largest mean gain that the person can reach after it. The mean is over the agent's range
at that point and all future public cards. From then on the person plays a best response, which knows the agent's
strategy but not its cards. The cost of a decision is the best action's value minus the chosen action's value, in the
game's unit.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from functools import cached_property, partial
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from deepcfr.evaluation.limits import refusal
from deepcfr.games.poker import PokerGame
from deepcfr.games.public_state import ListedState
from deepcfr.parallel import Workers
from deepcfr.play.hand import Cards, Floats, Hand, free_holes
from deepcfr.policies.base import Policy, boards_for
from deepcfr.ranges.boards import Board, Boards, Deal, OnBoard, SampledBoards, count_boards
from deepcfr.ranges.sweep import BoardStrategy, RoundPass, Scratch

KEPT_BOARDS = 8  # most recent boards to cache, for further decisions of the same hand
FEW_BOARDS = 200  # a game with at most this many boards is swept while the person waits
RESPONSES = ((0, True), (1, True))  # (player, best response?) for each value that a pass computes


class Responder:
    """Compute best responses of each player to a policy, from any board onwards."""

    def __init__(self, boards: Boards, strategy: BoardStrategy) -> None:
        self.boards, self._strategy = boards, strategy
        self._scratch = Scratch()

    def down(self, board: Board, reach: npt.NDArray[np.floating]) -> RoundPass:
        """Carry both players' `reach` [P, X', U] forward from the round's entries. The next call overwrites the result."""
        play = RoundPass(self.boards.rounds[board.round], board, reach, self._scratch)
        play.down(self._strategy(play.tree, board))
        return play

    def values(
        self, board: Board, reach: Floats, workers: Workers | None = None, on_board: OnBoard | None = None
    ) -> Floats:
        """Counterfactual best-response values of both players at every slot of the board's round, [P, S, U].

        `reach` [P, X', U] is the reach under the policy at the round's entries. A player's values are weighted by the
        opponent's reach and summed over hands that share no card. `workers` process the next round's boards in
        parallel.
        """
        deal = partial(self.boards.deal, self._visit, board, workers=workers, on_board=on_board)
        return self.down(board, reach).up(RESPONSES, deal).copy()

    def _visit(self, board: Board, reach: npt.NDArray[np.floating], deal: Deal) -> Floats:
        play = self.down(board, reach)
        return play.up(RESPONSES, deal)[:, play.tree.entries]


class Costs:
    """Values of actions against one policy of a poker game; thread-safe.

    Values of the last round are computed for the board that was dealt. Values of the first round need every possible
    board, so `prepare` computes them once. Rounds between the first and the last have no values.
    """

    def __init__(self, game: PokerGame, policy: Policy) -> None:
        self.game, self.policy = game, policy
        self.reason = refusal(game.rules)  # why the game has no exact costs, as a sentence
        self.progress = (0, 0)  # boards done and boards in all, while the first round is computed
        self._first: tuple[Board, Floats] | None = None
        self._thread: threading.Thread | None = None
        self._once, self._one_board = threading.Lock(), threading.Lock()  # two: `prepare` blocks no player
        self._kept: OrderedDict[Cards, tuple[Board, Floats]] = OrderedDict()  # values of the last round by public cards

    @property
    def quick(self) -> bool:
        """Whether `prepare` takes little time."""
        merge = self.game.suits == "canonical"
        return self.reason is None and count_boards(self.game.rules, merge=merge)[-1] <= FEW_BOARDS

    @property
    def ready(self) -> bool:
        """Whether the first round's values have been computed."""
        return self._first is not None

    def prepare(self) -> None:
        """Compute the first round's values if they have not been computed."""
        with self._once:
            if self._first is None and self.has_round(0):
                boards = boards_for(self.policy)
                (board,) = boards.children(boards.root)
                responder, reach = Responder(boards, self.policy.on_board), np.ones((2, 1, len(board)))
                self._first = board, responder.values(board, reach, Workers(1), self._tell)

    def prepare_soon(self) -> None:
        """Call `prepare` now if it is quick, otherwise in a background thread."""
        if self.quick:
            self.prepare()
        elif self._thread is None:
            self._thread = threading.Thread(target=self.prepare, daemon=True)
            self._thread.start()

    def _tell(self, done: int, total: int) -> None:
        self.progress = done, total

    def has_round(self, round_: int) -> bool:
        """Whether decisions of a round have values, now or once `prepare` is done."""
        rules = self.game.rules
        first = round_ == 0 and not rules.board_cards[0]
        return self.reason is None and (first or round_ == rules.num_rounds - 1)

    def at(self, hand: Hand, step: int) -> dict[int, float] | None:
        """The value of every legal action at a decision of the person, in units; None if not (yet) known.

        `step` is the decision's position among the hand's actions.
        """
        tree = self.game.tree
        assert isinstance(hand.state, ListedState)
        node, _ = tree.path(hand.state.node)[step]
        round_ = int(tree.round[node])
        if not self.has_round(round_):
            return None
        if round_ == self.game.rules.num_rounds - 1:
            board, values = self._on_board(hand, round_)
        elif self._first is not None:
            board, values = self._first
        else:
            return None
        return self._action_values(hand, step, node, board, values)

    @cached_property
    def _dealt(self) -> SampledBoards:
        return SampledBoards(self.game)

    def _on_board(self, hand: Hand, round_: int) -> tuple[Board, Floats]:
        """The last round's board of a hand and the values at its slots. Both depend on the public cards only."""
        cards = hand.board_at(round_)
        with self._one_board:
            if cards not in self._kept:
                self._kept[cards] = self._values_on(cards)
                if len(self._kept) > KEPT_BOARDS:
                    self._kept.popitem(last=False)
            return self._kept[cards]

    def _values_on(self, cards: Cards) -> tuple[Board, Floats]:
        # tables are stored by canonical board, whereas single infosets can be queried on any board
        strategy = partial(Policy.on_board, self.policy) if self.policy.boards else self.policy.on_board
        responder = Responder(self._dealt, strategy)
        boards = self._dealt.runout(cards)
        reach = np.ones((2, 1, len(boards[0])))
        for board, after in pairwise(boards):
            reach = np.ascontiguousarray(responder.down(board, reach).reach_at_exits()[:, :, after.up])
        return boards[-1], responder.values(boards[-1], reach)

    def _action_values(self, hand: Hand, step: int, node: int, board: Board, values: Floats) -> dict[int, float]:
        """The value of each action at `node`, divided by the total reach of the agent's possible hands there."""
        tree = self._dealt.rounds[board.round]
        place = int(np.flatnonzero(tree.nodes == node)[0])
        hole = np.sort(np.array(hand.hole(hand.person), np.uint8))
        view = board.view_of[int(np.flatnonzero((self._dealt.holes == hole).all(1))[0])]
        public = hand.board_at(board.round)
        total = float(hand.chances(free_holes(hand.rules, (*hand.hole(hand.person), *public)), step).sum())
        edges = range(int(tree.first_edge[place]), int(tree.first_edge[place + 1]))
        return {
            int(tree.edge_action[edge]): float(values[hand.person, tree.edge_slot[edge], view]) / total
            for edge in edges
        }
