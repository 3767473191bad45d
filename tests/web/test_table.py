"""Playing through the server: seats, hands that are resumed, idempotent and dealt again, and what is not allowed."""

import json
import math
import statistics
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any
from unittest.mock import Mock

import pytest
from fastapi.testclient import TestClient

from deepcfr.core.errors import GameError
from deepcfr.game.poker import PokerGame
from deepcfr.game.rules import PRESETS
from deepcfr.play.hand import Hand
from deepcfr.policy.base import UniformPolicy
from deepcfr.policy.styles import scripted_policy
from deepcfr.web import table
from deepcfr.web.app import build_app
from deepcfr.web.play import COOKIE, Seats
from deepcfr.web.table import WebSeat
from web_site import Person, agent, client, model, site

PAGES = "text/html; charset=utf-8"
MANY = 45  # more than there are threads for requests
KUHN = PokerGame(PRESETS["kuhn"])


@pytest.fixture(scope="module")
def people() -> Iterator[TestClient]:
    with client(model("kuhn"), model("leduc"), agent("even", "leduc", UniformPolicy)) as everybody:
        yield everybody


@pytest.fixture
def person(people: TestClient) -> Person:
    """Somebody at the table of the even agent, without a seat yet."""
    people.cookies.clear()
    return Person(people, "even")


def test_seats_alternate_and_results_add_up(person: Person) -> None:
    state = person.sit()
    raw, adjusted = [], []
    for hand in range(6):
        assert (state["hand"], state["seat"]) == (hand, hand % 2)
        state = person.finish("crf"[hand % 3])
        raw.append(state["result"]["won"])
        adjusted.append(state["result"]["adjusted"])
        for numbers, tally in ((raw, "raw"), (adjusted, "adjusted")):
            told = state["session"][tally]
            assert told["mean_milli"] == pytest.approx(1000 * statistics.mean(numbers), abs=1e-9)
            half = 1.959964 * statistics.stdev(numbers) / math.sqrt(hand + 1) if hand else None
            assert told["interval_milli"] == (half and pytest.approx(1000 * half, rel=1e-6, abs=1e-9))
        state = person.next()


def test_a_reload_resumes_the_hand_of_this_person_only(person: Person) -> None:
    people = person.client
    person.sit(seed=3)
    state = person.act().json()
    page = people.get("/play/even")
    assert page.headers["content-type"] == PAGES
    assert f'name="decision" value="{state["decision"]}"' in page.text
    assert person.state == state
    first = people.cookies[COOKIE]
    people.cookies.clear()
    assert people.get(person.path).status_code == 404
    person.sit(seed=4)
    assert people.cookies[COOKIE] != first
    people.cookies.clear()
    given = people.post(person.path, json={}, headers={"cookie": f"{COOKIE}=made-up"})
    assert "made-up" not in given.headers["set-cookie"]  # nobody chooses the key to a seat


@pytest.mark.parametrize(
    ("change", "status", "words"),
    [
        ({"decision": 99}, 409, "for decision 99"),
        ({"hand": 5}, 409, "'hand' of the action is 5, but the current one is 0"),
        ({"action": "f"}, 400, "not legal here; legal actions are c, r"),
        ({"action": "r" * 201}, 422, "cannot be read: 'body.action'"),
        ({"hand": -1}, 422, "body.hand"),
        ({"hand": "0"}, 422, "but is '0'"),
        ({"hand": True}, 422, "body.hand"),
        ({"more": 1}, 422, "body.more"),
        ({"action": None}, 422, "body.action"),
    ],
)
def test_what_cannot_be_is_refused_with_a_sentence_and_changes_nothing(
    person: Person, change: dict[str, Any], status: int, words: str
) -> None:
    state = person.sit(seed=0)
    answer = person.act(**change)
    assert answer.status_code == status
    assert words in answer.json()["error"]
    assert answer.json()["error"].endswith(".")
    assert person.state == state


def test_an_action_that_comes_again_changes_nothing(person: Person) -> None:
    person.sit(seed=0)
    after = person.act().json()
    assert person.act(decision=0).status_code == 409
    assert person.state == after
    person.finish()
    answer = person.act()
    assert (answer.status_code, answer.json()) == (409, {"error": "Hand number 0 is over: ask for the next one."})
    second = person.next()
    for hand in (0, 1):  # the last one, and one that is not over yet
        assert person.client.post(f"{person.path}/next", json={"hand": hand}).status_code == 409
    assert person.state == second
    assert second["session"]["raw"]["hands"] == 1


def test_forms_do_the_same_and_lead_back_to_the_table(person: Person) -> None:
    people = person.client
    assert people.post("/play/even").status_code == 303
    fields = {"hand": 0, "decision": person.state["decision"], "action": "c"}
    done = people.post("/play/even/act", data=fields)
    assert (done.status_code, done.headers["location"]) == (303, "/play/even")
    again = people.post("/play/even/act", data=fields)
    assert (again.status_code, again.headers["content-type"]) == (409, PAGES)
    assert 'role="alert">Nothing was changed. The action is for decision' in again.text
    assert f'name="decision" value="{person.state["decision"]}"' in again.text  # the table
    for bad in ({"hand": "x", "decision": "0", "action": "c"}, {"decision": "0"}, {"hand": "9" * 30, "decision": "0"}):
        assert people.post("/play/even/act", data=bad).status_code == 400
    assert people.post("/play/even/act", content=b"%ff%fe", headers={"content-type": "x"}).status_code == 400
    broken = people.post(person.path, content=b"{no", headers={"content-type": "application/json"})
    assert broken.json()["error"] == "The request cannot be read: 'body.1': JSON decode error."


def test_large_requests_are_refused(person: Person) -> None:
    for content in (b"x" * 140_000, (b"x" * 1_000 for _ in range(140))):
        answer = person.client.post(f"{person.path}/act", content=content)
        assert answer.status_code == 413
        assert "larger than 131,072 bytes" in answer.json()["error"]


def test_reviews_come_after_the_hand_and_cost_what_best_responses_say(people: TestClient) -> None:
    person = Person(people, "kuhn")
    person.sit(seed=0)
    asked = f"{person.path}/review"
    assert people.get(asked, params={"hand": 0}).status_code == 409
    over = person.finish()
    review = people.get(asked, params={"hand": 0}).json()
    assert len(review["decisions"]) == sum(step["who"] == "you" for step in over["steps"])
    for decision in review["decisions"]:
        best = max(decision["values"].values())
        assert decision["cost"] == pytest.approx(best - decision["values"][decision["action"]])
    assert sum(hand["probability"] for hand in review["range"]) == pytest.approx(1)
    assert review["note"] is None
    plain = people.get(asked, params={"hand": 0, "exact": False}).json()
    assert all(decision["values"] is None for decision in plain["decisions"])
    page, part = (people.get("/play/kuhn/review", params={"hand": 0, "part": part}).text for part in (False, True))
    assert "best" in part
    assert part.strip() in page
    assert people.get(asked, params={"hand": 3}).status_code == 409


def test_a_seat_keeps_no_more_after_many_hands() -> None:
    seat = WebSeat("kuhn", scripted_policy("call", KUHN), None, seed=1)
    for number in range(20):
        seat.act(number, number % 2, "c")
        seat.next_hand(number)
    assert seat.raw.count == 20
    assert not any(isinstance(value, list) and len(value) > 10 for value in vars(seat).values())


def test_an_agent_that_failed_plays_on_and_the_person_never_for_it(
    people: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    person = Person(people, "kuhn")
    person.sit(seed=1)
    plays = Hand.act_for_agent
    monkeypatch.setattr(Hand, "act_for_agent", Mock(side_effect=GameError("No memory.")))
    assert person.act("r").json() == {"error": "No memory."}
    monkeypatch.setattr(Hand, "act_for_agent", plays)
    after = person.state
    assert [step["who"] for step in after["steps"]] == ["you", "agent"]
    assert after["over"]
    assert person.state["session"] == after["session"]
    assert after["session"]["raw"]["hands"] == 1


def test_a_hand_whose_count_failed_is_counted_before_the_next_one(monkeypatch: pytest.MonkeyPatch) -> None:
    seat = WebSeat("kuhn", scripted_policy("raise", KUHN), None, seed=1)
    seat.act(0, 0, "c")
    with monkeypatch.context() as patch:
        patch.setattr(table, "adjusted_result", Mock(side_effect=GameError("No memory.")))
        with pytest.raises(GameError, match="No memory"):
            seat.act(0, 2, "c")
        assert (seat.hand.over, seat.raw.count) == (True, 0)
    seat.next_hand(0)
    assert (seat.raw.count, seat.hand.number) == (1, 1)


def test_people_who_act_do_not_wait_for_reviews(people: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    go, review = Event(), WebSeat.review

    def slow(self: WebSeat, number: int, exact: bool) -> dict[str, Any]:
        assert go.wait(60)
        return review(self, number, exact)

    waits, acts = Person(people, "leduc"), Person(people, "kuhn")
    for person in (waits, acts):
        person.sit(seed=1)
    waits.finish()
    monkeypatch.setattr(WebSeat, "review", slow)
    with ThreadPoolExecutor(MANY + 1) as pool:
        reviews = [pool.submit(people.get, f"{waits.path}/review", params={"hand": 0}) for _ in range(MANY)]
        acted = pool.submit(acts.act).result(30)
        waiting = sum(not asked.done() for asked in reviews)
        go.set()
        assert (acted.status_code, waiting) == (200, MANY)
        assert {asked.result(60).status_code for asked in reviews} == {200}


# Seats that are kept


Begin = Callable[..., Person]


@pytest.fixture
def begin(tmp_path: Path) -> Begin:
    """Start a server on one folder of seats: a visitor with the given cookie."""

    def start(token: str | None = None, warn: Callable[[str], None] = pytest.fail) -> Person:
        served = site(agent("even", "leduc", UniformPolicy), model("kuhn"))
        served.seats, served.warn = tmp_path / "seats", warn
        visitor = TestClient(build_app(served), base_url="http://127.0.0.1", follow_redirects=False)
        if token:
            visitor.cookies.set(COOKIE, token, domain="127.0.0.1", path="/")
        return Person(visitor, "even")

    return start


def token_of(person: Person) -> str:
    return str(person.client.cookies[COOKIE])


@pytest.mark.parametrize("path", ["/", "/play/even", "/play/even?seed=7&hand=2", "/api/play/even"])
def test_no_link_makes_or_changes_a_seat(begin: Begin, path: str, tmp_path: Path) -> None:
    person = begin()
    assert "set-cookie" not in person.client.get(path).headers
    assert not any((tmp_path / "seats").iterdir())
    before = person.sit(seed=3)
    assert "set-cookie" not in person.client.get(path).headers
    assert person.state == before


def test_a_form_takes_a_seat_once(begin: Begin) -> None:
    person = begin()
    assert '<form method="post" action="/play/even"' in person.client.get("/play/even").text
    person.client.post("/play/even", data={"seed": "5"})
    before = person.state
    again = person.client.post("/play/even", data={"seed": "6"})  # from an old page
    assert again.status_code == 303
    assert "set-cookie" not in again.headers
    assert person.state == before


def test_seat_results_and_hand_are_there_after_a_restart(begin: Begin) -> None:
    person = begin()
    person.sit()
    for _ in range(2):
        over = person.finish()
        assert begin(token_of(person)).state == over  # and the hand is not counted twice
        person.next()
    state = person.act().json()
    later = begin(token_of(person))
    assert later.state == state
    assert later.finish() == person.finish()  # the same cards and the same agent
    assert later.next() == person.next()  # of the same secret


def test_people_are_told_apart_after_a_restart(begin: Begin, tmp_path: Path) -> None:
    people = begin(), begin()
    states = [person.sit(seed=seed) for seed, person in enumerate(people)]
    tokens = [token_of(person) for person in people]
    assert [begin(token).state for token in tokens] == states
    assert begin("made-up").client.get("/api/play/even").status_code == 404
    kept = "".join(path.name + path.read_text() for path in (tmp_path / "seats").iterdir())
    assert not any(token in kept for token in tokens)  # who reads the files cannot take a seat
    assert (tmp_path / "seats").stat().st_mode & 0o077 == 0
    known = begin(tokens[0])
    known.sit(seed=9)
    assert token_of(known) == tokens[0]


def test_servers_on_two_ports_of_a_host_leave_each_other_their_seats(begin: Begin) -> None:
    """A browser sends the cookies of a host to all of its ports."""
    first, second = begin(), Person(client(agent("even", "kuhn", UniformPolicy)), "even")
    second.client.cookies.jar = first.client.cookies.jar
    for person, port in ((first, 8321), (second, 8322)):
        person.client.base_url = f"http://127.0.0.1:{port}"  # type: ignore[assignment]
    before = first.sit(seed=1)
    assert second.client.get("/api/play/even").status_code == 404
    second.sit(seed=2)
    assert first.state == before


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
    person.sit(seed=1)
    (path,) = (tmp_path / "seats").iterdir()
    path.write_text("{" if change is None else json.dumps(json.loads(path.read_text()) | change))
    later = begin(token_of(person), told.append)
    assert later.client.get("/api/play/even").status_code == 404
    assert words in told[0]
    later.sit(seed=1)


def test_seats_that_cannot_be_kept_are_told_once_and_stay_in_memory(begin: Begin, tmp_path: Path) -> None:
    (tmp_path / "seats").write_text("a file is in the way")
    told: list[str] = []
    person = begin(None, told.append)
    person.sit(seed=1)
    assert person.act().status_code == 200
    (sentence,) = told
    assert "Seats and results are lost when the server stops" in sentence


def test_seats_that_were_not_used_for_longest_are_removed_with_their_files(tmp_path: Path) -> None:
    seats = Seats(tmp_path, pytest.fail, most=2)
    for token in "abac":
        if seats.find(token, "even") is None:
            seats.put(token, WebSeat("even", UniformPolicy(KUHN), None, seed=1))
    assert [seats.known(token) for token in "abc"] == [True, False, True]
    assert len(list(tmp_path.iterdir())) == len(seats) == 2
    Seats(tmp_path, pytest.fail, most=1)
    assert len(list(tmp_path.iterdir())) == 1


def test_a_link_deals_a_hand_again_beside_the_session(begin: Begin) -> None:
    person = begin()
    person.sit()
    person.finish()
    person.next()
    over = person.finish()
    again = {"seed": over["result"]["seed"], "hand": "2"}
    assert f'href="/play/even?seed={again["seed"]}&amp;hand=2"' in person.client.get("/play/even").text
    offer = person.client.get("/play/even", params=again).text
    assert f"Hand 2 of seed <code>{again['seed']}</code> is dealt again" in offer
    assert person.client.post("/play/even", data=again).status_code == 303
    state = person.state
    assert (state["hand"], state["cards"], state["counts"]) == (1, over["cards"], False)
    assert person.client.post("/play/even", data=again).status_code == 409  # one hand after the other
    done = person.finish()
    assert done["result"]["agent_cards"] == over["result"]["agent_cards"]
    assert done["session"] == over["session"]
    assert begin(token_of(person)).finish() == done  # after a restart, too
    assert (person.next()["hand"], person.state["counts"]) == (2, True)


def test_somebody_without_a_seat_follows_the_link_of_a_hand(begin: Begin) -> None:
    seed, person, other = str(2**64 - 1), begin(), begin()
    assert person.client.post("/play/even", data={"seed": seed, "hand": "4"}).status_code == 303
    shown = person.state
    assert (shown["hand"], shown["counts"], shown["session"]["raw"]["hands"]) == (3, False, 0)
    assert other.sit(seed=seed, hand=3)["cards"] == shown["cards"]
    person.finish()
    assert (person.next()["hand"], person.state["counts"]) == (0, True)


@pytest.mark.parametrize("seed", [str(2**64), "-1", "7x"])
def test_what_is_no_seed_is_quoted(begin: Begin, seed: str) -> None:
    answer = begin().client.post("/play/even/new", data={"seed": seed})
    assert answer.status_code == 400
    assert f"a whole number from 0 to {2**64 - 1} as seed, but has &#39;{seed}&#39;" in answer.text
    assert begin().client.post("/api/play/even", json={"seed": seed}).status_code == 422
