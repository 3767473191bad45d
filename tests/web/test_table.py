"""Playing through the server: resumed, idempotent, and closed to what is not allowed."""

import io
import json
import math
import statistics
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any

import pytest
from fastapi.testclient import TestClient
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from deepcfr.core.errors import GameError
from deepcfr.game.poker import PokerGame
from deepcfr.game.rules import PRESETS
from deepcfr.play.hand import Hand
from deepcfr.play.terminal import play
from deepcfr.policy.base import UniformPolicy
from deepcfr.web import table
from deepcfr.web.play import COOKIE, Seats
from deepcfr.web.site import RequestError
from deepcfr.web.table import SeatScore, WebSeat
from web_site import agent, client, model

PAGES = "text/html; charset=utf-8"
MANY = 45  # more than there are threads for requests


@pytest.fixture(scope="module")
def people() -> Iterator[TestClient]:
    with client(model("kuhn"), model("leduc"), agent("uniform", "leduc", UniformPolicy)) as everybody:
        yield everybody


@pytest.fixture
def person(people: TestClient) -> TestClient:
    """Somebody without a seat yet."""
    people.cookies.clear()
    return people


def sit(person: TestClient, name: str = "leduc", **wish: Any) -> dict[str, Any]:
    answer = person.post(f"/api/play/{name}", json=wish)
    assert answer.status_code == 201
    return answer.json()


def act(person: TestClient, state: dict[str, Any], token: str) -> Any:
    body = {"hand": state["hand"], "decision": state["decision"], "action": token}
    return person.post(f"/api/play/{state['agent']}/act", json=body)


FIELDS = (
    "agent game unit milli_unit hand counts decision seat first known round cards board board_size pot place stacks chips "
    "to_call actions sizes steps over result session"
)


def finish(person: TestClient, state: dict[str, Any], token: str = "c") -> dict[str, Any]:
    """Play a hand to its end with one action as long as it is legal, and calls."""
    assert set(state) == set(FIELDS.split())
    while not state["over"]:
        legal = [action["token"] for action in state["actions"]]
        state = act(person, state, token if token in legal else "c").json()
        assert set(state) == set(FIELDS.split())
    return state


def next_hand(person: TestClient, state: dict[str, Any]) -> dict[str, Any]:
    return person.post(f"/api/play/{state['agent']}/next", json={"hand": state["hand"]}).json()


def test_a_session_is_that_of_the_terminal_with_the_same_seed(person: TestClient) -> None:
    state, totals = finish(person, sit(person, seed=7)), []
    for _ in range(6):
        totals.append(state["result"]["won"])
        state = finish(person, next_hand(person, state))
    game = model("leduc").listed()[0]
    result = play(game, Console(file=io.StringIO()), lambda _: "c", seed=7, hands=6)
    assert result.chips == sum(totals) * PRESETS["leduc"].unit_chips
    assert state["session"]["raw"]["hands"] == 7


def test_seats_alternate_and_results_add_up(person: TestClient) -> None:
    state = sit(person, "uniform")
    raw, adjusted = [], []
    for hand in range(12):
        assert (state["hand"], state["seat"]) == (hand, hand % 2)
        state = finish(person, state, "crf"[hand % 3])
        raw.append(state["result"]["won"])
        adjusted.append(state["result"]["adjusted"])
        for numbers, tally in ((raw, "raw"), (adjusted, "adjusted")):
            told = state["session"][tally]
            assert told["mean_milli"] == pytest.approx(1000 * statistics.mean(numbers), abs=1e-9)
            if hand:
                half = 1.959964 * statistics.stdev(numbers) / math.sqrt(hand + 1)
                assert told["interval_milli"] == pytest.approx(1000 * half, rel=1e-6, abs=1e-9)
        state = next_hand(person, state)


def test_reload_and_a_lost_connection_resume_the_hand(person: TestClient) -> None:
    state = act(person, sit(person, seed=3), "c").json()
    assert person.get("/api/play/leduc").json() == state
    page = person.get("/play/leduc")
    assert page.headers["content-type"] == PAGES
    assert f'name="decision" value="{state["decision"]}"' in page.text
    assert person.get("/api/play/leduc").json() == state


def test_people_do_not_see_each_others_tables(person: TestClient) -> None:
    sit(person, seed=3)
    first = person.cookies[COOKIE]
    person.cookies.clear()
    assert person.get("/api/play/leduc").status_code == 404
    sit(person, seed=4)
    assert person.cookies[COOKIE] != first
    person.cookies.clear()
    given = person.post("/api/play/leduc", json={}, headers={"cookie": f"{COOKIE}=made-up"})
    assert "made-up" not in given.headers["set-cookie"]  # nobody chooses the key to a seat


@pytest.mark.parametrize(
    ("change", "status", "words"),
    [
        ({"decision": 99}, 409, "for decision 99"),
        ({"hand": 5}, 409, "'hand' of the action is 5, but the current one is 0"),
        ({"action": "f"}, 400, "not legal here; legal actions are c, r"),
        ({"action": "r" * 201}, 422, "cannot be read: 'body.action'"),
        ({"hand": -1}, 422, "body.hand"),
        ({"hand": 1.5}, 422, "body.hand"),
        ({"hand": "0"}, 422, "body.hand"),
        ({"hand": True}, 422, "body.hand"),
        ({"more": 1}, 422, "body.more"),
        ({"action": None}, 422, "body.action"),
    ],
)
def test_what_cannot_be_is_refused_with_a_sentence_and_changes_nothing(
    person: TestClient, change: dict[str, Any], status: int, words: str
) -> None:
    state = sit(person, "uniform", seed=0)
    assert (state["seat"], state["decision"]) == (0, 0)
    body = {"hand": 0, "decision": 0, "action": "c"} | change
    answer = person.post("/api/play/uniform/act", json=body)
    assert answer.status_code == status
    assert list(answer.json()) == ["error"]
    assert words in answer.json()["error"]
    assert answer.json()["error"].endswith(".")
    assert person.get("/api/play/uniform").json() == state


def test_an_action_that_comes_again_changes_nothing(person: TestClient) -> None:
    state = sit(person, "uniform", seed=0)
    after = act(person, state, "c").json()
    assert act(person, state, "c").status_code == 409
    assert person.get("/api/play/uniform").json() == after
    over = finish(person, after)
    body = {"hand": over["hand"], "decision": over["decision"], "action": "c"}
    answer = person.post("/api/play/uniform/act", json=body)
    assert (answer.status_code, answer.json()) == (409, {"error": "Hand number 0 is over: ask for the next one."})
    second = next_hand(person, over)
    assert person.post("/api/play/uniform/next", json={"hand": 0}).status_code == 409
    assert person.post("/api/play/uniform/next", json={"hand": 1}).status_code == 409  # not over yet
    assert person.get("/api/play/uniform").json() == second
    assert second["session"]["raw"]["hands"] == 1


def test_forms_do_the_same_and_lead_back_to_the_table(person: TestClient) -> None:
    assert person.post("/play/uniform").status_code == 303
    state = person.get("/api/play/uniform").json()
    fields = {"hand": state["hand"], "decision": state["decision"], "action": "c"}
    done = person.post("/play/uniform/act", data=fields)
    assert (done.status_code, done.headers["location"]) == (303, "/play/uniform")
    again = person.post("/play/uniform/act", data=fields)
    assert (again.status_code, again.headers["content-type"]) == (409, PAGES)
    assert 'role="alert">Nothing was changed. The action is for decision' in again.text
    assert f'name="decision" value="{person.get("/api/play/uniform").json()["decision"]}"' in again.text  # the table
    for bad in ({"hand": "x", "decision": "0", "action": "c"}, {"decision": "0"}, {"hand": "9" * 30, "decision": "0"}):
        assert person.post("/play/uniform/act", data=bad).status_code == 400
    assert person.post("/play/uniform/act", content=b"%ff%fe", headers={"content-type": "x"}).status_code == 400


def test_large_requests_are_refused(person: TestClient) -> None:
    state = sit(person, "uniform")
    answer = person.post("/api/play/uniform/act", content=b"x" * 140_000, headers={"content-type": "application/json"})
    assert answer.status_code == 413
    assert "larger than 131,072 bytes" in answer.json()["error"]

    def pieces() -> Any:
        for _ in range(140):
            yield b"x" * 1_000

    assert person.post("/api/play/uniform/act", content=pieces()).status_code == 413
    assert person.get("/api/play/uniform").json() == state


def test_reviews_come_after_the_hand_and_cost_what_best_responses_say(person: TestClient) -> None:
    state = sit(person, "kuhn", seed=0)
    assert person.get("/api/play/kuhn/review", params={"hand": 0}).status_code == 409
    over = finish(person, state)
    review = person.get("/api/play/kuhn/review", params={"hand": 0}).json()
    assert len(review["decisions"]) == sum(step["who"] == "you" for step in over["steps"])
    for decision in review["decisions"]:
        assert sum(decision["agent"].values()) == pytest.approx(1)
        best = max(decision["values"].values())
        assert decision["cost"] == pytest.approx(best - decision["values"][decision["action"]])
        assert decision["cost"] >= 0
    assert sum(hand["probability"] for hand in review["range"]) == pytest.approx(1)
    assert review["note"] is None
    plain = person.get("/api/play/kuhn/review", params={"hand": 0, "exact": False}).json()
    assert all(decision["values"] is None for decision in plain["decisions"])
    page = person.get("/play/kuhn/review", params={"hand": 0})
    part = person.get("/play/kuhn/review", params={"hand": 0, "part": True})
    assert "best" in part.text
    assert part.text.strip() in page.text
    assert person.get("/api/play/kuhn/review", params={"hand": 3}).status_code == 409


Json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
Bodies = st.fixed_dictionaries(
    {},
    optional={
        "hand": st.integers(-2, 3) | Json,
        "decision": st.integers(-2, 6) | Json,
        "action": st.sampled_from("fcrx") | st.text(max_size=30) | Json,
        "seed": Json,
    },
)


@settings(max_examples=40)
@given(where=st.sampled_from(["act", "next"]), body=Bodies | Json)
def test_any_body_is_taken_or_refused_with_a_sentence(person: TestClient, where: str, body: Any) -> None:
    state = sit(person, "uniform", seed=1)
    sent = json.dumps(body)  # with Infinity, which is no JSON
    answer = person.post(f"/api/play/uniform/{where}", content=sent, headers={"content-type": "application/json"})
    if answer.status_code == 200:
        assert where == "act"
        assert body == {"hand": 0, "decision": state["decision"], "action": body["action"]}
        return
    assert 400 <= answer.status_code < 500
    assert answer.json()["error"].endswith(".")
    assert person.get("/api/play/uniform").json() == state


def test_means_and_intervals_without_the_numbers() -> None:
    tally = SeatScore()
    assert (tally.half, tally.facts()["mean_milli"]) == (None, None)
    for value in (1.0, 2.0, 6.0):
        tally.add(value)
    assert tally.facts()["total"] == pytest.approx(9)
    assert tally.half == pytest.approx(1.959963985 * (7 / 3) ** 0.5)


def test_seats_that_were_not_used_for_longest_are_forgotten() -> None:
    game = PokerGame(model("kuhn").folder.source)  # type: ignore[arg-type]
    seats = Seats(most=3)
    for token in "abc":
        seats.put(token, WebSeat("kuhn", UniformPolicy(game), None))
    assert seats.find("a", "kuhn") is not None
    seats.put("d", WebSeat("kuhn", UniformPolicy(game), None))
    assert [token for token in "abcd" if seats.find(token, "kuhn")] == ["a", "c", "d"]
    assert len(seats) == 3
    assert not seats.known("b")


def test_a_seat_keeps_no_more_after_hundreds_of_hands() -> None:
    game = PokerGame(model("kuhn").folder.source)  # type: ignore[arg-type]
    seat = WebSeat("kuhn", UniformPolicy(game), None, seed=1)
    won = 0.0
    for number in range(400):
        while not seat.hand.over:
            seat.act(number, len(seat.hand.steps), seat.hand.choices()[0].token)
        assert seat.result is not None
        won += seat.result[0]
        seat.next_hand(number)
    assert seat.raw.count == 400
    assert seat.raw.mean * 400 == pytest.approx(won)
    assert not any(isinstance(value, list) and len(value) > 10 for value in vars(seat).values())
    with pytest.raises(RequestError, match="'hand' is 3, but the current one is 400"):
        seat.next_hand(3)


def test_an_agent_that_failed_plays_on_and_the_person_never_for_it(
    person: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = sit(person, "kuhn", seed=1)
    while not any(action["token"] == "r" for action in state["actions"]):
        state = next_hand(person, finish(person, state))
    failures = iter((GameError("No memory."),))
    plays = Hand.act_for_agent

    def failing(hand: Hand) -> None:
        for error in failures:
            raise error
        plays(hand)

    monkeypatch.setattr(Hand, "act_for_agent", failing)
    assert act(person, state, "r").json() == {"error": "No memory."}
    after = person.get("/api/play/kuhn").json()
    assert [step["who"] for step in after["steps"]][-2:] == ["you", "agent"]
    assert after["over"]
    again = person.get("/api/play/kuhn").json()
    assert again["session"] == after["session"]
    assert again["session"]["raw"]["hands"] == state["session"]["raw"]["hands"] + 1


def call_down(seat: WebSeat) -> None:
    while not seat.hand.over:
        seat.act(seat.hand.number, len(seat.hand.steps), "c")


def test_a_hand_whose_count_failed_is_counted_before_the_next_one(monkeypatch: pytest.MonkeyPatch) -> None:
    game = PokerGame(model("kuhn").folder.source)  # type: ignore[arg-type]
    seat, count = WebSeat("kuhn", UniformPolicy(game), None, seed=1), table.adjusted_result
    failures = [GameError("No memory.")]

    def failing(hand: Hand) -> float:
        if failures:
            raise failures.pop()
        return count(hand)

    monkeypatch.setattr(table, "adjusted_result", failing)
    with pytest.raises(GameError, match="No memory"):
        call_down(seat)
    assert (seat.hand.over, seat.raw.count) == (True, 0)
    seat.next_hand(0)
    assert (seat.raw.count, seat.hand.number) == (1, 1)


def test_people_who_act_do_not_wait_for_reviews(person: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    go, review = Event(), WebSeat.review

    def slow(self: WebSeat, number: int, exact: bool) -> dict[str, Any]:
        assert go.wait(60)
        return review(self, number, exact)

    finish(person, sit(person, "leduc", seed=1))
    state = sit(person, "kuhn", seed=1)
    monkeypatch.setattr(WebSeat, "review", slow)
    with ThreadPoolExecutor(MANY + 1) as pool:
        reviews = [pool.submit(person.get, "/api/play/leduc/review", params={"hand": 0}) for _ in range(MANY)]
        acted = pool.submit(act, person, state, "c").result(30)
        waiting = sum(not asked.done() for asked in reviews)
        go.set()
        assert acted.status_code == 200
        assert waiting == MANY
        assert {asked.result(60).status_code for asked in reviews} == {200}


def test_a_request_of_another_form_is_refused_with_what_it_has(person: TestClient) -> None:
    answer = person.post("/api/play/leduc", json={"seed": "soon"})
    assert answer.status_code == 422
    assert "'body.seed'" in answer.json()["error"]
    assert answer.json()["error"].endswith("but is 'soon'.")
    broken = person.post("/api/play/leduc", content=b"{no", headers={"content-type": "application/json"})
    assert broken.json()["error"] == "The request cannot be read: 'body.1': JSON decode error."
