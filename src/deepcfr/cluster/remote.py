"""A collector whose traversals and memories are in other processes, with any `Hosts` that start them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

import torch

from deepcfr.cluster.examples import Means, Order, Survey
from deepcfr.cluster.shard_host import arrays_of, samples_of
from deepcfr.cluster.shards import ShardedMemories, part_of_memory
from deepcfr.config import RunConfig
from deepcfr.games.base import Game
from deepcfr.memory.reservoir import INFOSET_COLUMNS, bytes_per_sample
from deepcfr.solvers.collector import Current, Fitting
from deepcfr.solvers.first_round import FirstRoundTable
from deepcfr.solvers.memories import Found, Memories
from deepcfr.training.fit import fit
from deepcfr.types import Samples


class Hosts(Protocol):
    """Processes that each have one object, such as a `ShardHost`, and run its methods on request."""

    numbers: Sequence[Sequence[int]]  # the numbers of each host's shards or parts

    def put(self, value: Any) -> Any:
        """Send `value` once for all hosts; returns a reference that any host accepts in its place."""

    def begin(self, host: int, method: str, *arguments: Any, results: int = 1) -> Sequence[Any]:
        """Start a method of a host; returns a reference to each of its results, a list if there are several."""

    def fetch(self, found: Any) -> Any:
        """Wait for one of the results of `begin`. A reference can be given to another method without fetching it."""

    def close(self) -> None:
        """End the processes."""


class RemoteStore:
    """One memory of a shard in another process; its size is that at construction."""

    column_names = INFOSET_COLUMNS

    def __init__(self, hosts: Hosts, host: int, name: str, seen: int, capacity: int, row_bytes: int) -> None:
        self._hosts, self._host, self._name = hosts, host, name
        self.seen, self.capacity, self._row_bytes = seen, capacity, row_bytes

    def __len__(self) -> int:
        return min(self.seen, self.capacity)

    @property
    def nbytes(self) -> int:
        """Bytes of the filled rows."""
        return len(self) * self._row_bytes

    def contents(self) -> dict[str, torch.Tensor]:
        """The filled part of every column, for a checkpoint."""
        found = self._hosts.fetch(self._hosts.begin(self._host, "contents", self._name)[0])
        return {column: torch.tensor(array) for column, array in found.items()}

    def restore(self, contents: dict[str, torch.Tensor], seen: int) -> None:
        """Restore the result of `contents`."""
        arrays = {column: tensor.numpy() for column, tensor in contents.items()}
        self._hosts.fetch(self._hosts.begin(self._host, "restore", self._name, arrays, seen)[0])
        self.seen = seen


class RemoteShards:
    """The shards of all hosts, for fits."""

    def __init__(self, hosts: Hosts) -> None:
        self.hosts = hosts

    def survey(self, order: Order) -> Mapping[int, Survey]:
        """The survey of each shard."""
        return _by_number(self.of_all("survey", order))

    def aim(self, order: Order, mass: torch.Tensor, means: Means | None) -> Mapping[int, float]:
        """Prepare draws for an order; arguments and result as for `Shards.aim`."""
        return _by_number(self.of_all("aim", order, mass, means and self.hosts.put(means)))

    def draw(self, order: Order, counts: Mapping[int, int], stream: int) -> Callable[[], Mapping[int, Samples]]:
        """Start to draw `counts` samples of each shard; the result waits for them."""
        waiting = [
            self.hosts.begin(host, "draw", order, {n: counts[n] for n in numbers}, stream)[0]
            for host, numbers in enumerate(self.hosts.numbers)
        ]
        return lambda: {n: samples_of(b) for n, b in _by_number([self.hosts.fetch(w) for w in waiting]).items()}

    def of_all(self, method: str, *arguments: Any) -> list[Any]:
        """Call a method of every host; returns the results by host."""
        return self.begin(method, *arguments)()

    def begin(self, method: str, *arguments: Any) -> Callable[[], list[Any]]:
        """Start a method of every host; returns a function that waits for the results."""
        waiting = [self.hosts.begin(host, method, *arguments)[0] for host in range(len(self.hosts.numbers))]
        return lambda: [self.hosts.fetch(found) for found in waiting]


class RemoteCollector:
    """A `Collector` whose shards are in the processes of `hosts`.

    `fitting` fits networks, by default in this process.
    """

    def __init__(
        self,
        game: Game,
        config: RunConfig,
        table: FirstRoundTable | None,
        hosts: Hosts,
        fitting: Fitting = fit,
    ) -> None:
        self._game, self._config, self._table = game, config, table
        self.fit = fitting
        self.shards = RemoteShards(hosts)
        self._weights: list[Any] = [None, None]  # references to the weights of both players' networks
        self.memories: Memories = ShardedMemories(game, self.shards, self.named, kept_by_worker)

    def traverse(self, t: int, traverser: int, current: Current) -> Iterator[Found]:
        """Iteration t's traversals for one player; shard workers keep the samples and return the rest."""
        for player, network in enumerate(current.matching.networks):
            if self._weights[player] is None:
                self._weights[player] = self.shards.hosts.put(arrays_of(network))
        regret = self._table.regret if self._table else None
        return _in_order(self.shards.begin("collect", t, traverser, regret, *self._weights))

    def changed(self, player: int) -> None:
        """Call after a player's network changes; the next traversals send its weights again."""
        self._weights[player] = None

    def close(self) -> None:
        """End the processes that this one started."""
        self.shards.hosts.close()

    def named(self) -> list[tuple[str, RemoteStore]]:
        """Every memory with its name in a checkpoint, shard by shard."""
        found = []
        for host, sizes in enumerate(self.shards.of_all("seen")):
            for name, seen in sizes.items():
                number = int(name.rsplit("-", 1)[1])
                part, row = part_of_memory(self._config.memory, number), bytes_per_sample(self._game.encoding)
                capacity = part.strategy_capacity if name.startswith("strategy") else part.advantage_capacity
                found.append((number, name, RemoteStore(self.shards.hosts, host, name, seen, capacity, row)))
        return [(name, store) for _, name, store in sorted(found, key=lambda entry: entry[0])]


def kept_by_worker(_player: int, found: Found) -> None:
    """Check that no samples are left to add, because `ShardHost.collect` added them."""
    assert not found.advantages
    assert not found.strategies


def _in_order(parts: Callable[[], list[list[Found]]]) -> Iterator[Found]:
    """Wait for all hosts; then yield their results shard by shard."""
    yield from sorted((found for part in parts() for found in part), key=lambda found: found.part)  # stable


def shares(shards: int, hosts: int) -> list[list[int]]:
    """Divide shards among hosts; returns the shards of each host."""
    return [list(range(host, shards, hosts)) for host in range(hosts)]


def _by_number(parts: Sequence[Mapping[int, Any]]) -> dict[int, Any]:
    return dict(sorted((number, found) for part in parts for number, found in part.items()))
