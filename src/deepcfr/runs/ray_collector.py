"""Traversals and memories on a Ray cluster; the only module that imports ray.

Every worker is an actor with a `ShardHost`. A run that loses one goes back to its newest checkpoint with new actors: what a
run computes depends on its seed, so what was lost is computed again, and nothing is counted twice or missing.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock, Thread
from typing import Any

import numpy as np
import ray
import torch
from ray import PlacementGroupID
from ray.exceptions import GetTimeoutError, RayError, RaySystemError, RayTaskError
from ray.util.placement_group import PlacementGroup, placement_group_table, remove_placement_group

import deepcfr
from deepcfr.abstraction.buckets import Abstraction
from deepcfr.config import FitConfig, RunConfig, SolveConfig
from deepcfr.defaults import LOCAL_CLUSTER
from deepcfr.errors import ClusterError, ConfigError, DeepCFRError, WorkerLost
from deepcfr.games.base import Game
from deepcfr.games.ladder import LadderRules
from deepcfr.games.ladder_betting import LadderGame
from deepcfr.games.presets import GameSource, build_game
from deepcfr.parallel import Workers
from deepcfr.rng import generator
from deepcfr.runs.ray_address import require_cluster
from deepcfr.solvers.build import build_ladder_solver, build_solver
from deepcfr.solvers.collector import Collecting
from deepcfr.solvers.first_round import FirstRoundTable
from deepcfr.solvers.memories import objective_of
from deepcfr.solvers.parts import MergedRemotely, PartHost
from deepcfr.solvers.remote import RemoteCollector, RemoteShards, shares
from deepcfr.solvers.sampled import SampledSolver
from deepcfr.solvers.shard_host import ShardHost, Weights, arrays_of, put_arrays
from deepcfr.training.fit import FitResult, fit
from deepcfr.training.networks import SplitNetwork, build_network
from deepcfr.training.shards import AnyExamples, Order, ShardedExamples, Survey
from deepcfr.training.team import Team

_CONNECT_SECONDS = 20
_COME_BACK_SECONDS = 120  # of a machine
_LET_GO_SECONDS = 15  # of cores, by actors that have just been ended
_STEP_SECONDS = 120  # of learners, for a gradient of the others
_START_SECONDS = 300  # of actors: importing torch and making tables of hand strengths takes a while


class RayCluster:
    """Where a run's workers are: the address of a Ray cluster, or one on this machine that lives as long as the process."""

    def __init__(self, address: str, workers: int, learners: int = 0, cores: int | None = None) -> None:
        """`cores` is how many a cluster that is begun here believes to have; None is as many as there are."""
        if workers < 1:
            raise ConfigError(f"--workers must be at least 1, but is {workers}.")
        if learners < 0:
            raise ConfigError(f"--learners must not be negative, but is {learners}.")
        self.address, self.workers, self.learners, self._cores = address, workers, learners, cores
        self._left_behind: _LeftBehind | None = None  # if workers have begun before

    @property
    def is_here(self) -> bool:
        """See `Cluster`."""
        return self.address == LOCAL_CLUSTER

    def collecting(self, source: GameSource) -> Collecting:
        """What makes the collector of a run of Deep CFR of the game."""

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
            hosts.learners = learners = RayLearners(source, config, hosts, self.learners, self._left_behind)
            return RemoteCollector(game, config, table, hosts, learners, learners.side_by_side)

        return collector

    def merging(
        self, solver: SampledSolver, source: GameSource, config: SolveConfig, abstraction: Abstraction | None
    ) -> MergedRemotely:
        """What runs the parts of a run of Monte Carlo CFR."""
        numbers = self._shares(config.solve.parts, "solve.parts", "part")
        self.connect()
        buckets = ray.put(abstraction)  # sent once for all workers
        arguments = [(source, config, buckets, some, len(numbers), own) for own, some in enumerate(numbers)]
        return MergedRemotely(solver, RayHosts.begun(_part_host, arguments, numbers))

    def _shares(self, count: int, setting: str, thing: str) -> list[list[int]]:
        if count < self.workers:
            raise ConfigError(
                f"'{setting}' is {count:,}, and --workers is {self.workers:,}: every worker needs a {thing}."
            )
        return shares(count, self.workers)

    def connect(self) -> None:
        """Join the cluster, or start one here, and see that the workers fit.

        One that had room before may have lost a machine, which gets some time to come back. Raises ClusterError.
        """
        if not ray.is_initialized():
            _join(self.address, self._cores)
        needed, beside = self.workers + self.learners, f" and learners ({self.learners:,})" if self.learners else ""
        patience = _COME_BACK_SECONDS if self._left_behind else 0
        for resources, seconds, has in (
            (ray.cluster_resources, patience, "the cluster has"),
            (ray.available_resources, max(patience, _LET_GO_SECONDS), "of those of the cluster are free only"),
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
        self._left_behind = self._left_behind or _LeftBehind()

    def _require(self, resource: str, needed: int) -> None:
        there = ray.cluster_resources().get(resource, 0)
        if there < needed:
            raise ClusterError(f"Learners ({needed:,}) need a {resource} each, and the cluster has {there:,.0f}.")


def _join(address: str, cores: int | None) -> None:
    quiet = {"include_dashboard": False, "log_to_driver": False, "logging_level": logging.ERROR}
    if address == LOCAL_CLUSTER:
        # in this thread, for the cluster's processes end with the thread that began them
        ray.init("local", num_cpus=cores, **quiet)
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
        reason = str(problem[0]).strip().splitlines()[0]
        raise ClusterError(f"'{address}' cannot be joined as a Ray cluster: {reason}")


class _LeftBehind:
    """The placement groups, and so the cores, of learners that have ended.

    If Ray Train's controller was killed, Ray keeps them for as long as the job lasts (ray-project/ray, issue 65881). Ray
    Train's cleaner knows nothing of learners that were about to begin, nor of any where there is no dashboard. Every group
    of this job that was not there from the first is taken for one of them, so a job can only have one run at a time.
    """

    def __init__(self) -> None:
        self._others = self._groups()

    def remove(self) -> None:
        """Let go of them. No learners may be there."""
        for name in self._groups() - self._others:
            remove_placement_group(PlacementGroup(PlacementGroupID.from_hex(name)))

    def _groups(self) -> set[str]:
        """Those of this job that there are, by their numbers, which end with the job's."""
        job, table = ray.get_runtime_context().get_job_id(), placement_group_table()
        return {name for name, facts in table.items() if name.endswith(job) and facts["state"] != "REMOVED"}


def _lines(error: BaseException) -> list[str]:
    return str(error).strip().splitlines() or [type(error).__name__]


@lru_cache
def code_version() -> str:
    """The version of everything that a worker computes with: equal ones compute the same."""
    digest = hashlib.blake2b(digest_size=8)
    root = Path(deepcfr.__file__).parent
    for path in sorted(root.rglob("*.py")):
        digest.update(path.relative_to(root).as_posix().encode() + path.read_bytes())
    python = ".".join(map(str, sys.version_info[:2]))
    return f"code {digest.hexdigest()}, Python {python}, torch {torch.__version__}, numpy {np.__version__}"


def _shard_host(source: GameSource, config: RunConfig, numbers: Sequence[int]) -> ShardHost:
    return ShardHost(build_game(source, config.network.suits), config, numbers)


def _part_host(
    source: GameSource,
    config: SolveConfig,
    abstraction: Abstraction | None,
    numbers: Sequence[int],
    slices: int,
    own: int,
) -> PartHost:
    alone = replace(config, runtime=replace(config.runtime, threads=1))
    if isinstance(source, LadderRules):
        return PartHost(build_ladder_solver(LadderGame(source), alone, abstraction), numbers, slices, own)
    solver = build_solver(build_game(source), alone, abstraction)
    assert isinstance(solver, SampledSolver)
    return PartHost(solver, numbers, slices, own)


_TRAVERSALS, _BLOCKS = "traversals", "blocks"  # what an actor can do at the same time, a thread for each


class _Worker:
    """The actor: an object, made here, whose methods are called by name."""

    def version(self) -> str:
        return code_version()

    def make(self, make: Callable[..., Any], *arguments: Any) -> None:
        self._host = make(*arguments)

    def call(self, method: str, *arguments: Any) -> Any:
        return getattr(self._host, method)(*arguments)


class RayHosts:
    """Actors on the cluster that `ray` is connected to; see `Hosts`."""

    def __init__(self, numbers: Sequence[Sequence[int]], actors: Sequence[Any]) -> None:
        self.numbers, self.actors = numbers, actors
        self.learners: RayLearners | None = None  # which draw from these, and end before them

    @classmethod
    def begun(
        cls, make: Callable[..., Any], arguments: Sequence[tuple[Any, ...]], numbers: Sequence[Sequence[int]]
    ) -> RayHosts:
        """New ones, which run the same code as this process; each makes its object of its `arguments`.

        Raises ClusterError if one runs other code or does not begin.
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
        """See `Hosts`."""
        return ray.put(value)

    def begin(self, host: int, method: str, *arguments: Any, results: int = 1) -> Sequence[Any]:
        """See `Hosts`."""
        thread = _TRAVERSALS if method == "collect" else _BLOCKS
        found = self.actors[host].call.options(num_returns=results, concurrency_group=thread).remote(method, *arguments)
        return [found] if results == 1 else list(found)

    def fetch(self, found: Any) -> Any:
        """See `Hosts`. Raises WorkerLost if the worker is gone, and what its method raised of this package's errors."""
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
            raise WorkerLost(f"A worker was lost: {_lines(cause)[0]}") from error

    def close(self) -> None:
        """See `Hosts`."""
        if self.learners:
            self.learners.close()
        for handle in self.actors:
            ray.kill(handle)


@dataclass(frozen=True)
class _Job:
    """A fit, as learners are told of it."""

    order: Order
    surveys: Mapping[int, Survey]
    weights: Weights
    stream: int


class _Desk:
    """An actor where the fits of a run are asked for, one after the other, and where their results are left."""

    def __init__(self) -> None:
        self._job: _Job | None = None  # the newest
        self._given = 0
        self._results: dict[int, tuple[Weights, FitResult] | DeepCFRError] = {}
        self._news = asyncio.Condition()

    async def give(self, job: _Job | None) -> None:
        async with self._news:
            self._job, self._given = job, self._given + 1
            self._news.notify_all()

    async def job(self, number: int) -> _Job | None:
        async with self._news:
            await self._news.wait_for(lambda: self._given > number)
            assert number == self._given - 1, "a job is asked for again, and its memory may be another by now"
            return self._job

    async def leave(self, number: int, result: tuple[Weights, FitResult] | DeepCFRError) -> None:
        async with self._news:
            self._results.setdefault(number, result)
            self._news.notify_all()

    async def result(self) -> tuple[Weights, FitResult] | DeepCFRError:
        """Of the newest job."""
        async with self._news:
            number = self._given - 1
            await self._news.wait_for(lambda: number in self._results)
            return self._results.pop(number)


class RayLearners:
    """Processes of Ray Train that fit networks together, for as long as the run lasts; see `Fitting`.

    With simultaneous updates the players have half of them each, and player 0's fit the average strategy, too. If that is
    due in every iteration, a third of them does nothing else; otherwise they would do nothing for too long. As with their
    number, what is learnt then depends on it, because it is others who draw.
    """

    def __init__(
        self, source: GameSource, config: RunConfig, hosts: RayHosts, count: int, left_behind: _LeftBehind
    ) -> None:
        wanted = 3 if config.evaluation.every == 1 else 2
        self.side_by_side = min(count, wanted) if config.cfr.updates == "simultaneous" else 1
        settings = {"source": source, "config": config, "numbers": hosts.numbers, "actors": hosts.actors}
        sizes = [len(range(team, count, self.side_by_side)) for team in range(self.side_by_side)]
        self._teams = [_RayTeam(settings, size) for size in sizes]
        self._left_behind = left_behind

    def __call__(
        self,
        network: SplitNetwork,
        examples: AnyExamples,
        config: FitConfig,  # noqa: ARG002
        stream: int,
        workers: Workers,  # noqa: ARG002
    ) -> FitResult:
        assert isinstance(examples, ShardedExamples)
        network_number = {"advantage-0": 0, "advantage-1": 1, "strategy": 2}[examples.order.memory]
        team = self._teams[network_number % len(self._teams)]
        weights, fitted = team.fit(_Job(examples.order, examples.surveys, arrays_of(network), stream))
        put_arrays(network, weights)
        return fitted

    def close(self) -> None:
        """Let them end, or end them."""
        for team in self._teams:
            team.close()
        self._left_behind.remove()


class _RayTeam:
    """Learners that fit one network at a time, and the desk where they are told of it."""

    def __init__(self, settings: dict[str, Any], size: int) -> None:
        self._desk = ray.remote(_Desk).options(num_cpus=0).remote()
        self._one_at_a_time = Lock()
        # Learners that begin anew would not know which fit they are asked for, so the run goes back to its checkpoint. With
        # the task its process ends (max_calls): one that failed could keep the actors of Ray Train, and their cores.
        team = ray.remote(num_cpus=0, max_retries=0, max_calls=1)(_run_team)
        self._ended = team.remote(settings | {"desk": self._desk}, size)

    def fit(self, job: _Job) -> tuple[Weights, FitResult]:
        """Wait for a fit, and before it for the one that is under way.

        Raises what it raised of this package's errors, and WorkerLost if the learners are gone.
        """
        with self._one_at_a_time:
            try:
                ray.get(self._desk.give.remote(job))
                result = self._desk.result.remote()
                done, _ = ray.wait([result, self._ended])
                if result not in done:
                    ray.get(self._ended)
                    raise WorkerLost("The learners ended before their fit.")
                found: tuple[Weights, FitResult] | DeepCFRError = ray.get(result)
            except RayError as error:
                reason = _lines(error)[-1].split(". ")[0].rstrip(".")
                raise WorkerLost(f"The learners were lost: {reason}.") from error
        if isinstance(found, DeepCFRError):
            raise found
        return found

    def close(self) -> None:
        """Let them end, or end them."""
        self._desk.give.remote(None)
        if not ray.wait([self._ended], timeout=_LET_GO_SECONDS)[0]:
            ray.cancel(self._ended, force=True)
        ray.kill(self._desk)


def _run_team(settings: dict[str, Any], count: int) -> None:
    """A task that lasts as long as the learners."""
    from ray.train import FailureConfig, ScalingConfig
    from ray.train import RunConfig as TrainConfig
    from ray.train.torch import TorchConfig, TorchTrainer

    gpu = settings["config"].runtime.device != "cpu"
    at_once = FailureConfig(max_failures=0, controller_failure_limit=0, max_preemption_failures=0)
    with TemporaryDirectory() as folder:  # of records that nobody reads
        TorchTrainer(
            _learn,
            train_loop_config=settings,
            torch_config=TorchConfig(backend="nccl" if gpu else "gloo", timeout_s=_STEP_SECONDS),
            scaling_config=ScalingConfig(num_workers=count, use_gpu=gpu),
            run_config=TrainConfig(storage_path=folder, failure_config=at_once),
        ).fit()


def _learn(settings: dict[str, Any]) -> None:
    """What each learner does: every fit that is asked for, with the others."""
    import ray.train
    import ray.train.torch

    config: RunConfig = settings["config"]
    context, desk, device = ray.train.get_context(), settings["desk"], str(ray.train.torch.get_device())
    team = Team(context.get_world_rank(), context.get_world_size())
    game = build_game(settings["source"], config.network.suits, device)
    shards, workers = RemoteShards(RayHosts(settings["numbers"], settings["actors"])), Workers(1)
    for number in count():
        job: _Job | None = ray.get(desk.job.remote(number))
        if job is None:
            return
        network = build_network(game.encoding, config.network, generator(0)).to(device)
        put_arrays(network, job.weights)
        order = job.order
        objective = objective_of(game, order.memory, order.weights, order.iteration, order.config)
        examples = ShardedExamples(shards, order, objective, job.surveys)
        try:
            result = fit(network, examples, order.config, job.stream, workers, team)
        except DeepCFRError as error:
            ray.get(desk.leave.remote(number, error))
            raise  # the others wait for this one's gradients, and are ended with it
        if team.rank == 0:
            ray.get(desk.leave.remote(number, (arrays_of(network), result)))
