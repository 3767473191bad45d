"""The inner loops of the tables of hand strengths: full boards by ranking, shorter boards by means over the next card."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from deepcfr.compiled import nb
from deepcfr.games.board_index import set_rank
from deepcfr.games.hands import board_strengths
from deepcfr.types import Bools, Cards, Numbers, Points

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
