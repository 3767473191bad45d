"""Monte Carlo CFR in plain Python, the baseline of the compiled solver: a single-threaded recursion over lists.

It runs the same iterations as `deepcfr.solve.mccfr` with external sampling: the same deals, choices, regrets and averages
(a test compares them). Compiled code makes the deals of both, as buckets and showdowns, which favours Python.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

from deepcfr.core.rng import key
from deepcfr.core.types import TERMINAL
from deepcfr.game.explicit import CHANCE
from deepcfr.sample.traversal_tree import TraversalTree
from deepcfr.solve.base import PLAYERS, TabularRecord
from deepcfr.solve.mccfr import MCCFR

_MASK = (1 << 64) - 1
_GOLDEN, _SECOND = 0x9E3779B97F4A7C15, 0xD1342543DE82EF95


def _mix(x: int) -> int:
    """The output function of SplitMix64 on 64-bit integers, as in `deepcfr.core.rng`."""
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & _MASK
    return x ^ (x >> 31)


def _draw(strategy: list[float], uniform: float) -> int:
    last = 0
    for action, share in enumerate(strategy):
        if share > 0:
            if uniform < share:
                return action
            last, uniform = action, uniform - share
    return last


class PlainMCCFR:
    """Runs the iterations of `solver` with its tree and its deals, but with separate regrets and averages.

    Keys of rows are the indices of their first entries in the solver's tables.
    """

    def __init__(self, solver: MCCFR) -> None:
        self.solver = solver
        self.regrets: dict[int, list[float]] = {}
        self.averages: dict[int, list[float]] = {}
        assert solver._trees
        tree: TraversalTree = solver._trees[0]
        self.actor, self.first, self.count = tree.actor.tolist(), tree.first_child.tolist(), tree.num_children.tolist()
        self.start, self.stride, self.column = tree.start.tolist(), tree.stride.tolist(), tree.column.tolist()
        self.payoff, self.chance, self.histories = tree.payoff.tolist(), tree.chance.tolist(), tree.histories.tolist()
        self.touched = 0

    def iterations(self) -> Iterator[TabularRecord]:
        """Run CFR iterations of K traversals for each player."""
        config, seed = self.solver.settings, self.solver.config.seed
        for t in range(1, self.solver.config.iterations + 1):
            begin, self.touched = time.perf_counter(), 0
            weight = float(t) if config.weighting == "linear" else 1.0
            for player in PLAYERS:
                deals = self.solver.tables.situations(config.traversals, key(seed, "deal", t, player), 0)
                stream = key(seed, "action", t, player)
                for traversal, (self.buckets, self.result) in enumerate(
                    zip(deals.buckets.tolist(), deals.results.tolist(), strict=True)
                ):
                    self.address = _mix((traversal * _GOLDEN + stream) & _MASK)
                    self._traverse(0, player, weight)
            yield TabularRecord(t, self.touched, time.perf_counter() - begin)

    def _traverse(self, node: int, traverser: int, weight: float) -> float:
        """The sampled value of a position to the traverser. Source: Lanctot et al. 2009, external sampling."""
        self.touched += self.histories[node]
        actor, first, count = self.actor[node], self.first[node], self.count[node]
        if actor == TERMINAL:
            gain: float = self.payoff[node][self.result]
            return gain if traverser == 0 else -gain
        if actor == CHANCE:
            outcome = _draw(self.chance[first : first + count], self._uniform(node))
            return self._traverse(first + outcome, traverser, weight)
        row = self.start[node] + self.stride[node] * self.buckets[self.column[node]]
        regrets = self.regrets.setdefault(row, [0.0] * count)
        positive = [max(regret, 0.0) for regret in regrets]
        total = sum(positive)
        strategy = [share / total for share in positive] if total > 0 else [1 / count] * count
        if actor != traverser:
            averages = self.averages.setdefault(row, [0.0] * count)
            for action in range(count):
                averages[action] += weight * strategy[action]
            return self._traverse(first + _draw(strategy, self._uniform(node)), traverser, weight)
        values = [self._traverse(first + action, traverser, weight) for action in range(count)]
        value = sum(share * action_value for share, action_value in zip(strategy, values, strict=True))
        for action in range(count):
            regrets[action] += weight * (values[action] - value)
        return value

    def _uniform(self, node: int) -> float:
        return (_mix((self.address + node * _SECOND) & _MASK) >> 40) * 2.0**-24
