"""Debian's chromium, as the tests of pages drive it."""

import os
from pathlib import Path

import pytest

CHROMIUM = Path("/usr/bin/chromium")
QUIET = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip

needs_chromium = pytest.mark.skipif(
    not CHROMIUM.exists() and "REQUIRE_BROWSER" not in os.environ, reason="needs Debian's chromium"
)
