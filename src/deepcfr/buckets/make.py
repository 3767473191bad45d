"""Make an abstraction: for every round compute features of its hands, cluster them, and make a table of buckets.

Rounds are made one after another, each a few boards at a time, so that the features of all hands (123 million on the river
of Texas hold'em) are never in memory together. Every round has two passes: one draws the sample to which centres are
fitted, one assigns all hands to the nearest centre.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import comb
from typing import Literal

import numpy as np
import numpy.typing as npt

from deepcfr.buckets.buckets import (
    Abstraction,
    bucket_dtype,
    lossless_table,
    round_boards,
    round_classes,
    table_bytes,
)
from deepcfr.buckets.features import (
    BINS,
    STARTING,
    Hands,
    Showdowns,
    cluster_features,
    finder,
    fit_centres,
    hands_on,
    merge_equal,
    parts,
    require_features,
    require_scikit_learn,
    showdowns,
    strength_features,
)
from deepcfr.buckets.kernels import CLUSTERS
from deepcfr.core.errors import ConfigError
from deepcfr.core.machine import usable_memory
from deepcfr.core.parallel import Workers
from deepcfr.core.rng import key
from deepcfr.core.types import Ints, Singles
from deepcfr.game.rules import PokerRules

FeatureKind = Literal["ochs", "histogram"]

SAMPLE = 200_000  # least number of hands to which centres are fitted
SAMPLE_PER_BUCKET = 20  # least number for each bucket
WHOLE = 16_000_000  # centres are fitted to all hands of a round if their vectors have at most this many numbers
BOARDS = 16  # board classes processed at a time


def make_abstraction(
    rules: PokerRules,
    buckets: tuple[int, ...],
    seed: int,
    threads: int = 1,
    say: Callable[[str], None] = lambda _: None,
) -> Abstraction:
    """Cluster the hands of every round of a game into `buckets`, one number for each round.

    A single number applies to every round with a board; rounds without a board are then lossless. So is every round with
    as many buckets as distinct hands. Buckets are numbered by ascending mean EHS, and none is empty: if there are fewer
    distinct feature vectors than buckets, the abstraction has fewer buckets and a message says so. The result depends on
    `seed` but not on `threads`. Raises ConfigError for numbers out of range, without scikit-learn, or without enough
    memory; GameError for games with more than two hole cards.
    """
    counts = bucket_counts(rules, buckets)
    lossy = [round_ for round_ in range(rules.num_rounds) if counts[round_] < round_classes(rules, round_)]
    if lossy:
        require_features(rules)
        require_scikit_learn()
    _say_cost(rules, counts, say)
    with Workers(threads) as workers:
        makers = round_makers(rules, lossy, seed, workers) if lossy else {}
        tables, exact = [], []
        for round_, count in enumerate(counts):
            if round_ in makers:
                table, count = makers[round_].table(count, workers)
            else:
                table = lossless_table(rules, round_)
            tables.append(table)
            exact.append(count)
            say(_round_sentence(rules, round_, counts[round_], count))
    return Abstraction(rules, tuple(exact), tuple(tables))


def bucket_counts(rules: PokerRules, buckets: tuple[int, ...]) -> tuple[int, ...]:
    """The requested number of buckets of each round; a single number has the meaning of `make_abstraction`.

    Raises ConfigError with every number that is out of range.
    """
    classes = [round_classes(rules, round_) for round_ in range(rules.num_rounds)]
    if len(buckets) == 1 < rules.num_rounds:
        boards = np.cumsum(rules.board_cards)
        buckets = tuple(buckets[0] if seen else most for seen, most in zip(boards, classes, strict=True))
    if len(buckets) != rules.num_rounds:
        raise ConfigError(
            f"{rules.name} has {rules.num_rounds} rounds, but {len(buckets)} numbers of buckets were given: give one for "
            "each round, or a single one."
        )
    problems = [
        f"Round {round_ + 1} of {rules.name} was given {count:,} buckets, but must have 1 to {most:,}: so many hands "
        "differ by more than suits."
        for round_, (count, most) in enumerate(zip(buckets, classes, strict=True))
        if not 1 <= count <= most
    ]
    if problems:
        raise ConfigError(problems)
    return buckets


def _round_sentence(rules: PokerRules, round_: int, asked: int, made: int) -> str:
    text = f"round {round_ + 1}: {made:,} buckets for {round_classes(rules, round_):,} hands"
    if made < asked:
        text += f", {asked - made:,} fewer than asked for, because no more hands differ in their features"
    return text


def feature_kind(rules: PokerRules, round_: int) -> FeatureKind:
    """The kind of features of a round: histograms where there are runouts, OCHS on a full board."""
    return "ochs" if sum(rules.board_cards[round_ + 1 :]) == 0 else "histogram"


def opponent_clusters(full: Showdowns, seed: int) -> Ints:
    """Clusters of starting hands, for OCHS: the cluster of every hand by number, int64 [H], ascending in mean EHS.

    Hands are clustered by their cumulative equity histograms over all boards into at most CLUSTERS clusters.
    """
    hands = hands_on(full.rules, STARTING, np.zeros(1, np.int64))
    strengths = strength_features(full, STARTING, hands)
    vectors = cumulative(strengths.histogram)
    centres = fit_centres(vectors, hands.weight.astype(np.float64), CLUSTERS, key(seed, "opponents"))
    label = finder(centres)(vectors)
    weight = np.bincount(label, hands.weight, len(centres))
    mean = np.bincount(label, hands.weight * strengths.ehs, len(centres)) / np.maximum(weight, 1)
    return ranks(mean, weight > 0)[label][hands.row[0]]


def cumulative(histogram: Singles) -> Singles:
    """Cumulative histograms [M, BINS - 1] from histograms [M, BINS]; the last sum is always 1 and omitted."""
    return np.cumsum(histogram, axis=1, dtype=np.float32)[:, :-1]


def ranks(values: npt.NDArray[np.float64], present: npt.NDArray[np.bool_]) -> Ints:
    """The rank of each present value in ascending order, stable for equal values; 0 for absent values."""
    result = np.zeros(len(values), np.int64)
    places = np.flatnonzero(present)
    result[places[np.argsort(values[places], kind="stable")]] = np.arange(len(places))
    return result


def round_makers(rules: PokerRules, lossy: list[int], seed: int, workers: Workers) -> dict[int, RoundMaker]:
    """The maker of buckets of each of the rounds `lossy`; they share the showdowns of all full boards."""
    full = showdowns(rules, workers)
    kinds = {round_: feature_kind(rules, round_) for round_ in lossy}
    clusters = opponent_clusters(full, seed) if "ochs" in kinds.values() else np.zeros(0, np.int64)
    return {r: RoundMaker(full, clusters, r, kind, key(seed, "abstraction", r)) for r, kind in kinds.items()}


@dataclass(frozen=True)
class RoundMaker:
    """The clustering of one round."""

    full: Showdowns
    clusters: Ints  # [H], opposing hands; empty unless `kind` is "ochs"
    round_: int
    kind: FeatureKind
    stream: int

    @property
    def rules(self) -> PokerRules:
        return self.full.rules

    def vectors(self, hands: Hands) -> tuple[Singles, Singles]:
        """Feature vectors [M, D] for clustering, and EHS [M]."""
        if self.kind == "ochs":
            strengths = cluster_features(self.full, self.round_, hands, self.clusters)
            return strengths, strengths[:, -1]
        features = strength_features(self.full, self.round_, hands)
        return cumulative(features.histogram), features.ehs

    def table(self, count: int, workers: Workers) -> tuple[npt.NDArray[np.unsignedinteger], int]:
        """The bucket of every hand on every board of the round, and the number of buckets that are not empty."""
        vectors, weights = self.sample(count, workers)
        centres = fit_centres(vectors, weights, count, self.stream)
        find = finder(centres)
        index = round_boards(self.rules, self.round_)
        dead = len(centres)  # value of impossible hands until the buckets are numbered
        table = np.empty((len(index), self.full.points.shape[1]), bucket_dtype(count))

        def assign(part: slice) -> npt.NDArray[np.float64]:
            hands = hands_on(self.rules, self.round_, np.arange(part.start, part.stop))
            vectors, ehs = self.vectors(hands)
            label = find(vectors)
            table[part] = np.append(label, dead).astype(table.dtype)[hands.row]  # row -1 is the last
            weights = (hands.weight, hands.weight * ehs.astype(np.float64))
            return np.stack([np.bincount(label, weight, dead) for weight in weights])

        weight, sum_ehs = sum(workers.map(assign, parts(len(index), BOARDS)), start=np.zeros((2, dead)))
        number = ranks(sum_ehs / np.maximum(weight, 1), weight > 0)
        return self._renumbered(table, number, int((weight > 0).sum()), workers)

    def _renumbered(
        self, table: npt.NDArray[np.unsignedinteger], number: Ints, count: int, workers: Workers
    ) -> tuple[npt.NDArray[np.unsignedinteger], int]:
        dtype = bucket_dtype(count)
        lookup = np.append(number, np.iinfo(dtype).max).astype(dtype)
        result = table if table.dtype == dtype else np.empty(table.shape, dtype)

        def renumber(part: slice) -> None:
            result[part] = lookup[table[part]]

        for _ in workers.map(renumber, parts(len(table), BOARDS)):
            pass
        return result, count

    def sample(self, count: int, workers: Workers) -> tuple[Singles, npt.NDArray[np.float64]]:
        """Vectors [S, D] and weights [S] for the fit: of all hands, or of random (hand, board) pairs."""
        size = max(SAMPLE, SAMPLE_PER_BUCKET * count)
        if round_classes(self.rules, self.round_) * dimensions(self.kind) > WHOLE:
            return self._draw(size, workers)
        index = round_boards(self.rules, self.round_)

        def whole(part: slice) -> tuple[Singles, Ints]:
            hands = hands_on(self.rules, self.round_, np.arange(part.start, part.stop))
            return self.vectors(hands)[0], hands.weight

        pieces = list(workers.map(whole, parts(len(index), BOARDS)))
        vectors, weights = merge_equal(np.concatenate([p[0] for p in pieces]), np.concatenate([p[1] for p in pieces]))
        if len(vectors) <= size:
            return vectors, weights
        drawn = np.random.default_rng(key(self.stream, "rows")).choice(len(vectors), size, p=weights / weights.sum())
        return vectors[drawn], np.ones(size)

    def _draw(self, size: int, workers: Workers) -> tuple[Singles, npt.NDArray[np.float64]]:
        index = round_boards(self.rules, self.round_)
        random = np.random.default_rng(key(self.stream, "pairs"))
        copies = np.cumsum(index.copies)
        classes, draws = np.unique(
            np.searchsorted(copies, random.integers(copies[-1], size=size), side="right"), return_counts=True
        )
        live = comb(self.rules.num_cards - index.boards.shape[1], self.rules.hole_cards)
        places = np.split(random.integers(live, size=size), np.cumsum(draws)[:-1])

        def vectors_of(part: slice) -> Singles:
            hands = hands_on(self.rules, self.round_, classes[part])
            rows = [row[row >= 0][place] for row, place in zip(hands.row, places[part], strict=True)]
            return np.take(self.vectors(hands)[0], np.concatenate(rows), axis=0)

        vectors: Singles = np.concatenate(list(workers.map(vectors_of, parts(len(classes), BOARDS))))
        return vectors, np.ones(size)


def dimensions(kind: FeatureKind) -> int:
    """The most numbers in a feature vector."""
    return {"ochs": CLUSTERS + 1, "histogram": BINS - 1}[kind]


def memory_needed(rules: PokerRules, counts: tuple[int, ...]) -> int:
    """Upper bound on the bytes of memory that it takes to make an abstraction with `counts` buckets."""
    held = 0
    for round_, count in enumerate(counts):
        if count < round_classes(rules, round_):
            size = dimensions(feature_kind(rules, round_))
            rows = round_classes(rules, round_)
            rows = rows if rows * size <= WHOLE else max(SAMPLE, SAMPLE_PER_BUCKET * count)
            held = max(held, 4 * 4 * rows * size)
    if held:
        full = len(round_boards(rules, rules.num_rounds - 1))
        held += 4 * full * comb(rules.num_cards, rules.hole_cards)  # orders and points
    return table_bytes(rules, counts) + held + 300_000_000


def _say_cost(rules: PokerRules, counts: tuple[int, ...], say: Callable[[str], None]) -> None:
    """Report the memory that is needed. Raises ConfigError if the machine has too little."""
    needed, available = memory_needed(rules, counts), usable_memory()
    if available is not None and needed > 0.9 * available:
        raise ConfigError(
            f"The abstraction needs up to {needed / 1e9:.1f} GB of memory, and there are {available / 1e9:.1f} GB: ask "
            "for fewer buckets."
        )
    say(f"up to {needed / 1e9:.1f} GB of memory, {table_bytes(rules, counts) / 1e6:,.1f} MB of tables")
