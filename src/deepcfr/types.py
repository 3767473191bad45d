"""The arrays that pass between layers.

Letters for shapes: B traversals, N nodes, A actions, H private hands, I infosets, K public infoset indices, C card slots,
R rounds, T iterations, P = 2 players.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

NO_CARD = 255  # in a card slot that the player cannot see yet
TERMINAL = -1  # the actor of a node where the game is over


@dataclass(frozen=True)
class Infosets:
    """What a player knows when it must act, as small integers: features are made when a batch is drawn."""

    node: torch.Tensor  # integer [I], the public part: 0 .. K-1 of the game's `Encoding`
    cards: torch.Tensor  # uint8 [I, C], the visible cards in the game's encoding, NO_CARD where there is none

    def __len__(self) -> int:
        return self.node.shape[0]

    def __getitem__(self, index: torch.Tensor | slice) -> Infosets:
        return Infosets(self.node[index], self.cards[index])


@dataclass(frozen=True)
class Samples:
    """Training examples: advantages or action probabilities at infosets, with the iteration that made them."""

    infosets: Infosets
    target: torch.Tensor  # float32 [I, A], 0 for illegal actions
    iteration: torch.Tensor  # integer [I], 1 .. T; Linear CFR weighs a sample by it

    def __len__(self) -> int:
        return len(self.infosets)

    def __getitem__(self, index: torch.Tensor | slice) -> Samples:
        return Samples(self.infosets[index], self.target[index], self.iteration[index])


@dataclass(frozen=True)
class HandSamples:
    """Training examples of one player in one betting round: all of its n nodes there, with E legal actions in all.

    `values` are weighted by `reach`, so what a network should learn is values / reach. Of advantages, reach is the
    counterfactual one: the share of the opponent's hands, each weighted by its reach, that would be at the node, between
    0 and 1. Of strategies, it is the player's own. Sums over iterations of both are again such samples.
    """

    cards: torch.Tensor  # uint8 [I, C], what the player sees
    values: torch.Tensor  # float [I, E], of the player's edges in the round
    reach: torch.Tensor  # float [I, n], of the player's nodes in the round
    iteration: torch.Tensor  # integer [I], 1 .. T

    def __len__(self) -> int:
        return len(self.cards)


@dataclass(frozen=True)
class Encoding:
    """How networks see the infosets of a game: a public part by index and a private part by cards."""

    node_features: torch.Tensor  # float32 [K, F]
    legal: torch.Tensor  # bool [K, A]
    card_groups: tuple[int, ...]  # cards that are interchangeable, in slot order: (2, 3) for a hole and a flop
    num_ranks: int
    num_suits: int

    @property
    def num_actions(self) -> int:
        return self.legal.shape[1]
