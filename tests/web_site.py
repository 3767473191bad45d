"""Sites for tests: shipped models by name, or games with agents made for a test."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from deepcfr.game.poker import PokerGame
from deepcfr.play.costs import Costs
from deepcfr.policy.base import Policy
from deepcfr.run.folder import RunFolder
from deepcfr.web.app import build_app
from deepcfr.web.site import NamedRun, ServedAgent, Site

MODELS = Path(__file__).parents[1] / "models"


def model(name: str) -> NamedRun:
    """A shipped model."""
    return NamedRun(name, RunFolder.open(MODELS / name), "average", pytest.fail)


def agent(name: str, game: str, make: Callable[[PokerGame], Policy]) -> NamedRun:
    """An agent made for a test, under the folder of a shipped model of its game."""
    run = model(game)
    policy = make(run.folder.game())  # type: ignore[arg-type]
    run.name, run._agent = name, ServedAgent(policy, Costs(policy), None)  # type: ignore[arg-type]
    return run


def site(*runs: NamedRun) -> Site:
    """The site of some runs."""
    return Site({run.name: run for run in runs})


def client(*runs: NamedRun) -> TestClient:
    """Somebody who looks at the site of some runs, and fails the test at any error of the server itself."""
    return TestClient(build_app(site(*runs)), base_url="http://127.0.0.1", follow_redirects=False)
