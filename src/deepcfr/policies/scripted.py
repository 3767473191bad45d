"""Scripted styles: policies of any poker game that ignore the cards, as reference opponents."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch

from deepcfr.errors import GameError
from deepcfr.games.base import Game
from deepcfr.games.betting import CALL, FOLD, RAISE
from deepcfr.games.poker import PokerGame
from deepcfr.policies.base import Policy, UniformPolicy
from deepcfr.types import Infosets

# each style plays the first of its actions that is legal
_PREFERENCES: dict[str, tuple[int, ...]] = {"call": (CALL, RAISE, FOLD), "raise": (RAISE, CALL, FOLD)}
STYLES = ("uniform", *_PREFERENCES)


class ScriptedPolicy(Policy):
    """Plays one action with probability 1 at every decision of a poker game: the first legal one of `preference`."""

    def __init__(self, game: PokerGame, preference: tuple[int, ...], kind: str) -> None:
        self.game, self.kind = game, kind
        legal = game.encoding.legal.cpu().numpy()
        lowest = RAISE + legal[:, RAISE:].argmax(1)  # of several raises
        order = np.stack([lowest if action == RAISE else np.full(len(legal), action) for action in preference], 1)
        rows = np.arange(len(legal))
        choice = order[rows, legal[rows[:, None], order].argmax(1)]
        self._rows = np.zeros((len(legal), game.encoding.num_actions))
        self._rows[np.arange(len(legal)), choice] = 1.0
        self._on_device = torch.from_numpy(self._rows).to(game.device)

    def probabilities(self, infosets: Infosets) -> torch.Tensor:
        return self._on_device[infosets.node.long()]

    def on_hands(self, nodes: npt.NDArray[np.int64], cards: npt.NDArray[np.uint8]) -> npt.NDArray[np.floating]:
        return np.broadcast_to(self._rows[nodes][:, None], (len(nodes), len(cards), self.game.encoding.num_actions))


def scripted_policy(style: str, game: Game) -> Policy:
    """The policy of a style: `uniform` plays all legal actions equally, `call` always calls, `raise` raises if legal.

    Raises GameError for unknown styles, and for games other than poker.
    """
    if style not in STYLES:
        raise GameError(f"'{style}' is not a scripted style. Choose one of {', '.join(STYLES)}.")
    if not isinstance(game, PokerGame):
        raise GameError(f"Scripted styles play poker games only, but '{game.name}' is not one.")
    if style == "uniform":
        return UniformPolicy(game)
    return ScriptedPolicy(game, _PREFERENCES[style], f"always {style}")
