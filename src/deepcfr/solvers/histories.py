"""Traversals of histories (Deep CFR, Algorithm 2), and the logical shards of memories that keep what they find.

A run has S shards, by configuration. Shard s runs the s-th part of every iteration's traversals and keeps what they find
in the s-th part of every memory. What that is depends on its number, and not on the process that it is in, nor on how many
processes there are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from deepcfr.config import MemoryConfig, RunConfig
from deepcfr.games.base import Deals, Game, card_codes
from deepcfr.games.poker import poker_game
from deepcfr.memory.reservoir import Store
from deepcfr.parallel import Workers
from deepcfr.policies.first_round import FirstRound
from deepcfr.policies.regret_matching import regret_matching
from deepcfr.rng import key
from deepcfr.sampling.external import Strategy, Traversals, traverse
from deepcfr.sampling.luck import BoardLuck
from deepcfr.sampling.outcome import traverse_outcomes
from deepcfr.solvers.collector import Collected, Current, Fitting
from deepcfr.solvers.first_round import FirstRoundTable
from deepcfr.solvers.memories import InfosetMemories, Memories
from deepcfr.solvers.shards import ShardedMemories, ShardFits
from deepcfr.training.fit import fit
from deepcfr.training.networks import SplitNetwork
from deepcfr.types import Samples

PLAYERS = (0, 1)


@dataclass(frozen=True)
class Found:
    """What the traversals of one chunk did, and the samples that belong to the first round's table."""

    shard: int
    nodes_touched: int
    evaluated: int
    for_table: tuple[Samples, Samples] | None  # advantages and strategies


class HistoryShards:
    """Some of a run's shards, by their `numbers`: the traversals that fill them, and their memories."""

    def __init__(self, game: Game, config: RunConfig, numbers: Sequence[int], workers: Workers) -> None:
        self.game, self.config, self.workers = game, config, workers
        self.memories = {
            number: InfosetMemories(game, part_of_memory(config.memory, number), shard_suffix(config, number))
            for number in numbers
        }

    def collect(self, t: int, traverser: int, current: Current) -> Iterator[Found]:
        """Run these shards' part of iteration t and remember what it finds, chunk by chunk in the order of traversals."""
        traversals = _Traversals(self.game, self.config, t, traverser, current)
        chunks = [(number, *chunk) for number in self.memories for chunk in chunks_of(self.config, number)]
        found = self.workers.map(lambda chunk: traversals.run(*chunk[1:]), chunks)
        for (number, first, _), (samples, for_table) in zip(chunks, found, strict=True):
            memories = self.memories[number]
            memories.advantages[traverser].add(samples.advantages, traversals.stream("advantage slot", first))
            memories.strategies.add(samples.strategies, traversals.stream("strategy slot", first))
            evaluated = int(samples.decisions[1 if current.first_round else 0 :].sum())  # a table is not a network
            yield Found(number, samples.nodes_touched, evaluated, for_table)

    def named(self) -> list[tuple[str, Store]]:
        """Every memory with its name in a checkpoint."""
        return [named for memories in self.memories.values() for named in memories.named()]


class HistoryCollector:
    """All shards of a run in this process."""

    def __init__(self, game: Game, config: RunConfig, table: FirstRoundTable | None, workers: Workers) -> None:
        self._shards = shards = HistoryShards(game, config, range(config.memory.shards), workers)
        self._table, self._traversals = table, config.cfr.traversals
        self.fit: Fitting = fit
        self.side_by_side = 0
        self.memories: Memories = shards.memories[0]
        if config.memory.shards > 1:
            self.memories = ShardedMemories(game, ShardFits(game, shards.memories), shards.named)

    def begin(self, t: int, traverser: int, current: Current) -> Callable[[], Collected]:
        """See `Collector`; they have ended when this returns."""
        done = collected(self._shards.collect(t, traverser, current), self._traversals, self._table, t)
        return lambda: done

    def changed(self, player: int) -> None:
        """Nothing is remembered of strategies."""

    def close(self) -> None:
        """Nothing is kept open."""


def collected(found: Iterable[Found], traversals: int, table: FirstRoundTable | None, t: int) -> Collected:
    """The sum over chunks in their order, after the table of the first round has taken what belongs to it."""
    touched = evaluated = 0
    for chunk in found:
        touched += chunk.nodes_touched
        evaluated += chunk.evaluated
        if table and chunk.for_table:
            table.add_samples(*chunk.for_table, t)
    return Collected(traversals, touched, evaluated)


def part_of_memory(config: MemoryConfig, number: int) -> MemoryConfig:
    """The rows of one shard: as many as of the others, or one more."""
    rows = [
        capacity // config.shards + (number < capacity % config.shards)
        for capacity in (config.advantage_capacity, config.strategy_capacity)
    ]
    return replace(config, advantage_capacity=rows[0], strategy_capacity=rows[1], shards=1)


def shard_suffix(config: RunConfig, number: int) -> str:
    """What a shard's memories have after their names in a checkpoint."""
    return f"-shard-{number}" if config.memory.shards > 1 else ""


def chunks_of(config: RunConfig, number: int) -> Iterator[tuple[int, int]]:
    """The chunks of a shard's traversals: the first one's number among all of the iteration, and how many they are."""
    total, shards, chunk = config.cfr.traversals, config.memory.shards, config.cfr.chunk
    end = total * (number + 1) // shards
    for first in range(total * number // shards, end, chunk):
        yield first, min(chunk, end - first)


class _Traversals:
    """One player's traversals in one iteration; any part of them can be run, in any order and by any thread."""

    def __init__(self, game: Game, config: RunConfig, t: int, traverser: int, current: Current) -> None:
        self._game, self._config, self._t, self._traverser, self._current = game, config, t, traverser, current
        self._luck = BoardLuck(poker_game(game), self.stream("luck")) if config.cfr.remove_luck else None

    def stream(self, purpose: str, *more: int) -> int:
        """The stream of some chance in these traversals."""
        return key(self._config.seed, purpose, self._t, self._traverser, *more)

    def run(self, first: int, count: int) -> tuple[Traversals, tuple[Samples, Samples] | None]:
        """Traversals from `first` on, and apart from their samples those that belong to the first round's table, if any."""
        game, cfr, current = self._game, self._config.cfr, self._current
        deals = game.deal(count, self.stream("deal"), first)
        mine, theirs = (self._strategy(current.matching.networks[player], player, deals) for player in PLAYERS)
        if cfr.sampler == "external":
            off = None
            if self._luck:
                cards = poker_game(game).deal_cards(count, self.stream("deal"), first)
                off = self._luck.of_histories(cards, np.arange(first, first + count), game.device)
            found = traverse(game, deals, self._traverser, (mine, theirs), self.stream("action"), self._t, off)
        else:
            found = traverse_outcomes(
                game, deals, self._traverser, (mine, theirs), cfr.exploration, self.stream("action"), self._t
            )
        if current.first_round is None:
            return found, None
        early = [game.round[s.infosets.node.long()] == 0 for s in (found.advantages, found.strategies)]
        for_table = (found.advantages[early[0]], found.strategies[early[1]])
        return replace(found, advantages=found.advantages[~early[0]], strategies=found.strategies[~early[1]]), for_table

    def _strategy(self, network: SplitNetwork, player: int, deals: Deals) -> Strategy:
        """sigma^t of one player on some deals: what it sees in each round is encoded once, before the traversals."""
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
