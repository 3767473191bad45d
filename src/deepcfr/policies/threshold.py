"""Thresholding: leave out the actions that a strategy rarely plays (Ganzfried, Sandholm and Waugh 2012, section 3)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch

from deepcfr.policies.base import Policy, RowStrategy
from deepcfr.types import Cards, Infosets, Ints


def without_rare(strategies: torch.Tensor, threshold: float) -> torch.Tensor:
    """Strategies [..., A] without actions below `threshold`, unless no action of a row is as probable."""
    least = strategies.amax(-1, keepdim=True).clamp(max=threshold)
    kept = torch.where(strategies >= least, strategies, 0)
    return kept / kept.sum(-1, keepdim=True)


class ThresholdPolicy(Policy):
    """A policy without the actions that it plays less often than `threshold`."""

    def __init__(self, policy: Policy, threshold: float) -> None:
        self.game, self.policy, self.threshold = policy.game, policy, threshold
        self.kind = f"{policy.kind}, threshold {threshold:g}"
        self.initial, self.boards, self.most_deals = policy.initial, policy.boards, policy.most_deals

    def probabilities(self, infosets: Infosets) -> torch.Tensor:
        return without_rare(self.policy.probabilities(infosets), self.threshold)

    def on_hands(self, nodes: Ints, cards: Cards) -> npt.NDArray[np.floating]:
        return without_rare(torch.from_numpy(self.policy.on_hands(nodes, cards)), self.threshold).numpy()

    def row_strategy(self, player: int, round_: int, cards: Cards) -> RowStrategy:
        ask = self.policy.row_strategy(player, round_, cards)
        return lambda node, hand: without_rare(torch.from_numpy(ask(node, hand)), self.threshold).numpy()
