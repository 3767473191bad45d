"""Games of OpenSpiel (Lanctot et al. 2019): an `ExplicitTree` to solve in tables, and a `Game` that networks train on.

Supported are two-player zero-sum games with perfect recall whose histories can be listed. Simultaneous moves are made in
turn; the second player does not see the first player's move. In a constant-sum game half of the constant is subtracted from
every payoff.
"""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Callable
from typing import TypeVar

from deepcfr.errors import GameError
from deepcfr.games.liars_dice import LiarsDice, histories_of_dice
from deepcfr.games.openspiel_tree import (
    SpielGame,
    compile_tree,
    estimate_histories,
    import_pyspiel,
    require_supported,
    turn_based,
)
from deepcfr.games.phantom import PhantomGame, is_phantom_tic_tac_toe
from deepcfr.games.tree_game import MOST_HISTORIES, TreeGame

_Made = TypeVar("_Made")


def load_openspiel_game(name: str, device: str = "cpu", most_histories: int = MOST_HISTORIES) -> OpenSpielGame:
    """Load a game of OpenSpiel by its name there, with optional parameters: `liars_dice(dice_sides=5)`.

    Raises ConfigError if OpenSpiel is not installed, and GameError if it knows no such game, or if the game is not for two
    players, not zero-sum, larger than `most_histories`, or has imperfect recall.
    """
    return _make(name, lambda game: OpenSpielGame(game, name, device, most_histories))


def playable_openspiel_game(name: str, device: str = "cpu") -> FromOpenSpiel:
    """As `load_openspiel_game`, but phantom tic-tac-toe is a `PhantomGame`, and large liar's dice a `LiarsDice`."""

    def make(game: SpielGame) -> FromOpenSpiel:
        if is_phantom_tic_tac_toe(game):
            return PhantomGame(game, name, device)
        large = histories_of_dice(game) > MOST_HISTORIES
        return LiarsDice(game, name, device) if large else OpenSpielGame(game, name, device)

    return _make(name, make)


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


FromOpenSpiel = OpenSpielGame | LiarsDice | PhantomGame  # OpenSpiel's games that networks can train on
