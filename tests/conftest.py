"""Profiles of hypothesis: `fixed` tries the same examples every time, `random` others each time (`make test-all`).

And the browser of the tests of pages.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from playwright.sync_api import Browser

# Tests run side by side, one process per core. Set before torch is imported; the processes that tests start inherit it.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# Large tables that this run of the tests makes are its own, one for all processes; it ends with the first of them.
if "PYTEST_XDIST_WORKER" not in os.environ:
    CACHE = tempfile.TemporaryDirectory(prefix="deepcfr-tests-")
    os.environ["DEEPCFR_CACHE"] = CACHE.name

CALM = (HealthCheck.too_slow, HealthCheck.function_scoped_fixture)
settings.register_profile(
    "fixed", max_examples=50, deadline=None, suppress_health_check=CALM, derandomize=True, database=None
)
settings.register_profile("random", deadline=None, suppress_health_check=CALM)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    from playwright.sync_api import sync_playwright

    from chromium import CHROMIUM, QUIET

    with sync_playwright() as driver:
        running = driver.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        yield running
        running.close()
