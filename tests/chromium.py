"""Debian's chromium, as the tests of pages drive it."""

import os
from pathlib import Path

import pytest
from playwright.sync_api import Page

CHROMIUM = Path("/usr/bin/chromium")
QUIET = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip

needs_chromium = pytest.mark.skipif(
    not CHROMIUM.exists() and "REQUIRE_BROWSER" not in os.environ, reason="needs Debian's chromium"
)

SCREENS = os.environ.get("DEEPCFR_SCREENS")  # the folder that pictures of the pages are written to, if it is wanted
COLOURS = 128  # of a picture

needs_a_folder = pytest.mark.skipif(not SCREENS, reason="DEEPCFR_SCREENS names no folder for pictures")


def take_picture(page: Page, name: str) -> int:
    """Write what a page shows to the folder for pictures, and return the bytes it takes."""
    image = pytest.importorskip("PIL.Image")
    path = Path(SCREENS or "") / f"{name}.png"
    path.parent.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=path)
    image.open(path).convert("RGB").quantize(COLOURS).save(path, optimize=True)
    return path.stat().st_size
