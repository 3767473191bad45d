"""Policies of ours as OpenSpiel's and back, to compare both programs: shared by tests of several modules.

OpenSpiel's policies take states, so an infoset is represented by its first history. All states and policies belong to
`game.spiel_game`, the turn-based form of a game.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from deepcfr.errors import GameError
from deepcfr.games.explicit import CHANCE, ExplicitTree
from deepcfr.games.openspiel import OpenSpielGame
from deepcfr.games.openspiel_tree import SpielState, import_pyspiel
from deepcfr.games.poker import PokerGame
from deepcfr.policies.base import Policy
from deepcfr.policies.tables import TreePolicy, table_of
from deepcfr.types import Infosets


def from_openspiel(game: OpenSpielGame, policy: Any) -> TreePolicy:
    """Convert an OpenSpiel policy of both players, in Python or C++, to a table.

    Raises GameError if it does not give a distribution over the legal actions at every infoset.
    """
    tree = game.explicit
    table = np.zeros(tree.legal.shape)
    for infoset, state in enumerate(infoset_states(game)):
        given: dict[int, float] = dict(policy.action_probabilities(state))
        count = int(tree.infoset_actions[infoset])
        for position, action in enumerate(tree.infoset_action_ids[infoset, :count].tolist()):
            table[infoset, position] = given.get(action, 0.0)  # OpenSpiel may leave out actions with probability 0
    return TreePolicy(game, table, f"OpenSpiel's {type(policy).__name__}")


def to_tabular_policy(policy: Policy) -> Any:
    """Convert any policy of an OpenSpiel game to an `open_spiel.python.policy.TabularPolicy`.

    Raises GameError if infosets of both players have the same name, because a TabularPolicy knows infosets by name
    only.
    """
    import_pyspiel()
    from open_spiel.python.policy import TabularPolicy

    game = _openspiel_game(policy)
    tree, table = game.explicit, table_of(policy)
    if len(set(tree.infoset_names)) < tree.num_infosets:
        raise GameError(
            f"Infosets of both players of '{game.name}' have the same name, but a TabularPolicy needs different names."
        )
    states = dict(zip(tree.infoset_names, infoset_states(game), strict=True))
    result = TabularPolicy(game.spiel_game, states=states)
    for infoset, name in enumerate(tree.infoset_names):
        count = int(tree.infoset_actions[infoset])
        row = result.policy_for_key(name)
        row[:] = 0.0
        row[tree.infoset_action_ids[infoset, :count]] = table[infoset, :count]
    return result


def to_openspiel_policy(policy: Policy) -> Any:
    """Convert any policy of an OpenSpiel game to an `open_spiel.python.policy.Policy` that evaluates it at each state."""
    import_pyspiel()
    from open_spiel.python.policy import Policy as SpielPolicy

    game = _openspiel_game(policy)

    class OnDemand(SpielPolicy):  # type: ignore[misc]
        """An OpenSpiel policy for the states of `game`."""

        def action_probabilities(self, state: SpielState, player_id: int | None = None) -> dict[int, float]:
            """The probability of every legal action of the player to act."""
            return _answer(policy, game, state, state.current_player() if player_id is None else player_id)

    return OnDemand(game.spiel_game, [0, 1])


def _answer(policy: Policy, game: OpenSpielGame, state: SpielState, player: int) -> dict[int, float]:
    name = state.information_state_string(player)
    infoset = game.explicit.infoset_index.get((player, name))
    if infoset is None:
        raise GameError(f"'{game.name}' has no infoset of player {player} with the name {name!r}.")
    node = torch.tensor([infoset], device=game.device)
    cards = torch.empty(1, 0, dtype=torch.uint8, device=game.device)
    row = policy.probabilities(Infosets(node, cards))[0].double().cpu().numpy()
    columns = game.columns[infoset].cpu().numpy()[: int(game.explicit.infoset_actions[infoset])]
    row = row[columns] / row[columns].sum()
    return dict(zip(game.action_ids[columns].tolist(), row.tolist(), strict=True))


def infoset_states(game: OpenSpielGame) -> Iterator[SpielState]:
    """OpenSpiel's state at the first history of every infoset, in order of infosets."""
    tree = game.explicit
    infoset, first = np.unique(tree.infoset, return_index=True)
    for node in first[infoset >= 0].tolist():
        state = game.spiel_game.new_initial_state()
        for after in _path(tree, node):
            state.apply_action(int(tree.action[after]))
        yield state


def _path(tree: ExplicitTree, node: int) -> list[int]:
    """The histories from the root (excluded) to `node` (included)."""
    path: list[int] = []
    while node:
        path.append(node)
        node = int(tree.parent[node])
    return path[::-1]


def from_poker(game: OpenSpielGame, policy: Policy) -> TreePolicy:
    """Convert a policy of a poker game to a table of the same OpenSpiel game, such as Leduc for leduc_poker.

    Chance outcomes of `game` must be cards in the order of `PokerGame.deals_of`, and legal actions must have the same
    order. Raises GameError if the two games differ.
    """
    poker, tree = policy.game, game.explicit
    if not isinstance(poker, PokerGame):
        raise GameError(
            f"Only policies of poker games can be converted to OpenSpiel's poker, but '{poker.name}' is not one."
        )
    _, first = np.unique(tree.infoset, return_index=True)
    places = [_poker_place(poker, tree, int(node)) for node in first[tree.infoset[first] >= 0]]
    nodes = np.array([node for node, _ in places])
    legal = poker.tree.legal[nodes]
    if (poker.tree.actor[nodes] != tree.infoset_actor).any() or (legal.sum(1) != tree.infoset_actions).any():
        raise GameError(f"'{game.name}' is not the same game as '{poker.name}'.")
    views = poker.deals_of(np.array([cards for _, cards in places], np.uint8)).views.cpu().numpy()
    cards = views[np.arange(len(nodes)), poker.tree.actor[nodes], poker.tree.round[nodes]]
    infosets = Infosets(torch.from_numpy(nodes).to(poker.device), torch.from_numpy(cards).to(poker.device))
    table = np.zeros(tree.legal.shape)
    table[tree.legal] = (
        policy.probabilities(infosets).double().cpu().numpy()[legal]
    )  # both are row by row, with actions in order
    return TreePolicy(game, table, policy.kind)


def _poker_place(poker: PokerGame, tree: ExplicitTree, history: int) -> tuple[int, list[int]]:
    """The node of `poker` at an OpenSpiel history, and a deal that leads there, completed with the lowest unused cards."""
    node, cards = 0, list[int]()
    for after in _path(tree, history):
        before = int(tree.parent[after])
        if tree.actor[before] == CHANCE:
            cards.append(int(tree.action[after]))
            continue
        legal = np.flatnonzero(poker.tree.legal[node])
        place = after - int(tree.first_child[before])
        if place >= len(legal):
            raise GameError(f"'{poker.name}' has fewer actions than OpenSpiel's game after the deal {cards}.")
        node = int(poker.tree.child[node, legal[place]])
    deck = range(poker.rules.num_cards)
    slots = 2 * poker.rules.hole_cards + sum(poker.rules.board_cards)
    if len(cards) > slots or not set(cards) <= set(deck):
        raise GameError(f"'{poker.name}' cannot deal the cards {cards} of OpenSpiel's game.")
    return node, (cards + [card for card in deck if card not in cards])[:slots]


def _openspiel_game(policy: Policy) -> OpenSpielGame:
    if not isinstance(policy.game, OpenSpielGame):
        raise GameError(f"Only policies of OpenSpiel games can be converted, but '{policy.game.name}' is not one.")
    return policy.game
