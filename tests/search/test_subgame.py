"""Solved subgames have the values of a linear program over all ways to play, and gadgets hold the opponent to them."""

from itertools import permutations, product

import numpy as np
import numpy.typing as npt
import pytest
from scipy.optimize import linprog

from deepcfr.boards.boards import Board, Boards, SampledBoards
from deepcfr.boards.rounds import round_trees
from deepcfr.boards.sweep import EVERYTHING
from deepcfr.game.betting import SHOWDOWN
from deepcfr.game.poker import PokerGame
from deepcfr.game.rules import PRESETS
from deepcfr.search.subgame import _FADES, Gadget, SubgameSolver, subgame, values_at_root
from deepcfr.solve.full_width import DISCOUNTED

Doubles = npt.NDArray[np.float64]
LEDUC = PokerGame(PRESETS["leduc"], suits="raw")
BOARD = SampledBoards(LEDUC).runout((3,))[-1]
ROUNDS = round_trees(LEDUC)
ROOT = 3
REACH = np.random.default_rng(3).random((2, 1, len(BOARD)))


class Program:
    """The end of a hand of Leduc poker after one root of the second round, in which each hand follows one of all plans."""

    def __init__(self, root: int) -> None:
        tree, node = LEDUC.tree, int(ROUNDS[1].root_nodes[root])
        self.plans = [_plans(node, player) for player in (0, 1)]
        holes = BOARD.holes[BOARD.example, 0].tolist()
        self.payoffs = np.zeros((len(holes), len(self.plans[0]), len(holes), len(self.plans[1])))  # of player 0
        for (a, first), (b, second) in product(*(enumerate(plans) for plans in self.plans)):
            end = node
            while end < tree.num_decisions:
                end = int(tree.child[end, (first, second)[tree.actor[end]][end]])
            for (i, h), (j, g) in permutations(enumerate(holes), 2):
                won = np.sign(_rank(h) - _rank(g)) if tree.ended[end] == SHOWDOWN else 1 - 2 * tree.winner[end]
                self.payoffs[i, a, j, b] = won * tree.chips[end, 1 if won > 0 else 0] / LEDUC.rules.unit_chips

    def solve(self, resolver: int, weights: Doubles, cost: str, alternative: Doubles | None = None) -> float:
        """The least that the opponent can be held to.

        With `cost` "value" it is the opponent's value, each of its hands weighted by its reach. "gadget" adds up the
        larger of each hand's value and alternative; "margin" is the largest difference of the two.
        """
        gains = -self.payoffs.transpose(2, 3, 0, 1) if resolver == 0 else self.payoffs
        hands, theirs, _, mine = gains.shape
        # variables: the resolver's plans [hands, mine], and what each hand of the opponent, or the worst one, reaches
        reached = np.ones((hands, 1)) if cost == "margin" else np.eye(hands)
        upper = np.hstack([gains.reshape(hands * theirs, hands * mine), -np.repeat(reached, theirs, 0)])
        bound = np.repeat(alternative, theirs) if cost == "margin" else np.zeros(hands * theirs)
        goal = weights[1 - resolver] if cost == "value" else np.ones(reached.shape[1])
        limits = [(None, None)] * len(goal) if cost != "gadget" else [(least, None) for least in alternative]
        found = linprog(
            np.concatenate([np.zeros(hands * mine), goal]), upper, bound,
            np.hstack([np.kron(np.eye(hands), np.ones(mine)), np.zeros((hands, len(goal)))]), weights[resolver],
            [(0, None)] * (hands * mine) + limits,
        )  # fmt: skip
        assert found.status == 0
        return float(found.fun)


def _plans(root: int, player: int) -> list[dict[int, int]]:
    """Every way of a player to act after a node: an action at each of its decisions."""
    tree, nodes = LEDUC.tree, [root]
    for node in nodes:
        nodes += [child for child in tree.child[node, tree.legal[node]].tolist() if child < tree.num_decisions]
    own = [node for node in nodes if tree.actor[node] == player]
    return [dict(zip(own, chosen, strict=True)) for chosen in product(*(np.flatnonzero(tree.legal[n]) for n in own))]


def _rank(card: int) -> int:
    return card // 2 + 10 * (card // 2 == BOARD.cards[0] // 2)


def test_the_value_of_a_last_round_is_that_of_the_linear_program() -> None:
    inside = subgame(LEDUC, ROUNDS, BOARD, np.array([ROOT]))
    solver = SubgameSolver(inside, REACH)
    solver.run(1_000)
    values = values_at_root(inside, solver.policy().on_board, REACH, EVERYTHING)
    exact = Program(ROOT).solve(0, REACH[:, 0], "value")
    best = float((REACH[1] * values[1]).sum())  # the opponent's best response is above the exact value
    assert exact == pytest.approx(Program(ROOT).solve(1, REACH[:, 0], "value") * -1, abs=1e-6)
    assert 0 <= best - exact < 2e-3 * abs(exact)
    assert 0 <= float(solver.nash_conv()[0]) < 2e-3


def test_iterations_of_a_last_round_together_are_those_that_are_done_one_by_one() -> None:
    inside = subgame(LEDUC, ROUNDS, BOARD, np.array([ROOT]))
    together, single = (SubgameSolver(inside, REACH, trembling=True) for _ in range(2))
    together.run(5)
    together.run(35)
    for t in range(1, 41):
        single._iterate(t, None)
        single.iteration = t
        if t in _FADES:
            single._fade()
    for one, other in zip(together._tables, single._tables, strict=True):
        assert (one[-1].values == other[-1].values).all()
    assert together.iteration == 40


@pytest.mark.parametrize("resolver", [0, 1])
def test_the_opponent_is_held_to_what_the_linear_program_allows(resolver: int) -> None:
    opponent = 1 - resolver
    inside = subgame(LEDUC, ROUNDS, BOARD, np.array([ROOT]))
    strength = np.array([_rank(card) for card in BOARD.holes[BOARD.example, 0].tolist()], float)
    known = (strength - strength.mean())[None] / 2  # so hands that win most do not gain most
    solver = SubgameSolver(inside, REACH, Gadget(opponent, known, BOARD.size))
    solver.run(4_000)
    values = values_at_root(inside, solver.policy().on_board, REACH, [(opponent, True)])[0, 0]
    exact = Program(ROOT).solve(resolver, REACH[:, 0], "gadget", known[0])
    assert -1e-6 < np.maximum(values, known[0]).sum() - exact < 5e-3 * max(1, abs(exact))
    assert -1e-6 < float(solver.nash_conv()[0]) < 5e-3


def whole_kuhn() -> tuple[Boards, Board]:
    game = PokerGame(PRESETS["kuhn"])
    board = SampledBoards(game).runout(())[0]
    return subgame(game, round_trees(game), board, np.array([0])), board


def test_the_gap_is_a_mean_over_hands_that_can_meet() -> None:
    """One hand of the resolver's, which the opponent cannot hold too, so two others meet it."""
    inside, board = whole_kuhn()
    reach = np.zeros((2, 1, len(board)))
    reach[0, 0, 2] = 1
    gadget = Gadget(1, np.zeros((1, len(board))), board.size)
    solver = SubgameSolver(inside, reach, gadget)
    solver.run(3)
    reach[1] = gadget.average
    best = values_at_root(inside, solver.policy().on_board, reach, [(0, True), (1, True)])
    mean = values_at_root(inside, solver.policy().on_board, reach, [(0, False), (1, False)])
    gains = (reach[0] * (best[0] - mean[0])).sum() + gadget.gain(best[1], mean[1])
    assert gains > 0.01
    assert solver.nash_conv() == pytest.approx(gains / 2)


def test_whole_kuhn_poker_is_worth_minus_one_eighteenth() -> None:
    inside, board = whole_kuhn()
    reach = np.ones((2, 1, len(board)))
    solver = SubgameSolver(inside, reach)
    solver.run(2_000)
    values = values_at_root(inside, solver.policy().on_board, reach, [(0, False)])
    assert values.sum() / 6 == pytest.approx(-1 / 18, abs=1e-4)
    assert solver.nash_conv()[0] < 1e-3


def test_regrets_of_entrances_are_discounted() -> None:
    """Two hands of equal sums of regrets, one won early and one late: the late one counts more."""
    gadget = Gadget(0, np.zeros((1, 2)), np.ones(2, np.int64))
    for t, values in enumerate(([2.0, -2.0], [-2.0, 2.0]), 1):
        regret, reach = gadget._regret.copy(), gadget.reach()
        gadget.learn(np.array([values]), DISCOUNTED, t + 1)  # discounts begin with the second iteration
        positive, negative, _ = DISCOUNTED.factors(t + 1)
        kept = np.where(regret > 0, positive, negative) * regret
        np.testing.assert_allclose(gadget._regret[0], kept[0] + np.array([values]) * (1 - reach))


def test_the_opponent_enters_at_least_as_often_as_is_asked() -> None:
    """What it gains by its best choice is worked out by hand, and 0 in an equilibrium."""
    least = np.array([[0.5, 0.1, 0.0]])
    gadget = Gadget(0, np.zeros((1, 3)), np.ones(3, np.int64), least)
    np.testing.assert_allclose(gadget.reach(), least + (1 - least) / 2)
    for t in range(1, 200):
        gadget.learn(np.array([[-1.0, 1.0, -1.0]]), DISCOUNTED, t)
    np.testing.assert_allclose(gadget.reach(), [[0.5, 1, 0]])
    np.testing.assert_allclose(gadget.average, [[0.5, 1, 0]], atol=1e-3)
    inside = np.array([[-1.0, 1.0, -1.0]])
    assert gadget.gain(inside, inside) == pytest.approx(0, abs=1e-2)
    assert gadget.gain(np.array([[2.0, 1.0, -1.0]]), inside) == pytest.approx(2.5, abs=1e-2)


def test_averages_of_entrances_have_the_weights_of_the_variant() -> None:
    gadget = Gadget(0, np.zeros((1, 1)), np.ones(1, np.int64))
    seen = []
    for t in range(1, 4):
        seen.append(gadget.reach()[0, 0])
        gadget.learn(np.array([[(-1.0) ** t * t]]), DISCOUNTED, t)
    weights = np.array([1.0, 4.0, 9.0])
    assert len(set(seen)) > 1
    assert gadget.average[0, 0] == pytest.approx(weights @ seen / weights.sum())
