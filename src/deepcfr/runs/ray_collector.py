"""Traversals and memories on a Ray cluster; the only module that imports ray.

Every worker is an actor with a `ShardHost`. A run that loses one goes back to its newest checkpoint with new actors: what a
run computes depends on its seed, so what was lost is computed again, and nothing is counted twice or missing.
"""

from __future__ import annotations

import hashlib
import logging
import socket
import sys
import time
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import ray
import torch
from ray.exceptions import GetTimeoutError, ObjectLostError, RayActorError, RaySystemError, RayTaskError

import deepcfr
from deepcfr.config import RunConfig
from deepcfr.defaults import LOCAL_CLUSTER
from deepcfr.errors import ClusterError, ConfigError, DeepCFRError, WorkerLost
from deepcfr.games.base import Game
from deepcfr.games.presets import GameSource, build_game
from deepcfr.solvers.first_round import FirstRoundTable
from deepcfr.solvers.remote import RemoteCollector, shares
from deepcfr.solvers.shard_host import ShardHost

_CONNECT_SECONDS = 20
_PATIENCE_SECONDS = 120
_START_SECONDS = 300  # of actors: importing torch and making tables of hand strengths takes a while


class RayCluster:
    """Where a run's workers are: the address of a Ray cluster, or one on this machine that lives as long as the process."""

    def __init__(self, address: str, workers: int) -> None:
        if workers < 1:
            raise ConfigError(f"--workers must be at least 1, but is {workers}.")
        self.address, self.workers = address, workers
        self._patience = 0  # seconds

    def collecting(self, source: GameSource) -> Callable[[Game, RunConfig, FirstRoundTable | None], RemoteCollector]:
        """What makes the collector of a run of the game; see `Collecting`."""

        def collector(game: Game, config: RunConfig, table: FirstRoundTable | None) -> RemoteCollector:
            shards = config.memory.shards
            if shards < self.workers:
                raise ConfigError(
                    f"'memory.shards' is {shards:,}, and there are {self.workers:,} workers: every one needs a shard."
                )
            self.connect()
            return RemoteCollector(game, config, table, RayHosts(source, config, self.workers))

        return collector

    def connect(self) -> None:
        """Join the cluster, or start one here, and see that the workers fit.

        One that had room before may have lost a machine, which gets some time to come back. Raises ClusterError.
        """
        if not ray.is_initialized():
            _join(self.address)
        end = time.monotonic() + self._patience
        while (there := ray.cluster_resources().get("CPU", 0)) < self.workers:
            if time.monotonic() >= end:
                raise ClusterError(f"{self.workers:,} workers need as many cores, and the cluster has {there:,.0f}.")
            time.sleep(1)
        self._patience = _PATIENCE_SECONDS


def _join(address: str) -> None:
    quiet = {"include_dashboard": False, "log_to_driver": False, "logging_level": logging.ERROR}
    if address == LOCAL_CLUSTER:
        ray.init(**quiet)  # in this thread, for the cluster's processes end with the thread that began them
        return
    _knock(address)
    problem: list[BaseException] = []

    def init() -> None:
        try:
            ray.init(address, **quiet)
        except (ConnectionError, RuntimeError, ValueError, OSError, RaySystemError) as error:
            problem.append(error)

    # a server that is there and is not Ray's makes ray.init wait for minutes
    waiting = Thread(target=init, daemon=True)
    waiting.start()
    waiting.join(_CONNECT_SECONDS)
    if waiting.is_alive():
        raise ClusterError(
            f"There is no Ray cluster at '{address}': it did not answer within {_CONNECT_SECONDS} seconds."
        )
    if problem:
        reason = str(problem[0]).strip().splitlines()[0]
        raise ClusterError(f"'{address}' cannot be joined as a Ray cluster: {reason}")


def _knock(address: str) -> None:
    """Raise ClusterError if nothing listens at the address."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit():
        raise ClusterError(f"'{address}' is no address of a Ray cluster: it should read HOST:PORT.")
    try:
        socket.create_connection((host, int(port)), timeout=5).close()
    except (OSError, OverflowError) as error:
        raise ClusterError(f"Nothing answers at '{address}', so there is no Ray cluster: {error}.") from error


@lru_cache
def code_version() -> str:
    """The version of everything that a worker computes with: equal ones compute the same."""
    digest = hashlib.blake2b(digest_size=8)
    root = Path(deepcfr.__file__).parent
    for path in sorted(root.rglob("*.py")):
        digest.update(path.relative_to(root).as_posix().encode() + path.read_bytes())
    python = ".".join(map(str, sys.version_info[:2]))
    return f"code {digest.hexdigest()}, Python {python}, torch {torch.__version__}, numpy {np.__version__}"


class _Worker:
    """The actor: a `ShardHost` whose methods are called by name."""

    def __init__(self, source: GameSource, config: RunConfig, numbers: Sequence[int]) -> None:
        self._host = ShardHost(build_game(source, config.network.suits), config, numbers)

    def version(self) -> str:
        return code_version()

    def call(self, method: str, *arguments: Any) -> Any:
        return getattr(self._host, method)(*arguments)


class RayHosts:
    """Actors on the cluster that `ray` is connected to; see `Hosts`."""

    def __init__(self, source: GameSource, config: RunConfig, count: int) -> None:
        self.numbers = shares(config.memory.shards, count)
        actor = ray.remote(_Worker).options(num_cpus=1)
        self._actors = [actor.remote(source, config, numbers) for numbers in self.numbers]
        for worker, handle in enumerate(self._actors):
            found = self._wait(handle.version.remote(), worker, _START_SECONDS)
            if found != code_version():
                self.close()
                raise ClusterError(f"Worker {worker} has {found}, and this process has {code_version()}.")

    def put(self, value: Any) -> Any:
        """See `Hosts`."""
        return ray.put(value)

    def ask(self, host: int, method: str, *arguments: Any) -> Callable[[], Any]:
        """See `Hosts`. What waits raises WorkerLost if the worker is gone."""
        found = self._actors[host].call.remote(method, *arguments)
        return lambda: self._wait(found, host)

    def _wait(self, found: Any, worker: int, seconds: float | None = None) -> Any:
        try:
            return ray.get(found, timeout=seconds)
        except (RayActorError, ObjectLostError) as error:
            reason = str(error).strip().splitlines()[0]
            raise WorkerLost(f"Worker {worker} was lost: {reason}") from error
        except GetTimeoutError as error:
            raise WorkerLost(f"Worker {worker} did not start within {seconds:.0f} seconds.") from error
        except RayTaskError as error:
            if isinstance(error.cause, DeepCFRError):
                raise error.cause from error
            raise

    def close(self) -> None:
        """See `Hosts`."""
        for handle in self._actors:
            ray.kill(handle)
