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
