"""A collector whose traversals and memories are in other processes, whatever runs these."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import torch

from deepcfr.config import RunConfig
from deepcfr.games.base import Game
from deepcfr.memory.reservoir import INFOSET_COLUMNS, bytes_per_sample
from deepcfr.solvers.collector import Collected, Current, Fitting
from deepcfr.solvers.first_round import FirstRoundTable
from deepcfr.solvers.histories import collected, part_of_memory
from deepcfr.solvers.memories import Memories
from deepcfr.solvers.shard_host import arrays_of, samples_of
from deepcfr.solvers.shards import ShardedMemories
from deepcfr.training.fit import fit
from deepcfr.training.shards import Order, Survey
from deepcfr.types import Samples


class Hosts(Protocol):
    """Processes with an object each, such as a `ShardHost`, whose methods are begun from here."""

    numbers: Sequence[Sequence[int]]  # of the shards, or parts, of each host

    def put(self, value: Any) -> Any:
        """Something that can be given to hosts in place of `value`, which is sent once for all of them."""

    def begin(self, host: int, method: str, *arguments: Any, results: int = 1) -> Sequence[Any]:
        """Begin a method of a host, and return what stands for its results: of a list, if there are several."""

    def fetch(self, found: Any) -> Any:
        """Wait for one of the results of `begin`. It need not be fetched to be given to another method."""

    def close(self) -> None:
        """End the processes."""


class RemoteStore:
    """One memory of one shard elsewhere, as it was when its size was asked for."""

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
        """Take back what `contents` returned."""
        arrays = {column: tensor.numpy() for column, tensor in contents.items()}
        self._hosts.fetch(self._hosts.begin(self._host, "restore", self._name, arrays, seen)[0])
        self.seen = seen


class RemoteShards:
    """The shards of all hosts as fits see them; see `Shards`."""

    def __init__(self, hosts: Hosts) -> None:
        self.hosts = hosts

    def survey(self, order: Order) -> Mapping[int, Survey]:
        """See `Shards`."""
        return _by_number(self.of_all("survey", order))

    def aim(self, order: Order, mass: torch.Tensor) -> None:
        """See `Shards`."""
        self.of_all("aim", order, mass)

    def draw(self, order: Order, counts: Mapping[int, int], stream: int) -> Callable[[], Mapping[int, Samples]]:
        """See `Shards`."""
        waiting = [
            self.hosts.begin(host, "draw", order, {n: counts[n] for n in numbers}, stream)[0]
            for host, numbers in enumerate(self.hosts.numbers)
        ]
        return lambda: {n: samples_of(b) for n, b in _by_number([self.hosts.fetch(w) for w in waiting]).items()}

    def of_all(self, method: str, *arguments: Any) -> list[Any]:
        """What a method of every host returns."""
        return self.begin(method, *arguments)()

    def begin(self, method: str, *arguments: Any) -> Callable[[], list[Any]]:
        """Begin a method of every host, and return what waits for what they return."""
        waiting = [self.hosts.begin(host, method, *arguments)[0] for host in range(len(self.hosts.numbers))]
        return lambda: [self.hosts.fetch(found) for found in waiting]


class RemoteCollector:
    """A `Collector` whose shards are in the processes of `hosts`.

    `fitting` fits networks, in this process by default, and as many `side_by_side` as it says.
    """

    def __init__(
        self,
        game: Game,
        config: RunConfig,
        table: FirstRoundTable | None,
        hosts: Hosts,
        fitting: Fitting = fit,
        side_by_side: int = 1,
    ) -> None:
        self._game, self._config, self._table = game, config, table
        self.fit, self.side_by_side = fitting, side_by_side
        self.shards = RemoteShards(hosts)
        self._weights: list[Any] = [None, None]  # both players' networks, where hosts find them
        self.memories: Memories = ShardedMemories(game, self.shards, self.named)

    def begin(self, t: int, traverser: int, current: Current) -> Callable[[], Collected]:
        """See `Collector`."""
        for player, network in enumerate(current.matching.networks):
            if self._weights[player] is None:
                self._weights[player] = self.shards.hosts.put(arrays_of(network))
        regret = self._table.regret if self._table else None
        parts = self.shards.begin("collect", t, traverser, regret, *self._weights)

        def wait() -> Collected:
            found = sorted(
                (chunk for part in parts() for chunk in part), key=lambda chunk: chunk.shard
            )  # which is stable
            return collected(found, self._config.cfr.traversals, self._table, t)

        return wait

    def changed(self, player: int) -> None:
        """See `Collector`."""
        self._weights[player] = None

    def close(self) -> None:
        """See `Collector`."""
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


def shares(shards: int, hosts: int) -> list[list[int]]:
    """The shards of each of so many hosts."""
    return [list(range(host, shards, hosts)) for host in range(hosts)]


def _by_number(parts: Sequence[Mapping[int, Any]]) -> dict[int, Any]:
    return dict(sorted((number, found) for part in parts for number, found in part.items()))
