"""Monte Carlo CFR on tables (Lanctot, Waugh, Zinkevich and Bowling 2009): external and outcome sampling.

Traversals run one after the other, in numba, on a `TraversalTree`. External sampling visits histories breadth-first: rows
of siblings are read together, so cache misses overlap, and there is no recursion. Every random choice is a hash of (stream,
traversal, position), as in `deepcfr.core.rng`, so the choices of a traversal depend on chunks and threads only through the
regrets that it reads.

`Decay` and `shaped` are two improvements by Lin (2024, "4 Improvements to Monte Carlo Counterfactual Regret Minimization
for Texas Heads Up No Limit Poker"): a least probability that decays with the games played, and rewards that weight losses
and gains differently. Both are off by default.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from deepcfr.core.compiled import nb
from deepcfr.core.types import TERMINAL, Doubles, Floats, Ints
from deepcfr.game.cards import address_of, uniform_at
from deepcfr.game.explicit import CHANCE
from deepcfr.sample.traversal_tree import Situations, Small, TraversalTree

SHAPES = ("y1", "y2", "y3", "y4")  # shapes of rewards; kernels take an index of this tuple


class Decay(NamedTuple):
    """A floor under strategies that decays.

    After x games the least probability of a legal action is max(0, start + slope * x), and 0 from game `end` on. A game is
    one traversal for each player, so x is the number of earlier traversals of the same player.
    """

    start: float = 0.0
    slope: float = 0.0  # per game
    end: int = 0
    games: int = 0  # before traversal 0 of the stream


PLAIN = Decay()


@nb.njit(cache=True, nogil=True)
def floor_after(decay: Decay, traversal: int) -> float:
    """The least probability of a legal action in a traversal of the stream: 0 exactly from the end on.

    Source: Lin 2024, section 6.2.
    """
    game = decay.games + traversal
    return max(0.0, decay.start + decay.slope * game) if game < decay.end else 0.0


@nb.njit(cache=True, nogil=True)
def shaped(reward: float, shape: int) -> float:
    """The reward for a payoff in the game's unit: gains stay the same, losses count more.

    Source: Lin 2024, section 6.3, y1 to y4, applied to the payoff of a game.
    """
    if shape == 0 or reward >= 0.0:
        return reward
    if shape == 1:
        return 1.5 * reward
    bent = -0.35 * (-reward) ** 1.32
    return bent - 5.0 if shape == 2 else min(bent, reward)


@nb.njit(cache=True, nogil=True)
def _match(regrets: Floats, at: int, count: int, share: Doubles, to: int, floor: float) -> None:
    """Regret matching on the row `at`, written to share[to : to + count]; uniform where no regret is positive.

    With a floor, every action gets the floor and the rest is shared in proportion to regret matching. If the floor is
    above 1 / count, the strategy is uniform.
    Every regret is read once: another thread may change it at any time, and the shares must still sum to 1.
    """
    total = 0.0
    for a in range(count):
        positive = max(float(regrets[at + a]), 0.0)
        share[to + a] = positive
        total += positive
    normalise(share, to, count, total, floor)


@nb.njit(cache=True, nogil=True, inline="always")  # a call here is measurably slower
def normalise(share: Doubles, to: int, count: int, total: float, floor: float) -> None:
    """Divide share[to : to + count] by their `total`, or make them uniform if it is 0; then apply the floor."""
    for a in range(count):
        share[to + a] = share[to + a] / total if total > 0.0 else 1.0 / count
    if floor > 0.0:
        least = min(floor, 1.0 / count)
        for a in range(count):
            share[to + a] = least + max(0.0, 1.0 - count * least) * share[to + a]


@nb.njit(cache=True, nogil=True)
def sample(share: Doubles, first: int, count: int, uniform: float) -> int:
    """Sample an index by the probabilities share[first : first + count]; an index of share 0 is never sampled."""
    last = 0
    for a in range(count):
        if share[first + a] > 0.0:
            last = a
            if uniform < share[first + a]:
                return a
            uniform -= share[first + a]
    return last


class _Visits(NamedTuple):
    """The visited histories of one traversal, in breadth-first order; the children of one are contiguous."""

    node: Small  # position in the tree
    child: Small  # index of the first child
    row: Ints  # entry of the tables, at decisions only
    share: Doubles  # probability of coming here if the traverser acts at the parent
    value: Doubles  # value to the traverser


@nb.njit(cache=True, nogil=True)
def _descend(
    tree: TraversalTree, regrets: Floats, averages: Floats, buckets: Ints, result: int, traverser: int, weight: float,
    floor: float, address: np.uint64, visits: _Visits,
) -> int:  # fmt: skip
    """Visit all actions of the traverser and one sampled action of opponent and chance; returns the number of visits.

    The opponent's nodes are added to the average strategy, because the opponent plays by its own strategy.
    """
    visits.node[0] = 0
    sign = 1.0 - 2.0 * traverser
    end = 1
    visit = 0
    while visit < end:
        node = visits.node[visit]
        actor = tree.actor[node]
        first, count = tree.first_child[node], tree.num_children[node]
        visits.child[visit] = end
        if actor == TERMINAL:
            visits.value[visit] = sign * tree.payoff[node, result]
        elif actor == CHANCE:
            visits.node[end] = first + sample(tree.chance, first, count, uniform_at(address, node))
            end += 1
        else:
            at = tree.start[node] + tree.stride[node] * buckets[tree.column[node]]
            visits.row[visit] = at
            _match(regrets, at, count, visits.share, end, floor)
            if actor == traverser:
                for a in range(count):
                    visits.node[end + a] = first + a
                end += count
            else:
                for a in range(count):
                    averages[at + a] += weight * visits.share[end + a]
                visits.node[end] = first + sample(visits.share, end, count, uniform_at(address, node))
                end += 1
        visit += 1
    return end


@nb.njit(cache=True, nogil=True)
def _ascend(tree: TraversalTree, regrets: Floats, traverser: int, weight: float, visits: _Visits, end: int) -> int:
    """Propagate values to the root and add the traverser's sampled regrets; returns the nodes touched."""
    touched = 0
    for visit in range(end - 1, -1, -1):
        node = visits.node[visit]
        touched += tree.histories[node]
        actor = tree.actor[node]
        child = visits.child[visit]
        if actor == traverser:
            count = tree.num_children[node]
            value = 0.0
            for a in range(count):
                value += visits.share[child + a] * visits.value[child + a]
            visits.value[visit] = value
            at = visits.row[visit]
            for a in range(count):
                regrets[at + a] += weight * (visits.value[child + a] - value)
        elif actor != TERMINAL:
            visits.value[visit] = visits.value[child]
    return touched


@nb.njit(cache=True, nogil=True)
def external_traversals(
    tree: TraversalTree, regrets: Floats, averages: Floats, situations: Situations, traverser: int, weight: float,
    stream: np.uint64, first: int, decay: Decay = PLAIN,
) -> int:  # fmt: skip
    """Run the external-sampling traversals `first` .. of the stream for one player; returns the nodes touched.

    Adds `weight` times the sampled regrets of the traverser, and `weight` times the opponent's strategy to the averages.
    The floor of `decay` applies to both players.
    Source: Lanctot et al. 2009, section 4, external-sampling MCCFR.
    """
    most = len(tree.actor)  # positions are visited at most once, so the children of one more position fit
    visits = _Visits(
        np.empty(most, np.int32), np.empty(most, np.int32), np.empty(most, np.int64), np.empty(most), np.empty(most)
    )
    touched = 0
    for i in range(len(situations.results)):
        address, floor = address_of(stream, first + i), floor_after(decay, first + i)
        buckets, result = situations.buckets[i], situations.results[i]
        end = _descend(tree, regrets, averages, buckets, result, traverser, weight, floor, address, visits)
        touched += _ascend(tree, regrets, traverser, weight, visits, end)
    return touched


class _Path(NamedTuple):
    """The traverser's choices on one sampled path."""

    row: Ints  # entry of the tables
    actions: Ints  # number of actions
    taken: Ints
    share: Doubles  # strategies, concatenated over choices
    before: Doubles  # 1 / probability of the earlier choices under the sampling policy
    drawn: Doubles  # probability of `taken` under the sampling policy


@nb.njit(cache=True, nogil=True)
def _follow(
    tree: TraversalTree, regrets: Floats, averages: Floats, buckets: Ints, traverser: int, weight: float,
    exploration: float, floor: float, address: np.uint64, path: _Path, mixture: Doubles,
) -> tuple[int, int, int]:  # fmt: skip
    """Sample one path; returns the terminal position, the number of choices in `path` and the nodes touched."""
    node, depth, used = 0, 0, 0
    inverse = 1.0  # 1 / probability of the traverser's choices so far
    touched = tree.histories[0]
    while tree.actor[node] != TERMINAL:
        actor, first, count = tree.actor[node], tree.first_child[node], tree.num_children[node]
        uniform = uniform_at(address, node)
        if actor == CHANCE:
            action = sample(tree.chance, first, count, uniform)
        else:
            at = tree.start[node] + tree.stride[node] * buckets[tree.column[node]]
            _match(regrets, at, count, path.share, used, floor)
            if actor == traverser:
                for a in range(count):
                    mixture[a] = exploration / count + (1.0 - exploration) * path.share[used + a]
                action = sample(mixture, 0, count, uniform)
                path.row[depth], path.actions[depth], path.taken[depth] = at, count, action
                path.before[depth], path.drawn[depth] = inverse, mixture[action]
                inverse /= mixture[action]
                depth += 1
                used += count
            else:
                for a in range(count):
                    averages[at + a] += weight * inverse * path.share[used + a]
                action = sample(path.share, used, count, uniform)
        node = first + action
        touched += tree.histories[node]
    return node, depth, touched


@nb.njit(cache=True, nogil=True)
def _credit(regrets: Floats, weight: float, payoff: float, depth: int, path: _Path) -> None:
    """Add the sampled regrets along a path of `depth` choices that ended in `payoff` to the traverser.

    The estimate of an action is 0, and of the one that was taken what follows / its probability.
    """
    used = 0
    for d in range(depth):
        used += path.actions[d]
    value = payoff  # estimate of what the rest of the path is worth
    for d in range(depth - 1, -1, -1):
        used -= path.actions[d]
        estimate = value / path.drawn[d]
        mean = path.share[used + path.taken[d]] * estimate
        for a in range(path.actions[d]):
            own = estimate if a == path.taken[d] else 0.0
            regrets[path.row[d] + a] += weight * path.before[d] * (own - mean)
        value = mean


@nb.njit(cache=True, nogil=True)
def outcome_traversals(
    tree: TraversalTree, regrets: Floats, averages: Floats, situations: Situations, traverser: int, weight: float,
    stream: np.uint64, first: int, exploration: float, decay: Decay = PLAIN,
) -> int:  # fmt: skip
    """Run the outcome-sampling traversals `first` .. of the stream for one player; returns the nodes touched.

    The traverser plays uniformly with probability `exploration` and its strategy otherwise. Opponent and chance are
    sampled on-policy, so only the traverser's choices need importance weights. The opponent's strategy is added to the
    averages with the inverse probability of those choices, which in expectation equals external sampling.
    Source: Lanctot et al. 2009, section 3.1, with stochastically-weighted averaging.
    """
    most = len(tree.actor)
    path = _Path(
        np.empty(most, np.int64), np.empty(most, np.int64), np.empty(most, np.int64), np.empty(most), np.empty(most),
        np.empty(most),
    )  # fmt: skip
    mixture = np.empty(np.max(tree.num_children))
    sign = 1.0 - 2.0 * traverser
    total = 0
    for i in range(len(situations.results)):
        address, floor = address_of(stream, first + i), floor_after(decay, first + i)
        buckets, result = situations.buckets[i], situations.results[i]
        end, depth, touched = _follow(
            tree, regrets, averages, buckets, traverser, weight, exploration, floor, address, path, mixture
        )
        _credit(regrets, weight, sign * tree.payoff[end, result], depth, path)
        total += touched
    return total
