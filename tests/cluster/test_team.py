"""Learners of a team share every mini-batch: no example is left out."""

import pytest

from deepcfr.cluster.team import Team


@pytest.mark.parametrize(("size", "batch", "share"), [(1, 7, 7), (2, 7, 4), (3, 7, 3), (3, 6, 2), (4, 3, 1)])
def test_shares_are_equal_and_cover_the_batch(size: int, batch: int, share: int) -> None:
    found = {Team(rank, size).share(batch) for rank in range(size)}
    assert found == {share}
    assert size * share >= batch
