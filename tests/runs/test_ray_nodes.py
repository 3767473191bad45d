"""A run on a simulated cluster of several machines that loses one of them and gets another."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from test_ray import CONFIG, Quiet, assert_same, run

from deepcfr.files import read_json

ray = pytest.importorskip("ray")
pytestmark = pytest.mark.ray

from ray.cluster_utils import Cluster  # noqa: E402

from deepcfr.runs.ray_collector import RayCluster  # noqa: E402


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


def test_a_machine_is_lost_and_another_comes(tmp_path: Path, machines: Cluster) -> None:
    alone = run(tmp_path / "alone", None)
    observer: Any = Quiet()
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
    assert CONFIG.cfr.iterations == 4
