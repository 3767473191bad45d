"""Poker hand ranking for decks of up to 13 ranks and 4 suits, in numba.

A hand of one to seven cards is four suit masks of rank bits. A few Boolean operations count equal ranks. Tables over the
8,192 rank masks give straights, best bits and bit counts. So one function ranks five and seven cards of 52, whole boards,
and the one- and two-card hands of Kuhn and Leduc (a pair beats a high card). Straights and flushes take five cards. The
wheel needs an ace, so it exists only with 13 ranks.

A strength is an integer: the higher one wins, equal ones tie. Its bits from the top: category (4 bits), then up to five
ranks (4 bits each).
"""

from __future__ import annotations

import numba as nb
import numpy as np
import numpy.typing as npt

MAX_HAND = 7  # the most cards that a hand is chosen from
HIGH_CARD, PAIR, TWO_PAIR, TRIPS, STRAIGHT, FLUSH, FULL_HOUSE, QUADS, STRAIGHT_FLUSH = range(9)


def _mask_tables() -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    """Tables over rank masks: bit count, 1 + top rank of the best straight (0 if none), top five ranks packed."""
    count = np.array([int(mask).bit_count() for mask in range(1 << 13)], np.int32)
    straight = np.zeros(1 << 13, np.int32)
    packed = np.zeros(1 << 13, np.int32)
    for mask in range(1 << 13):
        for low in range(9):
            if (mask >> low) & 31 == 31:
                straight[mask] = low + 5
        if straight[mask] == 0 and mask & 0b1000000001111 == 0b1000000001111:
            straight[mask] = 4
        ranks = [rank for rank in range(12, -1, -1) if mask >> rank & 1][:5]
        packed[mask] = sum(rank << (4 * (4 - place)) for place, rank in enumerate(ranks))
    return count, straight, packed


_COUNT, _STRAIGHT, _PACKED = _mask_tables()


@nb.njit(cache=True, inline="always")
def _top(mask: int) -> int:
    """The highest rank in a non-empty mask."""
    return _PACKED[mask] >> 16


@nb.njit(cache=True)
def strength_of_masks(a: int, b: int, c: int, d: int) -> int:
    """The strength of the best hand in four suit masks of 1 to 7 rank bits."""
    any_suit = a | b | c | d
    flush = 0
    for mask in (a, b, c, d):
        if _COUNT[mask] >= 5:
            flush = mask
    if flush and _STRAIGHT[flush]:
        return (STRAIGHT_FLUSH << 20) | (_STRAIGHT[flush] << 16)
    pairs = (a & b) | (c & d) | ((a | b) & (c | d))  # ranks held at least twice
    if not pairs:
        if flush:
            return (FLUSH << 20) | _PACKED[flush]
        if _STRAIGHT[any_suit]:
            return (STRAIGHT << 20) | (_STRAIGHT[any_suit] << 16)
        return _PACKED[any_suit]
    trips = ((a & b) & (c | d)) | ((c & d) & (a | b))
    quads = a & b & c & d
    if quads:
        rank = _top(quads)
        kicker = any_suit & ~(1 << rank)
        return (QUADS << 20) | (rank << 16) | (((_top(kicker) + 1) << 12) if kicker else 0)
    if trips:
        rank = _top(trips)
        rest = pairs & ~(1 << rank)
        if rest:
            return (FULL_HOUSE << 20) | (rank << 16) | (_top(rest) << 12)
    if flush:
        return (FLUSH << 20) | _PACKED[flush]
    if _STRAIGHT[any_suit]:
        return (STRAIGHT << 20) | (_STRAIGHT[any_suit] << 16)
    if trips:
        rank = _top(trips)
        return (TRIPS << 20) | (rank << 16) | ((_PACKED[any_suit & ~(1 << rank)] >> 12) << 8)
    high = _top(pairs)
    rest = pairs & ~(1 << high)
    if rest:
        low = _top(rest)
        kicker = any_suit & ~(1 << high) & ~(1 << low)
        return (TWO_PAIR << 20) | (high << 16) | (low << 12) | (((_top(kicker) + 1) << 8) if kicker else 0)
    return (PAIR << 20) | (high << 16) | ((_PACKED[any_suit & ~(1 << high)] >> 8) << 4)


@nb.njit(cache=True)
def strength(cards: npt.NDArray[np.uint8], num_suits: int) -> int:
    """The strength of the best hand in `cards`, uint8 [n] with 1 to 7 cards: higher wins, equal ties."""
    a = b = c = d = 0
    for card in cards:
        bit = 1 << (int(card) // num_suits)
        suit = int(card) % num_suits
        if suit == 0:
            a |= bit
        elif suit == 1:
            b |= bit
        elif suit == 2:
            c |= bit
        else:
            d |= bit
    return strength_of_masks(a, b, c, d)


@nb.njit(cache=True, nogil=True)
def strengths(hands: npt.NDArray[np.uint8], num_suits: int) -> npt.NDArray[np.int32]:
    """The strength of each row of `hands`, uint8 [M, n] to int32 [M]."""
    result = np.empty(hands.shape[0], np.int32)
    for row in range(hands.shape[0]):
        result[row] = strength(hands[row], num_suits)
    return result


@nb.njit(cache=True, nogil=True)
def board_strengths(
    holes: npt.NDArray[np.uint8], board: npt.NDArray[np.uint8], num_suits: int
) -> npt.NDArray[np.int32]:
    """The strength of every private hand on one board, int32 [H]; -1 where a hand shares a card with the board.

    `holes` is uint8 [H, hole_cards], `board` uint8 [n].
    """
    held = holes.shape[1]
    cards = np.empty(held + len(board), np.uint8)
    cards[held:] = board
    result = np.empty(holes.shape[0], np.int32)
    for row in range(holes.shape[0]):
        dead = False
        for slot in range(held):
            cards[slot] = holes[row, slot]
            for card in board:
                dead = dead or card == cards[slot]
        result[row] = -1 if dead else strength(cards, num_suits)
    return result
