"""Phantom tic-tac-toe: a game of your own whose nodes are not listed, but found when they are asked for.

    deepcfr train phantom_tic_tac_toe:PhantomTicTacToe --sampling.actions 2 --out runs/phantom        (in this folder)

Both players place marks on one board and do not see each other's. A try on a cell that the other one has marked fails, is
seen by its player alone, and the same player tries again. So what a player knows is the *sequence* of its own tries and
which of them failed, and a history is a pair of sequences, one of each player. Phantom tic-tac-toe has 5,990,669 infosets
and some 17 billion histories. OpenSpiel says who wins.

A best response goes through the player's own sequences, and carries along all of the opponent's that fit, with the
probability that it plays so. Histories that have one free cell left are not gone into, because their end is known.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from functools import partial

import numpy as np
import numpy.typing as npt
import torch

from deepcfr.core.compiled import nb
from deepcfr.core.errors import GameError
from deepcfr.core.parallel import Workers
from deepcfr.core.types import TERMINAL, Encoding, Infosets
from deepcfr.game.base import Deals, Game, NodeFunction
from deepcfr.game.openspiel import SpielGame, SpielState, import_pyspiel
from deepcfr.policy.base import OnPart, Payoffs, Policy

_LOG = logging.getLogger(f"deepcfr.{__name__}")
NO_SEQUENCE = -1
OPEN = 2  # in `settled`: the winner depends on later moves
_LOST, _DRAWN = 2, 3  # in `outcome`, by player 0, who has won at 4; below them is the player to move
_AT_ONCE = 1 << 16  # infosets that a policy is asked about together
_DEPTH = 64  # more than the tries that can wait
_UNREACHED = 1e-40  # the share in averages of what no policy's own reach comes to

Boards = npt.NDArray[np.int8]
Sequences = npt.NDArray[np.int32]
Table = npt.NDArray[np.float32]
Floats = npt.NDArray[np.float64]


class PhantomTicTacToe:
    """A game of two players who place marks on cells in turn and see only their own tries, by its name in OpenSpiel.

    Sequences of both players share their numbers: `first_of[p]` is player p's empty one, and those at which it decides
    follow. They are the infosets. The numbers from `num_infosets` on are sets of own marks of players who decide no more.
    Node i * M + j is the history with the sequences i of player 0 and j of player 1, of M; the last three nodes are the
    ends. Action k is a try on cell k.
    """

    unit, milli_unit = "points", "mpoints/g"

    def __init__(self, rules: str | SpielGame = "phantom_ttt", device: str = "cpu") -> None:
        game = import_pyspiel().load_game(rules) if isinstance(rules, str) else rules
        self.spiel_game, self.name, self.device = game, str(rules), device
        version = [game.get_parameters()[word] for word in ("gameversion", "obstype")]
        if version not in (["classical", "reveal-nothing"], ["cdh", "reveal-nothing"]):
            raise GameError(f"A failed try must cost no turn and show nothing else, but '{self.name}' is {version}.")
        self.cells = game.num_distinct_actions()
        self.action_ids = np.arange(self.cells)
        _LOG.info("listing the infosets of %s, which takes half a minute for nine cells", self.name)
        self.outcome = _outcomes(game, self.cells)
        self.settled = _settled(self.outcome, self.cells)
        parts = [_sequences(self.outcome, player, self.cells) for player in (0, 1)]
        self.first_of = (0, len(parts[0][0]))
        self.num_infosets = sum(len(own) for own, _, _, _ in parts)
        sets = np.arange(1 << self.cells, dtype=np.int16)
        self.own = np.concatenate([parts[0][0], parts[1][0], sets])  # int16 [M], the set of own marks
        self.after = np.concatenate([self._renumbered(part[3], player) for player, part in enumerate(parts)])
        order = np.concatenate([part[2] for part in parts])
        tried = np.concatenate([part[1] for part in parts])
        self._own, self._after = torch.from_numpy(self.own).to(device), torch.from_numpy(self.after).to(device)
        self._outcome = torch.from_numpy(self.outcome).to(device)
        self._count = len(self.own)
        self._ends = self._count**2
        self.size = f"{self.num_infosets:,} infosets, and too many histories to list"
        self._place_infosets(tried, order)
        self._place_nodes()

    def _renumbered(self, after: Sequences, player: int) -> Sequences:
        """The sequences after each try, as numbers of both players' and not of its own and of sets of marks below -1."""
        shifted = np.where(after >= 0, after + self.first_of[player], after)
        found: Sequences = np.where(after < NO_SEQUENCE, self.num_infosets - 2 - after, shifted).astype(np.int32)
        return found

    def _place_infosets(self, tried: npt.NDArray[np.int16], order: npt.NDArray[np.uint8]) -> None:
        """A player sees its marks, the marks that it found, and when it tried each cell."""
        cells, device = torch.arange(self.cells, device=self.device), self.device
        tried_there = torch.from_numpy(tried).to(device)[:, None] >> cells & 1
        own = self._own[: self.num_infosets, None] >> cells & 1
        mover = torch.arange(self.num_infosets, device=device) >= self.first_of[1]
        features = torch.empty(self.num_infosets, 3 * self.cells + 1, device=device)
        features[:, : self.cells] = own
        features[:, self.cells : 2 * self.cells] = tried_there - own
        features[:, 2 * self.cells : -1] = torch.from_numpy(order).to(device) / self.cells
        features[:, -1] = mover
        self.encoding = Encoding(features, tried_there == 0, card_groups=(), num_ranks=0, num_suits=0)
        self._owner = mover.long()

    def _place_nodes(self) -> None:
        none = torch.zeros(self.num_infosets, dtype=torch.int64, device=self.device)
        self.actor = NodeFunction(self._actor, self._owner)
        self.round = NodeFunction(torch.zeros_like, none)
        self.deals_before = NodeFunction(torch.zeros_like)
        self.infoset = NodeFunction(self._infoset)
        self.legal = NodeFunction(self._legal)

    def _sides(self, node: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """The sequences of both players at nodes that are no ends; any at ends."""
        return torch.where(node < self._ends, node // self._count, 0), node % self._count

    def _actor(self, node: torch.Tensor) -> torch.Tensor:
        first, second = self._sides(node)
        mover = self._outcome[self._own[first].long(), self._own[second].long()].long()
        return torch.where(node < self._ends, mover, TERMINAL)

    def _infoset(self, node: torch.Tensor) -> torch.Tensor:
        first, second = self._sides(node)
        return torch.where(self._actor(node) == 1, second, first)

    def _legal(self, node: torch.Tensor) -> torch.Tensor:
        return self.encoding.legal[self._infoset(node)] & (node < self._ends)[:, None]

    def deal(self, count: int, stream: int, first: int = 0) -> Deals:  # noqa: ARG002
        traversal = torch.arange(first, first + count, device=self.device)
        return Deals(traversal, torch.zeros(count, 2, 1, 0, dtype=torch.uint8, device=self.device), hidden=None)

    def start(self, deals: Deals) -> torch.Tensor:
        return torch.full_like(deals.traversal, self.first_of[1])

    def step(self, node: torch.Tensor, action: torch.Tensor, row: torch.Tensor, deals: Deals) -> torch.Tensor:  # noqa: ARG002
        first, second = self._sides(node)
        moves_first = self._actor(node) == 0
        mine, other = torch.where(moves_first, first, second), torch.where(moves_first, second, first)
        marks = self._own[mine].long(), self._own[other].long()
        succeeds = 1 - (marks[1] >> action & 1)
        own = marks[0] | (succeeds << action)
        following = self._after[mine, action, succeeds].long()
        state = self._outcome[torch.where(moves_first, own, marks[1]), torch.where(moves_first, marks[1], own)].long()
        going = torch.where(moves_first, following * self._count + other, other * self._count + following)
        return torch.where(state < _LOST, going, self._ends + state - _LOST)

    def payoff(self, node: torch.Tensor, row: torch.Tensor, deals: Deals) -> torch.Tensor:  # noqa: ARG002
        return (node - self._ends - 1).float()

    def infoset_of(self, state: SpielState, player: int) -> Infosets:
        """The infoset of a player at OpenSpiel's state, optional: it lets agents play in OpenSpiel."""
        node = torch.tensor([self.sequence(((move.player, move.action) for move in state.full_history()), player)])
        return Infosets(node.to(self.device), torch.empty(1, 0, dtype=torch.uint8, device=self.device))

    def sequence(self, moves: Iterable[tuple[int, int]], player: int) -> int:
        """The player's sequence after all `moves` of a history, each a player and a cell."""
        at, marks = self.first_of[player], [0, 0]
        for mover, cell in moves:
            succeeds = not marks[1 - mover] >> cell & 1
            marks[mover] |= succeeds << cell
            if mover == player:
                at = int(self.after[at, cell, int(succeeds)])
        return at

    def exact_payoffs(self, first: Policy, second: Policy, threads: int = 1, on_part: OnPart | None = None) -> Payoffs:
        mine, theirs = table_of(first), table_of(second)
        if np.isnan(mine).any() or np.isnan(theirs).any():
            return (np.nan, np.nan), (np.nan, np.nan)
        parts = [(player, cell) for player in (0, 1) for cell in range(self.cells)]
        ends = np.zeros((self.num_infosets, self.cells))
        with Workers(threads) as workers:
            for number, _ in enumerate(workers.map(partial(_find_ends, self, theirs, ends), parts)):
                if on_part:
                    on_part(number + 1, len(parts))
        values = _values(ends, mine, self.after)
        zero, one = ((float(values[at, 0]), float(values[at, 1])) for at in self.first_of)
        return zero, one

    def average(self, policies: Sequence[Policy], weights: Floats, kind: str) -> Policy:
        total = np.zeros((self.num_infosets, self.cells))
        for policy, weight in zip(policies, weights, strict=True):
            table = table_of(policy)
            own = _own_reach(table, self.after, np.array(self.first_of))
            total += weight * (own[:, None] + _UNREACHED) * table
        return PhantomTable(self, (total / total.sum(1, keepdims=True)).astype(np.float32), kind)


def _outcomes(game: SpielGame, cells: int) -> Boards:
    """The player to move, or who has won, by the sets of marks of both players; -1 if the game never comes there."""
    outcome = np.full((1 << cells, 1 << cells), -1, np.int8)
    waiting = [(game.new_initial_state(), (0, 0))]
    while waiting:
        state, marks = waiting.pop()
        if outcome[marks] >= 0:
            continue
        if state.is_terminal():
            outcome[marks] = _DRAWN + round(state.returns()[0])
            continue
        player = outcome[marks] = state.current_player()
        for cell in range(cells):
            if not (marks[0] | marks[1]) >> cell & 1:
                after = [*marks]
                after[player] |= 1 << cell
                waiting.append((state.child(cell), (after[0], after[1])))
    return outcome


def _settled(outcome: Boards, cells: int) -> Boards:
    """Player 0's payoff where the game is over or only one cell is free, by the marks of both; `OPEN` elsewhere."""
    settled = np.full_like(outcome, OPEN)
    for first, second in np.argwhere(outcome >= 0):
        state, free = outcome[first, second], ((1 << cells) - 1) & ~(first | second)
        if state < _LOST and free & (free - 1) == 0:
            state = outcome[first | free, second] if state == 0 else outcome[first, second | free]
        if state >= _LOST:
            settled[first, second] = state - _DRAWN
    return settled


def _sequences(
    outcome: Boards, player: int, cells: int
) -> tuple[npt.NDArray[np.int16], npt.NDArray[np.int16], npt.NDArray[np.uint8], Sequences]:
    """Every sequence at which a player decides, each after the one that it goes on from.

    Returns its marks and the cells that it tried, as sets, [D]; when it tried each cell, from 1 on, [D, cells]; and the
    sequences after a failure and after a success on each cell, [D, cells, 2], where `NO_SEQUENCE` is impossible and -2 - m
    is the set m of marks of a player who decides no more.
    """
    size = 1 << 10
    while True:
        own, tried, order, after = _list_sequences(outcome, player, cells, size)
        if len(own) < size:
            return own, tried, order, after
        size *= 4


@nb.njit(cache=True)
def _list_sequences(outcome, player, cells, most):  # type: ignore[no-untyped-def]
    own, tried = np.zeros(most, np.int16), np.zeros(most, np.int16)
    order = np.zeros((most, cells), np.uint8)
    after = np.full((most, cells, 2), NO_SEQUENCE, np.int32)
    waiting = np.zeros(2 * cells * cells, np.int64)
    # what the other one's marks can be at each waiting sequence
    beliefs, sizes = np.zeros((len(waiting), 1 << cells), np.int16), np.zeros(len(waiting), np.int64)
    seen = np.zeros(1 << cells, np.bool_)
    count = top = sizes[0] = 1
    if player == 1:
        sizes[0] = cells
        for cell in range(cells):
            beliefs[0, cell] = 1 << cell
    while top > 0:
        top -= 1
        at = waiting[top]
        believed = beliefs[top, : sizes[top]].copy()
        for cell in range(cells):
            bit = 1 << cell
            if tried[at] & bit:
                continue
            for success in range(2):
                mine, size, possible = own[at] | (bit if success else 0), 0, False
                seen[:] = False
                for other in believed:
                    if (other & bit != 0) == (success == 1):
                        continue
                    if not success:
                        beliefs[top, size] = other
                        size += 1
                        continue
                    possible = True
                    state = outcome[mine, other] if player == 0 else outcome[other, mine]
                    if state >= _LOST:
                        continue
                    for reply in range(cells):
                        then = other | 1 << reply
                        if mine >> reply & 1 or then == other or seen[then]:
                            continue
                        state = outcome[mine, then] if player == 0 else outcome[then, mine]
                        if state == player:
                            seen[then] = True
                            beliefs[top, size] = then
                            size += 1
                if size > 0:
                    if count == most:
                        return own, tried, order, after
                    own[count], tried[count], order[count] = mine, tried[at] | bit, order[at]
                    order[count, cell] = order[at].max() + 1
                    after[at, cell, success] = count
                    waiting[top], sizes[top] = count, size
                    top += 1
                    count += 1
                elif possible:
                    after[at, cell, success] = -2 - mine
    return own[:count], tried[:count], order[:count], after[:count]


class PhantomTable(Policy):
    """The probabilities of all tries at all sequences, float32 [K, cells]."""

    def __init__(self, game: PhantomTicTacToe, table: Table, kind: str = "table") -> None:
        self.game: Game = game
        self.table, self.kind = table, kind
        self._rows = torch.from_numpy(table).to(game.device)

    def probabilities(self, infosets: Infosets) -> torch.Tensor:
        return self._rows[infosets.node.long()]


def table_of(policy: Policy) -> Table:
    """The table of any policy of a phantom game, float32 [K, cells]."""
    if isinstance(policy, PhantomTable):
        return policy.table
    game = policy.game
    assert isinstance(game, PhantomTicTacToe)
    table = np.empty((game.num_infosets, game.cells), np.float32)
    for first in range(0, len(table), _AT_ONCE):
        node = torch.arange(first, min(first + _AT_ONCE, len(table)), device=game.device)
        cards = torch.empty(len(node), 0, dtype=torch.uint8, device=game.device)
        table[first : first + len(node)] = policy.probabilities(Infosets(node, cards)).cpu().numpy()
    return table


def _find_ends(game: PhantomTicTacToe, theirs: Table, ends: Floats, part: tuple[int, int]) -> None:
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
