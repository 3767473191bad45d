"""Bots of games with bet sizes at the table: sizes as buttons, whole hands by forms, reviews, ranges."""

import io
import re
from collections.abc import Iterator
from dataclasses import replace
from html import unescape
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from rich.console import Console

from bet_size_games import TWO_ROUNDS, write_game
from command_line import deepcfr
from deepcfr.game.bet_size_game import ExplicitPoker
from deepcfr.play.terminal import play
from deepcfr.policy.styles import scripted_policy
from deepcfr.run.folder import RunFolder
from deepcfr.web.app import warm_up
from deepcfr.web.play_view import action_keys, size_steps
from deepcfr.web.site import NamedRun, ServedAgent
from web_site import client, site

# as the two rounds, with a third raise that is all-in
RULES = replace(TWO_ROUNDS, bet_sizes=((4, 8), (50, 100)), max_raises=(3, 3), all_in=(True, True))


@pytest.fixture(scope="module")
def bot(tmp_path_factory: pytest.TempPathFactory) -> NamedRun:
    """A bot that was solved for a moment and exported, as `deepcfr serve` opens it."""
    folder = tmp_path_factory.mktemp("bet_sizes")
    write_game(RULES, folder / "two.toml")
    brief = ("--solver", "mccfr", "--traversals", 50, "--iterations", 20, "--runtime.threads", 1, "--json")
    assert deepcfr("solve", folder / "two.toml", "--out", folder / "run", *brief).status == 0
    assert deepcfr("export", folder / "run", "--out", folder / "bot").status == 0
    return NamedRun("bot", RunFolder.open(folder / "bot"), "average", pytest.fail)


@pytest.fixture
def person(bot: NamedRun) -> Iterator[TestClient]:
    with client(bot) as somebody:
        yield somebody


def buttons(page: str) -> list[tuple[str, str, str]]:
    """The actions that a page offers: what is sent, the key, and the name."""
    found = re.findall(r'<button name="action" value="(.*?)" .*? data-key="(.*?)">(.*?) <kbd>', page)
    return [(value, key, unescape(name)) for value, key, name in found]


def state_of(person: TestClient) -> dict[str, Any]:
    return person.get("/api/play/bot").json()


def choose(person: TestClient, token: str) -> None:
    """Press the button of an action."""
    state = state_of(person)
    fields = {"hand": state["hand"], "decision": state["decision"], "action": token}
    assert person.post("/play/bot/act", data=fields).status_code == 303


def test_sizes_are_buttons_with_keys(person: TestClient) -> None:
    person.post("/play/bot/new", data={"seed": "1"})
    assert buttons(person.get("/play/bot").text) == [
        ("f", "f", "fold"),
        ("c", "c", "call"),
        ("r2", "1", "50 % pot <small>raise to 2</small>"),
        ("r2.5", "2", "75 % pot <small>raise to 2.5</small>"),
        ("r3", "3", "100 % pot <small>raise to 3</small>"),
        ("a", "a", "raise to 8 all-in"),
    ]
    choose(person, "r4")
    page = person.get("/play/bot").text
    assert "You raise to 4" in page


def test_pot_shares_are_buttons_in_later_rounds(person: TestClient) -> None:
    for seed in range(50):
        person.post("/play/bot/new", data={"seed": str(seed)})
        choose(person, "c")
        state = state_of(person)
        if not state["over"] and state["round"] == "round 2" and state["to_call"] == 0:
            break
    assert buttons(person.get("/play/bot").text) == [
        ("c", "c", "check"),
        ("r1", "1", "50 % pot <small>bet to 1</small>"),
        ("r1.5", "2", "75 % pot <small>bet to 1.5</small>"),
        ("r2", "3", "100 % pot <small>bet to 2</small>"),
        ("a", "a", "bet to 7 all-in"),
    ]


def test_stacks_and_seats_are_shown(person: TestClient) -> None:
    state = person.post("/api/play/bot", json={"seed": 1}).json()
    assert (state["place"], state["stacks"]) == ("dealer", {"you": 7.5, "agent": 7.0})
    page = person.get("/play/bot").text
    assert '<span class="number">7.5 behind</span>' in page
    assert 'aria-hidden="true">D</span> dealer</span>' in page
    assert re.findall(r'data-ask="Put in all your chips\?" .*?>(.*?)<', page) == ["raise to 8 all-in ", "Raise"]
    assert 'data-ask-from="7.75">Raise' in page  # what is rounded to the chip of 8


def test_a_call_of_all_in_is_all_in(bot: NamedRun) -> None:
    raiser = ServedAgent(scripted_policy("raise", ExplicitPoker(RULES)), None, None)
    with client(NamedRun("bot", bot.folder, "average", pytest.fail, _agent=raiser)) as person:
        state, seen = person.post("/api/play/bot", json={"seed": 1}).json(), set()
        while not state["over"]:
            call = next(action for action in state["actions"] if action["token"] == "c")
            assert call["all_in"] == (state["to_call"] == state["stacks"]["you"])
            seen.add(call["all_in"])
            raises = [action["token"] for action in state["actions"] if action["token"].startswith("r")]
            choose(person, (raises or ["c"])[-1])
            state = state_of(person)
    assert seen == {False, True}


def test_the_slider_has_legal_sizes_that_grow_by_about_one_factor() -> None:
    sizes = size_steps(2, 200)
    assert (sizes[0], sizes[-1]) == (2, 200)
    assert sum(size < 20 for size in sizes) >= len(sizes) // 2 - 1  # half of the way is half of the factor
    assert all(1 < after / before <= 1.3 for before, after in pairwise(sizes))
    assert size_steps(8, 8) == [8]


def test_whole_hands_are_those_of_the_terminal_in_both_seats(person: TestClient, bot: NamedRun) -> None:
    person.post("/play/bot/new", data={"seed": "7"})
    totals, first = [], []
    for number in range(8):
        state = state_of(person)
        first.append(state["first"])
        while not state["over"]:
            choose(person, "r3" if "r3" in [action["token"] for action in state["actions"]] else "c")
            state = state_of(person)
        totals.append(state["result"]["won"])
        page = person.get("/play/bot").text
        assert "Dealt from seed <code>7</code>" in page
        assert all(f"You {step['name']}" in page for step in state["steps"] if step["who"] == "you")
        assert person.post("/play/bot/next", data={"hand": str(number)}).status_code == 303
    assert first == [True, False] * 4

    def answer(question: str) -> str:
        return "r3" if "(r3)" in question else "c"

    policy = bot.agent().policy
    score = play(policy, Console(file=io.StringIO()), answer, seed=7, hands=8)
    assert score.chips == sum(totals) * policy.game.state().rules.unit_chips
    assert state_of(person)["session"]["raw"]["total"] == pytest.approx(sum(totals))


def test_the_terminal_asks_for_any_size(bot: NamedRun) -> None:
    asked: list[str] = []

    def answer(question: str) -> str:
        asked.append(question)
        return "r2.5" if len(asked) == 1 else "f"

    shown = io.StringIO()
    play(bot.agent().policy, Console(file=shown), answer, seed=1, hands=1)
    assert "r with any size from 2 to 8" in asked[0]
    assert "You: raise to 2.5" in shown.getvalue()


def test_a_review_is_exact_in_the_last_round_and_an_estimate_before(person: TestClient) -> None:
    person.post("/play/bot/new", data={"seed": "2"})
    while not state_of(person)["over"]:
        choose(person, "c")
    answer = person.get("/api/play/bot/review", params={"hand": 0}).json()
    assert {decision["exact"] for decision in answer["decisions"]} == {True, False}
    for decision in answer["decisions"]:
        assert sum(decision["agent"].values()) == pytest.approx(1)
        assert decision["exact"] == (decision["round"] == "round 2")
        assert decision["cost"] == max(decision["values"].values()) - decision["values"][decision["action"]] >= 0
        assert set(decision["intervals"]) == set(decision["values"])
        assert (decision["cost_interval"] == 0) == decision["exact"]
    assert sum(hand["probability"] for hand in answer["range"]) == pytest.approx(1)
    assert "Values before the round 2 are means over 5,000 random deals" in answer["note"]
    waiting = person.get("/play/bot").text
    assert "…" in waiting
    assert "Values:" in waiting
    loaded = person.get("/play/bot/review", params={"hand": 0, "part": True}).text
    assert "…" not in loaded
    assert answer["note"] in loaded
    (estimate, *_) = (decision for decision in answer["decisions"] if not decision["exact"])
    assert f"cost {estimate['cost']:.3f} ± {estimate['cost_interval']:.3f}" in loaded
    assert person.get("/api/play/bot/review", params={"hand": 0}).json() == answer


def test_a_review_says_that_a_bet_was_translated(person: TestClient) -> None:
    for size, told in (("2", False), ("3.5", True)):
        person.post("/api/play/bot", json={"seed": 1})
        choose(person, f"r{size}")
        while not state_of(person)["over"]:
            choose(person, "c")
        review = person.get("/api/play/bot/review", params={"hand": 0}).json()
        assert ("is none that the agent knows" in review["note"]) == told
        assert any(decision["values"] is None for decision in review["decisions"]) == told


def test_any_size_is_a_field_of_the_form(person: TestClient) -> None:
    state = person.post("/api/play/bot", json={"seed": 1}).json()
    assert state["sizes"] == {"least": 2.0, "most": 8.0, "chip": 0.5}
    page = person.get("/play/bot").text
    assert '<input id="size" name="size" type="number" min="2" max="8"' in page
    fields = {"hand": 0, "decision": state["decision"], "action": "r", "size": "3.5"}
    assert person.post("/play/bot/act", data=fields).status_code == 303
    after = state_of(person)
    assert next(step["name"] for step in after["steps"] if step["who"] == "you") == "raise to 3.5"
    person.post("/api/play/bot", json={"seed": 1})
    assert person.post("/play/bot/act", data=fields | {"size": "1"}).status_code == 400
    assert person.post("/play/bot/act", data=fields | {"size": ""}).status_code == 400


def test_an_action_that_the_game_does_not_have_is_refused_with_those_that_it_has(person: TestClient) -> None:
    before = person.post("/api/play/bot", json={"seed": 1}).json()
    wrong = {"hand": 0, "decision": before["decision"], "action": "r1"}
    answer = person.post("/api/play/bot/act", json=wrong)
    assert answer.status_code == 400
    assert answer.json() == {
        "error": "That action is not legal here; legal actions are f, c, r2, r2.5, r3, a and r with any size from 2 to 8."
    }
    assert state_of(person) == before


@pytest.mark.parametrize("path", ["/play/bot", "/api/play/bot"])
def test_until_the_end_no_answer_depends_on_what_is_hidden(bot: NamedRun, path: str) -> None:
    """Hands that look alike to the person so far have the same answers, byte for byte, whatever the agent holds."""
    caller = ServedAgent(scripted_policy("call", ExplicitPoker(RULES)), None, None)
    seen: dict[tuple[str, ...], set[bytes]] = {}
    hidden: dict[tuple[str, ...], set[str]] = {}
    with client(NamedRun("bot", bot.folder, "average", pytest.fail, _agent=caller)) as person:
        for seed in range(40):
            person.cookies.clear()
            state, shown = person.post("/api/play/bot", json={"seed": seed}).json(), []
            while not state["over"]:
                known = (*state["cards"], *state["board"], str(state["decision"]))
                shown.append((known, person.get(path).content))
                choose(person, "c")
                state = state_of(person)
            for known, content in shown:
                seen.setdefault(known, set()).add(content)
                hidden.setdefault(known, set()).update(state["result"]["agent_cards"])
    assert all(len(contents) == 1 for contents in seen.values())
    assert max(map(len, hidden.values())) > 2  # the agent did hold different cards


def test_the_site_offers_play_and_a_question(person: TestClient) -> None:
    assert 'href="/play/bot"' in person.get("/").text
    answer = person.get("/api/agents/bot/strategy", params={"situation": "4c / r4 c / 2d"}).json()
    assert sum(answer["probabilities"].values()) == pytest.approx(1)
    assert person.get("/runs/bot").status_code == 200


def test_the_ranges_of_a_small_game_with_bet_sizes_are_those_of_single_hands(person: TestClient) -> None:
    assert 'href="/strategy/bot"' in person.get("/").text
    found = person.get("/api/agents/bot/range", params={"betting": "r4 c/c", "board": "2d"}).json()
    assert (found["betting"], found["player"], found["round"]) == ("r4 c/c", 0, "round 2")
    assert found["actions"] == ["check", "bet 0.5 pot (to 4)"]
    for hand in found["hands"]:
        single = person.get("/api/agents/bot/strategy", params={"situation": f"{hand['hand']} / r4 c / 2d / c"}).json()
        assert hand["probabilities"] == pytest.approx(single["probabilities"])
    first = person.get("/api/agents/bot/range").json()
    raised = {hand["hand"]: hand["probabilities"]["raise to 4"] for hand in first["hands"]}
    assert all(hand["reach"] == pytest.approx(raised[hand["hand"]]) for hand in found["hands"])


def test_the_strategy_page_of_a_small_game_with_bet_sizes_names_sizes(person: TestClient) -> None:
    page = unescape(person.get("/strategy/bot", params={"betting": "r4 c/", "board": "2d"}).text)
    assert "bet 0.5 pot (to 4)" in page
    assert "betting=r4+c/r0.5" in page
    over = person.get("/strategy/bot", params={"betting": "r4 f"})
    assert over.status_code == 200
    wrong = person.get("/api/agents/bot/range", params={"betting": "r5"})
    assert wrong.status_code == 400
    assert "'r5' as the first action, where only" in wrong.json()["error"]
    ended = person.get("/api/agents/bot/range", params={"betting": "r4 f c"})
    assert "continues after 'r4 f', which ended the hand" in ended.json()["error"]


def test_a_betting_tree_that_is_too_large_has_no_ranges(tmp_path: Path) -> None:
    many = (tuple(range(4, 40, 4)), tuple(range(20, 110, 10)))
    rules = replace(RULES, stack=10_000, bet_sizes=many, max_raises=(9, 9))
    write_game(rules, tmp_path / "many.toml")
    brief = ("--solver", "mccfr", "--traversals", 1, "--iterations", 1, "--runtime.threads", 1, "--json")
    assert deepcfr("solve", tmp_path / "many.toml", "--out", tmp_path / "run", *brief).status == 0
    large = NamedRun("large", RunFolder.open(tmp_path / "run"), "average", pytest.fail)
    with client(large) as somebody:
        assert 'href="/strategy/large"' not in somebody.get("/").text
        refusal = somebody.get("/api/agents/large/range")
        assert refusal.status_code == 409
        assert "more than 200,000 nodes" in refusal.json()["error"]


def test_a_bot_with_bet_sizes_is_warmed_up(bot: NamedRun) -> None:
    warm_up(site(bot))
    assert isinstance(bot.agent().policy.game, ExplicitPoker)


def test_ten_sizes_have_ten_keys() -> None:
    keys = action_keys(["f", "c", *(f"r{size}" for size in range(2, 12)), "a"])
    assert list(keys.values()) == ["f", "c", "1", "2", "3", "4", "5", "6", "7", "8", "9", "0", "a"]
