"""Policies of raise-ladder games between their two forms: by listed nodes, as networks have them, and by computed ones."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch

from deepcfr.games.ladder_betting import LadderGame
from deepcfr.games.listed_ladder import ListedLadder, listed_game
from deepcfr.policies.base import Policy
from deepcfr.types import Cards, Infosets, Ints

_ROWS = 1 << 16  # decisions of single hands that are asked for at a time


class SteppedPolicy(Policy):
    """A policy of listed nodes at computed ones."""

    def __init__(self, policy: Policy) -> None:
        assert isinstance(policy.game, ListedLadder)
        self.policy, self.listed = policy, policy.game
        self.game, self.kind, self.most_deals = policy.game.stepped, policy.kind, policy.most_deals
        before = policy.initial
        self.initial = (lambda: SteppedPolicy(before())) if before else None

    def probabilities(self, infosets: Infosets) -> torch.Tensor:
        nodes = torch.from_numpy(self.listed.listed(infosets.node.numpy())).to(self.listed.device)
        there = Infosets(nodes, infosets.cards.to(self.listed.device))
        return self.policy.probabilities(there).double().cpu()


class ListedPolicy(Policy):
    """A policy of computed nodes at listed ones."""

    game: ListedLadder

    def __init__(self, policy: Policy, game: ListedLadder) -> None:
        self.policy, self.game, self.kind, self.most_deals = policy, game, policy.kind, policy.most_deals
        before = policy.initial
        self.initial = (lambda: ListedPolicy(before(), game)) if before else None

    def probabilities(self, infosets: Infosets) -> torch.Tensor:
        nodes = torch.from_numpy(self.game.computed[infosets.node.cpu().numpy()])
        return self.policy.probabilities(Infosets(nodes, infosets.cards.cpu())).to(infosets.node.device)

    def on_hands(self, nodes: Ints, cards: Cards) -> npt.NDArray[np.floating]:
        pieces = np.array_split(self.game.computed[nodes], 1 + len(nodes) * len(cards) // _ROWS)
        return np.concatenate([self.policy.on_hands(some, cards) for some in pieces if len(some)])


def stepped(policy: Policy) -> Policy:
    """The form of a policy for play: by computed nodes in a raise-ladder game, unchanged in other games."""
    return SteppedPolicy(policy) if isinstance(policy.game, ListedLadder) else policy


def listed(policy: Policy) -> Policy:
    """The form of a policy that has a list of nodes. Raises GameError for a raise-ladder game that is too large to list."""
    if isinstance(policy, SteppedPolicy):
        return policy.policy
    if isinstance(policy.game, LadderGame):
        return ListedPolicy(policy, listed_game(policy.game.source))
    return policy
