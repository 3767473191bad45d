"""Buckets of hands: for every round a table from (board, hand) to a bucket, the same for all renamings of suits.

A board is a *set* of cards: the order of its cards and the buckets of earlier rounds are forgotten. So abstractions of
games with several board rounds have imperfect recall (Waugh, Zinkevich, Johanson, Kan, Schnizlein and Bowling, SARA 2009,
"A practical use of imperfect recall").
"""

from __future__ import annotations

from dataclasses import dataclass
from math import comb

import numpy as np
import numpy.typing as npt

from deepcfr.compiled import nb
from deepcfr.errors import GameError
from deepcfr.games.board_index import (
    BoardIndex,
    binomials,
    board_index,
    canonical_hands,
    count_classes,
    hand_images,
    hand_number,
    set_rank,
)
from deepcfr.games.cards import all_hands, suit_permutations
from deepcfr.games.rules import PokerRules
from deepcfr.types import Cards, Ints

_BLOCK = 256  # rows looked up together
MOST_CLASSES = 20_000_000  # most buckets in a round of a lossless abstraction


@dataclass(frozen=True)
class Abstraction:
    """The bucket of every hand on every board of a game.

    `tables[r][c, h]` is the bucket in round r of hand h (in the order of `games.cards.all_hands`) on representative c of
    the `BoardIndex` of all board cards seen so far. Hands that differ only by a renaming of suits that keeps the board
    are in one bucket.
    """

    rules: PokerRules
    counts: tuple[int, ...]  # buckets of each round, numbered from 0
    tables: tuple[
        npt.NDArray[np.unsignedinteger], ...
    ]  # [board classes, H]; the dtype's maximum where hand and board share a card

    def buckets(self, round_: int, holes: Cards, boards: Cards) -> Ints:
        """The bucket of every hand on its board, int64 [M]; undefined where hand and board share a card.

        `holes` is uint8 [M, hole cards] and `boards` uint8 [M, n], all board cards so far; both in any order and any suits.
        Raises GameError for an unknown round, and for a wrong number of cards or cards outside the deck.
        """
        check_cards(self.rules, round_, holes, boards)
        index = round_boards(self.rules, round_)
        return _buckets(
            np.ascontiguousarray(holes, np.uint8),
            np.ascontiguousarray(boards, np.uint8),
            index.class_of,
            index.permutation_of,
            suit_permutations(self.rules.num_ranks, self.rules.num_suits),
            binomials(self.rules.num_cards, max(boards.shape[1], self.rules.hole_cards)),
            self.tables[round_],
        )


def round_boards(rules: PokerRules, round_: int) -> BoardIndex:
    """The index of the boards that are visible in a round."""
    return board_index(rules.num_ranks, rules.num_suits, sum(rules.board_cards[: round_ + 1]))


def round_classes(rules: PokerRules, round_: int) -> int:
    """The number of hands of a round that differ by more than suits: classes of (hole, board as a set)."""
    seen = sum(rules.board_cards[: round_ + 1])
    return count_classes(rules.num_ranks, rules.num_suits, (rules.hole_cards, seen))


def lossless(rules: PokerRules) -> Abstraction:
    """The abstraction in which every canonical (hole, board as a set) is its own bucket.

    Buckets are numbered by board class, then by the lowest hand number in the class of hands. Raises GameError if a round
    has more than 20 million of them.
    """
    counts = tuple(round_classes(rules, round_) for round_ in range(rules.num_rounds))
    if max(counts) > MOST_CLASSES:
        raise GameError(
            f"Round {counts.index(max(counts)) + 1} of {rules.name} has {max(counts):,} distinct hands, and a lossless "
            f"abstraction numbers at most {MOST_CLASSES:,}: ask for fewer buckets instead."
        )
    return Abstraction(rules, counts, tuple(lossless_table(rules, round_) for round_ in range(rules.num_rounds)))


def lossless_table(rules: PokerRules, round_: int) -> npt.NDArray[np.unsignedinteger]:
    """The table of one round of `lossless`."""
    dtype = bucket_dtype(round_classes(rules, round_))
    index = round_boards(rules, round_)
    holes = all_hands(rules.num_cards, rules.hole_cards)
    table = np.full((len(index), len(holes)), np.iinfo(dtype).max, dtype)
    _number_hands(
        index.boards,
        holes,
        suit_permutations(rules.num_ranks, rules.num_suits),
        hand_images(rules.num_ranks, rules.num_suits, rules.hole_cards),
        table,
    )
    return table


def bucket_dtype(count: int) -> type[np.unsignedinteger]:
    """The smallest unsigned type for `count` buckets and the value of impossible hands."""
    for dtype in (np.uint8, np.uint16, np.uint32):
        if count <= np.iinfo(dtype).max:
            return dtype
    return np.uint64


def table_bytes(rules: PokerRules, counts: tuple[int, ...]) -> int:
    """Bytes of the tables of an abstraction with `counts` buckets, without making them."""
    hands = comb(rules.num_cards, rules.hole_cards)
    return sum(
        len(round_boards(rules, round_)) * hands * np.dtype(bucket_dtype(count)).itemsize
        for round_, count in enumerate(counts)
    )


def check_cards(rules: PokerRules, round_: int, holes: Cards, boards: Cards) -> None:
    """Raise GameError unless uint8 holes [M, hole cards] and boards [M, n] are of the round, and of the game's deck."""
    if not 0 <= round_ < rules.num_rounds:
        raise GameError(f"{rules.name} has rounds 0 to {rules.num_rounds - 1}, and round {round_} was asked for.")
    seen = sum(rules.board_cards[: round_ + 1])
    if holes.shape[1:] != (rules.hole_cards,) or boards.shape[1:] != (seen,) or len(holes) != len(boards):
        raise GameError(
            f"Round {round_} of {rules.name} shows {rules.hole_cards} hole and {seen} board cards, but the arrays have "
            f"shapes {list(holes.shape)} and {list(boards.shape)}."
        )
    highest = max(int(cards.max()) if cards.size else 0 for cards in (holes, boards))
    if highest >= rules.num_cards:
        raise GameError(f"{rules.name} has cards 0 to {rules.num_cards - 1}, but the arrays hold {highest}.")


@nb.njit(cache=True, nogil=True)
def _buckets(
    holes: Cards,
    boards: Cards,
    class_of: npt.NDArray[np.int32],
    permutation_of: Cards,
    renamings: Cards,
    table: Ints,
    bucket: npt.NDArray[np.unsignedinteger],
) -> Ints:
    """Look up rows in blocks, one step for all rows of a block at a time, so that their cache misses overlap."""
    count, held = holes.shape
    result = np.empty(count, np.int64)
    rank = np.empty(_BLOCK, np.int64)
    hand = np.empty(held, np.uint8)
    for start in range(0, count, _BLOCK):
        rows = min(_BLOCK, count - start)
        for i in range(rows):
            rank[i] = set_rank(boards[start + i], table)
        for i in range(rows):
            renaming = permutation_of[rank[i]]
            for slot in range(held):
                hand[slot] = renamings[renaming, holes[start + i, slot]]
            result[start + i] = hand_number(hand, table)
            rank[i] = class_of[rank[i]]
        for i in range(rows):
            result[start + i] = bucket[rank[i], result[start + i]]
    return result


@nb.njit(cache=True, nogil=True)
def _number_hands(
    boards: Cards,
    holes: Cards,
    renamings: Cards,
    images: npt.NDArray[np.int32],
    table: npt.NDArray[np.unsignedinteger],
) -> None:
    number = 0
    lowest = np.empty(len(holes), np.int32)
    for c in range(len(boards)):
        canonical_hands(boards[c], holes, renamings, images, lowest)
        for h in range(len(holes)):
            if lowest[h] == h:
                table[c, h] = number
                number += 1
            elif lowest[h] >= 0:
                table[c, h] = table[c, lowest[h]]
