"""Games without cards, of OpenSpiel and written as classes: played and shown by infosets, or refused with a sentence."""

import importlib
import io
import re
import sys
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any

import pytest
import torch
from fastapi.testclient import TestClient
from rich.console import Console

from command_line import deepcfr
from deepcfr.core.types import Infosets
from deepcfr.game import presets
from deepcfr.play.terminal import play
from deepcfr.policy.base import Policy
from deepcfr.run.folder import RunFolder
from deepcfr.web.app import build_app, warm_up
from deepcfr.web.site import NamedRun
from web_site import Person, client, site

GAMES = {"kuhn": "openspiel:kuhn_poker", "leduc": "class_games:Leduc"}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, NamedRun]:
    folder = tmp_path_factory.mktemp("histories")
    for name, game in GAMES.items():
        assert deepcfr("solve", game, "--iterations", 20, "--out", folder / name, "--json").status == 0
    return {name: NamedRun(name, RunFolder.open(folder / name), "own", pytest.fail) for name in GAMES}


@pytest.fixture
def people(runs: dict[str, NamedRun]) -> TestClient:
    return client(*runs.values())


def act(person: Person, place: int) -> dict[str, Any]:
    """Take the action at a place in the list."""
    return dict(person.act(person.state["actions"][place]["token"]).json())


@pytest.mark.parametrize("name", GAMES)
def test_hands_are_those_of_the_terminal_and_what_the_agent_did_is_told_at_the_end(
    people: TestClient, runs: dict[str, NamedRun], name: str
) -> None:
    said, person = io.StringIO(), Person(people, name)
    last = lambda prompt: prompt.split(" or quit")[0].split(", ")[-1].strip()  # noqa: E731  # that the terminal offers
    score = play(runs[name].agent().policy, Console(file=said, width=300), last, seed=3, hands=4)
    state, known = person.sit(seed=3), []
    for _ in range(4):
        while not state["over"]:
            assert f"You know: <b>{state['known']}</b>" in unescape(people.get(f"/play/{name}").text)
            assert {step["name"] for step in state["steps"] if step["who"] == "agent"} <= {"acts"}
            known.append(state["known"])
            state = act(person, -1)
        assert "acts" not in {step["name"] for step in state["steps"]}
        state = person.next()
    assert known == re.findall(r"You know: (.*)", said.getvalue())
    assert state["session"]["raw"]["hands"] == 4
    assert state["session"]["raw"]["total"] == pytest.approx(score.chips)


def test_a_review_has_the_agents_strategy_at_each_decision_of_the_person(
    people: TestClient, runs: dict[str, NamedRun]
) -> None:
    person, known = Person(people, "leduc"), []
    state = person.sit(seed=5)
    while not state["over"]:
        known.append(state["known"])
        state = act(person, 0)
    found = people.get("/api/play/leduc/review?hand=0").json()["decisions"]
    assert [each["agent"] for each in found] == [strategy(runs["leduc"], 0)[infoset] for infoset in known]
    assert {each["cost"] for each in found} == {None}
    assert "in your place" in people.get("/play/leduc/review?hand=0").text


def strategy(run: NamedRun, player: int) -> dict[str, dict[str, float]]:
    """A player's probabilities by the names of infosets and actions."""
    policy = run.agent().policy
    assert isinstance(policy, Policy)
    game: Any = policy.game
    count = game.explicit.num_infosets
    shares = policy.probabilities(Infosets(torch.arange(count), torch.empty((count, 0), dtype=torch.uint8)))
    names = enumerate(game.explicit.infoset_names)
    return {
        name: {game.action_name(a): float(shares[k, a]) for a in game.encoding.legal[k].nonzero()[:, 0].tolist()}
        for k, name in names
        if game.explicit.infoset_actor[k] == player
    }


def test_the_strategy_is_a_list_of_infosets_that_can_be_searched(people: TestClient, runs: dict[str, NamedRun]) -> None:
    page = people.get("/strategy/kuhn").text
    rows = re.findall(r'<th scope="row">(.*?)</th><td class="number">(\d)</td>', page)
    right = [(name, str(player)) for player in (0, 1) for name in strategy(runs["kuhn"], player)]
    assert sorted(rows) == sorted(right)
    assert "12 of 12 infosets" in page
    found = people.get("/strategy/kuhn", params={"find": "2p"}).text
    assert re.findall(r'<th scope="row">(.*?)</th>', found) == ["2p", "2pb"]
    folded, called = strategy(runs["kuhn"], 0)["2pb"].values()
    widths = [float(width) for width in re.findall(r'width="([0-9.]+)" height="10"', found.split("2pb</th>")[1])]
    assert widths == pytest.approx([1000 * share for share in (called, folded) if share > 0], abs=0.01)
    assert "200 of 936 infosets" in people.get("/strategy/leduc").text


def test_a_play_goes_on_after_a_restart(runs: dict[str, NamedRun], tmp_path: Path) -> None:
    states, cookies = [], None
    for _ in range(2):
        served = site(*runs.values())
        served.seats, served.warn = tmp_path, pytest.fail
        person = Person(TestClient(build_app(served), base_url="http://127.0.0.1", cookies=cookies), "leduc")
        if cookies is None:
            person.sit(seed=2)
            act(person, 0)
        states.append(person.state)
        cookies = person.client.cookies
    assert states[0]["steps"]
    assert states[0] == states[1]


def test_until_the_end_no_page_depends_on_what_the_agent_holds(people: TestClient) -> None:
    seen: dict[tuple[str, int], set[bytes]] = {}
    person = Person(people, "kuhn")
    for seed in range(20):
        people.cookies.clear()
        state = person.sit(seed=seed)
        while not state["over"]:
            seen.setdefault((state["known"], state["decision"]), set()).add(people.get("/play/kuhn").content)
            state = act(person, 0)
    assert len(seen) >= 3
    assert all(len(pages) == 1 for pages in seen.values())


@pytest.fixture(scope="module")
def gone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NamedRun]:
    """A run of a class whose module is no longer there."""
    folder = tmp_path_factory.mktemp("gone")
    module = folder / "gone_game.py"
    module.write_text("from class_games import Leduc\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.syspath_prepend(folder)
        assert deepcfr("solve", "gone_game:Leduc", "--iterations", 1, "--out", folder / "run", "--json").status == 0
        module.unlink()
        patch.delitem(sys.modules, "gone_game")
        importlib.invalidate_caches()
        presets._class_game.cache_clear()
        yield NamedRun("gone", RunFolder.open(folder / "run"), "own", pytest.fail)


def test_a_class_that_cannot_be_imported_is_told(gone: NamedRun) -> None:
    warm_up(site(gone))
    stranger = client(gone)
    assert stranger.get("/").status_code == 200
    for kind, path in (("get", "/play/gone"), ("post", "/play/gone"), ("get", "/strategy/gone")):
        answer = stranger.request(kind, path)
        assert answer.status_code == 409
        assert "there is no module 'gone_game' in this folder or among the installed packages" in unescape(answer.text)
