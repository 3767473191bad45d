"""Kinds of hands on the page of a spot: which hands they have, and what a range does with them."""

import csv
import io
import re
from pathlib import Path

import numpy as np
import pytest
from fastapi.testclient import TestClient

from deepcfr.api import solve_spot
from deepcfr.search.spot import parse_board
from deepcfr.search.spot_file import write_solution
from deepcfr.web.app import build_app
from deepcfr.web.hand_kinds import hand_kinds, ranked
from deepcfr.web.site import open_site


@pytest.mark.parametrize(
    "board, hand, kinds",
    [
        ("Qs 7h 2s", "As Ks", "ace high, flush draw"),
        ("Qs 9h 2c", "Jh Th", "no pair, open-ended"),
        ("Qs 9h 2c", "Kh Th", "no pair, gutshot"),
        ("Ts 9h 2c", "Kh Jh", "two overcards, gutshot"),
        ("Ts 9h 2h", "Qh Jh", "two overcards, flush draw, open-ended"),
        ("Qs 9h 2c 4d 5c", "Jh Th", "no pair"),
        ("Qs 7h 2c", "Kc Kd", "overpair"),
        ("Qs 7h 2c", "Qh 3c", "top pair"),
        ("Qs 7h 2c", "8c 7c", "second pair"),
        ("Qs 7h 2c", "2h 3h", "lower pair"),
        ("Qs 7h 2c", "5c 5d", "lower pair"),
        ("Qs 7h 2c", "7c 7d", "set"),
        ("Qs 7h 2c", "Qh 7c", "two pair"),
        ("Qs Qd 2c", "Qh Jc", "trips"),
        ("Qs Qd 2c", "Ah Jc", "ace high"),
        ("Qs Qd 2c", "2h Jc", "lower pair"),
        ("Qs Qd 2c 7h", "Qh 7c", "full house"),
        ("Qs 7s 2s", "3s 4s", "flush"),
        ("5s 6h 7c 2d 2h", "8h 9h", "straight"),
        ("Qs Qd Qc 7h", "Qh 7c", "quads"),
        ("5s 6s 7s 2d", "8s 9s", "straight flush"),
    ],
)
def test_a_hand_has_its_made_hand_and_its_draws(board: str, hand: str, kinds: str) -> None:
    found = hand_kinds(np.array([sorted(parse_board(hand))], np.uint8), parse_board(board))
    assert ", ".join(found) == kinds


def test_values_over_a_range_are_places_of_the_middles_of_hands() -> None:
    values, weight = np.array([2.0, 1.0, np.nan, 3.0]), np.array([1.0, 3.0, 5.0, 0.0])
    assert ranked(values, weight) == [(37.5, 1.0), (87.5, 2.0)]
    assert ranked(values[2:], weight[2:]) == []


def test_the_page_has_means_of_each_kind_and_shows_one_alone(tmp_path: Path) -> None:
    spot = {"dealer": "AA,AhQh:0.5,T8s", "big_blind": "KK,QQ,4s3s", "pot": 10, "stacks": 40}
    write_solution(tmp_path / "kinds.npz", solve_spot("2c 2d 7h 9s Kc", "river 50", exploitability=0.5, **spot))
    client = TestClient(build_app(open_site((), "own", pytest.fail, spots=tmp_path)), base_url="http://127.0.0.1")
    table = client.get("/api/spots/kinds/decision.csv", params={"line": "check"}).text
    rows = list(csv.DictReader(io.StringIO(table)))
    kinds = {row["hand"]: row["made hand and draws"] for row in rows}
    assert {kinds[hand] for hand in ("AsAh", "AhQh", "Ts8s")} == {"overpair", "ace high", "no pair"}
    aces = [row for row in rows if row["kind"] == "AA"]
    weight = [float(row["weight"]) for row in aces]
    share = sum(weight) / sum(float(row["weight"]) for row in rows)
    value = np.average([float(row["EV"]) for row in aces], weights=weight)
    page = client.get("/spots/kinds?line=check&cell=overpair").text
    text = re.sub(r"\s+", " ", re.sub("<[^>]*>", " ", page[page.index("kinds-title") :]))
    assert f" {100 * share:.0f} % {value:.3f} " in text[text.index("overpair") : text.index("ace high")]
    ways = dict(re.findall(r'<a href="([^"]*)"[^>]*>(overpair|ace high)</a>', page))
    assert ways == {"/spots/kinds?line=check": "overpair", "/spots/kinds?line=check&amp;cell=ace+high": "ace high"}
    grid = page[: page.index("dealer: hands of overpair")]
    assert 'dealer-by-hand-AA"' in grid
    assert 'dealer-by-hand-AQs"' not in grid
    assert 'dealer-by-hand-AQs"' in client.get("/spots/kinds?line=check&cell=AA").text
    hands = re.search(r'name="hands" value="([^"]*)"', page)
    assert hands is not None
    assert sorted(hands[1].split(",")) == sorted(row["hand"] for row in aces)
