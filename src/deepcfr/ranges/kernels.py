"""The numba kernels of a sweep over one betting round on one board, for every live private hand.

Slots number the round's decision nodes first (parents before children) and then its leaves. Reach is [P, S, H]: the
probability that a player's own actions lead to a slot with a hand. Values are [P, S, H]: counterfactual values, weighted by
the opponent's reach but not by the player's own, summed over all opposing hands that share no card.
"""

from __future__ import annotations

import numba as nb
import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@nb.njit(cache=True, nogil=True, fastmath=False)
def push_reach(actor: Ints, child: Ints, strategy: npt.NDArray[np.floating], column: Ints, reach: Floats) -> None:
    """Carry both players' reach from the entries, already filled in, to all slots of the round.

    `actor` [n], `child` [n, A] as slots or -1, `strategy` [n, U, A] with hand h in column `column[h]`, `reach` [P, S, H].
    """
    hands = reach.shape[2]
    for node in range(len(actor)):
        player = actor[node]
        for action in range(child.shape[1]):
            slot = child[node, action]
            if slot >= 0:
                for h in range(hands):
                    reach[1 - player, slot, h] = reach[1 - player, node, h]
                    reach[player, slot, h] = reach[player, node, h] * strategy[node, column[h], action]


@nb.njit(cache=True, nogil=True)
def fold_values(reach: Floats, holes: npt.NDArray[np.uint8], amount: float, num_cards: int, out: Floats) -> None:
    """`out[h]` = `amount` times the opponent's reach [H] over hands that share no card with h; `holes` is [H, 1 or 2]."""
    by_card = np.zeros(num_cards)
    total = 0.0
    held = holes.shape[1]
    for h in range(len(reach)):
        total += reach[h]
        for slot in range(held):
            by_card[holes[h, slot]] += reach[h]
    for h in range(len(reach)):
        blocked = by_card[holes[h, 0]]
        if held == 2:
            blocked += by_card[holes[h, 1]] - reach[h]  # the hand itself was counted with both its cards
        out[h] = amount * (total - blocked)


@nb.njit(cache=True, nogil=True)
def showdown_values(
    reach: Floats,
    holes: npt.NDArray[np.uint8],
    order: Ints,
    strength: npt.NDArray[np.int32],
    amount: float,
    num_cards: int,
    out: Floats,
) -> None:
    """`out[h]` = `amount` times (opposing reach that h beats minus reach that beats h), hands without shared cards only.

    `order` sorts the hands by `strength` ascending; one sweep up collects weaker hands, one down stronger ones.
    """
    out[:] = 0.0
    _beaten(reach, holes, order, strength, amount, num_cards, out)
    _beaten(reach, holes, order[::-1], strength, -amount, num_cards, out)


@nb.njit(cache=True, nogil=True)
def _beaten(
    reach: Floats,
    holes: npt.NDArray[np.uint8],
    order: Ints,
    strength: npt.NDArray[np.int32],
    amount: float,
    num_cards: int,
    out: Floats,
) -> None:
    by_card = np.zeros(num_cards)
    total = 0.0
    held = holes.shape[1]
    start = 0
    while start < len(order):
        end = start
        while end < len(order) and strength[order[end]] == strength[order[start]]:
            h = order[end]
            passed = total - by_card[holes[h, 0]]
            if held == 2:
                passed -= by_card[holes[h, 1]]  # h itself ties, so no passed hand holds both its cards
            out[h] += amount * passed
            end += 1
        for place in range(start, end):
            h = order[place]
            total += reach[h]
            for slot in range(held):
                by_card[holes[h, slot]] += reach[h]
        start = end


@nb.njit(cache=True, nogil=True)
def leaf_values(
    leaf_kind: Ints,
    leaf_payoff: Floats,
    first_leaf: int,
    reach: Floats,
    holes: npt.NDArray[np.uint8],
    order: Ints,
    strength: npt.NDArray[np.int32],
    num_cards: int,
    values: Floats,
) -> None:
    """Fill the values of both players at all folds (kind 1) and showdowns (kind 2); other leaves are left alone.

    `leaf_payoff` [P, L] is each player's gain after a fold, or the gain of the winner of a showdown.
    """
    for leaf in range(len(leaf_kind)):
        slot = first_leaf + leaf
        for player in range(2):
            amount = leaf_payoff[player, leaf]
            if leaf_kind[leaf] == 1:
                fold_values(reach[1 - player, slot], holes, amount, num_cards, values[player, slot])
            elif leaf_kind[leaf] == 2:
                showdown_values(
                    reach[1 - player, slot], holes, order, strength, amount, num_cards, values[player, slot]
                )


@nb.njit(cache=True, nogil=True)
def pull_values(
    actor: Ints,
    child: Ints,
    strategy: npt.NDArray[np.floating],
    column: Ints,
    best: bool,
    values: Floats,
) -> None:
    """Carry values from the leaves, already filled in, to all decision nodes of the round.

    At the player's own nodes the value is the best action's if `best`, else the strategy's mean; at the opponent's nodes
    it is the sum over actions, since values carry the opponent's reach.
    """
    hands = values.shape[2]
    for node in range(len(actor) - 1, -1, -1):
        own = actor[node]
        for player in range(2):
            first = True
            for action in range(child.shape[1]):
                slot = child[node, action]
                if slot < 0:
                    continue
                for h in range(hands):
                    value = values[player, slot, h]
                    if player == own and not best:
                        value *= strategy[node, column[h], action]
                    if first:
                        values[player, node, h] = value
                    elif player == own and best:
                        values[player, node, h] = max(values[player, node, h], value)
                    else:
                        values[player, node, h] += value
                first = False
