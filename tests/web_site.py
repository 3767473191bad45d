"""Sites for tests: shipped models by name, or games with agents made for a test."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from httpx import Response

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


class Person:
    """Somebody at the table of an agent, by the API."""

    def __init__(self, client: TestClient, name: str) -> None:
        self.client, self.name, self.path = client, name, f"/api/play/{name}"

    @property
    def state(self) -> dict[str, Any]:
        """The table as the person sees it."""
        return dict(self.client.get(self.path).json())

    def sit(self, **wish: Any) -> dict[str, Any]:
        """Take a seat, and see the table."""
        answer = self.client.post(self.path, json=wish)
        assert answer.status_code == 201
        return dict(answer.json())

    def act(self, token: str = "c", **change: Any) -> Response:
        """Act where the hand is; with `change` the body of the request has other values."""
        now = self.state
        body = {"hand": now["hand"], "decision": now["decision"], "action": token} | change
        return self.client.post(f"{self.path}/act", json=body)

    def finish(self, token: str = "c") -> dict[str, Any]:
        """Play the hand to its end with one action as long as it is legal, and calls."""
        while not (now := self.state)["over"]:
            legal = [action["token"] for action in now["actions"]]
            assert self.act(token if token in legal else "c").status_code == 200
        return now

    def next(self) -> dict[str, Any]:
        """Go on to the next hand."""
        return dict(self.client.post(f"{self.path}/next", json={"hand": self.state["hand"]}).json())
