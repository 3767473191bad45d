"""Raise-ladder games with a list of nodes, for networks and search, if their betting tree is small enough."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from deepcfr.errors import GameError
from deepcfr.games.betting import MOST_NODES, BettingState, PublicTree, too_large, unroll
from deepcfr.games.ladder import LadderRules
from deepcfr.games.ladder_betting import (
    ACTOR,
    CHIPS,
    ENDED,
    ENTRIES,
    HISTORY,
    ROUND,
    RUNGS,
    LadderGame,
    SteppedState,
    advance,
    count_positions,
)
from deepcfr.games.ladder_betting import legal_actions as legal_at
from deepcfr.games.poker import PokerGame, Suits
from deepcfr.games.public_state import PublicState
from deepcfr.games.rules import no_limit

Ints = npt.NDArray[np.int64]
_ADVICE = "networks, search and exact evaluation need fewer sizes or raises, and only 'solve' with mccfr does not"


@dataclass(frozen=True)
class _Stepped(BettingState):
    """A public position with its row in the betting machine, which decides what follows."""

    row: tuple[int, ...] = ()


class ListedLadder(PokerGame):
    """A raise-ladder game as a game with a list of nodes; `stepped` is the same game without one.

    Its rules are those of no-limit poker with its stacks, and its actions those of the ladder. It begins with the actions
    `line`: only what follows them is listed, and nothing else can be played before. Raises GameError for more positions
    than `betting.MOST_NODES`.
    """

    def __init__(
        self, rules: LadderRules, suits: Suits = "canonical", device: str = "cpu", line: Sequence[int] = ()
    ) -> None:
        self.stepped = LadderGame(rules)
        tree = _list(self.stepped, line)
        super().__init__(no_limit(rules.deck, rules.stack), suits, device, tree)
        self.positions = _positions(self.stepped, tree)  # int64 [N, ENTRIES], the row of every node
        keys = _keys(self.positions)
        self._order = np.argsort(keys)
        self._sorted = keys[self._order]

    def state(self, node: int = 0) -> SteppedState:
        state = self.stepped.state()
        for _, action in self.tree.path(node):
            state = state.after(action)
        return state

    def node_of(self, state: PublicState) -> int:
        assert isinstance(state, SteppedState)
        return int(self.nodes_at(state.position[None])[0])

    def nodes_at(self, positions: Ints) -> Ints:
        """The nodes of rows of the betting machine, int64 [n, ENTRIES] to [n]."""
        return self._order[np.searchsorted(self._sorted, _keys(positions))]


@lru_cache(maxsize=16)
def _made_once(rules: LadderRules) -> ListedLadder | tuple[str, ...]:
    """The listed form of a raise-ladder game, or the reasons why there is none."""
    try:
        return ListedLadder(rules)
    except GameError as error:
        return error.problems


def listed_game(rules: LadderRules) -> ListedLadder:
    """The listed form of a raise-ladder game, made once. Raises GameError as `ListedLadder` does."""
    made = _made_once(rules)
    if isinstance(made, tuple):
        raise GameError(made)
    return made


def can_be_listed(rules: LadderRules) -> bool:
    """Whether the betting tree of a raise-ladder game is small enough to list."""
    return isinstance(_made_once(rules), ListedLadder)


def _list(game: LadderGame, line: Sequence[int]) -> PublicTree:
    """The public tree of a raise-ladder game that begins with the actions `line`."""
    rules, ladder = game.rules, game.ladder

    def after(state: BettingState) -> dict[int, BettingState]:
        assert isinstance(state, _Stepped)
        place = sum(map(len, state.actions))
        if place < len(line):
            return {line[place]: next_position(state, line[place])}
        legal = np.flatnonzero(legal_at(ladder, np.array(state.row)[None])[0])
        return {action: next_position(state, action) for action in legal.tolist()}

    def next_position(state: _Stepped, action: int) -> _Stepped:
        row = np.array(state.row)
        advance(ladder, row, action)
        chips = (int(row[CHIPS]), int(row[CHIPS + 1]))
        added = float(chips[state.actor] - state.chips[state.actor])
        actions = (*state.actions[:-1], (*state.actions[-1], added))
        if not row[ENDED] and row[ROUND] > state.round:
            actions = (*actions, ())
        return _Stepped(
            round=int(row[ROUND]),
            actor=int(row[ACTOR]),
            chips=chips,
            raises=int(row[RUNGS]).bit_count(),
            actions=actions,
            ended=int(row[ENDED]),
            row=tuple(row.tolist()),
        )

    start, poker = game.state().position, no_limit(rules.deck, rules.stack)
    if not line and count_positions(ladder, start, MOST_NODES) > MOST_NODES:
        raise too_large(poker.name, _ADVICE)
    first = _Stepped(round=0, actor=int(start[ACTOR]), chips=rules.blinds, row=tuple(start.tolist()))
    return unroll(first, after, poker, game.num_actions, _ADVICE)


def _keys(positions: Ints) -> Ints:
    """A number for each row of the betting machine, by which all differ."""
    keys: Ints = (positions[:, HISTORY] << 2) + positions[:, ENDED]
    return keys


def _positions(game: LadderGame, tree: PublicTree) -> Ints:
    rows = np.empty((tree.num_nodes, ENTRIES), np.int64)
    rows[0] = game.state().position
    for node in range(tree.num_decisions):  # parents come first
        for action in np.flatnonzero(tree.legal[node]):
            rows[tree.child[node, action]] = rows[node]
            advance(game.ladder, rows[tree.child[node, action]], int(action))
    return rows
