"""A policy of poker with another strategy for nearly every hand, which needs no training."""

import torch

from deepcfr.core.types import Infosets
from deepcfr.game.poker import PokerGame
from deepcfr.policy.base import Policy


class Leaning(Policy):
    """Acts by the numbers of its cards and node."""

    kind = "leaning"

    def __init__(self, game: PokerGame) -> None:
        self.game = game

    def probabilities(self, infosets: Infosets) -> torch.Tensor:
        nodes, seen = infosets.node.long(), infosets.cards.long() * torch.arange(3, 3 + infosets.cards.shape[1])
        weights = 1 + torch.stack([(seen.sum(1) * (action + 1) + action * nodes) % 7 for action in range(3)], 1)
        legal = self.game.encoding.legal[nodes]
        chosen = torch.where(legal, weights, 0).double()
        return chosen / chosen.sum(1, keepdim=True)
