"""The first layers of networks, counts of cards and how strong hands are; and inner products of hands with nodes.

A product is of hands with some of many nodes, without a copy of a node's vectors for every hand.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from deepcfr.core.compiled import nb
from deepcfr.core.types import NO_CARD, Encoding, Ints, Singles
from deepcfr.game.strength import SPREAD, STRENGTHS, HandStrengths, StrengthTables, hats


class PairedProducts(torch.autograd.Function):
    """out[i, j, a] = sum over d of hands[i, d] * nodes[place[i, j], a, d], on processors.

    `hands` is float32 [I, D], `nodes` float32 [n, A, D], `place` int64 [I, k]; the result is float32 [I, k, A].
    """

    @staticmethod
    def forward(ctx: Any, hands: torch.Tensor, nodes: torch.Tensor, place: torch.Tensor) -> torch.Tensor:
        arrays = hands.detach().numpy(), nodes.detach().numpy(), place.numpy()
        out = np.empty((*place.shape, nodes.shape[1]), np.float32)
        _multiply(*arrays, out)
        ctx.save_for_backward(hands, nodes, place)
        return torch.from_numpy(out)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, None]:
        hands, nodes, place = (saved.detach() for saved in ctx.saved_tensors)
        of_hands, of_nodes = torch.zeros_like(hands), torch.zeros_like(nodes)
        _add_gradients(
            gradient.contiguous().numpy(),
            hands.numpy(),
            nodes.numpy(),
            place.numpy(),
            of_hands.numpy(),
            of_nodes.numpy(),
        )
        return of_hands, of_nodes, None


@nb.njit(cache=True, nogil=True, fastmath={"reassoc", "nsz", "contract"})
def _multiply(hands: Singles, nodes: Singles, place: Ints, out: Singles) -> None:
    for i in range(len(hands)):
        hand = hands[i]
        for j in range(place.shape[1]):
            for a in range(nodes.shape[1]):
                vector, total = nodes[place[i, j], a], np.float32(0)
                for d in range(len(hand)):
                    total += hand[d] * vector[d]
                out[i, j, a] = total


@nb.njit(cache=True, nogil=True, fastmath={"contract"})
def _add_gradients(
    gradient: Singles, hands: Singles, nodes: Singles, place: Ints, of_hands: Singles, of_nodes: Singles
) -> None:
    for i in range(len(hands)):
        hand, of_hand = hands[i], of_hands[i]
        for j in range(place.shape[1]):
            for a in range(nodes.shape[1]):
                slope, vector, of_node = gradient[i, j, a], nodes[place[i, j], a], of_nodes[place[i, j], a]
                if slope != 0:
                    for d in range(len(hand)):
                        of_hand[d] += slope * vector[d]
                        of_node[d] += slope * hand[d]


BUMPS = 24  # for each of a hand's strengths, 0.005 apart at the ends and 0.07 in the middle


class Linear(nn.Module):
    """A fully connected layer with torch's default initial distribution, drawn from a given generator."""

    def __init__(self, inputs: int, outputs: int, generator: torch.Generator) -> None:
        super().__init__()
        bound = inputs**-0.5 if inputs else 0.0
        self.weight = nn.Parameter(torch.empty(outputs, inputs).uniform_(-bound, bound, generator=generator))
        self.bias = nn.Parameter(torch.empty(outputs).uniform_(-bound, bound, generator=generator))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return functional.linear(x, self.weight, self.bias)


class CardCounts(nn.Module):
    """Counts of cards: of each rank, of each suit, and optionally of each card, in every group: [I, C] to [I, counts]."""

    table: torch.Tensor
    offset: torch.Tensor

    def __init__(self, encoding: Encoding, single_cards: bool) -> None:
        super().__init__()
        ranks, suits = encoding.num_ranks, encoding.num_suits
        cards = torch.arange(ranks * suits)
        one_hot = [functional.one_hot(cards // suits, ranks), functional.one_hot(cards % suits, suits)]
        if single_cards:
            one_hot.append(functional.one_hot(cards, ranks * suits))
        block = torch.cat(one_hot, dim=1).float()
        block = torch.cat([block, torch.zeros(1, block.shape[1])])  # the last row stands for NO_CARD
        groups = len(encoding.card_groups)
        self.width = block.shape[1]  # counts of each group
        table = torch.zeros(groups, len(block), groups, self.width)
        for group in range(groups):
            table[group, :, group] = block
        self.register_buffer("table", table.reshape(groups * len(block), groups * self.width), persistent=False)
        group_of_slot = [group for group, size in enumerate(encoding.card_groups) for _ in range(size)]
        self.register_buffer("offset", torch.tensor(group_of_slot, dtype=torch.int64) * len(block), persistent=False)
        self.no_card = ranks * suits

    def forward(self, cards: torch.Tensor) -> torch.Tensor:
        index = cards.long().clamp(max=self.no_card) + self.offset
        return functional.embedding_bag(index, self.table, mode="sum")


class StrengthLayer(nn.Module):
    """A layer on how strong hands are, smoothly encoded, uint8 [I, C] to [I, outputs]: domain knowledge, not the paper's.

    Each strength (see `game.strength`) is given as it is and by `hats`, and indicators of the board cards in sight tell
    the rounds apart. How strength is spread over the cards to come is added if the tables have it.
    """

    centre: torch.Tensor

    def __init__(self, tables: StrengthTables, board_cards: int, outputs: int, generator: torch.Generator) -> None:
        super().__init__()
        self.hands, self.board_cards = HandStrengths(tables), board_cards
        self.register_buffer("centre", torch.arange(BUMPS, dtype=torch.float32), persistent=False)
        inputs = len(STRENGTHS) * (BUMPS + 1) + board_cards + (0 if tables.spread is None else SPREAD)
        # few inputs are other than 0 at a time, of each strength the number itself and two hats: only those count
        bound = (3 * len(STRENGTHS)) ** -0.5
        self.weight = nn.Parameter(torch.empty(outputs, inputs).uniform_(-bound, bound, generator=generator))

    def inputs(self, cards: torch.Tensor) -> torch.Tensor:
        """The inputs of the linear layer, float32 [I, inputs]: the strengths, their hats, the indicators, the spread."""
        found = self.hands(cards) if self.hands.spread is None else self.hands.with_spread(cards)
        strength, spread = found[:, : len(STRENGTHS)], found[:, len(STRENGTHS) :]
        seen = (cards[:, cards.shape[1] - self.board_cards :] != NO_CARD).float()
        return torch.cat([strength, hats(strength, self.centre).flatten(1), seen, spread], dim=1)

    def forward(self, cards: torch.Tensor) -> torch.Tensor:
        return functional.linear(self.inputs(cards), self.weight)


def with_strength(x: torch.Tensor, layer: StrengthLayer | None, cards: torch.Tensor) -> torch.Tensor:
    """The inputs x [I, D] of a layer's activation with the share of hand strength, if the network sees it."""
    return x if layer is None else x + layer(cards)
