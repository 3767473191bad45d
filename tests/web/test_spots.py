"""Spots on the server: solved, shown, locked, compared, kept as files, and refused with a sentence."""

import csv
import io
import json
import re
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient

from deepcfr.api import solve_spot
from deepcfr.core.errors import ConfigError
from deepcfr.search.spot_file import write_solution
from deepcfr.search.spot_ranges import parse_range
from deepcfr.search.spot_sizes import amount_text
from deepcfr.search.spot_solution import Solution
from deepcfr.web.app import build_app
from deepcfr.web.schema import SpotFacts
from deepcfr.web.site import open_site
from deepcfr.web.spot_shelf import MOST_SPOTS, SolveJob, SpotShelf, read_spot
from deepcfr.web.spot_view import table_at
from leaning import Leaning
from web_site import agent, client

RIVER = "2c 2d 7h 9s Kc"
WISH: dict[str, Any] = {
    "board": RIVER, "pot": 10, "stacks": 40, "dealer": "AA,AQs:0.5", "big_blind": "KK,4s3s,4h3h", "sizes": "river 50 100",
    "exploitability": 0.1, "name": "polar",
}  # fmt: skip
MINUTE = 60


@pytest.fixture(scope="module")
def polar() -> Solution:
    arguments = {name: value for name, value in WISH.items() if name != "name"}
    return solve_spot(**arguments)


@pytest.fixture
def folder(polar: Solution, tmp_path: Path) -> Path:
    (tmp_path / "polar.json").write_text(json.dumps(polar.facts()))
    return tmp_path


@pytest.fixture
def somebody(folder: Path) -> TestClient:
    return visitor(folder)


def visitor(folder: Path | None = None) -> TestClient:
    """Somebody who looks at the spots of a folder."""
    site = open_site((), "own", pytest.fail, spots=folder)
    return TestClient(build_app(site), base_url="http://127.0.0.1", follow_redirects=False)


def wait(client: TestClient, name: str) -> dict[str, Any]:
    """The state of a spot when it is no longer being solved."""
    while True:  # a server says of every spot how it ended, however busy the machine is
        state = client.get(f"/api/spots/{name}/state").json()
        if state["solved"] or state["problem"]:
            return dict(state)
        time.sleep(0.02)


def solve(client: TestClient, wish: dict[str, Any], path: str = "/spots") -> dict[str, Any]:
    """The solved spot of a form, which leads to its page; it has the name of the page too."""
    name = client.post(path, data=wish).headers["location"].split("/")[-1]
    assert wait(client, name)["solved"]
    return client.get(f"/api/spots/{name}").json() | {"name": name}


def test_a_spot_is_solved_as_from_python_and_kept_as_a_file(tmp_path: Path, polar: Solution) -> None:
    client = visitor(tmp_path)
    begun = client.post("/api/spots", json=WISH)
    assert (begun.status_code, begun.json()["name"]) == (202, "polar")
    assert wait(client, "polar")["iterations"] == polar.iterations
    found, expected = client.get("/api/spots/polar").json(), json.loads(json.dumps(polar.facts()))
    assert found | {"seconds": 0} == expected | {"seconds": 0}
    assert [each["name"] for each in client.get("/api/spots").json()] == ["polar"]
    assert json.loads((tmp_path / "polar.json").read_text()) == found
    assert visitor(tmp_path).get("/api/spots/polar").json() == found


def test_a_spot_has_its_smallest_bet_and_donk_bets(somebody: TestClient) -> None:
    wish = FORM | {"board": "[2♣,2♦,7h,9s]", "sizes": "turn 10, donk 90%", "aggressor": "dealer", "min_bet": "3"}
    found = solve(somebody, wish | {"iterations": "1", "name": "donk"})
    assert found["board"] == "2c 2d 7h 9s"
    assert list(found["decisions"][0]["frequencies"]) == ["check", "bet 9"]
    assert list(found["decisions"][1]["frequencies"]) == ["check", "bet 3"]
    (note,) = found["notes"]
    assert note == "Where bet 10 would be less than the smallest legal bet or raise, the smallest one is solved."
    assert note in somebody.get("/spots/donk").text


def test_hands_with_a_card_of_the_board_meet_nobody_on_a_page() -> None:
    """KdQd meets one of three kings and a pair of jacks, JsJd meets three of three and the jacks."""
    ranges = {"dealer": "KdQd,JsJd", "big_blind": "KK,JhJc"}
    found = solve_spot("2c 2d 7h 9s Kc", "river 50", pot=10, stacks=10, iterations=1, threads=1, **ranges)
    table = table_at(SpotFacts.model_validate(found.facts()), "", "dealer")
    weights = dict(zip((table.hand(h).replace(" ", "") for h in range(2)), table.weight.tolist(), strict=True))
    assert weights == pytest.approx({"KdQd": 2, "JsJd": 4})


def test_hands_at_a_decision_are_those_of_the_solution(polar: Solution) -> None:
    facts = SpotFacts.model_validate(polar.facts())
    for decision in polar.decisions:
        seat = facts.decisions[polar.decisions.index(decision)].player
        table = table_at(facts, decision.line, seat)
        places = {tuple(hole): h for h, hole in enumerate(polar.holes.tolist())}
        order = [places[tuple(hole)] for hole in table.holes.tolist()]
        np.testing.assert_allclose(table.reach, decision.reach[order], atol=2e-3)
        held = table.reach > 0
        np.testing.assert_allclose(table.strategy[held], decision.strategy[order][held], atol=1e-4)
        other = table_at(facts, decision.line, "dealer" if seat == "big blind" else "big blind")
        assert other.names == []
        assert other.strategy.shape == (len(other.holes), 0)


def test_the_table_has_a_line_for_every_hand(somebody: TestClient, polar: Solution) -> None:
    answer, facts = somebody.get("/api/spots/polar/decision.csv", params={"line": "check"}), polar.facts()
    rows = {row["hand"]: row for row in csv.DictReader(io.StringIO(answer.text))}
    actions = ["check", "bet 5", "bet 10"]
    values = [f"EV of {action}" for action in actions]
    assert list(rows["AsAh"]) == [
        "hand",
        "kind",
        "made hand and draws",
        "reach",
        "weight",
        *actions,
        "EV",
        *values,
        "Equity %",
    ]
    assert len(rows) == 6 + 4
    aces = {
        name: float(text) for name, text in rows["AsAh"].items() if name not in ("hand", "kind", "made hand and draws")
    }
    here = next(decision for decision in facts["decisions"] if decision["line"] == "check")
    assert [aces[name] for name in values] == here["values"]["AsAh"]
    assert aces["EV"] == pytest.approx(sum(aces[action] * aces[f"EV of {action}"] for action in actions))
    assert aces["Equity %"] == pytest.approx(100 * here["hand_equities"]["dealer"]["AsAh"])
    text = somebody.get("/api/spots/polar/ranges.txt", params={"line": "check"}).text.split("# ")
    ranges = {part.split("\n")[0]: parse_range(part.split("\n")[1]) for part in text[1:]}
    assert list(ranges) == [
        "dealer",
        *(f"dealer: {action}" for action in facts["decisions"][1]["frequencies"]),
        "big blind",
    ]
    whole, *parts, other = ranges.values()
    np.testing.assert_allclose(sum(parts), whole, atol=2e-6)
    np.testing.assert_allclose(whole, parse_range(WISH["dealer"]), atol=1e-6)  # it has not acted yet
    assert (other <= parse_range(WISH["big_blind"])).all()  # and the big blind may have bet some of its hands
    start = csv.DictReader(io.StringIO(somebody.get("/api/spots/polar/decision.csv").text))
    kings = next(row for row in start if row["hand"] == "KsKh")
    assert float(kings["EV"]) == pytest.approx(facts["hand_values"]["big blind"]["KsKh"], abs=2e-3)


def test_a_hand_that_meets_no_other_is_neither_on_the_page_nor_in_the_table(tmp_path: Path) -> None:
    """QdJd shares a card with every hand of the big blind."""
    ranges = {"dealer": "QdJd,AKs", "big_blind": "QdTd,QdTc,JdTh,Jd9h,QdQs"}
    lonely = solve_spot(RIVER, "river 50", pot=10, stacks=40, **ranges, iterations=5)
    (tmp_path / "lonely.json").write_text(json.dumps(lonely.facts()))
    client = visitor(tmp_path)
    rows = csv.DictReader(io.StringIO(client.get("/api/spots/lonely/decision.csv", params={"line": "check"}).text))
    values = {row["hand"]: row["EV"] for row in rows}
    assert values.keys() == {"AsKs", "AhKh", "AdKd"}
    assert all(float(value) > 0 for value in values.values())
    page = client.get("/spots/lonely?line=check&cell=QJs").text
    assert "dealer: hands of QJs" not in page
    assert "dealer: hands of AKs" in client.get("/spots/lonely?line=check&cell=AKs").text


@pytest.mark.parametrize("pot, half, three_halves, places", [(10, "5", "15", 3), (4e-6, "0.000002", "0.000006", 10)])
def test_each_decision_has_its_pot_its_price_and_both_ranges(
    tmp_path: Path, pot: float, half: str, three_halves: str, places: int
) -> None:
    """After a bet of half the pot the dealer pays a half into three halves, so it needs 25 % equity."""
    texts = {name: WISH[name] for name in ("board", "dealer", "big_blind", "sizes")}
    found = solve_spot(**texts, pot=pot, stacks=4 * pot, exploitability=0, iterations=50)
    (tmp_path / "sized.json").write_text(json.dumps(found.facts()))
    client = visitor(tmp_path)
    page = client.get(f"/spots/sized?line=bet {half}&cell=AA").text
    text = re.sub(r"\s+", " ", re.sub("<[^>]*>", " ", page))
    assert f"pot {three_halves} · {half} to call · pot odds 25.0 %" in text
    here = next(decision for decision in found.decisions if decision.line == f"bet {half}")
    for name, value, equity in zip(
        ("dealer (IP)", "big blind (OOP)"), here.range_values or (), here.range_equities or (), strict=True
    ):
        assert f"{name} {value:.{places}f} {100 * equity:.1f} % {100 * value / here.pot:.1f} %" in text
    form = client.get("/spots?like=sized").text
    assert f"<td>{RIVER}</td>" + f'<td class="number">{amount_text(pot)}</td>' in form
    assert f'id="pot" name="pot" value="{amount_text(pot)}"' in form


def test_a_spot_like_another_has_its_fields_and_keeps_its_locks(somebody: TestClient) -> None:
    lock = {"line": "", "frequencies": {"check": 0, "bet 5": 1, "bet 10": 0}}
    facts = somebody.get("/api/spots/polar").json() | {"locks": [lock]}
    assert somebody.put("/api/spots/given", json=facts).json()["name"] == "given"
    page = somebody.get("/spots?like=given").text
    assert f'value="{RIVER}"' in page
    assert "Keep what is locked: the first decision" in page
    wish = FORM | {"sizes": "river 50 100", "like": "given"}
    locked, free = solve(somebody, wish | {"locks_of": "given"}), solve(somebody, wish)
    assert (len(locked["locks"]), locked["decisions"][0]["frequencies"]["bet 5"]) == (1, 1)
    assert (len(free["locks"]), free["decisions"][0]["frequencies"]["bet 5"] < 1) == (0, True)


def test_a_lock_is_normalised_joined_undone_and_compared(somebody: TestClient) -> None:
    shares = {"line": "", "hands": "", "share check": "0", "share bet 5": "3", "share bet 10": "1.00"}
    facts = solve(somebody, shares, "/spots/polar/lock")
    assert facts["name"] == "polar-locked"
    assert facts["decisions"][0]["frequencies"] == {"check": 0, "bet 5": 0.75, "bet 10": 0.25}
    shares |= {"share check": "2", "share bet 5": "0", "share bet 10": "0", "hands": "KhKd,43s,AA"}
    facts = solve(somebody, shares, "/spots/polar-locked/lock")
    assert facts["locks"][0]["hands"] == {name: [1, 0, 0] for name in ("KhKd", "4h3h", "4s3s")}
    assert facts["decisions"][0]["hands"]["KsKh"] == pytest.approx([0, 0.75, 0.25])  # as all hands were before
    assert facts["decisions"][0]["hands"]["4h3h"] == pytest.approx([1, 0, 0])
    page = somebody.get(f"/spots/{facts['name']}?with=polar&cell=KK").text
    assert "· locked" in page
    assert page.count('role="grid"') == 7
    assert 'aria-label="Difference by hand"' in page
    free = solve(somebody, {"line": ""}, f"/spots/{facts['name']}/unlock")
    assert (free["name"], free["locks"]) == ("polar-unlocked", [])


@pytest.mark.parametrize(
    "change, field, sentence",
    [
        ({"share check": "-1"}, "share-check", "'-1' is not a share"),
        ({"share check": "nan"}, "share-check", "'nan' is not a share"),
        ({"share bet 5": "0"}, "share-bet-10", "All shares are 0"),
        ({"hands": "QQQ"}, "hands", "'QQQ' is not a part of a range"),
        ({"hands": "JJ"}, "hands", "The range of the big blind has no hand of 'JJ'."),
    ],
)
def test_a_mistake_in_a_lock_is_at_its_field_and_nothing_is_lost(
    somebody: TestClient, change: dict[str, str], field: str, sentence: str
) -> None:
    fields = {"share check": "0", "share bet 5": "7.5", "share bet 10": "0", "hands": "KK"} | change
    answer = somebody.post("/spots/polar/lock", data={"line": ""} | fields)
    assert answer.status_code == 400
    assert mistakes_of(answer.text).keys() == {field}
    assert mistakes_of(answer.text)[field].startswith(sentence)
    for name, value in fields.items():
        assert f'name="{name}" value="{value}"' in answer.text
    assert len(somebody.get("/api/spots").json()) == 1


def test_two_spots_are_compared_hand_by_hand_in_value(somebody: TestClient, polar: Solution) -> None:
    facts = json.loads(json.dumps(polar.facts()))
    first = facts["decisions"][0]
    first["values"]["KsKh"] = [value - 2 for value in first["values"]["KsKh"]]
    first["range_values"]["big blind"] -= 0.5
    somebody.put("/api/spots/worse", json=facts)
    page = somebody.get("/spots/polar?with=worse&cell=KK").text
    table = page.split("polar: big blind: hands of KK")[1].split("</table>")[0]
    assert "EV more than worse" in table
    assert "+0.500" in page.split("more than worse")[1].split("</table>")[0]
    kinds = page.split('aria-label="Difference in EV of the big blind by hand"')[1]
    assert re.search(r"KK: EV [0-9.]+, \+0\.667", kinds)  # one of three hands


def test_spots_are_renamed_deleted_and_uploaded_with_their_files(somebody: TestClient, folder: Path) -> None:
    facts = somebody.get("/api/spots/polar").json()
    assert somebody.post("/spots/polar/rename", data={"to": "my spot/1"}).headers["location"] == "/spots/my-spot-1"
    assert sorted(path.name for path in folder.iterdir()) == ["my-spot-1.json"]
    assert somebody.get("/api/spots/polar").status_code == 404
    assert somebody.put("/api/spots/my-spot-1", json=facts).json()["name"] == "my-spot-1-2"  # nothing is written over
    assert somebody.post("/api/spots/my-spot-1-2/rename", json={"name": "two"}).json()["name"] == "two"
    assert read_spot(folder / "two.json").model_dump() == read_spot(folder / "my-spot-1.json").model_dump()
    assert somebody.get("/api/spots/two").json() == facts
    assert somebody.post("/spots/my-spot-1/delete").headers["location"] == "/spots"
    assert somebody.delete("/api/spots/two").status_code == 204
    assert list(folder.iterdir()) == []
    assert somebody.get("/api/spots").json() == []
    for path in ("rename", "delete"):
        assert somebody.post(f"/spots/nobody/{path}").status_code == 404


def test_the_size_of_a_spot_is_told_before_it_is_solved(somebody: TestClient) -> None:
    def size(**more: str) -> str:
        return somebody.post("/spots/size", data=WISH | more).text

    assert size().startswith("6 decisions, 15 hands, 1 runouts, suits are merged; about 0.00 GB")
    assert "give fewer sizes" in size(board="2c 2d 7h", stacks="900", sizes="bet 10 20 30 40 50, raise 50, cap 9")
    assert "no hand that is possible" in size(dealer="KcKd")
    assert size(pot="much") == ""
    assert [spot["name"] for spot in somebody.get("/api/spots").json()] == ["polar"]


def test_a_form_without_sizes_has_no_bets(somebody: TestClient) -> None:
    found = solve(somebody, FORM | {"sizes": ""})
    assert [each["frequencies"] for each in found["decisions"]] == [{"check": 1}] * 2


@pytest.mark.parametrize(
    "change, sentence",
    [
        (lambda facts: facts.pop("board"), "body.board"),
        (lambda facts: facts.update(exploitability_percent=-1), "body.exploitability_percent"),
        (lambda facts: facts["decisions"][0].update(hands={}), "body.decisions.0.hands"),
        (lambda facts: facts["decisions"][0].update(hands={"KsKd": [5.0, 0.0, -4.0]}), "body.decisions.0.hands"),
        (lambda facts: facts["decisions"][0].update(hands={"KsKd": [2.0, 0.0, 0.0]}), "body.decisions.0.hands"),
        (lambda facts: facts["decisions"][0]["hands"].update({"4s3s": [1]}), "too few or too many probabilities"),
        (lambda facts: facts["decisions"].pop(0), "first decision is not the one before all actions"),
        (lambda facts: facts["hand_values"]["dealer"].popitem(), "hands with a value and hands with an equity differ"),
        (lambda facts: facts["hand_values"].popitem(), "at least 2 items"),
        (lambda facts: facts["decisions"][0]["values"]["KsKh"].append(1), "too few or too many values"),
        (lambda facts: facts["hand_values"]["dealer"].update({"AsXx": 1}), "should match pattern"),
        # of another betting than that of its sizes
        (lambda facts: facts["decisions"][1].update(line="chek"), "after 'check', the dealer with check, bet 5, bet 10"),
        (lambda facts: facts["decisions"][1].update(player="big blind"), "after 'check', the dealer with "),
        (lambda facts: facts["decisions"].append(facts["decisions"][1]), "after 'check', nobody acts"),
        (lambda facts: facts["decisions"].pop(), "The decisions of the file are not those of its sizes: after "),
        (lambda facts: facts.update(sizes="river 50 75"), "after '', the big blind with check, bet 5, bet 7.5 acts"),
        (lambda facts: facts.update(locks=[{"line": "chek"}]), "no decision after 'chek'"),
    ],
)  # fmt: skip
def test_a_file_that_contradicts_itself_is_refused(
    somebody: TestClient, change: Callable[[dict[str, Any]], Any], sentence: str
) -> None:
    facts = somebody.get("/api/spots/polar").json()
    change(facts)
    refused = somebody.put("/api/spots/bad", json=facts)
    assert refused.status_code in (400, 422)
    assert sentence in refused.json()["error"]
    assert [each["name"] for each in somebody.get("/api/spots").json()] == ["polar"]


def test_files_that_are_no_spots_are_named_and_left_out(folder: Path) -> None:
    for name, text in (("a", "{"), ("b", "{}"), ("c", '"first"')):
        (folder / f"{name}.json").write_text(text)
    said: list[str] = []
    assert list(SpotShelf(folder, said.append).everything()[0]) == ["polar"]
    assert len(said) == 3
    assert f"'{folder / 'b.json'}' is not a file of deepcfr spot --out: board: Field required" in said[1]


def test_a_lock_that_cannot_be_solved_or_undone_shows_the_spot_and_why(
    somebody: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("deepcfr.web.spot_shelf.MOST_SPOTS", 1)
    shares = {"share check": "1", "share bet 5": "0", "share bet 10": "0"}
    for way, fields in (("lock", shares), ("unlock", {})):
        answer = somebody.post(f"/spots/polar/{way}", data={"line": ""} | fields)
        assert answer.status_code == 400
        assert "There are 1 spots here, which is the most" in answer.text.split('role="alert"')[1]
        assert "to act" in answer.text


def test_spots_wait_for_their_turn_and_can_be_stopped(somebody: TestClient) -> None:
    ranges = {
        "dealer": "22+,A2s+,KQs",
        "big_blind": "22+,A8s+,T8s",
    }  # so wide that rounding leaves no exploitability of 0
    endless = {
        "board": "2c 2d 7h 9s",
        "sizes": "turn 50, river 50",
        "exploitability": 0,
        "iterations": 100_000,
    } | ranges
    assert somebody.post("/api/spots", json=WISH | endless | {"name": "long"}).json()["exploitability_percent"] is None
    page = somebody.get("/spots/long").text
    assert "data-wait" in page
    assert "of at most 100000" in page
    waits = [somebody.post("/api/spots", json=WISH | {"name": name}).json()["waits"] for name in "abc"]
    assert waits == [1, 2, 3]
    assert somebody.get("/api/spots/long").status_code == 404  # nothing is solved yet
    assert "waits, in place 3" in somebody.get("/spots").text
    assert somebody.post("/spots/a/stop").headers["location"] == "/spots"  # one that waits leaves nothing
    assert somebody.get("/spots/a").status_code == 404
    assert 'in place <b class="number">1</b>' in somebody.get("/spots/b").text
    assert somebody.post("/spots/long/pause", data={"paused": "yes"}).headers["location"] == "/spots/long"
    assert "<b>Paused.</b>" in somebody.get("/spots/long").text
    states: list[dict[str, Any]] = []
    while len(states) < 2 or (states[-1] != states[-2] and len(states) < 50):  # it may still end an iteration
        time.sleep(0.2)
        states.append(somebody.get("/api/spots/long/state").json())
    paused = states[-1]
    assert paused["paused"]
    assert paused == states[-2]
    assert "stop it first" in somebody.delete("/api/spots/long").json()["error"]
    assert not somebody.put("/api/spots/long/paused", json=False).json()["paused"]
    while somebody.get("/api/spots/long/state").json()["iterations"] == paused["iterations"]:
        time.sleep(0.02)
    assert somebody.put("/api/spots/b/paused", json=True).json()["waits"] == 1  # one that waits goes on waiting
    assert somebody.put("/api/spots/long/paused", json=True).json()["paused"]
    assert somebody.post("/spots/long/stop").headers["location"] == "/spots/long"
    assert 0 < wait(somebody, "long")["iterations"] < 100_000
    assert all(wait(somebody, name)["solved"] for name in ("b", "c"))
    assert somebody.post("/api/spots/long/stop").json()["solved"]


def test_a_spot_that_cannot_be_kept_says_so(tmp_path: Path) -> None:
    client = visitor(tmp_path / "kept")
    (tmp_path / "kept").rmdir()
    (tmp_path / "kept").write_text("a file where the folder was")
    client.post("/api/spots", json=WISH)
    state = wait(client, "polar")
    assert not state["solved"]
    assert "cannot be written" in state["problem"]
    assert "cannot be written" in client.get("/spots/polar").text
    assert client.post("/api/spots", json=WISH).json()["name"] == "polar-2"  # it is in nobody's way
    wait(client, "polar-2")


def test_the_grid_of_a_range(somebody: TestClient) -> None:
    kinds = somebody.get("/api/range", params={"text": "QQ+,KQo:0.5,AsKs"}).json()
    assert {kind: (facts["weight"], facts["text"]) for kind, facts in kinds.items()} == {
        "QQ": (1, "QQ"), "KK": (1, "KK"), "AA": (1, "AA"), "KQo": (0.5, "KQo:0.5"), "AKs": (0.25, "AsKs"),
    }  # fmt: skip
    refused = somebody.get("/api/range", params={"text": "QQQ"})
    assert refused.status_code == 400
    assert "'QQQ' is not a part of a range" in refused.json()["error"]


@pytest.mark.parametrize(
    "change, status, sentence",
    [
        ({"agent": "nobody"}, 404, "no run named 'nobody'"),
        ({"locks": [{"line": "", "player": "dealer"}]}, 400, "the big blind acts, not 'dealer'"),
        ({"locks": [{"line": "", "frequencies": {"check": "often"}}]}, 422, "body.locks"),
        ({"more": 1}, 422, "body.more"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_mistakes_are_sentences_and_nothing_begins(
    somebody: TestClient, change: dict[str, object], status: int, sentence: str
) -> None:
    answer = somebody.post("/api/spots", json=WISH | change)
    assert answer.status_code == status
    assert sentence in answer.json()["error"]
    assert [each["name"] for each in somebody.get("/api/spots").json()] == ["polar"]


def test_addresses(somebody: TestClient) -> None:
    paths = {
        "/spots/nobody": 404, "/spots?like=nobody": 404, "/spots/polar?line=fold": 404, "/spots/..%2fpolar": 404,
        "/spots/polar?line=" + "x" * 401: 422, "/spots/polar?cell=72o": 200, "/api/spots/nobody/state": 404,
        "/api/spots/polar/decision.csv?line=check, fold": 404,
    }  # fmt: skip
    assert {path: somebody.get(path).status_code for path in paths} == paths


FORM = {
    "board": RIVER, "pot": "10", "stacks": "40", "dealer": "AA", "big_blind": "KK,43s", "sizes": "river 50", "rake": "0",
    "cap": "", "exploitability": "1", "iterations": "50", "name": "mine",
}  # fmt: skip


@pytest.mark.parametrize(
    "change, found",
    [
        ({"pot": "much"}, {"pot": "'much' is not a number."}),
        (
            {"pot": "", "stacks": "-3"},
            {"pot": "A spot needs a value for the pot", "stacks": "The stacks must be above"},
        ),
        ({"board": "", "dealer": "QQQ"}, {"board": "This field is needed.", "dealer": "'QQQ' is not a part of a"}),
        ({"sizes": "river x", "rake": "100", "cap": "2"}, {"sizes": "'river x' needs", "rake": "The rake must be"}),
        ({"cap": "inf"}, {"cap": "Input should be a finite number, but is 'inf'."}),
        ({"iterations": "1.5"}, {"iterations": "'1.5' is not a whole number."}),
        ({"iterations": "0"}, {"iterations": "Input should be greater than or equal to 1, but is '0'."}),
        ({"line": "rc"}, {"line": "The line 'rc' needs an agent"}),
        ({"agent": "fhp", "line": "x"}, {"line": "'x'"}),
        ({"board": "Qs 7h 2c", "sizes": "bet 20 50 100, raise 50"}, {"sizes": "The spot needs up to "}),
        ({"sizes": "river 1 2 3 4, raise 1 2 3 4"}, {"sizes": "The betting of the spot has more than 20,000 nodes"}),
        ({"sizes": "river 50 100", "dealer": "AA-22"}, {"sizes": "The spot has "}),  # more strategies than a page
        ({"dealer": "AsQs", "big_blind": "AsQs"}, {"": "No hand of the dealer's range is possible"}),
        # what the form does not offer
        ({"agent": "nobody", "line": "rc"}, {"agent": "There is no run named 'nobody' here: "}),
        ({"agent": "leduc", "line": "rc"}, {"agent": "Ranges of a spot come from hold'em, and 'leduc' is not it."}),
        ({"locks_of": "gone", "like": "gone"}, {"locks_of": "There is no solved spot named 'gone' here."}),
    ],
    ids=lambda value: str(value)[:40],
)
def test_the_mistakes_of_a_form_are_at_their_fields_and_nothing_is_lost(
    somebody: TestClient, change: dict[str, str], found: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("deepcfr.web.spot_form.memory_for_spots", lambda: 1e8)
    monkeypatch.setattr("deepcfr.web.spot_shelf.MOST_ROWS", 100)
    monkeypatch.setattr("deepcfr.game.betting.MOST_NODES", 20_000)
    answer = somebody.post("/spots", data=FORM | change)
    assert answer.status_code == 400
    told = mistakes_of(answer.text)
    assert told.keys() == found.keys() - {""}
    assert all(told[name].startswith(sentence) for name, sentence in found.items() if name)
    assert found.get("", "") in answer.text.split('role="alert"')[1].split("</p>")[0].replace("&#39;", "'")
    for name, value in (FORM | {name: change[name] for name in FORM.keys() & change.keys()}).items():
        kept = f'name="{name}" value="{value}"', f">{value}</textarea>", f"<option selected>{value}</option>"
        assert any(each in answer.text for each in kept), name
    assert [each["name"] for each in somebody.get("/api/spots").json()] == ["polar"]


def mistakes_of(page: str) -> dict[str, str]:
    """The sentences at the fields of a page that are marked as wrong, by the fields."""
    marked = re.findall(r'id="([^"]*)"[^>]* aria-invalid="true" aria-describedby="mistake-\1"', page)
    found = dict(re.findall(r'<span class="mistake" id="mistake-([^"]*)">([^<]+)</span>', page))
    assert set(marked) == set(found)
    return {name: sentence.replace("&#39;", "'") for name, sentence in found.items()}


def test_names_are_safe_and_free_and_there_is_a_most(folder: Path) -> None:
    (folder / "po lar.json").write_bytes((folder / "polar.json").read_bytes())
    (folder / "po-lar.json").write_bytes((folder / "polar.json").read_bytes())
    shelf = SpotShelf(folder)
    assert list(shelf.everything()[0]) == ["po-lar", "po-lar-2", "polar"]
    assert shelf._unused("polar") == "polar-2"
    assert shelf._unused("../../Qs 7h") == "Qs-7h"
    assert shelf._unused("/") == "spot"
    (folder / "mine.json").write_text("{}")  # came there after the start
    assert shelf._unused("mine", ".json") == "mine-2"
    polar = shelf.find("polar")
    assert isinstance(polar, SpotFacts)
    shelf._spots |= {str(number): polar for number in range(MOST_SPOTS)}
    with pytest.raises(ConfigError, match="which is the most"):
        shelf.require_room()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_mistake_of_ours_keeps_nobody_from_solving(somebody: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(SpotFacts, "model_dump_json", lambda _: 1 / 0)
        somebody.post("/api/spots", json=WISH | {"name": "broken"})
        assert wait(somebody, "broken")["problem"] == "Solving failed, and the output of the server says why."
    somebody.post("/api/spots", json=WISH | {"name": "sound"})
    assert wait(somebody, "sound")["solved"]


def test_ranges_of_a_run_can_be_locked_and_changed() -> None:
    """Every hand of such a range has a weight of its own."""
    somebody = client(agent("leaning", "hulh", Leaning))
    wish = {"board": "Qs7h2c9d4s", "sizes": "river 100", "stacks": "9", "iterations": "1"}
    page = somebody.get("/strategy/leaning", params={"betting": "rc/cc/cc/c", "board": wish["board"]}).text
    (address,) = re.findall(r'href="(/spots\?agent=[^"]*)"', page)
    form = somebody.get(address.replace("&amp;", "&")).text
    assert "<option selected>leaning</option>" in form
    taken = {name: re.search(f'name="{name}" value="([^"]*)"', form)[1] for name in ("line", "board", "pot")}  # type: ignore[index]
    assert taken == {"line": "rc/cc/cc", "board": "Qs 7h 2c 9d 4s", "pot": ""}
    assert "/spots?agent" not in somebody.get("/strategy/leaning", params={"betting": "r"}).text
    first = solve(somebody, wish | {"agent": "leaning", "line": taken["line"]})
    assert (first["name"], first["pot"]) == ("Qs7h2c9d4s", 4)  # and ranges, from the agent
    assert first["dealer"].count(":") > 500
    shares = {f"share {action}": "50" for action in first["decisions"][0]["frequencies"]}
    begun = somebody.post("/spots/Qs7h2c9d4s/lock", data={"line": "", **shares})
    assert begun.headers["location"] == "/spots/Qs7h2c9d4s-locked"
    somebody.post("/spots/Qs7h2c9d4s-locked/stop")
    wait(somebody, "Qs7h2c9d4s-locked")
    assert first["dealer"] in somebody.get("/spots?like=Qs7h2c9d4s").text
    given = {name: first[name] for name in ("dealer", "big_blind")}
    assert solve(somebody, wish | given | {"pot": "4", "name": "again"})["dealer"] == first["dealer"]


class Slow:
    """Stands in for a solver in the midst of a spot, until `over` is set."""

    rows = 1
    spot = SimpleNamespace(pot=10)

    def __init__(self) -> None:
        self.shown, self.over = threading.Event(), threading.Event()

    def describe(self) -> str:
        return "small"

    def solve(self, goal: float, iterations: int, on_progress: Callable[[int, float], bool]) -> None:  # noqa: ARG002
        on_progress(3, float("inf"))
        self.shown.set()
        self.over.wait(MINUTE)
        raise ConfigError("Enough.")


def test_a_figure_that_was_not_measured_yet_is_not_shown_and_a_stop_is_answered_at_once() -> None:
    slow, site = Slow(), open_site((), "own", pytest.fail)
    name = site.spots.start("slow", slow, 1.0, 10)  # type: ignore[arg-type]
    assert slow.shown.wait(MINUTE)
    job = site.spots.find(name)
    assert isinstance(job, SolveJob)
    state = job.state(name)
    assert (state.iterations, state.exploitability_percent, state.seconds_left) == (3, None, None)
    somebody = TestClient(build_app(site), base_url="http://127.0.0.1")
    assert "Stopping…" not in somebody.get("/spots/slow").text
    assert somebody.post("/api/spots/slow/stop").json()["stopping"]
    assert "Stopping…" in somebody.get("/spots/slow").text
    slow.over.set()


def test_the_time_that_is_left_is_estimated_by_the_square_of_the_iterations(monkeypatch: pytest.MonkeyPatch) -> None:
    """An exploitability four times the goal after 10 iterations needs 20."""
    monkeypatch.setattr("deepcfr.web.spot_shelf.time", SimpleNamespace(monotonic=lambda: 105.0))
    for done, most, left in ((10, 1_000, 5), (15, 1_000, 5 / 3), (15, 18, 1)):
        job = SolveJob(Slow(), "small", 0.05, most, done=done, now=0.2, measured=10, began=100.0)  # type: ignore[arg-type]
        assert (job.state("a").seconds, job.state("a").seconds_left) == (5, pytest.approx(left))


def test_a_pause_does_not_count_as_time(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SimpleNamespace(monotonic=lambda: clock.now, now=105.0)
    monkeypatch.setattr("deepcfr.web.spot_shelf.time", clock)
    shelf = SpotShelf()
    shelf._jobs["a"] = job = SolveJob(Slow(), "small", 0.05, 100, began=100.0)  # type: ignore[arg-type]
    for paused, clock.now in ((True, 105.0), (True, 150.0), (False, 205.0), (False, 206.0)):
        shelf.pause("a", paused)
        assert job.state("a").seconds == (6 if clock.now == 206.0 else 5)


TURN = {
    "board": "Qs 7h 2c 9d", "pot": 10, "stacks": 40, "dealer": "QQ,T8s,K9s", "big_blind": "77,AQs,K9s",
    "sizes": "turn 50, river 75", "exploitability": 2, "name": "turn",
}  # fmt: skip


@pytest.fixture(scope="module")
def streets(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Solution]:
    """A folder with a solved turn and all its rivers, and the same solution in memory."""
    folder = tmp_path_factory.mktemp("streets")
    found = solve_spot(**{name: value for name, value in TURN.items() if name != "name"})
    write_solution(folder / "turn.npz", found)
    return folder, found


def test_every_street_of_a_spot_is_walked_on_the_page_and_in_json(streets: tuple[Path, Solution]) -> None:
    folder, found = streets
    somebody = visitor(folder)
    page = somebody.get("/spots/turn", params={"line": "bet 5"}).text
    choose = "/spots/turn?line=bet+5%2C+call+%2F+%2A"
    assert f'href="{choose}"' in page
    grid = somebody.get(choose).text
    cards = re.findall(r'<td><a href="([^"]+)"[^>]* title="([^"]+)"', grid)
    assert len(cards) == 48
    address, said = next(each for each in cards if "4s" in each[0])
    first = found.decision("bet 5, call / 4s")
    assert said == ", ".join(f"{action} {share:.1%}" for action, share in first.frequencies().items())
    river = somebody.get(address).text
    assert first.range_values is not None
    shown = [float(number) for number in re.findall(r'<td class="number">([\d.]+)</td>', river)]
    assert any(number == pytest.approx(first.range_values[1], abs=2e-3) for number in shown)  # files have 16 bits
    for action in first.actions:
        assert f"{action}</a>" in river or f"{action}</span>" in river
    assert 'aria-label="Choose other cards than 4 of spades "' in river
    line = {"line": "bet 5, call / 4s / check"}
    facts = somebody.get("/api/spots/turn/street", params=line).json()
    assert (facts["board"], facts["pot"], facts["stacks"]) == ("Qs 7h 2c 9d 4s", 20, 35)
    second = found.decision(line["line"])
    told = next(each for each in facts["decisions"] if each["line"] == "check")
    assert told["frequencies"] == pytest.approx(second.frequencies(), abs=1e-3)
    rows = list(csv.DictReader(io.StringIO(somebody.get("/api/spots/turn/decision.csv", params=line).text)))
    assert {row["hand"] for row in rows} == set(told["hands"])
    report = somebody.get("/api/spots/turn/runouts", params={"line": "check, check / * / check"}).json()
    assert (report["player"], len(report["cards"])) == ("dealer", 48)
    alone = found.decision("check, check / Kd / check")
    assert report["cards"]["Kd"]["frequencies"] == pytest.approx(alone.frequencies(), abs=1e-3)


@pytest.mark.parametrize(
    "line, status",
    [("check / 4s", 404), ("check, check / Qs", 404), ("check, check / 4s / fold", 404), ("check, check / xx", 404),
     ("check / *", 404), ("check, check / 4s / check, check / *", 404)],
)  # fmt: skip
def test_streets_that_are_not_there_are_refused(streets: tuple[Path, Solution], line: str, status: int) -> None:
    somebody = visitor(streets[0])
    for path in ("/spots/turn", "/api/spots/turn/street", "/api/spots/turn/runouts", "/api/spots/turn/decision.csv"):
        answer = somebody.get(path, params={"line": line})
        if "fold" not in line or "street" not in path:
            assert answer.status_code == status, path


def test_a_server_keeps_all_streets_of_what_it_solves(tmp_path: Path) -> None:
    """In its folder, or until it ends; renaming and deleting takes both files."""
    for folder in (tmp_path, None):
        somebody = visitor(folder)
        assert solve(somebody, {name: str(value) for name, value in TURN.items()})["name"] == "turn"
        line = {"line": "check, check / 4s"}
        before = somebody.get("/api/spots/turn/street", params=line).json()
        assert somebody.post("/api/spots/turn/rename", json={"name": "other"}).json()["name"] == "other"
        assert somebody.get("/api/spots/other/street", params=line).json() == before
        if folder:
            assert {path.name for path in folder.iterdir()} == {"other.json", "other.npz"}
            assert visitor(folder).get("/api/spots/other/street", params=line).json() == before
            (folder / "other.json").write_text(
                (folder / "other.json").read_text().replace('"iterations":', '"iterations":1')
            )
            answer = visitor(folder).get("/api/spots/other/street", params=line)
            assert (answer.status_code, "of another solution" in answer.text) == (409, True)
        assert somebody.delete("/api/spots/other").status_code == 204
    assert not list(tmp_path.iterdir())


def test_a_spot_without_its_streets_says_so(somebody: TestClient) -> None:
    assert "%2A" not in somebody.get("/spots/polar").text
    answer = somebody.get("/api/spots/polar/street", params={"line": "check, check / 4s"})
    assert answer.status_code == 404
    assert "There are no later streets of 'polar' here" in answer.json()["error"]
