"""Poker hand ranking for decks of up to 13 ranks and 4 suits, in numba, and the inner loops of tables of hand strengths.

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

from deepcfr.core.compiled import nb
from deepcfr.core.types import Bools, Cards, Numbers, Points
from deepcfr.game.board_index import set_rank
from deepcfr.game.rules import PokerRules

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
    masks = np.arange(1 << 13, dtype=np.int32)
    straight, packed, taken = np.zeros((3, len(masks)), np.int32)
    straight[masks & 0b1000000001111 == 0b1000000001111] = 4
    for low in range(9):
        straight[masks >> low & 31 == 31] = low + 5
    for rank in range(12, -1, -1):
        found = masks >> rank & (taken < 5)
        packed |= found * rank << 4 * (4 - taken).clip(min=0)
        taken += found
    return np.bitwise_count(masks).astype(np.int32), straight, packed


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


UNIT = 65_535  # table entries are numbers between 0 and 1 in this unit


@nb.njit(cache=True, nogil=True)
def fill_full_boards(boards: Cards, holes: Cards, num_suits: int, num_cards: int, member: Bools, out: Points) -> None:
    """Strengths of all hands on full boards, `out` [boards * H, ranges + 1]; 0 for hands that share a card with the board.

    If no hand of a range is possible, the strength against it is that against all hands, the first range; if no hand at all
    is possible, it is that of a tie.
    """
    count, ranges = member.shape
    lower, upto = np.empty((count, ranges), np.int64), np.empty((count, ranges), np.int64)
    opposing = np.empty((count, ranges), np.int64)
    for b in range(len(boards)):
        strength = board_strengths(holes, boards[b], num_suits)
        _count_showdowns(strength, holes, num_cards, member, lower, upto, opposing)
        for h in range(count):
            if strength[h] < 0:
                continue
            row, everyone = out[b * count + h], max(opposing[h, 0], 1)
            overall = (lower[h, 0] + upto[h, 0]) / (2 * everyone) if opposing[h, 0] else 0.5
            for k in range(ranges):
                share = (lower[h, k] + upto[h, k]) / (2 * opposing[h, k]) if opposing[h, k] else overall
                row[k] = np.uint16(share * UNIT + 0.5)
            row[ranges] = np.uint16((upto[h, 0] - lower[h, 0]) / everyone * UNIT + 0.5)


@nb.njit(cache=True, nogil=True)
def _count_showdowns(
    strength: Numbers,
    holes: Cards,
    num_cards: int,
    member: Bools,
    lower: npt.NDArray[np.int64],
    upto: npt.NDArray[np.int64],
    opposing: npt.NDArray[np.int64],
) -> None:
    """For each hand, count the opposing hands of each range that are weaker, not stronger, and all; each [H, ranges].

    `strength` [H] is negative for impossible hands, whose counts do not change. One pass in ascending order of strength
    counts the hands so far, in total (the last row of `passed`) and by card.
    """
    order = np.argsort(strength)
    passed = np.zeros((num_cards + 2, member.shape[1]), np.int64)  # the row before the last stands for no second card
    start = 0
    while start < len(order) and strength[order[start]] < 0:
        start += 1
    live = order[start:]
    end = start = 0
    while start < len(live):
        while end < len(live) and strength[live[end]] == strength[live[start]]:
            end += 1
        for h in live[start:end]:
            _count_disjoint(h, holes, passed, member, False, lower)
        for h in live[start:end]:
            for k in range(member.shape[1]):
                passed[num_cards + 1, k] += member[h, k]
                for i in range(holes.shape[1]):
                    passed[holes[h, i], k] += member[h, k]
        for h in live[start:end]:
            _count_disjoint(h, holes, passed, member, True, upto)
        start = end
    for h in live:
        _count_disjoint(h, holes, passed, member, True, opposing)


@nb.njit(cache=True, nogil=True)
def _count_disjoint(
    h: int, holes: Cards, passed: npt.NDArray[np.int64], member: Bools, among: bool, out: npt.NDArray[np.int64]
) -> None:
    """`out[h]` = the counted hands of each range that share no card with hand h; `among`: they include hand h itself."""
    last = len(passed) - 1
    two = holes.shape[1] == 2
    second = np.int64(holes[h, 1]) if two else last - 1
    for k in range(member.shape[1]):
        out[h, k] = passed[last, k] - passed[holes[h, 0], k] - passed[second, k]
        if among and two:
            out[h, k] += member[h, k]  # subtracted once for each of its cards, but counted only once in total


@nb.njit(cache=True, nogil=True)
def fill_from_next(
    boards: Cards,
    holes: Cards,
    images: Numbers,
    table: npt.NDArray[np.int64],
    class_of: Numbers,
    permutation_of: Cards,
    after: Points,
    numbers: Points,
    out: Points,
) -> None:
    """Fill `out` for all hands on `boards` by means of `after` over the next card; both are [classes * H, F].

    If `numbers` [UNIT + 1, F] has rows, it is looked up by the first column of `after`. `class_of`
    and `permutation_of` index the boards of one more card, `table` holds the binomials up to their size.
    """
    count, held = holes.shape
    size, num_cards = boards.shape[1], table.shape[0] - 1
    total = np.empty((count, out.shape[1]), np.int64)
    longer = np.empty(size + 1, np.uint8)
    outcomes = num_cards - size - held  # number of next cards, given the hand
    for b in range(len(boards)):
        total[:] = 0
        longer[:size] = boards[b]
        for card in range(num_cards):
            if _holds(boards[b], card):
                continue
            longer[size] = card
            rank = set_rank(longer, table)
            first, image = np.int64(class_of[rank]) * count, images[permutation_of[rank]]
            for h in range(count):
                if _holds(holes[h], card):
                    continue
                row = after[first + image[h]]
                if len(numbers):
                    row = numbers[row[0]]
                for k in range(out.shape[1]):
                    total[h, k] += row[k]
        for h in range(count):
            blocked = False
            for i in range(held):
                blocked = blocked or _holds(boards[b], holes[h, i])
            if not blocked and outcomes > 0:
                for k in range(out.shape[1]):
                    out[b * count + h, k] = np.uint16(total[h, k] / outcomes + 0.5)


@nb.njit(cache=True, nogil=True)
def _holds(cards: Cards, card: int) -> bool:
    found = False
    for other in cards:
        found = found or other == card
    return found
