"""Exact features of hands: expected hand strength, equity histograms, opponent cluster hand strength.

The *hand strength* of a hand on a full board is the share of the opposing hands (those that share no card with it or the
board) that it beats; ties count half. Before the last board card there are *runouts*, all equally likely. Expected hand
strength (EHS) is the mean over runouts, and the equity histogram is the distribution. Nothing is sampled. Runouts deal only
the cards of the game: flop hold'em has none after the flop, so there a histogram has one non-zero bin.

Opponent cluster hand strength (OCHS) is the hand strength against the opponent's starting hands of one cluster at a time
(Johanson, Burch, Valenzano and Bowling, AAMAS 2013, "Evaluating state-space abstractions in extensive-form games", section
4). It distinguishes hands of equal strength by the hands that they beat, also on a full board.

Hands with similar feature vectors are clustered by k-means; each hand has the weight of its class.

Vectors are compared by Euclidean distance. Equity histograms are compared as cumulative histograms. That is a fast
approximation of the earth mover's distance of Johanson et al. (AAMAS 2013, section 4), which in one dimension is the L1
norm of the same difference.

Centres come from k-means on a sample, with Lloyd's algorithm instead of mini-batches: on the flop of flop hold'em with
2,000 clusters its mean squared distance was 12 % smaller in the same time. Up to `MANY` clusters scikit-learn fits them,
and every hand is compared with every centre. Beyond that a k-d tree of the centres finds the nearest one, in the fit too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from math import comb
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.spatial import cKDTree

from deepcfr.buckets.buckets import round_boards
from deepcfr.buckets.kernels import add_runouts, cluster_strengths, fill_showdowns, list_hands
from deepcfr.core.compiled import nb
from deepcfr.core.errors import ConfigError, GameError
from deepcfr.core.parallel import Workers
from deepcfr.core.rng import key
from deepcfr.core.types import Ints, Numbers, Points, Singles
from deepcfr.game.board_index import BoardIndex, binomials, hand_images, inverse_renamings
from deepcfr.game.cards import all_hands, suit_permutations
from deepcfr.game.rules import PokerRules

BINS = 50  # of equity histograms
STARTING = -1  # pseudo-round: hands without a board, even if the game has no such round


@dataclass(frozen=True)
class Hands:
    """One hand of each class on each of some boards: M rows in the order of the boards given, then of hand numbers."""

    classes: Ints  # [boards], numbers in the round's `BoardIndex`
    board: Ints  # [M], the board number of each row
    hand: Numbers  # [M], the lowest number in the class of hands
    weight: Ints  # [M], number of (hand, board) pairs in the row's class, without suit isomorphism
    bounds: Ints  # [boards + 1], the first row of each board, and M at the end
    row: Numbers  # [boards, H], the row of every hand, -1 where it shares a card with the board

    def __len__(self) -> int:
        return len(self.hand)


@dataclass(frozen=True)
class Strengths:
    """Features of hands over all runouts, with the rows of `Hands`."""

    ehs: Singles  # [M], E[HS]
    histogram: Singles  # [M, BINS], shares of the runouts with HS in [i / BINS, (i + 1) / BINS); 1 is in the last bin


@dataclass(frozen=True)
class Showdowns:
    """All hands ranked on every class of full boards (`kernels.fill_showdowns`); 647 MB for Texas hold'em."""

    rules: PokerRules
    index: BoardIndex  # of full boards
    orders: Points  # [classes, hands that share no card with a full board]
    points: Points  # [classes, H]

    @property
    def most(self) -> int:
        """Points of a hand that beats all opposing hands, twice their number; hand strength is points / most."""
        rules = self.rules
        return 2 * comb(rules.num_cards - rules.hole_cards - sum(rules.board_cards), rules.hole_cards)


def require_features(rules: PokerRules) -> None:
    """Raise GameError for games without one or two hole cards."""
    if rules.hole_cards > 2:
        raise GameError(f"Hand features need one or two hole cards, but {rules.name} deals {rules.hole_cards}.")


def showdowns(rules: PokerRules, workers: Workers) -> Showdowns:
    """Rank every hand on every class of full boards of a game."""
    require_features(rules)
    full = blank_showdowns(rules)
    for _ in workers.map(partial(rank_boards, full), parts(len(full.index), 256)):
        pass
    return full


def blank_showdowns(rules: PokerRules) -> Showdowns:
    """Empty showdowns for all full boards."""
    index = round_boards(rules, rules.num_rounds - 1)
    live = comb(rules.num_cards - index.boards.shape[1], rules.hole_cards)
    orders = np.empty((len(index), live), np.uint16)
    return Showdowns(rules, index, orders, np.empty((len(index), comb(rules.num_cards, rules.hole_cards)), np.uint16))


def rank_boards(full: Showdowns, part: slice) -> None:
    """Rank all hands on some classes of full boards."""
    rules = full.rules
    holes = all_hands(rules.num_cards, rules.hole_cards)
    boards = full.index.boards[part]
    fill_showdowns(boards, holes, rules.num_suits, rules.num_cards, full.orders[part], full.points[part])


def parts(count: int, size: int) -> list[slice]:
    """Split range(count) into slices of at most `size`."""
    return [slice(start, min(start + size, count)) for start in range(0, count, size)]


def hands_on(rules: PokerRules, round_: int, classes: Ints) -> Hands:
    """One hand of each class on the boards `classes` [m], numbers in the `BoardIndex` of the round."""
    index = round_boards(rules, round_)
    hand, size, bounds, row = list_hands(
        index.boards[classes],
        all_hands(rules.num_cards, rules.hole_cards),
        suit_permutations(rules.num_ranks, rules.num_suits),
        hand_images(rules.num_ranks, rules.num_suits, rules.hole_cards),
    )
    board = np.repeat(classes, np.diff(bounds))
    return Hands(classes, board, hand, size * index.copies[board], bounds, row)


def strength_features(full: Showdowns, round_: int, hands: Hands) -> Strengths:
    """EHS and the equity histogram of `hands` in a round (or before any board: STARTING), over all runouts."""
    rules = full.rules
    boards = round_boards(rules, round_).boards
    most = full.most
    bin_of = np.minimum(np.arange(most + 1) * BINS // max(most, 1), BINS - 1).astype(np.uint8)
    total = np.zeros(len(hands), np.int64)
    histogram = np.zeros((len(hands), BINS), np.int32)
    images = hand_images(rules.num_ranks, rules.num_suits, rules.hole_cards)
    table = binomials(rules.num_cards, sum(rules.board_cards))
    for board, (start, end) in zip(boards[hands.classes], pairwise(hands.bounds), strict=True):
        add_runouts(
            board,
            hands.hand[start:end],
            full.index.class_of,
            full.index.permutation_of,
            images,
            table,
            full.points,
            bin_of,
            total[start:end],
            histogram[start:end],
        )
    runs = runouts(rules, round_)
    return Strengths(
        ehs=(total / (runs * most)).astype(np.float32),
        histogram=(histogram / np.float32(runs)).astype(np.float32),
    )


def runouts(rules: PokerRules, round_: int) -> int:
    """The number of ways to complete the board of a round, given a hand."""
    seen = sum(rules.board_cards[: round_ + 1])
    return comb(rules.num_cards - rules.hole_cards - seen, sum(rules.board_cards) - seen)


def cluster_features(full: Showdowns, round_: int, hands: Hands, cluster: Ints) -> Singles:
    """OCHS and EHS: the expected strength of `hands` against each cluster, then against all, float32 [M, clusters + 1].

    `cluster` [H] is the cluster of every opposing hand, numbered from 0, with at most `kernels.CLUSTERS` clusters. If no
    hand of a cluster is possible, its column holds EHS.
    """
    rules = full.rules
    result = np.empty((len(hands), int(cluster.max()) + 2), np.float32)
    images = hand_images(rules.num_ranks, rules.num_suits, rules.hole_cards)
    cluster_strengths(
        round_boards(rules, round_).boards[hands.classes],
        hands.bounds,
        hands.hand,
        full.index.class_of,
        full.index.permutation_of,
        images[inverse_renamings(rules.num_suits)],
        binomials(rules.num_cards, sum(rules.board_cards)),
        full.orders,
        all_hands(rules.num_cards, rules.hole_cards),
        cluster,
        result,
    )
    return result


MANY = 4_000  # above this number of clusters centres are fitted and found with a k-d tree
STEPS, TREE_STEPS = 50, 20  # most steps of Lloyd's algorithm: up to MANY clusters, and above
STARTS = 3  # above MANY, k-means++ chooses the first centres from so many random vectors for each cluster


def fit_centres(vectors: Singles, weights: npt.NDArray[np.float64], count: int, stream: int) -> Singles:
    """The centres of `count` clusters of `vectors` [M, D] with `weights` [M], float32 [count, D].

    Fewer if there are fewer distinct vectors. The result does not depend on the number of threads.
    Raises ConfigError without scikit-learn.
    """
    cluster, limits = require_scikit_learn()
    vectors, weights = merge_equal(vectors, weights)
    if len(vectors) <= count:
        return vectors
    state = key(stream, "k-means") & 0xFFFFFFFF
    weights = weights / weights.mean()
    with limits(1):
        if count > MANY:
            size = min(len(vectors), STARTS * count)
            some = np.random.default_rng(key(stream, "starts")).choice(len(vectors), size, replace=False)
            centres, _ = cluster.kmeans_plusplus(
                vectors[some], count, sample_weight=weights[some], random_state=state, n_local_trials=1
            )
            return lloyd(vectors, weights, centres)
        centres, _ = cluster.kmeans_plusplus(vectors, count, sample_weight=weights, random_state=state)
        fit = cluster.KMeans(count, init=centres, n_init=1, max_iter=STEPS, random_state=state)
        result: Singles = fit.fit(vectors, sample_weight=weights).cluster_centers_.astype(np.float32)
    return result


def lloyd(vectors: Singles, weights: npt.NDArray[np.float64], centres: Singles) -> Singles:
    """Centres [K, D] after `TREE_STEPS` steps of Lloyd's algorithm; one without vectors stays where it is."""
    for _ in range(TREE_STEPS):
        label = finder(centres)(vectors)
        total = np.bincount(label, weights, len(centres))
        sums = [np.bincount(label, weights * column, len(centres)) for column in vectors.T]
        means = np.stack(sums, axis=1) / np.maximum(total, 1e-300)[:, None]
        centres = np.where(total[:, None] > 0, means, centres).astype(np.float32)
    return centres


def finder(centres: Singles) -> Callable[[Singles], npt.NDArray[np.int32]]:
    """A function from vectors [M, D] to the nearest of `centres` [K, D] to each, int32 [M]; threads may share it."""
    if len(centres) <= MANY:
        columns = np.ascontiguousarray(centres.T)
        return lambda vectors: nearest(vectors, columns)
    middle = centres.mean(axis=0, dtype=np.float64)
    axes = np.linalg.svd(centres - middle, full_matrices=False)[2].T  # a tree divides space across its axes
    tree = cKDTree((centres - middle) @ axes)

    def found(vectors: Singles) -> npt.NDArray[np.int32]:
        return tree.query((vectors - middle) @ axes)[1].astype(np.int32)

    return found


def require_scikit_learn() -> tuple[Any, Any]:
    """Return `sklearn.cluster` and threadpoolctl's limits. Raises ConfigError if scikit-learn is not installed."""
    try:
        from sklearn import cluster
        from threadpoolctl import threadpool_limits
    except ImportError as error:
        raise ConfigError("This needs scikit-learn: pip install 'deepcfr[abstraction]'.") from error
    return cluster, threadpool_limits


def merge_equal(
    vectors: Singles, weights: npt.NDArray[np.floating] | npt.NDArray[np.integer]
) -> tuple[Singles, npt.NDArray[np.float64]]:
    """The distinct rows of `vectors` [M, D] and the sum of the `weights` [M] of each."""
    rows = np.ascontiguousarray(vectors).view(np.dtype((np.void, vectors.itemsize * vectors.shape[1])))[:, 0]
    _, first, inverse = np.unique(rows, return_index=True, return_inverse=True)
    return vectors[first], np.bincount(inverse, weights, len(first)).astype(np.float64)


@nb.njit(cache=True, nogil=True, fastmath={"nnan", "nsz"})
def nearest(vectors: Singles, centres: Singles) -> npt.NDArray[np.int32]:
    """The nearest of `centres` (float32 [D, clusters]: transposed) to each of `vectors` [M, D]; the lowest of equals."""
    clusters = centres.shape[1]
    result = np.empty(len(vectors), np.int32)
    distance = np.empty(clusters, np.float32)
    for row in range(len(vectors)):
        distance[:] = 0.0
        for d in range(len(centres)):
            value = vectors[row, d]
            for k in range(clusters):
                difference = value - centres[d, k]
                distance[k] += difference * difference
        least = distance[0]
        for k in range(1, clusters):  # two plain loops that the compiler vectorises
            least = min(least, distance[k])
        for k in range(clusters):
            if distance[k] == least:
                result[row] = k
                break
    return result
