"""The betting of raise-ladder games as a state machine in numba, for games whose tree is too large to list.

A public position is a row of eleven integers, so that kernels step it on a stack and matches step thousands together. The
rungs chosen in a round are a set of bits: with the bit for a check or a call that opened the round they say all that has
happened in it, for only higher rungs may follow and the players take turns.

Actions are numbers: FOLD, CALL (or check), and RUNG + i for rung i of the round's ladder.
"""

from __future__ import annotations

from typing import NamedTuple

import numba as nb
import numpy as np
import numpy.typing as npt

from deepcfr.errors import GameError
from deepcfr.games.betting import CALL, FOLD, FOLDED, NOT_TERMINAL, SHOWDOWN
from deepcfr.games.ladder import LadderRules
from deepcfr.games.poker import hand_problem

RUNG = 2  # the action of the lowest rung
# the entries of a position
ROUND, ACTOR, OPENED, RUNGS, CHIPS, LAST_RAISE, START, RAISED, ENDED = 0, 1, 2, 3, 4, 6, 7, 8, 10
ENTRIES = 11  # CHIPS and RAISED have one for each player
ALL_IN = -1  # the rung that is the whole stack

Ints = npt.NDArray[np.int64]


class Ladder(NamedTuple):
    """Rules of betting as kernels take them."""

    rungs: Ints  # [R, K] ascending, ALL_IN as the last one; 0 beyond the round's own
    length: Ints  # [R] rungs of the round
    of_pot: npt.NDArray[np.bool_]  # [R], whether rungs are percentages of the pot
    most: Ints  # [R] raises allowed
    first_player: Ints  # [R]
    blinds: Ints  # [2]
    stack: int


def compile_ladder(rules: LadderRules) -> Ladder:
    """The rules as arrays; rungs at or below the larger blind, to which nobody can raise, are left out."""
    ladders = []
    for rungs, measure, all_in in zip(rules.ladder, rules.measure, rules.all_in, strict=True):
        useful = [rung for rung in rungs if measure == "pot" or rung > max(rules.blinds)]
        ladders.append(useful + ([ALL_IN] if all_in else []))
    table = np.zeros((len(ladders), max(1, *map(len, ladders))), np.int64)
    for round_, rungs_ in enumerate(ladders):
        table[round_, : len(rungs_)] = rungs_
    return Ladder(
        rungs=table,
        length=np.array([len(rungs_) for rungs_ in ladders], np.int64),
        of_pot=np.array([measure == "pot" for measure in rules.measure]),
        most=np.array(rules.max_raises, np.int64),
        first_player=np.array(rules.first_player, np.int64),
        blinds=np.array(rules.blinds, np.int64),
        stack=rules.stack,
    )


@nb.njit(cache=True, nogil=True)
def begin(ladder: Ladder, position: Ints) -> None:
    """Set `position` to the one after the blinds, before the first action."""
    position[:] = 0
    position[ACTOR] = ladder.first_player[0]
    position[CHIPS] = ladder.blinds[0]
    position[CHIPS + 1] = ladder.blinds[1]
    position[LAST_RAISE] = position[START] = max(ladder.blinds[0], ladder.blinds[1])


@nb.njit(cache=True, nogil=True)
def count_bits(bits: int) -> int:
    """How many bits of a number that is not negative are set."""
    count = 0
    while bits:
        bits &= bits - 1
        count += 1
    return count


@nb.njit(cache=True, nogil=True)
def _reaches(ladder: Ladder, round_: int, rung: int, called: int) -> int:
    """The total that a rung leads to, as far as the stack goes."""
    size = ladder.rungs[round_, rung]
    if size == ALL_IN:
        return ladder.stack
    return min(called + 2 * called * size // 100 if ladder.of_pot[round_] else size, ladder.stack)


@nb.njit(cache=True, nogil=True)
def raise_total(ladder: Ladder, position: Ints, rung: int) -> int:
    """The chips that the actor has put in after raising by a rung; 0 if it may not be chosen."""
    round_, chosen = position[ROUND], position[RUNGS]
    called = max(position[CHIPS], position[CHIPS + 1])
    if called >= ladder.stack or rung >= ladder.length[round_] or chosen >> rung:
        return 0
    if count_bits(chosen) >= ladder.most[round_]:
        return 0
    total = _reaches(ladder, round_, rung, called)
    if total < min(called + position[LAST_RAISE], ladder.stack):
        return 0
    if rung > 0 and not chosen >> (rung - 1) and _reaches(ladder, round_, rung - 1, called) == total:
        return 0
    return total


@nb.njit(cache=True, nogil=True)
def is_legal(ladder: Ladder, position: Ints, action: int) -> bool:
    """Whether the actor may take an action: folding only when facing a bet, calling always."""
    if action == FOLD:
        return position[CHIPS] != position[CHIPS + 1]
    return action == CALL or raise_total(ladder, position, action - RUNG) > 0


@nb.njit(cache=True, nogil=True)
def advance(ladder: Ladder, position: Ints, action: int) -> None:
    """Carry out a legal action in place; the next round begins as soon as the betting is closed.

    After the end ACTOR is the player who stayed in, or any after a showdown, and a showdown is in the last round.
    """
    actor = position[ACTOR]
    called = max(position[CHIPS], position[CHIPS + 1])
    position[ACTOR] = 1 - actor
    if action == FOLD:
        position[ENDED] = FOLDED
        return
    if action >= RUNG:
        total = raise_total(ladder, position, action - RUNG)
        position[LAST_RAISE] = total - called
        position[CHIPS + actor] = total
        position[RUNGS] |= 1 << (action - RUNG)
        return
    position[CHIPS + actor] = called
    if position[OPENED] == 0 and position[RUNGS] == 0:  # nobody has acted: the other player still may
        position[OPENED] = 1
        return
    _close_round(ladder, position, called)


@nb.njit(cache=True, nogil=True)
def _close_round(ladder: Ladder, position: Ints, called: int) -> None:
    rounds = len(ladder.length)
    if position[ROUND] + 1 == rounds or called >= ladder.stack:
        position[ROUND], position[ENDED] = rounds - 1, SHOWDOWN
        return
    raises = count_bits(position[RUNGS])
    first = ladder.first_player[position[ROUND]] ^ position[OPENED]  # who raised first, if somebody did
    if raises > 0:
        position[RAISED + first] += 1
    if raises > 1:
        position[RAISED + 1 - first] += 1
    position[ROUND] += 1
    position[ACTOR] = ladder.first_player[position[ROUND]]
    position[OPENED] = position[RUNGS] = 0
    position[LAST_RAISE] = max(ladder.blinds[0], ladder.blinds[1])
    position[START] = called


@nb.njit(cache=True, nogil=True)
def gain(position: Ints, player: int, result: int) -> int:
    """Chips that a player gains at the end of a game; `result` is 0, 1, 2 for a lost, tied, won showdown of player 0."""
    if position[ENDED] == FOLDED:
        won = 1 if position[ACTOR] == player else -1
    else:
        won = result - 1 if player == 0 else 1 - result
    return won * min(position[CHIPS], position[CHIPS + 1])


# Many positions at once


@nb.njit(cache=True, nogil=True)
def first_positions(ladder: Ladder, count: int) -> Ints:
    """The position after the blinds so many times, int64 [count, ENTRIES]."""
    positions = np.empty((count, ENTRIES), np.int64)
    for row in range(count):
        begin(ladder, positions[row])
    return positions


@nb.njit(cache=True, nogil=True)
def legal_actions(ladder: Ladder, positions: Ints) -> npt.NDArray[np.bool_]:
    """Which actions are legal, bool [n, A]; none where the game has ended."""
    legal = np.zeros((len(positions), RUNG + ladder.rungs.shape[1]), np.bool_)
    for row in range(len(positions)):
        if positions[row, ENDED] == NOT_TERMINAL:
            for action in range(legal.shape[1]):
                legal[row, action] = is_legal(ladder, positions[row], action)
    return legal


@nb.njit(cache=True, nogil=True)
def advance_all(ladder: Ladder, positions: Ints, actions: Ints) -> None:
    """Carry out a legal action [n] at every position [n, ENTRIES], in place."""
    for row in range(len(positions)):
        advance(ladder, positions[row], actions[row])


@nb.njit(cache=True, nogil=True)
def gains(positions: Ints, results: Ints) -> Ints:
    """Chips that player 0 gains at ended positions [n] with showdowns [n], int64 [n]."""
    won = np.empty(len(positions), np.int64)
    for row in range(len(positions)):
        won[row] = gain(positions[row], 0, results[row])
    return won


class LadderGame:
    """A raise-ladder game: its rules, and its betting as kernels take it. It lists no nodes, so it is no `Game`.

    Raises GameError for rules that show a player more cards than can be ranked.
    """

    device = "cpu"

    def __init__(self, rules: LadderRules) -> None:
        if problem := hand_problem(rules.deck):
            raise GameError(problem)
        self.rules = rules
        self.name, self.unit, self.milli_unit = rules.name, rules.unit, rules.milli_unit
        self.ladder = compile_ladder(rules)

    @property
    def num_actions(self) -> int:
        """Fold, call and the most rungs that a round has."""
        return int(RUNG + self.ladder.rungs.shape[1])

    @property
    def slots(self) -> int:
        """Cards of a deal: two hands and the board."""
        return 2 * self.rules.hole_cards + sum(self.rules.board_cards)
