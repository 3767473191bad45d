"""Learners on a Ray cluster: processes of Ray Train that fit networks together, on samples of the workers' shards."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count
from tempfile import TemporaryDirectory
from typing import Any

import ray
from ray import PlacementGroupID
from ray.exceptions import RayError
from ray.util.placement_group import PlacementGroup, placement_group_table, remove_placement_group

from deepcfr.cluster.examples import Order, ShardedExamples, Survey
from deepcfr.cluster.ray_hosts import LET_GO_SECONDS, RayHosts, lines
from deepcfr.cluster.remote import RemoteShards
from deepcfr.cluster.shard_host import Weights, arrays_of, put_arrays
from deepcfr.cluster.team import Team, fit_together
from deepcfr.config import FitConfig, RunConfig
from deepcfr.errors import DeepCFRError, WorkerLost
from deepcfr.games.presets import GameSource, build_game
from deepcfr.parallel import Workers
from deepcfr.rng import generator
from deepcfr.solvers.memories import objective_of
from deepcfr.training.examples import Examples
from deepcfr.training.fit import FitResult
from deepcfr.training.networks import SplitNetwork, build_network

_STEP_SECONDS = 120  # a learner waits for the gradients of the others


class LeftBehind:
    """The placement groups of learners that have ended, which still reserve cores.

    If Ray Train's controller was killed, Ray keeps these groups until the job ends (ray-project/ray, issue 65881). Ray
    Train's own cleanup misses learners that had not started yet, and all learners if there is no dashboard. Every group of
    this job that did not exist at the start is treated as one of them, so a job can have only one run at a time.
    """

    def __init__(self) -> None:
        self._others = self._groups()

    def remove(self) -> None:
        """Remove these groups. No learners may be running."""
        for name in self._groups() - self._others:
            remove_placement_group(PlacementGroup(PlacementGroupID.from_hex(name)))

    def _groups(self) -> set[str]:
        """The placement groups of this job; their identifiers end with the job's."""
        job, table = ray.get_runtime_context().get_job_id(), placement_group_table()
        return {name for name, facts in table.items() if name.endswith(job) and facts["state"] != "REMOVED"}


@dataclass(frozen=True)
class _Job:
    """A fit that learners are to run."""

    order: Order
    surveys: Mapping[int, Survey]
    weights: Weights
    stream: int


class _FitRequests:
    """The actor to which the driver sends fits, one after the other, and to which learners send their results."""

    def __init__(self) -> None:
        self._job: _Job | None = None  # the newest job
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
            assert number == self._given - 1, "a job is requested twice, and its memory may have changed"
            return self._job

    async def leave(self, number: int, result: tuple[Weights, FitResult] | DeepCFRError) -> None:
        async with self._news:
            self._results.setdefault(number, result)
            self._news.notify_all()

    async def result(self) -> tuple[Weights, FitResult] | DeepCFRError:
        """The result of the newest job."""
        async with self._news:
            number = self._given - 1
            await self._news.wait_for(lambda: number in self._results)
            return self._results.pop(number)


class RayLearners:
    """Processes of Ray Train that fit networks together until the run ends; an instance is a `Fitting`.

    Results depend on the number of learners, because each learner draws its own samples.
    """

    def __init__(
        self, source: GameSource, config: RunConfig, hosts: RayHosts, count: int, left_behind: LeftBehind
    ) -> None:
        self._left_behind = left_behind
        self._requests = ray.remote(_FitRequests).options(num_cpus=0).remote()
        # Restarted learners would not know the current fit, so nothing is retried: the run resumes from its checkpoint. The
        # process ends with the task (max_calls), because a failed one could keep the actors of Ray Train and their cores.
        team = ray.remote(num_cpus=0, max_retries=0, max_calls=1)(_run_team)
        settings = {"source": source, "config": config, "numbers": hosts.numbers, "actors": hosts.actors}
        self._ended = team.remote(settings | {"requests": self._requests}, count)

    def __call__(
        self,
        network: SplitNetwork,
        examples: Examples,
        config: FitConfig,  # noqa: ARG002
        stream: int,
        workers: Workers,  # noqa: ARG002
    ) -> FitResult:
        """Run a fit and wait for it.

        Raises any error of this package from the fit, and WorkerLost if the learners are lost.
        """
        assert isinstance(examples, ShardedExamples)
        job = _Job(examples.order, examples.surveys, arrays_of(network), stream)
        try:
            ray.get(self._requests.give.remote(job))
            result = self._requests.result.remote()
            done, _ = ray.wait([result, self._ended])
            if result not in done:
                ray.get(self._ended)
                raise WorkerLost("The learners ended before their fit.")
            found: tuple[Weights, FitResult] | DeepCFRError = ray.get(result)
        except RayError as error:
            reason = lines(error)[-1].split(". ")[0].rstrip(".")
            raise WorkerLost(f"The learners were lost: {reason}.") from error
        if isinstance(found, DeepCFRError):
            raise found
        weights, fitted = found
        put_arrays(network, weights)
        return fitted

    def close(self) -> None:
        """Wait until the learners end, and kill them after a timeout."""
        self._requests.give.remote(None)
        if not ray.wait([self._ended], timeout=LET_GO_SECONDS)[0]:
            ray.cancel(self._ended, force=True)
        ray.kill(self._requests)
        self._left_behind.remove()


def _run_team(settings: dict[str, Any], count: int) -> None:
    """Run the learners until they end; a Ray task."""
    from ray.train import FailureConfig, ScalingConfig
    from ray.train import RunConfig as TrainConfig
    from ray.train.torch import TorchConfig, TorchTrainer

    gpu = settings["config"].runtime.device != "cpu"
    at_once = FailureConfig(max_failures=0, controller_failure_limit=0, max_preemption_failures=0)
    with TemporaryDirectory() as folder:  # for Ray Train's records, which are not used
        TorchTrainer(
            _learn,
            train_loop_config=settings,
            torch_config=TorchConfig(backend="nccl" if gpu else "gloo", timeout_s=_STEP_SECONDS),
            scaling_config=ScalingConfig(num_workers=count, use_gpu=gpu),
            run_config=TrainConfig(storage_path=folder, failure_config=at_once),
        ).fit()


def _learn(settings: dict[str, Any]) -> None:
    """The loop of a learner: run every requested fit together with the other learners."""
    import ray.train
    import ray.train.torch

    config: RunConfig = settings["config"]
    context, requests, device = ray.train.get_context(), settings["requests"], str(ray.train.torch.get_device())
    team = Team(context.get_world_rank(), context.get_world_size())
    game = build_game(settings["source"], config.network.suits, device)
    shards = RemoteShards(RayHosts(settings["numbers"], settings["actors"]))
    for number in count():
        job: _Job | None = ray.get(requests.job.remote(number))
        if job is None:
            return
        network = build_network(game.encoding, config.network, generator(0)).to(device)
        put_arrays(network, job.weights)
        order = job.order
        objective = objective_of(game, order.memory, order.weights, order.iteration, order.config)
        examples = ShardedExamples(shards, order, objective, job.surveys)
        try:
            result = fit_together(network, examples, order.config, job.stream, team)
        except DeepCFRError as error:
            ray.get(requests.leave.remote(number, error))
            raise  # the other learners wait for these gradients, and end with this one
        if team.rank == 0:
            ray.get(requests.leave.remote(number, (arrays_of(network), result)))
