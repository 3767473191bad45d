"""Networks as players of batches of episodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from deepcfr.games.base import Deals, Game, card_codes, distinct
from deepcfr.policies.network import ToStrategy
from deepcfr.sampling.external import Strategy
from deepcfr.training.networks import NodeParts, SplitNetwork

PLAYERS = (0, 1)
EXPLORE = -1  # the mode of a player in a game in which it plays the first of its players, with random actions between
_RANDOM = 0.5  # probability of a random action then
CHUNK = 4096  # episodes that advance together in one thread, so that their data fits in the cache


@dataclass(frozen=True)
class NetworkPlayer:
    """A network with its encoded nodes, and the function that turns its outputs into a strategy."""

    network: SplitNetwork
    nodes: NodeParts
    to_strategy: ToStrategy

    @staticmethod
    @torch.no_grad()
    def of(network: SplitNetwork, to_strategy: ToStrategy) -> NetworkPlayer:
        """The network as it is."""
        return NetworkPlayer(network, network.node_parts(), to_strategy)

    def probabilities(self, hands: torch.Tensor, nodes: torch.Tensor, legal: torch.Tensor) -> torch.Tensor:
        """The strategy [..., A] from card parts and node parts that broadcast."""
        return self.to_strategy(self.network.joint(hands, nodes), legal)


@torch.no_grad()
def mixed(game: Game, deals: Deals, modes: torch.Tensor, player: int, kinds: Sequence[NetworkPlayer]) -> Strategy:
    """One player's strategy in some episodes: in each it plays the one of `kinds` that `modes`, int64 [B], names.

    With mode EXPLORE it plays the first one with random actions.
    """
    rounds, legal = deals.views.shape[2], game.encoding.legal
    views = deals.views[:, player].flatten(0, 1)
    # many deals share a hand before the board, so distinct views are encoded once
    example, view = distinct(card_codes(views, game.encoding))
    hands = [kind.network.encode_cards(views[example]) for kind in kinds]
    # in a small game each pair of a view and a node occurs many times, so all pairs are evaluated once
    small = len(example) * len(legal) < len(deals)
    tables = []
    if small:
        every = torch.arange(len(legal), device=legal.device)
        tables = [
            kind.probabilities(mine[:, None], kind.nodes[every], legal) for kind, mine in zip(kinds, hands, strict=True)
        ]

    @torch.no_grad()
    def strategy(node: torch.Tensor, row: torch.Tensor) -> torch.Tensor:
        mode, at, hand = modes[row], game.infoset[node], view[row * rounds + game.round[node]]
        result = torch.empty(len(node), legal.shape[1], device=node.device)
        for number, kind in enumerate(kinds):
            some = (mode.clamp(min=0) == number).nonzero()[:, 0]
            if small:
                result[some] = tables[number][hand[some], at[some]]
            elif len(some):
                places = at[some]
                result[some] = kind.probabilities(hands[number][hand[some]], kind.nodes[places], legal[places])
        options = legal[at]
        explored = torch.lerp(result, options / options.sum(1, keepdim=True), _RANDOM)
        return torch.where((mode == EXPLORE)[:, None], explored, result)

    return strategy
