"""Traversals of histories (Deep CFR, Algorithm 2), and the logical shards of memories that keep their samples.

A run has S shards, by configuration. Shard s runs the s-th part of every iteration's traversals and keeps their
samples in the s-th part of every memory. The samples depend on the number of the shard, and not on its process or on the
number of processes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import torch

from deepcfr.config import HistorySampling, MemoryConfig, RunConfig
from deepcfr.games.base import Deals, Game, card_codes
from deepcfr.games.poker import poker_game
from deepcfr.memory.reservoir import Store
from deepcfr.parallel import Workers
from deepcfr.policies.first_round import FirstRound
from deepcfr.policies.network import regret_matching
from deepcfr.rng import key
from deepcfr.sampling.control_variate import BoardControlVariate
from deepcfr.sampling.external import Strategy, traverse
from deepcfr.sampling.outcome import traverse_outcomes
from deepcfr.solvers.collector import Current, Fitting
from deepcfr.solvers.memories import Batch, Found, InfosetMemories, Memories
from deepcfr.solvers.shards import ShardedMemories, ShardFits
from deepcfr.training.fit import fit
from deepcfr.training.networks import SplitNetwork

PLAYERS = (0, 1)


class HistoryShards:
    """Some of a run's shards, by their `numbers`: the traversals that fill them, and their memories."""

    def __init__(self, game: Game, config: RunConfig, numbers: Sequence[int], workers: Workers) -> None:
        self.game, self.config, self.workers = game, config, workers
        self.memories = {
            number: InfosetMemories(game, part_of_memory(config.memory, number), shard_suffix(config, number))
            for number in numbers
        }

    def traverse(self, t: int, traverser: int, current: Current) -> Iterator[Found]:
        """Run these shards' part of iteration t, chunk by chunk in the order of traversals (Algorithm 2)."""
        traversals = _Traversals(self.game, self.config, t, traverser, current)
        chunks = [(number, *chunk) for number in self.memories for chunk in chunks_of(self.config, number)]
        return self.workers.map(lambda chunk: traversals.run(*chunk), chunks)

    def add(self, player: int, found: Found) -> None:
        """Add the samples of a chunk to the memories of its shard."""
        self.memories[found.shard].add(player, found)

    def named(self) -> list[tuple[str, Store]]:
        """Every memory with its name in a checkpoint."""
        return [named for memories in self.memories.values() for named in memories.named()]


class HistoryCollector:
    """All shards of a run in this process."""

    def __init__(self, game: Game, config: RunConfig, workers: Workers) -> None:
        self._shards = shards = HistoryShards(game, config, range(config.memory.shards), workers)
        self.fit: Fitting = fit
        self.side_by_side = 0
        self.memories: Memories = shards.memories[0]
        if config.memory.shards > 1:
            self.memories = ShardedMemories(game, ShardFits(game, shards.memories), shards.named, shards.add)

    def traverse(self, t: int, traverser: int, current: Current) -> Iterator[Found]:
        """Iteration t's traversals for one player, shard by shard."""
        return self._shards.traverse(t, traverser, current)

    def changed(self, player: int) -> None:
        """Does nothing: no strategies are cached."""

    def close(self) -> None:
        """Does nothing: there are no other processes."""


def part_of_memory(config: MemoryConfig, number: int) -> MemoryConfig:
    """The rows of one shard: as many as of the others, or one more."""
    rows = [
        capacity // config.shards + (number < capacity % config.shards)
        for capacity in (config.advantage_capacity, config.strategy_capacity)
    ]
    return replace(config, advantage_capacity=rows[0], strategy_capacity=rows[1], shards=1)


def shard_suffix(config: RunConfig, number: int) -> str:
    """The suffix of the names of a shard's memories in a checkpoint."""
    return f"-shard-{number}" if config.memory.shards > 1 else ""


def history_sampling(config: RunConfig) -> HistorySampling:
    """The sampling settings of a run that samples histories."""
    assert config.sampling.kind != "public-chance"
    return config.sampling


def chunks_of(config: RunConfig, number: int) -> Iterator[tuple[int, int]]:
    """The chunks of a shard's traversals: for each, the first number in the iteration and the count."""
    sampling, shards = history_sampling(config), config.memory.shards
    total, chunk = sampling.traversals, sampling.chunk
    end = total * (number + 1) // shards
    for first in range(total * number // shards, end, chunk):
        yield first, min(chunk, end - first)


class _Traversals:
    """One player's traversals in one iteration; any part of them can be run, in any order and by any thread."""

    def __init__(self, game: Game, config: RunConfig, t: int, traverser: int, current: Current) -> None:
        self._game, self._config, self._t, self._traverser, self._current = game, config, t, traverser, current
        self._sampling = sampling = history_sampling(config)
        corrected = sampling.kind == "external" and sampling.chance_control_variate
        self._control_variate = BoardControlVariate(poker_game(game), self.stream("luck")) if corrected else None

    def stream(self, purpose: str, *more: int) -> int:
        """The random stream for one purpose in these traversals."""
        return key(self._config.seed, purpose, self._t, self._traverser, *more)

    def run(self, shard: int, first: int, count: int) -> Found:
        """A shard's `count` traversals from `first` on; samples of the first round are apart if a table plays it."""
        game, sampling, current = self._game, self._sampling, self._current
        deals = game.deal(count, self.stream("deal"), first)
        mine, theirs = (self._strategy(current.matching.networks[player], player, deals) for player in PLAYERS)
        if sampling.kind == "external":
            off = None
            if self._control_variate:
                cards = poker_game(game).deal_cards(count, self.stream("deal"), first)
                off = self._control_variate.of_histories(cards, np.arange(first, first + count), game.device)
            found = traverse(game, deals, self._traverser, (mine, theirs), self.stream("action"), self._t, off)
        else:
            found = traverse_outcomes(
                game, deals, self._traverser, (mine, theirs), sampling.exploration, self.stream("action"), self._t
            )
        advantages, strategies, for_table, decisions = found.advantages, found.strategies, None, found.decisions
        if current.first_round is not None:
            early = [game.round[samples.infosets.node.long()] == 0 for samples in (advantages, strategies)]
            for_table = (advantages[early[0]], strategies[early[1]])
            advantages, strategies = advantages[~early[0]], strategies[~early[1]]
            decisions = decisions[1:]  # a table is not a network
        return Found(
            traversals=count,
            nodes_touched=found.nodes_touched,
            evaluated=int(decisions.sum()),
            advantages=[Batch(advantages, self.stream("advantage slot", first))],
            strategies=[Batch(strategies, self.stream("strategy slot", first))],
            shard=shard,
            first_round=for_table,
        )

    def _strategy(self, network: SplitNetwork, player: int, deals: Deals) -> Strategy:
        """sigma^t of one player on some deals: its view in each round is encoded once, before the traversals."""
        game, fallback = self._game, self._config.cfr.fallback
        with torch.no_grad():
            rounds = deals.views.shape[2]
            views = deals.views[:, player].flatten(0, 1)
            # many deals share a hand before the board comes, so distinct views are encoded once
            _, view = torch.unique(card_codes(views, game.encoding), return_inverse=True)
            example = torch.empty(int(view.max()) + 1, dtype=torch.int64, device=view.device)
            example[view] = torch.arange(len(view), device=view.device)
            hands = network.encode_cards(views[example])
            nodes = network.encode_nodes()

        @torch.no_grad()
        def strategy(node: torch.Tensor, row: torch.Tensor) -> torch.Tensor:
            infoset = game.infoset[node]
            advantage = network.joint(hands[view[row * rounds + game.round[node]]] + nodes[infoset])
            return regret_matching(advantage, game.legal[node], fallback)

        table = self._current.first_round
        return strategy if table is None else with_table(game, strategy, table, deals, player)


def with_table(game: Game, later: Strategy, table: FirstRound, deals: Deals, player: int) -> Strategy:
    """A strategy for traversals that plays `table` in the first round and `later` after it."""
    column = table.columns(deals.views[:, player, 0].cpu().numpy())

    def strategy(node: torch.Tensor, row: torch.Tensor) -> torch.Tensor:
        first = game.round[node] == 0
        result = torch.empty(len(node), game.encoding.num_actions, device=node.device)
        if not bool(first.all()):
            result[~first] = later(node[~first], row[~first])
        rows = table.rows(node[first].cpu().numpy(), column[row[first].cpu().numpy()], result.shape[1])
        result[first] = torch.from_numpy(rows).to(result)
        return result

    return strategy
