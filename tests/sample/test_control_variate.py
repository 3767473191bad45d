"""The control variate for boards: of mean zero by enumeration, worked by hand, and worth subtracting."""

from itertools import combinations, permutations
from math import perm

import numpy as np
import pytest

from board_play import random_policy
from deepcfr.game.betting import FOLDED, SHOWDOWN
from deepcfr.game.hands import strength
from deepcfr.game.poker import PokerGame
from deepcfr.game.rules import PRESETS
from deepcfr.measure.match import exact_match, sampled_match
from deepcfr.policy.styles import scripted_policy
from deepcfr.sample.control_variate import BoardControlVariate, mean_results, stakes
from openspiel_poker import small_fhp

CHECK, RAISE = 1, 2
LEDUC = PRESETS["leduc"]
COUSIN = small_fhp(4, (1, 2, 1, 1), (0, 1, 1, 1), num_suits=2)  # heads-up limit hold'em with eight cards


def end_of(game: PokerGame, *actions: int) -> int:
    """The node after the actions."""
    node = 0
    for action in actions:
        node = int(game.tree.child[node, action])
        assert node >= 0
    return node


def equities(cards: np.ndarray, hole: int, known: int, ranks: int, suits: int, sample: int = 0) -> np.ndarray:
    return mean_results(cards, np.arange(len(cards)), hole, known, ranks * suits, suits, sample, np.uint64(3))


@pytest.mark.parametrize("known", [0, 3, 4, 5])
def test_mean_results_are_those_of_all_boards(known: int) -> None:
    """In a deck of 11 cards, counted one board after another."""
    ranks, suits = 11, 1
    cards = np.array([[0, 9, 4, 10, 1, 2, 3, 8, 7], [5, 6, 0, 1, 9, 2, 8, 3, 10]], np.uint8)
    found = equities(cards, 2, known, ranks, suits)
    for row, mean in zip(cards.tolist(), found, strict=True):
        hands, board = (row[:2], row[2:4]), row[4 : 4 + known]
        left = [card for card in range(ranks * suits) if card not in (*row[:4], *board)]
        results = []
        for new in combinations(left, 5 - known):
            mine, theirs = (strength(np.array([*hand, *board, *new], np.uint8), suits) for hand in hands)
            results.append((mine > theirs) - (mine < theirs))
        assert mean == pytest.approx(np.mean(results), abs=1e-12)
    assert known == 5 or len(set(found)) == 2


@pytest.mark.parametrize("known", [0, 3, 4])
def test_a_sample_of_boards_has_the_same_mean(known: int) -> None:
    cards = np.array([[50, 45, 12, 13, 0, 21, 30, 44, 3]], np.uint8)  # an ace and a queen, a pair of fives
    whole = equities(cards, 2, known, 13, 4)[0]
    found = equities(np.repeat(cards, 1_500, axis=0), 2, known, 13, 4, sample=16)
    assert len(np.unique(found)) > 5
    assert abs(found.mean() - whole) < 4 * found.std(ddof=1) / len(found) ** 0.5
    assert found.std() == pytest.approx(((1 - whole**2) / 16) ** 0.5, rel=0.1)  # as few tie


def test_stakes_are_what_both_had_put_in_when_a_board_came() -> None:
    game = PokerGame(LEDUC)
    table = stakes(game.rules, game.tree)
    unit = game.rules.unit_chips
    checked = end_of(game, CHECK, CHECK, RAISE, CHECK)  # one ante each before the board, four units at the end
    raised = end_of(game, RAISE, RAISE, CHECK, CHECK, CHECK)  # the second round is checked down
    folded = end_of(game, RAISE, 0)
    assert (table[[checked, raised, folded], 1] / unit).tolist() == [1, 5, 0]
    assert not table[:, 0].any()


def test_players_who_are_all_in_have_a_stake_in_every_board_to_come() -> None:
    game = PokerGame(PRESETS["hunl-pot"])
    table, tree = stakes(game.rules, game.tree), game.tree
    all_in = (tree.ended == SHOWDOWN) & (tree.chips.min(1) == game.rules.stack)
    assert all_in.any()
    early = all_in & (tree.round[np.maximum(tree.parent, 0)] == 0)
    assert early.any()
    assert (table[early, 1:] == game.rules.stack).all()


@pytest.mark.parametrize("rules", [LEDUC, COUSIN], ids=lambda rules: rules.name)
def test_the_control_variate_is_zero_on_average_over_all_deals(rules) -> None:
    """Whatever two games end at: the mean over all deals of player 0's control variate, and that of every pair of hands."""
    game = PokerGame(rules)
    slots = 2 * rules.hole_cards + sum(rules.board_cards)
    cards = np.array(list(permutations(range(rules.num_cards), slots)), np.uint8)
    ended = np.flatnonzero((game.tree.ended == SHOWDOWN) | (game.tree.ended == FOLDED))
    draw = np.random.default_rng(0)
    control_variate = BoardControlVariate(game, 0)
    of_hands = perm(rules.num_cards, 2 * rules.hole_cards)  # ordered pairs of hands, which come first in `permutations`
    largest = 0.0
    for first, second in draw.choice(ended, (4, 2)):
        ends = np.repeat([[first], [second]], len(cards), axis=1)
        found = control_variate(cards, np.arange(len(cards)), ends)
        assert found.mean(1) == pytest.approx(0, abs=1e-9)
        pairs = np.add.reduceat(found, np.arange(0, len(cards), len(cards) // of_hands), axis=1)
        assert np.abs(pairs).max() < 1e-6
        largest = max(largest, float(np.abs(found[0] - found[1]).max()))
    assert largest > 0.5


@pytest.mark.parametrize("rules", [LEDUC, COUSIN], ids=lambda rules: rules.name)
def test_the_value_is_still_the_exact_one(rules) -> None:
    game = PokerGame(rules)
    first, second = scripted_policy("raise", game), random_policy(game, 32)
    exact = exact_match(first, second)
    found = [sampled_match(first, second, 8_000, 4, control=control) for control in (False, True)]
    assert found[1].interval < 0.95 * found[0].interval
    for match in found:
        assert abs(match.value - exact.value) <= 4 / 1.96 * match.interval
