"""The Ray cluster of a run: joining it, its capacity, and its workers. Only this folder imports ray."""

from __future__ import annotations

import logging
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from threading import Thread
from typing import Any

import ray
from ray._private import ray_constants
from ray.exceptions import RaySystemError

from deepcfr.cluster.ray_workers import RayTraversals, RayWorkers
from deepcfr.config import RunConfig
from deepcfr.core.errors import ClusterError, require_least
from deepcfr.defaults import LOCAL_CLUSTER
from deepcfr.game.presets import GameSource

_CONNECT_SECONDS = 20
_LET_GO_SECONDS = 15  # ended actors release their cores


class RayCluster:
    """The Ray cluster of a run's workers: one at an address, or one on this machine that ends with this process."""

    def __init__(self, address: str, workers: int) -> None:
        require_least(1, {"--workers": workers})
        self.address, self.workers = address, workers

    def traversals(self, source: GameSource, config: RunConfig) -> RayTraversals:
        """Start workers that run the traversals of a run of Deep CFR."""
        self.connect()
        return RayTraversals(source, config, self.workers)

    def map(self, make: Callable[[], Callable[..., Any]], pieces: Iterable[Any]) -> Iterator[Any]:
        """The results of pieces of work in their order, by workers that each `make` a function; they end with it."""
        self.connect()
        workers = RayWorkers(make, self.workers)
        try:
            yield from workers.map(pieces)
        finally:
            workers.close()

    def connect(self) -> None:
        """Join the cluster, or start one here, and check that it has a free core for each worker. Raises ClusterError."""
        if not ray.is_initialized():
            _join(self.address)
        for resources, seconds, has in (
            (ray.cluster_resources, 0, "the cluster has"),
            (ray.available_resources, _LET_GO_SECONDS, "of those of the cluster are free only"),
        ):
            end = time.monotonic() + seconds
            while (cores := resources().get("CPU", 0)) < self.workers:
                if time.monotonic() >= end:
                    raise ClusterError(f"Workers ({self.workers:,}) need a core each, and {has} {cores:,.0f}.")
                time.sleep(0.5)


def _join(address: str) -> None:
    quiet = {"include_dashboard": False, "log_to_driver": False, "logging_level": logging.ERROR}
    if address == LOCAL_CLUSTER:
        joins, ray_constants.ENABLE_RAY_CLUSTER = ray_constants.ENABLE_RAY_CLUSTER, False
        try:  # without clusters of several machines, Ray's processes listen on the loopback address only
            # in this thread, because the cluster's processes end with the thread that started them
            ray.init("local", **quiet)
        finally:
            ray_constants.ENABLE_RAY_CLUSTER = joins
        return
    require_cluster(address, _CONNECT_SECONDS)
    problem: list[BaseException] = []

    def init() -> None:
        try:
            ray.init(address, **quiet)
        except (ConnectionError, RuntimeError, ValueError, OSError, RaySystemError) as error:
            problem.append(error)

    # where no node of the cluster is on this machine, ray.init may wait for minutes
    waiting = Thread(target=init, daemon=True)
    waiting.start()
    waiting.join(_CONNECT_SECONDS)
    if waiting.is_alive():
        raise ClusterError(
            f"The Ray cluster at '{address}' could not be joined within {_CONNECT_SECONDS} seconds: this machine has to be "
            f"a node of it (ray start --address={address})."
        )
    if problem:
        reason = (str(problem[0]).strip() or type(problem[0]).__name__).splitlines()[0].rstrip(".")
        raise ClusterError(f"'{address}' cannot be joined as a Ray cluster: {reason}.")


def require_cluster(address: str, seconds: float) -> None:
    """Raise ClusterError unless a Ray cluster answers at HOST:PORT within `seconds` and accepts this machine.

    The check runs in a process that can be killed, because Ray would retry for minutes and print a line each time.
    """
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal():
        raise ClusterError(f"'{address}' is no address of a Ray cluster: it should read HOST:PORT.")
    try:
        socket.create_connection((host, int(port)), timeout=5).close()
    except (OSError, OverflowError, UnicodeError) as error:  # UnicodeError: a name that cannot be one of a host
        raise ClusterError(f"Nothing answers at '{address}', so there is no Ray cluster: {error}.") from error
    command = [sys.executable, "-m", "ray.scripts.scripts", "status", "--address", address]
    try:
        found = subprocess.run(command, capture_output=True, text=True, timeout=seconds)
    except subprocess.TimeoutExpired as error:
        raise ClusterError(
            f"There is no Ray cluster at '{address}': it did not answer within {seconds} seconds."
        ) from error
    if found.returncode == 0:
        return
    if "AuthenticationError" in found.stderr:
        raise ClusterError(
            f"The Ray cluster at '{address}' asks for a token: set RAY_AUTH_MODE=token, and, unless there is the token of "
            "its machines in ~/.ray/auth_token here, RAY_AUTH_TOKEN."
        )
    reasons = [line.partition(": ")[2] for line in found.stderr.splitlines() if "Error: " in line]
    reason = reasons[-1].rstrip(".") if reasons else "it does not say why"
    raise ClusterError(f"'{address}' cannot be joined as a Ray cluster: {reason}.")
