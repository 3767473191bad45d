"""Abstractions: as many buckets as asked for, symmetric in the suits, ordered by strength, the same from the same seed."""

from dataclasses import replace

import numpy as np
import pytest

from deepcfr.buckets import make
from deepcfr.buckets.buckets import Abstraction, lossless, round_boards, round_classes
from deepcfr.buckets.features import (
    Showdowns,
    cluster_features,
    hands_on,
    merge_equal,
    showdowns,
    strength_features,
)
from deepcfr.buckets.make import bucket_counts, feature_kind, make_abstraction, opponent_clusters
from deepcfr.core.errors import ConfigError, GameError
from deepcfr.core.parallel import Workers
from deepcfr.game.cards import all_hands
from deepcfr.game.rules import PRESETS, PokerRules


@pytest.fixture(scope="module")
def full(small: PokerRules) -> Showdowns:
    return showdowns(small, Workers(1))


def mean_strengths(abstraction: Abstraction, full: Showdowns, round_: int) -> list[float]:
    """The mean EHS of every bucket of a round, over all hands and boards as dealt."""
    hands = hands_on(full.rules, round_, np.arange(len(round_boards(full.rules, round_))))
    place = np.searchsorted(np.arange(len(round_boards(full.rules, round_))), hands.board)
    label = abstraction.tables[round_][place, hands.hand].astype(np.int64)
    ehs = strength_features(full, round_, hands).ehs
    return (np.bincount(label, hands.weight * ehs) / np.bincount(label, hands.weight)).tolist()


def test_every_hand_has_a_bucket_and_every_bucket_a_hand(small: PokerRules, full: Showdowns) -> None:
    abstraction = make_abstraction(small, (5, 20, 12), 0)
    holes = all_hands(12, 2)
    assert abstraction.counts == (5, 20, 12)
    for round_, (count, table) in enumerate(zip(abstraction.counts, abstraction.tables, strict=True)):
        boards = round_boards(small, round_).boards
        dead = (holes[None, :, :, None] == boards[:, None, None, :]).any(axis=(2, 3))
        assert np.array_equal(table == 255, dead)
        assert np.array_equal(np.unique(table[~dead]), np.arange(count))
        means = mean_strengths(abstraction, full, round_)
        assert means == sorted(means)


def test_the_seed_decides_and_threads_do_not(small: PokerRules) -> None:
    said: list[str] = []
    first = make_abstraction(small, (30,), 0, say=said.append)
    assert said[0] == "up to 0.3 GB of memory, 0.0 MB of tables"
    assert [line.split(":")[0] for line in said[1:]] == ["round 1", "round 2", "round 3"]
    again = make_abstraction(small, (30,), 0, threads=2)
    other = make_abstraction(small, (30,), 1)
    for a, b in zip(first.tables, again.tables, strict=True):
        assert np.array_equal(a, b)
    assert any(not np.array_equal(a, b) for a, b in zip(first.tables, other.tables, strict=True))


def test_hands_in_a_bucket_are_alike(small: PokerRules, full: Showdowns) -> None:
    hands = hands_on(small, 2, np.arange(len(round_boards(small, 2))))
    ehs = strength_features(full, 2, hands).ehs
    label = make_abstraction(small, (24,), 0).tables[2][hands.board, hands.hand].astype(np.int64)
    mean = np.bincount(label, hands.weight * ehs) / np.bincount(label, hands.weight)
    within = np.average((ehs - mean[label]) ** 2, weights=hands.weight)
    assert within < 0.05 * np.average((ehs - 0.5) ** 2, weights=hands.weight)


def test_a_single_number_leaves_rounds_without_a_board_lossless(small: PokerRules) -> None:
    starting = round_classes(small, 0)
    assert bucket_counts(small, (7,)) == (starting, 7, 7)
    abstraction = make_abstraction(small, (7,), 0)
    assert abstraction.counts == (starting, 7, 7)
    assert np.array_equal(abstraction.tables[0], lossless(small).tables[0])
    assert bucket_counts(PRESETS["kuhn"], (2,)) == (2,)
    assert [feature_kind(PRESETS["hulh"], round_) for round_ in range(4)] == ["histogram"] * 3 + ["ochs"]


def test_as_many_buckets_as_hands_are_lossless_and_need_no_clustering(
    small: PokerRules, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(make, "fit_centres", None)
    exact = lossless(small)
    abstraction = make_abstraction(small, exact.counts, 0)
    for a, b in zip(abstraction.tables, exact.tables, strict=True):
        assert np.array_equal(a, b)


@pytest.mark.parametrize("count", [0, 1_286_793])
def test_numbers_out_of_range_are_refused_with_the_figure(count: int) -> None:
    with pytest.raises(ConfigError, match=f"Round 2 of fhp was given {count:,} buckets, but must have 1 to 1,286,792"):
        make_abstraction(PRESETS["fhp"], (169, count), 0)


def test_numbers_that_do_not_fit_the_game_are_refused(small: PokerRules) -> None:
    with pytest.raises(ConfigError) as caught:
        make_abstraction(small, (0, 5, 10_000), 0)
    assert [problem.split()[1] for problem in caught.value.problems] == ["1", "3"]  # every round is named
    with pytest.raises(ConfigError, match="small has 3 rounds, but 2 numbers of buckets were given"):
        make_abstraction(small, (5, 5), 0)
    with pytest.raises(GameError, match="one or two hole cards"):
        make_abstraction(replace(small, hole_cards=3), (5,), 0)


def test_too_little_memory_is_refused_with_the_figure(small: PokerRules, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(make, "usable_memory", lambda: 200_000_000)
    with pytest.raises(ConfigError, match=r"needs up to 0\.3 GB of memory, and there are 0\.2 GB"):
        make_abstraction(small, (5,), 0)


def test_fewer_buckets_than_asked_for_are_said_and_none_is_empty() -> None:
    said: list[str] = []
    leduc = PRESETS["leduc"]
    abstraction = make_abstraction(leduc, (14,), 0, say=said.append)
    full = showdowns(leduc, Workers(1))
    vectors = cluster_features(full, 1, hands_on(leduc, 1, np.arange(3)), opponent_clusters(full, 0))
    distinct = len(np.unique(vectors, axis=0))  # such as a pair, which is as good whatever its rank
    assert abstraction.counts == (3, distinct)
    assert distinct < 14
    assert f"round 2: {distinct} buckets for 15 hands, {14 - distinct} fewer than asked for" in said[-1]
    assert np.array_equal(np.unique(abstraction.tables[1]), [*range(distinct), 255])


def test_clusters_of_opposing_hands_share_suits_and_ascend_in_strength(small: PokerRules, full: Showdowns) -> None:
    cluster = opponent_clusters(full, 0)
    starting = lossless(small).tables[0][0]
    ehs = strength_features(full, 0, hands_on(small, 0, np.zeros(1, np.int64))).ehs
    assert len({(s, k) for s, k in zip(starting.tolist(), cluster.tolist(), strict=True)}) == round_classes(small, 0)
    means = np.bincount(cluster, ehs[starting]) / np.bincount(cluster)
    assert len(means) == 8
    assert (np.diff(means) > 0).all()


def test_a_sample_is_drawn_in_proportion_to_copies(
    small: PokerRules, full: Showdowns, monkeypatch: pytest.MonkeyPatch
) -> None:
    maker = make.RoundMaker(full, np.zeros(0, np.int64), 1, "histogram", 5)
    vectors, weights = maker.sample(10, Workers(1))
    monkeypatch.setattr(make, "WHOLE", 0)
    drawn, counted = merge_equal(*maker.sample(10, Workers(1)))
    expected = {row.tobytes(): weight / weights.sum() for row, weight in zip(vectors, weights, strict=True)}
    share = np.array([expected[row.tobytes()] for row in drawn])
    draws = counted.sum()
    assert draws == make.SAMPLE
    # chi-squared with one degree of freedom less than there are vectors
    statistic = ((counted - draws * share) ** 2 / (draws * share)).sum() + draws * (1 - share.sum())
    freedom = len(vectors) - 1
    assert abs(statistic - freedom) < 5 * np.sqrt(2 * freedom)
    assert len(make_abstraction(small, (6,), 0).tables) == 3
