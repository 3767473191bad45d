"""The kernels at the leaves: equal to comparing every hand with every other hand, card removal and ties included."""

from typing import Any

import numpy as np
import numpy.typing as npt
import phevaluator
import pytest

from deepcfr.games.betting import FOLDED, SHOWDOWN
from deepcfr.games.cards import all_hands
from deepcfr.games.poker import PokerGame
from deepcfr.games.rules import PRESETS
from deepcfr.ranges.boards import NEXT_ROUND, BoardHands, HandSpace
from deepcfr.ranges.kernels import fold_values, leaf_values, showdown_values

Floats = npt.NDArray[np.float64]


def pays(holes: npt.NDArray[np.uint8], strength: npt.NDArray[np.int32]) -> tuple[Floats, Floats]:
    """What a fold and a showdown of one chip pay hand h against hand g, [H, H]; 0 where they share a card."""
    fold, showdown = np.zeros((len(holes), len(holes))), np.zeros((len(holes), len(holes)))
    hands = [set(hole) for hole in holes.tolist()]
    values = strength.tolist()
    for h, hand in enumerate(hands):
        for g, other in enumerate(hands):
            if not hand & other:
                fold[h, g] = 1.0
                showdown[h, g] = (values[h] > values[g]) - (values[h] < values[g])
    return fold, showdown


def values_of(hands: BoardHands, reach: Floats, amount: float, num_cards: int) -> tuple[Floats, Floats]:
    """What the kernels write over garbage, for a fold and for a showdown."""
    fold, showdown = np.full(len(reach), np.nan), np.full(len(reach), np.nan)
    fold_values(reach, hands.holes, amount, num_cards, fold)
    showdown_values(reach, hands.holes, hands.order, hands.strength, amount, num_cards, showdown)
    return fold, showdown


def random_reach(rng: np.random.Generator, hands: int) -> Floats:
    """Reach with many hands out of the range, and of very different sizes."""
    return rng.random(hands) ** 4 * (rng.random(hands) < 0.7)


def check(hands: BoardHands, num_cards: int, rng: np.random.Generator) -> None:
    fold, showdown = pays(hands.holes, hands.strength)
    for amount in (1.0, -0.5, 8.0):
        reach = random_reach(rng, len(hands.index))
        found = values_of(hands, reach, amount, num_cards)
        np.testing.assert_allclose(found[0], amount * fold @ reach, rtol=1e-12, atol=1e-12 * reach.sum())
        np.testing.assert_allclose(found[1], amount * showdown @ reach, rtol=1e-12, atol=1e-12 * reach.sum())


@pytest.mark.parametrize("seed", [0, 1])
def test_flops_of_holdem(seed: int) -> None:
    space = HandSpace(PokerGame(PRESETS["fhp"]))
    rng = np.random.default_rng(seed)
    hands = space.on_board(np.sort(rng.choice(52, 3, replace=False)).astype(np.uint8))
    assert len(hands.index) == 1176
    assert len(np.unique(hands.strength)) < 1176  # there are ties
    check(hands, 52, rng)


def test_a_flop_by_phevaluators_ranking() -> None:
    board = [3, 20, 33]
    hands = HandSpace(PokerGame(PRESETS["fhp"])).on_board(np.array(board, np.uint8))
    ranks = np.array([phevaluator.evaluate_cards(*hole, *board) for hole in hands.holes.tolist()])
    reach = random_reach(np.random.default_rng(2), len(ranks))
    showdown = pays(hands.holes, -ranks)[1] @ reach
    np.testing.assert_allclose(values_of(hands, reach, 1.0, 52)[1], showdown, atol=1e-12 * reach.sum())


def test_a_board_that_ties_every_hand_pays_nothing() -> None:
    royal = np.array([35, 39, 43, 47, 51], np.uint8)  # Ts Js Qs Ks As
    hands = HandSpace(PokerGame(PRESETS["hulh"])).on_board(royal)
    fold, showdown = values_of(hands, np.ones(len(hands.index)), 3.0, 52)
    assert np.abs(showdown).max() == 0
    assert (fold == 3.0 * (45 * 44 / 2)).all()  # hands of the 47 other cards without two given ones


@pytest.mark.parametrize("name", ["kuhn", "leduc"])
def test_one_card_hands(name: str) -> None:
    rules, rng = PRESETS[name], np.random.default_rng(3)
    space = HandSpace(PokerGame(rules))
    for board in ([], *([card] for card in range(rules.num_cards))):
        hands = space.on_board(np.array(board, np.uint8))
        assert len(hands.index) == rules.num_cards - len(board)
        check(hands, rules.num_cards, rng)


@pytest.mark.parametrize("held", [1, 2])
@pytest.mark.parametrize("levels", [1, 2, 5, 1000])
def test_any_strengths_with_any_number_of_ties(held: int, levels: int) -> None:
    rng = np.random.default_rng(levels)
    for num_cards in (3, 8, 13):
        holes = all_hands(num_cards, held)
        # some hands are dead, as on a board, and their places in the arrays are arbitrary
        live = rng.permutation(len(holes))[: max(1, 2 * len(holes) // 3)]
        strength = rng.integers(levels, size=len(live)).astype(np.int32)
        order = rng.permutation(len(live))
        order = order[np.argsort(strength[order], kind="stable")]  # ties in any order
        check(BoardHands(live, holes[live], strength, order), num_cards, rng)


@pytest.mark.parametrize("held", [1, 2])
def test_values_of_a_leaf_are_zero_sum(held: int) -> None:
    rng = np.random.default_rng(4)
    holes = all_hands(9, held)
    strength = rng.integers(4, size=len(holes)).astype(np.int32)
    hands = BoardHands(np.arange(len(holes)), holes, strength, np.argsort(strength))
    reach = np.stack([random_reach(rng, len(holes)) for _ in range(2)])
    fold = [values_of(hands, reach[1 - player], 1.0, 9)[0] @ reach[player] for player in (0, 1)]
    showdown = [values_of(hands, reach[1 - player], 1.0, 9)[1] @ reach[player] for player in (0, 1)]
    assert fold[0] == pytest.approx(fold[1])
    assert showdown[0] == pytest.approx(-showdown[1], abs=1e-12)


def test_leaves_are_paid_to_each_player_by_their_kind() -> None:
    rng = np.random.default_rng(5)
    hands = HandSpace(PokerGame(PRESETS["leduc"])).on_board(np.array([2], np.uint8))
    kinds = np.array([FOLDED, NEXT_ROUND, SHOWDOWN])
    payoff = np.array([[-1.0, 9.0, 3.0], [1.0, 9.0, 3.0]])
    first = 2  # two decision nodes before the leaves, which stay untouched
    reach, values = rng.random((2, 5, 5)), np.full((2, 5, 5), 7.0)
    arguments: tuple[Any, ...] = (hands.holes, hands.order, hands.strength, 6, values)
    leaf_values(kinds, payoff, first, reach, *arguments)
    fold, showdown = pays(hands.holes, hands.strength)
    for player, sign in ((0, -1.0), (1, 1.0)):
        np.testing.assert_allclose(values[player, 2], sign * fold @ reach[1 - player, 2])
        np.testing.assert_allclose(values[player, 4], 3.0 * showdown @ reach[1 - player, 4])
    assert (values[:, [0, 1, 3]] == 7.0).all()
