"""Commands on a game with bet sizes: solved by iterations or the clock, stopped and resumed, queried, played, compact."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import made_runs
from bet_size_games import TWO_ROUNDS, write_game
from command_line import Outcome, deepcfr
from deepcfr.config import load_config
from deepcfr.measure.match import tournament as matches
from deepcfr.run.folder import RunFolder
from experiments.grid import is_complete
from small_runs import contents

STYLES = ("aggressive", "tight", "random", "calling-machine", "deterministic", "initial")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the game `two.toml` and its runs `a` and `b`, of 20 and 40 iterations."""
    folder = tmp_path_factory.mktemp("bet_sizes")
    write_game(TWO_ROUNDS, folder / "two.toml")
    for name, iterations in (("a", 20), ("b", 40)):
        assert solve(folder, name, "--iterations", iterations).json["iterations"] == iterations
    return folder


def solve(folder: Path, out: str, *more: object) -> Outcome:
    one = ("--solver", "mccfr", "--traversals", 50, "--runtime.threads", 1, "--json")
    return deepcfr("solve", folder / "two.toml", "--out", folder / out, *one, *more)


def tables(path: Path) -> dict[str, np.ndarray]:
    solver, _ = RunFolder.open(path).load_solver(pytest.fail, memories=True)
    return {name: array.copy() for name, array in solver.arrays().items()}  # type: ignore[union-attr]


def test_a_resumed_run_is_the_uninterrupted_one(place: Path) -> None:
    assert solve(place, "c", "--iterations", 20).status == 0
    assert deepcfr("resume", place / "c", "--iterations", 40, "--json").json["iterations"] == 40
    whole, resumed = tables(place / "b"), tables(place / "c")
    assert all(np.array_equal(whole[name], resumed[name]) for name in whole)
    assert not np.array_equal(whole["regret"], tables(place / "a")["regret"])


def test_minutes_end_a_run_whatever_its_iterations(place: Path) -> None:
    facts = solve(place, "clock", "--minutes", 0.005).json
    assert facts["finished"]
    assert facts["seconds"] >= 0.3
    assert 0 < facts["iterations"] < 1_000_000
    assert load_config(place / "clock" / "config.toml").runtime.minutes == 0.005
    again = deepcfr("resume", place / "clock", "--json").json
    assert (again["finished"], again["iterations"]) == (True, facts["iterations"])
    longer = deepcfr("resume", place / "clock", "--minutes", (again["seconds"] + 0.3) / 60, "--json").json
    assert longer["finished"]
    assert longer["iterations"] > facts["iterations"]


def test_a_run_is_queried_and_played(place: Path) -> None:
    answer = deepcfr("strategy", place / "a", "4c / r4 c / 2d", "--json").json
    assert (answer["player"], answer["round"]) == (1, "round 2")
    assert sum(answer["probabilities"].values()) == pytest.approx(1)
    assert "check" in deepcfr("strategy", place / "a", "4c / r4 c / 2d").out
    current = deepcfr("strategy", place / "a", "4c / r4 c / 2d", "--policy", "current", "--json").json
    assert current["policy"] == "current"
    random = deepcfr("strategy", f"random:{place / 'a'}", "4c / r4 c / 2d", "--json").json
    shares = random["probabilities"]
    assert shares == pytest.approx(dict.fromkeys(answer["probabilities"], 1 / len(shares)))
    both = deepcfr("strategy", f"ensemble:sum:{place / 'a'},random:{place / 'a'}", "4c / r4 c / 2d", "--json").json
    mean = {name: (share + shares[name]) / 2 for name, share in answer["probabilities"].items()}
    assert both["probabilities"] == pytest.approx(mean)
    for rule in ("member", "mixture"):
        members = f"{place / 'a'},{place / 'b'}"  # at a player's first decision their average is their mean
        facts = [
            deepcfr("strategy", name, "4c / r4", "--json").json["probabilities"]
            for name in (f"ensemble:{rule}:{members}", *members.split(","))
        ]
        assert facts[0] == pytest.approx({name: (facts[1][name] + facts[2][name]) / 2 for name in facts[0]})
    hands = deepcfr("play", place / "a", "--hands", 2, answers="c\n" * 20)
    assert (hands.status, hands.err) == (0, "")
    assert hands.out.count("Your cards:") == 2
    assert "Session: 2 hands" in hands.out
    odd = deepcfr("play", place / "a", answers="r99\nq\n")
    assert "'r99' is not possible here: type the letter of " in odd.out.replace("\n", " ")


def test_styles_and_ensembles_are_played_in_the_terminal_too(place: Path) -> None:
    a, b = place / "a", place / "b"
    answers = "c\n" * 40
    for name in (f"calling-machine:{a}", f"ensemble:member:{a},{b}", f"initial:{a}"):
        hands = deepcfr("play", name, "--hands", 3, answers=answers)
        assert (hands.status, hands.err) == (0, "")
        assert "Session: 3 hands" in hands.out
    plain, random = (
        deepcfr("play", name, "--hands", 8, "--seed", 0, answers=answers).out for name in (a, f"random:{a}")
    )
    assert plain != random


def test_matches_and_tournaments_know_styles_and_ensembles(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert matches.BET_SIZE_DEALS == 100_000  # as the help says
    a, b = place / "a", place / "b"
    ways = ("--hands", 400, "--threads", 1, "--json")
    match = deepcfr("match", f"tight:{a}", f"ensemble:sum:{a},{b}", *ways).json
    assert match["policies"] == ["average, tight", "sum of 2 policies"]
    assert match["hands"] == 400
    table = deepcfr("tournament", a, "scripted:call", "--styles", *STYLES, *ways).json
    assert table["names"] == [str(a), *(f"{style}:{a}" for style in STYLES), "scripted:call"]
    assert np.allclose(np.array(table["mean"]), -np.array(table["mean"]).T)
    shown = deepcfr("tournament", a, "--styles", *STYLES, "--hands", 10, "--threads", 1).out
    assert f"calling-machine:{a}" in shown
    assert "…" not in shown
    exact = deepcfr("match", a, b, "--boards", "all", "--json").json
    many = deepcfr("match", a, b, "--hands", 50_000, "--json").json
    assert exact["exact"]
    assert exact["value"] == pytest.approx(many["value"], abs=2 * many["interval"])
    monkeypatch.setattr(matches, "BET_SIZE_DEALS", 30)  # without a number
    assert deepcfr("match", a, b, "--json").json["hands"] == 30
    assert "30 deals, each in both seats" in deepcfr("tournament", a, b).out.replace("\n", " ")


def test_styles_and_ensembles_of_listed_games_have_names_too(tmp_path: Path) -> None:
    for seed in (0, 1):
        run = ("--out", tmp_path / str(seed), "--solver", "mccfr", "--iterations", 20, "--seed", seed, "--json")
        assert deepcfr("solve", "leduc", *run).status == 0
    zero, one = tmp_path / "0", tmp_path / "1"
    ways = ("--threads", 1, "--json")
    member = deepcfr("match", zero, one, *ways).json
    mixed = deepcfr("match", zero, f"ensemble:mixture:{zero},{one}", *ways).json
    assert mixed["exact"]
    assert mixed["value"] == pytest.approx(member["value"] / 2, abs=1e-6)  # nobody gains against itself
    pure_queen = deepcfr("strategy", f"deterministic:{zero}", "Q / r", "--json").json["probabilities"]
    assert sorted(pure_queen.values())[-2:] == [0, 1]
    pure = deepcfr("match", f"deterministic:{zero}", f"random:{one}", *ways).json
    assert pure["policies"] == ["average, deterministic", "uniform"]


def test_a_run_on_kmeans_buckets_is_like_any_other(place: Path, tmp_path: Path) -> None:
    assert deepcfr("abstract", place / "two.toml", "--buckets", 1, 1, "--out", tmp_path / "one").status == 0
    assert solve(place, "one", "--iterations", 20, "--abstraction", tmp_path / "one").status == 0
    shutil.rmtree(tmp_path / "one")  # the run has its own copy
    assert deepcfr("resume", place / "one", "--iterations", 30, "--json").json["iterations"] == 30
    assert deepcfr("export", place / "one", "--out", tmp_path / "bot").status == 0

    def answer(run: Path, hand: str) -> dict[str, float]:
        shares: dict[str, float] = deepcfr("strategy", run, f"{hand} / r4", "--json").json["probabilities"]
        return shares

    for run in (place / "one", tmp_path / "bot"):
        assert answer(run, "2c") == answer(run, "4c")  # one bucket has all hands
    assert answer(place / "a", "2c") != answer(place / "a", "4c")
    match = deepcfr("match", place / "one", f"tight:{tmp_path / 'bot'}", "--hands", 20, "--threads", 1, "--json").json
    assert match["hands"] == 20
    whole, small = (sum(map(len, contents(run).values())) for run in (place / "one", tmp_path / "bot"))
    assert small < whole
    other = ("--iterations", 5, "--abstraction", made_runs.places().abstraction)  # of leduc, which has the same cards
    assert solve(place, "leduc", *other).json["iterations"] == 5


def test_networks_learn_a_small_game_with_bet_sizes_and_play_its_tables(place: Path) -> None:
    small = ("--iterations", 4, "--sampling.traversals", 100, "--advantage.steps", 20, "--average.steps", 50)
    small += ("--advantage.batch-size", 32, "--average.batch-size", 32)
    more = ("--evaluation.at", "--runtime.threads", 1, "--json")
    facts = deepcfr("train", place / "two.toml", "--out", place / "deep", *small, *more).json
    assert facts["iterations"] == 4
    assert deepcfr("exploitability", place / "deep", "--json").json["nash_conv"] == pytest.approx(facts["nash_conv"])
    run, metrics = RunFolder.open(place / "deep"), place / "deep" / "metrics.jsonl"
    assert is_complete(run)
    whole = metrics.read_text()
    lines = [json.loads(line) for line in whole.splitlines()]
    del lines[-1]["evaluation"]
    metrics.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert not is_complete(run)  # its boards can be enumerated, so the last evaluation is missing
    metrics.write_text(whole)
    assert is_complete(RunFolder.open(place / "a"))  # tables are not evaluated when they are solved
    pairs = (("deep", "a"), ("a", "deep"))
    gains = [deepcfr("match", place / x, place / y, "--hands", 20_000, "--json").json for x, y in pairs]
    assert gains[0]["value"] == pytest.approx(-gains[1]["value"], abs=gains[0]["interval"] + gains[1]["interval"])
    answer = deepcfr("strategy", place / "deep", "4c / r4 c / 2d", "--json").json
    assert sum(answer["probabilities"].values()) == pytest.approx(1)
    assert [name.split()[0] for name in answer["probabilities"]] == ["check", "bet"]


def test_tables_of_a_small_game_with_bet_sizes_are_measured_exactly_and_searched(place: Path) -> None:
    plain = deepcfr("exploitability", place / "a", "--json").json
    searched = deepcfr("exploitability", f"resolve:{place / 'a'}", "--json").json
    assert searched["nash_conv"] < plain["nash_conv"]
    assert plain["iterations"] == 20
    played = deepcfr("match", f"resolve:{place / 'a'}", place / "a", "--hands", 50, "--json").json
    assert played["hands"] == 50


def test_search_needs_no_list_of_the_whole_game(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name, spot = f"resolve:{place / 'a'}", "4c / r4 c / 2d"
    listed = deepcfr("strategy", name, spot, "--json").json["probabilities"]
    monkeypatch.setattr("deepcfr.game.bet_size_betting.can_be_listed", lambda _: False)
    stepped = deepcfr("strategy", name, spot, "--json").json["probabilities"]
    assert stepped == pytest.approx(listed, abs=1e-3)
    assert stepped != deepcfr("strategy", place / "a", spot, "--json").json["probabilities"]
    assert deepcfr("match", name, place / "a", "--hands", 50, "--json").json["hands"] == 50
    assert deepcfr("lbr", name, "--hands", 20, "--json").json["hands"] == 20
