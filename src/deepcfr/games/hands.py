"""Poker hand ranking for decks of up to 13 ranks and 4 suits, in numba.

A hand of one to seven cards is four suit masks of rank bits. A few Boolean operations count equal ranks. Tables over the
8,192 rank masks give straights, best bits and bit counts. So one function ranks five and seven cards of 52, whole boards,
and the one- and two-card hands of Kuhn and Leduc (a pair beats a high card). Straights and flushes take five cards. The
wheel needs an ace, so it exists only with 13 ranks.

A strength is an integer: the higher one wins, equal ones tie. Its bits from the top: category (4 bits), then up to five
ranks (4 bits each).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from deepcfr.compiled import nb
from deepcfr.games.rules import PokerRules

MAX_HAND = 7  # the most cards that a hand is chosen from
HIGH_CARD, PAIR, TWO_PAIR, TRIPS, STRAIGHT, FLUSH, FULL_HOUSE, QUADS, STRAIGHT_FLUSH = range(9)


def hand_problem(rules: PokerRules) -> str | None:
    """The reason why the hands of a game cannot be ranked; None if they can."""
    seen = rules.hole_cards + sum(rules.board_cards)
    if seen <= MAX_HAND:
        return None
    return f"{rules.name} shows a player {seen} cards, and hands of at most {MAX_HAND} can be ranked."


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


@nb.njit(cache=True, nogil=True)
def count_bits(bits: int) -> int:
    """Count the bits that are set in a non-negative number."""
    count = 0
    while bits:
        bits &= bits - 1
        count += 1
    return count


@nb.njit(cache=True, inline="always")
def _top(mask: int) -> int:
    """The highest rank in a non-empty mask."""
    return _PACKED[mask] >> 16


@nb.njit(cache=True)
def _strength_of_ranks(once: int, twice: int, thrice: int, quads: int) -> int:
    """The strength without flushes of the best hand, from the masks of the ranks held at least once, twice, ..."""
    if quads:
        rank = _top(quads)
        kicker = once & ~(1 << rank)
        return (QUADS << 20) | (rank << 16) | (((_top(kicker) + 1) << 12) if kicker else 0)
    if thrice:
        rank = _top(thrice)
        rest = twice & ~(1 << rank)
        if rest:
            return (FULL_HOUSE << 20) | (rank << 16) | (_top(rest) << 12)
    if _STRAIGHT[once]:
        return (STRAIGHT << 20) | (_STRAIGHT[once] << 16)
    if thrice:
        rank = _top(thrice)
        return (TRIPS << 20) | (rank << 16) | ((_PACKED[once & ~(1 << rank)] >> 12) << 8)
    if not twice:
        return _PACKED[once]
    high = _top(twice)
    rest = twice & ~(1 << high)
    if rest:
        low = _top(rest)
        kicker = once & ~(1 << high) & ~(1 << low)
        return (TWO_PAIR << 20) | (high << 16) | (low << 12) | (((_top(kicker) + 1) << 8) if kicker else 0)
    return (PAIR << 20) | (high << 16) | ((_PACKED[once & ~(1 << high)] >> 8) << 4)


@nb.njit(cache=True)
def _strength_of_suit(mask: int) -> int:
    """The strength of the flush or straight flush in one suit's ranks, 0 with fewer than five of them."""
    if _COUNT[mask] < 5:
        return 0
    if _STRAIGHT[mask]:
        return (STRAIGHT_FLUSH << 20) | (_STRAIGHT[mask] << 16)
    return (FLUSH << 20) | _PACKED[mask]


@nb.njit(cache=True)
def strength_of_masks(a: int, b: int, c: int, d: int) -> int:
    """The strength of the best hand in four suit masks of 1 to 7 rank bits."""
    twice = (a & b) | (c & d) | ((a | b) & (c | d))
    thrice = ((a & b) & (c | d)) | ((c & d) & (a | b))
    best = _strength_of_ranks(a | b | c | d, twice, thrice, a & b & c & d)
    for mask in (a, b, c, d):
        best = max(best, _strength_of_suit(mask))
    return best


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
    rank_of = np.arange(13 * num_suits) // num_suits  # to divide for every hand takes longer than all the rest
    board_suits, taken = np.zeros(num_suits, np.int64), 0
    board_once = board_twice = board_thrice = board_quads = 0
    for card in board:
        bit = 1 << rank_of[card]
        board_suits[card % num_suits] |= bit
        taken |= 1 << int(card)
        board_quads |= board_thrice & bit
        board_thrice |= board_twice & bit
        board_twice |= board_once & bit
        board_once |= bit
    few = len(holes) < 13**held
    known = np.full(1 if few else 13**held, -1, np.int32)  # strengths without flushes by the ranks of a hand
    result = np.empty(len(holes), np.int32)
    for row in range(len(holes)):
        place, dead = 0, False
        for slot in range(held):
            card = int(holes[row, slot])
            place = 13 * place + rank_of[card]
            dead = dead or (taken >> card) & 1 == 1
        place = 0 if few else place
        if few or known[place] < 0:
            once, twice, thrice, quads = board_once, board_twice, board_thrice, board_quads
            for slot in range(held):
                bit = 1 << rank_of[holes[row, slot]]
                quads |= thrice & bit
                thrice |= twice & bit
                twice |= once & bit
                once |= bit
            known[place] = _strength_of_ranks(once, twice, thrice, quads)
        result[row] = -1 if dead else known[place]
    for suit in range(num_suits):
        mask = board_suits[suit]
        if _COUNT[mask] + held >= 5:
            for row in range(len(holes)):
                whole = mask
                for slot in range(held):
                    card = int(holes[row, slot])
                    whole |= (1 << rank_of[card]) * (card - rank_of[card] * num_suits == suit)
                if result[row] >= 0:
                    result[row] = max(result[row], _strength_of_suit(whole))
    return result
