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
from web_site import client, site

GAMES = {"kuhn": "openspiel:kuhn_poker", "leduc": "class_games:Leduc"}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, NamedRun]:
    folder = tmp_path_factory.mktemp("histories")
    for name, game in GAMES.items():
        assert deepcfr("solve", game, "--iterations", 20, "--out", folder / name, "--json").status == 0
    return {name: NamedRun(name, RunFolder.open(folder / name), "own", pytest.fail) for name in GAMES}


@pytest.fixture
def person(runs: dict[str, NamedRun]) -> TestClient:
    return client(*runs.values())


def act(person: TestClient, name: str, state: dict[str, Any], place: int) -> dict[str, Any]:
    """Take the action at a place in the list, by the form."""
    fields = {"hand": state["hand"], "decision": state["decision"], "action": state["actions"][place]["token"]}
    assert person.post(f"/play/{name}/act", data=fields).status_code == 303
    return dict(person.get(f"/api/play/{name}").json())


@pytest.mark.parametrize("name", GAMES)
def test_hands_are_those_of_the_terminal_and_what_the_agent_did_is_told_at_the_end(
    person: TestClient, runs: dict[str, NamedRun], name: str
) -> None:
    asked: list[str] = []

    def last(prompt: str) -> str:
        """The last action that the terminal offers."""
        asked.append(prompt)
        return prompt.split(" or quit")[0].split(", ")[-1].strip()

    said = io.StringIO()
    score = play(runs[name].agent().policy, Console(file=said, width=300), last, seed=3, hands=4)
    state = person.post(f"/api/play/{name}", json={"seed": 3}).json()
    known = []
    for _ in range(4):
        while not state["over"]:
            assert f"You know: <b>{state['known']}</b>" in unescape(person.get(f"/play/{name}").text)
            assert {step["name"] for step in state["steps"] if step["who"] == "agent"} <= {"acts"}
            known.append(state["known"])
            state = act(person, name, state, -1)
        assert "acts" not in {step["name"] for step in state["steps"]}
        state = person.post(f"/api/play/{name}/next", json={"hand": state["hand"]}).json()
    assert known == re.findall(r"You know: (.*)", said.getvalue())
    assert state["session"]["raw"]["hands"] == 4
    assert state["session"]["raw"]["total"] == pytest.approx(score.chips)


@pytest.mark.parametrize("name", GAMES)
def test_a_review_has_the_agents_strategy_at_each_decision_of_the_person(
    person: TestClient, runs: dict[str, NamedRun], name: str
) -> None:
    state, known = person.post(f"/api/play/{name}", json={"seed": 5}).json(), []
    while not state["over"]:
        known.append(state["known"])
        state = act(person, name, state, 0)
    found = person.get(f"/api/play/{name}/review?hand=0").json()
    assert [each["agent"] for each in found["decisions"]] == [strategy(runs[name], 0)[infoset] for infoset in known]
    assert {each["cost"] for each in found["decisions"]} == {None}
    assert "in your place" in person.get(f"/play/{name}/review?hand=0").text


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


def test_the_strategy_is_a_list_of_infosets_that_can_be_searched(person: TestClient, runs: dict[str, NamedRun]) -> None:
    page = person.get("/strategy/kuhn").text
    rows = re.findall(r'<th scope="row">(.*?)</th><td class="number">(\d)</td>', page)
    right = [(name, str(player)) for player in (0, 1) for name in strategy(runs["kuhn"], player)]
    assert sorted(rows) == sorted(right)
    assert "12 of 12 infosets" in page
    found = person.get("/strategy/kuhn", params={"find": "2p"}).text
    assert re.findall(r'<th scope="row">(.*?)</th>', found) == ["2p", "2pb"]
    folded, called = strategy(runs["kuhn"], 0)["2pb"].values()
    widths = [float(width) for width in re.findall(r'width="([0-9.]+)" height="10"', found.split("2pb</th>")[1])]
    assert widths == pytest.approx([1000 * share for share in (called, folded) if share > 0], abs=0.01)
    assert "200 of 936 infosets" in person.get("/strategy/leduc").text


def test_a_play_goes_on_after_a_restart(runs: dict[str, NamedRun], tmp_path: Path) -> None:
    states, cookies = [], None
    for _ in range(2):
        served = site(*runs.values())
        served.seats, served.warn = tmp_path, pytest.fail
        person = TestClient(build_app(served), base_url="http://127.0.0.1", follow_redirects=False, cookies=cookies)
        if cookies is None:
            act(person, "leduc", person.post("/api/play/leduc", json={"seed": 2}).json(), 0)
        states.append(person.get("/api/play/leduc").json())
        cookies = person.cookies
    assert states[0]["steps"]
    assert states[0] == states[1]


def test_until_the_end_no_page_depends_on_what_the_agent_holds(person: TestClient) -> None:
    seen: dict[tuple[str, int], set[bytes]] = {}
    for seed in range(30):
        person.cookies.clear()
        state = person.post("/api/play/kuhn", json={"seed": seed}).json()
        while not state["over"]:
            seen.setdefault((state["known"], state["decision"]), set()).add(person.get("/play/kuhn").content)
            state = act(person, "kuhn", state, 0)
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
        game = ("gone_game:Leduc", "--iterations", 1, "--out", folder / "run", "--json")
        assert deepcfr("solve", *game).status == 0
        module.unlink()
        patch.delitem(sys.modules, "gone_game")
        importlib.invalidate_caches()
        presets._class_game.cache_clear()
        yield NamedRun("gone", RunFolder.open(folder / "run"), "own", pytest.fail)


@pytest.mark.parametrize("path", ["/play/gone", "/strategy/gone", "/api/agents/gone/range"])
def test_a_class_that_cannot_be_imported_is_told(gone: NamedRun, path: str) -> None:
    warm_up(site(gone))
    stranger = client(gone)
    assert stranger.get("/").status_code == 200
    answers = [stranger.get(path)] + ([stranger.post(path)] if path == "/play/gone" else [])
    for answer in answers:
        assert answer.status_code == 409
        assert "there is no module 'gone_game' in this folder or among the installed packages" in unescape(answer.text)
