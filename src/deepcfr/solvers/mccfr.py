"""Monte Carlo CFR on tables (Lanctot et al. 2009), for abstract poker games and for explicit trees.

One iteration t is K traversals for player 0, then K for player 1; regrets take effect at once. During a player's K
traversals the opponent's strategy is fixed, so early progress depends on iterations as much as on traversals: many
iterations of few traversals are better than few of many, until starting threads costs more than it gains. With linear
weighting (Brown and Sandholm 2019) regrets and averages of iteration t have weight t.

**Rounding.** Weighted sums are not rescaled: dividing all by t^2 would change no strategy, and they stay far below the
largest float32. An addition to a float32 sum S is rounded to a multiple of about 1e-7 S, and the n-th addition to an entry
is about 1/n of its sum, so after about ten million visits a row no longer changes. Games with so few infosets that this
matters have room for float64.

**Threads.** Chunks of traversals for one player run in all threads at once and add to the shared tables without locks. Two
races are tolerated. Of two additions to one entry at the same moment, one can be lost; and a row can be read while another
thread has written a part of it. Strategies are computed from numbers that are read once, so they always sum to 1, and
aligned numbers of 4 and 8 bytes are never torn. On Kuhn and Leduc, the games where threads collide most often,
one thread and two differ by no more than noise over eight seeds (`experiments/results/races.json`). A run with one thread
is deterministic.

**Improvements of Lin** (2024, "4 Improvements to Monte Carlo Counterfactual Regret Minimization for Texas Heads Up No Limit
Poker"): threads are above, and a floor under strategies, a shape of rewards and initial strategies are settings (sections
6.2, 6.3 and 7). A shape
of payoffs makes a game that is not zero-sum, in which each player has payoffs of its own; regrets and averages are of that
game, and every evaluation of the policies is of the real one. See `docs/lin.md`.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from deepcfr.abstraction.buckets import lossless, round_classes
from deepcfr.abstraction.texture import Buckets
from deepcfr.config import OPENSPIEL, TabularConfig
from deepcfr.errors import GameError
from deepcfr.games.explicit import ExplicitTree
from deepcfr.games.poker import PokerGame
from deepcfr.games.tree_game import TreeGame
from deepcfr.memory.reservoir import Array
from deepcfr.policies.base import Policy, UniformPolicy
from deepcfr.policies.initial import AbstractPolicy, RangeBuckets, poker_table, range_buckets, start_poker, tree_table
from deepcfr.policies.styles import ThresholdPolicy
from deepcfr.policies.tables import TreePolicy
from deepcfr.sampling.mccfr import NO_BASELINE, SHAPES, Baseline, external_traversals, outcome_traversals, shaped
from deepcfr.sampling.traversal_tree import (
    Situations,
    TraversalTree,
    explicit_situations,
    explicit_traversal_tree,
    poker_situations,
    poker_traversal_tree,
    table_layout,
)
from deepcfr.solvers.sampled import EXPLORATION, UNIFORM, Chunk, SampledSolver, Table, require_supported
from deepcfr.types import Doubles


def memory_bytes(
    game: PokerGame | TreeGame, counts: tuple[int, ...] | None, precision: str, baseline: str = "none"
) -> int:
    """Bytes of a solver's regrets and averages and of its baseline, computed before they are allocated.

    `counts` are the buckets of each round of a poker game; None stands for the lossless abstraction, which is not built
    either.
    """
    entries = _entries(game, counts)
    values = {"none": 0, "infoset": entries}
    if isinstance(game, TreeGame):
        values["history"] = game.explicit.num_nodes
    return 2 * entries * np.dtype(precision).itemsize + 8 * values.get(baseline, 0)


def _entries(game: PokerGame | TreeGame, counts: tuple[int, ...] | None) -> int:
    if isinstance(game, TreeGame):
        return int(game.explicit.infoset_actions.sum())
    rules = game.rules
    if counts is None:
        counts = tuple(round_classes(rules, round_) for round_ in range(rules.num_rounds))
    return table_layout(game.tree, counts).size


class MCCFR(SampledSolver):
    """A Monte Carlo solver of games whose tree is listed.

    `abstraction` groups the hands of a poker game into buckets; None is the lossless abstraction, the only choice for
    other games.
    Raises ConfigError for settings that Monte Carlo CFR does not offer and for less than one thread, and GameError for an
    abstraction of another game.
    """

    game: PokerGame | TreeGame
    name = "mccfr"
    most_chunk = 4_096
    trial = 10_000

    def __init__(
        self,
        game: PokerGame | TreeGame,
        config: TabularConfig,
        seed: int = 0,
        threads: int = 1,
        abstraction: Buckets | None = None,
    ) -> None:
        require_supported(game.name if isinstance(game, PokerGame) else OPENSPIEL + game.name, config, threads)
        if abstraction is not None:
            _require_abstraction_of(game, abstraction)
        super().__init__(config, seed, threads, _entries(game, abstraction.counts if abstraction else None))
        self.game = game
        if isinstance(game, PokerGame):
            self.abstraction: Buckets = lossless(game.rules) if abstraction is None else abstraction
            tree = poker_traversal_tree(game, table_layout(game.tree, self.abstraction.counts))
        else:
            tree = explicit_traversal_tree(game.explicit)
        self._trees = (tree, tree)  # as each player is paid in them
        if config.reward_on == "payoff" and config.reward_shape != SHAPES[0]:
            self._trees = (_shaped_tree(tree, 0, config.reward_shape), _shaped_tree(tree, 1, config.reward_shape))
        self._baseline = NO_BASELINE
        if config.baseline != "none":
            histories = config.baseline == "history"
            self._baseline = Baseline(np.zeros(len(tree.actor) if histories else len(self._regret)), histories)

    def _anew(self, config: TabularConfig) -> MCCFR:
        abstraction = self.abstraction if isinstance(self.game, PokerGame) else None
        return MCCFR(self.game, config, self.seed, self.workers.count, abstraction)

    def _run(self, chunk: Chunk) -> int:
        situations = self._situations(chunk.size, chunk.deal_stream, chunk.first)
        where = (
            self._trees[chunk.traverser], self._regret, self._average, situations, chunk.traverser, chunk.weight,
            chunk.action_stream, chunk.first,
        )  # fmt: skip
        if self.config.sampler == "outcome":
            return int(outcome_traversals(*where, EXPLORATION, chunk.learning, self._baseline))
        return int(external_traversals(*where, chunk.learning))

    def arrays(self) -> dict[str, Array]:
        """The tables, and the baseline if there is one; only training needs it."""
        baseline = {} if self.config.baseline == "none" else {"regret-baseline": self._baseline.values}
        return super().arrays() | baseline

    def _situations(self, count: int, stream: int, first: int) -> Situations:
        if isinstance(self.game, PokerGame):
            return poker_situations(self.abstraction, count, stream, first)
        return explicit_situations(count)

    def _begin(self) -> None:
        for table in (self._regret, self._average):
            if isinstance(self.game, PokerGame):
                start_poker(table, self.game, self._ranges)
            else:
                tree = self.game.explicit
                table[:] = tree_table(tree)[tree.legal]

    @cached_property
    def _ranges(self) -> RangeBuckets:
        """The bucket ranges of a poker game for its initial strategy."""
        return range_buckets(self.abstraction)

    def initial_policy(self) -> AbstractPolicy | TreePolicy | UniformPolicy:
        """The policy at the start of training."""
        if self.config.initial == UNIFORM:
            return UniformPolicy(self.game)
        if isinstance(self.game, PokerGame):
            return AbstractPolicy(self.game, self._ranges, poker_table(self.game), "initial")
        return TreePolicy(self.game, tree_table(self.game.explicit), "initial")

    def average_policy(self) -> Policy:
        """The average strategy, which converges to an equilibrium of the (abstract) game, without its rare actions."""
        policy = self._policy(self._average, "average")
        return ThresholdPolicy(policy, self.config.threshold) if self.config.threshold else policy

    def current_policy(self) -> AbstractPolicy | TreePolicy:
        """The newest strategy, by regret matching."""
        return self._policy(self._regret, "current")

    def _policy(self, table: Table, kind: str) -> AbstractPolicy | TreePolicy:
        """The policy of a table; one of a poker game has no copy of it and follows the solver."""
        if isinstance(self.game, PokerGame):
            policy: AbstractPolicy | TreePolicy = AbstractPolicy(self.game, self.abstraction, table, kind)
        else:
            policy = TreePolicy(self.game, _strategies(self.game.explicit, table), kind)
        policy.initial = None if self.config.initial == UNIFORM else self.initial_policy
        return policy


def _shaped_tree(tree: TraversalTree, player: int, shape: str) -> TraversalTree:
    """The tree with payoffs shaped for `player`; like all payoffs of a tree they are to player 0."""
    sign = 1 - 2 * player
    felt = [sign * shaped(sign * payoff, SHAPES.index(shape)) for payoff in tree.payoff.ravel().tolist()]
    return tree._replace(payoff=np.array(felt).reshape(tree.payoff.shape))


def _strategies(tree: ExplicitTree, flat: Table) -> Doubles:
    """Strategies [K, L] in proportion to the positive entries of a flat table, uniform where none is."""
    table = np.zeros(tree.legal.shape)
    table[tree.legal] = np.maximum(flat, 0)
    total = table.sum(1, keepdims=True)
    return np.where(total > 0, table / np.where(total > 0, total, 1), tree.uniform())


def _require_abstraction_of(game: PokerGame | TreeGame, abstraction: Buckets) -> None:
    if isinstance(game, TreeGame):
        raise GameError(f"Abstractions are for poker games, and '{game.name}' is not one.")
    if abstraction.rules != game.rules:
        raise GameError(f"An abstraction of {abstraction.rules.name} cannot be used for {game.name}.")
