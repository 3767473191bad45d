"""The numba kernels of a full-width pass over one betting round on one board, for all live hands.

Strategies are [E, U], one row for every edge of the round and one column for every canonical hand; reach is [rows, U]
for each player (see `RoundTree`). Values are [S, U]: counterfactual values, weighted by the opponent's reach but not by
the player's own, summed over all opposing hands that share no card. Arithmetic is in the type of the working memory:
float64, because values are differences of large sums and regrets are differences of values, and float32 for search and
spots. Regrets and averages may be stored in float32 all the same. Columns are contiguous, so inner loops over canonical
hands use vector instructions. Only the showdown runs over hands, in order of strength, on transposed reach.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from deepcfr.boards.rounds import LeafColumns, RoundArrays
from deepcfr.core.compiled import nb
from deepcfr.core.types import Floats, Ints

_BLOCK = np.uint64(32)  # hands that are transposed together
LEAF_BLOCK = 64  # rows of reach at leaves that are processed together, so that they stay in the cache


@nb.njit(cache=True, nogil=True)
def push_reach(tree: RoundArrays, node: int, strategy: Floats, reach: Floats, tremble: float) -> None:
    """Carry the acting player's `reach` [rows, U] over the edges of `node`.

    Every action is taken with a probability of `tremble` at least, up to four times in a row, seven times in 64 bits:
    more would leave the range of the numbers.
    """
    number = reach.dtype.type
    before, zero, least, lowest = (
        reach[tree.row[tree.actor[node], node]],
        number(0),
        number(tremble),
        number(tremble ** (6 if reach.itemsize == 8 else 3) / 2),
    )
    for edge in range(tree.first_edge[node], tree.first_edge[node + 1]):
        after, probability = reach[tree.edge_row[edge]], strategy[edge]
        for u in range(len(before)):
            after[u] = before[u] * max(probability[u], least if before[u] > lowest else zero)


@nb.njit(cache=True, nogil=True)
def push_both(tree: RoundArrays, strategy: Floats, reach0: Floats, reach1: Floats, tremble: float) -> None:
    """Carry both players' reach from the roots, already filled in, to all rows of the round, as `push_reach` does."""
    for node in range(len(tree.actor)):
        push_reach(tree, node, strategy, reach0 if tree.actor[node] == 0 else reach1, tremble)


@nb.njit(cache=True, nogil=True)
def leaf_values(
    leaves: LeafColumns,
    reach: Floats,
    holes: npt.NDArray[np.uint8],
    canonical: Ints,
    group: Ints,
    example: Ints,
    work: Floats,
    values: Floats,
) -> None:
    """Fill one player's `values` [S, U] at all folds and showdowns from the opponent's `reach` [rows, U].

    The arguments after `reach` are from a `Board`; `work` [cards + 2 + 3 U, LEAF_BLOCK] is working memory. The value of a
    fold is its payoff times the reach of all hands that share no card. The value of a showdown is its payoff times (reach
    of the hands that it beats minus reach of the hands that beat it), less its fee times the reach of all of them.
    """
    count, cards = reach.shape[1], len(work) - 3 * reach.shape[1]
    number, memory, leaf, end = values.dtype.type, work.reshape(-1), 0, np.uint64(count)
    for left in range(0, len(leaves.rows), LEAF_BLOCK):
        width = min(LEAF_BLOCK, len(leaves.rows) - left)
        shown = min(max(leaves.num_showdown - left, 0), width)
        by_card = memory[: cards * width].reshape(cards, width)
        place = cards * width
        turned = memory[place : place + count * width].reshape(count, width)
        place += count * width
        anyone = memory[place : place + count * width].reshape(count, width)
        place += count * width
        ahead = memory[place : place + count * shown].reshape(count, shown)
        # unsigned numbers, because signed ones may count from the end, which is tested at every step
        for start in range(np.uint64(0), end, _BLOCK):
            for k in range(np.uint64(width)):
                source = reach[leaves.rows[np.uint64(left) + k]]
                for u in range(start, min(start + _BLOCK, end)):
                    turned[u, k] = source[u]
        against_range(turned, holes, canonical, group, example, by_card, anyone, ahead)
        first = leaf
        while leaf < len(leaves.node) and leaves.column[leaf] < left + width:
            leaf += 1
        for start in range(np.uint64(0), end, _BLOCK):
            for i in range(first, leaf):
                amount, at = number(leaves.payoff[i]), np.uint64(leaves.column[i] - left)
                target, source = values[leaves.node[i]], ahead if leaves.showdown[i] else anyone
                for u in range(start, min(start + _BLOCK, end)):
                    target[u] = amount * source[u, at]
                if leaves.fee[i]:
                    paid = number(leaves.fee[i])
                    for u in range(start, min(start + _BLOCK, end)):
                        target[u] -= paid * anyone[u, at]


@nb.njit(cache=True, nogil=True)
def against_range(
    reach: Floats,
    holes: npt.NDArray[np.uint8],
    canonical: Ints,
    group: Ints,
    example: Ints,
    by_card: Floats,
    anyone: Floats,
    ahead: Floats,
) -> None:
    """For each canonical hand, the reach [U, K] of disjoint hands: `anyone` of all, `ahead` of beaten hands minus
    beating hands.

    One sweep in ascending order of strength sums the reach passed so far, by card and, in the last row but one of
    `by_card`, in total. Before a group of equal hands the sum is the reach that they beat, after it the reach that they
    do not lose to. (Beaten) - (beating) is the sum of both minus the total.
    """
    # Indices and no slices of rows: to make a slice costs more than the arithmetic on a few columns. Hands of one card
    # have the row of zeros as their second card.
    by_card[:] = 0
    total, zeros = by_card.shape[0] - 2, by_card.shape[0] - 1
    two = holes.shape[1] == 2
    twice = reach.dtype.type(two)  # both cards of a hand take it from the total
    for g in range(len(group) - 1):
        for h in range(group[g], group[g + 1]):
            u, first, second = canonical[h], holes[h, 0], holes[h, 1] if two else zeros
            if example[u] == h:
                for k in range(ahead.shape[1]):
                    ahead[u, k] = by_card[total, k] - by_card[first, k] - by_card[second, k]
        for h in range(group[g], group[g + 1]):
            u, first, second = canonical[h], holes[h, 0], holes[h, 1] if two else zeros
            for k in range(reach.shape[1]):
                by_card[total, k] += reach[u, k]
                by_card[first, k] += reach[u, k]
                by_card[second, k] += reach[u, k] * twice
        for h in range(group[g], group[g + 1]):
            u, first, second = canonical[h], holes[h, 0], holes[h, 1] if two else zeros
            if example[u] == h:
                for k in range(ahead.shape[1]):
                    passed = by_card[total, k] - by_card[first, k] - by_card[second, k]
                    ahead[u, k] += passed + reach[u, k] * twice
    for u in range(len(example)):
        hole = holes[example[u]]
        first, second = hole[0], hole[1] if two else zeros
        for k in range(reach.shape[1]):
            anyone[u, k] = by_card[total, k] - by_card[first, k] - by_card[second, k] + reach[u, k] * twice
        for k in range(ahead.shape[1]):
            ahead[u, k] -= anyone[u, k]


@nb.njit(cache=True, nogil=True)
def unblocked_reach(
    rows: Ints,
    reach: Floats,
    holes: npt.NDArray[np.uint8],
    canonical: Ints,
    example: Ints,
    out: Floats,
) -> None:
    """For some `rows` of the opponent's `reach` [rows, U], its sum over the hands disjoint from each hand, [n, U]."""
    by_card = np.empty(holes.max() + 1)
    for k in range(len(rows)):
        source, target = reach[rows[k]], out[k]
        by_card[:] = 0
        total = 0.0
        for h in range(len(canonical)):
            mine = source[canonical[h]]
            total += mine
            for c in range(holes.shape[1]):
                by_card[holes[h, c]] += mine
        for u in range(len(example)):
            hole = holes[example[u]]
            blocked = by_card[hole[0]]
            if len(hole) == 2:
                blocked += by_card[hole[1]] - source[u]  # the same two cards are in both sums
            target[u] = max(total - blocked, 0.0)


TREMBLE, ABSENT = 1e-40, 1e-35
"""A probability that stands for the limit of 0, and a reach that none without such a factor is below. With it as the
least probability of actions, ranges and values are known where nobody comes, and others stay the same to the last
digit.
"""
_ROUNDING = 1e-12  # of all reach: less than that is an error of differences


def reach_against(
    reach: Floats, holes: npt.NDArray[np.uint8], canonical: Ints | None = None
) -> npt.NDArray[np.float64]:
    """The sum of the opponent's `reach` [X, U] over the hands that share no card with each canonical hand, [X, U].

    `canonical` [H] is the canonical hand of each of the hands `holes` [H, C]; without it every hand is one of its own.
    """
    every, total = np.arange(len(holes)), np.empty(reach.shape)
    example = every if canonical is None else np.unique(canonical, return_index=True)[1]
    canonical = every if canonical is None else canonical
    unblocked_reach(np.arange(len(reach)), np.ascontiguousarray(reach), holes, canonical, example, total)
    return np.where(total > _ROUNDING * reach[:, canonical].sum(1, keepdims=True), total, 0)


def pair_weights(
    holes: npt.NDArray[np.uint8], reach: Floats, player: int
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64], bool]:
    """The weight of each of a player's hands `holes` [H, C] at a decision: its reach times what it can meet, both [H].

    `reach` [P, H] are both players' there, with TREMBLE as the least probability of an action. The last result is False
    if no pair of hands gets there otherwise; weights are then those of hands that got there by trembles.
    """
    own, met = reach[player], reach_against(reach[1 - player, None], holes)[0]
    reached = bool(((own > ABSENT) & (met > ABSENT)).any())
    scaled = own / max(own.max(), np.finfo(np.float64).tiny)
    for weight in (own * met if reached else scaled * (met / max(met.max(), np.finfo(np.float64).tiny)), scaled):
        if weight.any():
            return weight, met, reached
    return np.ones(len(holes)), met, reached


@nb.njit(cache=True, nogil=True)
def draw_decisions(reach: Floats, size: Ints, count: int, step: float, start: tuple[float, float]) -> tuple[Ints, Ints]:
    """Draw hands, and `count` decisions of each: their rows [I, count] and the hands' columns [I].

    A decision of a hand is drawn in proportion to `reach` [n, U] times `size` [U]. A grid of spacing
    `step` is laid over all hands end to end, each as long as its sum over the decisions, and an even grid of `count`
    points over the decisions of each hand that it meets. `start`, two numbers from 0 to 1, are the place of the first
    grid in its first interval, and that of the grid of the first hand.
    """
    golden = 0.6180339887498949  # its multiples are spread evenly between 0 and 1
    mass = np.zeros(len(size))
    for i in range(len(reach)):
        for u in range(len(size)):
            mass[u] += reach[i, u]
    most = int((mass * size).sum() / step) + 2
    row, column = np.empty((most, count), np.int64), np.empty(most, np.int64)
    place, passed, hands = start[0] * step, 0.0, 0
    for u in range(len(size)):
        passed += mass[u] * size[u]
        while place < passed and hands < most:
            spacing = mass[u] / count
            point, below, drawn = (start[1] + hands * golden) % 1.0 * spacing, 0.0, 0
            for i in range(len(reach)):
                below += reach[i, u]
                while drawn < count and point < below:
                    row[hands, drawn] = i
                    drawn += 1
                    point += spacing
            for rest in range(drawn, count):  # the sum was rounded down
                row[hands, rest] = row[hands, drawn - 1]
            column[hands] = u
            hands += 1
            place += step
    return row[:hands], column[:hands]


@nb.njit(cache=True, nogil=True)
def pull_values(tree: RoundArrays, player: int, free: npt.NDArray[np.bool_], strategy: Floats, values: Floats) -> None:
    """Carry `values` [S, U] from the leaves, already filled in, to all decision nodes of the round.

    At the player's own nodes the value is that of the best action where `free` [n, U] (or [n, 1]), otherwise the
    strategy's mean. At the opponent's nodes it is the sum over actions, since values include the opponent's reach.
    Leaves are not changed, so one array of values can be used for several `free` in turn.
    """
    for node in range(len(tree.actor) - 1, -1, -1):
        first, last = tree.first_edge[node], tree.first_edge[node + 1]
        own = tree.actor[node] == player
        if own and not free[node].all():
            mean_value(first, last, tree.edge_child, node, strategy, values)
            if free[node].any():
                best_value(first, last, tree.edge_child, node, free[node], values)
            continue
        value = values[node]
        value[:] = values[tree.edge_child[first]]
        for edge in range(first + 1, last):
            child = values[tree.edge_child[edge]]
            for u in range(len(value)):
                value[u] = max(value[u], child[u]) if own else value[u] + child[u]


@nb.njit(cache=True, nogil=True)
def mean_value(first: int, last: int, edge_child: Ints, node: int, strategy: Floats, values: Floats) -> None:
    """The strategy's mean over the edges `first` .. `last` - 1 of `node`, into its row of `values` [S, U]."""
    value = values[node]
    value[:] = 0
    for edge in range(first, last):
        probability, child = strategy[edge], values[edge_child[edge]]
        for u in range(len(value)):
            value[u] += probability[u] * child[u]


@nb.njit(cache=True, nogil=True)
def best_value(first: int, last: int, edge_child: Ints, node: int, free: npt.NDArray[np.bool_], values: Floats) -> None:
    """The best of the edges `first` .. `last` - 1 of `node` for the canonical hands that are `free` [U], into its row
    of `values`.
    """
    value = values[node]
    for u in np.flatnonzero(free):
        value[u] = values[edge_child[first], u]
        for edge in range(first + 1, last):
            value[u] = max(value[u], values[edge_child[edge], u])


@nb.njit(cache=True, nogil=True)
def best_replies(
    nodes: Ints,
    tree: RoundArrays,
    free: npt.NDArray[np.bool_],
    tied: npt.NDArray[np.float64],
    values: Floats,
    strategy: Floats,
) -> None:
    """Set the `strategy` [E, U] at `nodes` [m], with canonical hands that are `free` [m, U], to the best actions by
    `values` [S, U].

    Actions are equally good within `tied` [m, U], and share the probability.
    """
    for i in range(len(nodes)):
        first, last = tree.first_edge[nodes[i]], tree.first_edge[nodes[i] + 1]
        for u in np.flatnonzero(free[i]):
            least, ties = values[tree.edge_child[first], u], 0
            for edge in range(first + 1, last):
                least = max(least, values[tree.edge_child[edge], u])
            least -= tied[i, u]
            for edge in range(first, last):
                ties += values[tree.edge_child[edge], u] >= least
            for edge in range(first, last):
                strategy[edge, u] = (values[tree.edge_child[edge], u] >= least) / ties


@nb.njit(cache=True, nogil=True)
def add_up(values: Floats, up: Ints, weight: npt.NDArray[np.float64], total: npt.NDArray[np.float64]) -> None:
    """Add a board's `values` [M, X, U] to those of its parent board, `total` [M, X, U'], by `up` and `weight` [U]."""
    for m in range(values.shape[0]):
        for x in range(values.shape[1]):
            for u in range(values.shape[2]):
                total[m, x, up[u]] += weight[u] * values[m, x, u]
