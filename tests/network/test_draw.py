"""Draws of examples: uniform, or by their odds."""

import pytest
import torch
from scipy.stats import chisquare

from deepcfr.core.rng import key
from deepcfr.network.examples import Draw
from fit_data import Downhill


class Selective(Downhill):
    """Examples of which the later ones are drawn more often."""

    @property
    def odds(self) -> torch.Tensor:
        return (1 + torch.arange(100) // 50).float() / 3


@pytest.mark.parametrize(("kind", "weight"), [(Downhill, torch.ones(100)), (Selective, 1.0 + torch.arange(100) // 50)])
def test_draws_follow_the_odds(kind: type[Downhill], weight: torch.Tensor) -> None:
    draw, index = Draw(kind(count=100), key(5, "draw"), torch.device("cpu")), torch.empty(10, 4_000, dtype=torch.int64)
    draw.fill(index)
    counts = torch.bincount(index.view(-1), minlength=100)
    expected = weight.double()
    assert chisquare(counts, 40_000 * expected / expected.sum()).pvalue > 1e-3
