"""Monte Carlo CFR on tables (Lanctot et al. 2009), for abstract poker games and for explicit trees.

One iteration t is K traversals for player 0, then K for player 1; regrets take effect at once. During a player's K
traversals the opponent's strategy is fixed, so early progress depends on iterations as much as on traversals: many
iterations of few traversals are better than few of many, until starting threads costs more than it gains. With linear
weighting (Brown and Sandholm 2019) regrets and averages of iteration t have weight t.

**Rounding.** Weighted sums are not rescaled: dividing all by t^2 would change no strategy, and they stay far below the
largest float32. An addition to a float32 sum S is rounded to a multiple of about 1e-7 S, and the n-th addition to an
entry is about 1/n of its sum, so after about ten million visits a row no longer changes. Games with so few infosets
that this matters have room for float64.

**Threads.** Chunks of traversals for one player run in all threads at once and add to the shared tables without locks.
Two races are tolerated. Of two additions to one entry at the same moment, one can be lost; and a row can be read while
another thread has written a part of it. Strategies are computed from numbers that are read once, so they always sum to
1, and aligned numbers of 4 and 8 bytes are never torn. On Kuhn and Leduc, the games where threads collide most often,
one thread and two differ by no more than noise over eight seeds (`experiments/results/races.json`). A run with one
thread is deterministic.

**Improvements of Lin** (2024, "4 Improvements to Monte Carlo Counterfactual Regret Minimization for Texas Heads Up No
Limit Poker"): threads are above, and a floor under strategies, a shape of rewards and initial strategies are settings
(sections 6.2, 6.3 and 7). A shape of rewards makes a game that is not zero-sum, in which each player has payoffs of its
own; regrets and averages are of that game, and every evaluation of the policies is of the real one. See
`docs/no-limit.md`.

Poker with a few bet sizes (section 10) needs no list of its nodes: its tables and traversals are those of
`sample.bet_size_tables`. Without regrets they are saved in a compact form.
"""

from __future__ import annotations

from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np

from deepcfr.buckets.buckets import lossless, round_classes
from deepcfr.buckets.texture import TEXTURE, Buckets, TextureBuckets
from deepcfr.config import RunConfig, TabularConfig
from deepcfr.core.errors import ConfigError, GameError
from deepcfr.core.parallel import Workers
from deepcfr.core.rng import key
from deepcfr.core.types import Cards, Doubles, Floats, require_like
from deepcfr.game.bet_size_game import BetSizePoker
from deepcfr.game.explicit import ExplicitTree
from deepcfr.game.poker import PokerGame
from deepcfr.game.rules import PokerRules
from deepcfr.game.tree_game import TreeGame
from deepcfr.policy.base import Policy, UniformPolicy
from deepcfr.policy.styles import ThresholdPolicy
from deepcfr.policy.tables import AbstractPolicy, TreePolicy
from deepcfr.sample.bet_size_tables import BetSizeLayout, Run, bet_size_traversals, compact, expand, hand_layout
from deepcfr.sample.initial import RangeBuckets, hand_table, range_buckets, start_hands
from deepcfr.sample.mccfr import (
    SHAPES,
    Decay,
    external_traversals,
    outcome_traversals,
    shaped,
)
from deepcfr.sample.traversal_tree import (
    Situations,
    TraversalTree,
    explicit_situations,
    explicit_traversal_tree,
    poker_situations,
    poker_traversal_tree,
)
from deepcfr.solve.base import PLAYERS, Array, SavedState, TabularSolver

EXPLORATION = 0.6  # share of uniform play in the traverser's policy in outcome sampling (Lanctot et al. 2009)
_FLOOR_SLOPE, _FLOOR_END = -2.5e-7, 40_000  # change of a floor after every game, and its last game (Lin 2024, 6.2)
UNIFORM: Literal["uniform"] = "uniform"  # the strategy of tables of zeros
_MOST_CHUNK = 4_096  # traversals that a thread runs at a time
_COMPACT = "average-compact"

AnyGame = PokerGame | TreeGame | BetSizePoker


def _entries(game: AnyGame, counts: tuple[int, ...] | None) -> int:
    if isinstance(game, TreeGame):
        return int(game.explicit.infoset_actions.sum())
    deck = game.source.deck
    if counts is None:
        counts = tuple(round_classes(deck, round_) for round_ in range(deck.num_rounds))
    return hand_layout(game, counts).size


class Chunk(NamedTuple):
    """Some of a player's traversals in an iteration, which one thread runs."""

    first: int  # number of the first traversal
    size: int  # how many
    deal_stream: int
    action_stream: np.uint64
    traverser: int
    weight: float  # of regrets and strategies
    decay: Decay


class MCCFR(TabularSolver):
    """A Monte Carlo solver: iterate over `iterations()` to advance it.

    `abstraction` groups the hands of a poker game into buckets; None is what the settings name, texture or lossless.
    Every random stream is derived from (seed, purpose, iteration, player), so there is no generator state to save.
    Raises ConfigError for settings that Monte Carlo CFR of the game does not offer and for less than one thread, and
    GameError for an abstraction of another game.
    """

    game: AnyGame
    name = "mccfr"

    def __init__(self, game: AnyGame, config: RunConfig, abstraction: Buckets | None = None) -> None:
        self.game, self.config, self.settings = game, config, config.solve
        if isinstance(game, BetSizePoker) and self.settings.sampler != "external":
            raise ConfigError(
                f"{game.name} is solved with external sampling only, but the sampler is '{self.settings.sampler}'."
            )
        self.tables: _TreeTables | _HandTables
        if isinstance(game, TreeGame):
            self.tables = _TreeTables(game, self.settings, abstraction)
        else:
            self.tables = _HandTables(game, self.settings, abstraction)
        self._trees = _trees(game, self.tables, self.settings)
        self.workers = Workers(config.runtime.threads)
        # pages of zeros take no memory until a traversal writes to them
        entries = self.tables.entries
        self._regret: Floats = np.zeros(entries, self.settings.precision)
        self._average: Floats = np.zeros(entries, self.settings.precision)
        self._played: Floats | Cards = self._average

    def _iterate(self) -> int:
        if self.iteration == 0 and self.settings.initial != UNIFORM:
            assert isinstance(self.tables, _HandTables)
            for table in (self._regret, self._average):
                self.tables.start(table)
        return sum(self._traverse(self.iteration + 1, player) for player in PLAYERS)

    def _traverse(self, t: int, traverser: int) -> int:
        """Run iteration t's traversals for one player; returns the nodes touched, histories and deals."""
        deal_stream = key(self.config.seed, "deal", t, traverser)
        action_stream = np.uint64(key(self.config.seed, "action", t, traverser))
        weight = float(t) if self.settings.weighting == "linear" else 1.0
        total, decay = self.settings.traversals, self._decay(t)
        size = max(1, min(_MOST_CHUNK, -(-total // self.workers.count)))
        chunks = (
            Chunk(first, min(size, total - first), deal_stream, action_stream, traverser, weight, decay)
            for first in range(0, total, size)
        )
        return sum(self.workers.map(self._run, chunks))

    def _run(self, chunk: Chunk) -> int:
        """Run the traversals of a chunk; returns the nodes touched, histories and deals."""
        config = self.settings
        situations = self.tables.situations(chunk.size, chunk.deal_stream, chunk.first)
        tables = (self._regret, self._average, situations)
        if not self._trees:
            assert isinstance(self.game, BetSizePoker)
            shape = SHAPES.index(config.reward_shape)
            unit = float(self.game.rules.unit_chips)
            run = Run(chunk.traverser, chunk.weight, chunk.action_stream, chunk.first, unit, shape)
            return int(bet_size_traversals(self.game.bets, self._bet_size_layout, *tables, run, chunk.decay))
        where = (
            self._trees[chunk.traverser], *tables, chunk.traverser, chunk.weight, chunk.action_stream, chunk.first
        )  # fmt: skip
        if config.sampler == "outcome":
            return int(outcome_traversals(*where, EXPLORATION, chunk.decay))
        return int(external_traversals(*where, chunk.decay))

    def _decay(self, t: int) -> Decay:
        """The floor under strategies in iteration t."""
        config = self.settings
        return Decay(
            start=config.exploration_start,
            slope=_FLOOR_SLOPE,
            end=_FLOOR_END if config.exploration_start > 0 else 0,
            games=(t - 1) * config.traversals,
        )

    def describe(self) -> str:
        settings = self.settings
        return (
            f"Monte Carlo CFR on {self.game.name}: {self.config.iterations:,} iterations of {2 * settings.traversals:,} "
            f"traversals, {settings.sampler} sampling, abstraction {settings.abstraction}, seed {self.config.seed}"
        )

    def arrays(self) -> dict[str, Array]:
        """The tables, both flat and of `solve.precision`."""
        return {"regret": self._regret, "average": self._average}

    def _saved_arrays(self, memories: bool) -> dict[str, Array]:
        """Without `memories` only the average strategy, in its compact form if the tables have one."""
        if memories or self._trees:
            return super()._saved_arrays(memories)
        return {_COMPACT: compact(self._bet_size_layout, self._played)}

    @property
    def _bet_size_layout(self) -> BetSizeLayout:
        assert isinstance(self.tables, _HandTables)
        assert isinstance(self.tables.layout, BetSizeLayout)
        return self.tables.layout

    def restore(self, saved: SavedState, memories: bool) -> None:
        """Restore a saved state; training cannot resume from the compact form.

        Raises CheckpointError if the compact form is damaged.
        """
        if saved.facts["memories"] or self._trees:
            super().restore(saved, memories)
            return
        self._restore_facts(saved)
        found = saved.array(_COMPACT)
        require_like(_COMPACT, found, np.empty(found.size, np.uint8))
        self._played = expand(np.array(found), self.tables.entries)

    def state_bytes(self, memories: bool) -> int:
        """Upper bound on the bytes of a saved state: an entry of the compact form takes at most one byte."""
        return super().state_bytes(memories) if memories or self._trees else self.tables.entries

    @staticmethod
    def memory_bytes(game: AnyGame, config: RunConfig, counts: tuple[int, ...] | None = None) -> int:
        """Bytes of a solver's regrets and averages, computed before they are allocated.

        `counts` are the buckets of each round of a poker game; None stands for the lossless abstraction, which is not
        built either. Of a game with a few bet sizes it is an upper bound: pages of rows that never occur take no
        memory.
        """
        return 2 * _entries(game, counts) * np.dtype(config.solve.precision).itemsize

    def initial_policy(self) -> Policy:
        """The policy at the start of training."""
        if self.settings.initial == UNIFORM:
            return UniformPolicy(self.game)
        assert isinstance(self.tables, _HandTables)
        return self.tables.initial_policy()

    def average_policy(self) -> Policy:
        """The average strategy, which converges to an equilibrium of the (abstract) game, without its rare actions."""
        policy = self._policy(self._played, "average")
        return ThresholdPolicy(policy, threshold) if (threshold := self.config.evaluation.threshold) else policy

    def current_policy(self) -> Policy:
        return self._policy(self._regret, "current")

    def _policy(self, table: Floats | Cards, kind: str) -> Policy:
        """The policy of a table; one of a poker game has no copy of it and follows the solver."""
        policy = self.tables.policy(table, kind)
        policy.initial = None if self.settings.initial == UNIFORM else self.initial_policy
        return policy


class _TreeTables:
    """Tables over the infosets of a game whose histories are listed."""

    def __init__(self, game: TreeGame, config: TabularConfig, abstraction: Buckets | None) -> None:
        if abstraction is not None or config.abstraction != "lossless":
            raise GameError(f"Abstractions are for poker games, and '{game.name}' is not one.")
        if config.initial != UNIFORM:
            raise GameError(f"'{game.name}' has no hands with win rates: set solve.initial to uniform.")
        self.game, self.entries = game, _entries(game, None)

    def situations(self, count: int, stream: int, first: int) -> Situations:  # noqa: ARG002
        return explicit_situations(count)

    def policy(self, table: Floats | Cards, kind: str) -> Policy:
        return TreePolicy(self.game, _strategies(self.game.explicit, table), kind)


class _HandTables:
    """Tables over buckets of hands."""

    def __init__(self, game: PokerGame | BetSizePoker, config: TabularConfig, abstraction: Buckets | None) -> None:
        self.game, self.buckets = game, abstraction or built_in_buckets(game.source.deck, config.abstraction)
        if not isinstance(game, BetSizePoker) and self.buckets.rules != game.rules:
            raise GameError(f"An abstraction of {self.buckets.rules.name} cannot be used for {game.name}.")
        self.layout = hand_layout(game, self.buckets.counts)
        self.entries = self.layout.size

    def situations(self, count: int, stream: int, first: int) -> Situations:
        return poker_situations(self.buckets, count, stream, first)

    @cached_property
    def _ranges(self) -> RangeBuckets:
        """Buckets of the initial strategy."""
        return range_buckets(self.buckets)

    def start(self, table: Floats) -> None:
        """Fill a table with the initial strategy."""
        start_hands(table, self.game, self._ranges)

    def initial_policy(self) -> Policy:
        return AbstractPolicy(self.game, self._ranges, hand_table(self.game), "initial")

    def policy(self, table: Floats | Cards, kind: str) -> Policy:
        return AbstractPolicy(self.game, self.buckets, table, kind)


def _trees(
    game: AnyGame, tables: _TreeTables | _HandTables, config: TabularConfig
) -> tuple[TraversalTree, TraversalTree] | None:
    """The listed tree as each player is paid in it; None for poker with a few bet sizes, whose nodes are computed."""
    if isinstance(tables, _TreeTables):
        tree = explicit_traversal_tree(tables.game.explicit)
    elif isinstance(tables.layout, BetSizeLayout):
        return None
    else:
        assert isinstance(game, PokerGame)
        tree = poker_traversal_tree(game, tables.layout)
    if config.reward_shape != SHAPES[0]:
        return _shaped_tree(tree, 0, config.reward_shape), _shaped_tree(tree, 1, config.reward_shape)
    return tree, tree


def _shaped_tree(tree: TraversalTree, player: int, shape: str) -> TraversalTree:
    """The tree with payoffs shaped for `player`; like all payoffs of a tree they are to player 0."""
    sign = 1 - 2 * player
    rewards = [sign * shaped(sign * payoff, SHAPES.index(shape)) for payoff in tree.payoff.ravel().tolist()]
    return tree._replace(payoff=np.array(rewards).reshape(tree.payoff.shape))


def _strategies(tree: ExplicitTree, flat: Floats | Cards) -> Doubles:
    """Strategies [K, L] in proportion to the positive entries of a flat table, uniform where none is."""
    table = np.zeros(tree.legal.shape)
    table[tree.legal] = np.maximum(flat, 0)
    total = table.sum(1, keepdims=True)
    return np.where(total > 0, table / np.where(total > 0, total, 1), tree.uniform())


def built_in_buckets(deck: PokerRules, abstraction: str) -> Buckets:
    """The built-in buckets of a poker game: texture or lossless.

    Raises ConfigError for another abstraction, and for a game with too many hands to be lossless.
    """
    if abstraction == TEXTURE:
        return TextureBuckets(deck)
    if abstraction != "lossless":
        raise ConfigError(f"The abstraction '{abstraction}' of {deck.name} is in a folder, but was not loaded from it.")
    try:
        return lossless(deck)
    except GameError as error:
        reason = " ".join(error.problems).removesuffix(": ask for fewer buckets instead.")
        raise ConfigError(f"{reason}: use --abstraction {TEXTURE} or a folder.") from error
