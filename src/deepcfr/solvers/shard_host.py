"""What runs in a process that has some of a run's shards: arrays come in and go out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import torch

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
from deepcfr.solvers.histories import Found, HistoryShards
from deepcfr.solvers.shards import ShardFits
from deepcfr.training.networks import SplitNetwork, build_network
from deepcfr.training.shards import Order, Survey
from deepcfr.types import Infosets, Samples

Array = npt.NDArray[np.generic]
Weights = Mapping[str, Array]  # of a network, by name
Block = tuple[Array, Array, Array, Array]  # node, cards, target and iteration of samples


class ShardHost:
    """Some shards by their `numbers`, with all it takes to run their traversals and to draw from them."""

    def __init__(self, game: Game, config: RunConfig, numbers: Sequence[int], threads: int = 1) -> None:
        self._game, self._config = game, config
        self._shards = HistoryShards(game, config, numbers, Workers(threads))
        self._fits = ShardFits(game, self._shards.memories)
        self._networks = [build_network(game.encoding, config.network, generator(0)) for _ in (0, 1)]
        self._table = FirstRoundTable(poker_game(game), config.cfr) if config.cfr.first_round == "table" else None

    def collect(self, t: int, traverser: int, regret: Array | None, *weights: Weights) -> list[Found]:
        """These shards' part of iteration t's traversals for one player, with both players' networks.

        `regret` is that of the table of the first round, if there is one.
        """
        for network, arrays in zip(self._networks, weights, strict=True):
            put_arrays(network, arrays)
        if self._table:
            self._table.regret[:] = regret
        networks, fallback = (self._networks[0], self._networks[1]), self._config.cfr.fallback
        first_round = self._table.strategy() if self._table else None
        current = Current(RegretMatchingPolicy(self._game, networks, fallback), first_round)
        return list(self._shards.collect(t, traverser, current))

    def survey(self, order: Order) -> dict[int, Survey]:
        """See `Shards`."""
        return self._fits.survey(order)

    def aim(self, order: Order, mass: torch.Tensor) -> None:
        """See `Shards`."""
        self._fits.aim(order, mass)

    def draw(self, order: Order, counts: Mapping[int, int], stream: int) -> dict[int, Block]:
        """So many samples of each shard."""
        return {number: block_of(samples) for number, samples in self._fits.draw(order, counts, stream)().items()}

    def resident(self, *given: Weights) -> int:  # noqa: ARG002
        """Bytes of main memory that this process holds. What it is given has come here by then, and is let go."""
        return resident_memory()

    def seen(self) -> dict[str, int]:
        """How many samples each memory has been offered, by its name."""
        return {name: store.seen for name, store in self._shards.named()}

    def contents(self, memory: str) -> dict[str, Array]:
        """The filled part of every column of a memory."""
        return {column: tensor.cpu().numpy() for column, tensor in self._store(memory).contents().items()}

    def restore(self, memory: str, contents: Mapping[str, Array], seen: int) -> None:
        """Take back what `contents` returned."""
        tensors = {column: torch.tensor(array) for column, array in contents.items()}
        self._store(memory).restore(tensors, seen)

    def _store(self, memory: str) -> Store:
        return dict(self._shards.named())[memory]


def arrays_of(network: SplitNetwork) -> Weights:
    """A network's weights as arrays."""
    return {name: weight.cpu().numpy() for name, weight in network.state_dict().items()}


def put_arrays(network: SplitNetwork, weights: Weights) -> None:
    """Take back what `arrays_of` returned."""
    network.load_state_dict({name: torch.tensor(array) for name, array in weights.items()})


def block_of(samples: Samples) -> Block:
    """Samples as arrays."""
    infosets = samples.infosets
    columns = [c.cpu().numpy() for c in (infosets.node, infosets.cards, samples.target, samples.iteration)]
    return columns[0], columns[1], columns[2], columns[3]


def samples_of(block: Block) -> Samples:
    """Arrays as samples, copied: those of another process cannot be written to."""
    node, cards, target, iteration = (torch.tensor(column) for column in block)
    return Samples(Infosets(node, cards), target, iteration)
