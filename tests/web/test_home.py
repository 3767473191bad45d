"""The first page says what the agents are, and leads to them and to the form of spots."""

import re
from html import unescape
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from deepcfr.runs.listing import model_facts
from deepcfr.web.app import build_app
from deepcfr.web.site import open_site
from web_site import MODELS


@pytest.fixture
def page() -> str:
    """The first page of all shipped agents."""
    client = TestClient(build_app(open_site((), "own", pytest.fail)), base_url="http://127.0.0.1")
    return unescape(client.get("/").text)


def test_every_agent_is_told_from_the_others_by_what_its_records_say(page: str) -> None:
    facts = model_facts(MODELS)
    cards = page.split('<li class="panel">')[1:]
    assert len(cards) == len(facts) == len(set(cards))
    for card, model in zip(cards, facts, strict=True):
        assert f'<h3>{model["title"]} <small class="muted">{Path(model["model"]).name}</small></h3>' in card
        assert all(f"{model[part]}" in card for part in ("about", "strength", "made"))


def test_the_way_to_a_spot_comes_before_the_agents(page: str) -> None:
    assert re.search(
        r'<a class="button primary large" href="/spots">Solve a spot</a>.*<h2>Agents</h2>', page, re.DOTALL
    )


def test_an_agent_in_another_style_does_not_boast_with_the_figures_of_its_run() -> None:
    served = open_site((f"tight:{MODELS / 'kuhn'}",), "own", pytest.fail)
    (told,) = TestClient(build_app(served), base_url="http://127.0.0.1").get("/api/agents").json()["agents"]
    assert "plays another strategy" in told["strength"]
    assert "perfect opponent" not in told["strength"]
