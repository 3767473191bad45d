"""Scripted styles: policies of any poker game that ignore the cards, as reference opponents."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch

from deepcfr.errors import GameError
from deepcfr.games.base import Game
from deepcfr.games.betting import CALL, FOLD, RAISE
from deepcfr.games.poker import Poker
from deepcfr.policies.base import Policy, UniformPolicy, legal_at
from deepcfr.types import Infosets

# each style plays the first of its actions that is legal
_PREFERENCES: dict[str, tuple[int, ...]] = {"call": (CALL, RAISE, FOLD), "raise": (RAISE, CALL, FOLD)}
STYLES = ("uniform", *_PREFERENCES)


class ScriptedPolicy(Policy):
    """Plays one action with probability 1 at every decision of a poker game: the first legal one of `preference`."""

    def __init__(self, game: Poker, preference: tuple[int, ...], kind: str) -> None:
        self.game, self.preference, self.kind = game, preference, kind

    def probabilities(self, infosets: Infosets) -> torch.Tensor:
        legal = legal_at(self.game, infosets.node.long())
        lowest = RAISE + legal[:, RAISE:].int().argmax(1)  # of several raises
        order = torch.stack([lowest if a == RAISE else torch.full_like(lowest, a) for a in self.preference], 1)
        first = legal.gather(1, order).int().argmax(1, keepdim=True)
        return torch.zeros(legal.shape, dtype=torch.float64, device=legal.device).scatter_(
            1, order.gather(1, first), 1.0
        )

    def on_hands(self, nodes: npt.NDArray[np.int64], cards: npt.NDArray[np.uint8]) -> npt.NDArray[np.floating]:
        node = torch.from_numpy(nodes).to(self.game.device)
        rows = self.probabilities(Infosets(node, torch.empty(len(nodes), 0))).cpu().numpy()
        return np.broadcast_to(rows[:, None], (len(nodes), len(cards), rows.shape[1]))


def scripted_policy(style: str, game: Game) -> Policy:
    """The policy of a style: `uniform` plays all legal actions equally, `call` always calls, `raise` raises if legal.

    Raises GameError for unknown styles, and for games other than poker.
    """
    if style not in STYLES:
        raise GameError(f"'{style}' is not a scripted style. Choose one of {', '.join(STYLES)}.")
    if not isinstance(game, Poker):
        raise GameError(f"Scripted styles play poker games only, but '{game.name}' is not one.")
    if style == "uniform":
        return UniformPolicy(game)
    return ScriptedPolicy(game, _PREFERENCES[style], f"always {style}")
