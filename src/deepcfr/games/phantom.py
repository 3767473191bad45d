"""Phantom tic-tac-toe of OpenSpiel as a `Game`: too many histories to list, but few enough infosets.

Both players place marks on one board and do not see each other's. A try on a cell that the other one has marked fails, is
seen by its player alone, and the same player tries again. So what a player knows is the *sequence* of its own tries and
which of them failed, and a history is a pair of sequences, one of each player. Phantom tic-tac-toe has 5,990,669 infosets
and some 17 billion histories.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import torch

from deepcfr.compiled import nb
from deepcfr.games.base import Deals, NodeFunction
from deepcfr.games.openspiel_tree import SpielGame
from deepcfr.types import TERMINAL, Encoding

_LOG = logging.getLogger(__name__)
NO_SEQUENCE = -1
OPEN = 2  # in `settled`: the winner depends on later moves
_LOST, _DRAWN = 2, 3  # in `outcome`, by player 0, who has won at 4; below them is the player to move

Boards = npt.NDArray[np.int8]
Sequences = npt.NDArray[np.int32]


def is_phantom_tic_tac_toe(game: SpielGame) -> bool:
    """Whether OpenSpiel's `game` is phantom tic-tac-toe in which a failed try costs no turn and shows nothing else."""
    rules = game.get_parameters()
    plain = {"gameversion": "classical", "obstype": "reveal-nothing"}
    return bool(game.get_type().short_name == "phantom_ttt" and rules == plain)


class PhantomGame:
    """A game of two players who place marks on cells in turn and see only their own tries: OpenSpiel says who wins.

    Sequences of both players share their numbers: `first_of[p]` is player p's empty one, and those at which it decides
    follow. They are the infosets. The numbers from `num_infosets` on are sets of own marks of players who decide no more.
    Node i * M + j is the history with the sequences i of player 0 and j of player 1, of M; the last three nodes are the
    ends. Action k is a try on cell k.
    """

    unit, milli_unit = "points", "mpoints/g"

    def __init__(self, game: SpielGame, source: str, device: str = "cpu") -> None:
        self.spiel_game, self.source, self.name, self.device = game, source, source, device
        self.cells = game.num_distinct_actions()
        _LOG.info("listing the infosets of %s, which takes half a minute for nine cells", source)
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
        self._place_infosets(tried, order)
        self._place_nodes()

    @property
    def size(self) -> str:
        """The size in words."""
        return f"{self.num_infosets:,} infosets, and too many histories to list"

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

    def infoset_of(self, moves: Iterable[tuple[int, int]], player: int) -> int:
        """The player's infoset after all `moves` of a history, each a player and a cell."""
        at, marks = self.first_of[player], [0, 0]
        for mover, cell in moves:
            succeeds = not marks[1 - mover] >> cell & 1
            marks[mover] |= succeeds << cell
            if mover == player:
                at = int(self.after[at, cell, int(succeeds)])
        return at


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
