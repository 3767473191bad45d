"""The memories of a run in shards: what fits and checkpoints see of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch

from deepcfr.config import FitConfig
from deepcfr.games.base import Game
from deepcfr.memory.reservoir import Stored
from deepcfr.rng import key
from deepcfr.solvers.memories import InfosetMemories, objective_of
from deepcfr.training.examples import Weights
from deepcfr.training.shards import Order, ShardedExamples, Shards, ShardSampler, Survey
from deepcfr.types import Samples


class ShardFits:
    """What fits ask of the shards in one process, by number."""

    def __init__(self, game: Game, memories: Mapping[int, InfosetMemories]) -> None:
        self._game, self._memories = game, memories
        self._samplers: dict[str, dict[int, ShardSampler]] = {}  # of the newest order of each memory

    def survey(self, order: Order) -> dict[int, Survey]:
        """See `Shards`."""
        objective = objective_of(self._game, order.memory, order.weights, order.iteration, order.config)
        self._samplers[order.memory] = {
            number: ShardSampler(memories.memory(order.memory), objective, order.config)
            for number, memories in self._memories.items()
        }
        return {number: sampler.survey() for number, sampler in self._samplers[order.memory].items()}

    def aim(self, order: Order, mass: torch.Tensor) -> None:
        """See `Shards`."""
        for sampler in self._samplers[order.memory].values():
            sampler.aim(mass)

    def draw(self, order: Order, counts: Mapping[int, int], stream: int) -> Callable[[], dict[int, Samples]]:
        """See `Shards`."""
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

    def named(self) -> Sequence[tuple[str, Stored]]:
        """See `Memories`."""
        return self.stores()

    def advantage_examples(self, player: int, weights: Weights, t: int, config: FitConfig) -> ShardedExamples:
        """See `Memories`."""
        return self._examples(f"advantage-{player}", weights, t, config)

    def strategy_examples(self, weights: Weights, t: int, config: FitConfig) -> ShardedExamples:
        """See `Memories`."""
        return self._examples("strategy", weights, t, config)

    def _examples(self, name: str, weights: Weights, t: int, config: FitConfig) -> ShardedExamples:
        objective = objective_of(self.game, name, weights, t, config)
        return ShardedExamples(self.shards, Order(name, weights, t, config), objective)

    def compression(self, config: FitConfig) -> float:  # noqa: ARG002
        """Nothing: of noisy targets it would move the mean."""
        return 0.0

    def sizes(self) -> tuple[tuple[int, int], int]:
        """See `Memories`."""
        counts = {"advantage-0": 0, "advantage-1": 0, "strategy": 0}
        for name, memory in self.named():
            counts[name.split("-shard-")[0]] += len(memory)
        return (counts["advantage-0"], counts["advantage-1"]), counts["strategy"]
