"""A run's memories in several shards, and the traversals that fill them.

A run has S shards, by configuration. Shard s runs the s-th part of every iteration's traversals and keeps their
samples in the s-th part of every memory. The samples depend on the number of the shard, and not on its process or on the
number of processes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import torch

from deepcfr.cluster.examples import Means, Order, ShardedExamples, Shards, ShardSampler, Survey
from deepcfr.config import AdvantageFitConfig, FitConfig, MemoryConfig, RunConfig
from deepcfr.games.base import Game
from deepcfr.memory.reservoir import Store, Stored
from deepcfr.parallel import Workers
from deepcfr.rng import key
from deepcfr.solvers.collector import Current, Fitting
from deepcfr.solvers.first_round import FirstRoundTable
from deepcfr.solvers.histories import Traversals, chunks_of, history_sampling
from deepcfr.solvers.memories import Found, InfosetMemories, Memories, objective_of
from deepcfr.training.examples import Weights
from deepcfr.training.fit import fit
from deepcfr.types import Samples


class MemoryShards:
    """Some of a run's shards, by their `numbers`: their traversals, their memories, and what fits ask of them."""

    def __init__(self, game: Game, config: RunConfig, numbers: Sequence[int], workers: Workers) -> None:
        self._game, self._config, self._workers = game, config, workers
        self._memories = {
            number: InfosetMemories(game, part_of_memory(config.memory, number), f"-shard-{number}")
            for number in numbers
        }
        self._samplers: dict[str, dict[int, ShardSampler]] = {}  # of the newest order of each memory

    def traverse(self, t: int, traverser: int, current: Current) -> Iterator[Found]:
        """Run these shards' part of iteration t, chunk by chunk in the order of traversals (Algorithm 2)."""
        traversals = Traversals(self._game, self._config, t, traverser, current)
        chunks = [(*chunk, number) for number in self._memories for chunk in shard_chunks(self._config, number)]
        return self._workers.map(lambda chunk: traversals.run(*chunk), chunks)

    def add(self, player: int, found: Found) -> None:
        """Add the samples of a chunk to the memories of its shard."""
        self._memories[found.part].add(player, found)

    def named(self) -> list[tuple[str, Store]]:
        """Every memory with its name in a checkpoint."""
        return [named for memories in self._memories.values() for named in memories.named()]

    def survey(self, order: Order) -> dict[int, Survey]:
        """The survey of each shard."""
        objective = objective_of(self._game, order.memory, order.weights, order.iteration, order.config)
        self._samplers[order.memory] = {
            number: ShardSampler(memories.memory(order.memory), objective, order.config)
            for number, memories in self._memories.items()
        }
        return {number: sampler.survey() for number, sampler in self._samplers[order.memory].items()}

    def aim(self, order: Order, mass: torch.Tensor, means: Means | None) -> dict[int, float]:
        """Prepare draws for an order; arguments and result as for `Shards.aim`."""
        return {number: sampler.aim(mass, means) for number, sampler in self._samplers[order.memory].items()}

    def draw(self, order: Order, counts: Mapping[int, int], stream: int) -> Callable[[], dict[int, Samples]]:
        """Start to draw `counts` samples of each shard; the result waits for them."""
        found = {
            number: sampler.draw(counts[number], key(stream, "shard", number))
            for number, sampler in self._samplers[order.memory].items()
        }
        return lambda: found


@dataclass
class ShardedMemories:
    """A memory of advantages for each player and one of strategies, each in shards; `stores` are those of all shards."""

    game: Game
    shards: Shards
    stores: Callable[[], Sequence[tuple[str, Stored]]]
    add: Callable[[int, Found], None]  # see `Memories`

    def named(self) -> Sequence[tuple[str, Stored]]:
        """Every memory with its name in a checkpoint."""
        return self.stores()

    def advantage_examples(self, player: int, weights: Weights, t: int, config: AdvantageFitConfig) -> ShardedExamples:
        """The training examples of a player's advantage network."""
        return self._examples(f"advantage-{player}", weights, t, config)

    def strategy_examples(self, weights: Weights, t: int, config: FitConfig) -> ShardedExamples:
        """The training examples of the average network."""
        return self._examples("strategy", weights, t, config)

    def _examples(self, name: str, weights: Weights, t: int, config: FitConfig) -> ShardedExamples:
        objective = objective_of(self.game, name, weights, t, config)
        return ShardedExamples(self.shards, Order(name, weights, t, config), objective)

    def compression(self, config: AdvantageFitConfig) -> float:  # noqa: ARG002
        """Always 0: compressing noisy targets would bias their mean."""
        return 0.0

    def sizes(self) -> tuple[tuple[int, int], int]:
        """Samples of advantages of each player, and of strategies."""
        counts = {"advantage-0": 0, "advantage-1": 0, "strategy": 0}
        for name, memory in self.named():
            counts[name.split("-shard-")[0]] += len(memory)
        return (counts["advantage-0"], counts["advantage-1"]), counts["strategy"]


class ShardedCollector:
    """A `Collector` with all shards of a run in this process."""

    def __init__(self, game: Game, config: RunConfig, table: FirstRoundTable | None) -> None:  # noqa: ARG002
        """The first round's table is part of each strategy that `traverse` is given."""
        self._workers = Workers(config.runtime.threads if game.device == "cpu" else 1)
        self._shards = shards = MemoryShards(game, config, range(config.memory.shards), self._workers)
        self.fit: Fitting = fit
        self.memories: Memories = ShardedMemories(game, shards, shards.named, shards.add)

    def traverse(self, t: int, traverser: int, current: Current) -> Iterator[Found]:
        """Iteration t's traversals for one player, shard by shard."""
        return self._shards.traverse(t, traverser, current)

    def changed(self, player: int) -> None:
        """Does nothing: no strategies are cached."""

    def close(self) -> None:
        """End the threads."""
        self._workers.shutdown()


def part_of_memory(config: MemoryConfig, number: int) -> MemoryConfig:
    """The rows of one shard: as many as of the others, or one more."""
    rows = [
        capacity // config.shards + (number < capacity % config.shards)
        for capacity in (config.advantage_capacity, config.strategy_capacity)
    ]
    return replace(config, advantage_capacity=rows[0], strategy_capacity=rows[1], shards=1)


def shard_chunks(config: RunConfig, number: int) -> Iterator[tuple[int, int]]:
    """The chunks of a shard's traversals, as `chunks_of`."""
    total, shards = history_sampling(config).traversals, config.memory.shards
    return chunks_of(total * number // shards, total * (number + 1) // shards)
