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
from deepcfr.core.errors import CheckpointError, ConfigError
from deepcfr.search.spot import Solution
from deepcfr.search.spot_sizes import amount_text
from deepcfr.web.app import build_app
from deepcfr.web.schema import SpotFacts
from deepcfr.web.site import Site, open_site
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
    return visitor(open_site((), "own", pytest.fail, spots=folder))


def visitor(site: Site) -> TestClient:
    return TestClient(build_app(site), base_url="http://127.0.0.1", follow_redirects=False)


def wait(client: TestClient, name: str) -> dict[str, Any]:
    """The state of a spot when it is no longer being solved."""
    while True:  # a server says of every spot how it ended, however busy the machine is
        state = client.get(f"/api/spots/{name}/state").json()
        if state["solved"] or state["problem"]:
            return dict(state)
        time.sleep(0.02)


def test_a_spot_is_solved_as_from_python_and_kept_as_a_file(tmp_path: Path, polar: Solution) -> None:
    client = visitor(open_site((), "own", pytest.fail, spots=tmp_path))
    begun = client.post("/api/spots", json=WISH)
    assert begun.status_code == 202
    assert begun.json()["name"] == "polar"
    state = wait(client, "polar")
    assert state["iterations"] == polar.iterations
    found, expected = client.get("/api/spots/polar").json(), json.loads(json.dumps(polar.facts()))
    for one in (found, expected):
        del one["seconds"]
    assert found == expected
    assert [each["name"] for each in client.get("/api/spots").json()] == ["polar"]
    assert json.loads((tmp_path / "polar.json").read_text()) == client.get("/api/spots/polar").json()
    again = visitor(open_site((), "own", pytest.fail, spots=tmp_path))
    assert again.get("/api/spots/polar").json() == client.get("/api/spots/polar").json()


def test_a_spot_has_its_smallest_bet_and_donk_bets(somebody: TestClient) -> None:
    wish = WISH | {"board": "[2♣,2♦,7h,9s]", "sizes": "turn 10, donk 90%", "aggressor": "dealer", "min_bet": 3}
    somebody.post("/api/spots", json=wish | {"name": "donk", "iterations": 1})
    wait(somebody, "donk")
    found = somebody.get("/api/spots/donk").json()
    assert (found["min_bet"], found["aggressor"], found["board"]) == (3, "dealer", "2c 2d 7h 9s")
    assert list(found["decisions"][0]["frequencies"]) == ["check", "bet 9"]
    assert list(found["decisions"][1]["frequencies"]) == ["check", "bet 3"]
    assert found["notes"] == [
        "Where bet 10 would be less than the smallest legal bet or raise, the smallest one is solved."
    ]
    assert found["notes"][0] in somebody.get("/spots/donk").text


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
    answer = somebody.get("/api/spots/polar/decision.csv", params={"line": "check"})
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    actions = ["check", "bet 5", "bet 10"]
    assert list(rows[0]) == [
        "hand",
        "kind",
        "reach",
        "weight",
        *actions,
        "EV",
        *(f"EV of {action}" for action in actions),
        "Equity %",
    ]
    assert len(rows) == 6 + 4
    aces = next(row for row in rows if row["hand"] == "AsAh")
    values = next(decision for decision in polar.facts()["decisions"] if decision["line"] == "check")["values"]
    assert [float(aces[f"EV of {action}"]) for action in actions] == values["AsAh"]
    mean = sum(float(aces[action]) * float(aces[f"EV of {action}"]) for action in actions)
    assert float(aces["EV"]) == pytest.approx(mean)
    start = csv.DictReader(io.StringIO(somebody.get("/api/spots/polar/decision.csv").text))
    kings = next(row for row in start if row["hand"] == "KsKh")
    assert float(kings["EV"]) == pytest.approx(polar.facts()["hand_values"]["big blind"]["KsKh"], abs=2e-3)
    assert float(kings["Equity %"]) == 100
    assert float(aces["Equity %"]) == pytest.approx(
        100 * polar.facts()["decisions"][1]["hand_equities"]["dealer"]["AsAh"]
    )
    assert sum(float(aces[name]) for name in ("check", "bet 5", "bet 10")) == pytest.approx(1, abs=1e-3)


def test_a_hand_that_meets_no_other_is_neither_on_the_page_nor_in_the_table(tmp_path: Path) -> None:
    """QdJd shares a card with every hand of the big blind."""
    ranges = {"dealer": "QdJd,AKs", "big_blind": "QdTd,QdTc,JdTh,Jd9h,QdQs"}
    lonely = solve_spot(RIVER, "river 50", pot=10, stacks=40, **ranges, iterations=5)
    (tmp_path / "lonely.json").write_text(json.dumps(lonely.facts()))
    client = visitor(open_site((), "own", pytest.fail, spots=tmp_path))
    rows = csv.DictReader(io.StringIO(client.get("/api/spots/lonely/decision.csv", params={"line": "check"}).text))
    values = {row["hand"]: row["EV"] for row in rows}
    assert values.keys() == {"AsKs", "AhKh", "AdKd"}
    assert all(float(value) > 0 for value in values.values())
    page = client.get("/spots/lonely?line=check&cell=QJs").text
    assert "dealer: hands of QJs" not in page
    assert "dealer: hands of AKs" in client.get("/spots/lonely?line=check&cell=AKs").text


def test_the_page_shows_grids_ways_and_hands(somebody: TestClient) -> None:
    page = somebody.get("/spots/polar?line=check&cell=AQs").text
    assert page.count('role="grid"') == 2
    assert "<b>dealer</b> to act" in page
    assert "dealer: hands of AQs" in page
    assert "EV of bet 5" in page
    assert "Equity %" in page
    assert 'href="/spots/polar?line=check%2C+bet+5' in page  # the big blind acts after a bet
    assert '<span class="end">' in page  # nobody acts after two checks
    first = somebody.get("/spots").text
    assert ">polar</a>" in first
    assert "<option>fhp</option>" in first
    assert f'value="{RIVER}"' in somebody.get("/spots?like=polar").text


@pytest.mark.parametrize(
    "pot, half, three_halves, places",
    [(10, "5", "15", 3), (4e-6, "0.000002", "0.000006", 10), (20_000_000, "10000000", "30000000", 0)],
)
def test_each_decision_has_its_pot_its_price_and_both_ranges(
    tmp_path: Path, pot: float, half: str, three_halves: str, places: int
) -> None:
    """After a bet of half the pot the dealer pays a half into three halves, so it needs 25 % equity."""
    texts = {name: WISH[name] for name in ("board", "dealer", "big_blind", "sizes")}
    found = solve_spot(**texts, pot=pot, stacks=4 * pot, exploitability=0, iterations=50)
    (tmp_path / "sized.json").write_text(json.dumps(found.facts()))
    client = visitor(open_site((), "own", pytest.fail, spots=tmp_path))
    page = client.get(f"/spots/sized?line=bet {half}&cell=AA").text
    text = re.sub(r"\s+", " ", re.sub("<[^>]*>", " ", page))
    assert f"pot {three_halves} · {half} to call · pot odds 25.0 %" in text
    here = next(decision for decision in found.decisions if decision.line == f"bet {half}")
    assert here.range_values is not None
    assert here.range_equities is not None
    for player, seat in enumerate(("dealer (IP)", "big blind (OOP)")):
        value, equity = here.range_values[player], here.range_equities[player]
        name, position = seat.rsplit(" ", 1)
        percent = 100 * value / here.pot
        assert f"{name} {position} {value:.{places}f} {100 * equity:.1f} % {percent:.1f} %" in text
    calling = client.get("/api/spots/sized").json()["decisions"]
    called = next(each for each in calling if each["line"] == here.line)["values"]["AsAh"][1]
    assert f'<td class="number">{called:.{places}f}</td>' in page
    form = client.get("/spots?like=sized").text
    assert f"<td>{RIVER}</td>" + f'<td class="number">{amount_text(pot)}</td>' in form
    assert f'id="pot" name="pot" value="{amount_text(pot)}"' in form


def test_amounts_of_a_comparison_and_shares_of_the_pot_have_no_exponent(folder: Path, polar: Solution) -> None:
    facts = json.loads(json.dumps(polar.facts()))
    for decision in facts["decisions"]:
        decision["range_values"] = dict.fromkeys(decision["range_values"], 2e-07)
    tiny = facts | {"pot": 4e-6, "stacks": 1.6e-5, "exploitability_percent": 250.0}
    for name in ("tiny", "less"):
        (folder / f"{name}.json").write_text(json.dumps(tiny))
    somebody = visitor(open_site((), "own", pytest.fail, spots=folder))
    page = somebody.get("/spots/tiny?with=less&cell=KK").text
    assert page.count("+0.0000000000</td>") == 2
    assert '<b class="number">250</b> % of the pot' in page
    assert '<td class="number">250 %</td>' in somebody.get("/spots").text


def test_a_spot_like_another_has_its_fields_and_keeps_its_locks(somebody: TestClient) -> None:
    facts = somebody.get("/api/spots/polar").json() | {
        "locks": [{"line": "", "frequencies": {"check": 0, "bet 5": 1, "bet 10": 0}}]
    }
    assert somebody.put("/api/spots/given", json=facts).json()["name"] == "given"
    page = somebody.get("/spots?like=given").text
    assert f'value="{RIVER}"' in page
    assert "Keep what is locked: the first decision" in page
    kept = {"board": RIVER, "pot": "10", "stacks": "40", "dealer": "AA", "big_blind": "KK", "sizes": "river 50 100"}
    for locks, first in (({"like": "given", "locks_of": "given"}, 1), ({"like": "given"}, 0)):
        begun = somebody.post("/spots", data=kept | locks | {"exploitability": "1"})
        name = begun.headers["location"].split("/")[-1]
        wait(somebody, name)
        found = somebody.get(f"/api/spots/{name}").json()
        assert (len(found["locks"]) == 1, found["decisions"][0]["frequencies"]["bet 5"] >= first) == (bool(first), True)


def test_a_lock_is_normalised_joined_undone_and_compared(somebody: TestClient) -> None:
    shares = {"share check": "0", "share bet 5": "3", "share bet 10": "1.00"}
    begun = somebody.post("/spots/polar/lock", data={"line": "", "hands": "", **shares})
    assert begun.headers["location"] == "/spots/polar-locked"
    wait(somebody, "polar-locked")
    facts = somebody.get("/api/spots/polar-locked").json()
    assert facts["decisions"][0]["frequencies"] == {"check": 0, "bet 5": 0.75, "bet 10": 0.25}
    shares = {"share check": "2", "share bet 5": "0", "share bet 10": "0"}
    begun = somebody.post("/spots/polar-locked/lock", data={"line": "", "hands": "KhKd,43s,AA", **shares})
    name = begun.headers["location"].split("/")[-1]
    wait(somebody, name)
    facts = somebody.get(f"/api/spots/{name}").json()
    assert facts["locks"][0]["hands"] == {name: [1, 0, 0] for name in ("KhKd", "4h3h", "4s3s")}
    assert facts["decisions"][0]["hands"]["KsKh"] == pytest.approx([0, 0.75, 0.25])  # as all hands were before
    assert facts["decisions"][0]["hands"]["4h3h"] == pytest.approx([1, 0, 0])
    page = somebody.get(f"/spots/{name}?with=polar&cell=KK").text
    assert "· locked" in page
    assert page.count('role="grid"') == 7
    assert 'aria-label="Difference by hand"' in page
    assert 'aria-label="Difference in EV of the big blind by hand"' in page
    begun = somebody.post(f"/spots/{name}/unlock", data={"line": ""})
    assert begun.headers["location"] == "/spots/polar-unlocked"
    wait(somebody, "polar-unlocked")
    assert somebody.get("/api/spots/polar-unlocked").json()["locks"] == []


@pytest.mark.parametrize(
    "change, field, sentence",
    [
        ({"share check": "all"}, "share-check", "'all' is not a share"),
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
    rows = {row.count("2.000") for row in table.split("<tr>")[2:]}
    assert (rows, table.count("0.000</td></tr>")) == ({0, 1}, 2)
    assert "+0.500" in page.split("more than worse")[1].split("</table>")[0]
    kinds = page.split('aria-label="Difference in EV of the big blind by hand"')[1]
    assert re.search(r"KK: EV [0-9.]+, \+0\.667", kinds)  # one of three hands
    assert re.search(r"43s: EV -?[0-9.]+, 0", kinds)


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
    del facts["board"]
    refused = somebody.put("/api/spots/bad", json=facts)
    assert (refused.status_code, "body.board" in refused.json()["error"]) == (422, True)


def test_a_form_without_sizes_has_no_bets(somebody: TestClient) -> None:
    form = {
        "board": RIVER,
        "pot": "10",
        "stacks": "40",
        "dealer": "AA",
        "big_blind": "KK",
        "sizes": "",
        "name": "quiet",
    }
    assert somebody.post("/spots", data=form).status_code == 303
    wait(somebody, "quiet")
    assert [each["frequencies"] for each in somebody.get("/api/spots/quiet").json()["decisions"]] == [{"check": 1}] * 2


@pytest.mark.parametrize("hands", [{}, {"KsKd": [5.0, 0.0, -4.0]}, {"KsKd": [2.0, 0.0, 0.0]}], ids=str)
def test_a_file_without_hands_or_with_impossible_shares_is_refused(
    somebody: TestClient, hands: dict[str, list[float]]
) -> None:
    facts = somebody.get("/api/spots/polar").json()
    facts["decisions"][0]["hands"] = hands
    refused = somebody.put("/api/spots/bad", json=facts)
    assert (refused.status_code, "body.decisions.0.hands" in refused.json()["error"]) == (422, True)


@pytest.mark.parametrize(
    "change, sentence",
    [
        (lambda facts: facts.update(exploitability_percent=-1), "body.exploitability_percent"),
        (lambda facts: facts.update(iterations=-1), "body.iterations"),
        (
            lambda facts: facts["decisions"][1].update(line="chek"),
            "after 'check', the dealer with check, bet 5, bet 10",
        ),
        (lambda facts: facts["decisions"][1].update(player="big blind"), "after 'check', the dealer with "),
        (lambda facts: facts["decisions"].append(facts["decisions"][1]), "after 'check', nobody acts"),
        (lambda facts: facts["decisions"].pop(), "The decisions of the file are not those of its sizes: after "),
        (lambda facts: facts.update(sizes="river 50 75"), "after '', the big blind with check, bet 5, bet 7.5 acts"),
        (lambda facts: facts.update(locks=[{"line": "chek"}]), "no decision after 'chek'"),
    ],
)
def test_a_file_that_does_not_fit_its_own_betting_is_refused(
    somebody: TestClient, change: Callable[[dict[str, Any]], Any], sentence: str
) -> None:
    facts = somebody.get("/api/spots/polar").json()
    change(facts)
    refused = somebody.put("/api/spots/bad", json=facts)
    assert (refused.status_code in (400, 422), sentence in refused.json()["error"]) == (True, True)
    assert [each["name"] for each in somebody.get("/api/spots").json()] == ["polar"]


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


def test_what_is_left_out_comes_from_an_agent() -> None:
    somebody = client(agent("leaning", "hulh", Leaning))
    wish = {"board": "Qs7h2c9d4s", "stacks": "3", "sizes": "river 100", "iterations": "1"}
    begun = somebody.post("/spots", data=wish | {"agent": "leaning", "line": "rc/cc/cc"})
    name = begun.headers["location"].split("/")[-1]
    assert name == "Qs7h2c9d4s"
    wait(somebody, name)
    facts = somebody.get(f"/api/spots/{name}").json()
    assert facts["pot"] == 4
    assert len(facts["hand_values"]["dealer"]) > 1_000


def test_spots_wait_for_their_turn_and_can_be_stopped(somebody: TestClient) -> None:
    long = WISH | {
        "board": "2c 2d 7h 9s",
        "sizes": "turn 50, river 50",
        "exploitability": 0,
        "iterations": 100_000,
        "name": "long",
    }
    assert somebody.post("/api/spots", json=long).json()["exploitability_percent"] is None
    page = somebody.get("/spots/long").text
    assert "data-wait" in page
    assert "of at most 100000" in page
    assert [somebody.post("/api/spots", json=WISH | {"name": name}).json()["waits"] for name in ("a", "b", "c")] == [
        1,
        2,
        3,
    ]
    assert somebody.get("/api/spots/long").status_code == 404  # nothing is solved yet
    assert "being solved" in somebody.get("/spots").text
    assert "waits, in place 3" in somebody.get("/spots").text
    assert somebody.post("/spots/a/stop").headers["location"] == "/spots"  # one that waits leaves nothing
    assert somebody.get("/spots/a").status_code == 404
    assert 'in place <b class="number">1</b>' in somebody.get("/spots/b").text
    assert somebody.post("/spots/long/stop").headers["location"] == "/spots/long"
    assert 0 < wait(somebody, "long")["iterations"] < 100_000
    assert all(wait(somebody, name)["solved"] for name in ("b", "c"))
    assert somebody.post("/api/spots/long/stop").json()["solved"]


def test_a_spot_that_cannot_be_kept_says_so(tmp_path: Path) -> None:
    site = open_site((), "own", pytest.fail, spots=tmp_path / "kept")
    client = visitor(site)
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
        ({"board": "Qs 7h"}, 400, "3, 4 or 5 cards"),
        ({"dealer": None}, 400, "needs a value for the range of the dealer"),
        ({"dealer": "KcKd"}, 400, "no hand that is possible"),
        ({"agent": "nobody"}, 404, "no run named 'nobody'"),
        ({"sizes": "river x"}, 400, "needs percentages"),
        ({"exploitability": -1}, 422, "body.exploitability"),
        ({"iterations": 0}, 422, "body.iterations"),
        ({"locks": [{"line": "bet"}]}, 400, "no decision after 'bet'"),
        ({"locks": [{"line": "", "player": "dealer"}]}, 400, "the big blind acts, not 'dealer'"),
        ({"locks": [{"line": "", "frequencies": {"check": "often"}}]}, 422, "body.locks"),
        ({"cap": "inf"}, 422, "body.cap"),
        ({"more": 1}, 422, "body.more"),
        (
            {
                "board": "Qs 7h 2c",
                "dealer": "22+",
                "big_blind": "22+",
                "sizes": "flop 20 50 100, turn 20 50, raise 50",
            },
            400,
            "are allowed",
        ),
    ],
    ids=lambda value: str(value)[:30],
)
def test_mistakes_are_sentences_and_nothing_begins(
    somebody: TestClient, change: dict[str, object], status: int, sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("deepcfr.web.spots.memory_for_spots", lambda: 1e8)
    answer = somebody.post("/api/spots", json=WISH | change)
    assert answer.status_code == status
    assert sentence in answer.json()["error"]
    assert [each["name"] for each in somebody.get("/api/spots").json()] == ["polar"]


@pytest.mark.parametrize(
    "path, status",
    [
        ("/spots/nobody", 404),
        ("/spots?like=nobody", 404),
        ("/spots/polar?line=fold", 404),
        ("/spots/polar?line=" + "x" * 401, 422),
        ("/spots/polar?cell=72o", 200),
        ("/spots/..%2fpolar", 404),
        ("/api/spots/nobody", 404),
        ("/api/spots/nobody/state", 404),
        ("/api/spots/polar/decision.csv?line=check, fold", 404),
    ],
)
def test_addresses(somebody: TestClient, path: str, status: int) -> None:
    answer = somebody.get(path)
    assert answer.status_code == status
    assert answer.headers["content-security-policy"].startswith("default-src 'none'")


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
            {"pot": "A spot needs a value for the pot", "stacks": "The stacks must be above 0"},
        ),
        (
            {"board": "", "dealer": "QQQ"},
            {"board": "This field is needed.", "dealer": "'QQQ' is not a part of a range"},
        ),
        ({"board": "Qs 7h"}, {"board": "A board has 3, 4 or 5 cards"}),
        ({"board": "Qs 7h 2c 9d Qs"}, {"board": "The card Qs is given 2 times."}),
        ({"dealer": "KcKd"}, {"dealer": "The range of the dealer has no hand"}),
        ({"sizes": "river x", "rake": "100", "cap": "2"}, {"sizes": "'river x' needs", "rake": "The rake must be"}),
        ({"cap": "2"}, {"cap": "A cap of 2 needs a rake."}),
        ({"cap": "inf"}, {"cap": "Input should be a finite number, but is 'inf'."}),
        ({"iterations": "1.5"}, {"iterations": "'1.5' is not a whole number."}),
        ({"iterations": "0"}, {"iterations": "Input should be greater than or equal to 1, but is '0'."}),
        ({"line": "rc"}, {"line": "The line 'rc' needs an agent"}),
        ({"agent": "fhp", "line": "x"}, {"line": "'x'"}),
        ({"board": "Qs 7h 2c", "sizes": "bet 20 50 100, raise 50"}, {"sizes": "The spot needs up to "}),
        ({"sizes": "river 1 2 3 4, raise 1 2 3 4"}, {"sizes": "The betting of the spot has more than 20,000 nodes"}),
        ({"sizes": "river 50 100", "dealer": "AA-22"}, {"sizes": "The spot has "}),
        ({"dealer": "AsQs", "big_blind": "AsQs"}, {"": "No hand of the dealer's range is possible"}),
    ],
    ids=lambda value: str(value)[:40],
)
def test_the_mistakes_of_a_form_are_at_their_fields_and_nothing_is_lost(
    somebody: TestClient, change: dict[str, str], found: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("deepcfr.web.spots.memory_for_spots", lambda: 1e8)
    monkeypatch.setattr("deepcfr.web.spot_shelf.MOST_ROWS", 100)
    monkeypatch.setattr("deepcfr.game.betting.MOST_NODES", 20_000)
    answer = somebody.post("/spots", data=FORM | change)
    assert answer.status_code == 400
    told = mistakes_of(answer.text)
    assert told.keys() == found.keys() - {""}
    assert all(told[name].startswith(sentence) for name, sentence in found.items() if name)
    assert found.get("", "") in answer.text.split('role="alert"')[1].split("</p>")[0].replace("&#39;", "'")
    for name, value in (FORM | change).items():
        kept = f'name="{name}" value="{value}"', f">{value}</textarea>", f"<option selected>{value}</option>"
        assert any(each in answer.text for each in kept), name
    assert [each["name"] for each in somebody.get("/api/spots").json()] == ["polar"]


@pytest.mark.parametrize(
    "change, field, sentence",
    [
        ({"agent": "nobody", "line": "rc"}, "agent", "There is no run named 'nobody' here: "),
        ({"agent": "leduc", "line": "rc"}, "agent", "Ranges of a spot come from hold'em, and 'leduc' is not it."),
        ({"locks_of": "gone", "like": "gone"}, "locks_of", "There is no solved spot named 'gone' here."),
    ],
)
def test_what_the_form_does_not_offer_is_told_at_its_field(
    somebody: TestClient, change: dict[str, str], field: str, sentence: str
) -> None:
    answer = somebody.post("/spots", data=FORM | change)
    assert (answer.status_code, mistakes_of(answer.text).keys()) == (400, {field})
    assert mistakes_of(answer.text)[field].startswith(sentence)
    assert f">{FORM['big_blind']}</textarea>" in answer.text


def mistakes_of(page: str) -> dict[str, str]:
    """The sentences at the fields of a page that are marked as wrong, by the fields."""
    marked = re.findall(r'id="([^"]*)"[^>]* aria-invalid="true" aria-describedby="mistake-\1"', page)
    found = dict(re.findall(r'<span class="mistake" id="mistake-([^"]*)">([^<]+)</span>', page))
    assert set(marked) == set(found)
    return {name: sentence.replace("&#39;", "'") for name, sentence in found.items()}


def test_the_form_begins_with_an_example_that_is_solved(somebody: TestClient) -> None:
    page = somebody.get("/spots").text
    fields = dict(re.findall(r'<input id="([^"]*)" name="[^"]*" value="([^"]*)"', page))
    fields |= dict(re.findall(r'<textarea id="([^"]*)"[^>]*>([^<]*)</textarea>', page))
    assert fields.keys() >= {"board", "pot", "stacks", "dealer", "big_blind", "sizes"}
    begun = somebody.post("/spots", data=fields | {"exploitability": "5"})
    state = wait(somebody, begun.headers["location"].split("/")[-1])
    assert state["solved"]
    assert state["exploitability_percent"] <= 5


@pytest.mark.parametrize(
    "text, sentence",
    [
        ("{", "is not a file of deepcfr spot --out"),
        ("{}", "board: Field required"),
        ('"first"', "is not a file of deepcfr spot --out"),
    ],
)
def test_files_that_are_no_spots_are_named_and_left_out(tmp_path: Path, text: str, sentence: str) -> None:
    (tmp_path / "x.json").write_text(text)
    said: list[str] = []
    shelf = SpotShelf(tmp_path, said.append)
    assert shelf.everything() == ({}, [])
    assert len(said) == 1
    assert sentence in said[0]


@pytest.mark.parametrize(
    "change, sentence",
    [
        (lambda facts: facts["decisions"][0]["hands"].update({"4s3s": [1]}), "too few or too many probabilities"),
        (lambda facts: facts["decisions"].pop(0), "first decision is not the one before all actions"),
        (lambda facts: facts["hand_values"]["dealer"].popitem(), "hands with a value and hands with an equity differ"),
        (lambda facts: facts["hand_values"].popitem(), "at least 2 items"),
        (lambda facts: facts["decisions"][0]["values"]["KsKh"].append(1), "too few or too many values"),
        (lambda facts: facts["hand_values"]["dealer"].update({"AsXx": 1}), "should match pattern"),
    ],
)
def test_files_that_contradict_themselves_are_named(
    tmp_path: Path, polar: Solution, change: Any, sentence: str
) -> None:
    facts = json.loads(json.dumps(polar.facts()))
    change(facts)
    (tmp_path / "x.json").write_text(json.dumps(facts))
    with pytest.raises(CheckpointError, match=sentence):
        read_spot(tmp_path / "x.json")


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


def test_pages_of_other_sites_change_nothing(somebody: TestClient) -> None:
    for origin, status in (("http://evil.example", 403), ("null", 403), ("http://[", 403), ("http://127.0.0.1", 202)):
        answer = somebody.post("/api/spots", json=WISH | {"name": "other"}, headers={"origin": origin})
        assert answer.status_code == status
    wait(somebody, "other")


def test_ranges_of_a_run_can_be_locked_and_changed() -> None:
    """Every hand of such a range has a weight of its own."""
    somebody = client(agent("leaning", "hulh", Leaning))
    wish = {"board": "Qs7h2c9d4s", "sizes": "river 100", "stacks": "9", "iterations": "1"}
    somebody.post("/spots", data=wish | {"agent": "leaning", "line": "rc/cc/cc", "name": "own"})
    wait(somebody, "own")
    first = somebody.get("/api/spots/own").json()
    assert first["dealer"].count(":") > 500
    shares = {f"share {action}": "50" for action in first["decisions"][0]["frequencies"]}
    begun = somebody.post("/spots/own/lock", data={"line": "", **shares})
    assert begun.headers["location"] == "/spots/own-locked"
    somebody.post("/spots/own-locked/stop")
    wait(somebody, "own-locked")
    assert first["dealer"] in somebody.get("/spots?like=own").text
    given = {name: first[name] for name in ("dealer", "big_blind")}
    somebody.post("/spots", data=wish | given | {"pot": "4", "name": "again"})
    wait(somebody, "again")
    assert somebody.get("/api/spots/again").json()["dealer"] == first["dealer"]


def test_too_many_strategies_for_a_page_are_refused(somebody: TestClient) -> None:
    sizes = "river 25 50 75 100 150, raise 25 50 75 100 150, allin"
    wish = WISH | {"dealer": "22+,A2+", "big_blind": "22+,A2+,K2+,Q2+", "sizes": sizes, "stacks": 200}
    answer = somebody.post("/api/spots", json=wish)
    assert answer.status_code == 400
    assert "and a page shows at most 400,000" in answer.json()["error"]


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
    somebody = visitor(site)
    assert "Stopping…" not in somebody.get("/spots/slow").text
    assert somebody.post("/api/spots/slow/stop").json()["stopping"]
    assert "Stopping…" in somebody.get("/spots/slow").text
    slow.over.set()


def test_the_time_that_is_left_is_estimated_by_the_square_of_the_iterations(monkeypatch: pytest.MonkeyPatch) -> None:
    """An exploitability four times the goal after 10 iterations needs 20."""
    monkeypatch.setattr("deepcfr.web.spot_shelf.time", SimpleNamespace(monotonic=lambda: 105.0))
    job = SolveJob(Slow(), "small", goal=0.05, iterations=1_000, began=100.0)  # type: ignore[arg-type]
    for done, most, left in ((10, 1_000, 5), (15, 1_000, 5 / 3), (15, 18, 1)):
        job.iterations = most
        job.progress(done, 0.2)
        state = job.state("a")
        assert (state.seconds, state.seconds_left, state.exploitability_percent) == (5, pytest.approx(left), 0.2)
