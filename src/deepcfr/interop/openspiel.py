"""Policies of ours as OpenSpiel's and back, and bots for its games.

An agent of a game `openspiel:NAME` plays OpenSpiel's states of that game. An agent of one of our limit poker games
plays the same game there: `kuhn_poker`, `leduc_poker`, or `universal_poker` with the game's rules.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch

from deepcfr.core.errors import GameError
from deepcfr.core.types import Infosets
from deepcfr.game.explicit import ExplicitTree
from deepcfr.game.openspiel import (
    OfOpenSpiel,
    OpenSpielGame,
    SpielGame,
    SpielState,
    import_pyspiel,
    is_of_openspiel,
    same_game,
)
from deepcfr.game.poker import PokerGame
from deepcfr.game.rules import PRESETS, PokerRules
from deepcfr.policy.base import Policy
from deepcfr.policy.tables import TreePolicy

_OWN_NAMES = {"kuhn": "kuhn_poker", "leduc": "leduc_poker"}
_DEEP = 100_000  # a stack that limit betting cannot use up


def openspiel_game(rules: PokerRules) -> SpielGame:
    """OpenSpiel's form of a limit poker game.

    Raises ConfigError if OpenSpiel is not installed, GameError for other betting and if it refuses the rules.
    """
    pyspiel = import_pyspiel()
    if rules == PRESETS.get(rules.name) and rules.name in _OWN_NAMES:
        return pyspiel.load_game(_OWN_NAMES[rules.name])
    if rules.betting != "limit" or not rules.limp:
        raise GameError(f"OpenSpiel has no game with the bets of {rules.name}.")
    parameters = {
        "betting": "limit",
        "numPlayers": 2,
        "numRounds": rules.num_rounds,
        "blind": _words(rules.blinds),
        "firstPlayer": _words(player + 1 for player in rules.first_player),
        "raiseSize": _words(rules.raise_size),
        "maxRaises": _words(rules.max_raises),
        "numSuits": rules.num_suits,
        "numRanks": rules.num_ranks,
        "numHoleCards": rules.hole_cards,
        "numBoardCards": _words(rules.board_cards),
        "stack": f"{_DEEP} {_DEEP}",
    }
    try:
        return pyspiel.load_game("universal_poker", parameters)
    except pyspiel.SpielError as error:
        raise GameError(f"OpenSpiel refuses the rules of {rules.name}: {error}.") from error


def _words(numbers: Any) -> str:
    return " ".join(map(str, numbers))


def to_openspiel(policy: Policy) -> Any:
    """The policy as an `open_spiel.python.policy.Policy`, which evaluates it at each state; its `game` is the game.

    Raises ConfigError if OpenSpiel is not installed, and GameError for games that it does not have.
    """
    import_pyspiel()
    from open_spiel.python.policy import Policy as SpielPolicy

    spiel_game, answer = _answering(policy)

    class OnDemand(SpielPolicy):  # type: ignore[misc]
        """A policy of ours for OpenSpiel's states."""

        def action_probabilities(self, state: SpielState, player_id: int | None = None) -> dict[int, float]:
            """The probability of every legal action of the player to act. Raises GameError for states of another game."""
            return answer(state, state.current_player() if player_id is None else player_id)

    return OnDemand(spiel_game, [0, 1])


def to_openspiel_bot(policy: Policy, player: int, seed: int = 0) -> Any:
    """A bot of OpenSpiel, for `pyspiel.evaluate_bots` and the like, that plays the policy as `player`.

    Raises what `to_openspiel` raises.
    """
    theirs = to_openspiel(policy)
    from open_spiel.python.bots.policy import PolicyBot

    return PolicyBot(player, np.random.RandomState(seed), theirs)  # what it asks for


def from_openspiel(game: OpenSpielGame, policy: Any) -> TreePolicy:
    """Convert an OpenSpiel policy of both players, or a pair of its bots, in Python or C++, to a table.

    Bots must tell their probabilities, which must depend on the state alone.
    Raises GameError if it does not give a distribution over the legal actions at every infoset.
    """
    spiel_error = import_pyspiel().SpielError
    players = policy if isinstance(policy, tuple | list) else (policy, policy)
    if len(players) != 2:
        raise GameError(f"Bots are given as a pair, one for each player, not as {len(players)}.")
    kind = " and ".join(dict.fromkeys(type(one).__name__ for one in players))
    tree = game.explicit
    table = np.zeros(tree.legal.shape)
    for infoset, state in enumerate(infoset_states(game)):
        try:
            given = _given(players[state.current_player()], state)
        except (AttributeError, IndexError, KeyError, TypeError, ValueError, RuntimeError, spiel_error) as error:
            raise GameError(f"The {kind} has no probabilities at a state of '{game.name}': {error!r}.") from error
        count = int(tree.infoset_actions[infoset])
        for position, action in enumerate(tree.infoset_action_ids[infoset, :count].tolist()):
            table[infoset, position] = given.get(action, 0.0)  # OpenSpiel may leave out actions with probability 0
    return TreePolicy(game, table, f"OpenSpiel's {kind}")


def _given(player: Any, state: SpielState) -> dict[int, float]:
    """The probabilities of a policy or a bot, by action."""
    if hasattr(player, "action_probabilities"):
        return dict(player.action_probabilities(state))
    return dict(player.get_policy(state) if player.provides_policy() else player.step_with_policy(state)[0])


def infoset_states(game: OpenSpielGame) -> Iterator[SpielState]:
    """OpenSpiel's state at the first history of every infoset, in order of infosets."""
    tree = game.explicit
    infoset, first = np.unique(tree.infoset, return_index=True)
    for node in first[infoset >= 0].tolist():
        state = game.spiel_game.new_initial_state()
        for after in path_to(tree, node):
            state.apply_action(int(tree.action[after]))
        yield state


def path_to(tree: ExplicitTree, node: int) -> list[int]:
    """The histories from the root (excluded) to `node` (included)."""
    path: list[int] = []
    while node:
        path.append(node)
        node = int(tree.parent[node])
    return path[::-1]


_Answer = Callable[[SpielState, int], dict[int, float]]


def _answering(policy: Policy) -> tuple[SpielGame, _Answer]:
    """OpenSpiel's game of a policy, and the policy for its states and players."""
    game = policy.game
    if isinstance(policy, Policy) and is_of_openspiel(game):
        answer = _of_spiel(policy, game)
        # states of other games have no infosets in a list
        return game.spiel_game, answer if isinstance(game, OpenSpielGame) else _checked(answer, game.spiel_game)
    if isinstance(policy, Policy) and isinstance(game, PokerGame):
        spiel_game = openspiel_game(game.rules)
        return spiel_game, _checked(_of_poker(policy, game, spiel_game), spiel_game)
    raise GameError(f"OpenSpiel does not have '{game.name}'.")


def _of_spiel(policy: Policy, game: OfOpenSpiel) -> _Answer:
    def answer(state: SpielState, player: int) -> dict[int, float]:
        asked = game.infoset_of(state, player)
        legal = np.flatnonzero(game.encoding.legal[asked.node.long()][0].cpu().numpy())
        row = _ask(policy, asked)[legal]
        return dict(zip(game.action_ids[legal].tolist(), (row / row.sum()).tolist(), strict=True))

    return answer


def _checked(answer: _Answer, spiel_game: SpielGame) -> _Answer:
    """The same answers; GameError for states of another game and for players that are not to act."""

    def checked(state: SpielState, player: int) -> dict[int, float]:
        if not same_game(state.get_game(), spiel_game):
            raise GameError(f"The state is one of {state.get_game()}, and the policy plays {spiel_game}.")
        if player != state.current_player():
            raise GameError(f"Player {player} is not to act.")
        return answer(state, player)

    return checked


def _of_poker(policy: Policy, game: PokerGame, spiel_game: SpielGame) -> _Answer:
    """Histories are replayed, because OpenSpiel may number actions otherwise; legal actions have the same order."""
    tree, rules = game.tree, game.rules
    slots = 2 * rules.hole_cards + sum(rules.board_cards)

    def answer(state: SpielState, player: int) -> dict[int, float]:
        node, cards, replayed = 0, list[int](), spiel_game.new_initial_state()
        for action in state.history():
            if replayed.is_chance_node():
                cards.append(action)
            else:
                legal = np.flatnonzero(tree.legal[node])
                node = int(tree.child[node, legal[replayed.legal_actions().index(action)]])
            replayed.apply_action(action)
        deal = (cards + [card for card in range(rules.num_cards) if card not in cards])[:slots]
        canonical = game.deals_of(np.array([deal], np.uint8)).visible_cards[:1, player, game.round[node]]
        row = _ask(policy, Infosets(torch.tensor([node], device=game.device), canonical))[tree.legal[node]]
        return dict(zip(state.legal_actions(), (row / row.sum()).tolist(), strict=True))

    return answer


def _ask(policy: Policy, infoset: Infosets) -> np.ndarray[Any, np.dtype[np.float64]]:
    return policy.probabilities(infoset)[0].double().cpu().numpy()
