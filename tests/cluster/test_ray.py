"""Runs on a Ray cluster of this machine: the same as without it, whatever happens to the workers."""

import os
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from deepcfr.config import CFRConfig, RunConfig, SamplingConfig
from deepcfr.core.errors import ClusterError, ConfigError
from deepcfr.core.files import read_json
from deepcfr.defaults import LOCAL_CLUSTER
from deepcfr.run.folder import RunFolder
from deepcfr.run.spots import SpotFolder, read_jobs, solve_jobs
from deepcfr.run.train import train

ray = pytest.importorskip("ray")
pytestmark = pytest.mark.ray

from ray.cluster_utils import Cluster  # noqa: E402

from deepcfr.cluster import ray_cluster, ray_workers  # noqa: E402
from deepcfr.cluster.ray_cluster import RayCluster, require_cluster  # noqa: E402
from deepcfr.cluster.ray_workers import RayWorkers  # noqa: E402
from tables import small_config  # noqa: E402

FIT = {"steps": 10, "batch_size": 64}
HISTORIES = small_config(
    game="leduc",
    cfr=CFRConfig(),
    sampling=SamplingConfig(traversals=5_000),
    memory={"capacity": 2_000},
    network={"kind": "mlp", "width": 16, "layers": 1},
    advantage=FIT,
    average=FIT,
    checkpoint_seconds=0,
)
DRAWN, FIXED = (
    replace(HISTORIES, sampling=SamplingConfig(kind="public-chance", boards=3, samples=60, panel=panel))
    for panel in (False, True)
)


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_worker_niceness", "0")  # other tests, beside these, need not go first
        patch.setenv("RAY_prestart_worker_first_driver", "0")
        ray.init(num_cpus=4, include_dashboard=False, log_to_driver=False, object_store_memory=200_000_000)
        yield
        ray.shutdown()


class Quiet:
    """An observer that forbids warnings, and may do something at the end of an iteration."""

    def __init__(self) -> None:
        self.at: dict[int, Any] = {}

    def warn(self, message: str) -> None:
        pytest.fail(message)

    def iteration(self, record: Any, seconds: float) -> None:  # noqa: ARG002
        self.at.pop(record.iteration, lambda: None)()

    def __getattr__(self, name: str) -> Any:
        return lambda *_: None


def run(path: Path, cluster: RayCluster | None, config: RunConfig, observer: Quiet | None = None) -> Path:
    """Train a run, and return the folder of its last checkpoint."""
    folder = RunFolder.create(path, config)
    assert train(folder, observer or Quiet(), cluster).finished  # type: ignore[arg-type]
    return path / "checkpoints" / f"{config.iterations:07}"


def assert_same(one: Path, other: Path) -> None:
    """The bytes of checkpoints, which differ in the seconds that they took."""
    names = {path.name for path in one.iterdir()}
    assert names == {path.name for path in other.iterdir()}
    assert len(names) > 4
    for name in names - {"state.json"}:
        assert (one / name).read_bytes() == (other / name).read_bytes(), name
    states = [read_json(folder / "state.json") for folder in (one, other)]
    assert {name for name in states[0] if states[0][name] != states[1][name]} <= {"seconds", "checksum"}


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run on fixed boards without a cluster."""
    return run(tmp_path_factory.mktemp("alone") / "run", None, FIXED)


@pytest.mark.parametrize(
    ("config", "workers"),
    [(HISTORIES, 2), (DRAWN, 1), (FIXED, 3)],
    ids=["histories", "drawn boards", "fixed boards"],
)
@pytest.mark.long  # as a run whose worker dies
def test_workers_change_nothing(tmp_path: Path, config: RunConfig, workers: int) -> None:
    there = run(tmp_path / "there", RayCluster(LOCAL_CLUSTER, workers), config)
    assert_same(run(tmp_path / "here", None, config), there)


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


WORKER = "ray::_Worker"


def test_a_worker_that_dies_changes_nothing(tmp_path: Path, alone: Path) -> None:
    observer = Quiet()
    observer.at = {2: Killer(WORKER)}
    assert_same(alone, run(tmp_path / "run", RayCluster(LOCAL_CLUSTER, 2), FIXED, observer))


def test_a_piece_is_done_again_and_given_up_after_some_losses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "asked"

    def work(piece: int, more: int) -> int:
        """Piece 2 ends its process."""
        if piece == 2:
            with file.open("a") as times:
                times.write("x")
            os.kill(os.getpid(), signal.SIGKILL)
        return piece + more

    monkeypatch.setattr(ray_workers, "_TRIES", 1)
    workers = RayWorkers(lambda: work, 1)
    try:
        assert list(workers.map(range(2), 10)) == [10, 11]
        with pytest.raises(ClusterError, match="A worker was lost"):
            list(workers.map([2], 10))
        assert file.read_text() == "xx"
    finally:
        workers.close()


OF_A_TASK = ray.exceptions.RayTaskError


@pytest.mark.parametrize(
    ("error", "seen"),
    [
        (ray.exceptions.OutOfMemoryError("Too much.\nMore."), ClusterError),
        (OF_A_TASK("call", "", ray.exceptions.TaskCancelledError()), ClusterError),
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
        RayWorkers(lambda: abs, 1)
    assert found.type is seen


def test_too_many_workers_are_refused() -> None:
    with pytest.raises(ConfigError, match="--workers must be at least 1"):
        RayCluster(LOCAL_CLUSTER, 0)
    with pytest.raises(ClusterError, match=r"Workers \(5\) need a core each, and the cluster has 4"):
        RayCluster(LOCAL_CLUSTER, 5).connect()


def test_other_code_on_a_worker_is_refused_and_leaves_none(monkeypatch: pytest.MonkeyPatch) -> None:
    worker = Killer(WORKER)
    monkeypatch.setattr(ray_workers, "code_version", lambda: "code of another day")
    with pytest.raises(ClusterError, match="code of another day"):
        RayWorkers(lambda: abs, 1)
    while worker.new():  # or until the test takes too long
        time.sleep(0.1)


def test_what_cannot_be_joined_is_refused_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    own = ray.get_runtime_context().gcs_address
    monkeypatch.setenv("RAY_AUTH_MODE", "token")
    require_cluster(own, 20)  # lets in who has it
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    monkeypatch.setattr(ray, "is_initialized", lambda: False)

    def refused(address: str, sentence: str) -> None:
        with pytest.raises(ClusterError, match=sentence):
            RayCluster(address, 2).connect()

    refused(own, "asks for a token: set RAY_AUTH_MODE=token")
    refused("nowhere", "HOST:PORT")
    refused("127.0.0.1:1", "Nothing answers")
    refused("127.0.0.1:99999", "Nothing")
    refused("127.0.0.1:²", "HOST:PORT")
    refused("a..b:6379", "Nothing answers at 'a..b:6379'")
    monkeypatch.setattr(ray_cluster, "_CONNECT_SECONDS", 1)
    with socket.create_server(("", 0)) as server:  # says nothing
        address = f"127.0.0.1:{server.getsockname()[1]}"
        refused(address, f"no Ray cluster at '{address}': it did not answer within 1 second")
    # it is there, and `ray.init` waits for a node of it on this machine
    monkeypatch.setattr(ray_cluster, "require_cluster", lambda *_: None)
    monkeypatch.setattr(ray, "init", lambda *_, **__: time.sleep(5))
    refused(own, "could not be joined within 1 seconds?: this machine has to be a node")


def test_spots_are_solved_by_workers_as_by_this_process() -> None:
    given = {"pot": 10, "stacks": 20, "dealer": "AA,QQ", "big_blind": "KK,77", "sizes": "river 50", "exploitability": 1}
    jobs = read_jobs(given | {"boards": ["Qs 7h 2c 9d 4s", "Ah Kd Qc 7s 2s", "Ts 9s 8s 2c 2d"]}, say=pytest.fail)
    here, there = (
        solve_jobs(jobs, SpotFolder(None), cluster=cluster) for cluster in (None, RayCluster(LOCAL_CLUSTER, 2))
    )
    assert [spot.name for spot in there.spots] == [job.name for job in jobs]
    for one, other in zip(here.spots, there.spots, strict=True):
        assert one.solution | {"seconds": 0} == other.solution | {"seconds": 0}


# The rest has clusters of its own


def listening(family: str) -> Iterator[str]:
    """The addresses where this process and its descendants listen, as /proc/net has them."""
    ours = set()
    for pid in (os.getpid(), *descendants(os.getpid())):
        with suppress(OSError):  # it has ended
            ours |= {os.readlink(path) for path in Path(f"/proc/{pid}/fd").iterdir()}
    for line in Path(f"/proc/net/{family}").read_text().splitlines()[1:]:
        words = line.split()
        if words[3] == "0A" and f"socket:[{words[9]}]" in ours:
            yield words[1].partition(":")[0]


LOOPBACK = {"0100007F", "0000000000000000FFFF00000100007F", "00000000000000000000000001000000"}


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="the system has no /proc")
def test_a_cluster_on_this_machine_listens_on_this_machine_only() -> None:
    ray.shutdown()
    RayCluster(LOCAL_CLUSTER, 1).connect()
    ray.get(ray.remote(lambda: 1).remote())
    found = [*listening("tcp"), *listening("tcp6")]
    ray.shutdown()
    assert len(found) >= 4
    assert set(found) <= LOOPBACK


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
def test_a_machine_is_lost_and_another_comes(
    tmp_path: Path, alone: Path, machines: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And then another one is lost, and none comes."""
    observer = Quiet()
    nodes = [node for node in machines.list_all_nodes() if node is not machines.head_node]

    def lose() -> None:
        machines.remove_node(nodes.pop(), allow_graceful=False)

    def lose_one_of_many() -> None:
        lose()
        machines.add_node(num_cpus=1, object_store_memory=100_000_000)

    observer.at = {2: lose_one_of_many}
    assert_same(alone, run(tmp_path / "run", RayCluster(machines.address, 2), FIXED, observer))
    monkeypatch.setattr(ray_workers, "_LOOK_SECONDS", 1)
    monkeypatch.setattr(ray_workers, "COME_BACK_SECONDS", 2)
    observer.at = {1: lose}
    with pytest.raises(ClusterError, match="and the cluster has only 1 any more"):
        run(tmp_path / "lost", RayCluster(machines.address, 2), FIXED, observer)
