"""Muon in float32: its orthogonal matrices against the singular value decomposition, its steps against torch's."""

import pytest
import torch
from torch import nn

from deepcfr.core.parallel import Workers
from deepcfr.network.fit import Muon, TorchMuon, orthogonalised

SHAPES = [(64, 64), (64, 192), (5, 3)]


@pytest.mark.parametrize(("shape", "iterations"), [((64, 192), 5), ((192, 64), 3), ((5, 3), 5)])
def test_singular_values_follow_the_quintic_and_singular_vectors_stay(shape: tuple[int, int], iterations: int) -> None:
    assert torch.equal(orthogonalised(torch.zeros(shape)), torch.zeros(shape))
    matrix = torch.randn(*shape, generator=torch.Generator().manual_seed(1))
    u, s, v = torch.linalg.svd(matrix.double(), full_matrices=False)
    expected = s / s.norm()
    for _ in range(iterations):
        expected = 3.4445 * expected - 4.7750 * expected**3 + 2.0315 * expected**5
    torch.testing.assert_close(orthogonalised(matrix, iterations).double(), u @ expected.diag() @ v, atol=2e-5, rtol=0)


def test_five_iterations_bring_singular_values_near_1() -> None:
    u, _, v = torch.linalg.svd(torch.randn(64, 64, generator=torch.Generator().manual_seed(2)))
    matrix = u @ torch.linspace(0.1, 1, 64).diag() @ v
    values = torch.linalg.svdvals(orthogonalised(matrix, 5))
    assert float(values.min()) > 0.68
    assert float(values.max()) < 1.21
    assert float((u @ v - orthogonalised(matrix, 5)).norm() / 8) < 0.35


@pytest.mark.parametrize("shape", SHAPES)
def test_steps_are_torchs_but_for_rounding(shape: tuple[int, int]) -> None:
    generator = torch.Generator().manual_seed(3)
    start = torch.randn(*shape, generator=generator)
    ours, torchs = nn.Parameter(start.clone()), nn.Parameter(start.clone())
    workers = Workers(1)
    optimizers = ((ours, Muon([ours], workers)), (torchs, TorchMuon([torchs], workers)))
    for rate in (0.02, 0.01, 0.005):
        gradient = torch.randn(*shape, generator=generator)
        for parameter, optimizer in optimizers:
            parameter.grad = gradient.clone()
            optimizer.step(rate)
    difference, moved = (ours - torchs).detach().norm(), (torchs - start).detach().norm()
    assert float(moved) > 0
    assert float(difference / moved) < 0.02  # bfloat16 has 8 significant bits


def test_threads_change_no_step() -> None:
    matrices = [
        [nn.Parameter(torch.randn(*shape, generator=torch.Generator().manual_seed(7))) for shape in SHAPES]
        for _ in "ab"
    ]
    for mine, count in zip(matrices, (1, 2), strict=True):
        workers = Workers(count)
        optimizer, generator = Muon(mine, workers), torch.Generator().manual_seed(5)
        for _ in range(3):
            for matrix in mine:
                matrix.grad = torch.randn(*matrix.shape, generator=generator)
            optimizer.step(0.02)
        workers.shutdown()
    assert all(torch.equal(one, two) for one, two in zip(*matrices, strict=True))
