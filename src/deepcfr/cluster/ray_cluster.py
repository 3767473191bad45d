"""The Ray cluster of a run: joining it, its capacity, and its workers, each an actor with some shards or parts.

Only this module, `ray_hosts.py` and `ray_learners.py` import ray.
"""

from __future__ import annotations

import logging
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from threading import Thread

import ray
from ray._private import ray_constants
from ray.exceptions import RaySystemError

from deepcfr.abstraction.buckets import Abstraction
from deepcfr.cluster.parts import MergedRemotely, PartHost
from deepcfr.cluster.ray_hosts import LET_GO_SECONDS, RayHosts
from deepcfr.cluster.ray_learners import LeftBehind, RayLearners
from deepcfr.cluster.remote import RemoteCollector, shares
from deepcfr.cluster.shard_host import ShardHost
from deepcfr.config import RunConfig, SolveConfig
from deepcfr.defaults import LOCAL_CLUSTER
from deepcfr.errors import ClusterError, ConfigError
from deepcfr.games.base import Game
from deepcfr.games.presets import GameSource, build_game
from deepcfr.solvers.collector import Collecting
from deepcfr.solvers.first_round import FirstRoundTable
from deepcfr.solvers.sampled import MakeSampled, SampledSolver

_CONNECT_SECONDS = 20
_COME_BACK_SECONDS = 120  # a lost machine may return


class RayCluster:
    """The Ray cluster of a run's workers: one at an address, or one on this machine that ends with this process."""

    def __init__(self, address: str, workers: int, learners: int = 0, cores: int | None = None) -> None:
        """`cores` is the number of cores that a cluster started here assumes; None is the number of the machine."""
        if workers < 1:
            raise ConfigError(f"--workers must be at least 1, but is {workers}.")
        if learners < 0:
            raise ConfigError(f"--learners must not be negative, but is {learners}.")
        self.address, self.workers, self.learners, self._cores = address, workers, learners, cores
        self._left_behind: LeftBehind | None = None  # None until the first workers start

    @property
    def is_here(self) -> bool:
        """Whether the cluster consists of this machine only."""
        return self.address == LOCAL_CLUSTER

    def collecting(self, source: GameSource) -> Collecting:
        """The factory of the collector for a run of Deep CFR on the game."""

        def collector(game: Game, config: RunConfig, table: FirstRoundTable | None) -> RemoteCollector:
            if config.memory.shards == 1:
                raise ConfigError("On a cluster memories are in shards, but 'memory.shards' is 1.")
            numbers = self._shares(config.memory.shards, "memory.shards", "shard")
            self.connect()
            if config.runtime.device != "cpu" and self.learners:
                self._require("GPU", self.learners)
            hosts = RayHosts.begun(_shard_host, [(source, config, some) for some in numbers], numbers)
            if not self.learners:
                return RemoteCollector(game, config, table, hosts)
            assert self._left_behind
            learners = RayLearners(source, config, hosts, self.learners, self._left_behind)
            hosts.before_close = learners.close
            return RemoteCollector(game, config, table, hosts, learners)

        return collector

    def merging(
        self, solver: SampledSolver, make: MakeSampled, config: SolveConfig, abstraction: Abstraction | None
    ) -> MergedRemotely:
        """Start workers that run the parts of Monte Carlo CFR; `make` builds the solver of each worker."""
        numbers = self._shares(config.solve.parts, "solve.parts", "part")
        self.connect()
        buckets = ray.put(abstraction)  # sent once for all workers
        arguments = [(make, config, buckets, some, len(numbers), own) for own, some in enumerate(numbers)]
        return MergedRemotely(solver, RayHosts.begun(_part_host, arguments, numbers))

    def _shares(self, count: int, setting: str, thing: str) -> list[list[int]]:
        if count < self.workers:
            raise ConfigError(
                f"'{setting}' is {count:,}, and --workers is {self.workers:,}: every worker needs a {thing}."
            )
        return shares(count, self.workers)

    def connect(self) -> None:
        """Join the cluster, or start one here, and check that it has a core for each worker and learner.

        A cluster that had enough cores before may have lost a machine; wait some time for it. Raises ClusterError.
        """
        if not ray.is_initialized():
            _join(self.address, self._cores)
        needed, beside = self.workers + self.learners, f" and learners ({self.learners:,})" if self.learners else ""
        patience = _COME_BACK_SECONDS if self._left_behind else 0
        for resources, seconds, has in (
            (ray.cluster_resources, patience, "the cluster has"),
            (ray.available_resources, max(patience, LET_GO_SECONDS), "of those of the cluster are free only"),
        ):
            end = time.monotonic() + seconds
            while True:
                if self._left_behind:
                    self._left_behind.remove()
                if (there := resources().get("CPU", 0)) >= needed:
                    break
                if time.monotonic() >= end:
                    raise ClusterError(f"Workers ({self.workers:,}){beside} need a core each, and {has} {there:,.0f}.")
                time.sleep(0.5)
        self._left_behind = self._left_behind or LeftBehind()

    def _require(self, resource: str, needed: int) -> None:
        there = ray.cluster_resources().get(resource, 0)
        if there < needed:
            raise ClusterError(f"Learners ({needed:,}) need a {resource} each, and the cluster has {there:,.0f}.")


def _join(address: str, cores: int | None) -> None:
    quiet = {"include_dashboard": False, "log_to_driver": False, "logging_level": logging.ERROR}
    if address == LOCAL_CLUSTER:
        joins, ray_constants.ENABLE_RAY_CLUSTER = ray_constants.ENABLE_RAY_CLUSTER, False
        try:  # without clusters of several machines, Ray's processes listen on the loopback address only
            # in this thread, because the cluster's processes end with the thread that started them
            ray.init("local", num_cpus=cores, **quiet)
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
    _knock(address)
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


def _knock(address: str) -> None:
    """Raise ClusterError if nothing listens at the address."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal():
        raise ClusterError(f"'{address}' is no address of a Ray cluster: it should read HOST:PORT.")
    try:
        socket.create_connection((host, int(port)), timeout=5).close()
    except (OSError, OverflowError, UnicodeError) as error:  # UnicodeError: a name that cannot be one of a host
        raise ClusterError(f"Nothing answers at '{address}', so there is no Ray cluster: {error}.") from error


def _shard_host(source: GameSource, config: RunConfig, numbers: Sequence[int]) -> ShardHost:
    return ShardHost(build_game(source, config.network.suits), config, numbers)


def _part_host(
    make: MakeSampled,
    config: SolveConfig,
    abstraction: Abstraction | None,
    numbers: Sequence[int],
    slices: int,
    own: int,
) -> PartHost:
    alone = replace(config, runtime=replace(config.runtime, threads=1))
    return PartHost(make(alone, abstraction), numbers, slices, own)
