"""Draws of examples: uniform over those that are not held out, which go by whole groups."""

import pytest
import torch
from scipy.stats import chisquare

from deepcfr.rng import key
from deepcfr.training.draw import Draw
from fit_data import Downhill

CPU = torch.device("cpu")


def drawn(draw: Draw, count: int) -> torch.Tensor:
    index = torch.empty(10, count // 10, dtype=torch.int64)
    draw.fill(index)
    return index.view(-1)


@pytest.mark.parametrize("share", [0.0, 0.3])
def test_draws_are_uniform_over_the_examples_that_are_not_held_out(share: float) -> None:
    draw = Draw(Downhill(count=100, group_size=2), share, key(5, "draw"), CPU)
    counts = torch.bincount(drawn(draw, 40_000), minlength=100)
    held = draw.held_out(torch.arange(100))
    assert (share > 0) == bool(held.any())
    assert not bool(counts[held].any())
    assert chisquare(counts[~held]).pvalue > 1e-3


class Selective(Downhill):
    """Examples of which the later ones are drawn more often."""

    @property
    def odds(self) -> torch.Tensor:
        return (1 + torch.arange(100) // 50).float() / 3


@pytest.mark.parametrize("share", [0.0, 0.3])
def test_draws_follow_the_odds_among_the_examples_that_are_not_held_out(share: float) -> None:
    draw = Draw(Selective(count=100, group_size=2), share, key(5, "draw"), CPU)
    counts = torch.bincount(drawn(draw, 40_000), minlength=100)
    held = draw.held_out(torch.arange(100))
    expected = (1 + torch.arange(100) // 50)[~held].double()
    assert not bool(counts[held].any())
    assert chisquare(counts[~held], 40_000 * expected / expected.sum()).pvalue > 1e-3


def test_held_out_examples_come_in_whole_groups_and_are_a_share_of_all() -> None:
    draw = Draw(Downhill(count=100_000, group_size=10), 0.1, key(6, "draw"), CPU)
    by_group = draw.held_out(torch.arange(100_000)).view(-1, 10)
    assert torch.equal(by_group.all(1), by_group.any(1))
    assert float(by_group.float().mean()) == pytest.approx(0.1, abs=0.01)  # three standard deviations of 10,000 groups


def test_the_held_out_examples_to_look_at_are_different_and_from_all_over_the_memory() -> None:
    draw = Draw(Downhill(count=100_000, group_size=10), 0.1, key(7, "draw"), CPU)
    index = draw.some_held_out(1000)
    assert bool(draw.held_out(index).all())
    assert 900 < len(index.unique()) == len(index) <= 1000
    assert chisquare(torch.bincount(index // 20_000, minlength=5)).pvalue > 1e-3


def test_every_stream_holds_out_others_and_always_the_same() -> None:
    examples = Downhill(count=1000, group_size=1)
    one, again, other = (Draw(examples, 0.5, key(seed, "draw"), CPU).held_out(torch.arange(1000)) for seed in (1, 1, 2))
    assert torch.equal(one, again)
    assert 400 < int((one != other).sum()) < 600
