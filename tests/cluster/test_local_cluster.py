"""The addresses that a cluster on this machine listens on."""

from pathlib import Path

import pytest

from systems import SRC, program

pytest.importorskip("ray")
LISTENING = """
import os, ray
from pathlib import Path
from deepcfr.cluster.ray_cluster import RayCluster

def parents(process):
    while process > 1:
        yield process
        process = int(Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[1])

def sockets():
    for process in (int(path.name) for path in Path("/proc").glob("[0-9]*")):
        try:
            if os.getpid() in parents(process):
                yield from (os.readlink(path) for path in Path(f"/proc/{process}/fd").iterdir())
        except OSError:  # it has ended
            pass

RayCluster("local", 1).connect()
ray.get(ray.remote(lambda: 1).remote())
ours = set(sockets())
for family in ("tcp", "tcp6"):
    for line in Path(f"/proc/net/{family}").read_text().splitlines()[1:]:
        words = line.split()
        if words[3] == "0A" and f"socket:[{words[9]}]" in ours:  # listening
            print(words[1].partition(":")[0])
"""
LOOPBACK = {"0100007F", "0000000000000000FFFF00000100007F", "00000000000000000000000001000000"}


@pytest.mark.ray
@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="the system has no /proc")
def test_a_local_cluster_listens_on_this_machine_only() -> None:
    said, problems = program(LISTENING, source=SRC).communicate()
    found = said.split()
    assert len(found) >= 4, problems
    assert set(found) <= LOOPBACK
