"""The control variate for boards: of mean zero by enumeration, worked by hand, and worth subtracting."""

from itertools import combinations, permutations

import numpy as np
import pytest

from deepcfr.game.betting import FOLDED, SHOWDOWN
from deepcfr.game.hands import strength
from deepcfr.game.poker import PokerGame
from deepcfr.game.rules import PRESETS
from deepcfr.measure.match import exact_match, sampled_match
from deepcfr.policy.styles import scripted_policy
from deepcfr.sample.control_variate import BoardControlVariate, mean_results, stakes
from measure.test_match import LEDUC, random_policy
from measure.test_match_boards import COUSIN, agree

CHECK, RAISE = 1, 2


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


def test_aces_against_kings_lose_to_a_king_only() -> None:
    """After a flop of small cards in three suits two kings are left, of 45 cards; with one on the board, two aces of 44."""
    cards = np.array([[48, 49, 46, 47, 0, 21, 30, 44, 3]], np.uint8)  # aces, kings, flop, a king, another card
    assert equities(cards, 2, 3, 13, 4)[0] == pytest.approx(1 - 2 * (1 - 43 * 42 / (45 * 44)), abs=0.02)
    assert equities(cards, 2, 4, 13, 4)[0] == pytest.approx(-1 + 2 * 2 / 44)
    assert equities(cards, 2, 5, 13, 4)[0] == -1


@pytest.mark.parametrize("known", [0, 3, 4])
def test_a_sample_of_boards_has_the_same_mean(known: int) -> None:
    cards = np.array([[50, 45, 12, 13, 0, 21, 30, 44, 3]], np.uint8)  # an ace and a queen, a pair of fives
    whole = equities(cards, 2, known, 13, 4)[0]
    found = equities(np.repeat(cards, 4_000, axis=0), 2, known, 13, 4, sample=16)
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
    largest = 0.0
    for first, second in draw.choice(ended, (4, 2)):
        ends = np.repeat([[first], [second]], len(cards), axis=1)
        found = control_variate(cards, np.arange(len(cards)), ends)
        assert found.mean(1) == pytest.approx(0, abs=1e-9)
        pairs = np.abs(np.add.reduceat(found, np.arange(0, len(cards), len(cards) // comb_of_hands(rules)), axis=1))
        assert pairs.max() < 1e-6
        largest = max(largest, float(np.abs(found[0] - found[1]).max()))
    assert largest > 0.5


def comb_of_hands(rules) -> int:
    """Ordered pairs of hands, which come first in `permutations`."""
    pairs = 1
    for i in range(2 * rules.hole_cards):
        pairs *= rules.num_cards - i
    return pairs


def test_it_makes_intervals_shorter_and_changes_no_value() -> None:
    """Two styles of heads-up limit hold'em that differ in the pots they play for."""
    game = PokerGame(PRESETS["hulh"])
    first, second = scripted_policy("call", game), scripted_policy("uniform", game)
    plain, controlled = (sampled_match(first, second, 6_000, 3, control=control) for control in (False, True))
    assert controlled.interval < 0.85 * plain.interval
    assert agree(plain, controlled)


@pytest.mark.parametrize("rules", [LEDUC, COUSIN], ids=lambda rules: rules.name)
def test_the_value_is_still_the_exact_one(rules) -> None:
    first, second = scripted_policy("raise", PokerGame(rules)), random_policy(rules, 32)
    exact = exact_match(first, second)
    found = [sampled_match(first, second, 20_000, 4, control=control) for control in (False, True)]
    assert found[1].interval < found[0].interval
    for match in found:
        assert abs(match.value - exact.value) <= 4 / 1.96 * match.interval
    assert 2 * found[1].interval < abs(exact.value)
