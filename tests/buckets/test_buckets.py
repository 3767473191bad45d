"""Buckets: lossless ones are the classes under renaming of suits, whatever the suits and the order of cards."""

import numpy as np
import numpy.typing as npt
import pytest

from deepcfr.buckets.buckets import Abstraction, bucket_dtype, lossless, round_boards, round_classes
from deepcfr.core.errors import GameError
from deepcfr.game.cards import all_hands, canonical_cards, pack_cards, suit_permutations
from deepcfr.game.rules import PRESETS, PokerRules

Cards = npt.NDArray[np.uint8]


@pytest.fixture(scope="module")
def flop_holdem() -> Abstraction:
    return lossless(PRESETS["fhp"])


def deals(count: int, num_cards: int, size: int, seed: int = 0) -> Cards:
    order = np.random.default_rng(seed).random((count, num_cards)).argpartition(size, axis=1)
    return order[:, :size].astype(np.uint8)


def check_tables(abstraction: Abstraction) -> None:
    """Every possible hand has a bucket, all buckets are used, and exactly impossible hands are marked."""
    rules = abstraction.rules
    holes = all_hands(rules.num_cards, rules.hole_cards)
    for round_, (count, table) in enumerate(zip(abstraction.counts, abstraction.tables, strict=True)):
        boards = round_boards(rules, round_).boards
        dead = (holes[None, :, :, None] == boards[:, None, None, :]).any(axis=(2, 3))
        assert table.dtype == bucket_dtype(count)
        assert np.array_equal(table == np.iinfo(table.dtype).max, dead)
        assert np.array_equal(np.unique(table[~dead]), np.arange(count))


@pytest.mark.parametrize(("game", "counts"), [("kuhn", (3,)), ("leduc", (3, 15)), ("fhp", (169, 1_286_792))], ids=str)
def test_lossless_buckets_of_the_presets(game: str, counts: tuple[int, ...]) -> None:
    abstraction = lossless(PRESETS[game])
    assert abstraction.counts == counts
    check_tables(abstraction)


def test_lossless_buckets_of_a_game_with_runouts(small: PokerRules) -> None:
    abstraction = lossless(small)
    assert abstraction.counts == tuple(round_classes(small, round_) for round_ in range(3))
    check_tables(abstraction)


def test_lossless_buckets_tell_apart_what_canonical_cards_tell_apart(flop_holdem: Abstraction) -> None:
    cards = deals(50_000, 52, 5)
    buckets = flop_holdem.buckets(1, cards[:, :2], cards[:, 2:])
    forms = pack_cards(canonical_cards(cards, (2, 3), 4))
    pairs = len(np.unique(np.stack([buckets, forms]), axis=1).T)
    assert pairs == len(np.unique(buckets)) == len(np.unique(forms))


def test_later_rounds_forget_when_a_card_came(small: PokerRules) -> None:
    abstraction = lossless(small)
    cards = deals(20_000, 12, 5)
    buckets = abstraction.buckets(2, cards[:, :2], cards[:, 2:])
    forms = pack_cards(canonical_cards(cards, (2, 3), 3))
    pairs = len(np.unique(np.stack([buckets, forms]), axis=1).T)
    assert pairs == abstraction.counts[2] == len(np.unique(forms))


@pytest.mark.parametrize("round_", [0, 1])
def test_buckets_do_not_depend_on_suits_or_order(flop_holdem: Abstraction, round_: int) -> None:
    seen = 3 * round_
    cards = deals(1_000, 52, 2 + seen, seed=round_)
    expected = flop_holdem.buckets(round_, cards[:, :2], cards[:, 2:])
    for renaming in suit_permutations(13, 4):
        renamed = renaming[cards]
        assert np.array_equal(flop_holdem.buckets(round_, renamed[:, 1::-1], renamed[:, :1:-1]), expected)


def test_a_bucket_is_the_table_entry_of_the_representative(small: PokerRules) -> None:
    abstraction = lossless(small)
    holes = all_hands(12, 2)
    for c in (0, 3, len(round_boards(small, 1)) - 1):
        board = round_boards(small, 1).boards[c]
        live = ~np.isin(holes, board).any(axis=1)
        boards = np.tile(board, (int(live.sum()), 1))
        assert np.array_equal(abstraction.buckets(1, holes[live], boards), abstraction.tables[1][c, live])


def test_a_lossless_abstraction_of_texas_holdem_is_refused() -> None:
    with pytest.raises(GameError, match=r"Round 4 of hulh has 123,156,254 distinct hands"):
        lossless(PRESETS["hulh"])


def test_cards_of_another_number_or_deck_are_refused(flop_holdem: Abstraction) -> None:
    hole, board = np.array([[0, 1]], np.uint8), np.array([[2, 3, 4]], np.uint8)
    with pytest.raises(GameError, match="rounds 0 to 1, and round 2"):
        flop_holdem.buckets(2, hole, board)
    with pytest.raises(GameError, match=r"shapes \[1, 2\] and \[1, 2\]"):
        flop_holdem.buckets(1, hole, board[:, :2])
    with pytest.raises(GameError, match="cards 0 to 51, but the arrays hold 255"):
        flop_holdem.buckets(1, hole, np.array([[2, 3, 255]], np.uint8))


@pytest.mark.parametrize(("count", "dtype"), [(1, "uint8"), (255, "uint8"), (256, "uint16"), (65_536, "uint32")])
def test_tables_use_the_smallest_type_that_leaves_room_for_the_mark(count: int, dtype: str) -> None:
    assert np.dtype(bucket_dtype(count)) == dtype
