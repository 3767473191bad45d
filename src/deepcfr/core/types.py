"""The arrays that are passed between layers.

Letters for shapes: B traversals, N nodes, A actions, H private hands, I infosets, K public infoset indices, C card slots,
R rounds, T iterations, P = 2 players.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from deepcfr.core.errors import CheckpointError

if TYPE_CHECKING:
    import torch

Ints = npt.NDArray[np.int64]
Doubles = npt.NDArray[np.float64]
Floats = npt.NDArray[np.floating]  # of either precision
Singles = npt.NDArray[np.float32]
Numbers = npt.NDArray[np.int32]
Points = npt.NDArray[np.uint16]
Cards = npt.NDArray[np.uint8]
Bools = npt.NDArray[np.bool_]

CardTuple = tuple[int, ...]  # cards as numbers

Say = Callable[[str], None]  # prints a sentence for the user
OnProgress = Callable[[int, int], None]  # is told what is done and of how much

NO_CARD = 255  # in a card slot that is not visible to the player yet
TERMINAL = -1  # the actor of a terminal node


@dataclass(frozen=True)
class Infosets:
    """Infosets as small integers; features are computed when a batch is drawn."""

    node: torch.Tensor  # integer [I], the public part: 0 .. K-1 of the game's `Encoding`; or [I, k], k parts of a hand
    cards: torch.Tensor  # uint8 [I, C], the visible cards in the game's encoding, NO_CARD where there is none

    def __len__(self) -> int:
        return self.node.shape[0]

    def __getitem__(self, index: torch.Tensor | slice) -> Infosets:
        return Infosets(self.node[index], self.cards[index])


@dataclass(frozen=True)
class Samples:
    """Training examples: advantages or action probabilities at infosets, with the iteration that made them."""

    infosets: Infosets
    target: torch.Tensor  # float32 [I, A], or [I, k, A], 0 for illegal actions
    iteration: torch.Tensor  # integer [I], 1 .. T; Linear CFR weighs a sample by it

    def __len__(self) -> int:
        return len(self.infosets)

    def __getitem__(self, index: torch.Tensor | slice) -> Samples:
        return Samples(self.infosets[index], self.target[index], self.iteration[index])


@dataclass(frozen=True)
class HandSamples:
    """Training examples of one player in one betting round: all of its n nodes there, with E legal actions in all.

    `values` are weighted by `reach`, so the target of a network is values / reach. For advantages, reach is the
    counterfactual one, between 0 and 1: the share of the opponent's hands, weighted by their reach, at the node. For
    strategies, it is the player's own. Sums of `values` and `reach` over iterations are again such samples.
    """

    cards: torch.Tensor  # uint8 [I, C], the visible cards
    values: torch.Tensor  # float [I, E], of the player's edges in the round
    reach: torch.Tensor  # float [I, n], of the player's nodes in the round
    iteration: torch.Tensor  # integer [I], 1 .. T

    def __len__(self) -> int:
        return len(self.cards)


def joined(parts: list[Any]) -> Any:
    """The rows of all `parts` in order, of which there is at least one: tensors, or records of tensors of one kind."""
    import torch

    if isinstance(parts[0], torch.Tensor):
        return torch.cat(parts)
    return type(parts[0])(**{one.name: joined([getattr(part, one.name) for part in parts]) for one in fields(parts[0])})


@dataclass(frozen=True)
class Encoding:
    """The encoding of infosets for networks: a public part by index and a private part by cards."""

    node_features: torch.Tensor  # float32 [K, F]
    legal: torch.Tensor  # bool [K, A]
    card_groups: tuple[int, ...]  # cards that are interchangeable, in slot order: (2, 3) for a hole and a flop
    num_ranks: int
    num_suits: int

    @property
    def num_actions(self) -> int:
        return self.legal.shape[1]


def require_like(name: str, found: Any, like: Any) -> None:
    """Raise CheckpointError naming a stored array or tensor that has not the shape and the type of `like`."""
    if tuple(found.shape) != tuple(like.shape) or found.dtype != like.dtype:
        raise CheckpointError(
            f"'{name}' is {found.dtype} {list(found.shape)} in place of {like.dtype} {list(like.shape)}."
        )
