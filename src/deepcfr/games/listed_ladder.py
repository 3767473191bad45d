"""Raise-ladder games with a list of nodes, for networks and search, if their betting tree is small enough."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from deepcfr.errors import GameError
from deepcfr.games.betting import PublicTree
from deepcfr.games.ladder import LadderRules
from deepcfr.games.ladder_betting import (
    ENDED,
    ENTRIES,
    HISTORY,
    LadderGame,
    SteppedState,
    advance,
)
from deepcfr.games.ladder_tree import ladder_tree
from deepcfr.games.poker import PokerGame, Suits
from deepcfr.games.public_state import PublicState
from deepcfr.games.rules import no_limit

Ints = npt.NDArray[np.int64]


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
        tree = ladder_tree(self.stepped, line)
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
