"""Processes on a Ray cluster that run pieces of work, such as those of traversals, and return results in order.

A worker is an actor. If its process ends or its machine is lost, Ray starts it again, on another machine if need be, and
runs again the pieces that it had not finished. A piece's result depends on the piece alone, so nothing else changes.
"""

from __future__ import annotations

import hashlib
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import ray
import torch
from ray.exceptions import GetTimeoutError, RayError, RayTaskError

from deepcfr.config import RunConfig
from deepcfr.core.errors import ClusterError, DeepCFRError
from deepcfr.game.presets import GameSource, build_game
from deepcfr.solve.data import TraversalJob
from deepcfr.solve.deep_cfr import Follower, Iterate

COME_BACK_SECONDS = 120  # a lost machine may return
_START_SECONDS = 300  # a worker starts: importing torch and making tables of hand strengths takes a while
_LOOK_SECONDS = 10  # how often a missing result has the cluster's cores counted
_AHEAD = 4  # pieces of each worker that are sent before their results are read
_TRIES = 3  # of a piece, after the first


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
    """The actor: it makes a function and calls it with pieces of work."""

    def __init__(self, make: Callable[[], Callable[..., Any]]) -> None:
        self._make = make
        self._work: Callable[..., Any] | None = None

    def version(self) -> str:
        return code_version()

    def run(self, piece: Any, *shared: Any) -> Any:
        if self._work is None:  # a process that Ray started again has none
            self._work = self._make()
        return self._work(piece, *shared)


class RayWorkers:
    """`count` processes, with a core each, on the cluster to which `ray` is connected."""

    def __init__(self, make: Callable[[], Callable[..., Any]], count: int) -> None:
        """Each worker makes its function by `make`.

        Raises ClusterError if a worker does not start or runs other code than this process.
        """
        actor = ray.remote(num_cpus=1, max_restarts=-1, max_task_retries=_TRIES)(_Worker)
        self._actors = [actor.remote(make) for _ in range(count)]
        try:
            for number, version in enumerate([handle.version.remote() for handle in self._actors]):
                found = self._wait(version, _START_SECONDS)
                if found != code_version():
                    raise ClusterError(f"Worker {number} has {found}, and this process has {code_version()}.")
        except BaseException:
            self.close()
            raise

    def map(self, pieces: Iterable[Any], *shared: Any) -> Iterator[Any]:
        """Results of work(piece, *shared) in the order of `pieces`; `shared` is sent once to every machine.

        Piece i is for worker i modulo their number, so workers may remember what they need for equal lists.
        Raises ClusterError if a piece loses its worker several times or a machine does not come back, and any error of this
        package from the work.
        """
        sent = [ray.put(value) for value in shared]
        waiting: deque[Any] = deque()
        for number, piece in enumerate(pieces):
            waiting.append(self._actors[number % len(self._actors)].run.remote(piece, *sent))
            if len(waiting) == _AHEAD * len(self._actors):
                yield self._result(waiting.popleft())
        while waiting:
            yield self._result(waiting.popleft())

    def _result(self, found: Any) -> Any:
        """Wait for a result, as long as the cluster has the cores for it or may have them again."""
        complete = time.monotonic()
        while not ray.wait([found], timeout=_LOOK_SECONDS)[0]:
            cores = ray.cluster_resources().get("CPU", 0)
            if cores >= len(self._actors):
                complete = time.monotonic()
            elif time.monotonic() - complete > COME_BACK_SECONDS:
                raise ClusterError(
                    f"Workers ({len(self._actors):,}) need a core each, and the cluster has only {cores:,.0f} any more."
                )
        return self._wait(found)

    def _wait(self, found: Any, seconds: float | None = None) -> Any:
        try:
            return ray.get(found, timeout=seconds)
        except GetTimeoutError as error:
            raise ClusterError(f"A worker did not start within {seconds:.0f} seconds.") from error
        except RayError as error:
            cause = error.cause if isinstance(error, RayTaskError) else error
            if isinstance(cause, DeepCFRError):
                raise cause from error
            if not isinstance(cause, RayError):
                raise
            said = str(cause).strip().splitlines() or [type(cause).__name__]
            raise ClusterError(f"A worker was lost: {said[0]}") from error

    def close(self) -> None:
        """End the processes."""
        for handle in self._actors:
            ray.kill(handle)


class RayTraversals:
    """The traversals of a run of Deep CFR, by workers on the cluster; see `Outside`."""

    def __init__(self, source: GameSource, config: RunConfig, count: int) -> None:
        self._workers = RayWorkers(lambda: Follower(build_game(source, config.network.suits), config), count)

    def run(self, job: TraversalJob, iterate: Iterate, pieces: Iterable[Any]) -> Iterator[Any]:
        """The results of the pieces of a job, in their order."""
        return self._workers.map(pieces, job, iterate)

    def close(self) -> None:
        """End the workers."""
        self._workers.close()
