"""Bots of games with bet sizes at the table: sizes as buttons, whole hands by forms, reviews, ranges."""

import io
import re
from dataclasses import replace
from html import unescape
from pathlib import Path

import pytest
from rich.console import Console

from bet_size_games import TWO_ROUNDS, write_game
from command_line import deepcfr
from deepcfr.game.bet_size_game import ExplicitPoker
from deepcfr.play.terminal import play
from deepcfr.policy.styles import scripted_policy
from deepcfr.run.folder import RunFolder
from deepcfr.web.play_view import action_keys
from deepcfr.web.site import NamedRun, ServedAgent
from web_site import Person, client

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
def person(bot: NamedRun) -> Person:
    return Person(client(bot), "bot")


def buttons(page: str) -> list[tuple[str, str, str]]:
    """The actions that a page offers: what is sent, the key, and the name."""
    found = re.findall(r'<button name="action" value="(.*?)" .*? data-key="(.*?)">(.*?) <kbd>', page)
    return [(value, key, unescape(name)) for value, key, name in found]


def test_sizes_are_buttons_with_keys_and_later_rounds_have_shares_of_the_pot(person: Person) -> None:
    state = person.sit(seed=1)
    page = person.client.get("/play/bot").text
    assert buttons(page) == [
        ("f", "f", "fold"),
        ("c", "c", "call"),
        ("r2", "1", "50 % pot <small>raise to 2</small>"),
        ("r2.5", "2", "75 % pot <small>raise to 2.5</small>"),
        ("r3", "3", "100 % pot <small>raise to 3</small>"),
        ("a", "a", "raise to 8 all-in"),
    ]
    assert (state["place"], state["stacks"]) == ("dealer", {"you": 7.5, "agent": 7.0})
    assert '<span class="number">7.5 behind</span>' in page
    assert re.findall(r'data-ask="Put in all your chips\?" .*?>(.*?)<', page) == ["raise to 8 all-in ", "Raise"]
    assert 'data-ask-from="7.75">Raise' in page  # what is rounded to the chip of 8
    seed = 0
    while state["round"] != "round 2" or state["over"] or state["to_call"]:
        person.sit(seed=(seed := seed + 1))
        state = person.act().json()
    assert [value for value, *_ in buttons(person.client.get("/play/bot").text)] == ["c", "r1", "r1.5", "r2", "a"]


def test_a_call_of_all_in_is_all_in(bot: NamedRun) -> None:
    raiser = ServedAgent(scripted_policy("raise", ExplicitPoker(RULES)), None, None)
    person = Person(client(NamedRun("bot", bot.folder, "average", pytest.fail, _agent=raiser)), "bot")
    state, seen = person.sit(seed=1), set()
    while not state["over"]:
        call = next(action for action in state["actions"] if action["token"] == "c")
        assert call["all_in"] == (state["to_call"] == state["stacks"]["you"])
        seen.add(call["all_in"])
        raises = [action["token"] for action in state["actions"] if action["token"].startswith("r")]
        state = person.act((raises or ["c"])[-1]).json()
    assert seen == {False, True}


def test_whole_hands_are_those_of_the_terminal_in_both_seats(person: Person, bot: NamedRun) -> None:
    state, totals, first = person.sit(seed=7), [], []
    for _ in range(6):
        first.append(state["first"])
        totals.append(person.finish("r3")["result"]["won"])
        state = person.next()
    assert first == [True, False] * 3
    policy = bot.agent().policy
    score = play(policy, Console(file=io.StringIO()), lambda asked: "r3" if "(r3)" in asked else "c", seed=7, hands=6)
    assert score.chips == sum(totals) * policy.game.state().rules.unit_chips
    assert state["session"]["raw"]["total"] == pytest.approx(sum(totals))


def test_a_review_is_exact_in_the_last_round_and_an_estimate_before(person: Person) -> None:
    person.sit(seed=2)
    person.finish()
    answer = person.client.get("/api/play/bot/review", params={"hand": 0}).json()
    assert {decision["exact"] for decision in answer["decisions"]} == {True, False}
    for decision in answer["decisions"]:
        assert sum(decision["agent"].values()) == pytest.approx(1)
        assert decision["exact"] == (decision["round"] == "round 2") == (decision["cost_interval"] == 0)
        assert decision["cost"] == max(decision["values"].values()) - decision["values"][decision["action"]] >= 0
        assert set(decision["intervals"]) == set(decision["values"])
    assert "Values before the round 2 are means over 5,000 random deals" in answer["note"]
    assert "…" in person.client.get("/play/bot").text
    loaded = person.client.get("/play/bot/review", params={"hand": 0, "part": True}).text
    assert "…" not in loaded
    assert answer["note"] in loaded
    (estimate, *_) = (decision for decision in answer["decisions"] if not decision["exact"])
    assert f"cost {estimate['cost']:.3f} ± {estimate['cost_interval']:.3f}" in loaded


@pytest.mark.parametrize(("size", "told"), [("2", False), ("3.5", True)])
def test_a_review_says_that_a_bet_was_translated(person: Person, size: str, told: bool) -> None:
    person.sit(seed=1)
    person.act(f"r{size}")
    person.finish()
    review = person.client.get("/api/play/bot/review", params={"hand": 0}).json()
    assert ("is none that the agent knows" in review["note"]) == told
    assert any(decision["values"] is None for decision in review["decisions"]) == told


def test_any_size_is_a_field_of_the_form(person: Person) -> None:
    state = person.sit(seed=1)
    assert state["sizes"] == {"least": 2.0, "most": 8.0, "chip": 0.5}
    assert '<input id="size" name="size" type="number" min="2" max="8"' in person.client.get("/play/bot").text
    fields = {"hand": 0, "decision": state["decision"], "action": "r", "size": "3.5"}
    for size in ("1", ""):
        assert person.client.post("/play/bot/act", data=fields | {"size": size}).status_code == 400
    legal = "legal actions are f, c, r2, r2.5, r3, a and r with any size from 2 to 8."
    assert person.act("r1").json()["error"] == f"That action is not legal here; {legal}"
    assert person.state == state
    assert person.client.post("/play/bot/act", data=fields).status_code == 303
    assert next(step["name"] for step in person.state["steps"] if step["who"] == "you") == "raise to 3.5"


def test_the_ranges_of_a_small_game_with_bet_sizes_are_those_of_single_hands(person: Person) -> None:
    assert 'href="/strategy/bot"' in person.client.get("/").text
    found = person.client.get("/api/agents/bot/range", params={"betting": "r4 c/c", "board": "2d"}).json()
    assert (found["betting"], found["player"], found["round"]) == ("r4 c/c", 0, "round 2")
    assert found["actions"] == ["check", "bet 0.5 pot (to 4)"]
    for hand in found["hands"]:
        single = person.client.get(
            "/api/agents/bot/strategy", params={"situation": f"{hand['hand']} / r4 c / 2d / c"}
        ).json()
        assert hand["probabilities"] == pytest.approx(single["probabilities"])
    first = person.client.get("/api/agents/bot/range").json()
    raised = {hand["hand"]: hand["probabilities"]["raise to 4"] for hand in first["hands"]}
    assert all(hand["reach"] == pytest.approx(raised[hand["hand"]]) for hand in found["hands"])


def test_a_betting_tree_that_is_too_large_has_no_ranges(tmp_path: Path) -> None:
    many = (tuple(range(4, 40, 4)), tuple(range(20, 110, 10)))
    write_game(replace(RULES, stack=10_000, bet_sizes=many, max_raises=(9, 9)), tmp_path / "many.toml")
    brief = ("--solver", "mccfr", "--traversals", 1, "--iterations", 1, "--runtime.threads", 1, "--json")
    assert deepcfr("solve", tmp_path / "many.toml", "--out", tmp_path / "run", *brief).status == 0
    large = client(NamedRun("large", RunFolder.open(tmp_path / "run"), "average", pytest.fail))
    assert 'href="/strategy/large"' not in large.get("/").text
    refusal = large.get("/api/agents/large/range")
    assert (refusal.status_code, "more than 200,000 nodes" in refusal.json()["error"]) == (409, True)


def test_ten_sizes_have_ten_keys() -> None:
    keys = action_keys(["f", "c", *(f"r{size}" for size in range(2, 12)), "a"])
    assert list(keys.values()) == ["f", "c", "1", "2", "3", "4", "5", "6", "7", "8", "9", "0", "a"]
