"""The betting of games with bet sizes as a state machine in numba, because its tree may be too large to list.

A public position is a row of twelve integers, so kernels can keep positions on a stack. The sizes chosen in a round are a
set of bits. Together with the bit for an opening check or call they give all actions of the round, because sizes ascend
and players take turns. So all actions of a hand fit into one integer, which is the node of the position as a `Game`.

Actions are numbers: FOLD, CALL (or check), and BET + i for size i of the round's bets.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from deepcfr.core.compiled import nb
from deepcfr.core.types import TERMINAL, Ints
from deepcfr.game.bet_sizes import MOST_SIZES, BetSizeRules
from deepcfr.game.betting import (
    CALL,
    FEWER_SIZES,
    FOLD,
    FOLDED,
    MOST_NODES,
    NOT_TERMINAL,
    SHOWDOWN,
    BettingState,
    PublicTree,
    too_large,
    unroll,
)
from deepcfr.game.hands import count_bits
from deepcfr.game.rules import no_limit

BET = 2  # the action of the lowest size
# the entries of a position; HISTORY has all actions but a fold or a last call
ROUND, ACTOR, OPENED, BETS, CHIPS, LAST_RAISE, START, RAISED, ENDED, HISTORY = 0, 1, 2, 3, 4, 6, 7, 8, 10, 11
ENTRIES = 12  # CHIPS and RAISED have one for each player
_ROUND_BITS = 1 + MOST_SIZES  # of each round in HISTORY, the newest lowest: OPENED, and BETS above it
ALL_IN = -1  # the size that puts in the whole stack


class BetSizes(NamedTuple):
    """The rules of betting as arrays for kernels."""

    sizes: Ints  # [R, K] ascending, ALL_IN as the last one; then 0
    length: Ints  # [R], number of sizes
    of_pot: npt.NDArray[np.bool_]  # [R], whether sizes are percentages of the pot
    most: Ints  # [R], raises allowed
    first_player: Ints  # [R]
    blinds: Ints  # [2]
    stack: int


def compile_sizes(rules: BetSizeRules) -> BetSizes:
    """Convert rules to arrays, without sizes at or below the larger blind, which are never legal."""
    lists = []
    for sizes, measure, all_in in zip(rules.bet_sizes, rules.measure, rules.all_in, strict=True):
        useful = [size for size in sizes if measure == "pot" or size > max(rules.blinds)]
        lists.append(useful + ([ALL_IN] if all_in else []))
    table = np.zeros((len(lists), max(1, *map(len, lists))), np.int64)
    for round_, sizes_ in enumerate(lists):
        table[round_, : len(sizes_)] = sizes_
    return BetSizes(
        sizes=table,
        length=np.array([len(sizes_) for sizes_ in lists], np.int64),
        of_pot=np.array([measure == "pot" for measure in rules.measure]),
        most=np.array(rules.max_raises, np.int64),
        first_player=np.array(rules.first_player, np.int64),
        blinds=np.array(rules.blinds, np.int64),
        stack=rules.stack,
    )


@nb.njit(cache=True, nogil=True)
def begin(bets: BetSizes, position: Ints) -> None:
    """Set `position` to the start of a game, after the blinds."""
    position[:] = 0
    position[ACTOR] = bets.first_player[0]
    position[CHIPS] = bets.blinds[0]
    position[CHIPS + 1] = bets.blinds[1]
    position[LAST_RAISE] = position[START] = max(bets.blinds[0], bets.blinds[1])


@nb.njit(cache=True, nogil=True)
def _reaches(bets: BetSizes, round_: int, size: int, called: int) -> int:
    """The total that a size leads to, at most the stack."""
    amount = bets.sizes[round_, size]
    if amount == ALL_IN:
        return bets.stack
    return min(called + 2 * called * amount // 100 if bets.of_pot[round_] else amount, bets.stack)


@nb.njit(cache=True, nogil=True)
def raise_total(bets: BetSizes, position: Ints, size: int) -> int:
    """The chips that the actor has put in after raising by a size; 0 if the size is illegal."""
    round_, chosen = position[ROUND], position[BETS]
    called = max(position[CHIPS], position[CHIPS + 1])
    if called >= bets.stack or size >= bets.length[round_] or chosen >> size:
        return 0
    if count_bits(chosen) >= bets.most[round_]:
        return 0
    total = _reaches(bets, round_, size, called)
    if total < min(called + position[LAST_RAISE], bets.stack):
        return 0
    if size > 0 and not chosen >> (size - 1) and _reaches(bets, round_, size - 1, called) == total:
        return 0
    return total


@nb.njit(cache=True, nogil=True)
def is_legal(bets: BetSizes, position: Ints, action: int) -> bool:
    """Whether an action is legal: fold only when facing a bet, call always."""
    if action == FOLD:
        return position[CHIPS] != position[CHIPS + 1]
    return action == CALL or raise_total(bets, position, action - BET) > 0


@nb.njit(cache=True, nogil=True)
def advance(bets: BetSizes, position: Ints, action: int) -> None:
    """Apply a legal action in place; if it closes the betting, go to the next round.

    At the end ACTOR is the player who did not fold; at a showdown it has no meaning. A showdown is in the last round.
    """
    actor = position[ACTOR]
    called = max(position[CHIPS], position[CHIPS + 1])
    position[ACTOR] = 1 - actor
    if action == FOLD:
        position[ENDED] = FOLDED
        return
    if action >= BET:
        total = _reaches(bets, position[ROUND], action - BET, called)
        position[LAST_RAISE] = total - called
        position[CHIPS + actor] = total
        position[BETS] |= 1 << (action - BET)
        position[HISTORY] |= 2 << (action - BET)
        return
    position[CHIPS + actor] = called
    if position[OPENED] == 0 and position[BETS] == 0:  # the first action of the round: the other player acts next
        position[OPENED] = 1
        position[HISTORY] |= 1
        return
    _close_round(bets, position, called)


@nb.njit(cache=True, nogil=True)
def _close_round(bets: BetSizes, position: Ints, called: int) -> None:
    rounds = len(bets.length)
    if position[ROUND] + 1 == rounds or called >= bets.stack:
        position[ROUND], position[ENDED] = rounds - 1, SHOWDOWN
        return
    raises = count_bits(position[BETS])
    first = bets.first_player[position[ROUND]] ^ position[OPENED]  # the first player to raise, if there was a raise
    if raises > 0:
        position[RAISED + first] += 1
    if raises > 1:
        position[RAISED + 1 - first] += 1
    position[HISTORY] <<= _ROUND_BITS
    position[ROUND] += 1
    position[ACTOR] = bets.first_player[position[ROUND]]
    position[OPENED] = position[BETS] = 0
    position[LAST_RAISE] = max(bets.blinds[0], bets.blinds[1])
    position[START] = called


@nb.njit(cache=True, nogil=True)
def count_positions(bets: BetSizes, position: Ints, most: int) -> int:
    """The number of positions from one on, itself included; if there are more than `most`, some number above that."""
    if position[ENDED] != NOT_TERMINAL:
        return 1
    total = 1
    for action in range(BET + bets.sizes.shape[1]):
        if total <= most and is_legal(bets, position, action):
            after = position.copy()
            advance(bets, after, action)
            total += count_positions(bets, after, most - total)
    return total


@nb.njit(cache=True, nogil=True)
def gain(position: Ints, player: int, result: int) -> int:
    """A player's payoff in chips at the end of a game; `result` is 0, 1, 2 for a lost, tied, won showdown of player 0."""
    if position[ENDED] == FOLDED:
        won = 1 if position[ACTOR] == player else -1
    else:
        won = result - 1 if player == 0 else 1 - result
    return won * min(position[CHIPS], position[CHIPS + 1])


def round_starts(positions: Ints, round_: int) -> Ints:
    """The nodes [n] where a round began, for positions [n] of that round or a later one."""
    lines = positions[:, HISTORY] >> _ROUND_BITS * (1 + positions[:, ROUND] - round_)
    return lines << _ROUND_BITS + 2  # no action of the round, not ended


# Many positions at once


@nb.njit(cache=True, nogil=True)
def first_positions(bets: BetSizes, count: int) -> Ints:
    """`count` copies of the start of a game, int64 [count, ENTRIES]."""
    positions = np.empty((count, ENTRIES), np.int64)
    for row in range(count):
        begin(bets, positions[row])
    return positions


@nb.njit(cache=True, nogil=True)
def legal_actions(bets: BetSizes, positions: Ints) -> npt.NDArray[np.bool_]:
    """True for legal actions, bool [n, A]; none where the game has ended."""
    legal = np.zeros((len(positions), BET + bets.sizes.shape[1]), np.bool_)
    for row in range(len(positions)):
        if positions[row, ENDED] == NOT_TERMINAL:
            for action in range(legal.shape[1]):
                legal[row, action] = is_legal(bets, positions[row], action)
    return legal


@nb.njit(cache=True, nogil=True)
def gains(positions: Ints, results: Ints) -> Ints:
    """The payoff of player 0 in chips at ended positions [n] with showdowns [n], int64 [n]."""
    won = np.empty(len(positions), np.int64)
    for row in range(len(positions)):
        won[row] = gain(positions[row], 0, results[row])
    return won


# Nodes: a position as one number


@nb.njit(cache=True, nogil=True)
def node_at(position: Ints) -> int:
    """The number of a position. It tells all positions of a game apart: it has their actions and how they ended."""
    return (position[HISTORY] << 2) + position[ENDED]


@nb.njit(cache=True, nogil=True)
def _find(bets: BetSizes, node: int, position: Ints, before: Ints, actions: Ints) -> int:
    """Set `position` to that of a node, by replay. Returns the number of actions.

    Fills `actions` with them and `before` with the nodes where they were taken, as far as the arrays go.
    """
    history, ended, count, closed = node >> 2, node & 3, 0, 0
    while history >> _ROUND_BITS * (closed + 1):  # the first round has an action, so its bits are not all 0
        closed += 1
    begin(bets, position)
    for round_ in range(closed, -1, -1):
        chosen = (history >> _ROUND_BITS * round_) & ((1 << _ROUND_BITS) - 1)
        last = CALL if round_ > 0 or ended == SHOWDOWN else FOLD if ended == FOLDED else -1
        for bit in range(_ROUND_BITS + 1):
            action = last
            if bit < _ROUND_BITS:
                action = -1 if not chosen >> bit & 1 else CALL if bit == 0 else BET + bit - 1
            if action >= 0:
                if count < len(actions):
                    before[count], actions[count] = node_at(position), action
                advance(bets, position, action)
                count += 1
    return count


@nb.njit(cache=True, nogil=True)
def positions_at(bets: BetSizes, nodes: Ints) -> Ints:
    """The positions of nodes [n], int64 [n, ENTRIES]."""
    positions, none = np.empty((len(nodes), ENTRIES), np.int64), np.empty(0, np.int64)
    for row in range(len(nodes)):
        if row and nodes[row] == nodes[row - 1]:
            positions[row] = positions[row - 1]
        else:
            _find(bets, nodes[row], positions[row], none, none)
    return positions


@nb.njit(cache=True, nogil=True)
def positions_in(bets: BetSizes, child: Ints) -> Ints:
    """The positions of the nodes of a tree, int64 [N, ENTRIES]; `child` [N, A] has parents first, and -1 for none."""
    positions = np.empty((len(child), ENTRIES), np.int64)
    begin(bets, positions[0])
    for node in range(len(child)):
        for action in range(child.shape[1]):
            after = child[node, action]
            if after >= 0:
                positions[after] = positions[node]
                advance(bets, positions[after], action)
    return positions


def nodes_of(positions: Ints) -> Ints:
    """The numbers of positions, [n]."""
    return (positions[:, HISTORY] << 2) + positions[:, ENDED]


@nb.njit(cache=True, nogil=True)
def step_all(bets: BetSizes, nodes: Ints, actions: Ints) -> Ints:
    """The nodes after legal actions [n] at nodes [n]; a replay only finds whether a call left both players all-in."""
    after, position, none = np.empty(len(nodes), np.int64), np.empty(ENTRIES, np.int64), np.empty(0, np.int64)
    last = _ROUND_BITS * (len(bets.length) - 1) + 2  # where the first round's actions are in the last round
    for row in range(len(nodes)):
        node, action = nodes[row], actions[row]
        if action == FOLD:
            after[row] = node + FOLDED
        elif action >= BET:
            after[row] = node + (2 << (action - BET) << 2)
        elif node >> 2 & ((1 << _ROUND_BITS) - 1) == 0:  # the first action of a round
            after[row] = node + (1 << 2)
        elif node >> last:
            after[row] = node + SHOWDOWN
        else:
            _find(bets, node, position, none, none)
            advance(bets, position, action)
            after[row] = node_at(position)
    return after


@nb.njit(cache=True, nogil=True)
def places(bets: BetSizes, nodes: Ints) -> Ints:
    """The actor of nodes [n], or TERMINAL, their round, and the number of actions before decisions, [3, n]; no replay."""
    places = np.empty((3, len(nodes)), np.int64)
    for row in range(len(nodes)):
        now, ended, round_ = nodes[row] >> 2, nodes[row] & 3, 0
        while now >> _ROUND_BITS * (round_ + 1):
            round_ += 1
        turn = count_bits(now & ((1 << _ROUND_BITS) - 1)) & 1
        places[0, row] = bets.first_player[round_] ^ turn if ended == NOT_TERMINAL else TERMINAL
        places[1, row] = len(bets.length) - 1 if ended == SHOWDOWN else round_
        places[2, row] = count_bits(now) + round_  # a call closed each earlier round
    return places


@nb.njit(cache=True, nogil=True)
def paths(bets: BetSizes, nodes: Ints) -> tuple[Ints, Ints, Ints]:
    """The decisions before each node [n] and their actions, [n, D], and how many there are, [n]."""
    most = len(bets.length) * (bets.sizes.shape[1] + 2)
    before, actions = np.empty((len(nodes), most), np.int64), np.empty((len(nodes), most), np.int64)
    count, position = np.empty(len(nodes), np.int64), np.empty(ENTRIES, np.int64)
    for row in range(len(nodes)):
        count[row] = _find(bets, nodes[row], position, before[row], actions[row])
    return before, actions, count


# The tree where it can be listed


def can_be_listed(rules: BetSizeRules) -> bool:
    """Whether the betting tree is small enough to list."""
    bets = compile_sizes(rules)
    return bool(count_positions(bets, first_positions(bets, 1)[0], MOST_NODES) <= MOST_NODES)


def bet_size_tree(rules: BetSizeRules, line: Sequence[int] = ()) -> PublicTree:
    """The public tree of a game that begins with the actions `line`.

    Raises GameError for more positions than `betting.MOST_NODES`.
    """
    bets, deck = compile_sizes(rules), no_limit(rules.deck, rules.stack)

    def after(state: BettingState) -> dict[int, BettingState]:
        assert isinstance(state, _AtPosition)
        place = sum(map(len, state.actions))
        if place < len(line):
            return {line[place]: next_position(state, line[place])}
        legal = np.flatnonzero(legal_actions(bets, np.array(state.row)[None])[0])
        return {action: next_position(state, action) for action in legal.tolist()}

    def next_position(state: _AtPosition, action: int) -> _AtPosition:
        row = np.array(state.row)
        advance(bets, row, action)
        chips = (int(row[CHIPS]), int(row[CHIPS + 1]))
        added = float(chips[state.actor] - state.chips[state.actor])
        actions = (*state.actions[:-1], (*state.actions[-1], added))
        if not row[ENDED] and row[ROUND] > state.round:
            actions = (*actions, ())
        return _AtPosition(
            round=int(row[ROUND]),
            actor=int(row[ACTOR]),
            chips=chips,
            raises=int(row[BETS]).bit_count(),
            actions=actions,
            ended=int(row[ENDED]),
            row=tuple(row.tolist()),
        )

    if not line and not can_be_listed(rules):
        raise too_large(deck.name)
    start = first_positions(bets, 1)[0]
    first = _AtPosition(round=0, actor=int(start[ACTOR]), chips=deck.blinds, row=tuple(start.tolist()))
    return unroll(first, after, deck, BET + bets.sizes.shape[1], FEWER_SIZES)


@dataclass(frozen=True)
class _AtPosition(BettingState):
    """A public position with its row in the betting machine, which decides what follows."""

    row: tuple[int, ...] = ()
