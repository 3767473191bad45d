"""The five calls: the same answers as the command line, and the same sentences."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from command_line import deepcfr
from deepcfr import (
    Agent,
    ConfigError,
    DeepCFRError,
    GameError,
    check_game,
    environment,
    exploitability,
    load,
    load_config,
    load_game,
    load_rules,
    match,
    solve_spot,
    train,
)
from deepcfr.config import SearchConfig
from deepcfr.game.bet_size_game import ImplicitPoker
from deepcfr.game.bet_sizes import BET_SIZE_GAMES
from deepcfr.policy.query import query
from deepcfr.policy.styles import scripted_policy

BET_SIZES = Agent(scripted_policy("call", ImplicitPoker(BET_SIZE_GAMES["hunl-ladder"])))


@pytest.fixture(scope="module")
def fhp() -> Agent:
    return load("fhp")


@pytest.mark.parametrize(
    "hand, board, betting, situation",
    [
        ("As Kd", "", "", "As Kd"),
        ("As Kd", "", "r", "As Kd / r"),
        ("As Kd", "Qs 7h 2c", "rc", "As Kd / rc / Qs 7h 2c"),
        ("AsKd", "Qs7h2c", "rc/c", "As Kd / rc / Qs 7h 2c / c"),
    ],
)
def test_an_agent_answers_as_the_query_in_text(fhp: Agent, hand: str, board: str, betting: str, situation: str) -> None:
    assert fhp.act(hand, board, betting) == query(fhp.policy, situation).probabilities


def test_ranges_are_the_answers_of_every_hand(fhp: Agent) -> None:
    found = fhp.ranges("rc/cr", "Qs 7h 2c")
    assert (found.player, found.actions, len(found.hands)) == (1, ["fold", "call", "raise"], 1_176)
    for hand in ("As Kd", "3h 2d"):
        h = found.hands.index(hand)
        assert found.strategy[h] == pytest.approx(list(fhp.act(hand, "Qs 7h 2c", "rc/cr").values()), abs=1e-6)
        dealer = fhp.act(hand)["raise"] * fhp.act(hand, "Qs 7h 2c", "rc/c")["bet"]
        blind = fhp.act(hand, betting="r")["call"] * fhp.act(hand, "Qs 7h 2c", "rc/")["check"]
        assert found.reach[:, h] == pytest.approx([dealer, blind], rel=1e-4)


def test_bet_size_games_are_asked_in_the_same_way() -> None:
    assert BET_SIZES.act("As Kd", "Qs 7h 2c", "r4 c/")["check"] == 1
    found = BET_SIZES.ranges("r4 c/", "Qs 7h 2c")
    assert found.reach[0].max() == 0  # it only calls
    assert found.reach[1].min() == 1
    with pytest.raises(GameError, match="more than 200,000 nodes: networks, search and exact evaluation"):
        exploitability(BET_SIZES)


@pytest.mark.parametrize(
    "board, betting, sentence",
    [
        ("Qs 7h 2c 9d", "rc/", "has no round for all of the board 'Qs 7h 2c 9d'"),
        ("Qs 7h", "rc/", "is 3 cards, but 'Qs 7h' holds 2 cards"),
        ("Qs 7h 2c", "rc/cc/c", "has no round for all"),
        ("Qs 7h 2c", "rx/", "'x' in the betting 'rx' is not an action"),
        ("Qs Qs 2c", "rc/", "Qs is given 2 times"),
        ("Qs 7h 2c", "rc/cc", "Nobody is left to act"),
    ],
)
def test_situations_that_are_none_are_sentences(fhp: Agent, board: str, betting: str, sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        fhp.act("As Kd", board, betting)


@pytest.mark.parametrize("board, betting", [("", "rc"), ("Qs 7h 2c", "r"), ("Qs 7h 2c", "rc/cc"), ("", "f")])
def test_ranges_where_nobody_acts_are_refused(fhp: Agent, board: str, betting: str) -> None:
    with pytest.raises(ConfigError, match="Nobody is to act after the betting"):
        fhp.ranges(betting, board)


def test_cards_are_read_as_people_write_them(fhp: Agent) -> None:
    assert fhp.act("A♠ K♦", "[Qs,7h,2c]", "rc/") == fhp.act("As Kd", "Qs 7h 2c", "rc/")
    assert fhp.ranges("rc/", "QS7H2C").hands == fhp.ranges("rc/", "Qs 7h 2c").hands


def test_what_is_solved_otherwise_than_given_is_a_warning() -> None:
    spot = {"dealer": "QQ+,AA:0.5", "big_blind": "KK", "pot": 10, "stacks": 40, "min_bet": 2}
    with pytest.warns(UserWarning, match="the last one counts|the smallest one is solved") as caught:
        found = solve_spot("Qs 7h 2c 9d 4s", "river 10", **spot, iterations=1)
    assert [str(one.message) for one in caught] == found.facts()["notes"]
    assert "Where bet 10 would be less than the smallest legal bet" in found.facts()["notes"][1]


def test_values_of_another_type_are_refused_in_a_sentence() -> None:
    with pytest.raises(ConfigError, match="kind"):
        train("kuhn", sampling={"kind": ["outcome"]})
    with pytest.raises(ConfigError, match="number of threads must be at least 1, but is 0"):
        exploitability(load("kuhn"), threads=0)
    spot = {"dealer": "AA", "big_blind": "KK", "pot": 10, "stacks": 40}
    with pytest.raises(ConfigError, match="The pot must be a number, but is '10'"):
        solve_spot("Qs 7h 2c 9d 4s", "allin", **(spot | {"pot": "10"}))
    with pytest.raises(ConfigError, match="Locks must be a list of decisions"):
        solve_spot("Qs 7h 2c 9d 4s", "allin", **spot, locks=[3])  # type: ignore[list-item]


KUHN, LEDUC = load("kuhn"), load("leduc")
OTHERS = (7, b"x", {"a": "b"}, np.zeros(3), object(), [1])
"""Values that are no text, no list of texts and no agent."""
SPOT = {"board": "Qs 7h 2c 9d 4s", "sizes": "allin", "dealer": "AA,KQs:0.5", "big_blind": "KK", "pot": 10, "stacks": 40}
CALLS: dict[str, Callable[[Any], object]] = {
    "a policy's name": lambda value: load("kuhn", policy=value),
    "settings of search": lambda value: load("kuhn", search=value),
    "a hand": lambda value: LEDUC.act(value),
    "a board": lambda value: LEDUC.act("Kc", board=value),
    "betting": lambda value: LEDUC.act("Kc", betting=value),
    "betting of ranges": lambda value: LEDUC.ranges(value),
    "a board of ranges": lambda value: LEDUC.ranges("", value),
    "a game to train": train,
    "a solver": lambda value: train("kuhn", solver=value),
    "a game to step": environment,
    "a game": load_game,
    "rules": load_rules,
    "a file of settings": load_config,
    "a game to check": check_game,
    "a policy": Agent,
    "an agent": exploitability,
    "an opponent": lambda value: match(KUHN, value, hands=9),
    "a game of OpenSpiel": lambda value: Agent.from_openspiel(value, None),
} | {
    f"{name} of a spot": lambda value, name=name: solve_spot(**(SPOT | {name: value}))  # type: ignore[misc]
    for name in ("board", "sizes", "dealer", "big_blind", "agent", "line")
}


@pytest.mark.parametrize("what", CALLS)
def test_values_of_other_types_are_sentences(what: str) -> None:
    for value in OTHERS:
        with pytest.raises(DeepCFRError) as caught:
            CALLS[what](value)
        assert all(problem.endswith((".", "?")) for problem in caught.value.problems)


@pytest.mark.parametrize(
    "value", ["x", [], {}, object(), np.zeros(3), float("nan")], ids=lambda value: type(value).__name__
)
def test_what_is_no_number_is_a_sentence(value: Any) -> None:
    for name in ("pot", "stacks", "rake", "cap", "exploitability", "iterations", "threads", "min_bet"):
        with pytest.raises(ConfigError):
            solve_spot(**(SPOT | {name: value}))
    for name in ("seed", "threads", "hands", "boards"):
        with pytest.raises(ConfigError, match=f"'{name}' of a match must be a whole number"):
            match(KUHN, KUHN, **{name: value})


def test_lists_are_texts() -> None:
    assert LEDUC.act(["Kc"], ["Qd"], ["rc", "c"]) == LEDUC.act("Kc", "Qd", "rc/c")
    assert (LEDUC.ranges(["rc", "c"], ["Qd"]).reach == LEDUC.ranges("rc/c", "Qd").reach).all()
    lists = {"board": ["Qs", "7h", "2c", "9d", "4s"], "sizes": ["allin"], "dealer": {"AA": 1, "KQs": np.float32(0.5)}}
    facts = [solve_spot(**(SPOT | change), iterations=3).facts() for change in ({}, lists, {"big_blind": ["KK"]})]
    for other in facts[1:]:
        assert other["decisions"] == facts[0]["decisions"]
    weights = {"AsAd": 1 / 3, "KsKd": 1e-7}
    held = solve_spot(**(SPOT | {"dealer": weights}), iterations=1).spot.ranges[0]
    assert sorted(held[held > 0].tolist(), reverse=True) == list(weights.values())


def test_a_run_from_python_is_that_of_the_command(tmp_path: Path) -> None:
    settings = {"iterations": 3, "sampling": {"traversals": 100}, "advantage": {"steps": 20}, "average": {"steps": 20}}
    run = train("kuhn", seed=3, **settings)
    assert [record.iteration for record in run] == [1, 2, 3]
    steps = ("--advantage.steps", 20, "--average.steps", 20)
    options = ("--seed", 3, "--iterations", 3, "--sampling.traversals", 100, *steps)
    deepcfr("train", "kuhn", *options, "--out", tmp_path / "run", "--json")
    assert run.agent.act("Q", betting="r") == load(str(tmp_path / "run")).act("Q", betting="r")
    half = train("kuhn", seed=3, **settings)
    next(half)
    assert sum(half.agent.act("Q").values()) == pytest.approx(1)
    with pytest.raises(ConfigError, match="no agent before the first"):
        _ = train("kuhn", iterations=2).agent
    with pytest.warns(UserWarning, match=r"sampling\.epsilon|ppo\.episodes"):
        train("kuhn", ppo={"episodes": 7})
    early = train("kuhn", cfr={"keep_networks": 5}, evaluation={"policy": "sd-cfr"}, advantage={"steps": 2})
    next(early)
    with pytest.raises(ConfigError, match="The run has kept no networks for the average of SD-CFR"):
        _ = early.agent
    for change, sentence in (
        ({"sampling": "external"}, "'sampling' must be a section"),
        ({"runtime": {"minutes": 1.0}}, "stop iterating when you like"),
        ({"runtime": {"device": "cuda:99"}}, "'runtime.device' is cuda:99, but"),
        ({"memory": {"capacity": 10**10}}, r"memories need up to [\d,.]+ GB"),
    ):
        with pytest.raises(ConfigError, match=sentence):
            train("leduc" if "memory" not in change else "kuhn", **change)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=r"cfr\.iterashuns"):
        train("kuhn", cfr={"iterashuns": 3})
    with pytest.raises(DeepCFRError, match="nobody"):
        train("nobody")


@pytest.mark.parametrize("solver", ["nfsp", "ppo"])
def test_an_agent_stays_as_it_was_when_training_goes_on(solver: str) -> None:
    run = train("kuhn", solver=solver, iterations=6, **{"nfsp" if solver == "nfsp" else "ppo": {"episodes": 64}})  # type: ignore[arg-type]
    next(run)
    early = run.agent
    before = early.act("Q"), exploitability(early).nash_conv
    for _ in run:
        pass
    assert (early.act("Q"), exploitability(early).nash_conv) == before
    assert run.agent.act("Q") != early.act("Q")


def test_results_are_those_of_the_command() -> None:
    agent, tight = load("leduc"), load("tight:leduc")
    assert exploitability(agent).nash_conv == exploitability(agent.policy).nash_conv
    assert exploitability(agent).nash_conv == deepcfr("exploitability", "leduc", "--json").json["nash_conv"]
    assert match(agent, tight).value == pytest.approx(-match(tight, agent).value)
    sampled = match(agent, tight, hands=500, seed=2)
    assert (sampled.exact, sampled.value) == (False, match(agent, tight, hands=500, seed=2).value)
    with pytest.raises(ConfigError, match="give a number of one of them, but not of both"):
        match(agent, tight, hands=5, boards=5)
    boards = match(agent, tight, boards=np.int64(3))  # type: ignore[arg-type]
    assert not boards.exact
    assert boards.value == match(agent, tight, boards=3).value
    for wrong in (3.0, "3"):
        with pytest.raises(ConfigError, match=f"'boards' of a match must be a whole number, but is {wrong!r}"):
            match(agent, tight, boards=wrong)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="'max-margin' is not a kind of search: choose one of gadget"):
        load("resolve:leduc", search=SearchConfig(kind="max-margin"))  # type: ignore[arg-type]


def test_a_folder_that_hides_a_shipped_agent_is_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fhp: Agent
) -> None:
    monkeypatch.chdir(tmp_path)
    deepcfr("export", "leduc", "--out", "fhp")
    with pytest.warns(UserWarning, match="'fhp' is the folder here"):
        assert load("fhp").game == "leduc"
    assert fhp.game == "fhp"
    assert np.isfinite(list(fhp.act("As Ad").values())).all()
