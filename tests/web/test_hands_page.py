"""The page of one's own hands: reviewed in the background, ranked, refused with a sentence, and led to their spots."""

import json
import re
import threading
import time
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from deepcfr.interop.own_hand_review import read_ranges
from deepcfr.search.spot_ranges import parse_range
from deepcfr.web import hands
from deepcfr.web.app import MOST_BODY, build_app
from deepcfr.web.site import open_site
from interop.test_own_hands import FLOP, RANGES, SHOVED, history

CALLED = history(later=SHOVED.format(answer="calls $5"))
TEXT = "\n\n\n".join([CALLED, history(2).replace("erin: calls $1.50", "erin: folds")])
SOLVED: list[Any] = []  # the only spot of these hands


@pytest.fixture
def somebody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TestClient:
    solve = hands.OwnHandReview._solve

    def solve_once(review: hands.OwnHandReview, spot: Any) -> Any:
        if not SOLVED:
            SOLVED.append(solve(review, spot))
        return SOLVED[0]

    monkeypatch.setattr(hands, "HANDS_ITERATIONS", 2)
    monkeypatch.setattr(hands.OwnHandReview, "_solve", solve_once)
    site = open_site((), "own", pytest.fail, spots=tmp_path)
    return TestClient(build_app(site), base_url="http://127.0.0.1", follow_redirects=False)


def wait(somebody: TestClient) -> dict[str, Any]:
    while (state := somebody.get("/api/hands").json())["solving"]:
        time.sleep(0.02)
    return dict(state)


def test_hands_are_reviewed_and_lead_to_their_spots(somebody: TestClient, tmp_path: Path) -> None:
    form = {"text": TEXT + "\n" * MOST_BODY, "hero": "", "ranges": RANGES}
    assert somebody.post("/hands", data=form).headers["location"] == "/hands"
    state = wait(somebody)
    (row,) = state["decisions"]
    assert (state["hero"], row["action"], row["spot"]) == ("hero", "call", "1-flop")
    assert state["refused"] == {"2": "The hand ends before the flop."}
    page = somebody.get("/hands").text
    assert f'lost <b class="number">{row["lost"]:.2f}</b> big blinds in 1 decisions' in page
    assert "Hands left out: 1. The hand ends before the flop." in page
    fields = dict(re.findall(r'name="(spot|line)" value="([^"]*)"', page))
    for _ in range(2):  # the second time it is there
        address = somebody.post("/hands/spot", data=fields).headers["location"]
        assert address == "/spots/1-flop?line=all-in"
    assert "big blind" in somebody.get(address).text
    assert [spot["name"] for spot in somebody.get("/api/spots").json()] == ["1-flop"]
    assert somebody.post("/hands/spot", data={"spot": "../1", "line": ""}).status_code == 404
    assert (tmp_path / "hands" / "1.json").exists()


def test_a_fold_where_a_check_is_free_is_shown_as_one_that_the_solution_never_does(somebody: TestClient) -> None:
    text = history(later=FLOP + "erin: checks\nhero: folds\n")
    somebody.post("/hands", data={"text": text, "hero": "", "ranges": RANGES})
    (row,) = wait(somebody)["decisions"]
    assert (row["line"], row["action"]) == ("check", "fold")
    assert "<td>fold</td><td>" + row["best"] + '</td><td class="number">0 %</td>' in somebody.get("/hands").text


def test_hands_that_cannot_be_reviewed_are_refused_and_nothing_is_lost(somebody: TestClient) -> None:
    for form, sentence in (
        ({"text": "nothing", "hero": "", "ranges": RANGES}, "neither a text of PokerStars"),
        ({"text": TEXT, "hero": "nobody", "ranges": RANGES}, "nobody shows cards on no flop"),
        ({"text": TEXT, "hero": "", "ranges": "[raise"}, "ranges"),
    ):
        answer = somebody.post("/hands", data=form)
        assert answer.status_code == 400
        assert sentence in answer.text
        assert form["text"].splitlines()[0] in unescape(answer.text)
    assert somebody.put("/api/hands", content="nothing").status_code == 400
    assert "There is no run named" in somebody.put("/api/hands?agent=nobody", content=TEXT).json()["error"]
    assert somebody.get("/api/hands").json()["hero"] == ""


def test_ranges_come_from_an_agent_and_what_was_written_stays(somebody: TestClient, tmp_path: Path) -> None:
    form = {"text": TEXT, "hero": "hero", "ranges": RANGES, "agent": "hulh"}
    page = unescape(somebody.post("/hands/ranges", data=form).text)
    assert all(name in page for name in ("these are those of hulh", TEXT.splitlines()[0], 'value="hero"'))
    (ranges,) = re.findall(r'<textarea id="ranges".*?>(.*?)</textarea>', page, re.DOTALL)
    assert set(read_ranges(ranges)["raise"]) == {"BTN", "BB"}
    assert re.findall(r'name="agent" value="(.*?)"', page)[-1] == "hunl-200"
    assert "are those of" not in somebody.get("/hands").text
    somebody.put("/api/hands?agent=hulh", content=CALLED)
    assert not wait(somebody)["refused"]
    asked = json.loads((tmp_path / "hands" / "1.json").read_text())["asked"]["ranges"]
    assert [parse_range(text).tolist() for text in asked] == [
        read_ranges(ranges)[role][position].tolist() for role, position in (("raise", "BTN"), ("call", "BB"))
    ]


def test_one_text_is_reviewed_at_a_time_and_stops(somebody: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    going, solve = threading.Event(), hands.OwnHandReview._solve

    def wait_and_solve(review: hands.OwnHandReview, spot: Any) -> Any:
        assert going.wait(60)
        return solve(review, spot)

    monkeypatch.setattr(hands.OwnHandReview, "_solve", wait_and_solve)
    two = "\n\n\n".join(history(number, later=SHOVED.format(answer="folds")) for number in (1, 2))
    form = {"text": two, "hero": "", "ranges": RANGES}
    somebody.post("/hands", data=form)
    assert "Hands are being reviewed: stop that, or wait." in somebody.post("/hands", data=form).text
    assert somebody.post("/hands/stop").headers["location"] == "/hands"
    assert "Stops after the spot" in somebody.get("/hands").text
    going.set()
    state = wait(somebody)
    assert [row["hand"] for row in state["decisions"]] == ["1"]
    assert state["refused"] == {"others": "The review was stopped before."}
