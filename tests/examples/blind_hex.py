"""Small phantom games: dark hex without what OpenSpiel's names of infosets tell besides a player's own tries."""

from __future__ import annotations

from typing import Any

import pyspiel


class BlindHex:
    """OpenSpiel's dark hex on a small board, whose players do not know how many tries there were in all."""

    def __init__(self, rows: int, columns: int) -> None:
        self._game = pyspiel.load_game(f"dark_hex(num_rows={rows},num_cols={columns})")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._game, name)

    def __str__(self) -> str:
        return f"blind {self._game}"

    def new_initial_state(self) -> _State:
        return _State(self, self._game.new_initial_state())


class _State:
    def __init__(self, game: BlindHex, state: Any) -> None:
        self._game, self._state = game, state

    def __getattr__(self, name: str) -> Any:
        return getattr(self._state, name)

    def get_game(self) -> BlindHex:
        return self._game

    def child(self, action: int) -> _State:
        return _State(self._game, self._state.child(action))

    def information_state_string(self, *player: int) -> str:
        lines = self._state.information_state_string(*player).split("\n")
        return "\n".join([*lines[:-2], lines[-1]])  # without the number of all tries
