"""Profiles of hypothesis: `fixed` tries the same examples every time, `random` others each time (`make test-all`)."""

import os

from hypothesis import HealthCheck, settings

# Tests run side by side, one process per core. Set before torch is imported; the processes that tests start inherit it.
os.environ.setdefault("OMP_NUM_THREADS", "1")

CALM = (HealthCheck.too_slow, HealthCheck.function_scoped_fixture)
settings.register_profile("fixed", deadline=None, suppress_health_check=CALM, derandomize=True, database=None)
settings.register_profile("random", deadline=None, suppress_health_check=CALM)
