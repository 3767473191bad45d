"""Policies of ours as tables of OpenSpiel, and those of poker games as tables of the same game there."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from deepcfr.core.errors import GameError
from deepcfr.core.types import Infosets
from deepcfr.game.explicit import CHANCE, ExplicitTree
from deepcfr.game.openspiel import OpenSpielGame, import_pyspiel
from deepcfr.game.poker import PokerGame
from deepcfr.interop.openspiel import infoset_states, path_to, to_openspiel
from deepcfr.policy.base import Policy
from deepcfr.policy.tables import TreePolicy, table_of


def random_tree_policy(game: OpenSpielGame, seed: int = 0, pure: bool = False) -> TreePolicy:
    """Random probabilities, or random pure actions, which leave infosets out of reach."""
    table = np.random.default_rng(seed).random(game.explicit.legal.shape) * game.explicit.legal
    if pure:
        table = np.eye(table.shape[1])[table.argmax(1)]
    return TreePolicy(game, table / table.sum(1, keepdims=True))


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


def on_histories(listed: OpenSpielGame, policy: Policy) -> TreePolicy:
    """A policy of another form of the game on the list of histories, asked through OpenSpiel's states."""
    asked = to_openspiel(policy)
    table = np.zeros(listed.explicit.legal.shape)
    for infoset, state in enumerate(infoset_states(listed)):
        row = asked.action_probabilities(state)
        assert sorted(row) == state.legal_actions()
        table[infoset, : len(row)] = [row[action] for action in state.legal_actions()]
    return TreePolicy(listed, table / table.sum(1, keepdims=True))


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
    hands = poker.deals_of(np.array([cards for _, cards in places], np.uint8)).visible_cards.cpu().numpy()
    cards = hands[np.arange(len(nodes)), poker.tree.actor[nodes], poker.tree.round[nodes]]
    infosets = Infosets(torch.from_numpy(nodes).to(poker.device), torch.from_numpy(cards).to(poker.device))
    table = np.zeros(tree.legal.shape)
    table[tree.legal] = (
        policy.probabilities(infosets).double().cpu().numpy()[legal]
    )  # both are row by row, with actions in order
    return TreePolicy(game, table, policy.kind)


def _poker_place(poker: PokerGame, tree: ExplicitTree, history: int) -> tuple[int, list[int]]:
    """The node of `poker` at an OpenSpiel history, and a deal that leads there, completed with the lowest unused cards."""
    node, cards = 0, list[int]()
    for after in path_to(tree, history):
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
