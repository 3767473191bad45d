"""Tables of exact hand strengths, given the cards that the holder sees; features for networks.

A table has four numbers between 0 and 1 for every hand on every board (see `STRENGTHS`). On a full board they are
counts over the opposing hands that share no card with the hand or the board: the *rank percentile* (the share that the
hand beats, ties count half) against three nested ranges of opposing hands, and the share that it ties with. Before the
last board card they are means over the cards to come, so the first number is always the expected hand strength.

The ranges are all hands and the best half and quarter of them, ordered by strength before any board card. Nothing is
sampled: a board's numbers are the mean over each next card, starting from full boards.

Before the last board card eight further numbers describe the distribution of the percentile on the full board, which
distinguishes a draw from a made hand: means of `hats` of the percentile, a soft histogram.

The table holds one board of each class under renaming of suits. A look-up computes the board's number, gets its class
and renaming, and renames the hand: a few gathers, on any device.

Making a large table takes one to two minutes on all cores, so it is kept in a file, which later programs map into
memory: they start at once and share its pages.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial
from math import comb
from threading import Lock

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from deepcfr.core.errors import ConfigError
from deepcfr.core.files import kept_arrays
from deepcfr.core.parallel import Workers
from deepcfr.core.types import Bools, Cards, Numbers, Points
from deepcfr.game.board_index import BoardIndex, binomials, board_index, count_classes, hand_images
from deepcfr.game.cards import all_hands
from deepcfr.game.hands import UNIT, fill_from_next, fill_full_boards

STRENGTHS = ("percentile", "percentile against the better half", "percentile against the better quarter", "ties")
SHARES = (1, 2, 4)  # a range is the best 1 / share of all hands
SPREAD = 8  # hats of the percentile; their means describe its distribution over the cards to come
_STRETCH = 256  # boards that a thread takes at a time
MOST_BYTES = 2 << 30  # of a table; hold'em with five board cards takes 1.6e9
KEPT_BYTES = 100_000_000  # tables from this size on are kept in files
_FORM = 1  # of such files; what changes their contents needs another number


@dataclass(frozen=True)
class StrengthTables:
    """Arrays of a look-up, shared by all networks on a device; V board slots, h hole cards.

    A *set* is of 0 to V board cards; smaller ones come first, then the order is colexicographic.
    """

    place: torch.Tensor  # int32 [V * (num_cards + 1)], the addend of each card as the i-th lowest of its set
    first: torch.Tensor  # int32 [sets], the first row of the set's class in `values`
    renaming: torch.Tensor  # int32 [sets], the offset in `hand` of the renaming from the set to its representative
    hand: torch.Tensor  # int32 [num_suits! * (num_cards + 1)^h], number of the renamed hand; cards are digits
    values: torch.Tensor  # int16 [classes * H, 4], strengths in UNIT; the bits are those of a uint16
    spread: torch.Tensor | None  # int16 [classes of shorter boards * H, SPREAD], in the same form; optional
    num_cards: int
    hole_cards: int

    def to(self, device: str) -> StrengthTables:
        moved = {name: getattr(self, name).to(device) for name in _TENSORS}
        return replace(self, **moved, spread=None if self.spread is None else self.spread.to(device))


_TENSORS = ("place", "first", "renaming", "hand", "values")


class HandStrengths(nn.Module):
    """Module without parameters: visible cards, uint8 [I, C], to strengths, float32 [I, 4]."""

    place: torch.Tensor
    first: torch.Tensor
    renaming: torch.Tensor
    hand: torch.Tensor
    values: torch.Tensor
    spread: torch.Tensor | None
    centre: torch.Tensor

    def __init__(self, tables: StrengthTables) -> None:
        super().__init__()
        for name in _TENSORS:
            self.register_buffer(name, getattr(tables, name), persistent=False)
        self.register_buffer("spread", tables.spread, persistent=False)
        centre = torch.arange(SPREAD, dtype=torch.float32, device=tables.values.device)
        self.register_buffer("centre", centre, persistent=False)
        self.num_cards, self.hole_cards = tables.num_cards, tables.hole_cards

    def forward(self, cards: torch.Tensor) -> torch.Tensor:
        """The result does not depend on suits or on the order of board cards."""
        return _share(self.values[self._rows(cards)])

    def with_spread(self, cards: torch.Tensor) -> torch.Tensor:
        """Strengths and the distribution of the first one, float32 [I, 4 + SPREAD]; on a full board it is one point.

        The tables must have been made with the distribution.
        """
        assert self.spread is not None
        rows = self._rows(cards)
        strength = _share(self.values[rows])
        spread = hats(strength[:, 0], self.centre)
        if len(self.spread):
            short = rows < len(self.spread)
            spread = torch.where(short[:, None], _share(self.spread[rows * short]), spread)
        return torch.cat([strength, spread], dim=1)

    def _rows(self, cards: torch.Tensor) -> torch.Tensor:
        digits = self.num_cards + 1
        seen = cards.int().clamp_(max=self.num_cards)
        hole, board = seen[:, : self.hole_cards], seen[:, self.hole_cards :].sort(1).values
        slot = torch.arange(board.shape[1], device=cards.device, dtype=torch.int32)
        number = self.place[board + slot * digits].sum(1, dtype=torch.int32)
        entry = self.renaming[number]
        for i in range(self.hole_cards):
            entry = entry + hole[:, i] * digits**i
        return self.first[number] + self.hand[entry]


def _share(bits: torch.Tensor) -> torch.Tensor:
    return (bits.int() & UNIT).float() / UNIT


def hats(x: torch.Tensor, centre: torch.Tensor) -> torch.Tensor:
    """A bank of n overlapping hat functions of numbers between 0 and 1, [..., n]; `centre` is 0 .. n - 1.

    The centres are the Chebyshev points (1 - cos(pi k / (n - 1))) / 2: dense near 0 and 1, where small differences of
    rank change the best play. Between two centres one hat falls as the next one rises, so they sum to 1.
    """
    place = torch.acos(1 - 2 * x) * ((len(centre) - 1) / torch.pi)  # on this scale the centres are 0, 1, 2, ...
    return (place[..., None] - centre).abs_().neg_().add_(1).clamp_(min=0)


def has_spread(card_groups: tuple[int, ...]) -> bool:
    """Whether networks see how strength is spread over the cards to come: in games of several boards."""
    return len(card_groups) > 2


def strength_tables(
    card_groups: tuple[int, ...], num_ranks: int, num_suits: int, device: str = "cpu", spread: bool = False
) -> StrengthTables:
    """Tables of all games that deal `card_groups` (the hole, then the board) from such a deck; made once and shared.

    Raises ConfigError for games without cards or with more than two hole cards, and if the table would be too large.
    """
    if not card_groups:
        raise ConfigError("'network.strength' needs a game with cards, and this one has none that a network could see.")
    if card_groups[0] > 2:
        raise ConfigError(f"'network.strength' needs hands of one or two cards, but this game deals {card_groups[0]}.")
    size = table_bytes(card_groups, num_ranks, num_suits, spread)
    if size > MOST_BYTES:
        raise ConfigError(
            f"'network.strength' needs a table of {size / 1e6:,.0f} MB in this game, and at most "
            f"{MOST_BYTES / 1e6:,.0f} MB are allowed."
        )
    with _lock:
        return _on_device(card_groups[0], sum(card_groups[1:]), num_ranks, num_suits, device, spread)


_lock = Lock()  # threads that need a table at the same time wait for one of them to make it


@cache
def table_bytes(card_groups: tuple[int, ...], num_ranks: int, num_suits: int, spread: bool = False) -> int:
    """Bytes of the table of strengths, without making it."""
    boards = [count_classes(num_ranks, num_suits, (size,)) for size in range(sum(card_groups[1:]) + 1)]
    numbers = sum(boards) * len(STRENGTHS) + (sum(boards[:-1]) * SPREAD if spread else 0)
    return numbers * comb(num_ranks * num_suits, card_groups[0]) * np.dtype(np.uint16).itemsize


@cache
def _on_device(
    hole_cards: int, board_cards: int, num_ranks: int, num_suits: int, device: str, spread: bool
) -> StrengthTables:
    deck = (hole_cards, board_cards, num_ranks, num_suits)
    if device != "cpu":
        return _on_device(*deck, "cpu", spread).to(device)
    num_cards, hands = num_ranks * num_suits, comb(num_ranks * num_suits, hole_cards)
    if spread:
        tables = _on_device(*deck, "cpu", False)

        def make_spread() -> dict[str, torch.Tensor]:
            points = tables.values.numpy().view(np.uint16)
            return {"spread": torch.from_numpy(_spread(_indices(*deck[1:]), hole_cards, points).view(np.int16))}

        return replace(tables, spread=_kept("spread", deck, make_spread)["spread"])

    def make() -> dict[str, torch.Tensor]:
        indices = _indices(*deck[1:])
        values, starts = _levels(indices, hole_cards, _ranges(indices, hole_cards))
        digits = (num_cards + 1) ** hole_cards
        return {
            "place": torch.from_numpy(_places(num_cards, board_cards)),
            "first": _joined([start + index.class_of * hands for start, index in zip(starts, indices, strict=True)]),
            "renaming": _joined([index.permutation_of.astype(np.int64) * digits for index in indices]),
            "hand": torch.from_numpy(_hand_digits(num_ranks, num_suits, hole_cards)),
            "values": torch.from_numpy(values.view(np.int16)),
        }

    return StrengthTables(**_kept("strengths", deck, make), spread=None, num_cards=num_cards, hole_cards=hole_cards)


def _indices(board_cards: int, num_ranks: int, num_suits: int) -> list[BoardIndex]:
    return [board_index(num_ranks, num_suits, size) for size in range(board_cards + 1)]


def _kept(
    name: str, deck: tuple[int, int, int, int], make: Callable[[], dict[str, torch.Tensor]]
) -> dict[str, torch.Tensor]:
    """The arrays that `make` returns, if they are large from their file, and in it afterwards."""
    hole_cards, board_cards, num_ranks, num_suits = deck
    if table_bytes((hole_cards, board_cards), num_ranks, num_suits) < KEPT_BYTES:
        return make()
    return kept_arrays(f"{name}-{_FORM}-{'-'.join(map(str, deck))}", "The table of hand strengths", make)


def _joined(parts: list[npt.NDArray[np.int64]]) -> torch.Tensor:
    return torch.from_numpy(np.concatenate(parts).astype(np.int32))


def _places(num_cards: int, board_cards: int) -> Numbers:
    """The number that card c adds to a set's number as its i-th lowest card, int32 [board_cards * (num_cards + 1)].

    It is C(c, i + 1), so the sum is the colexicographic rank, plus the number of sets of i cards; summed over the
    cards, the second part counts all smaller sets, which come first.
    """
    places = np.zeros((board_cards, num_cards + 1), np.int32)
    for i in range(board_cards):
        places[i, :num_cards] = [comb(card, i + 1) + comb(num_cards, i) for card in range(num_cards)]
    return places.reshape(-1)


def _hand_digits(num_ranks: int, num_suits: int, hole_cards: int) -> Numbers:
    """The number of every hand after every renaming, by the hand's cards in any order; 0 for impossible hands."""
    num_cards = num_ranks * num_suits
    holes, images = all_hands(num_cards, hole_cards), hand_images(num_ranks, num_suits, hole_cards)
    table = np.zeros((len(images), *(num_cards + 1,) * hole_cards), np.int32)
    if hole_cards == 1:
        table[:, holes[:, 0]] = images
    else:
        table[:, holes[:, 0], holes[:, 1]] = images
        table[:, holes[:, 1], holes[:, 0]] = images
    return table.reshape(-1)


def _ranges(indices: list[BoardIndex], hole_cards: int) -> Bools:
    """Whether each hand belongs to each range, bool [H, ranges]; hands that tie with a range's last hand belong to it."""
    everyone = np.ones((comb(indices[0].num_ranks * indices[0].num_suits, hole_cards), 1), np.bool_)
    start = _levels(indices, hole_cards, everyone)[0][: len(everyone), 0]  # before any board card
    best_first = np.sort(start)[::-1]
    return np.stack([start >= best_first[-(-len(start) // share) - 1] for share in SHARES], axis=1)


def _levels(indices: list[BoardIndex], hole_cards: int, member: Bools) -> tuple[Points, npt.NDArray[np.int64]]:
    """The strengths of all hands on all classes of boards, [classes * H, ranges + 1], and the first row of each size."""
    ranks, suits = indices[0].num_ranks, indices[0].num_suits
    holes = all_hands(ranks * suits, hole_cards)
    whole, tables = _blank(indices, len(holes), member.shape[1] + 1)

    def full(boards: Cards, out: Points) -> None:
        fill_full_boards(boards, holes, suits, ranks * suits, member, out)

    with Workers(os.cpu_count() or 1) as workers:
        _fill(workers, indices[-1].boards, tables[-1], full)
        _fill_backwards(workers, indices, holes, tables, np.zeros((0, 0), np.uint16))
    return whole, np.cumsum([0, *map(len, tables[:-1])])


def _spread(indices: list[BoardIndex], hole_cards: int, strengths: Points) -> Points:
    """Means of the hats of the percentile on full boards, [classes of shorter boards * H, SPREAD].

    `strengths` are those of all hands on all classes of boards, of which full ones come last.
    """
    holes = all_hands(indices[0].num_ranks * indices[0].num_suits, hole_cards)
    whole, tables = _blank(indices[:-1], len(holes), SPREAD)
    percentiles = torch.arange(UNIT + 1) / UNIT
    of_percentile = hats(percentiles, torch.arange(SPREAD, dtype=torch.float32)) * UNIT
    with Workers(os.cpu_count() or 1) as workers:
        tables.append(strengths[len(whole) :])
        _fill_backwards(workers, indices, holes, tables, of_percentile.round().numpy().astype(np.uint16))
    return whole


def _blank(indices: list[BoardIndex], hands: int, numbers: int) -> tuple[Points, list[Points]]:
    """An empty table of all hands on the boards of several sizes, and a canonical hand of it for each size."""
    ends = np.cumsum([len(index) * hands for index in indices])
    whole = np.zeros((sum(len(index) for index in indices) * hands, numbers), np.uint16)
    return whole, np.split(whole, ends[:-1]) if indices else []


def _fill(workers: Workers, boards: Cards, out: Points, work: Callable[[Cards, Points], None]) -> None:
    """Fill `out` [boards * H, ...] by stretches of boards."""
    hands = len(out) // len(boards)

    def stretch(start: int) -> None:
        work(boards[start : start + _STRETCH], out[start * hands : (start + _STRETCH) * hands])

    for _ in workers.map(stretch, range(0, len(boards), _STRETCH)):
        pass


def _fill_backwards(
    workers: Workers, indices: list[BoardIndex], holes: Cards, tables: list[Points], of_percentile: Points
) -> None:
    """Fill the tables of shorter boards by means over the next card, starting from full boards.

    `of_percentile` [UNIT + 1, F], unless empty, maps percentiles, which are the table of full boards, to numbers.
    """
    ranks, suits = indices[0].num_ranks, indices[0].num_suits
    images, none = hand_images(ranks, suits, holes.shape[1]), of_percentile[:0]

    def shorter(boards: Cards, out: Points, size: int) -> None:
        after, table = indices[size + 1], binomials(ranks * suits, size + 1)
        numbers = of_percentile if size + 2 == len(indices) else none
        fill_from_next(
            boards, holes, images, table, after.class_of, after.permutation_of, tables[size + 1], numbers, out
        )

    for size in range(len(indices) - 2, -1, -1):
        _fill(workers, indices[size].boards, tables[size], partial(shorter, size=size))
