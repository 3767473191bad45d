"""Actors on a Ray cluster: they run this code, build an object each, and have its methods called by name.

After the loss of an actor, a run resumes from its newest checkpoint with new actors. Results depend only on the seed, so
lost work is computed again, and no sample is counted twice or missing.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import ray
import torch
from ray.exceptions import GetTimeoutError, RayError, RayTaskError

from deepcfr.errors import ClusterError, DeepCFRError, WorkerLost

LET_GO_SECONDS = 15  # ended actors release their cores
_START_SECONDS = 300  # an actor starts: importing torch and making tables of hand strengths takes a while
_TRAVERSALS, _BLOCKS = "traversals", "blocks"  # concurrency groups of an actor, one thread each


@lru_cache
def code_version() -> str:
    """The versions of the code and libraries of a worker; workers with equal versions compute the same results."""
    digest = hashlib.blake2b(digest_size=8)
    root = Path(__file__).parents[1]
    for path in sorted(root.rglob("*.py")):
        digest.update(path.relative_to(root).as_posix().encode() + path.read_bytes())
    python = ".".join(map(str, sys.version_info[:2]))
    return f"code {digest.hexdigest()}, Python {python}, torch {torch.__version__}, numpy {np.__version__}"


class _Worker:
    """The actor: it builds an object and calls its methods by name."""

    def version(self) -> str:
        return code_version()

    def make(self, make: Callable[..., Any], *arguments: Any) -> None:
        self._host = make(*arguments)

    def call(self, method: str, *arguments: Any) -> Any:
        return getattr(self._host, method)(*arguments)


class RayHosts:
    """Hosts that are actors on the cluster to which `ray` is connected."""

    def __init__(self, numbers: Sequence[Sequence[int]], actors: Sequence[Any]) -> None:
        self.numbers, self.actors = numbers, actors
        self.before_close: Callable[[], None] = lambda: None  # ends learners, which draw from these actors

    @classmethod
    def begun(
        cls, make: Callable[..., Any], arguments: Sequence[tuple[Any, ...]], numbers: Sequence[Sequence[int]]
    ) -> RayHosts:
        """Start actors that run the same code as this process; each builds its object from its `arguments`.

        Raises ClusterError if an actor runs other code, and WorkerLost if one does not start.
        """
        actor = ray.remote(concurrency_groups={_TRAVERSALS: 1, _BLOCKS: 1})(_Worker).options(num_cpus=1)
        hosts = cls(numbers, [actor.remote() for _ in arguments])
        try:
            versions = [handle.version.remote() for handle in hosts.actors]
            for worker, version in enumerate(versions):
                found = hosts._wait(version, _START_SECONDS)
                if found != code_version():
                    raise ClusterError(f"Worker {worker} has {found}, and this process has {code_version()}.")
            made = [handle.make.remote(make, *some) for handle, some in zip(hosts.actors, arguments, strict=True)]
            for done in made:
                hosts._wait(done, _START_SECONDS)
        except BaseException:
            hosts.close()
            raise
        return hosts

    def put(self, value: Any) -> Any:
        """Send `value` once; returns a reference that any host accepts in its place."""
        return ray.put(value)

    def begin(self, host: int, method: str, *arguments: Any, results: int = 1) -> Sequence[Any]:
        """Start a method of a host; returns references to its results."""
        thread = _TRAVERSALS if method == "collect" else _BLOCKS
        found = self.actors[host].call.options(num_returns=results, concurrency_group=thread).remote(method, *arguments)
        return [found] if results == 1 else list(found)

    def fetch(self, found: Any) -> Any:
        """Wait for a result. Raises WorkerLost if the worker is lost, and any error of this package from its method."""
        return self._wait(found)

    def _wait(self, found: Any, seconds: float | None = None) -> Any:
        try:
            return ray.get(found, timeout=seconds)
        except GetTimeoutError as error:
            raise WorkerLost(f"A worker did not start within {seconds:.0f} seconds.") from error
        except RayError as error:
            cause = error.cause if isinstance(error, RayTaskError) else error
            if isinstance(cause, DeepCFRError):
                raise cause from error
            if not isinstance(cause, RayError):
                raise
            raise WorkerLost(f"A worker was lost: {lines(cause)[0]}") from error

    def close(self) -> None:
        """End the actors, after whatever draws from them."""
        self.before_close()
        for handle in self.actors:
            ray.kill(handle)


def lines(error: BaseException) -> list[str]:
    """The lines of an error's message, or its type if it has none."""
    return str(error).strip().splitlines() or [type(error).__name__]
