"""Any policy asked for single pairs of node and hand on a board, with what the hands share computed once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import torch

from deepcfr.policies.base import Policy
from deepcfr.policies.network import RegretMatchingPolicy
from deepcfr.policies.regret_matching import regret_matching
from deepcfr.types import Infosets

_ROWS = 4096  # pairs evaluated at a time: small enough for the processor's cache

Ints = npt.NDArray[np.int64]
RowStrategy = Callable[[Ints, Ints], npt.NDArray[np.floating]]
"""(node [M], hand [M]) to probabilities [M, A]; hands are positions in the cards that the strategy was made for."""


def row_strategy(policy: Policy, player: int, round_: int, cards: npt.NDArray[np.uint8]) -> RowStrategy:
    """The policy at `player`'s nodes of a round of a poker game, with hands `cards` (uint8 [U, C], as the game shows them).

    A policy may offer a faster `row_strategy(player, round, cards)` of its own.
    """
    own = getattr(policy, "row_strategy", None)
    if own is not None:
        return own(player, round_, cards)  # type: ignore[no-any-return]
    if isinstance(policy, RegretMatchingPolicy):
        return _from_network(policy, player, cards)
    device = policy.game.device

    def ask(node: Ints, hand: Ints) -> npt.NDArray[np.floating]:
        infosets = Infosets(torch.from_numpy(node).to(device), torch.from_numpy(cards[hand]).to(device))
        return policy.probabilities(infosets).cpu().numpy()

    return ask


@torch.no_grad()
def _from_network(policy: RegretMatchingPolicy, player: int, cards: npt.NDArray[np.uint8]) -> RowStrategy:
    network, legal, device = policy.networks[player], policy.game.encoding.legal, policy.game.device
    hands, nodes = network.encode_cards(torch.from_numpy(cards).to(device)), network.encode_nodes()

    @torch.no_grad()
    def ask(node: Ints, hand: Ints) -> npt.NDArray[np.floating]:
        result = np.empty((len(node), network.num_actions), np.float32)
        for start in range(0, len(node), _ROWS):
            some = slice(start, start + _ROWS)
            at = torch.from_numpy(node[some]).to(device)
            z = hands[torch.from_numpy(hand[some]).to(device)].add_(nodes[at])
            result[some] = regret_matching(network.joint(z), legal[at], policy.fallback).cpu().numpy()
        return result

    return ask
