"""Policies from networks: one average-strategy network, or one network for each player, as regret matching has."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import numpy.typing as npt
import torch

from deepcfr.games.base import Game
from deepcfr.policies.regret_matching import regret_matching
from deepcfr.training.losses import masked_softmax
from deepcfr.training.networks import SplitNetwork
from deepcfr.types import Infosets

ToStrategy = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
"""(outputs [..., A], legal [..., A]) to probabilities [..., A]."""


class AveragePolicy:
    """The average strategy Pi: a softmax over the legal actions of one network's logits."""

    kind = "average network"

    def __init__(self, game: Game, network: SplitNetwork) -> None:
        self.game, self.network = game, network.eval()
        with torch.no_grad():
            self._nodes = network.encode_nodes()

    @torch.no_grad()
    def probabilities(self, infosets: Infosets) -> torch.Tensor:
        node = infosets.node.long()
        logits = self.network.joint(self.network.encode_cards(infosets.cards) + self._nodes[node])
        return masked_softmax(logits, self.game.encoding.legal[node])

    @torch.no_grad()
    def on_hands(self, nodes: npt.NDArray[np.int64], cards: npt.NDArray[np.uint8]) -> npt.NDArray[np.floating]:
        """Probabilities [n, U, A] of hands `cards` [U, C] at `nodes` [n]: cards encoded once, nodes once."""
        node = torch.from_numpy(nodes).to(self._nodes.device)
        return _on_hands(self.network, self._nodes[node], self.game.encoding.legal[node], cards, masked_softmax)


class NetworkPerPlayer:
    """A strategy of which each player has a network of its own, and `to_strategy` turns outputs into probabilities."""

    def __init__(
        self, game: Game, networks: tuple[SplitNetwork, SplitNetwork], to_strategy: ToStrategy, kind: str
    ) -> None:
        self.game, self.networks, self.kind = game, networks, kind
        self._to_strategy = to_strategy
        self._owner = infoset_owner(game)
        with torch.no_grad():
            self._nodes = [network.encode_nodes() for network in networks]

    @torch.no_grad()
    def probabilities(self, infosets: Infosets) -> torch.Tensor:
        node = infosets.node.long()
        result = torch.empty(len(infosets), self.game.encoding.num_actions, device=node.device)
        for player, network in enumerate(self.networks):
            mine = self._owner[node] == player
            result[mine] = self._to_strategy(network(infosets[mine]), self.game.encoding.legal[node[mine]])
        return result

    @torch.no_grad()
    def on_hands(self, nodes: npt.NDArray[np.int64], cards: npt.NDArray[np.uint8]) -> npt.NDArray[np.floating]:
        """Probabilities [n, U, A] of hands `cards` [U, C] at `nodes` [n], each player's nodes from its own network."""
        node = torch.from_numpy(nodes).to(self._owner.device)
        result = np.empty((len(nodes), len(cards), self.game.encoding.num_actions), np.float32)
        for player, network in enumerate(self.networks):
            mine = self._owner[node] == player
            if bool(mine.any()):
                encoded, legal = self._nodes[player][node[mine]], self.game.encoding.legal[node[mine]]
                result[mine.cpu().numpy()] = _on_hands(network, encoded, legal, cards, self._to_strategy)
        return result


class RegretMatchingPolicy(NetworkPerPlayer):
    """The strategy sigma^t of one iteration: regret matching on each player's advantage network."""

    def __init__(
        self,
        game: Game,
        networks: tuple[SplitNetwork, SplitNetwork],
        fallback: str = "highest",
        pot_units: bool = False,
        compressed: bool = False,
    ) -> None:
        kind = "regret matching on the newest advantage networks"
        super().__init__(game, networks, partial(regret_matching, fallback=fallback), kind)
        self.fallback = fallback
        # what outputs are, by which the strategy does not change: whether they are shares of the pot, and whether negative
        # ones are on a logarithmic scale
        self.pot_units, self.compressed = pot_units, compressed


def infoset_owner(game: Game) -> torch.Tensor:
    """The player to whom each public infoset index belongs, int64 [K]."""
    owner = torch.zeros(len(game.encoding.legal), dtype=torch.int64, device=game.actor.device)
    decisions = game.actor >= 0
    owner[game.infoset[decisions]] = game.actor[decisions]
    return owner


def _on_hands(
    network: SplitNetwork,
    nodes: torch.Tensor,
    legal: torch.Tensor,
    cards: npt.NDArray[np.uint8],
    to_strategy: ToStrategy,
) -> npt.NDArray[np.floating]:
    """Strategies [n, U, A] from encoded `nodes` [n, D]."""
    result = np.empty((len(nodes), len(cards), network.num_actions), np.float32)
    for some, outputs in network.on_grid(torch.from_numpy(cards).to(nodes.device), nodes):
        result[some] = to_strategy(outputs, legal[some, None]).cpu().numpy()
    return result
