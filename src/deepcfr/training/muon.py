"""Muon (Jordan et al. 2024) for networks on a processor, in float32.

`torch.optim.Muon` orthogonalises in bfloat16. Processors without bfloat16 instructions emulate it and take many times
longer, so only CUDA uses torch's. Both make the same steps but for rounding.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import torch
from torch import nn

from deepcfr.parallel import Workers, flushed_denormals

MOMENTUM = 0.9  # does a little better here than the usual 0.95
ITERATIONS = 3  # of Newton-Schulz; these do as well here as the usual 5
_QUINTIC = (3.4445, -4.7750, 2.0315)  # coefficients of s, s^3 and s^5 (Jordan et al. 2024)
_LEAST_NORM = 1e-7


class Muon:
    """Nesterov momentum whose steps are orthogonalised, for matrices; no weight decay.

    A step has the root mean square that Adam's typically has, so that one learning rate serves both (Liu et al. 2025,
    section 2.2: 0.2 sqrt(max(rows, columns)) times the orthogonal matrix).
    """

    def __init__(self, matrices: Sequence[nn.Parameter], workers: Workers) -> None:
        # the largest first, so that they do not wait for each other
        self._matrices = sorted(matrices, key=torch.numel, reverse=True)
        self._workers = workers
        self._momenta = [torch.zeros_like(matrix) for matrix in self._matrices]

    def step(self, learning_rate: float) -> None:
        """Move every matrix along its gradient, which it must have; `workers` move several at a time."""
        move = partial(_move, learning_rate)
        for _ in self._workers.map(move, zip(self._matrices, self._momenta, strict=True)):
            pass


@torch.no_grad()
def _move(learning_rate: float, pair: tuple[nn.Parameter, torch.Tensor]) -> None:
    """One step of a matrix with its momentum."""
    matrix, momentum = pair
    assert matrix.grad is not None
    with flushed_denormals():
        momentum.lerp_(matrix.grad, 1 - MOMENTUM)
        direction = orthogonalised(matrix.grad.lerp(momentum, MOMENTUM))
        matrix.add_(direction, alpha=-learning_rate * 0.2 * math.sqrt(max(matrix.shape)))


class TorchMuon:
    """The same steps by torch's own Muon, whose matrix products are in bfloat16; for CUDA."""

    def __init__(self, matrices: Sequence[nn.Parameter], workers: Workers) -> None:  # noqa: ARG002
        self._optimizer = torch.optim.Muon(
            matrices, weight_decay=0.0, momentum=MOMENTUM, ns_steps=ITERATIONS, adjust_lr_fn="match_rms_adamw"
        )

    def step(self, learning_rate: float) -> None:
        """Move every matrix along its gradient, which it must have."""
        self._optimizer.param_groups[0]["lr"] = learning_rate
        self._optimizer.step()  # type: ignore[no-untyped-call]


def orthogonalised(matrix: torch.Tensor, iterations: int = ITERATIONS) -> torch.Tensor:
    """The nearest orthogonal matrix U V^T of `matrix` = U S V^T, about, in the precision of `matrix` [M, N].

    Each iteration replaces a singular value s, at most 1 after division by the norm, by a s + b s^3 + c s^5. That drives s
    into about 0.7 to 1.2, not to 1 (Jordan et al. 2024); `iterations` says how small an s gets there.
    """
    a, b, c = _QUINTIC
    x = matrix.T if matrix.shape[0] > matrix.shape[1] else matrix
    x = x / x.norm().clamp(min=_LEAST_NORM)
    for _ in range(iterations):
        gram = x @ x.T
        x = torch.addmm(x, torch.addmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x.T if matrix.shape[0] > matrix.shape[1] else x
