"""Games of OpenSpiel (Lanctot et al. 2019): an `ExplicitTree` to solve in tables, and a `Game` that networks train on.

Supported are two-player zero-sum games with perfect recall whose histories can be listed. Simultaneous moves are made in
turn; the second player does not see the first player's move. In a constant-sum game half of the constant is subtracted from
every payoff.
"""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Callable
from typing import Protocol, TypeGuard, TypeVar

import numpy as np
import numpy.typing as npt
import torch

from deepcfr.errors import GameError
from deepcfr.games.base import Game
from deepcfr.games.openspiel_tree import (
    SpielGame,
    SpielState,
    compile_tree,
    estimate_histories,
    import_pyspiel,
    require_supported,
    turn_based,
)
from deepcfr.games.tree_game import MOST_HISTORIES, TreeGame
from deepcfr.types import Infosets

_Made = TypeVar("_Made")


def load_openspiel_game(name: str, device: str = "cpu", most_histories: int = MOST_HISTORIES) -> OpenSpielGame:
    """Load a game of OpenSpiel by its name there, with optional parameters: `goofspiel(num_cards=4,imp_info=True)`.

    Raises ConfigError if OpenSpiel is not installed, and GameError if it knows no such game, or if the game is not for two
    players, not zero-sum, larger than `most_histories`, or has imperfect recall.
    """
    return _make(name, lambda game: OpenSpielGame(game, name, device, most_histories))


def estimate_openspiel_histories(name: str) -> float:
    """The number of histories of a game of OpenSpiel, about. Raises as `load_openspiel_game` does, but for the size."""

    def estimate(game: SpielGame) -> float:
        require_supported(game, name)
        return estimate_histories(turn_based(game))[0]

    return _make(name, estimate)


def _make(name: str, make: Callable[[SpielGame], _Made]) -> _Made:
    """Load OpenSpiel's game and return what `make` makes of it; errors of OpenSpiel become sentences."""
    pyspiel = import_pyspiel()
    short = name.split("(")[0].strip()
    if short not in pyspiel.registered_names():
        _register_python_games(short)
    if short not in pyspiel.registered_names():
        near = difflib.get_close_matches(short, pyspiel.registered_names())
        hint = f" Did you mean {' or '.join(near)}?" if near else ""
        raise GameError(f"OpenSpiel has no game '{short}'.{hint}")
    try:
        return make(pyspiel.load_game(name))
    except (pyspiel.SpielError, IndexError) as error:  # ValueError if a parameter without default is missing
        reason = str(error).strip().partition("\n")[0].rstrip(".")
        raise GameError(f"OpenSpiel refuses '{name}': {reason}.") from error


def _register_python_games(wanted: str) -> None:
    """Let OpenSpiel know its games that are written in Python, such as python_kuhn_poker."""
    try:
        importlib.import_module("open_spiel.python.games")
    except ImportError as error:
        raise GameError(
            f"OpenSpiel has no game '{wanted}' in C++, and its games in Python cannot be loaded: {error}."
        ) from error


class OpenSpielGame(TreeGame):
    """A game of OpenSpiel as a `TreeGame`; a player sees OpenSpiel's information-state tensor.

    `action` of `explicit` and `action_ids` are OpenSpiel's numbers of actions.
    """

    def __init__(self, game: SpielGame, source: str, device: str = "cpu", most_histories: int = MOST_HISTORIES) -> None:
        require_supported(game, source)
        self.spiel_game = turn_based(game)
        super().__init__(source, *compile_tree(self.spiel_game, source, most_histories), device)

    def infoset_of(self, state: SpielState, player: int) -> Infosets:
        """The infoset of a player at OpenSpiel's state, one row. Raises GameError for a state of another game."""
        name = state.information_state_string(player)
        infoset = self.explicit.infoset_index.get((player, name))
        if infoset is None:
            raise GameError(f"'{self.name}' has no infoset of player {player} with the name {name!r}.")
        node = torch.tensor([infoset], device=self.device)
        return Infosets(node, torch.empty(1, 0, dtype=torch.uint8, device=self.device))


class OfOpenSpiel(Game, Protocol):
    """A game that finds its infosets at OpenSpiel's states, so that its agents play there; optional for a class."""

    spiel_game: SpielGame
    action_ids: npt.NDArray[np.int64]  # [A], OpenSpiel's number of each action

    def infoset_of(self, state: SpielState, player: int) -> Infosets:
        """The infoset of a player at a state of `spiel_game`, one row."""
        ...


def is_of_openspiel(game: object) -> TypeGuard[OfOpenSpiel]:
    """Whether a game has the optional method `infoset_of`."""
    return hasattr(game, "infoset_of")
