"""Runs on a Ray cluster of this machine: the same as without it, whatever happens to the workers."""

import os
import signal
import socket
import socketserver
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest
import torch

from deepcfr.config import (
    AdvantageFitConfig,
    CFRConfig,
    ExternalSampling,
    FitConfig,
    MemoryConfig,
    NetworkConfig,
    RunConfig,
    RuntimeConfig,
    SolveConfig,
    TabularConfig,
)
from deepcfr.defaults import LOCAL_CLUSTER
from deepcfr.errors import ClusterError, ConfigError, WorkerLost
from deepcfr.files import read_json
from deepcfr.games.presets import load_game, load_source
from deepcfr.runs.folder import RunFolder
from deepcfr.runs.metrics import read_metrics
from deepcfr.runs.train import train
from deepcfr.solvers.deep_cfr import DeepCFR
from deepcfr.solvers.mccfr import MCCFR

ray = pytest.importorskip("ray")
pytestmark = pytest.mark.ray

from ray.cluster_utils import Cluster  # noqa: E402
from ray.util.placement_group import placement_group, placement_group_table, remove_placement_group  # noqa: E402

from deepcfr.cluster import ray_cluster, ray_hosts  # noqa: E402
from deepcfr.cluster.ray_cluster import RayCluster, require_cluster  # noqa: E402
from deepcfr.cluster.ray_hosts import RayHosts  # noqa: E402
from experiments.bench.scale import Workload, bench_scale  # noqa: E402

FIT = FitConfig(steps=20, batch_size=64)
ADVANTAGE = AdvantageFitConfig(**vars(FIT))
CONFIG = RunConfig(
    game="leduc",
    cfr=CFRConfig(iterations=4),
    sampling=ExternalSampling(traversals=60),
    memory=MemoryConfig(advantage_capacity=2_000, strategy_capacity=2_000, shards=3),
    network=NetworkConfig(kind="mlp", width=16, layers=1),
    advantage=ADVANTAGE,
    average=FIT,
    runtime=RuntimeConfig(threads=1, checkpoint_every=2),
)


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_worker_niceness", "0")  # other tests, beside these, need not go first
        ray.init(num_cpus=4, include_dashboard=False, log_to_driver=False, object_store_memory=200_000_000)
        yield
        ray.shutdown()


class Quiet:
    """An observer that keeps warnings, and may do something at the end of an iteration."""

    def __init__(self) -> None:
        self.warnings: list[str] = []
        self.at: dict[int, Any] = {}

    def warn(self, message: str) -> None:
        self.warnings.append(message)

    def iteration(self, record: Any, seconds: float) -> None:  # noqa: ARG002
        self.at.pop(record.iteration, lambda: None)()

    def __getattr__(self, name: str) -> Any:
        return lambda *_: None


def run(path: Path, cluster: RayCluster | None, observer: Quiet | None = None, config: RunConfig = CONFIG) -> DeepCFR:
    folder = RunFolder.create(path, config)
    assert train(folder, observer or Quiet(), cluster).finished  # type: ignore[arg-type]
    solver, _ = folder.load_solver(pytest.fail, memories=True)
    assert isinstance(solver, DeepCFR)
    return solver


def assert_same(one: DeepCFR, other: DeepCFR) -> None:
    assert (one.iteration, one.nodes_touched) == (other.iteration, other.nodes_touched)
    theirs = dict(other.memories.named())
    assert len(theirs) == 9
    for name, store in one.memories.named():
        assert store.seen == theirs[name].seen > 0
        contents = theirs[name].contents()
        assert all(torch.equal(column, contents[c]) for c, column in store.contents().items()), name
    both = [[*solver.advantage_networks, solver.average_network] for solver in (one, other)]
    for network, same in zip(*both, strict=True):
        assert network is not None
        assert same is not None
        state = same.state_dict()
        assert all(torch.equal(weight, state[name]) for name, weight in network.state_dict().items())


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> DeepCFR:
    return run(tmp_path_factory.mktemp("alone") / "run", None)


@pytest.mark.long
@pytest.mark.parametrize("workers", [1, 3])
def test_workers_change_nothing(tmp_path: Path, alone: DeepCFR, workers: int) -> None:
    assert_same(alone, run(tmp_path / "run", RayCluster(LOCAL_CLUSTER, workers)))


@pytest.fixture(scope="module")
def taught(tmp_path_factory: pytest.TempPathFactory) -> tuple[DeepCFR, Path]:
    """A run with two learners, which draw a share of every mini-batch, and its folder."""
    folder = tmp_path_factory.mktemp("taught") / "run"
    return run(folder, RayCluster(LOCAL_CLUSTER, 1, 2)), folder


def test_learners_fit_as_well_as_one_process_does(tmp_path: Path, taught: tuple[DeepCFR, Path]) -> None:
    """Each draws its own share, so that only the first loss can be alike."""
    run(tmp_path / "run", None)
    found = [read_metrics(folder / "metrics.jsonl")[0] for folder in (taught[1], tmp_path / "run")]
    assert found[0]["trained"] == found[1]["trained"] > 0
    assert found[0]["advantage_loss"] == pytest.approx(found[1]["advantage_loss"], rel=0.5)


def pids_of(title: str) -> list[int]:
    """The processes of this test whose title begins so."""
    found = []
    for pid in descendants(os.getpid()):
        with suppress(OSError):  # it has ended
            if Path(f"/proc/{pid}/cmdline").read_bytes().startswith(title.encode()):
                found.append(pid)
    return found


def descendants(pid: int) -> Iterator[int]:
    """List the descendants of a process. Source: proc_pid_task(5)."""
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):
            for child in map(int, children.read_text().split()):
                yield child
                yield from descendants(child)


class Killer:
    """Kills one process of a run at a time, and none of an earlier run or attempt, which may take its time to end."""

    def __init__(self, title: str) -> None:
        self.title = title
        self.old = set(pids_of(title))

    def new(self) -> set[int]:
        """The processes that have begun since the last kill."""
        return set(pids_of(self.title)) - self.old

    def __call__(self) -> None:
        new = self.new()
        assert new
        os.kill(min(new), signal.SIGKILL)
        self.old |= new


WORKER = "ray::_Worker"  # a process that has shards, or parts


def test_a_worker_that_dies_changes_nothing_and_is_reported(tmp_path: Path, alone: DeepCFR) -> None:
    observer = Quiet()
    observer.at = {3: Killer(WORKER)}
    assert_same(alone, run(tmp_path / "run", RayCluster(LOCAL_CLUSTER, 2), observer))
    (warning,) = observer.warnings
    assert "goes on from iteration 2" in warning
    assert "1 whole iterations" in warning
    losses = read_json(tmp_path / "run" / "environment.json")["losses"]
    assert [(loss["goes_on_from"], loss["done_again"]) for loss in losses] == [(2, 1)]
    assert [line["iteration"] for line in read_metrics(tmp_path / "run" / "metrics.jsonl")] == [1, 2, 3, 4]


@pytest.mark.long
def test_processes_that_die_beside_learners_change_nothing(tmp_path: Path, taught: tuple[DeepCFR, Path]) -> None:
    """Ray Train's controller, and one of two learners, for which the other one waits."""
    observer = Quiet()
    observer.at = {1: Killer("ray::TrainController"), 3: Killer("ray::RayTrainWorker")}
    solver = run(tmp_path / "run", RayCluster(LOCAL_CLUSTER, 1, 2), observer)
    assert len(observer.warnings) == 2
    assert_same(taught[0], solver)


def test_cores_that_learners_left_behind_are_let_go() -> None:
    """Ray keeps the placement group of a killed actor as long as the job lasts."""
    other = placement_group([{"CPU": 1}])
    cluster = RayCluster(LOCAL_CLUSTER, 3)
    try:
        assert other.wait(30)
        cluster.connect()
        left_behind = placement_group([{"CPU": 1}])
        assert left_behind.wait(30)
        cluster.connect()
        assert placement_group_table(left_behind)["state"] == "REMOVED"
        assert placement_group_table(other)["state"] == "CREATED"
    finally:
        remove_placement_group(other)


OF_A_TASK = ray.exceptions.RayTaskError


@pytest.mark.parametrize(
    ("error", "seen"),
    [
        (ray.exceptions.OutOfMemoryError("Too much.\nMore."), WorkerLost),
        (OF_A_TASK("call", "", ray.exceptions.TaskCancelledError()), WorkerLost),
        (OF_A_TASK("call", "", ConfigError("No.")), ConfigError),
        (OF_A_TASK("call", "", KeyError("none")), OF_A_TASK),
    ],
    ids=["of Ray", "of Ray within a task", "of this package", "of other code"],
)
def test_whatever_ray_says_of_a_loss_is_one(
    monkeypatch: pytest.MonkeyPatch, error: Exception, seen: type[Exception]
) -> None:
    def get(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr(ray, "get", get)
    with pytest.raises(seen) as found:
        RayHosts([], []).fetch(None)
    assert found.type is seen


def test_too_many_workers_are_refused() -> None:
    with pytest.raises(ConfigError, match="--workers must be at least 1"):
        RayCluster(LOCAL_CLUSTER, 0)
    with pytest.raises(ConfigError, match="every worker needs a shard"):
        RayCluster(LOCAL_CLUSTER, 4).collecting(load_source("leduc"))(None, CONFIG, None)  # type: ignore[arg-type]
    with pytest.raises(ClusterError, match=r"Workers \(5\) need a core each, and the cluster has 4"):
        RayCluster(LOCAL_CLUSTER, 5).connect()
    on_gpu = replace(CONFIG, runtime=replace(CONFIG.runtime, device="cuda"))
    with pytest.raises(ClusterError, match=r"Learners \(1\) need a GPU each, and the cluster has 0"):
        RayCluster(LOCAL_CLUSTER, 1, 1).collecting(load_source("leduc"))(None, on_gpu, None)  # type: ignore[arg-type]


def test_memories_in_one_piece_are_refused() -> None:
    whole = replace(CONFIG, memory=replace(CONFIG.memory, shards=1))
    with pytest.raises(ConfigError, match=r"'memory\.shards' is 1"):
        RayCluster(LOCAL_CLUSTER, 1).collecting(load_source("leduc"))(None, whole, None)  # type: ignore[arg-type]


def test_what_keeps_a_worker_from_beginning_is_said_and_leaves_none(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.touch()
    config = replace(CONFIG, memory=replace(CONFIG.memory, advantage_capacity=0, files=str(blocked)))
    worker = Killer(WORKER)
    with pytest.raises((ray.exceptions.RayTaskError, OSError)):
        RayCluster(LOCAL_CLUSTER, 1).collecting(load_source("leduc"))(load_game("leduc"), config, None)
    while worker.new():  # or until the test takes too long
        time.sleep(0.1)


def test_other_code_on_a_worker_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray_hosts, "code_version", lambda: "code of another day")
    with pytest.raises(ClusterError, match="code of another day"):
        RayCluster(LOCAL_CLUSTER, 1).collecting(load_source("leduc"))(load_game("leduc"), CONFIG, None)


def test_wrong_addresses_are_refused_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    for address, reason in (
        ("nowhere", "HOST:PORT"),
        ("127.0.0.1:1", "Nothing answers"),
        ("127.0.0.1:99999", "Nothing"),
        ("127.0.0.1:²", "HOST:PORT"),
        ("a..b:6379", "Nothing answers at 'a..b:6379'"),
    ):
        with pytest.raises(ClusterError, match=reason):
            RayCluster(address, 2).connect()


def test_a_server_that_says_nothing_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.setattr(ray_cluster, "_CONNECT_SECONDS", 3)
    with socket.create_server(("", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(ClusterError, match=f"no Ray cluster at '{address}': it did not answer within 3 seconds"):
            RayCluster(address, 2).connect()


def test_a_cluster_that_cannot_be_joined_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is there, and `ray.init` waits for a node of it on this machine."""
    address = ray.get_runtime_context().gcs_address
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.setattr(ray_cluster, "_CONNECT_SECONDS", 3)
    monkeypatch.setattr(ray_cluster, "require_cluster", lambda *_: None)
    monkeypatch.setattr(ray, "init", lambda *_, **__: time.sleep(10))
    with pytest.raises(ClusterError, match="could not be joined within 3 seconds: this machine has to be a node"):
        RayCluster(address, 2).connect()


def test_a_cluster_that_asks_for_a_token_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    address = ray.get_runtime_context().gcs_address
    monkeypatch.setenv("RAY_AUTH_MODE", "token")
    require_cluster(address, 20)  # lets in who has it
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    with pytest.raises(ClusterError, match="asks for a token: set RAY_AUTH_MODE=token"):
        RayCluster(address, 2).connect()


class _NotFound(socketserver.StreamRequestHandler):
    """Answers every question of HTTP/2 by the status 404. Source: RFC 9113, section 4.1, and RFC 7541, appendix A."""

    def handle(self) -> None:
        self.rfile.read(24)  # what everybody begins with
        self.wfile.write(bytes([0, 0, 0, 4, 0, 0, 0, 0, 0]))  # settings, none
        while header := self.rfile.read(9):
            self.rfile.read(int.from_bytes(header[:3], "big"))
            kind, stream = header[3], header[5:]
            if (
                kind == 1
            ):  # headers; so is the answer, of 1 byte, the last of its stream: 8 and 13, for the table's line
                self.wfile.write(bytes([0, 0, 1, 1, 5]) + stream + bytes([0x8D]))


def test_a_server_that_answers_otherwise_is_refused_in_one_sentence(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    with socketserver.ThreadingTCPServer(("", 0), _NotFound) as server:
        server.daemon_threads = True
        Thread(target=server.serve_forever, daemon=True).start()
        address = f"127.0.0.1:{server.server_address[1]}"
        with pytest.raises(
            ClusterError, match=rf"^'{address}' cannot be joined as a Ray cluster: RPC error: .* 404\.$"
        ):
            RayCluster(address, 2).connect()
        server.shutdown()
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("dies", [False, pytest.param(True, marks=pytest.mark.long)])
def test_monte_carlo_cfr_in_parts_is_the_same_on_a_cluster(tmp_path: Path, dies: bool) -> None:
    """Where one of two workers dies, too."""
    observer = Quiet()
    settings = TabularConfig("mccfr", iterations=6, traversals=60, parts=2, epoch=2)
    config = SolveConfig(game="leduc", solve=settings, runtime=RuntimeConfig(threads=1, checkpoint_every=2))
    tables = []
    for name, cluster in (("alone", None), ("workers", RayCluster(LOCAL_CLUSTER, 2))):
        folder = RunFolder.create(tmp_path / name, config)
        if cluster and dies:
            observer.at = {4: Killer(WORKER)}
        assert train(folder, observer, cluster).finished  # type: ignore[arg-type]
        solver, _ = folder.load_solver(pytest.fail, memories=True)
        assert isinstance(solver, MCCFR)
        tables.append(solver.arrays())
    for name, table in tables[0].items():
        assert np.count_nonzero(table)
        assert np.array_equal(table, tables[1][name])
    assert len(observer.warnings) == dies


# The rest has clusters of its own


@pytest.fixture
def machines() -> Iterator[Cluster]:
    """A head without cores, and two machines with a core each."""
    ray.shutdown()
    small = {"object_store_memory": 100_000_000}
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, **small})
    for _ in range(2):
        cluster.add_node(num_cpus=1, **small)
    ray.init(cluster.address, log_to_driver=False)
    yield cluster
    ray.shutdown()
    cluster.shutdown()


@pytest.mark.long
def test_a_machine_is_lost_and_another_comes(tmp_path: Path, alone: DeepCFR, machines: Cluster) -> None:
    observer = Quiet()
    nodes = [node for node in machines.list_all_nodes() if node is not machines.head_node]
    assert len(nodes) == 2

    def lose() -> None:
        machines.remove_node(nodes[0], allow_graceful=False)
        machines.add_node(num_cpus=1, object_store_memory=100_000_000)

    observer.at = {3: lose}
    assert_same(alone, run(tmp_path / "run", RayCluster(machines.address, 2), observer))
    assert len(observer.warnings) == 1
    assert "goes on from iteration 2" in observer.warnings[0]
    losses = read_json(tmp_path / "run" / "environment.json")["losses"]
    assert [(loss["goes_on_from"], loss["done_again"]) for loss in losses] == [(2, 1)]


@pytest.mark.long
def test_the_benchmark_measures_all_sides() -> None:
    said: list[str] = []
    load = Workload("fhp-mini", (1, 2), 1, workers_on_one_core=(1,), repetitions_on_one_core=1, traversals=50, steps=5)
    facts = bench_scale(0, said.append, load)
    sides = ["in_process", "workers_1", "workers_2"]
    assert len(said) == len(sides) + 4
    for side in sides:
        assert all(facts[side][name] > 0 for name in ("iteration_seconds", "fit_seconds", "block_seconds"))
        assert facts[side]["samples_an_iteration"] > 0
        assert ("broadcast_seconds" in facts[side]) == (side != "in_process")
    assert facts["workers_2"]["samples_an_iteration"] == facts["in_process"]["samples_an_iteration"]
    ratio = facts["workers_2"]["iteration_seconds"] / facts["in_process"]["iteration_seconds"]
    assert facts["overhead"] == pytest.approx(ratio - 1)
    pinned = facts["one_core"]
    ratio = pinned["workers_1"]["iteration_seconds"] / pinned["in_process"]["iteration_seconds"]
    assert facts["overhead_on_one_core"] == pytest.approx(ratio - 1)
