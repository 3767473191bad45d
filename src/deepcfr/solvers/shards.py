"""The memories of a run in shards, for fits and checkpoints."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch

from deepcfr.config import AdvantageFitConfig, FitConfig
from deepcfr.games.base import Game
from deepcfr.memory.reservoir import Stored
from deepcfr.rng import key
from deepcfr.solvers.memories import Found, InfosetMemories, objective_of
from deepcfr.training.examples import Weights
from deepcfr.training.shards import Means, Order, ShardedExamples, Shards, ShardSampler, Survey
from deepcfr.types import Samples


class ShardFits:
    """The shards in one process by number, with the operations that fits need."""

    def __init__(self, game: Game, memories: Mapping[int, InfosetMemories]) -> None:
        self._game, self._memories = game, memories
        self._samplers: dict[str, dict[int, ShardSampler]] = {}  # of the newest order of each memory

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
