"""Tests of the description of the machine and of this process."""

import math
import mmap
import os
import resource
from pathlib import Path

import pytest

from deepcfr.core.machine import resident_memory, usable_memory
from deepcfr.search.spot_solver import memory_for_spots

LARGE = 64 * 1024 * 1024


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="the system has no /proc")
def test_resident_memory_follows_what_is_held() -> None:
    before = resident_memory()
    with mmap.mmap(-1, LARGE) as held:
        for page in range(0, LARGE, mmap.PAGESIZE):
            held[page] = 1
        during = resident_memory()
    after = resident_memory()
    assert during - before == pytest.approx(LARGE, rel=0.1)
    assert during - after == pytest.approx(LARGE, rel=0.1)
    peak = 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # in KiB on Linux
    assert during <= 1.05 * peak
    usable = usable_memory()
    assert usable is not None
    assert 0 < usable < os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


SMALL = {"proc/meminfo": "MemTotal: 9000 kB\nMemFree: 10 kB\nMemAvailable:    5000 kB\n"}
V2 = {
    "proc/self/cgroup": "0::/pod/app\n",
    "sys/fs/cgroup/pod/memory.max": "3000000\n",
    "sys/fs/cgroup/pod/memory.current": "2000000\n",
    "sys/fs/cgroup/pod/memory.stat": "anon 1\ninactive_file 500000\n",
    "sys/fs/cgroup/pod/app/memory.max": "max\n",
    "sys/fs/cgroup/pod/app/memory.current": "100\n",
}
V1 = {
    "proc/self/cgroup": "12:cpu,cpuacct:/docker/a\n7:memory:/docker/a\n",
    "sys/fs/cgroup/memory/memory.limit_in_bytes": "2000000\n",  # the container sees its own group at the root
    "sys/fs/cgroup/memory/memory.usage_in_bytes": "1500000\n",
    "sys/fs/cgroup/memory/memory.stat": "inactive_file 1\ntotal_inactive_file 200000\n",
}


@pytest.mark.parametrize(
    "files, usable",
    [
        (SMALL, 5_120_000),
        (SMALL | V2, 1_500_000),
        (SMALL | V1, 700_000),
        (SMALL | V2 | {"sys/fs/cgroup/pod/memory.max": "9000000000\n"}, 5_120_000),
        (SMALL | V2 | {"sys/fs/cgroup/pod/memory.max": "1000000\n"}, 0),  # lowered meanwhile
    ],
)
def test_usable_memory_is_what_is_free_within_the_limits_of_containers(
    tmp_path: Path, files: dict[str, str], usable: int
) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert usable_memory(tmp_path) == usable


def test_a_system_that_does_not_tell_its_memory_has_an_unknown_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert usable_memory(tmp_path) == os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    monkeypatch.setattr(os, "sysconf_names", {})
    assert usable_memory(tmp_path) is None
    monkeypatch.setattr("deepcfr.search.spot_solver.usable_memory", lambda: None)
    assert memory_for_spots() == math.inf
    monkeypatch.setattr("deepcfr.search.spot_solver.usable_memory", lambda: 16)
    assert memory_for_spots() == 12
