"""The memories of a Deep CFR run, and the examples of its fits: infosets of histories, or hands of boards."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import comb
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import torch

from deepcfr.config import AdvantageFitConfig, CFRConfig, FitConfig, MemoryConfig, PublicChanceSampling, RunConfig
from deepcfr.config.records import Weighting
from deepcfr.games.base import Game, by_infoset
from deepcfr.games.poker import PokerGame, poker_game
from deepcfr.memory.reservoir import HandMemory, Memory, Store, Stored, bytes_per_hand, bytes_per_sample
from deepcfr.policies.network import BYTES_REMEMBERED
from deepcfr.policies.snapshots import iteration_weight, snapshot_weight
from deepcfr.ranges.boards import kept_bytes
from deepcfr.ranges.public_chance import RoundPart, visited_boards
from deepcfr.ranges.rounds import RoundTree, round_trees
from deepcfr.solvers.history_values import value_memory_bytes
from deepcfr.solvers.tabular import DISCOUNTED
from deepcfr.training.examples import Examples, InfosetExamples, Objective, Weights
from deepcfr.training.fit import advantage_loss, strategy_loss
from deepcfr.training.hand_examples import HandExamples, HandPart, hand_advantage_loss, hand_strategy_loss
from deepcfr.types import Samples


class Batch(NamedTuple):
    """Samples for one memory."""

    samples: Any  # `Samples` of infosets or `HandSamples`, as the memory holds
    stream: int  # of the reservoir's random slots
    round: int = 0  # of hands


@dataclass(frozen=True)
class TraversalResult:
    """The results of some of one player's traversals."""

    traversals: int  # histories from a deal, or boards
    nodes_touched: int
    evaluated: int  # infosets at which networks were asked for a strategy
    advantages: Sequence[Batch] = ()  # of the traverser
    strategies: Sequence[Batch] = ()  # of the opponent of sampled histories, or of the traverser on boards
    first_round: tuple[Samples, Samples] | None = None  # advantages and strategies, for the table of the first round
    first_values: npt.NDArray[np.float64] | None = None  # the same on boards: the traverser's values, [S, U]
    histories: Samples | None = None  # the steps that history values are learnt from


class Memories(Protocol):
    """The memories of a run: advantages of each player, and strategies."""

    def add(self, player: int, found: TraversalResult, /) -> None:
        """Add the samples of a player's traversals: its advantages to M_p and strategies to M_Pi (Algorithm 2)."""

    def named(self) -> Sequence[tuple[str, Stored]]:
        """Every memory with its name in a checkpoint."""

    def advantage_examples(self, player: int, weights: Weights, t: int, config: AdvantageFitConfig) -> Examples:
        """The training examples of a player's advantage network."""

    def strategy_examples(self, weights: Weights, t: int, config: FitConfig) -> Examples:
        """The training examples of the average network."""

    def compression(self, config: AdvantageFitConfig) -> float:
        """The compression of negative advantage targets; 0 is none."""

    def sizes(self) -> tuple[tuple[int, int], int]:
        """Samples of advantages of each player, and of strategies."""


@dataclass
class InfosetMemories:
    """One memory of advantages for each player and one of strategies, as in Algorithm 1; `suffix` is of their names."""

    game: Game
    config: MemoryConfig
    suffix: str = ""
    decisions: int = 1  # of each sample
    advantages: list[Memory] = field(init=False)
    strategies: Memory = field(init=False)

    def __post_init__(self) -> None:
        self.advantages = [self._memory(f"advantage-{player}", self.config.advantage_capacity) for player in (0, 1)]
        self.strategies = self._memory("strategy", self.config.strategy_capacity)

    def _memory(self, name: str, capacity: int) -> Memory:
        files = Path(self.config.files) / (name + self.suffix) if self.config.files else None
        return Memory(self.game.encoding, capacity, self.config.kind, self.game.device, files, self.decisions)

    def add(self, player: int, found: TraversalResult, /) -> None:
        """Add the samples of a player's traversals."""
        for batch in found.advantages:
            self.advantages[player].add(batch.samples, batch.stream)
        for batch in found.strategies:
            self.strategies.add(batch.samples, batch.stream)

    def named(self) -> list[tuple[str, Store]]:
        """Every memory with its name in a checkpoint."""
        memories = {"advantage-0": self.advantages[0], "advantage-1": self.advantages[1], "strategy": self.strategies}
        return [(name + self.suffix, memory) for name, memory in memories.items()]

    def memory(self, name: str) -> Memory:
        """A memory by its name, without the suffix."""
        return self.strategies if name == "strategy" else self.advantages[int(name[-1])]

    def advantage_examples(self, player: int, weights: Weights, t: int, config: AdvantageFitConfig) -> Examples:
        """The training examples of a player's advantage network."""
        return self._examples(f"advantage-{player}", weights, t, config)

    def strategy_examples(self, weights: Weights, t: int, config: FitConfig) -> Examples:
        """The training examples of the average network."""
        return self._examples("strategy", weights, t, config)

    def _examples(self, name: str, weights: Weights, t: int, config: FitConfig) -> Examples:
        return InfosetExamples(self.memory(name), objective_of(self.game, name, weights, t, config), config)

    def compression(self, config: AdvantageFitConfig) -> float:  # noqa: ARG002
        """Always 0: compressing noisy targets would bias their mean."""
        return 0.0

    def sizes(self) -> tuple[tuple[int, int], int]:
        """Samples of advantages of each player, and of strategies."""
        return (len(self.advantages[0]), len(self.advantages[1])), len(self.strategies)


def discounted_rates(t: int) -> tuple[float, float]:
    """The share of iteration t in a row of means, and the factor on the row's negative values before it is added.

    A row is a sum of Discounted CFR over its weight, which grows like the sum of a value that is always positive.
    """
    weight, shrink = 1.0, 1.0
    for i in range(2, t + 1):
        positive, negative, _ = DISCOUNTED.factors(i)
        weight, shrink = weight * positive + 1.0, negative / positive
    return 1.0 / weight, shrink


def objective_of(game: Game, memory: str, weights: Weights, t: int, config: FitConfig) -> Objective:
    """The objective of a fit to the infosets of a memory; the memory's name determines the kind of targets."""
    legal, rounds = game.encoding.legal, by_infoset(game, game.round)
    if memory == "strategy":
        return Objective(legal, strategy_loss, weights, t, rounds=rounds, scaled=False)
    in_pots = isinstance(config, AdvantageFitConfig) and config.pot_units
    return Objective(legal, advantage_loss, weights, t, poker_game(game).pot if in_pots else None, rounds)


@dataclass
class HandMemories:
    """A memory of advantages and one of strategies for each player and each round from `first_round` on.

    On a panel the hands are the same in every iteration, and a row is the mean over iterations, weighted as in Linear CFR.
    """

    game: PokerGame
    config: MemoryConfig
    rounds: list[RoundTree]
    first_round: int
    panel_rows: list[int] | None  # how many hands of each round a panel has, at most; None if there is no panel
    cfr: CFRConfig
    advantages: dict[tuple[int, int], HandMemory] = field(init=False, default_factory=dict)  # by player and round
    strategies: dict[tuple[int, int], HandMemory] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        for player, round_ in self._keys():
            shape = _shape(self.game, self.rounds[round_], player)
            kind, device, dtype = self.config.kind, self.game.device, _dtype(self.panel_rows is not None)
            rows = _capacities(self.config, self.panel_rows, round_)
            self.advantages[player, round_] = HandMemory(*shape, rows[0], kind, device, dtype)
            self.strategies[player, round_] = HandMemory(*shape, rows[1], kind, device, dtype)

    def add(self, player: int, found: TraversalResult, /) -> None:
        """Add the samples of a player's traversals."""
        for batch in found.advantages:
            self._add(self.advantages[player, batch.round], batch, self.cfr.weighting)
        for batch in found.strategies:
            self._add(self.strategies[player, batch.round], batch, self.cfr.of_averages)

    def _add(self, memory: HandMemory, batch: Batch, weighting: Weighting) -> None:
        if self.panel_rows is None:
            memory.add(batch.samples, batch.stream)
            return
        t = int(batch.samples.iteration[0])
        if weighting == "discounted":
            memory.average(batch.samples, *discounted_rates(t))
        else:
            memory.average(batch.samples, iteration_weight(t, weighting) / snapshot_weight(t, t, weighting))

    def _keys(self) -> Iterator[tuple[int, int]]:
        return _players_and_rounds(self.rounds, self.first_round)

    def named(self) -> list[tuple[str, Store]]:
        """Every memory with its name in a checkpoint."""
        return [
            (f"{kind}-{player}-round-{round_}", memory)
            for kind, memories in (("advantage", self.advantages), ("strategy", self.strategies))
            for (player, round_), memory in memories.items()
        ]

    def _part(self, player: int, round_: int, memory: HandMemory) -> HandPart:
        tree = self.rounds[round_]
        part = RoundPart.of(tree, player)
        device, legal = self.game.device, self.game.encoding.legal
        nodes = torch.from_numpy(tree.nodes[part.nodes]).to(device)
        place = part.edge_node * legal.shape[1] + tree.edge_action[part.edges]
        return HandPart(memory, nodes, legal[nodes], torch.from_numpy(place).to(device))

    def advantage_examples(self, player: int, weights: Weights, t: int, config: AdvantageFitConfig) -> Examples:
        """The training examples of a player's advantage network."""
        parts = [self._part(p, r, memory) for (p, r), memory in self.advantages.items() if p == player]
        return HandExamples(
            parts,
            hand_advantage_loss,
            weights,
            t,
            scaled=True,
            compress=self.compression(config),
        )

    def compression(self, config: AdvantageFitConfig) -> float:
        """The compression of negative advantage targets; only on a panel, because it would bias the mean of noisy ones."""
        return float(self.panel_rows is not None and config.units == "log")

    def strategy_examples(self, weights: Weights, t: int, config: FitConfig) -> Examples:  # noqa: ARG002
        """The training examples of the average network."""
        parts = [self._part(p, r, memory) for (p, r), memory in self.strategies.items()]
        return HandExamples(parts, hand_strategy_loss, weights, t, scaled=False)

    def sizes(self) -> tuple[tuple[int, int], int]:
        """Samples of advantages of each player, and of strategies."""
        mine = [sum(len(m) for (p, _), m in self.advantages.items() if p == player) for player in (0, 1)]
        return (mine[0], mine[1]), sum(map(len, self.strategies.values()))


def hand_memory_bytes(
    game: PokerGame, config: MemoryConfig, rounds: list[RoundTree], first_round: int, panel_rows: list[int] | None
) -> int:
    """Bytes that `HandMemories` take when they are full; arguments as there."""
    dtype = _dtype(panel_rows is not None)
    return sum(
        bytes_per_hand(*_shape(game, rounds[round_], player), dtype) * sum(_capacities(config, panel_rows, round_))
        for player, round_ in _players_and_rounds(rounds, first_round)
    )


def panel_rows(game: PokerGame, settings: PublicChanceSampling) -> list[int] | None:
    """Upper bound of the hands of each round of a panel; None without a panel."""
    if not settings.panel:
        return None
    visited = visited_boards(game.rules, settings, merge=game.suits == "canonical")
    return [boards * (settings.samples + 1) for boards in visited]  # + 1 for rounding on each board


def board_bytes(game: PokerGame, settings: PublicChanceSampling, rounds: list[RoundTree]) -> int:
    """Upper bound of the bytes for a game's boards and the values kept of them in public-chance traversals."""
    rules, merge = game.rules, game.suits == "canonical"
    total = kept_bytes(rules, merge=merge)
    if not settings.panel:
        return total
    visited = visited_boards(rules, settings, merge=merge)
    for round_ in range(1, rules.num_rounds):
        hands = comb(rules.num_cards - sum(rules.board_cards[: round_ + 1]), rules.hole_cards)
        total += BYTES_REMEMBERED * visited[round_] * rounds[round_].num_edges * hands
    return total


def drawn_bytes(game: PokerGame, rounds: list[RoundTree]) -> int:
    """Bytes of the working arrays of a traversal that draws its boards: reach, strategies and values, for one thread."""
    rules, total = game.rules, 0
    for round_, tree in enumerate(rounds):
        hands = comb(rules.num_cards - sum(rules.board_cards[: round_ + 1]), rules.hole_cards)
        total += 8 * hands * (tree.num_slots + sum(tree.num_rows) + 2 * tree.num_edges)
    return total


def _players_and_rounds(rounds: list[RoundTree], first_round: int) -> Iterator[tuple[int, int]]:
    for round_ in range(first_round, len(rounds)):
        for player in (0, 1):
            if (rounds[round_].actor == player).any():
                yield player, round_


def _shape(game: PokerGame, tree: RoundTree, player: int) -> tuple[int, int, int]:
    """Cards, edges and nodes of a row."""
    part = RoundPart.of(tree, player)
    return sum(game.card_groups), len(part.edges), len(part.nodes)


def _capacities(config: MemoryConfig, panel_rows: list[int] | None, round_: int) -> tuple[int, int]:
    """Rows for advantages and for strategies; a panel needs space for exactly its hands."""
    if panel_rows is not None:
        return panel_rows[round_], panel_rows[round_]
    return config.advantage_capacity, config.strategy_capacity


def _dtype(panel: bool) -> torch.dtype:
    return torch.float32 if panel else torch.float16  # sums keep more digits


def without_memories(config: RunConfig) -> RunConfig:
    """The configuration with memories of one row, for a run that collects nothing, so nothing large is allocated."""
    memory = replace(config.memory, advantage_capacity=1, strategy_capacity=1, files="")
    nfsp = replace(config.nfsp, replay_capacity=1, reservoir_capacity=1)
    return replace(config, memory=memory, nfsp=nfsp, values=replace(config.values, capacity=1))


def memory_bytes(game: Game, config: RunConfig) -> int:
    """Bytes that the memories of a run of Deep CFR take when they are full, of infosets or of hands."""
    memory, sampling = config.memory, config.sampling
    if sampling.kind == "public-chance" and sampling.panel:
        poker, first = poker_game(game), 1 if config.cfr.first_round == "table" else 0
        return hand_memory_bytes(poker, memory, round_trees(poker), first, panel_rows(poker, sampling))
    decisions = sampling.decisions if sampling.kind == "public-chance" else 1
    own = bytes_per_sample(game.encoding, decisions) * (2 * memory.advantage_capacity + memory.strategy_capacity)
    return own + value_memory_bytes(game, config)
