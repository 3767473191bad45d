"""Hand strengths: brute force over runouts and opponents, the features of abstractions, symmetry, refusals."""

from concurrent.futures import ThreadPoolExecutor
from itertools import combinations, permutations
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
import torch

from deepcfr.buckets.features import STARTING, hands_on, showdowns, strength_features
from deepcfr.core.errors import ConfigError
from deepcfr.core.parallel import Workers
from deepcfr.core.types import NO_CARD
from deepcfr.game import strength as strength_module
from deepcfr.game.cards import all_hands, canonical_cards, suit_permutations
from deepcfr.game.hands import UNIT, strengths
from deepcfr.game.presets import load_rules
from deepcfr.game.strength import (
    SHARES,
    SPREAD,
    STRENGTHS,
    HandStrengths,
    StrengthTables,
    hats,
    strength_tables,
    table_bytes,
)

FHP = load_rules("fhp")
STEP = 1 / UNIT  # of the table's entries

Hand = tuple[int, ...]
Table = dict[tuple[Hand, Hand], npt.NDArray[np.float64]]  # [4] for a hand and a board

# groups, ranks, suits: two cards with runouts; all at once; one card; no board; one suit; too few cards for an opponent
DECKS = [((2, 1, 1), 4, 2), ((2, 3), 4, 2), ((1, 1), 3, 2), ((1,), 3, 1), ((2, 1), 6, 1), ((2, 1), 2, 2)]


def looked_up(groups: tuple[int, ...], ranks: int, suits: int, cards: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Strengths of rows of cards, which are filled up with unseen ones, [I, 4]."""
    given = np.array(cards, np.uint8)
    rows = np.full((len(given), sum(groups)), NO_CARD, np.uint8)
    rows[:, : given.shape[1]] = given
    found: npt.NDArray[np.float64] = (
        HandStrengths(strength_tables(groups, ranks, suits))(torch.from_numpy(rows)).double().numpy()
    )
    return found


def full_board(hand: Hand, board: Hand, ranges: list[set[Hand]], ranks: int, suits: int) -> npt.NDArray[np.float64]:
    """The definition on a full board, by ranking every opposing hand."""
    rest = [card for card in range(ranks * suits) if card not in hand + board]
    others = list(combinations(rest, len(hand)))
    mine = strengths(np.array([hand + board], np.uint8), suits)[0]
    if not others:
        return np.array([0.5] * len(ranges) + [0])
    theirs = strengths(np.array([other + board for other in others], np.uint8), suits)
    points = (theirs < mine) + 0.5 * (theirs == mine)
    result = []
    for within in ranges:
        chosen = [i for i, other in enumerate(others) if other in within]
        result.append(points[chosen].mean() if chosen else points.mean())
    return np.array([*result, (theirs == mine).mean()])


def brute_force(hands: list[Hand], ranges: list[set[Hand]], size: int, ranks: int, suits: int) -> Table:
    """The strengths of all hands on all boards of up to `size` cards, each as the mean over full boards that hold it."""
    deck = range(ranks * suits)
    ends = {
        (hand, board): full_board(hand, board, ranges, ranks, suits)
        for board in combinations(deck, size)
        for hand in hands
        if not set(hand) & set(board)
    }
    found: dict[tuple[Hand, Hand], list[npt.NDArray[np.float64]]] = {}
    for (hand, board), strength in ends.items():
        for seen in range(size + 1):
            for part in combinations(board, seen):
                found.setdefault((hand, part), []).append(strength)
    return {situation: np.mean(every, axis=0) for situation, every in found.items()}


@pytest.mark.parametrize("groups, ranks, suits", DECKS)
def test_small_decks_equal_brute_force_on_every_board(groups: tuple[int, ...], ranks: int, suits: int) -> None:
    hands, size = list(combinations(range(ranks * suits), groups[0])), sum(groups[1:])
    everyone = brute_force(hands, [set(hands)], size, ranks, suits)
    start = {hand: everyone[hand, ()][0] for hand in hands}
    best_first = sorted(start.values(), reverse=True)
    least = [best_first[-(-len(hands) // share) - 1] - 1e-4 for share in SHARES]
    ranges = [{hand for hand in hands if start[hand] >= limit} for limit in least]
    right = brute_force(hands, ranges, size, ranks, suits)
    for seen in range(size + 1):
        there = [(hand, board) for hand, board in right if len(board) == seen]
        found = looked_up(groups, ranks, suits, [hand + board for hand, board in there])
        exact = np.array([right[situation] for situation in there])
        np.testing.assert_allclose(found, exact, rtol=0, atol=0.51 * STEP * (1 + size - seen))
    # the spread is the mean of the hats over full boards
    centre = torch.arange(SPREAD, dtype=torch.float32)
    hats_of: dict[tuple[Hand, Hand], list[torch.Tensor]] = {}
    for (hand, board), strength in right.items():
        if len(board) == size:
            up = hats(torch.tensor(strength[0], dtype=torch.float32), centre)
            for seen in range(size + 1):
                for part in combinations(board, seen):
                    hats_of.setdefault((hand, part), []).append(up)
    cards = np.full((len(hats_of), sum(groups)), NO_CARD, np.uint8)
    for row, (hand, board) in zip(cards, hats_of, strict=True):
        row[: len(hand) + len(board)] = hand + board
    tables = strength_tables(groups, ranks, suits, spread=True)
    looked = HandStrengths(tables).with_spread(torch.from_numpy(cards))
    assert torch.equal(looked[:, : len(STRENGTHS)], HandStrengths(tables)(torch.from_numpy(cards)))
    exact = torch.stack([torch.stack(ups).mean(0) for ups in hats_of.values()])
    # near the ends one unit of the table's percentile moves a hat by the square root of it
    torch.testing.assert_close(looked[:, len(STRENGTHS) :], exact, rtol=0, atol=0.01)
    torch.testing.assert_close(looked[:, len(STRENGTHS) :].sum(1), torch.ones(len(cards)), rtol=0, atol=1e-3)


def test_flop_holdem_has_the_strengths_that_abstractions_use() -> None:
    full = showdowns(FHP, Workers(1))
    for round_, classes, error in ((1, np.arange(7, 1755, 397), 0.51 * STEP), (STARTING, np.arange(1), 2.1 * STEP)):
        hands = hands_on(FHP, round_, classes)
        boards = full.index.boards[hands.board] if round_ == 1 else np.empty((len(hands), 0), np.uint8)
        cards = np.concatenate([all_hands(52, 2)[hands.hand], boards], axis=1)
        ehs = strength_features(full, round_, hands).ehs
        np.testing.assert_allclose(looked_up((2, 3), 13, 4, cards)[:, 0], ehs, rtol=0, atol=error)


@pytest.mark.parametrize("groups, ranks, suits", [((2, 3), 13, 4), ((2, 1, 1), 5, 3)])
def test_suits_and_order_change_nothing(groups: tuple[int, ...], ranks: int, suits: int) -> None:
    draw = np.random.default_rng(2)
    cards = np.array([draw.permutation(ranks * suits)[: sum(groups)] for _ in range(300)], np.uint8)
    cards[100:200, groups[0] :] = NO_CARD
    one = looked_up(groups, ranks, suits, cards)
    assert len(np.unique(one[:, 0])) > 20
    assert np.array_equal(one, looked_up(groups, ranks, suits, canonical_cards(cards, groups, suits)))
    for renaming in suit_permutations(ranks, suits):
        renamed = np.where(cards == NO_CARD, NO_CARD, renaming[np.minimum(cards, ranks * suits - 1)])
        assert np.array_equal(one, looked_up(groups, ranks, suits, renamed))
    for order in permutations(range(groups[0], sum(groups))):
        assert np.array_equal(one[:100], looked_up(groups, ranks, suits, cards[:100, [*range(groups[0]), *order]]))
    swapped = [*reversed(range(groups[0])), *range(groups[0], sum(groups))]
    assert np.array_equal(one, looked_up(groups, ranks, suits, cards[:, swapped]))


def test_every_entry_of_a_table_is_told_in_advance_and_tables_are_shared() -> None:
    groups = (2, 2, 1)

    def make(call: int) -> StrengthTables:
        return strength_tables(groups, 4, 3, spread=call > 3)

    with ThreadPoolExecutor(4) as pool:
        tables, spread = (list(pool.map(make, calls)) for calls in (range(4), range(4, 8)))
    assert all(table is spread[0] for table in spread)
    assert spread[0].values is tables[0].values
    assert spread[0].spread is not None
    more = spread[0].spread.numel() * spread[0].spread.element_size()
    assert table_bytes(groups, 4, 3, spread=True) - table_bytes(groups, 4, 3) == more > 0
    assert all(table is tables[0] for table in tables)
    assert tables[0].values.shape[1] == len(STRENGTHS)
    assert table_bytes(groups, 4, 3) == tables[0].values.numel() * tables[0].values.element_size()
    assert strength_tables((2, 3), 4, 3) is strength_tables((2, 3), 4, 3)


def test_what_has_no_table_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    assert table_bytes((2, 3, 1, 1), 13, 4) < strength_module.MOST_BYTES
    monkeypatch.setattr(strength_module, "MOST_BYTES", 20_000_000)
    for deck, sentence in (
        (((2, 3), 13, 4), r"needs a table of 21 MB in this game, and at most 20 MB are allowed\."),
        (((), 0, 0), "needs a game with cards"),
        (((4, 3), 13, 4), "hands of one or two cards, but this game deals 4"),
    ):
        with pytest.raises(ConfigError, match=sentence):
            strength_tables(*deck)


def test_a_large_table_is_made_once_and_kept_in_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    groups, ranks, suits = (2, 2), 5, 3
    whole = strength_tables(groups, ranks, suits, spread=True)
    monkeypatch.setenv("DEEPCFR_CACHE", str(tmp_path / "kept"))
    monkeypatch.setattr(strength_module, "KEPT_BYTES", 1)

    def again() -> None:
        strength_module._on_device.cache_clear()
        found = strength_tables(groups, ranks, suits, spread=True)
        for name in (*strength_module._TENSORS, "spread"):
            assert torch.equal(getattr(found, name), getattr(whole, name))

    def again_without_making_it() -> None:
        with monkeypatch.context() as patch:
            patch.setattr(strength_module, "_indices", pytest.fail)
            again()

    again()
    files = sorted((tmp_path / "kept").iterdir())
    assert [path.name for path in files] == ["spread-1-2-2-5-3.safetensors", "strengths-1-2-2-5-3.safetensors"]
    again_without_making_it()
    for path in files:
        path.write_bytes(path.read_bytes()[:-100])  # damaged
    again()
    again_without_making_it()
    strength_module._on_device.cache_clear()


@pytest.mark.parametrize("folder, reason", [("file/folder", "kept in"), ("~nobody-here/folder", "kept: this user")])
def test_a_table_that_cannot_be_kept_is_made_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, folder: str, reason: str
) -> None:
    (tmp_path / "file").write_text("no folder")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DEEPCFR_CACHE", folder)
    monkeypatch.setattr(strength_module, "KEPT_BYTES", 1)
    strength_module._on_device.cache_clear()
    assert len(strength_tables((2, 2), 5, 3).values)
    assert f"The table of hand strengths cannot be {reason}" in caplog.text
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    strength_module._on_device.cache_clear()
