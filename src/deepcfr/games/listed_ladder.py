"""Raise-ladder games with a list of nodes, for networks and search, if their betting tree is small enough."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from deepcfr.errors import GameError
from deepcfr.games.betting import PublicTree
from deepcfr.games.ladder import LadderRules
from deepcfr.games.ladder_betting import step_all
from deepcfr.games.ladder_game import LadderGame, SteppedState
from deepcfr.games.ladder_tree import ladder_tree
from deepcfr.games.poker import PokerGame, Suits
from deepcfr.games.public_state import PublicState
from deepcfr.types import Ints


class ListedLadder(PokerGame):
    """A raise-ladder game with a list of nodes; `stepped` is the same game without one, and `computed` has its nodes, [N].

    It begins with the actions `line`: only what follows them is listed, and nothing else can be played before. Raises
    GameError for more positions than `betting.MOST_NODES`.
    """

    def __init__(
        self, rules: LadderRules, suits: Suits = "canonical", device: str = "cpu", line: Sequence[int] = ()
    ) -> None:
        self.stepped = LadderGame(rules, suits)
        tree = ladder_tree(rules, line)
        super().__init__(self.stepped.rules, suits, device, tree, rules)
        self.computed = _computed(self.stepped, tree)
        self._order = np.argsort(self.computed)

    def state(self, node: int = 0) -> SteppedState:
        state = self.stepped.state()
        for _, action in self.tree.path(node):
            state = state.after(action)
        return state

    def node_of(self, state: PublicState) -> int:
        return int(self.listed(np.array([self.stepped.node_of(state)]))[0])

    def listed(self, computed: Ints) -> Ints:
        """The nodes [n] in the list for those of `stepped`, [n]."""
        return self._order[np.searchsorted(self.computed, computed, sorter=self._order)]


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


def _computed(game: LadderGame, tree: PublicTree) -> Ints:
    """The nodes of `game` for those of its tree, [N]."""
    nodes = np.zeros(tree.num_nodes, np.int64)
    for node in range(tree.num_decisions):  # parents come first
        actions = np.flatnonzero(tree.legal[node])
        nodes[tree.child[node, actions]] = step_all(game.ladder, nodes[[node] * len(actions)], actions)
    return nodes
