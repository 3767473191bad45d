"""Seats: made by forms only, kept over a restart, and hands that are dealt again."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from deepcfr.policy.base import UniformPolicy
from deepcfr.web.app import build_app
from deepcfr.web.play import COOKIE, Seats
from deepcfr.web.site import NamedRun
from deepcfr.web.table import WebSeat
from web_site import agent, client, model, site

Begin = Callable[..., TestClient]


@pytest.fixture
def begin(tmp_path: Path) -> Begin:
    """Start a server on one folder of seats: a visitor with the given cookie."""

    def start(token: str | None = None, *runs: NamedRun, warn: Callable[[str], None] = pytest.fail) -> TestClient:
        served = site(*(runs or (agent("even", "leduc", UniformPolicy), model("kuhn"))))
        served.seats, served.warn = tmp_path / "seats", warn
        person = TestClient(build_app(served), base_url="http://127.0.0.1", follow_redirects=False)
        if token:
            person.cookies.set(COOKIE, token, domain="127.0.0.1", path="/")
        return person

    return start


def sit(person: TestClient, **wish: Any) -> dict[str, Any]:
    answer = person.post("/api/play/even", json=wish)
    assert answer.status_code == 201
    return answer.json()


def state_of(person: TestClient) -> dict[str, Any]:
    return person.get("/api/play/even").json()


def act(person: TestClient, token: str = "c") -> dict[str, Any]:
    state = state_of(person)
    body = {"hand": state["hand"], "decision": state["decision"], "action": token}
    answer = person.post("/api/play/even/act", json=body)
    assert answer.status_code == 200
    return answer.json()


def finish(person: TestClient) -> dict[str, Any]:
    while not (state := state_of(person))["over"]:
        act(person)
    return state


def next_hand(person: TestClient) -> dict[str, Any]:
    return person.post("/api/play/even/next", json={"hand": state_of(person)["hand"]}).json()


@pytest.mark.parametrize("path", ["/", "/play", "/play/even", "/play/even?seed=7&hand=2", "/api/play/even"])
def test_no_link_makes_or_changes_a_seat(begin: Begin, path: str, tmp_path: Path) -> None:
    stranger = begin()
    assert "set-cookie" not in stranger.get(path).headers
    assert not any((tmp_path / "seats").iterdir())
    person = begin()
    before = sit(person, seed=3)
    assert "set-cookie" not in person.get(path).headers
    assert state_of(person) == before


def test_a_form_takes_a_seat_once(begin: Begin) -> None:
    person = begin()
    page = person.get("/play/even").text
    assert '<form method="post" action="/play/even"' in page
    taken = person.post("/play/even", data={"seed": "5"})
    assert (taken.status_code, taken.headers["location"]) == (303, "/play/even")
    before = state_of(person)
    again = person.post("/play/even", data={"seed": "6"})  # from an old page
    assert again.status_code == 303
    assert "set-cookie" not in again.headers
    assert state_of(person) == before
    assert 'name="decision"' in person.get("/play/even").text


def test_seat_results_and_hand_are_there_after_a_restart(begin: Begin) -> None:
    person = begin()
    sit(person)
    for _ in range(3):
        finish(person)
        next_hand(person)
    state, token = act(person), person.cookies[COOKIE]
    later = begin(token)
    assert state_of(later) == state
    assert state["session"]["raw"]["hands"] >= 3
    assert finish(later) == finish(person)  # the same cards and the same agent
    assert next_hand(later) == next_hand(person)  # of the same secret
    assert state_of(begin(token))["hand"] == 4


def test_a_finished_hand_is_not_counted_twice_by_a_restart(begin: Begin) -> None:
    person = begin()
    sit(person, seed=1)
    over = finish(person)
    assert state_of(begin(person.cookies[COOKIE])) == over


def test_people_are_told_apart_after_a_restart(begin: Begin, tmp_path: Path) -> None:
    first, second = begin(), begin()
    states = [sit(first, seed=1), sit(second, seed=2)]
    tokens = [first.cookies[COOKIE], second.cookies[COOKIE]]
    assert [state_of(begin(token)) for token in tokens] == states
    assert begin("made-up").get("/api/play/even").status_code == 404
    kept = "".join(path.name + path.read_text() for path in (tmp_path / "seats").iterdir())
    assert not any(token in kept for token in tokens)  # who reads the files cannot take a seat
    assert (tmp_path / "seats").stat().st_mode & 0o077 == 0
    known = begin(tokens[0])
    sit(known, seed=9)
    assert known.cookies[COOKIE] == tokens[0]


def test_servers_on_two_ports_of_a_host_leave_each_other_their_seats(begin: Begin) -> None:
    """A browser sends the cookies of a host to all of its ports."""
    first, second = begin(), client(agent("even", "kuhn", UniformPolicy))
    second.cookies.jar = first.cookies.jar
    first.base_url, second.base_url = "http://127.0.0.1:8321", "http://127.0.0.1:8322"  # type: ignore[assignment]
    before = sit(first, seed=1)
    assert second.get("/api/play/even").status_code == 404
    sit(second, seed=2)
    assert state_of(first) == before


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"game": "kuhn"}, "is of another game"),
        ({"raw": 1}, "is damaged"),
        ({"hand": {"seed": 1, "number": 0, "steps": ["x"]}}, "is of another game"),
        (None, "cannot be read"),
    ],
)
def test_a_seat_that_cannot_go_on_is_told_and_left(begin: Begin, tmp_path: Path, change: Any, words: str) -> None:
    person, told = begin(), []
    sit(person, seed=1)
    (path,) = (tmp_path / "seats").iterdir()
    path.write_text("{" if change is None else json.dumps(json.loads(path.read_text()) | change))
    later = begin(person.cookies[COOKIE], warn=told.append)
    assert later.get("/api/play/even").status_code == 404
    assert words in told[0]
    sit(later, seed=1)


def test_seats_that_cannot_be_kept_are_told_once_and_stay_in_memory(begin: Begin, tmp_path: Path) -> None:
    (tmp_path / "seats").write_text("a file is in the way")
    told: list[str] = []
    person = begin(None, warn=told.append)
    sit(person, seed=1)
    act(person)
    assert len(told) == 1
    assert "Seats and results are lost when the server stops" in told[0]


def test_files_of_seats_that_were_not_used_for_longest_are_removed(tmp_path: Path) -> None:
    policy = agent("even", "kuhn", UniformPolicy).agent().policy
    seats = Seats(tmp_path, pytest.fail, most=2)
    for token in "abc":
        seats.put(token, WebSeat("even", policy, None, seed=1))
    assert len(list(tmp_path.iterdir())) == 2
    assert [seats.known(token) for token in "abc"] == [False, True, True]
    Seats(tmp_path, pytest.fail, most=1)
    assert len(list(tmp_path.iterdir())) == 1


def test_a_link_deals_a_hand_again_beside_the_session(begin: Begin) -> None:
    person = begin()
    sit(person)
    finish(person)
    over = finish(person) if not next_hand(person)["over"] else state_of(person)
    seed = over["result"]["seed"]
    assert f'href="/play/even?seed={seed}&amp;hand=2"' in person.get("/play/even").text
    offer = person.get("/play/even", params={"seed": seed, "hand": 2}).text
    assert f"Hand 2 of seed <code>{seed}</code> is dealt again" in offer
    assert person.post("/play/even", data={"seed": seed, "hand": "2"}).status_code == 303
    again = state_of(person)
    assert (again["hand"], again["cards"], again["counts"]) == (1, over["cards"], False)
    refused = person.post("/play/even", data={"seed": seed, "hand": "2"})
    assert refused.status_code == 409  # one hand after the other
    done = finish(person)
    assert done["result"]["agent_cards"] == over["result"]["agent_cards"]
    assert done["session"] == over["session"]
    assert finish(begin(person.cookies[COOKIE])) == done  # after a restart, too
    assert (next_hand(person)["hand"], state_of(person)["counts"]) == (2, True)


def test_somebody_without_a_seat_follows_the_link_of_a_hand(begin: Begin) -> None:
    seed, person = str(2**64 - 1), begin()
    assert person.post("/play/even", data={"seed": seed, "hand": "4"}).status_code == 303
    shown = state_of(person)
    assert (shown["hand"], shown["counts"], shown["session"]["raw"]["hands"]) == (3, False, 0)
    other = begin()
    assert sit(other, seed=seed, hand=3)["cards"] == shown["cards"]
    finish(person)
    assert (next_hand(person)["hand"], state_of(person)["counts"]) == (0, True)


def test_a_seed_that_was_shown_can_be_given(begin: Begin) -> None:
    person = begin()
    sit(person)
    over = finish(person)
    seed = over["result"]["seed"]
    for answer in (
        person.post("/play/even/new", data={"seed": seed}),
        person.post("/api/play/even", json={"seed": seed}),
    ):
        assert answer.status_code in (201, 303)
        assert state_of(person)["cards"] == over["cards"]
    field = person.get("/play/even").text
    assert len(seed) <= 20
    assert 'pattern="[0-9]{0,20}" maxlength="20"' in field


@pytest.mark.parametrize("seed", [str(2**64), "-1", "7x"])
def test_what_is_no_seed_is_quoted(begin: Begin, seed: str) -> None:
    answer = begin().post("/play/even/new", data={"seed": seed})
    assert answer.status_code == 400
    assert f"a whole number from 0 to {2**64 - 1} as seed, but has &#39;{seed}&#39;" in answer.text
    assert begin().post("/api/play/even", json={"seed": seed}).status_code == 422
