"""Phantom games by sequences: tables of strategies, and exact values from every history, without a list of them.

A best response goes through the player's own sequences, and carries along all of the opponent's that fit, with the
probability that it plays so. Histories that have one free cell left are not gone into, because their end is known.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import numpy.typing as npt
import torch

from deepcfr.compiled import nb
from deepcfr.games.phantom import NO_SEQUENCE, OPEN, PhantomGame
from deepcfr.parallel import Workers
from deepcfr.policies.base import Policy
from deepcfr.policies.liars_dice import UNREACHED
from deepcfr.types import Infosets

Table = npt.NDArray[np.float32]
Floats = npt.NDArray[np.float64]
_AT_ONCE = 1 << 16  # infosets that a policy is asked about together
_DEPTH = 64  # more than the tries that can wait


class PhantomTable(Policy):
    """The probabilities of all tries at all sequences, float32 [K, cells]."""

    def __init__(self, game: PhantomGame, table: Table, kind: str = "table") -> None:
        self.game: PhantomGame = game
        self.table, self.kind = table, kind
        self._rows = torch.from_numpy(table).to(game.device)

    def probabilities(self, infosets: Infosets) -> torch.Tensor:
        return self._rows[infosets.node.long()]


def table_of_sequences(policy: Policy) -> Table:
    """The table of any policy of a phantom game, float32 [K, cells]."""
    if isinstance(policy, PhantomTable):
        return policy.table
    game = policy.game
    assert isinstance(game, PhantomGame)
    table = np.empty((game.num_infosets, game.cells), np.float32)
    for first in range(0, len(table), _AT_ONCE):
        node = torch.arange(first, min(first + _AT_ONCE, len(table)), device=game.device)
        cards = torch.empty(len(node), 0, dtype=torch.uint8, device=game.device)
        table[first : first + len(node)] = policy.probabilities(Infosets(node, cards)).cpu().numpy()
    return table


def phantom_values(
    policy: Policy, workers: Workers, on_part: Callable[[int, int], None] | None = None
) -> tuple[tuple[float, float], float]:
    """Each player's mean payoff by a best response to the other's part of the policy, and player 0's if both play it.

    `on_part(done, total)` reports progress.
    """
    game, table = policy.game, table_of_sequences(policy)
    assert isinstance(game, PhantomGame)
    first, second = _means(game, table, table, workers, on_part)
    return (first[0], second[0]), first[1]


def phantom_gains(
    first: Policy, second: Policy, workers: Workers, on_part: Callable[[int, int], None] | None = None
) -> tuple[float, float]:
    """The mean payoffs of the first policy as player 0 and as player 1 against the second; progress as above."""
    game = first.game
    assert isinstance(game, PhantomGame)
    as_first, as_second = _means(game, table_of_sequences(first), table_of_sequences(second), workers, on_part)
    return as_first[1], as_second[1]


def phantom_average(game: PhantomGame, policies: Sequence[Policy], weights: Floats, kind: str) -> PhantomTable:
    """The average by own reach times `weights`, as in `policies.mixture`."""
    total = np.zeros((game.num_infosets, game.cells))
    for policy, weight in zip(policies, weights, strict=True):
        table = table_of_sequences(policy)
        own = _own_reach(table, game.after, np.array(game.first_of))
        total += weight * (own[:, None] + UNREACHED) * table
    return PhantomTable(game, (total / total.sum(1, keepdims=True)).astype(np.float32), kind)


def _means(
    game: PhantomGame, mine: Table, theirs: Table, workers: Workers, on_part: Callable[[int, int], None] | None
) -> list[tuple[float, float]]:
    """For each player its mean payoff against `theirs`, by a best response and by `mine`; nan if a table has one."""
    if np.isnan(mine).any() or np.isnan(theirs).any():
        return [(np.nan, np.nan), (np.nan, np.nan)]
    parts = [(player, cell) for player in (0, 1) for cell in range(game.cells)]
    ends = np.zeros((game.num_infosets, game.cells))
    for number, _ in enumerate(workers.map(partial(_find_ends, game, theirs, ends), parts)):
        if on_part:
            on_part(number + 1, len(parts))
    values = _values(ends, mine, game.after)
    return [(float(values[first, 0]), float(values[first, 1])) for first in game.first_of]


def _find_ends(game: PhantomGame, theirs: Table, ends: Floats, part: tuple[int, int]) -> None:
    """Set `ends` after a player's first try on one cell."""
    player, cell = part
    rules = (game.own, game.after, game.settled)
    opponents, reach = np.array([game.first_of[1 - player]], np.int32), np.ones(1)
    if player == 1:
        opponents, reach, _ = _reply(opponents, reach, 0, player, theirs, *rules)
    _follow(game.first_of[player], cell, opponents, reach, player, theirs, *rules, ends)


@nb.njit(cache=True, nogil=True)
def _own_reach(table, after, first_of):  # type: ignore[no-untyped-def]
    """The probability of a player's tries at each of its sequences, [K]; a sequence follows those that it goes on from."""
    reach = np.zeros(len(table))
    reach[first_of] = 1
    for at in range(len(table)):
        for cell in range(table.shape[1]):
            for following in after[at, cell]:
                if 0 <= following < len(table):
                    reach[following] = reach[at] * table[at, cell]
    return reach


@nb.njit(cache=True, nogil=True)
def _reply(opponents, reach, marks, player, theirs, own, after, settled):  # type: ignore[no-untyped-def]
    """The opponent tries until it succeeds, at each of its sequences [n] with their reach, against the set of `marks`.

    Returns its sequences and their reach where the game goes on, and the player's value where it does not.
    """
    found, chance = np.empty(2 * len(reach) + 16, np.int32), np.empty(2 * len(reach) + 16)
    waiting, weight = np.empty(_DEPTH, np.int32), np.empty(_DEPTH)
    count, value = 0, 0.0
    for start in range(len(reach)):
        waiting[0], weight[0] = opponents[start], reach[start]
        top = 1
        while top > 0:
            top -= 1
            at, so_far = waiting[top], weight[top]
            for cell in range(theirs.shape[1]):
                share = theirs[at, cell] * so_far
                if share <= 0:
                    continue
                if marks >> cell & 1:
                    waiting[top], weight[top] = after[at, cell, 0], share
                    top += 1
                    continue
                other = own[at] | 1 << cell
                end = settled[marks, other] if player == 0 else -settled[other, marks]
                if abs(end) != OPEN:
                    value += share * end
                    continue
                if count == len(found):
                    found = np.append(found, np.empty_like(found))
                    chance = np.append(chance, np.empty_like(chance))
                found[count], chance[count] = after[at, cell, 1], share
                count += 1
    return found[:count], chance[:count], value


@nb.njit(cache=True, nogil=True)
def _follow(at, cell, opponents, reach, player, theirs, own, after, settled, ends):  # type: ignore[no-untyped-def]
    """Set `ends` [K, cells]: a player's value where a try ends the game before its next one, from one try on.

    The opponent is at the sequences [n] with their reach, which weights all values. Every later try is gone through; what
    waits is a stack of own sequences, each with a part of the arrays `found` and `chance` of the opponent's.
    """
    cells = theirs.shape[1]
    waiting, start = np.empty(2 * cells * cells, np.int32), np.zeros(2 * cells * cells, np.int64)
    found, chance = np.empty(256, np.int32), np.empty(256)
    top = size = 0
    first, last = cell, cell + 1
    while True:
        for tried in range(first, last):
            if after[at, tried, 0] == NO_SEQUENCE and after[at, tried, 1] == NO_SEQUENCE:
                continue
            bit = 1 << tried
            marks, value = own[at] | bit, 0.0
            fails, goes_on = np.zeros(len(reach), np.bool_), np.zeros(len(reach), np.bool_)
            for k in range(len(reach)):
                other = own[opponents[k]]
                if other & bit:
                    fails[k] = True
                    continue
                end = settled[marks, other] if player == 0 else -settled[other, marks]
                if abs(end) == OPEN:
                    goes_on[k] = True
                else:
                    value += reach[k] * end
            for success in range(2):
                if success:
                    then, with_it, ended = _reply(
                        opponents[goes_on], reach[goes_on], marks, player, theirs, own, after, settled
                    )
                    value += ended
                else:
                    then, with_it = opponents[fails], reach[fails]
                if len(then) == 0:
                    continue
                while size + len(then) > len(found):
                    found, chance = np.append(found, np.empty_like(found)), np.append(chance, np.empty_like(chance))
                found[size : size + len(then)], chance[size : size + len(then)] = then, with_it
                waiting[top], start[top] = after[at, tried, success], size
                size += len(then)
                top += 1
            ends[at, tried] = value
        if top == 0:
            return
        top -= 1
        at, opponents, reach = waiting[top], found[start[top] : size].copy(), chance[start[top] : size].copy()
        size = start[top]
        first, last = 0, cells


@nb.njit(cache=True, nogil=True)
def _values(ends, mine, after):  # type: ignore[no-untyped-def]
    """The values [K, 2] of all sequences by a best response and by `mine`, from those of the `ends` after each try."""
    values = np.zeros((len(ends), 2))
    for at in range(len(ends) - 1, -1, -1):
        best = -np.inf
        for cell in range(ends.shape[1]):
            if after[at, cell, 0] == NO_SEQUENCE and after[at, cell, 1] == NO_SEQUENCE:
                continue
            by_best = by_mine = ends[at, cell]
            for following in after[at, cell]:
                if 0 <= following < len(ends):
                    by_best += values[following, 0]
                    by_mine += values[following, 1]
            best = max(best, by_best)
            values[at, 1] += mine[at, cell] * by_mine
        values[at, 0] = best
    return values
