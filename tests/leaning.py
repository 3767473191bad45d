"""A policy of poker with another strategy for nearly every hand, which needs no training."""

import torch

from deepcfr.core.types import Infosets
from deepcfr.game.poker import PokerGame
from deepcfr.policy.base import Policy


class Leaning(Policy):
    """Acts by the numbers of its cards."""

    kind = "leaning"

    def __init__(self, game: PokerGame) -> None:
        self.game = game

    def probabilities(self, infosets: Infosets) -> torch.Tensor:
        weights = 1 + torch.stack([(infosets.cards.long() * (action + 3)).sum(1) % 7 for action in range(3)], 1)
        legal = torch.from_numpy(self.game.tree.legal)[infosets.node.long()]
        chosen = torch.where(legal, weights, 0).double()
        return chosen / chosen.sum(1, keepdim=True)
