"""Games in which players are all-in early, measured and solved: against enumeration of every deal, hand by hand."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pytest
import torch

from board_play import every_deal, random_policy
from deepcfr.boards.boards import Boards
from deepcfr.boards.public_chance import traverse_boards
from deepcfr.boards.rounds import round_trees
from deepcfr.config import SamplingConfig
from deepcfr.core.parallel import Workers
from deepcfr.core.types import TERMINAL, Infosets
from deepcfr.game.base import check_game
from deepcfr.game.betting import NOT_TERMINAL, SHOWDOWN
from deepcfr.game.poker import PokerGame, Suits
from deepcfr.game.rules import PRESETS, PokerRules
from deepcfr.measure.deviations import decision_sets, deviations
from deepcfr.measure.exploitability import exploitability
from deepcfr.policy.base import UniformPolicy
from deepcfr.policy.tables import TablePolicy
from deepcfr.solve.vector_cfr import VectorCFR
from tables import tabular

# Raises lead from 2 chips to 6 and to 14, all-in, in any of three rounds.
ALL_IN = replace(
    PRESETS["hunl-pot"],
    name="three rounds of pot bets",
    num_ranks=3,
    num_suits=2,
    hole_cards=1,
    board_cards=(0, 1, 1),
    blinds=(1, 2),
    first_player=(0, 1, 1),
    raise_size=(100, 100, 100),
    max_raises=(5, 5, 5),
    unit_chips=2,
    stack=14,
    rank_symbols="",
    suit_symbols="",
)
NO_LIMP = replace(ALL_IN, name="no limping", limp=False)
TWO_CARDS = replace(
    PRESETS["fhp-pot"], name="two cards", num_ranks=4, num_suits=2, board_cards=(0, 2), stack=600, rank_symbols="",
    suit_symbols="",
)  # fmt: skip
EVERY = [ALL_IN, NO_LIMP, TWO_CARDS]
EVERY_RULES = pytest.mark.parametrize("rules", EVERY, ids=lambda rules: rules.name)

Floats = npt.NDArray[np.float64]


class Enumeration:
    """Best-response and profile values from the list of all deals: no boards, no ranges, no merging of suits."""

    def __init__(self, policy: TablePolicy) -> None:
        game = policy.game
        assert isinstance(game, PokerGame)
        self.game, self.deals = game, game.deals_of(every_deal(game))
        rows = torch.arange(len(self.deals))
        self.visible_cards = self.deals.visible_cards.numpy()
        self.sigma: list[npt.NDArray[np.float64]] = []
        for node in range(game.tree.num_decisions):
            cards = self.deals.visible_cards[:, game.tree.actor[node], game.tree.round[node]]
            infosets = Infosets(torch.full_like(rows, node), cards)
            self.sigma.append(policy.probabilities(infosets).double().numpy())
        self.payoff = {
            int(node): game.payoff(torch.full_like(rows, int(node)), rows, self.deals).double().numpy()
            for node in np.flatnonzero(game.tree.ended != NOT_TERMINAL)
        }

    def value(self, player: int, *, best: bool) -> float:
        rows = np.arange(len(self.deals))
        return self._value(player, best, 0, rows, np.full(len(rows), 1 / len(rows)))

    def _value(self, player: int, best: bool, node: int, rows: npt.NDArray[np.int64], weight: Floats) -> float:
        """The player's value of `node` in the deals `rows`, which it cannot tell apart, each with its weight."""
        tree = self.game.tree
        if tree.actor[node] == TERMINAL:
            return float(self.payoff[node][rows] @ weight) * (1 if player == 0 else -1)
        children = [(int(a), int(tree.child[node, a])) for a in np.flatnonzero(tree.legal[node])]
        if tree.actor[node] != player or not best:
            return sum(
                self._value(player, best, child, rows, weight * self.sigma[node][rows, action])
                for action, child in children
            )
        _, group = np.unique(self.visible_cards[rows, player, tree.round[node]], axis=0, return_inverse=True)
        return sum(
            max(self._value(player, best, child, rows[group == g], weight[group == g]) for _, child in children)
            for g in range(group.max() + 1)
        )


@pytest.mark.parametrize("suits", ["canonical", "raw"])
@EVERY_RULES
def test_exact_exploitability_is_that_of_all_deals(rules: PokerRules, suits: Suits) -> None:
    policy = random_policy(PokerGame(rules, suits), seed=1)
    expected, result = Enumeration(policy), exploitability(policy)
    best = [1000 * expected.value(player, best=True) for player in (0, 1)]
    assert result.best_response_values == pytest.approx(best)
    assert result.value == pytest.approx(1000 * expected.value(0, best=False))
    assert result.nash_conv == pytest.approx(sum(best))
    (everywhere,) = deviations(policy, decision_sets(rules, policy.game.tree)[:1])
    assert everywhere.nash_conv == pytest.approx(result.nash_conv)


def test_all_ins_lead_through_every_round_to_a_showdown_on_every_board() -> None:
    game = PokerGame(ALL_IN)
    rounds, tree = round_trees(game), game.tree
    entered = [len(round_.roots) - int((round_.roots < len(round_.nodes)).sum()) for round_ in rounds]
    all_in = (tree.chips == ALL_IN.stack).all(axis=1)
    came_from = tree.round[tree.parent]
    assert entered == [0, int((all_in & (came_from == 0)).sum()), int((all_in & (came_from < 2)).sum())]
    assert 0 < entered[1] < entered[2]
    assert [int((round_.leaf_kind == SHOWDOWN).sum()) for round_ in rounds[:2]] == [0, 0]
    assert int((rounds[2].leaf_kind == SHOWDOWN).sum()) == int((tree.ended == SHOWDOWN).sum())
    for before, after in pairwise(rounds):
        assert len(before.round_leaves) == len(after.roots)


@EVERY_RULES
def test_games_with_all_ins_keep_the_contract(rules: PokerRules) -> None:
    check_game(PokerGame(rules))


@pytest.mark.parametrize("rules", [ALL_IN, TWO_CARDS], ids=lambda rules: rules.name)
def test_a_traversal_of_all_boards_has_the_values_of_the_profile(
    rules: PokerRules, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("deepcfr.boards.public_chance._LATER_BOARDS", 10_000)
    policy = random_policy(PokerGame(rules), seed=2)
    boards, workers = Boards(PokerGame(rules), merge=True), Workers(1)
    settings = SamplingConfig(kind="public-chance", boards=10_000)
    expected = Enumeration(policy)
    try:
        for player in (0, 1):
            found = traverse_boards(boards, policy.on_board, player, settings, 1, 5, workers)
            assert found.value == pytest.approx(expected.value(player, best=False))
    finally:
        workers.shutdown()


@EVERY_RULES
def test_full_width_cfr_solves_games_with_all_ins(rules: PokerRules) -> None:
    game = PokerGame(rules)
    solver = VectorCFR(game, tabular("linear-cfr", 60))
    for _ in solver.iterations():
        pass
    solved = exploitability(solver.average_policy())
    assert solved.nash_conv < 0.03 * exploitability(UniformPolicy(game)).nash_conv
