"""Clusters: centres by weight, and the nearest of them."""

import sys

import numpy as np
import pytest

from deepcfr.buckets import features
from deepcfr.buckets.features import MANY, finder, fit_centres, merge_equal, nearest
from deepcfr.core.errors import ConfigError


@pytest.mark.parametrize("many", [MANY, 3], ids=["scikit-learn", "tree"])
def test_separated_groups_get_a_centre_each_at_their_weighted_mean(many: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(features, "MANY", many)
    monkeypatch.setattr(features, "STARTS", 50)
    random = np.random.default_rng(0)
    group = np.repeat(np.arange(4), 50)
    vectors = (random.normal(size=(200, 3)) * 0.01 + group[:, None]).astype(np.float32)
    weights = random.integers(1, 20, size=200).astype(np.float64)
    centres = fit_centres(vectors, weights, 4, 0)
    means = np.array([np.average(vectors[group == g], axis=0, weights=weights[group == g]) for g in range(4)])
    assert np.allclose(centres[np.argsort(centres[:, 0])], means, atol=1e-5)


def test_a_weight_counts_like_as_many_copies() -> None:
    vectors = np.array([[0.0], [1.0], [5.0]], np.float32)
    assert np.allclose(fit_centres(vectors, np.array([3.0, 1.0, 1.0]), 1, 0), [[1.2]])


def test_no_more_centres_than_distinct_vectors() -> None:
    vectors = np.array([[0.0, 1.0], [2.0, 3.0], [0.0, 1.0]], np.float32)
    assert np.array_equal(fit_centres(vectors, np.ones(3), 3, 0), [[0, 1], [2, 3]])


def test_fits_are_deterministic_and_depend_on_the_stream() -> None:
    vectors = np.random.default_rng(0).random((500, 2), dtype=np.float32)
    first = fit_centres(vectors, np.ones(500), 20, 1)
    assert np.array_equal(first, fit_centres(vectors, np.ones(500), 20, 1))
    assert not np.array_equal(first, fit_centres(vectors, np.ones(500), 20, 2))


def test_equal_vectors_are_merged_with_their_weights() -> None:
    vectors = np.array([[1, 2], [0, 5], [1, 2], [1, 3]], np.float32)
    distinct, weights = merge_equal(vectors, np.array([1, 2, 4, 8]))
    assert {tuple(row): weight for row, weight in zip(distinct.tolist(), weights.tolist(), strict=True)} == {
        (1, 2): 5,
        (0, 5): 2,
        (1, 3): 8,
    }


@pytest.mark.parametrize("dimensions", [1, 9, 49])
def test_nearest_agrees_with_all_distances(dimensions: int, monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(dimensions)
    vectors, centres = (random.random((n, dimensions), dtype=np.float32) for n in (300, 37))
    distances = ((vectors[:, None, :].astype(np.float64) - centres[None]) ** 2).sum(axis=2)
    label = nearest(vectors, np.ascontiguousarray(centres.T))
    assert np.allclose(distances[np.arange(300), label], distances.min(axis=1), rtol=1e-5)
    assert np.array_equal(finder(centres)(vectors), label)
    monkeypatch.setattr(features, "MANY", 36)  # found by a tree
    assert np.array_equal(finder(centres)(vectors), label)


def test_the_lowest_of_equally_near_centres_is_taken() -> None:
    centres = np.array([[3.0, 1.0, 1.0, -1.0]], np.float32)
    assert nearest(np.array([[1.0], [0.0], [9.0]], np.float32), centres).tolist() == [1, 1, 0]


def test_without_scikit_learn_the_error_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn", None)
    with pytest.raises(ConfigError, match=r"This needs scikit-learn: pip install 'deepcfr\[abstraction\]'\."):
        fit_centres(np.zeros((2, 1), np.float32), np.ones(2), 1, 0)
