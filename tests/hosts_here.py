"""Processes with shards or parts, here played by objects of this one."""

from collections.abc import Callable, Sequence
from typing import Any

from deepcfr.cluster.remote import shares


class HostsHere:
    """Hosts in this process, each made by `make` of its numbers and its own number; see `Hosts`."""

    def __init__(self, things: int, count: int, make: Callable[[Sequence[int], int], Any]) -> None:
        self.numbers = shares(things, count)
        self.hosts = [make(numbers, own) for own, numbers in enumerate(self.numbers)]

    def put(self, value: Any) -> Any:
        return value

    def begin(self, host: int, method: str, *arguments: Any, results: int = 1) -> list[Any]:
        found = getattr(self.hosts[host], method)(*arguments)
        return [found] if results == 1 else found

    def fetch(self, found: Any) -> Any:
        return found

    def close(self) -> None:
        self.hosts.clear()
