"""The `Policy` contract: probabilities at infosets. Every evaluator, match and page takes only this."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt
import torch

from deepcfr.games.base import Game
from deepcfr.ranges.sweep import HandStrategy
from deepcfr.types import Infosets


class Policy(Protocol):
    """A behaviour strategy of both players."""

    game: Game  # whose infosets it understands
    kind: str  # what it is, in words for a report

    def probabilities(self, infosets: Infosets) -> torch.Tensor:
        """Action probabilities, float [I, A]: 0 for illegal actions, rows sum to 1."""
        ...


def hand_strategy(policy: Policy) -> HandStrategy:
    """The policy as ranges ask for it: all of several hands at each of several nodes.

    A policy may offer a faster `on_hands(nodes, cards)` of its own.
    """
    own = getattr(policy, "on_hands", None)
    if own is not None:
        return own  # type: ignore[no-any-return]

    def on_hands(nodes: npt.NDArray[np.int64], cards: npt.NDArray[np.uint8]) -> npt.NDArray[np.floating]:
        device = policy.game.device
        node = torch.from_numpy(nodes).to(device).repeat_interleave(len(cards))
        rows = torch.from_numpy(cards).to(device).repeat(len(nodes), 1)
        return policy.probabilities(Infosets(node, rows)).cpu().numpy().reshape(len(nodes), len(cards), -1)

    return on_hands


class UniformPolicy:
    """Every legal action with the same probability."""

    kind = "uniform"

    def __init__(self, game: Game) -> None:
        self.game = game

    def probabilities(self, infosets: Infosets) -> torch.Tensor:
        legal = self.game.encoding.legal[infosets.node.long()].double()
        return legal / legal.sum(1, keepdim=True)
