"""Texture buckets: total, blind to suits and to the order of cards, and what their names say."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from deepcfr.buckets import texture as t
from deepcfr.buckets.buckets import round_classes
from deepcfr.buckets.texture import TextureBuckets
from deepcfr.core.errors import GameError
from deepcfr.game.cards import all_hands, parse_card, suit_permutations
from deepcfr.game.presets import load_game
from deepcfr.game.rules import PRESETS, PokerRules
from deepcfr.measure.exploitability import exploitability
from deepcfr.policy.base import UniformPolicy
from deepcfr.policy.tables import AbstractPolicy
from deepcfr.run.build import build_solver
from deepcfr.sample.traversal_tree import table_layout
from deepcfr.solve.mccfr import MCCFR
from tables import finished, tabular

HULH = PRESETS["hulh"]
SMALL = replace(HULH, name="small", num_ranks=6, num_suits=3, rank_symbols="", suit_symbols="")
DECKS = pytest.mark.parametrize("rules", [HULH, SMALL, PRESETS["fhp-mini"]], ids=lambda rules: rules.name)


def deals(rules: PokerRules, count: int, seed: int) -> np.ndarray:
    """Cards of a hand and a whole board, uint8 [count, n]."""
    draw = np.random.default_rng(seed)
    return draw.permuted(np.tile(np.arange(rules.num_cards, dtype=np.uint8), (count, 1)), axis=1)[
        :, : 2 + sum(rules.board_cards)
    ]


@DECKS
def test_every_hand_has_a_bucket_whatever_its_suits_and_order(rules: PokerRules) -> None:
    texture, cards = TextureBuckets(rules), deals(rules, 2_000, 1)
    holes = all_hands(rules.num_cards, 2)  # are told apart without loss
    assert len(np.unique(texture.buckets(0, holes, np.zeros((len(holes), 0), np.uint8)))) == round_classes(rules, 0)
    draw = np.random.default_rng(2)
    renamings = suit_permutations(rules.num_ranks, rules.num_suits)
    chosen = renamings[draw.integers(len(renamings), size=len(cards))]
    renamed = np.take_along_axis(chosen, cards.astype(np.int64), axis=1)
    seen = 2
    for round_, new in enumerate(rules.board_cards):
        seen += new
        plain = texture.buckets(round_, cards[:, :2], cards[:, 2:seen])
        assert plain.min() >= 0
        assert plain.max() < texture.counts[round_]
        assert len(np.unique(plain)) > (20 if round_ else rules.num_ranks)
        shuffled = draw.permuted(renamed[:, 2:seen], axis=1)
        np.testing.assert_array_equal(texture.buckets(round_, renamed[:, [1, 0]], shuffled), plain)


def cards_of(text: str) -> np.ndarray:
    return np.array([parse_card(HULH, piece) for piece in text.split()], np.uint8)


@pytest.mark.parametrize(
    ("hand", "made"),
    [
        ("7c 2d Kh Qs 9c", t.NOTHING),
        ("Jc 2d Th 8s 4c", t.ONE_OVERCARD),
        ("Kc Jd Th 8s 4c", t.TWO_OVERCARDS),
        ("Ac 2d Th 8s 4c", t.ACE_HIGH),
        ("Qc 2d Th Ts 4c", t.BOARD_PAIRS),
        ("Ac 2d Th Ts 4c", t.BOARD_PAIRS_ACE),
        ("2c 2d Th 8s 4c", t.UNDERPAIR),
        ("9c 9d Th 8s 4c", t.MIDDLE_POCKET_PAIR),
        ("Jc Jd Th 8s 4c", t.OVERPAIR),
        ("4d 2d Th 8s 4c", t.LOW_PAIR),
        ("8d 2d Th 8s 4c", t.SECOND_PAIR),
        ("Td 2d Th 8s 4c", t.TOP_PAIR),
        ("Td Ad Th 8s 4c", t.TOP_PAIR_GOOD_KICKER),
        ("8d Ad Th 8s Tc", t.PAIR_AND_BOARD_PAIR),
        ("Td Ad Th 4s 4c", t.TOP_PAIR_AND_BOARD_PAIR),
        ("Jd Jc Th 4s 4c", t.OVERPAIR_AND_BOARD_PAIR),
        ("3d 3c Th Ts 4c 4d", t.BOARD_PAIRS),
        ("Td 4d Th 8s 4c", t.TWO_PAIRS),
        ("Td 8d Th 8s 4c", t.TOP_TWO_PAIRS),
        ("Kd Qd Th Ts Tc", t.BOARD_TRIPS),
        ("Ad Qd Th Ts Tc", t.BOARD_TRIPS_ACE),
        ("Td 2d Th Ts 4c", t.MADE_TRIPS),
        ("Td Kd Th Ts 4c", t.MADE_TRIPS_GOOD_KICKER),
        ("4d 4h Th 8s 4c", t.SET),
        ("2d 2h 9h 8s 7c 6d 5d", t.STRAIGHTS),
        ("5d 4h 8s 7c 6d", t.STRAIGHTS + 1),
        ("Td 9h 8s 7c 6d", t.STRAIGHTS + 2),
        ("Ad 2h 3s 4c 5d", t.STRAIGHTS + 1),
        ("2d 3h Ks Js 9s 7s 5s", t.FLUSHES),
        ("3s 2d Ks Js 9s 7s", t.FLUSHES + 1),
        ("Qs 2d Ks Js 9s 7s", t.FLUSHES + 2),
        ("As 2d Ks Js 9s 7s", t.FLUSHES + 3),
        ("Ad Kd 9h 9s 9c 4c 4d", t.FULL_HOUSES),
        ("4s 2d 9h 9s 4h 4d", t.FULL_HOUSES + 1),
        ("9c 2d 9h 9s 4h 4d", t.FULL_HOUSES + 2),
        ("Ad Kd 9h 9s 9c 9d 4d", t.BEST),
        ("9d Kd 9h 9s 9c 4d", t.BEST + 1),
        ("2h 2d 9s 8s 7s 6s 5s", t.BEST + 2),
        ("2h Ts 9s 8s 7s 6s 5s", t.BEST + 3),
    ],
)
def test_made_hands(hand: str, made: int) -> None:
    assert t.made_hand(cards_of(hand), 13, 4) == made


@pytest.mark.parametrize(
    ("hand", "straight", "flush"),
    [
        ("7c 2d Kh Qs 9c", 0, 0),
        ("9c 8d 7h 6s 2c", 2, 0),
        ("Ac Kd Qh Js 2c", 1, 0),
        ("Ac 2d 3h 4s 9c", 1, 0),
        ("9c 7d Jh 8s 5c", 2, 0),
        ("Ah Kh 7h 2h 9c", 0, 1),
        ("Th 9h 8h 7h 2c", 2, 1),
        ("2c 3d 9h 8s 7h 6d", 0, 0),  # a draw of the board alone
    ],
)
def test_draws(hand: str, straight: int, flush: int) -> None:
    assert t.draws(cards_of(hand), 4) == 2 * straight + flush


@pytest.mark.parametrize(
    ("board", "classes"),
    [
        ("Kh 7s 2c", (0, 0, 0)),
        ("Kh 7h 2c", (0, 1, 0)),
        ("Kh 7h 2h", (0, 2, 0)),
        ("9h 8s 7c", (0, 0, 1)),
        ("9h 8s 7c 6d", (0, 0, 2)),
        ("Kh Ks 2c", (1, 0, 0)),
        ("Kh Ks 2c 2d", (2, 0, 0)),
        ("Kh Ks Kc", (2, 0, 0)),
        ("Kh 7h 2h 3c", (0, 1, 0)),
        ("Ah 7h 2h 3c 4d", (0, 1, 2)),
    ],
)
def test_board_textures(board: str, classes: tuple[int, int, int]) -> None:
    doubles, suited, near = classes
    assert t.texture(cards_of(board), 4) == (doubles * 3 + suited) * 3 + near


def test_other_games_and_cards_are_refused() -> None:
    with pytest.raises(GameError, match="hands of two cards, but leduc deals 1"):
        TextureBuckets(PRESETS["leduc"])
    texture, hand = TextureBuckets(HULH), np.zeros((1, 2), np.uint8)
    with pytest.raises(GameError, match="Round 1 of hulh shows 2 hole and 3 board cards"):
        texture.buckets(1, hand, np.zeros((1, 4), np.uint8))
    with pytest.raises(GameError, match="shapes"):
        texture.buckets(1, hand, np.zeros((2, 3), np.uint8))
    with pytest.raises(GameError, match="cards 0 to 51, but the arrays hold 52"):
        texture.buckets(0, hand + 52, np.zeros((1, 0), np.uint8))


def test_listed_games_are_solved_with_texture_buckets_too() -> None:
    game = load_game("fhp-mini")
    settings = tabular("mccfr", 20, abstraction=t.TEXTURE, traversals=300)
    solver = finished(build_solver(game, settings))
    policy = solver.average_policy()
    assert isinstance(policy, AbstractPolicy)
    assert isinstance(solver, MCCFR)
    assert exploitability(policy).nash_conv < 0.8 * exploitability(UniformPolicy(game)).nash_conv
    assert solver.arrays()["regret"].size == table_layout(game.tree, TextureBuckets(game.rules).counts).size
