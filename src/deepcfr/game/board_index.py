"""Numbers for boards: every set of board cards, and its class under renaming of suits.

The *colexicographic rank* of a set of n ascending cards is the sum of C(card_i, i + 1). It needs no table, does not depend
on the size of the deck, and numbers the sets 0 .. C(num_cards, n) - 1. The set of lowest rank represents its class, and
classes are numbered by the ranks of their representatives.

Hands are numbered as in `game.cards.all_hands`, in lexicographic order.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import permutations
from math import comb, factorial

import numpy as np
import numpy.typing as npt

from deepcfr.core.compiled import nb
from deepcfr.core.types import Cards, Ints
from deepcfr.game.cards import all_hands, suit_permutations


@dataclass(frozen=True)
class BoardIndex:
    """Every set of n cards of a deck and its class of boards."""

    num_ranks: int
    num_suits: int
    boards: (
        Cards  # [classes, n], the representatives, cards ascending, in ascending order of their colexicographic rank
    )
    copies: Ints  # [classes], number of sets in the class
    class_of: npt.NDArray[np.int32]  # [C(num_cards, n)], by colexicographic rank
    permutation_of: Cards  # [C(num_cards, n)], row of `suit_permutations` that maps the set to its representative

    def __len__(self) -> int:
        return len(self.boards)


@cache
def board_index(num_ranks: int, num_suits: int, size: int) -> BoardIndex:
    """The index of all boards of `size` cards. A process computes it once and shares it, so its arrays are read-only."""
    renamings = suit_permutations(num_ranks, num_suits)
    count = comb(num_ranks * num_suits, size)
    boards, copies, class_of, permutation_of = _classify(
        renamings, inverse_renamings(num_suits), binomials(num_ranks * num_suits, size), size, count
    )
    for array in (boards, copies, class_of, permutation_of):
        array.flags.writeable = False
    return BoardIndex(num_ranks, num_suits, boards, copies, class_of, permutation_of)


@cache
def binomials(num_cards: int, most: int) -> Ints:
    """C(n, k) for n up to `num_cards` and k up to `most`, int64 [num_cards + 1, most + 1]."""
    table = np.array([[comb(n, k) for k in range(most + 1)] for n in range(num_cards + 1)], np.int64)
    table.flags.writeable = False
    return table


@cache
def hand_images(num_ranks: int, num_suits: int, hole_cards: int) -> npt.NDArray[np.int32]:
    """The number of every hand after each renaming of `suit_permutations`, int32 [num_suits!, H]."""
    holes = all_hands(num_ranks * num_suits, hole_cards)
    table = binomials(num_ranks * num_suits, hole_cards)
    renamings = suit_permutations(num_ranks, num_suits)
    images = np.stack([hand_numbers(renaming[holes], table) for renaming in renamings])
    images.flags.writeable = False
    return images


def count_classes(num_ranks: int, num_suits: int, groups: tuple[int, ...]) -> int:
    """Count the ways to deal disjoint sets of cards of the sizes `groups`, up to a renaming of suits.

    By Burnside's lemma: the mean over renamings of the deals that each one fixes. A renaming with cycle lengths l fixes a
    deal that holds whole cycles only, so in each rank the deals are counted by the product over l of (1 + sum_g x_g^l).
    `(2, 3)` in the 52-card deck gives the 1,286,792 flop hands.
    """
    fixed = 0
    for renaming in permutations(range(num_suits)):
        deals = {tuple(0 for _ in groups): 1}
        for length in _cycle_lengths(renaming) * num_ranks:
            result = dict(deals)
            for sizes, ways in deals.items():
                for group, most in enumerate(groups):
                    if sizes[group] + length <= most:
                        grown = (*sizes[:group], sizes[group] + length, *sizes[group + 1 :])
                        result[grown] = result.get(grown, 0) + ways
            deals = result
        fixed += deals.get(groups, 0)
    return fixed // factorial(num_suits)


def _cycle_lengths(renaming: tuple[int, ...]) -> list[int]:
    lengths, seen = [], set[int]()
    for start in range(len(renaming)):
        suit, length = start, 0
        while suit not in seen:
            seen.add(suit)
            suit, length = renaming[suit], length + 1
        if length:
            lengths.append(length)
    return lengths


def inverse_renamings(num_suits: int) -> Ints:
    """For every renaming of `suit_permutations`, the row of its inverse, int64 [num_suits!]."""
    rows = list(permutations(range(num_suits)))
    return np.array([rows.index(tuple(row.index(suit) for suit in range(num_suits))) for row in rows], np.int64)


@nb.njit(cache=True, nogil=True, inline="always")
def _place(cards: Cards, i: int) -> int:
    """The number of `cards` lower than card i, which is its position in sorted order; without branches."""
    place = 0
    for j in range(len(cards)):
        place += cards[j] < cards[i]
    return place


@nb.njit(cache=True, nogil=True)
def set_rank(cards: Cards, table: Ints) -> int:
    """The colexicographic rank of a set, uint8 [n] in any order; `table` holds the binomials up to n."""
    rank = 0
    for i in range(len(cards)):
        rank += table[cards[i], 1 + _place(cards, i)]
    return rank


@nb.njit(cache=True, nogil=True)
def hand_number(cards: Cards, table: Ints) -> int:
    """The number of a hand, uint8 [h] in any order, among all hands; `table` holds the binomials up to h."""
    num_cards, held = table.shape[0] - 1, len(cards)
    number: int = table[num_cards, held] - 1
    for i in range(held):  # with cards counted from the top of the deck, later hands have lower colexicographic ranks
        number -= table[num_cards - 1 - cards[i], held - _place(cards, i)]
    return number


@nb.njit(cache=True, nogil=True)
def hand_numbers(hands: Cards, table: Ints) -> npt.NDArray[np.int32]:
    """The numbers of hands, uint8 [M, h] in any order, among all hands, int32 [M]; `table` is as in `hand_number`."""
    result = np.empty(len(hands), np.int32)
    for row in range(len(hands)):
        result[row] = hand_number(hands[row], table)
    return result


@nb.njit(cache=True, nogil=True)
def canonical_hands(
    board: Cards, holes: Cards, renamings: Cards, images: npt.NDArray[np.int32], out: npt.NDArray[np.int32]
) -> None:
    """`out[h]` (int32 [H]) = the lowest number among the images of hand h under renamings that fix `board` as a set.

    It is -1 for hands that share a card with the board. `images` is that of `hand_images`.
    """
    on_board = np.zeros(256, np.bool_)
    for card in board:
        on_board[card] = True
    for h in range(len(holes)):
        out[h] = h
        for card in holes[h]:
            if on_board[card]:
                out[h] = -1
    for p in range(1, len(renamings)):
        fixes = True
        for card in board:
            fixes = fixes and on_board[renamings[p, card]]
        if fixes:
            for h in range(len(holes)):
                if out[h] >= 0:
                    out[h] = min(out[h], images[p, h])


@nb.njit(cache=True)
def _next_set(cards: Cards) -> None:
    """Replace an ascending set by the set of the next colexicographic rank."""
    i = 0
    while i + 1 < len(cards) and cards[i] + 1 == cards[i + 1]:
        cards[i] = i
        i += 1
    cards[i] += 1


@nb.njit(cache=True)
def _classify(
    renamings: Cards, inverse: Ints, table: Ints, size: int, count: int
) -> tuple[Cards, Ints, npt.NDArray[np.int32], Cards]:
    """Go through all sets by rank; a set not seen before represents a new class, whose other sets are its images."""
    class_of = np.full(count, -1, np.int32)
    permutation_of = np.zeros(count, np.uint8)
    boards = np.empty((count, size), np.uint8)
    copies = np.empty(count, np.int64)
    board = np.arange(size).astype(np.uint8)
    image = np.empty(size, np.uint8)
    classes = 0
    for rank in range(count):
        if class_of[rank] < 0:
            boards[classes] = board
            copies[classes] = 0
            for p in range(len(renamings)):
                for i in range(size):
                    image[i] = renamings[p, board[i]]
                other = set_rank(image, table)
                if class_of[other] < 0:
                    class_of[other] = classes
                    permutation_of[other] = inverse[p]
                    copies[classes] += 1
            classes += 1
        if rank + 1 < count:
            _next_set(board)
    return boards[:classes].copy(), copies[:classes].copy(), class_of, permutation_of
