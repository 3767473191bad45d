"""Inner products of hands with some of many nodes, without a copy of a node's vectors for every hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from deepcfr.compiled import nb
from deepcfr.types import Ints

Floats = npt.NDArray[np.float32]


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
def _multiply(hands: Floats, nodes: Floats, place: Ints, out: Floats) -> None:
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
    gradient: Floats, hands: Floats, nodes: Floats, place: Ints, of_hands: Floats, of_nodes: Floats
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
