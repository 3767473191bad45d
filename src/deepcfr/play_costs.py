"""What a choice costs against one agent, exactly, where its game is small enough to enumerate.

The value of an action is the most that the person can win on average after it, over the agent's range at that point and
all public cards to come, by best responses to the agent from then on (which know its strategy, but not its cards).
The cost of a choice is the best action's value less the chosen one's, in the game's unit: 0 for the best choice.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from functools import cached_property
from itertools import pairwise

import numpy as np

from deepcfr.evaluation.exploitability import refusal
from deepcfr.games.poker import PokerGame
from deepcfr.parallel import Workers
from deepcfr.play_hand import Cards, Floats, ListedHand, free_holes
from deepcfr.policies.base import Policy, board_strategy
from deepcfr.policies.ranges import RangePolicy
from deepcfr.ranges.boards import Board, Boards, OnBoard, RoundTree, count_boards
from deepcfr.ranges.kernels import add_up, pull_values, push_both
from deepcfr.ranges.runouts import SampledBoards
from deepcfr.ranges.scratch import Scratch
from deepcfr.ranges.sweep import BoardStrategy, fill_leaves

KEPT_BOARDS = 8  # newest ones, for the other decisions of a hand
FEW_BOARDS = 200  # of a whole game: they are swept while the person waits
PLAYERS = (0, 1)


class Responder:
    """Best responses of each player to a policy, from any board on."""

    def __init__(self, boards: Boards, strategy: BoardStrategy) -> None:
        self._boards, self._strategy = boards, strategy
        self._scratch = Scratch()

    def values(
        self, board: Board, reach: Floats, workers: Workers | None = None, on_board: OnBoard | None = None
    ) -> Floats:
        """The most that each player wins at every slot of the board's round, counterfactually, [P, S, U].

        `reach` [P, X, U] is that at the round's entries under the policy; a player's values are weighted by the opponent's,
        summed over hands that share no card. With `workers` the boards of the next round are shared out.
        """
        tree = self._boards.rounds[board.round]
        sigma, rows = self.reach_on(board, reach)
        values = np.zeros((2, tree.num_slots, len(board)))
        for player in PLAYERS:
            fill_leaves(tree, board, player, rows[1 - player], values[player], self._scratch)
        if len(tree.exits):
            values[:, tree.exits] = self._after(board, exit_reach(tree, rows), workers, on_board)
        for player in PLAYERS:
            pull_values(tree.actor, tree.first_edge, tree.edge_slot, player, True, sigma, values[player])
        return values

    def reach_on(self, board: Board, reach: Floats) -> tuple[Floats, tuple[Floats, Floats]]:
        """The strategy [E, U] and each player's reach [rows, U] on a board, from those at its entries [P, X, U]."""
        tree = self._boards.rounds[board.round]
        sigma = np.ascontiguousarray(self._strategy(tree, board), np.float64)
        rows = np.empty((tree.num_rows[0], len(board))), np.empty((tree.num_rows[1], len(board)))
        for player in PLAYERS:
            rows[player][: reach.shape[1]] = reach[player]
        push_both(tree.actor, tree.first_edge, tree.edge_row, tree.row, sigma, *rows)
        return sigma, rows

    def _after(self, board: Board, reach: Floats, workers: Workers | None, on_board: OnBoard | None) -> Floats:
        """The values at the next round's entries, the mean over its boards, [P, X, U]."""
        later = self._boards.children(board)
        entries = self._boards.rounds[board.round + 1].entries

        def play(child: Board) -> Floats:
            return self.values(child, np.ascontiguousarray(reach[:, :, child.up]))[:, entries]

        total = np.zeros((2, reach.shape[1], len(board)))
        results = workers.map(play, later) if workers else map(play, later)
        for done, (child, values) in enumerate(zip(later, results, strict=True)):
            add_up(values, child.up, child.weight, total)
            if on_board:
                on_board(done + 1, len(later))
        return total


def exit_reach(tree: RoundTree, rows: tuple[Floats, Floats]) -> Floats:
    """Both players' reach where a round leads to the next, [P, X, U]."""
    return np.stack([rows[player][tree.row[player, tree.exits]] for player in PLAYERS])


class Costs:
    """Values of actions against one policy of a poker game; may be asked in several threads.

    Those of the last round are computed for the board that came. Before it every board that may come is needed, so the
    first round's are computed once, by `prepare`, and rounds between the two have none.
    """

    def __init__(self, game: PokerGame, policy: Policy) -> None:
        self.game, self.policy = game, policy
        self.reason = refusal(game.rules)  # why there are no exact costs, as a sentence
        self.progress = (0, 0)  # boards done and to do while the first round is computed
        self._first: tuple[Board, Floats] | None = None
        self._thread: threading.Thread | None = None
        self._once, self._one_board = threading.Lock(), threading.Lock()  # others who play are not kept waiting
        self._kept: OrderedDict[Cards, tuple[Board, Floats]] = OrderedDict()  # of the last round, by all public cards

    @property
    def quick(self) -> bool:
        """Whether `prepare` takes no time to speak of."""
        merge = self.game.suits == "canonical"
        return self.reason is None and count_boards(self.game.rules, merge=merge)[-1] <= FEW_BOARDS

    @property
    def ready(self) -> bool:
        """Whether the first round's values are there."""
        return self._first is not None

    def prepare(self) -> None:
        """Compute the first round's values, unless they are there."""
        with self._once:
            if self._first is None and self.has_round(0):
                own = getattr(self.policy, "boards", None)
                boards = own if isinstance(own, Boards) else Boards(self.game, merge=self.game.suits == "canonical")
                (board,) = boards.children(boards.root)
                responder, reach = Responder(boards, board_strategy(self.policy)), np.ones((2, 1, len(board)))
                self._first = board, responder.values(board, reach, Workers(1), self._tell)

    def prepare_soon(self) -> None:
        """Compute them now if that is quick, else in a thread of their own."""
        if self.quick:
            self.prepare()
        elif self._thread is None:
            self._thread = threading.Thread(target=self.prepare, daemon=True)
            self._thread.start()

    def _tell(self, done: int, total: int) -> None:
        self.progress = done, total

    def has_round(self, round_: int) -> bool:
        """Whether there are, or will be, values of the decisions in a round."""
        rules = self.game.rules
        first = round_ == 0 and not rules.board_cards[0]
        return self.reason is None and (first or round_ == rules.num_rounds - 1)

    def at(self, hand: ListedHand, step: int) -> dict[int, float] | None:
        """The value of every legal action at a decision of the person, in units; None if it is not known (yet).

        `step` is the decision's position among the hand's actions.
        """
        tree = self.game.tree
        node, path = 0, tree.path(hand.node)[:step]
        for at, action in path:
            node = int(tree.child[at, action])
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

    def _on_board(self, hand: ListedHand, round_: int) -> tuple[Board, Floats]:
        """The last round's board of a hand, and the values at its slots, which depend on the public cards only."""
        cards = hand.board_at(round_)
        with self._one_board:
            if cards not in self._kept:
                self._kept[cards] = self._values_on(cards)
                if len(self._kept) > KEPT_BOARDS:
                    self._kept.popitem(last=False)
            return self._kept[cards]

    def _values_on(self, cards: Cards) -> tuple[Board, Floats]:
        # tables are kept by canonical board; single infosets can be asked on any
        policy = _OneByOne(self.policy) if isinstance(self.policy, RangePolicy) else self.policy
        responder = Responder(self._dealt, board_strategy(policy))
        boards = self._dealt.runout(cards)
        reach = np.ones((2, 1, len(boards[0])))
        for board, after in pairwise(boards):
            rows = responder.reach_on(board, reach)[1]
            reach = np.ascontiguousarray(exit_reach(self._dealt.rounds[board.round], rows)[:, :, after.up])
        return boards[-1], responder.values(boards[-1], reach)

    def _action_values(self, hand: ListedHand, step: int, node: int, board: Board, values: Floats) -> dict[int, float]:
        """The values after each action at `node`, by the reach of the hands that the agent may hold there."""
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


class _OneByOne:
    """A policy without its own way of answering for a whole board."""

    def __init__(self, policy: Policy) -> None:
        self.game, self.kind, self.probabilities = policy.game, policy.kind, policy.probabilities
