"""Tests of the description of the machine and of this process."""

import mmap
import os
import resource
from pathlib import Path

import pytest

from deepcfr.machine import physical_memory, resident_memory

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
    assert during < physical_memory() == os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
