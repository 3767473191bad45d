"""The betting of raise-ladder games as a state machine in numba, because its tree may be too large to list.

A public position is a row of twelve integers, so kernels can keep positions on a stack. The rungs chosen in a round are a
set of bits. Together with the bit for an opening check or call they give all actions of the round, because rungs ascend
and players take turns. So all actions of a hand fit into one integer, which is the node of the position as a `Game`.

Actions are numbers: FOLD, CALL (or check), and RUNG + i for rung i of the round's ladder.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from deepcfr.compiled import nb
from deepcfr.games.base import Deals, NodeFunction
from deepcfr.games.betting import CALL, FOLD, FOLDED, NOT_TERMINAL, SHOWDOWN
from deepcfr.games.hands import count_bits
from deepcfr.games.ladder import MOST_RUNGS, LadderRules
from deepcfr.games.poker import Poker, Suits
from deepcfr.games.public_state import PublicState
from deepcfr.games.rules import PokerRules, no_limit
from deepcfr.types import TERMINAL, Encoding, Ints

RUNG = 2  # the action of the lowest rung
# the entries of a position; HISTORY has all actions but a fold or a last call
ROUND, ACTOR, OPENED, RUNGS, CHIPS, LAST_RAISE, START, RAISED, ENDED, HISTORY = 0, 1, 2, 3, 4, 6, 7, 8, 10, 11
ENTRIES = 12  # CHIPS and RAISED have one for each player
_ROUND_BITS = 1 + MOST_RUNGS  # of each round in HISTORY, the newest lowest: OPENED, and RUNGS above it
ALL_IN = -1  # the rung that puts in the whole stack


class Ladder(NamedTuple):
    """The rules of betting as arrays for kernels."""

    rungs: Ints  # [R, K] ascending, ALL_IN as the last one; then 0
    length: Ints  # [R], number of rungs
    of_pot: npt.NDArray[np.bool_]  # [R], whether rungs are percentages of the pot
    most: Ints  # [R], raises allowed
    first_player: Ints  # [R]
    blinds: Ints  # [2]
    stack: int


def compile_ladder(rules: LadderRules) -> Ladder:
    """Convert rules to arrays, without rungs at or below the larger blind, which are never legal."""
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
    """Set `position` to the start of a game, after the blinds."""
    position[:] = 0
    position[ACTOR] = ladder.first_player[0]
    position[CHIPS] = ladder.blinds[0]
    position[CHIPS + 1] = ladder.blinds[1]
    position[LAST_RAISE] = position[START] = max(ladder.blinds[0], ladder.blinds[1])


@nb.njit(cache=True, nogil=True)
def _reaches(ladder: Ladder, round_: int, rung: int, called: int) -> int:
    """The total that a rung leads to, at most the stack."""
    size = ladder.rungs[round_, rung]
    if size == ALL_IN:
        return ladder.stack
    return min(called + 2 * called * size // 100 if ladder.of_pot[round_] else size, ladder.stack)


@nb.njit(cache=True, nogil=True)
def raise_total(ladder: Ladder, position: Ints, rung: int) -> int:
    """The chips that the actor has put in after raising by a rung; 0 if the rung is illegal."""
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
    """Whether an action is legal: fold only when facing a bet, call always."""
    if action == FOLD:
        return position[CHIPS] != position[CHIPS + 1]
    return action == CALL or raise_total(ladder, position, action - RUNG) > 0


@nb.njit(cache=True, nogil=True)
def advance(ladder: Ladder, position: Ints, action: int) -> None:
    """Apply a legal action in place; if it closes the betting, go to the next round.

    At the end ACTOR is the player who did not fold; at a showdown it has no meaning. A showdown is in the last round.
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
        position[HISTORY] |= 2 << (action - RUNG)
        return
    position[CHIPS + actor] = called
    if position[OPENED] == 0 and position[RUNGS] == 0:  # the first action of the round: the other player acts next
        position[OPENED] = 1
        position[HISTORY] |= 1
        return
    _close_round(ladder, position, called)


@nb.njit(cache=True, nogil=True)
def _close_round(ladder: Ladder, position: Ints, called: int) -> None:
    rounds = len(ladder.length)
    if position[ROUND] + 1 == rounds or called >= ladder.stack:
        position[ROUND], position[ENDED] = rounds - 1, SHOWDOWN
        return
    raises = count_bits(position[RUNGS])
    first = ladder.first_player[position[ROUND]] ^ position[OPENED]  # the first player to raise, if there was a raise
    if raises > 0:
        position[RAISED + first] += 1
    if raises > 1:
        position[RAISED + 1 - first] += 1
    position[HISTORY] <<= _ROUND_BITS
    position[ROUND] += 1
    position[ACTOR] = ladder.first_player[position[ROUND]]
    position[OPENED] = position[RUNGS] = 0
    position[LAST_RAISE] = max(ladder.blinds[0], ladder.blinds[1])
    position[START] = called


@nb.njit(cache=True, nogil=True)
def count_positions(ladder: Ladder, position: Ints, most: int) -> int:
    """The number of positions from one on, itself included; if there are more than `most`, some number above that."""
    if position[ENDED] != NOT_TERMINAL:
        return 1
    total = 1
    for action in range(RUNG + ladder.rungs.shape[1]):
        if total <= most and is_legal(ladder, position, action):
            after = position.copy()
            advance(ladder, after, action)
            total += count_positions(ladder, after, most - total)
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
    nodes: Ints = lines << _ROUND_BITS + 2  # no action of the round, not ended
    return nodes


# Many positions at once


@nb.njit(cache=True, nogil=True)
def first_positions(ladder: Ladder, count: int) -> Ints:
    """`count` copies of the start of a game, int64 [count, ENTRIES]."""
    positions = np.empty((count, ENTRIES), np.int64)
    for row in range(count):
        begin(ladder, positions[row])
    return positions


@nb.njit(cache=True, nogil=True)
def legal_actions(ladder: Ladder, positions: Ints) -> npt.NDArray[np.bool_]:
    """True for legal actions, bool [n, A]; none where the game has ended."""
    legal = np.zeros((len(positions), RUNG + ladder.rungs.shape[1]), np.bool_)
    for row in range(len(positions)):
        if positions[row, ENDED] == NOT_TERMINAL:
            for action in range(legal.shape[1]):
                legal[row, action] = is_legal(ladder, positions[row], action)
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
def _find(ladder: Ladder, node: int, position: Ints, before: Ints, actions: Ints) -> int:
    """Set `position` to that of a node, by replay. Returns the number of actions.

    Fills `actions` with them and `before` with the nodes where they were taken, as far as the arrays go.
    """
    history, ended, count, closed = node >> 2, node & 3, 0, 0
    while history >> _ROUND_BITS * (closed + 1):  # the first round has an action, so its bits are not all 0
        closed += 1
    begin(ladder, position)
    for round_ in range(closed, -1, -1):
        chosen = (history >> _ROUND_BITS * round_) & ((1 << _ROUND_BITS) - 1)
        last = CALL if round_ > 0 or ended == SHOWDOWN else FOLD if ended == FOLDED else -1
        for bit in range(_ROUND_BITS + 1):
            action = last
            if bit < _ROUND_BITS:
                action = -1 if not chosen >> bit & 1 else CALL if bit == 0 else RUNG + bit - 1
            if action >= 0:
                if count < len(actions):
                    before[count], actions[count] = node_at(position), action
                advance(ladder, position, action)
                count += 1
    return count


@nb.njit(cache=True, nogil=True)
def positions_at(ladder: Ladder, nodes: Ints) -> Ints:
    """The positions of nodes [n], int64 [n, ENTRIES]."""
    positions, none = np.empty((len(nodes), ENTRIES), np.int64), np.empty(0, np.int64)
    for row in range(len(nodes)):
        if row and nodes[row] == nodes[row - 1]:
            positions[row] = positions[row - 1]
        else:
            _find(ladder, nodes[row], positions[row], none, none)
    return positions


@nb.njit(cache=True, nogil=True)
def step_all(ladder: Ladder, nodes: Ints, actions: Ints) -> Ints:
    """The nodes after legal actions [n] at nodes [n]."""
    positions, after = positions_at(ladder, nodes), np.empty(len(nodes), np.int64)
    for row in range(len(nodes)):
        advance(ladder, positions[row], actions[row])
        after[row] = node_at(positions[row])
    return after


@nb.njit(cache=True, nogil=True)
def _places(ladder: Ladder, nodes: Ints) -> Ints:
    """The actor of nodes [n], or TERMINAL, their round, and the number of actions before decisions, [3, n]; no replay."""
    places = np.empty((3, len(nodes)), np.int64)
    for row in range(len(nodes)):
        now, ended, round_ = nodes[row] >> 2, nodes[row] & 3, 0
        while now >> _ROUND_BITS * (round_ + 1):
            round_ += 1
        turn = count_bits(now & ((1 << _ROUND_BITS) - 1)) & 1
        places[0, row] = ladder.first_player[round_] ^ turn if ended == NOT_TERMINAL else TERMINAL
        places[1, row] = len(ladder.length) - 1 if ended == SHOWDOWN else round_
        places[2, row] = count_bits(now) + round_  # a call closed each earlier round
    return places


@nb.njit(cache=True, nogil=True)
def _paths(ladder: Ladder, nodes: Ints) -> tuple[Ints, Ints, Ints]:
    """The decisions before each node [n] and their actions, [n, D], and how many there are, [n]."""
    most = len(ladder.length) * (ladder.rungs.shape[1] + 2)
    before, actions = np.empty((len(nodes), most), np.int64), np.empty((len(nodes), most), np.int64)
    count, position = np.empty(len(nodes), np.int64), np.empty(ENTRIES, np.int64)
    for row in range(len(nodes)):
        count[row] = _find(ladder, nodes[row], position, before[row], actions[row])
    return before, actions, count


class LadderGame(Poker):
    """A raise-ladder game, whose betting tree may be too large to list: a node is computed from the actions before it.

    Its rules are those of no-limit poker with its stacks, and its actions those of the ladder.
    """

    source: LadderRules

    def __init__(self, rules: LadderRules, suits: Suits = "canonical") -> None:
        super().__init__(no_limit(rules.deck, rules.stack), suits, source=rules)
        self.ladder = compile_ladder(rules)
        self.num_actions = int(RUNG + self.ladder.rungs.shape[1])  # fold, call and the most rungs of a round
        features, none = torch.empty(0, 0), torch.empty(0, self.num_actions, dtype=torch.bool)
        self.encoding = Encoding(features, none, self.card_groups, rules.num_ranks, rules.num_suits)
        self.actor = NodeFunction(lambda node: self._place(node, 0))
        self.round = NodeFunction(lambda node: self._place(node, 1))
        self.infoset = NodeFunction(lambda node: node)
        self.legal = NodeFunction(
            lambda node: torch.from_numpy(legal_actions(self.ladder, self.positions(node.numpy())))
        )
        self.deals_before = NodeFunction(self._deals_before)

    def positions(self, nodes: Ints) -> Ints:
        """The positions of nodes [n], int64 [n, ENTRIES]."""
        found: Ints = positions_at(self.ladder, nodes)
        return found

    def _place(self, node: torch.Tensor, entry: int) -> torch.Tensor:
        return torch.from_numpy(_places(self.ladder, node.numpy())[entry])

    def _deals_before(self, node: torch.Tensor) -> torch.Tensor:
        before, _, count = _paths(self.ladder, node.numpy())
        parents = torch.from_numpy(before[np.arange(len(before)), np.maximum(count, 1) - 1])
        return torch.where(torch.from_numpy(count == 0), 1, self.round[node] - self.round[parents])

    def depth(self, node: torch.Tensor) -> torch.Tensor:
        """The number of actions before decisions [M], int64 [M]."""
        return self._place(node, 2)

    def state(self) -> SteppedState:
        return SteppedState(self, first_positions(self.ladder, 1)[0])

    def node_of(self, state: PublicState) -> int:
        assert isinstance(state, SteppedState)
        return int(node_at(state.position))

    def paths(self, nodes: Ints) -> tuple[Ints, Ints, Ints]:
        before, actions, count = _paths(self.ladder, nodes)
        row, place = np.nonzero(np.arange(before.shape[1]) < count[:, None])
        return row, before[row, place], actions[row, place]

    def start(self, deals: Deals) -> torch.Tensor:
        return torch.zeros_like(deals.traversal)

    def step(self, node: torch.Tensor, action: torch.Tensor, row: torch.Tensor, deals: Deals) -> torch.Tensor:  # noqa: ARG002
        return torch.from_numpy(step_all(self.ladder, node.numpy(), action.numpy()))

    def payoff(self, node: torch.Tensor, row: torch.Tensor, deals: Deals) -> torch.Tensor:
        """As in `Game`, but float64: chips are seldom exact shares of a unit in float32."""
        won = gains(self.positions(node.numpy()), deals.hidden[row].numpy())
        return torch.from_numpy(won / self.rules.unit_chips)


@dataclass(frozen=True)
class SteppedState(PublicState):
    """The public state of a raise-ladder game: a position of the state machine with the actions so far.

    In text a raise has its size: the total in units for a ladder in chips (`r4` is a raise to four big blinds), the share
    of the pot for a ladder of the pot (`b0.5`); `a` is all-in.
    """

    game: LadderGame
    position: Ints  # [ENTRIES]
    betting: tuple[str, ...] = ("",)
    place: int = 0  # number of actions so far

    @property
    def rules(self) -> PokerRules:
        return self.game.rules

    @property
    def round(self) -> int:
        return int(self.position[ROUND])

    @property
    def actor(self) -> int:
        return int(self.position[ACTOR])

    @property
    def ended(self) -> int:
        return int(self.position[ENDED])

    @property
    def winner(self) -> int:
        return int(self.position[ACTOR])

    @property
    def chips(self) -> tuple[int, int]:
        first, second = self.position[CHIPS : CHIPS + 2].tolist()
        return first, second

    @property
    def raised(self) -> bool:
        return bool(self.position[RUNGS] > 0)

    def legal(self) -> list[int]:
        return np.flatnonzero(legal_actions(self.game.ladder, self.position[None])[0]).tolist()

    def after(self, action: int) -> SteppedState:
        betting = (*self.betting[:-1], f"{self.betting[-1]} {self.token(action)}".strip())
        position = self.position.copy()
        advance(self.game.ladder, position, action)
        if position[ENDED] == NOT_TERMINAL and position[ROUND] > self.round:
            betting = (*betting, "")
        return SteppedState(self.game, position, betting, self.place + 1)

    def token(self, action: int) -> str:
        if action < RUNG:
            return "fc"[action]
        rung, of_pot = self._rung(action)
        return "a" if rung == ALL_IN else f"r{rung / (100 if of_pot else self.rules.unit_chips):g}"

    def understands(self, token: str) -> bool:
        return re.fullmatch(r"[fcka]|[rb]\d+(\.\d+)?", token.lower()) is not None

    def read(self, token: str) -> int | None:
        simple = token.lower().replace("b", "r", 1).replace("k", "c", 1)
        if re.fullmatch(r"r\d+(\.\d+)?", simple):
            simple = f"r{float(simple[1:]):g}"
        return next((action for action in self.legal() if self.token(action) == simple), None)

    def size(self, action: int) -> str:
        rung, of_pot = self._rung(action)
        earlier = self.position[START] if self.round else 0  # amounts are those of the round, as players name them
        total = (raise_total(self.game.ladder, self.position, action - RUNG) - earlier) / self.rules.unit_chips
        if rung != ALL_IN and of_pot:
            return f" {rung / 100:g} pot (to {total:g})"
        return f" to {total:g}{' all-in' if rung == ALL_IN else ''}"

    def _rung(self, action: int) -> tuple[int, bool]:
        ladder = self.game.ladder
        return int(ladder.rungs[self.round, action - RUNG]), bool(ladder.of_pot[self.round])
