"""Games by name: a preset, or the path of a game-definition file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from deepcfr.errors import GameError
from deepcfr.games.acpc_definition import parse_game_definition
from deepcfr.games.rules import PRESETS, PokerRules

if TYPE_CHECKING:
    from deepcfr.games.poker import PokerGame, Suits


def load_rules(game: str) -> PokerRules:
    """The rules of a preset such as `fhp`, or of the ACPC game-definition file at the path `game`.

    Raises GameError if there is neither, or if the file is malformed.
    """
    if game in PRESETS:
        return PRESETS[game]
    path = Path(game)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        known = ", ".join(PRESETS)
        raise GameError(f"'{game}' is neither a preset ({known}) nor a readable game definition: {error}.") from error
    return parse_game_definition(text, name=path.stem)


def load_game(game: str, suits: Suits = "canonical", device: str = "cpu") -> PokerGame:
    """The preset or game-definition file `game` as a playable `Game`; see `load_rules` for the errors."""
    from deepcfr.games.poker import PokerGame

    return PokerGame(load_rules(game), suits, device)
