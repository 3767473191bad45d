"""The memories of a run of Deep CFR, and the examples of its fits: infosets, or all hands of fixed boards."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import comb
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from deepcfr.boards.boards import kept_bytes
from deepcfr.boards.public_chance import RoundPart, visited_boards
from deepcfr.boards.rounds import RoundTree, round_trees
from deepcfr.config import AdvantageFitConfig, CFRConfig, FitConfig, MemoryConfig, RunConfig, SamplingConfig
from deepcfr.config.records import Weighting
from deepcfr.core.types import Samples
from deepcfr.game.base import Game, by_infoset
from deepcfr.game.poker import PokerGame, poker_game
from deepcfr.network.examples import InfosetExamples, Objective, Weights
from deepcfr.network.fit import advantage_loss, strategy_loss
from deepcfr.network.hand_examples import HandExamples, HandPart, hand_advantage_loss, hand_strategy_loss
from deepcfr.network.memory import HandMemory, Memory, Store, bytes_per_hand, bytes_per_sample
from deepcfr.solve.base import PLAYERS
from deepcfr.solve.full_width import DISCOUNTED
from deepcfr.solve.snapshots import iteration_weight, snapshot_weight

_BYTES_REMEMBERED = 4  # of `RememberedStrategies`, for each edge and canonical hand


class Batch(NamedTuple):
    """Samples for one memory."""

    samples: Any  # `Samples` of infosets or `HandSamples`, as the memory holds
    stream: int  # of the reservoir's random nodes
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


class InfosetMemories:
    """A reservoir of advantages for each player and one of strategies, as in Algorithm 1; a sample has `decisions`."""

    def __init__(self, game: Game, config: MemoryConfig, decisions: int = 1) -> None:
        self._game = game
        shape = game.encoding, config.capacity, config.kind, game.device, decisions
        self.advantages = [Memory(*shape) for _ in PLAYERS]
        self.strategies = Memory(*shape)

    @property
    def stores(self) -> dict[str, Store]:
        """Every memory by its name in a checkpoint."""
        return {"advantage-0": self.advantages[0], "advantage-1": self.advantages[1], "strategy": self.strategies}

    def add(self, player: int, found: TraversalResult) -> None:
        """Add the samples of a player's traversals: its advantages to M_p and strategies to M_Pi (Algorithm 2)."""
        for batch in found.advantages:
            self.advantages[player].add(batch.samples, batch.stream)
        for batch in found.strategies:
            self.strategies.add(batch.samples, batch.stream)

    def advantage_examples(self, player: int, weights: Weights, t: int, config: AdvantageFitConfig) -> InfosetExamples:
        """The training examples of a player's advantage network."""
        unit = poker_game(self._game).pot if config.units == "pots" else None
        objective = Objective(self._game.encoding.legal, advantage_loss, weights, t, unit, self._rounds)
        return InfosetExamples(self.advantages[player], objective, config)

    def strategy_examples(self, weights: Weights, t: int, config: FitConfig) -> InfosetExamples:
        """The training examples of the average network."""
        legal = self._game.encoding.legal
        objective = Objective(legal, strategy_loss, weights, t, rounds=self._rounds, scaled=False)
        return InfosetExamples(self.strategies, objective, config)

    @property
    def _rounds(self) -> torch.Tensor:
        return by_infoset(self._game, self._game.round)

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


class HandMemories:
    """For each player and round from `first_round` on, means of advantages and of strategies of hands on fixed boards.

    The hands are the same in every iteration, at most `rows` in each round. A row is the mean over iterations, with the
    weights of `cfr`.
    """

    def __init__(
        self, game: PokerGame, rounds: list[RoundTree], first_round: int, rows: Sequence[int], cfr: CFRConfig
    ) -> None:
        self._game, self._rounds, self._cfr = game, rounds, cfr
        self.advantages, self.strategies = (
            {
                (player, round_): HandMemory(*_shape(game, rounds[round_], player), rows[round_], game.device)
                for player, round_ in _players_and_rounds(rounds, first_round)
            }
            for _ in range(2)
        )

    @property
    def stores(self) -> dict[str, Store]:
        """Every memory by its name in a checkpoint."""
        return {
            f"{kind}-{player}-round-{round_}": memory
            for kind, memories in (("advantage", self.advantages), ("strategy", self.strategies))
            for (player, round_), memory in memories.items()
        }

    def add(self, player: int, found: TraversalResult) -> None:
        """Add the samples of a player's traversals."""
        for memories, batches, weighting in (
            (self.advantages, found.advantages, self._cfr.weighting),
            (self.strategies, found.strategies, self._cfr.of_averages),
        ):
            for batch in batches:
                rates = _rates(int(batch.samples.iteration[0]), weighting)
                memories[player, batch.round].average(batch.samples, *rates)

    def _part(self, player: int, round_: int, memory: HandMemory) -> HandPart:
        tree = self._rounds[round_]
        part = RoundPart.of(tree, player)
        device, legal = self._game.device, self._game.encoding.legal
        nodes = torch.from_numpy(tree.nodes[part.nodes]).to(device)
        place = part.edge_node * legal.shape[1] + tree.edge_action[part.edges]
        return HandPart(memory, nodes, legal[nodes], torch.from_numpy(place).to(device))

    def advantage_examples(self, player: int, weights: Weights, t: int, config: AdvantageFitConfig) -> HandExamples:
        """The training examples of a player's advantage network."""
        parts = [self._part(p, r, memory) for (p, r), memory in self.advantages.items() if p == player]
        compress = float(config.units == "log")
        return HandExamples(parts, hand_advantage_loss, weights, t, scaled=True, compress=compress)

    def strategy_examples(self, weights: Weights, t: int, config: FitConfig) -> HandExamples:  # noqa: ARG002
        """The training examples of the average network."""
        parts = [self._part(p, r, memory) for (p, r), memory in self.strategies.items()]
        return HandExamples(parts, hand_strategy_loss, weights, t, scaled=False)

    def sizes(self) -> tuple[tuple[int, int], int]:
        """Samples of advantages of each player, and of strategies."""
        mine = [sum(len(m) for (p, _), m in self.advantages.items() if p == player) for player in PLAYERS]
        return (mine[0], mine[1]), sum(map(len, self.strategies.values()))


Memories = InfosetMemories | HandMemories
"""M_p of advantages for each player p, and M_Pi of strategies."""


def new_memories(game: Game, config: RunConfig) -> Memories:
    """The empty memories of a run."""
    sampling = config.sampling
    if sampling.kind != "public-chance":
        return InfosetMemories(game, config.memory)
    if not sampling.on_panel:
        return InfosetMemories(game, config.memory, sampling.decisions)
    poker, first_round = poker_game(game), int(config.cfr.first_round == "table")
    return HandMemories(poker, round_trees(poker), first_round, panel_rows(poker, sampling), config.cfr)


def memory_bytes(game: Game, config: RunConfig) -> int:
    """Bytes of the memories of a run when they are full, of infosets or of hands."""
    sampling = config.sampling
    if sampling.on_panel:
        poker, first_round = poker_game(game), int(config.cfr.first_round == "table")
        trees, rows = round_trees(poker), panel_rows(poker, sampling)
        keys = _players_and_rounds(trees, first_round)
        return sum(2 * rows[r] * bytes_per_hand(*_shape(poker, trees[r], p)) for p, r in keys)
    decisions = sampling.decisions if sampling.kind == "public-chance" else 1
    return bytes_per_sample(game.encoding, decisions) * 3 * config.memory.capacity


def without_memories(config: RunConfig) -> RunConfig:
    """The configuration with memories of one row, for a run that collects nothing, so nothing large is allocated."""
    memory = replace(config.memory, capacity=1)
    nfsp = replace(config.nfsp, replay_capacity=1, reservoir_capacity=1)
    return replace(config, memory=memory, nfsp=nfsp, values=replace(config.values, capacity=1))


def panel_rows(game: PokerGame, settings: SamplingConfig) -> list[int]:
    """Upper bound of the hands of each round of a panel."""
    visited = visited_boards(game.rules, settings, merge=game.suits == "canonical")
    return [boards * (settings.samples + 1) for boards in visited]  # + 1 for rounding on each board


def board_bytes(game: PokerGame, settings: SamplingConfig, rounds: list[RoundTree]) -> int:
    """Upper bound of the bytes for a game's boards and the values kept of them in public-chance traversals."""
    rules, merge = game.rules, game.suits == "canonical"
    total = kept_bytes(rules, merge=merge)
    if not settings.on_panel:
        return total
    visited = visited_boards(rules, settings, merge=merge)
    for round_ in range(1, rules.num_rounds):
        hands = comb(rules.num_cards - sum(rules.board_cards[: round_ + 1]), rules.hole_cards)
        total += _BYTES_REMEMBERED * visited[round_] * rounds[round_].num_edges * hands
    return total


def drawn_bytes(game: PokerGame, rounds: list[RoundTree]) -> int:
    """Bytes of the working arrays of a traversal that draws its boards: reach, strategies and values, for one thread."""
    rules, total = game.rules, 0
    for round_, tree in enumerate(rounds):
        hands = comb(rules.num_cards - sum(rules.board_cards[: round_ + 1]), rules.hole_cards)
        total += 8 * hands * (tree.num_nodes + sum(tree.num_rows) + 2 * tree.num_edges)
    return total


def _rates(t: int, weighting: Weighting) -> tuple[float, float]:
    """The share of iteration t in a mean over iterations, and the factor on negative values before it is added."""
    if weighting == "discounted":
        return discounted_rates(t)
    return iteration_weight(t, weighting) / snapshot_weight(t, t, weighting), 1.0


def _players_and_rounds(rounds: list[RoundTree], first_round: int) -> Iterator[tuple[int, int]]:
    for round_ in range(first_round, len(rounds)):
        for player in PLAYERS:
            if (rounds[round_].actor == player).any():
                yield player, round_


def _shape(game: PokerGame, tree: RoundTree, player: int) -> tuple[int, int, int]:
    """Cards, edges and nodes of a row."""
    part = RoundPart.of(tree, player)
    return sum(game.card_groups), len(part.edges), len(part.nodes)
