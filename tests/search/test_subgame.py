"""Solved subgames have the values of a linear program over sequences, which a plain recursion over pairs of hands fills."""

from __future__ import annotations

from dataclasses import dataclass, field

import eval7
import numpy as np
import numpy.typing as npt
import pytest
from scipy.optimize import linprog
from scipy.sparse import lil_matrix

from deepcfr.boards.boards import Board, Boards, SampledBoards
from deepcfr.boards.rounds import RoundTree, round_trees
from deepcfr.boards.sweep import EVERYTHING
from deepcfr.game.betting import FOLDED, SHOWDOWN
from deepcfr.game.cards import card_text
from deepcfr.game.poker import PokerGame
from deepcfr.game.rules import PRESETS
from deepcfr.search.subgame import Gadget, MaxMargin, SubgameSolver, against, subgame, values_at_root
from deepcfr.solve.base import DISCOUNTED

Doubles = npt.NDArray[np.float64]
HOLDEM = PokerGame(PRESETS["hulh"], suits="raw")
RIVER = (50, 20, 12, 9, 35)  # a board without pairs and flushes
HANDS = 14  # of each player


@dataclass
class Sequences:
    """A player's sequences by name, and rows of (parent, children) for its decisions."""

    index: dict[object, int] = field(default_factory=dict)
    decisions: list[tuple[int, list[int]]] = field(default_factory=list)

    def __call__(self, name: object) -> int:
        return self.index.setdefault(name, len(self.index))


class Program:
    """The subgame after one round root of a round as a linear program, by a recursion over public nodes and pairs of
    hands.
    """

    def __init__(self, game: PokerGame, node: int, board: Board, hands: list[list[int]]) -> None:
        self.game, self.board, self.hands = game, board, hands
        self.names: tuple[Sequences, Sequences] = (Sequences(), Sequences())
        self.roots = [[self.names[p]((p, h)) for h in hands[p]] for p in (0, 1)]
        self.payoffs: dict[tuple[int, int], float] = {}  # of player 0, by both sequences
        for p in (0, 1):
            for h, root in zip(hands[p], self.roots[p], strict=True):
                self._decisions(node, p, h, root)
        for h, first in zip(hands[0], self.roots[0], strict=True):
            for g, second in zip(hands[1], self.roots[1], strict=True):
                if not set(board.holes[h]) & set(board.holes[g]):
                    self._pairs(node, h, g, first, second)

    def _decisions(self, node: int, player: int, hand: int, sequence: int) -> None:
        tree, names = self.game.tree, self.names[player]
        if node >= tree.num_decisions:
            return
        own = tree.actor[node] == player
        children = [(a, int(tree.child[node, a])) for a in np.flatnonzero(tree.legal[node])]
        after = [names((player, hand, node, a)) if own else sequence for a, _ in children]
        if own:
            names.decisions.append((sequence, after))
        for (_, child), follows in zip(children, after, strict=True):
            self._decisions(child, player, hand, follows)

    def _pairs(self, node: int, h: int, g: int, first: int, second: int) -> None:
        tree = self.game.tree
        if node >= tree.num_decisions:
            chips = tree.chips[node] / self.game.rules.unit_chips
            if tree.ended[node] == FOLDED:
                sign = 1 if tree.winner[node] == 0 else -1
            else:
                assert tree.ended[node] == SHOWDOWN
                sign = int(np.sign(self._rank(h) - self._rank(g)))
            amount = sign * (chips[1] if sign > 0 else chips[0])
            self.payoffs[first, second] = self.payoffs.get((first, second), 0.0) + amount
            return
        for a in np.flatnonzero(tree.legal[node]):
            child, actor = int(tree.child[node, a]), tree.actor[node]
            one = self.names[0]((0, h, node, a)) if actor == 0 else first
            two = self.names[1]((1, g, node, a)) if actor == 1 else second
            self._pairs(child, h, g, one, two)

    def _rank(self, hand: int) -> int:
        rules, cards = self.game.rules, (*self.board.holes[hand], *self.board.cards)
        rank: int = eval7.evaluate([eval7.Card(card_text(rules, card)) for card in cards])
        return rank

    def solve(self, resolver: int, weights: list[Doubles], cost: str, alternative: Doubles | None = None) -> float:
        """The least that the opponent can be held to.

        With `cost` "value" it is the opponent's value, each of its hands weighted by its reach. "gadget" adds up the
        larger of each hand's value and alternative; "margin" is the largest difference of the two.
        """
        opponent = 1 - resolver
        mine, theirs = self.names[resolver], self.names[opponent]
        n, m, extra = len(mine.index), len(theirs.decisions) + len(self.roots[opponent]), len(self.roots[opponent])
        # variables: the resolver's plan x, the opponent's values of decisions and roots p, and costs of roots c
        upper = lil_matrix((len(theirs.index) + 2 * extra, n + m + extra))
        bound = np.zeros(upper.shape[0])
        value_of = {root: len(theirs.decisions) + i for i, root in enumerate(self.roots[opponent])}
        arrives = {child: d for d, (_, children) in enumerate(theirs.decisions) for child in children}
        for sequence in theirs.index.values():
            # payoff after the sequence + values of the decisions after it <= the value of the decision that it belongs
            # to
            upper[sequence, n + (arrives[sequence] if sequence in arrives else value_of[sequence])] = -1
        for d, (parent, _) in enumerate(theirs.decisions):
            upper[parent, n + d] += 1
        for (first, second), amount in self.payoffs.items():
            row, column = (second, first) if resolver == 0 else (first, second)
            upper[row, column] += -amount if resolver == 0 else amount
        objective = np.zeros(n + m + extra)
        for i, root in enumerate(self.roots[opponent]):
            row = len(theirs.index) + 2 * i
            column = n + m + (0 if cost == "margin" else i)
            upper[row, n + value_of[root]], upper[row, column] = 1, -1
            upper[row + 1, column] = -1
            if cost == "value":
                upper[row + 1, column] = 0
            elif cost == "gadget":
                assert alternative is not None
                bound[row + 1] = -alternative[i]
            else:
                assert alternative is not None
                upper[row + 1, column], bound[row] = 0, alternative[i]
            objective[column] = 1 if cost != "value" else weights[opponent][i]
        equal = lil_matrix((extra_rows := len(mine.decisions) + len(self.roots[resolver]), n + m + extra))
        sums = np.zeros(extra_rows)
        for d, (parent, children) in enumerate(mine.decisions):
            equal[d, parent] = -1
            for child in children:
                equal[d, child] = 1
        for i, root in enumerate(self.roots[resolver]):
            equal[len(mine.decisions) + i, root], sums[len(mine.decisions) + i] = 1, weights[resolver][i]
        bounds = [(0, None)] * n + [(None, None)] * (m + extra)
        found = linprog(objective, upper.tocsr(), bound, equal.tocsr(), sums, bounds)
        assert found.status == 0
        return float(found.fun)


@dataclass
class River:
    board: Board
    tree: RoundTree
    rounds: list[RoundTree]
    root: int
    hands: list[list[int]]
    weights: list[Doubles]

    @property
    def reach(self) -> Doubles:
        reach = np.zeros((2, 1, len(self.board)))
        for p in (0, 1):
            reach[p, 0, self.board.canonical[self.hands[p]]] = self.weights[p]
        return reach


@pytest.fixture(scope="module")
def river() -> River:
    """A river of limit hold'em after some betting, with a few hands of each player."""
    draw = np.random.default_rng(3)
    board = SampledBoards(HOLDEM).runout(RIVER)[-1]
    rounds = round_trees(HOLDEM)
    hands = [draw.choice(len(board.holes), HANDS, replace=False).tolist() for _ in range(2)]
    return River(board, rounds[3], rounds, 120, hands, [draw.random(HANDS) for _ in range(2)])


def program(river: River) -> Program:
    return Program(HOLDEM, int(river.tree.root_nodes[river.root]), river.board, river.hands)


def test_the_value_of_a_river_is_that_of_the_linear_program(river: River) -> None:
    inside = subgame(HOLDEM, river.rounds, river.board, np.array([river.root]))
    solver = SubgameSolver(inside, river.reach)
    solver.run(1_000)
    values = values_at_root(inside, solver.policy().on_board, river.reach, EVERYTHING)
    exact = program(river).solve(0, river.weights, "value")
    best = float((river.reach[1] * values[1]).sum())  # the opponent's best response is above the exact value
    assert exact == pytest.approx(program(river).solve(1, river.weights, "value") * -1, abs=1e-6)
    assert 0 <= best - exact < 2e-3 * abs(exact)
    assert 0 <= float(solver.nash_conv()[0]) < 2e-3


@pytest.mark.parametrize("resolver", [0, 1])
@pytest.mark.parametrize("kind", [Gadget, MaxMargin])
def test_the_opponent_is_held_to_what_the_linear_program_allows(
    river: River, kind: type[Gadget | MaxMargin], resolver: int
) -> None:
    opponent = 1 - resolver
    inside = subgame(HOLDEM, river.rounds, river.board, np.array([river.root]))
    # only some hands of the opponent may enter: others have a large alternative
    alternative = np.full((1, len(river.board)), 1e3)
    columns = river.board.canonical[river.hands[opponent]]
    known = np.random.default_rng(7).normal(0, 2, HANDS)
    alternative[0, columns] = known
    met = (against(river.board, river.reach[resolver]) > 0,) if kind is MaxMargin else ()
    solver = SubgameSolver(inside, river.reach, kind(opponent, alternative, river.board.size, *met))
    solver.run(4_000)
    values = values_at_root(inside, solver.policy().on_board, river.reach, [(opponent, True)])[0, 0, columns]
    cost = "gadget" if kind is Gadget else "margin"
    exact = program(river).solve(resolver, river.weights, cost, known)
    reached = np.maximum(values, known).sum() if kind is Gadget else (values - known).max()
    assert -1e-6 < reached - exact < 5e-3 * max(1, abs(exact))
    assert 0 <= float(solver.nash_conv()[0]) < 5e-3


def test_hands_that_meet_nothing_do_not_enter() -> None:
    """They would gain nothing, which is more than the others do."""
    gadget = MaxMargin(0, np.zeros((1, 3)), np.ones(3, np.int64), np.array([[True, True, False]]))
    for t in range(1, 20):
        gadget.learn(np.array([[-0.3, -0.2, 0.0]]), DISCOUNTED, t)
    np.testing.assert_allclose(gadget.reach(), [[0, 1, 0]])
    assert gadget.gain(np.array([[-0.3, -0.2, 0.0]]), np.array([[-0.3, -0.2, 0.0]])) == pytest.approx(0, abs=1e-2)


def whole_kuhn() -> tuple[Boards, Board]:
    game = PokerGame(PRESETS["kuhn"])
    board = SampledBoards(game).runout(())[0]
    return subgame(game, round_trees(game), board, np.array([0])), board


def test_the_gap_is_a_mean_over_hands_that_can_meet() -> None:
    """One hand of the resolver's, which the opponent cannot hold too, so two others meet it, each half of the time."""
    inside, board = whole_kuhn()
    reach = np.zeros((2, 1, len(board)))
    reach[0, 0, 2] = 1
    gadget = MaxMargin(1, np.zeros((1, len(board))), board.size, against(board, reach[0]) > 0)
    solver = SubgameSolver(inside, reach, gadget)
    solver.run(3)
    reach[1] = gadget.average
    best = values_at_root(inside, solver.policy().on_board, reach, [(0, True), (1, True)])
    mean = values_at_root(inside, solver.policy().on_board, reach, [(0, False), (1, False)])
    gains = (reach[0] * (best[0] - mean[0])).sum() + gadget.gain(best[1], mean[1])
    assert gains > 0.01
    assert solver.nash_conv() == pytest.approx(gains)


def test_whole_kuhn_poker_is_worth_minus_one_eighteenth() -> None:
    inside, board = whole_kuhn()
    reach = np.ones((2, 1, len(board)))
    solver = SubgameSolver(inside, reach)
    solver.run(2_000)
    values = values_at_root(inside, solver.policy().on_board, reach, [(0, False)])
    assert values.sum() / 6 == pytest.approx(-1 / 18, abs=1e-4)
    assert solver.nash_conv()[0] < 1e-3


def test_a_turn_has_the_values_of_its_rivers() -> None:
    """The boards of a subgame have the weights of the game: constant strategies, every pair of hands, every river."""
    game = PokerGame(PRESETS["leduc"])
    rounds, boards = round_trees(game), SampledBoards(game)
    board = boards.runout((0,))[0]
    inside = subgame(game, rounds, board, np.array([0]))
    reach = np.random.default_rng(1).random((2, 1, len(board)))
    even = lambda tree, board: np.repeat(1 / np.diff(tree.first_edge)[tree.edge_node][:, None], len(board), 1)  # noqa: E731
    (value,) = values_at_root(inside, even, reach, [(0, False)])[:, 0]
    tree, suits = game.tree, game.rules.num_suits

    def expected(node: int, h: int, g: int, card: int | None) -> float:
        if tree.round[node] == 1 and card is None:
            return float(np.mean([expected(node, h, g, c) for c in range(6) if c not in (h, g)]))
        if node >= tree.num_decisions:
            if tree.ended[node] == FOLDED:
                return float(tree.chips[node, 1] if tree.winner[node] == 0 else -tree.chips[node, 0])
            assert card is not None
            mine, theirs = ((hole // suits == card // suits, hole // suits) for hole in (h, g))
            return float(tree.chips[node, 1] * (mine > theirs) - tree.chips[node, 0] * (theirs > mine))
        return float(
            np.mean([expected(int(tree.child[node, a]), h, g, card) for a in np.flatnonzero(tree.legal[node])])
        )

    unit = game.rules.unit_chips
    for u, hand in enumerate(board.holes[board.example, 0]):
        total = sum(
            reach[1, 0, board.canonical[other]] * expected(0, int(hand), int(board.holes[other, 0]), None)
            for other in range(len(board.holes))
            if board.holes[other, 0] != hand
        )
        assert value[u] == pytest.approx(total / unit, abs=1e-9)


@pytest.mark.parametrize("kind", [Gadget, MaxMargin])
def test_regrets_of_entrances_are_discounted(kind: type[Gadget | MaxMargin]) -> None:
    """Two hands of equal sums of regrets, one won early and one late: the late one counts more."""
    possible = (np.ones((1, 2), np.bool_),) if kind is MaxMargin else ()
    gadget = kind(0, np.zeros((1, 2)), np.ones(2, np.int64), *possible)
    for t, values in enumerate(([2.0, -2.0], [-2.0, 2.0]), 1):
        regret = gadget._regret.copy()
        reach = gadget.reach()
        gains = np.array([values]) - (reach * values if kind is Gadget else (reach * values).sum())
        gadget.learn(np.array([values]), DISCOUNTED, t + 1)  # discounts begin with the second iteration
        positive, negative, _ = DISCOUNTED.factors(t + 1)
        expected = np.where(regret > 0, positive, negative) * regret
        learnt, before = (gadget._regret[0], expected[0]) if kind is Gadget else (gadget._regret, expected)
        np.testing.assert_allclose(learnt, before + gains)


def test_averages_of_entrances_have_the_weights_of_the_variant() -> None:
    gadget = Gadget(0, np.zeros((1, 1)), np.ones(1, np.int64))
    seen = []
    for t in range(1, 4):
        seen.append(gadget.reach()[0, 0])
        gadget.learn(np.array([[(-1.0) ** t * t]]), DISCOUNTED, t)
    weights = np.array([1.0, 4.0, 9.0])
    assert len(set(seen)) > 1
    assert gadget.average[0, 0] == pytest.approx(weights @ seen / weights.sum())
