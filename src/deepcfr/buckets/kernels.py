"""The numba kernels of hand features: showdowns of all hands on a board, and sums of them over runouts.

The *points* of a hand on a full board are twice the number of opposing hands that it beats plus the number that it ties
with. Only hands that share no card with it or the board count. Points are integers, so sums over runouts are exact.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from deepcfr.core.compiled import nb
from deepcfr.core.types import Cards, Ints, Numbers, Points
from deepcfr.game.board_index import canonical_hands, set_rank
from deepcfr.game.hands import board_strengths

CLUSTERS = 8  # clusters of opposing hands; a constant, so that sums over clusters are a few vector instructions
TIED = 0x8000  # added to a hand's number
HAND = 0x7FFF  # mask of the hand's number
IMPOSSIBLE = 65_535  # in tables of points, where a hand shares a card with the board


@nb.njit(cache=True, nogil=True)
def add_showdown(
    order: Points, image: Numbers, holes: Cards, cluster: Ints, num_cards: int, points: Ints, opponents: Ints
) -> None:
    """Add the points of every hand against each cluster of opposing hands on one full board.

    `order` [live] is that of the board or of its representative, from which `image` [H] maps hands back. `holes` is
    [H, 1 or 2]; `cluster` [H] is the cluster of each opposing hand. `points` and `opponents` are [H, CLUSTERS]; rows of
    hands that share a card with the board do not change.
    """
    two = holes.shape[1] == 2
    first = holes[:, 0]
    second = holes[:, 1] if two else np.full(len(holes), num_cards, np.uint8)
    by_card = np.zeros((num_cards + 1, CLUSTERS), np.int64)  # the last row, for hands of one card, stays at 0
    total = np.zeros(CLUSTERS, np.int64)
    start = 0
    while start < len(order):
        end = start
        tied = True
        while tied:
            h = image[order[end] & HAND]
            _add_disjoint(h, first[h], second[h], total, by_card, points)
            tied = order[end] > HAND
            end += 1
        for place in range(start, end):
            h = image[order[place] & HAND]
            k = cluster[h]
            total[k] += 1
            by_card[first[h], k] += 1
            if two:
                by_card[second[h], k] += 1
        for place in range(start, end):
            h = image[order[place] & HAND]
            _add_disjoint(h, first[h], second[h], total, by_card, points)
            points[h, cluster[h]] += two  # the hand itself counts once in total and once for each of its cards
        start = end
    for place in range(len(order)):
        h = image[order[place] & HAND]
        _add_disjoint(h, first[h], second[h], total, by_card, opponents)
        opponents[h, cluster[h]] += two


@nb.njit(cache=True, nogil=True, inline="always")
def _add_disjoint(h: int, first: int, second: int, total: Ints, by_card: Ints, out: Ints) -> None:
    """Add the counts of hands so far, by cluster, without those that share a card with hand h."""
    for k in range(CLUSTERS):
        out[h, k] += total[k] - by_card[first, k] - by_card[second, k]


@nb.njit(cache=True, nogil=True)
def fill_showdowns(boards: Cards, holes: Cards, num_suits: int, num_cards: int, orders: Points, points: Points) -> None:
    """Rank all hands on full boards.

    `orders` [boards, live] are the hands in ascending order of strength; TIED is added where the next hand is as strong.
    `points` [boards, H] are the points, IMPOSSIBLE for hands that share a card with the board.
    """
    same = np.arange(len(holes)).astype(np.int32)
    everyone = np.zeros(len(holes), np.int64)
    own = np.empty((len(holes), CLUSTERS), np.int64)
    opponents = np.empty((len(holes), CLUSTERS), np.int64)
    for b in range(len(boards)):
        strength = board_strengths(holes, boards[b], num_suits)
        order = np.argsort(strength, kind="mergesort")[np.sum(strength < 0) :]  # equal hands by number
        for i in range(len(order)):
            tied = i + 1 < len(order) and strength[order[i]] == strength[order[i + 1]]
            orders[b, i] = order[i] | (TIED if tied else 0)
        own[:] = 0
        add_showdown(orders[b], same, holes, everyone, num_cards, own, opponents)
        for h in range(len(holes)):
            points[b, h] = own[h, 0] if strength[h] >= 0 else IMPOSSIBLE


@nb.njit(cache=True, nogil=True)
def next_runout(places: Ints, deck: int) -> bool:
    """Replace ascending `places` in a deck by the next combination; the last one by the first, with the result False."""
    size = len(places)
    i = size - 1
    while i >= 0 and places[i] == deck - size + i:
        i -= 1
    if i < 0:
        places[:] = np.arange(size)
        return False
    places[i] += 1
    for j in range(i + 1, size):
        places[j] = places[j - 1] + 1
    return True


@nb.njit(cache=True, nogil=True)
def rest_of_deck(board: Cards, num_cards: int) -> Cards:
    """The cards that are not on the board, ascending."""
    on_board = np.zeros(num_cards, np.bool_)
    for card in board:
        on_board[card] = True
    return np.flatnonzero(~on_board).astype(np.uint8)


@nb.njit(cache=True, nogil=True)
def add_runouts(
    board: Cards,
    hands: Numbers,
    class_of: Numbers,
    permutation_of: Cards,
    images: Numbers,
    table: Ints,
    points: Points,
    bin_of: Cards,
    total: Ints,
    histogram: Numbers,
) -> None:
    """Sum points and a histogram of them over all runouts of one board, for `hands` [m] by number.

    `class_of` and `permutation_of` index full boards, `points` [classes, H] is the table of their representatives.
    `total` is [m], `histogram` [m, bins], with points p counted in bin `bin_of[p]`.
    """
    size = len(board)
    rest = rest_of_deck(board, table.shape[0] - 1)
    places = np.arange(table.shape[1] - 1 - size)
    full = np.empty(table.shape[1] - 1, np.uint8)
    full[:size] = board
    more = True
    while more:
        for i in range(len(places)):
            full[size + i] = rest[places[i]]
        rank = set_rank(full, table)
        row, image = points[class_of[rank]], images[permutation_of[rank]]
        for i in range(len(hands)):
            p = np.int64(row[image[hands[i]]])
            if p != IMPOSSIBLE:
                total[i] += p
                histogram[i, bin_of[p]] += 1
        more = next_runout(places, len(rest))


@nb.njit(cache=True, nogil=True)
def add_cluster_runouts(
    board: Cards,
    class_of: Numbers,
    permutation_of: Cards,
    back: Numbers,
    table: Ints,
    orders: Points,
    holes: Cards,
    cluster: Ints,
    points: Ints,
    opponents: Ints,
) -> None:
    """`add_showdown` over all runouts of one board.

    `class_of` and `permutation_of` index full boards, `orders` are those of their representatives, and `back` [renamings,
    H] maps hands from representatives to boards.
    """
    size, num_cards = len(board), table.shape[0] - 1
    rest = rest_of_deck(board, num_cards)
    places = np.arange(table.shape[1] - 1 - size)
    full = np.empty(table.shape[1] - 1, np.uint8)
    full[:size] = board
    more = True
    while more:
        for i in range(len(places)):
            full[size + i] = rest[places[i]]
        rank = set_rank(full, table)
        add_showdown(orders[class_of[rank]], back[permutation_of[rank]], holes, cluster, num_cards, points, opponents)
        more = next_runout(places, len(rest))


@nb.njit(cache=True, nogil=True)
def cluster_strengths(
    boards: Cards,
    bounds: Ints,
    hands: Numbers,
    class_of: Numbers,
    permutation_of: Cards,
    back: Numbers,
    table: Ints,
    orders: Points,
    holes: Cards,
    cluster: Ints,
    out: npt.NDArray[np.float32],
) -> None:
    """`out` [M, clusters + 1] = the expected hand strength of `hands` [M] against each cluster, then against all hands.

    Board b, a row of `boards`, has the hands `bounds[b]` to `bounds[b + 1]`. A cluster without possible hands is replaced
    by all hands. The other arguments are those of `add_cluster_runouts`.
    """
    points = np.empty((len(holes), CLUSTERS), np.int64)
    opponents = np.empty((len(holes), CLUSTERS), np.int64)
    clusters = out.shape[1] - 1
    for b in range(len(boards)):
        points[:] = 0
        opponents[:] = 0
        add_cluster_runouts(boards[b], class_of, permutation_of, back, table, orders, holes, cluster, points, opponents)
        for row in range(bounds[b], bounds[b + 1]):
            h = hands[row]
            overall = points[h].sum() / (2.0 * opponents[h].sum())
            out[row, clusters] = overall
            for k in range(clusters):
                out[row, k] = points[h, k] / (2.0 * opponents[h, k]) if opponents[h, k] else overall


@nb.njit(cache=True, nogil=True)
def list_hands(
    boards: Cards, holes: Cards, renamings: Cards, images: Numbers
) -> tuple[Numbers, Numbers, Ints, Numbers]:
    """The canonical hands of every board, one row each: numbers [M], class sizes [M], bounds [boards + 1] of boards.

    The last result is the row of every hand on every board, [boards, H], -1 where they share a card.
    """
    hand = np.empty(len(boards) * len(holes), np.int32)
    size = np.zeros(len(boards) * len(holes), np.int32)
    bounds = np.zeros(len(boards) + 1, np.int64)
    row = np.empty((len(boards), len(holes)), np.int32)
    lowest = np.empty(len(holes), np.int32)
    count = 0
    for b in range(len(boards)):
        canonical_hands(boards[b], holes, renamings, images, lowest)
        for h in range(len(holes)):
            if lowest[h] == h:
                hand[count] = h
                row[b, h] = count
                count += 1
            elif lowest[h] >= 0:
                row[b, h] = row[b, lowest[h]]
            else:
                row[b, h] = -1
            if lowest[h] >= 0:
                size[row[b, h]] += 1
        bounds[b + 1] = count
    return hand[:count].copy(), size[:count].copy(), bounds, row
