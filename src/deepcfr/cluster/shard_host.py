"""The object of a shard worker: some of a run's shards, with arrays as arguments and results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import torch

from deepcfr.cluster.examples import Means, Order, Survey
from deepcfr.cluster.shards import MemoryShards
from deepcfr.config import RunConfig
from deepcfr.games.base import Game
from deepcfr.games.poker import poker_game
from deepcfr.machine import resident_memory
from deepcfr.memory.reservoir import Store
from deepcfr.parallel import Workers
from deepcfr.policies.network import RegretMatchingPolicy
from deepcfr.rng import generator
from deepcfr.solvers.collector import Current
from deepcfr.solvers.first_round import FirstRoundTable
from deepcfr.solvers.memories import Found
from deepcfr.training.networks import SplitNetwork, build_network
from deepcfr.types import Infosets, Samples

Array = npt.NDArray[np.generic]
Weights = Mapping[str, Array]  # of a network, by name
Block = tuple[Array, Array, Array, Array]  # node, cards, target and iteration of samples


class ShardHost:
    """Some shards by their `numbers`: runs their traversals and draws from their memories."""

    def __init__(self, game: Game, config: RunConfig, numbers: Sequence[int]) -> None:
        self._game, self._config = game, config
        self._shards = MemoryShards(game, config, numbers, Workers(1))
        self._networks = [build_network(game.encoding, config.network, generator(0)) for _ in (0, 1)]
        self._table = FirstRoundTable(poker_game(game), config.cfr) if config.cfr.first_round == "table" else None

    def collect(self, t: int, traverser: int, regret: Array | None, *weights: Weights) -> list[Found]:
        """Run these shards' part of iteration t's traversals for one player and add the samples to their memories.

        Returns the results without samples. Players act by the networks' `weights`, and in the first round by the
        table's `regret` if there is one.
        """
        for network, arrays in zip(self._networks, weights, strict=True):
            put_arrays(network, arrays)
        if self._table:
            self._table.regret[:] = regret
        networks, fallback = (self._networks[0], self._networks[1]), self._config.cfr.fallback
        first_round = self._table.strategy() if self._table else None
        current = Current(RegretMatchingPolicy(self._game, networks, fallback), first_round)
        kept = []
        for found in self._shards.traverse(t, traverser, current):
            self._shards.add(traverser, found)
            kept.append(replace(found, advantages=(), strategies=()))
        return kept

    def survey(self, order: Order) -> dict[int, Survey]:
        """The survey of each shard."""
        return self._shards.survey(order)

    def aim(self, order: Order, mass: torch.Tensor, means: Means | None) -> dict[int, float]:
        """Prepare draws for an order; arguments and result as for `Shards.aim`."""
        return self._shards.aim(order, mass, means)

    def draw(self, order: Order, counts: Mapping[int, int], stream: int) -> dict[int, Block]:
        """Draw the given number of samples of each shard."""
        return {number: block_of(samples) for number, samples in self._shards.draw(order, counts, stream)().items()}

    def resident(self, *given: Weights) -> int:  # noqa: ARG002
        """Bytes of main memory of this process. The arguments are received and dropped."""
        return resident_memory()

    def seen(self) -> dict[str, int]:
        """The number of samples offered to each memory so far, by name."""
        return {name: store.seen for name, store in self._shards.named()}

    def contents(self, memory: str) -> dict[str, Array]:
        """The filled part of every column of a memory."""
        return {column: tensor.cpu().numpy() for column, tensor in self._store(memory).contents().items()}

    def restore(self, memory: str, contents: Mapping[str, Array], seen: int) -> None:
        """Restore the result of `contents`."""
        tensors = {column: torch.tensor(array) for column, array in contents.items()}
        self._store(memory).restore(tensors, seen)

    def _store(self, memory: str) -> Store:
        return dict(self._shards.named())[memory]


def arrays_of(network: SplitNetwork) -> Weights:
    """A network's weights as arrays."""
    return {name: weight.cpu().numpy() for name, weight in network.state_dict().items()}


def put_arrays(network: SplitNetwork, weights: Weights) -> None:
    """Load the result of `arrays_of` into the network."""
    network.load_state_dict({name: torch.tensor(array) for name, array in weights.items()})


def block_of(samples: Samples) -> Block:
    """Samples as arrays."""
    infosets = samples.infosets
    columns = [c.cpu().numpy() for c in (infosets.node, infosets.cards, samples.target, samples.iteration)]
    return columns[0], columns[1], columns[2], columns[3]


def samples_of(block: Block) -> Samples:
    """Arrays as samples, copied, because arrays of another process are read-only."""
    node, cards, target, iteration = (torch.tensor(column) for column in block)
    return Samples(Infosets(node, cards), target, iteration)
