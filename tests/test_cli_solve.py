"""`deepcfr solve` from the command line: its figures, what else works on its runs, and its sentences for mistakes."""

import dataclasses
import json
import os
import re
import shutil
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, get_args

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from command_line import Outcome, deepcfr, edit_settings, problem, problems
from deepcfr.config import (
    EvaluationConfig,
    RunConfig,
    RuntimeConfig,
    TabularConfig,
    config_from_table,
    config_to_toml,
    load_config,
)
from deepcfr.config.records import TabularSolver
from deepcfr.defaults import default_config
from deepcfr.game import presets
from deepcfr.game.presets import load_rules
from deepcfr.run import costs
from definitions import format_game_definition
from solve_runs import (
    Places,
    contents,
    make_places,
    metrics,
    newest,
    tables,
)
from tables import tabular

ALGORITHMS = ("cfr", "cfr+", "pcfr+", "linear-cfr", "dcfr", "mccfr")
KEYS = {
    "game", "unit", "iterations", "nodes_touched", "nash_conv", "exploitability", "best_response_values", "value",
    "seconds", "policy",
}  # fmt: skip
LEDUC_VALUE = -85.6064  # thousandths of an ante, to the first player
ONE_THREAD = ("--runtime.threads", 1)
TINY = (
    "--iterations", 1, "--sampling.traversals", 20, "--network.kind", "mlp", "--network.width", 8,
    "--network.layers", 1, "--advantage.steps", 4, "--advantage.batch-size", 16, "--average.steps", 4,
    "--average.batch-size", 16, "--memory.advantage-capacity", 100, "--memory.strategy-capacity", 100,
)  # fmt: skip


class Solved(NamedTuple):
    path: Path
    outcome: Outcome


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Places:
    return make_places(tmp_path_factory.mktemp("places"))


@pytest.fixture(scope="module")
def solved(tmp_path_factory: pytest.TempPathFactory, places: Places) -> dict[str, Solved]:
    """One finished run of each solver, and what the command said with --json."""
    folder = tmp_path_factory.mktemp("solved")
    asked: dict[str, tuple[object, ...]] = {
        "full-width": ("leduc", "--solver", "cfr+", "--iterations", 200, "--evaluation.every", 50),
        "buckets": (
            "leduc", "--solver", "mccfr", "--iterations", 4, "--traversals", 500, "--abstraction", places.abstraction,
            *ONE_THREAD,
        ),
        "openspiel": ("openspiel:kuhn_poker", "--solver", "cfr+", "--iterations", 30, "--evaluation.every", 10),
    }  # fmt: skip
    return {
        name: Solved(folder / name, deepcfr("solve", *arguments, "--out", folder / name, "--json"))
        for name, arguments in asked.items()
    }


SOLVED = ("full-width", "buckets", "openspiel")


# Figures


@pytest.mark.parametrize("name", SOLVED)
def test_solve_prints_one_json_object_and_progress_to_standard_error(name: str, solved: dict[str, Solved]) -> None:
    path, outcome = solved[name]
    result = outcome.json
    assert set(result) == KEYS | {"boards", "boards_used", "finished", "run"}
    assert (result["finished"], result["run"]) == (True, str(path))
    lines = [json.loads(line) for line in (path / "metrics.jsonl").read_text().splitlines()]
    assert result["iterations"] == len(lines) == load_config(path / "config.toml").iterations
    assert result["nodes_touched"] == sum(line["nodes_touched"] for line in lines)
    assert result["seconds"] >= lines[-1]["seconds"] > 0
    for key in ("game", "unit", "nash_conv", "value", "best_response_values", "policy"):
        assert result[key] == lines[-1]["evaluation"][key]
    assert f"iteration {len(lines)}: exact NashConv" in outcome.err


def test_the_game_and_the_unit_are_named(solved: dict[str, Solved]) -> None:
    named = {name: (run.outcome.json["game"], run.outcome.json["unit"]) for name, run in solved.items()}
    assert named == {
        "full-width": ("leduc", "mA/g"),
        "buckets": ("leduc", "mA/g"),
        "openspiel": ("kuhn_poker", "mpoints/g"),
    }


@pytest.mark.parametrize("name", SOLVED)
def test_the_figures_of_an_evaluation_fit_together_and_enclose_the_value(name: str, solved: dict[str, Solved]) -> None:
    result = solved[name].outcome.json
    first, second = result["best_response_values"]
    assert result["nash_conv"] == pytest.approx(first + second, rel=1e-12)
    assert result["exploitability"] == result["nash_conv"] / 2
    known = -1000 / 18 if name == "openspiel" else LEDUC_VALUE
    assert -second <= result["value"] <= first  # a best response does no worse than the profile
    assert -second <= known <= first


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_every_algorithm_comes_close_to_the_value_of_kuhn(tmp_path: Path, algorithm: str) -> None:
    for game in ("kuhn", "openspiel:kuhn_poker"):
        arguments = ("--solver", algorithm, "--iterations", 300, "--traversals", 100, *ONE_THREAD)
        result = deepcfr("solve", game, "--out", tmp_path / game, "--json", *arguments).json
        first, second = result["best_response_values"]
        assert -second <= -1000 / 18 <= first
        assert result["nash_conv"] < 40  # of 917 for uniform play


def test_fictitious_play_solves_a_game_of_openspiel_and_refuses_the_others(tmp_path: Path) -> None:
    arguments = ("--solver", "xfp", "--iterations", 300, "--json", *ONE_THREAD)
    result = deepcfr("solve", "openspiel:kuhn_poker", "--out", tmp_path / "run", *arguments).json
    assert 0 < result["nash_conv"] < 100
    assert deepcfr("exploitability", tmp_path / "run", "--policy", "current", "--json").json["nash_conv"] > 100
    assert deepcfr("resume", tmp_path / "run", "--iterations", 320, "--json").json["iterations"] == 320
    (problem,) = problems(deepcfr("solve", "kuhn", "--out", tmp_path / "none", *arguments))
    assert "openspiel:leduc_poker" in problem
    assert "the game is kuhn" in problem
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("algorithm", ALGORITHMS[:4])
def test_kuhn_is_the_same_game_here_and_in_openspiel(tmp_path: Path, algorithm: str) -> None:
    arguments = ("--json", "--solver", algorithm, "--iterations", 30, "--precision", "float64")
    ours, theirs = (
        deepcfr("solve", game, "--out", tmp_path / game, *arguments).json for game in ("kuhn", "openspiel:kuhn_poker")
    )
    assert ours["nash_conv"] == pytest.approx(theirs["nash_conv"], rel=1e-6)
    assert ours["value"] == pytest.approx(theirs["value"], rel=1e-6)


def test_the_options_of_monte_carlo_cfr_reach_the_solver(tmp_path: Path) -> None:
    common = ("solve", "kuhn", "--solver", "mccfr", "--iterations", 4, "--traversals", 100, *ONE_THREAD)
    changes: dict[str, tuple[object, ...]] = {
        "as it is": (),
        "sampler": ("--sampler", "outcome"),
        "weighting": ("--weighting", "uniform"),
        "precision": ("--precision", "float64"),
        "traversals": ("--traversals", 50),
        "seed": ("--seed", 1),
    }
    found = set()
    for name, change in changes.items():
        assert deepcfr(*common, "--out", tmp_path / name, *change).status == 0
        found.add(tables(tmp_path / name)["average.npy"])
    assert len(found) == len(changes)


def test_a_definition_of_flop_holdem_is_solved_in_every_precision(tmp_path: Path, places: Places) -> None:
    values = {}
    for precision in ("float64", "float32", "int16"):
        arguments = ("--solver", "dcfr", "--iterations", 60, "--precision", precision)
        result = deepcfr("solve", places.game, "--out", tmp_path / precision, "--json", *arguments).json
        assert (result["game"], result["unit"], result["boards"]) == ("small-flop", "mbb/g", 28)
        values[precision] = result
    # Values of a zero-sum game lie between what best responses gain, whatever the precision.
    assert all(result["nash_conv"] < 10 for result in values.values())
    for result in values.values():
        for other in values.values():
            assert -other["best_response_values"][1] <= result["best_response_values"][0]
    assert values["float32"]["value"] == pytest.approx(values["float64"]["value"], abs=5)


@pytest.mark.parametrize("algorithm", ALGORITHMS[:4])
def test_memory_and_time_are_said_before_the_first_iteration(tmp_path: Path, algorithm: str) -> None:
    arguments = ("--solver", algorithm, "--iterations", 2, "--evaluation.every", 1)
    text = deepcfr("solve", "leduc", "--out", tmp_path / "run", *arguments).out
    assert text.startswith(f"{algorithm} on leduc: 2 iterations, float32")
    first = text.index("iteration 1: exact NashConv")
    assert 0 < text.index("take 0.00 GB") < text.index("2 iterations take about") < first


def test_solve_without_json_prints_the_result_and_nothing_to_standard_error(
    tmp_path: Path, solved: dict[str, Solved]
) -> None:
    arguments = ("--solver", "cfr+", "--iterations", 200, "--evaluation.every", 50)
    outcome = deepcfr("solve", "leduc", "--out", tmp_path / "run", *arguments)
    assert (outcome.status, outcome.err) == (0, "")
    result = solved["full-width"].outcome.json
    assert f"exact NashConv {result['nash_conv']:.3f} mA/g" in outcome.out
    assert f"{result['nodes_touched']:,} nodes touched" in outcome.out
    assert f"deepcfr play {tmp_path / 'run'}" in outcome.out


# What else works on its runs


@pytest.mark.parametrize("name", SOLVED)
def test_exploitability_agrees_with_the_end_of_solving(name: str, solved: dict[str, Solved]) -> None:
    path, outcome = solved[name]
    expected = {k: v for k, v in outcome.json.items() if k not in ("seconds", "finished", "run")}
    for threads in (1, 2):
        measured = deepcfr("exploitability", path, "--json", "--threads", threads).json
        assert {k: v for k, v in measured.items() if k != "seconds"} == expected
    text = deepcfr("exploitability", path)
    assert f"exact NashConv {expected['nash_conv']:.3f} {expected['unit']}" in text.out


@pytest.mark.parametrize("name", SOLVED)
def test_the_current_policy_is_measured_on_its_own(name: str, solved: dict[str, Solved]) -> None:
    average, current = (
        deepcfr("exploitability", solved[name].path, "--json", "--policy", p).json for p in ("average", "current")
    )
    assert average["policy"].startswith("average")
    assert current["policy"].startswith("current")
    assert current["nash_conv"] > average["nash_conv"] > 0  # iterates circle around what averages converge to


@pytest.mark.parametrize("name", SOLVED)
def test_measuring_and_resuming_a_finished_run_change_no_file(
    tmp_path: Path, name: str, solved: dict[str, Solved]
) -> None:
    path, outcome = solved[name]
    before = contents(path)
    deepcfr("exploitability", path, "--policy", "current")
    resumed = deepcfr("resume", path, "--json").json
    deepcfr("export", path, "--out", tmp_path / "small")
    assert contents(path) == before
    assert {k: resumed[k] for k in KEYS - {"seconds"}} == {k: outcome.json[k] for k in KEYS - {"seconds"}}
    assert resumed["finished"]


@pytest.mark.parametrize("name", SOLVED)
def test_an_export_measures_the_same_and_has_no_regrets(tmp_path: Path, name: str, solved: dict[str, Solved]) -> None:
    path, small = solved[name].path, tmp_path / "small"
    assert deepcfr("export", path, "--out", small) == (0, f"Exported to {small}.\n", "")
    assert tables(small) == {file: data for file, data in tables(path).items() if file.startswith("average")}
    measured = deepcfr("exploitability", small, "--json").json
    assert measured | {"seconds": 0} == deepcfr("exploitability", path, "--json").json | {"seconds": 0}
    before = contents(small)
    for command in (("exploitability", small, "--policy", "current"), ("resume", small)):
        assert re.search("without its (memories|regrets)", problem(deepcfr(*command)))
    if name != "openspiel":
        assert "was exported without" in problem(deepcfr("strategy", small, "K", "--policy", "current"))
        asked = [deepcfr("strategy", p, "K / c", "--json").json for p in (small, path)]
        assert asked[0] == asked[1]
    assert contents(small) == before
    assert deepcfr("export", small, "--out", tmp_path / "again").status == 0
    assert tables(tmp_path / "again") == tables(small)


@pytest.mark.parametrize("name", ["full-width", "buckets"])
def test_strategy_answers_for_a_run_of_leduc(name: str, solved: dict[str, Solved]) -> None:
    path = solved[name].path
    for policy in ("average", "current"):
        answer = deepcfr("strategy", path, "K / rc / Q / r", "--json", "--policy", policy).json
        assert (answer["game"], answer["player"], answer["policy"]) == ("leduc", 1, policy)
        assert set(answer["probabilities"]) == {"fold", "call", "raise"}
        assert sum(answer["probabilities"].values()) == pytest.approx(1, abs=1e-6)
    outcome = deepcfr("strategy", path, "K / rc / Q / r")
    assert (outcome.status, outcome.err) == (0, "")
    assert "player 1 to act" in outcome.out
    assert "'X'" in problem(deepcfr("strategy", path, "X"))


def test_a_solved_game_is_played_well(solved: dict[str, Solved]) -> None:
    kings, jacks = (
        deepcfr("strategy", solved["full-width"].path, f"{card} / r", "--json").json["probabilities"] for card in "KJ"
    )
    assert kings["fold"] < 0.001  # never behind before the board comes
    assert jacks["fold"] > 0.5


@pytest.mark.parametrize("name", ["full-width", "buckets"])
def test_play_ends_cleanly_and_is_decided_by_its_seed(name: str, solved: dict[str, Solved]) -> None:
    path = solved[name].path
    one, same, other = (deepcfr("play", path, "--hands", 5, "--seed", seed, answers="c\n" * 60) for seed in (1, 1, 2))
    assert (one.status, one.err) == (0, "")
    assert one.out.count("Your cards:") == 5
    assert re.search(r"Session: 5 hands, [+-]", one.out)
    assert one == same != other


def test_strategy_answers_for_the_infosets_of_openspiel_games_and_names_some_for_others(
    solved: dict[str, Solved],
) -> None:
    path = solved["openspiel"].path
    for extra in ((), ("--policy", "current")):
        assert "'kuhn_poker' has no infoset 'K'; some are '0', '1', '2'." in problem(
            deepcfr("strategy", path, "K", *extra)
        )
        shares = deepcfr("strategy", path, "0pb", "--json", *extra).json["probabilities"]
        assert sum(shares.values()) == pytest.approx(1)


def test_a_run_of_an_openspiel_game_does_not_recommend_what_is_refused(tmp_path: Path) -> None:
    outcome = deepcfr("solve", "openspiel:kuhn_poker", "--out", tmp_path / "run", "--iterations", 2)
    assert outcome.status == 0
    assert "deepcfr play" not in outcome.out


def test_a_full_width_run_of_an_openspiel_game_names_the_precision_that_it_has(tmp_path: Path) -> None:
    arguments = ("--solver", "cfr+", "--iterations", 2, "--precision", "int16")
    outcome = deepcfr("solve", "openspiel:kuhn_poker", "--out", tmp_path / "run", *arguments)
    assert outcome.status == 0
    assert "2 iterations, float64" in outcome.out
    assert "int16" not in outcome.out


@pytest.mark.parametrize("algorithm", ["cfr+", "mccfr"])
def test_openspiel_games_are_solved(tmp_path: Path, algorithm: str) -> None:
    arguments = ("--solver", algorithm, "--iterations", 60, "--traversals", 2000, *ONE_THREAD)
    result = deepcfr("solve", "openspiel:leduc_poker", "--out", tmp_path / "run", "--json", *arguments).json
    first, second = result["best_response_values"]
    assert -second <= LEDUC_VALUE <= first
    assert result["nash_conv"] < 700  # of 4,747 for uniform play
    assert deepcfr("exploitability", tmp_path / "run", "--json").json["nash_conv"] == result["nash_conv"]


def test_networks_train_on_openspiel_games(tmp_path: Path) -> None:
    path = tmp_path / "run"
    result = deepcfr("train", "openspiel:kuhn_poker", "--out", path, "--json", *TINY).json
    assert (result["game"], result["unit"], result["policy"]) == ("kuhn_poker", "mpoints/g", "average network")
    first, second = result["best_response_values"]
    assert -second <= -1000 / 18 <= first
    measured = deepcfr("exploitability", path, "--json").json
    assert measured["nash_conv"] == result["nash_conv"]
    assert deepcfr("resume", path, "--json").json["nash_conv"] == result["nash_conv"]
    assert "kuhn_poker" in problem(deepcfr("strategy", path, "K"))


# Abstractions


def test_the_abstraction_may_go_away_once_the_run_is_there(tmp_path: Path, places: Places) -> None:
    shutil.copytree(places.abstraction, tmp_path / "buckets")
    arguments = ("--solver", "mccfr", "--iterations", 2, "--traversals", 50, *ONE_THREAD)
    path = tmp_path / "run"
    made = deepcfr("solve", "leduc", "--out", path, "--json", *arguments, "--abstraction", tmp_path / "buckets").json
    shutil.rmtree(tmp_path / "buckets")
    assert deepcfr("exploitability", path, "--json").json["nash_conv"] == made["nash_conv"]
    assert deepcfr("strategy", path, "K").status == 0
    edit_settings(path, "iterations = 2", "iterations = 3")
    assert deepcfr("resume", path, "--json").json["iterations"] == 3
    assert deepcfr("export", path, "--out", tmp_path / "small").status == 0
    shutil.rmtree(path)
    assert deepcfr("exploitability", tmp_path / "small", "--json").json["iterations"] == 3


def test_the_command_abstract_makes_what_solve_takes(tmp_path: Path) -> None:
    made = deepcfr("abstract", "leduc", "--buckets", 3, 4, "--out", tmp_path / "buckets", "--json").json
    assert (made["game"], made["counts"]) == ("leduc", [3, 4])
    arguments = ("--solver", "mccfr", "--iterations", 2, "--traversals", 50, "--abstraction", tmp_path / "buckets")
    assert deepcfr("solve", "leduc", "--out", tmp_path / "run", "--json", *arguments).json["finished"]
    sentence = problem(deepcfr("abstract", "leduc", "--buckets", 3, 4, "--out", tmp_path / "buckets"))
    assert f"'{tmp_path / 'buckets'}' already exists" in sentence


def test_hands_in_one_bucket_are_played_alike(tmp_path: Path) -> None:
    deepcfr("abstract", "leduc", "--buckets", 1, 1, "--out", tmp_path / "buckets")
    arguments = ("--solver", "mccfr", "--iterations", 2, "--traversals", 500, "--abstraction", tmp_path / "buckets")
    assert deepcfr("solve", "leduc", "--out", tmp_path / "run", *arguments).status == 0
    alike = []
    for betting in ("", " / r", " / cc / Q / r"):
        jack, king = (
            deepcfr("strategy", tmp_path / "run", card + betting, "--json").json["probabilities"] for card in "JK"
        )
        assert jack == king
        alike.append(max(jack.values()) == min(jack.values()))
    assert not all(alike)  # nor is everything played uniformly


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)


def other_rules(path: Path) -> None:
    """An abstraction of leduc with other bets, which has as many hands and buckets."""
    rules = dataclasses.replace(load_rules("leduc"), raise_size=(2, 6))
    definition = path.with_suffix(".game")
    definition.write_text(format_game_definition(rules))
    shutil.rmtree(path)
    assert deepcfr("abstract", definition, "--buckets", 3, 15, "--out", path).status == 0


DAMAGE: dict[str, tuple[Callable[[Path], object], str]] = {
    "missing": (shutil.rmtree, "buckets/abstraction.json' cannot be read"),
    "empty": (lambda p: [file.unlink() for file in p.iterdir()], "buckets/abstraction.json' cannot be read"),
    "no description": (lambda p: (p / "abstraction.json").unlink(), "buckets/abstraction.json' cannot be read"),
    "a file": (lambda p: (shutil.rmtree(p), p.write_text("x")), "buckets/abstraction.json' cannot be read"),
    "no JSON": (lambda p: os.truncate(p / "abstraction.json", 100), "buckets/abstraction.json' cannot be read"),
    "no text": (lambda p: (p / "abstraction.json").write_bytes(b"\xff\xfe"), "abstraction.json' cannot be read"),
    "a list": (lambda p: (p / "abstraction.json").write_text("[]"), "abstraction.json' is damaged"),
    "nothing": (lambda p: (p / "abstraction.json").write_text("{}"), "abstraction.json' has format None"),
    "a figure": (
        lambda p: (p / "abstraction.json").write_text(
            (p / "abstraction.json").read_text().replace('"board_cards"', '"bord_cards"')
        ),
        "abstraction.json' is damaged",
    ),
    "no table": (lambda p: (p / "round-1.npy").unlink(), "buckets/round-1.npy' cannot be read"),
    "truncated": (lambda p: os.truncate(p / "round-1.npy", 130), "buckets/round-1.npy' is damaged"),
    "emptied": (lambda p: os.truncate(p / "round-0.npy", 0), "buckets/round-0.npy' is damaged"),
    "flipped": (lambda p: flip(p / "round-1.npy"), "buckets/round-1.npy' is damaged"),
    "exchanged": (lambda p: shutil.copy(p / "round-0.npy", p / "round-1.npy"), "buckets/round-1.npy' is damaged"),
    "of another game": (other_rules, "belongs to buckets, whose rules are not those of leduc"),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_an_abstraction_that_is_not_one_of_the_game_is_one_sentence(tmp_path: Path, name: str, places: Places) -> None:
    damage, expected = DAMAGE[name]
    buckets = tmp_path / "buckets"
    shutil.copytree(places.abstraction, buckets)
    damage(buckets)
    for extra in ((), ("--json",)):
        arguments = ("--solver", "mccfr", "--abstraction", buckets, "--out", tmp_path / "run", *extra)
        assert expected in problem(deepcfr("solve", "leduc", *arguments))
    assert not (tmp_path / "run").exists()


def test_an_abstraction_of_another_preset_or_a_run_folder_is_one_sentence(
    tmp_path: Path, places: Places, solved: dict[str, Solved]
) -> None:
    common = ("--solver", "mccfr", "--out", tmp_path / "run", "--abstraction")
    for game in ("kuhn", places.game):
        assert "belongs to leduc, whose rules are not those of" in problem(
            deepcfr("solve", game, *common, places.abstraction)
        )
    assert "abstraction.json' cannot be read" in problem(deepcfr("solve", "leduc", *common, solved["full-width"].path))
    assert list(tmp_path.iterdir()) == []


def test_damage_to_the_runs_own_abstraction_is_one_sentence(tmp_path: Path, solved: dict[str, Solved]) -> None:
    path = tmp_path / "run"
    shutil.copytree(solved["buckets"].path, path)
    flip(path / "abstraction" / "round-1.npy")
    for command in (("resume", path), ("exploitability", path), ("strategy", path, "K"), ("play", path)):
        assert f"'{path / 'abstraction' / 'round-1.npy'}' is damaged" in problem(deepcfr(*command))


@pytest.mark.parametrize(
    "buckets, expected",
    [
        ((0,), ["Round 2 of leduc was given 0 buckets, but must have 1 to 15"]),
        ((3, -1), ["Round 2 of leduc was given -1 buckets, but must have 1 to 15"]),
        ((3, 16), ["Round 2 of leduc was given 16 buckets, but must have 1 to 15"]),
        ((4, 16), ["Round 1 of leduc was given 4 buckets, but must have 1 to 3", "Round 2 of leduc was given 16"]),
        ((16,), ["Round 2 of leduc was given 16 buckets, but must have 1 to 15"]),
        ((1, 2, 3), ["leduc has 2 rounds, but 3 numbers of buckets were given"]),
        ((), ["leduc has 2 rounds, but 0 numbers of buckets were given"]),
    ],
)
def test_impossible_numbers_of_buckets_are_a_sentence_each(
    tmp_path: Path, buckets: tuple[int, ...], expected: list[str]
) -> None:
    lines = problems(deepcfr("abstract", "leduc", "--out", tmp_path / "buckets", "--buckets", *buckets))
    assert len(lines) == len(expected)
    assert all(piece in line for piece, line in zip(expected, lines, strict=True))
    assert list(tmp_path.iterdir()) == []


def test_other_mistakes_of_abstract_are_one_sentence(tmp_path: Path) -> None:
    common = ("--buckets", 3, "--out", tmp_path / "buckets")
    assert "--threads must be at least 1, but is 0" in problem(deepcfr("abstract", "leduc", *common, "--threads", 0))
    assert "'kuhm' is neither a preset" in problem(deepcfr("abstract", "kuhm", *common))
    assert deepcfr("abstract", "leduc", "--buckets", "x", "--out", tmp_path / "buckets").status == 2
    assert list(tmp_path.iterdir()) == []


def test_a_negative_seed_of_abstract_is_one_sentence(tmp_path: Path) -> None:
    assert "seed" in problem(deepcfr("abstract", "kuhn", "--buckets", 2, "--seed", -1, "--out", tmp_path / "buckets"))


# Mistakes

MISTAKES: dict[str, tuple[tuple[object, ...], str]] = {
    "negative iterations": (("leduc", "--iterations", -3), "'iterations' must be between 1 and 100,000,000"),
    "no iterations": (("leduc", "--iterations", 0), "but is 0."),
    "no threads": (("leduc", "--runtime.threads", 0), "'runtime.threads' must be between 1 and"),
    "negative seed": (("leduc", "--seed", -1), "'seed' must be between 0 and"),
    "no number": (("leduc", "--evaluation.threshold", "nan"), "'evaluation.threshold' must be between"),
    "device": (("leduc", "--runtime.device", "cuda"), "must be cpu for tabular solvers, but is 'cuda'"),
    "unknown game": (("kuhm",), "'kuhm' is neither a preset"),
    "full width of a large game": (("hulh", "--solver", "linear-cfr"), "hulh has 51,979,200 boards"),
    "16 bits": (("leduc", "--solver", "mccfr", "--precision", "int16"), "float32 or float64, but 'solve.precision'"),
    "buckets of an OpenSpiel game": (
        ("openspiel:leduc_poker", "--solver", "mccfr", "--abstraction", "BUCKETS"),
        "Abstractions are for poker games, and 'leduc_poker' is not one",
    ),
    "buckets at full width in OpenSpiel": (
        ("openspiel:leduc_poker", "--solver", "cfr", "--abstraction", "BUCKETS"), "takes no abstraction",
    ),
}  # fmt: skip
LATE_MISTAKES: dict[str, tuple[tuple[object, ...], str]] = {
    "buckets at full width": (
        ("leduc", "--solver", "cfr", "--abstraction", "BUCKETS"), "cfr is full-width and takes no abstraction",
    ),
    "16 bits on buckets": (
        ("leduc", "--solver", "mccfr", "--precision", "int16", "--abstraction", "BUCKETS"), "float32 or float64",
    ),
    "16 bits in OpenSpiel": (
        ("openspiel:kuhn_poker", "--solver", "mccfr", "--precision", "int16"), "float32 or float64",
    ),
    "unknown OpenSpiel game": (("openspiel:kuhn_pokr",), "OpenSpiel has no game 'kuhn_pokr'. Did you mean kuhn_poker"),
    "nameless OpenSpiel game": (("openspiel:",), "OpenSpiel has no game ''"),
    "three players": (("openspiel:kuhn_poker(players=3)",), "has 3 players, and two are supported"),
    "too large an OpenSpiel game": (("openspiel:chess", "--solver", "mccfr"), "at most 20,000,000 can be compiled"),
}  # fmt: skip


def command(arguments: tuple[object, ...], places: Places, out: Path) -> tuple[object, ...]:
    return ("solve", *(places.abstraction if word == "BUCKETS" else word for word in arguments), "--out", out)


@pytest.mark.parametrize("name", [*MISTAKES, *LATE_MISTAKES])
def test_a_mistake_is_one_sentence_and_status_2(tmp_path: Path, name: str, places: Places) -> None:
    arguments, expected = (MISTAKES | LATE_MISTAKES)[name]
    for number, extra in enumerate(((), ("--json",))):
        assert expected in problem(deepcfr(*command(arguments, places, tmp_path / str(number)), *extra))


@pytest.mark.parametrize("name", [*MISTAKES, *LATE_MISTAKES])
def test_a_mistake_does_not_take_the_folder(tmp_path: Path, name: str, places: Places) -> None:
    arguments, _ = (MISTAKES | LATE_MISTAKES)[name]
    assert deepcfr(*command(arguments, places, tmp_path / "run")).status == 2
    assert list(tmp_path.iterdir()) == []


def test_several_impossible_values_are_all_named_at_once(tmp_path: Path) -> None:
    options = {
        "--seed": -1, "--iterations": 0, "--evaluation.threshold": -1, "--traversals": 0, "--exploration-start": 2,
        "--runtime.keep": 0, "--runtime.checkpoint-seconds": -1, "--evaluation.at": -3,
    }  # fmt: skip
    words = [word for pair in options.items() for word in pair]
    lines = problems(deepcfr("solve", "kuhn", "--out", tmp_path / "run", *words))
    assert len(lines) == len(options)
    for option in options:
        name = option.removeprefix("--").replace("-", "_")
        assert sum(bool(re.search(rf"'(solve\.)?{re.escape(name)}' must", line)) for line in lines) == 1
    assert list(tmp_path.iterdir()) == []


def test_values_of_the_wrong_kind_are_status_2(tmp_path: Path) -> None:
    for option, value in (("--solver", "cfr++"), ("--precision", "float16"), ("--iterations", "many"), ("--x", 1)):
        outcome = deepcfr("solve", "kuhn", "--out", tmp_path / "run", option, value)
        assert (outcome.status, outcome.out) == (2, "")
        assert "Traceback" not in outcome.err
    assert list(tmp_path.iterdir()) == []


def test_tables_that_cannot_fit_are_refused_with_the_figures_and_leave_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(costs, "usable_memory", lambda: 200_000_000)
    sentence = problem(deepcfr("solve", "fhp", "--out", tmp_path / "run"))
    needed, available = re.findall(r"(\d+\.\d) GB", sentence)
    assert float(needed) > 0.9 * float(available) == 0.9 * 0.2
    assert "fhp in float32" in sentence
    assert list(tmp_path.iterdir()) == []


def test_a_run_that_has_outgrown_the_machine_is_refused_when_it_is_resumed(
    solved: dict[str, Solved], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(costs, "usable_memory", lambda: 1_000)
    path = solved["full-width"].path
    before = contents(path)
    assert "The tables of leduc" in problem(deepcfr("resume", path))
    assert contents(path) == before


def test_without_openspiel_its_games_are_one_sentence(
    tmp_path: Path, solved: dict[str, Solved], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = solved["openspiel"].path
    presets._openspiel_game.cache_clear()  # of games that other tests loaded
    monkeypatch.setitem(sys.modules, "pyspiel", None)  # importing it fails
    for command in (
        ("solve", "openspiel:kuhn_poker", "--out", tmp_path / "a"),
        ("solve", "openspiel:kuhn_poker", "--solver", "mccfr", "--out", tmp_path / "b"),
        ("train", "openspiel:kuhn_poker", "--out", tmp_path / "c"),
        ("resume", path),
        ("exploitability", path),
        ("export", path, "--out", tmp_path / "d"),
    ):
        assert "OpenSpiel is not installed: run pip install 'deepcfr[openspiel]'" in problem(deepcfr(*command))
    assert deepcfr("solve", "kuhn", "--iterations", 1, "--out", tmp_path / "e").status == 0


def test_a_folder_that_holds_a_run_is_left_alone(places: Places, solved: dict[str, Solved]) -> None:
    path = solved["buckets"].path
    before = contents(path)
    for command in (
        ("solve", "kuhn"),
        ("solve", "leduc", "--solver", "mccfr", "--abstraction", places.abstraction),
        ("train", "kuhn", *TINY),
    ):
        sentence = problem(deepcfr(*command, "--out", path))
        assert f"'{path}' already holds a run: go on with 'deepcfr resume {path}'" in sentence
    assert contents(path) == before


# Settings: command line over file over defaults


def test_settings_start_from_the_defaults_of_solve(tmp_path: Path) -> None:
    assert deepcfr("solve", "kuhn", "--iterations", 2, "--out", tmp_path / "run").status == 0
    expected = dataclasses.replace(default_config("kuhn", "linear-cfr"), iterations=2)
    assert load_config(tmp_path / "run" / "config.toml") == expected


def test_the_configuration_of_a_run_starts_the_same_run_and_options_override_it(tmp_path: Path) -> None:
    first = tmp_path / "first"
    options = (
        "--solver", "mccfr", "--iterations", 3, "--traversals", 70, "--sampler", "outcome", "--exploration-start", 0.25,
        "--seed", 9, "--evaluation.at", 1, 2, "--runtime.keep", 3, *ONE_THREAD,
    )  # fmt: skip
    assert deepcfr("solve", "kuhn", "--out", first, *options).status == 0
    config = load_config(first / "config.toml")
    assert config == tabular(
        "mccfr",
        3,
        sampler="outcome",
        traversals=70,
        exploration_start=0.25,
        game="kuhn",
        seed=9,
        evaluation=EvaluationConfig(at=(1, 2)),
        runtime=RuntimeConfig(threads=1, checkpoint_seconds=120, keep=3),
    )
    for name, words in (("two", ("--config", first / "config.toml")), ("three", (f"--config={first}/config.toml",))):
        assert deepcfr("solve", "kuhn", "--out", tmp_path / name, *words).status == 0
        assert (tmp_path / name / "config.toml").read_bytes() == (first / "config.toml").read_bytes()
        assert tables(tmp_path / name) == tables(first)
        assert metrics(tmp_path / name) == metrics(first)
    other = tmp_path / "other"
    words = ("--config", first / "config.toml", "--iterations", 2, "--seed", 1, "--runtime.checkpoint-seconds", 0)
    assert deepcfr("solve", "leduc", "--out", other, *words).status == 0
    assert load_config(other / "config.toml") == dataclasses.replace(
        config,
        game="leduc",
        seed=1,
        iterations=2,
        runtime=dataclasses.replace(config.runtime, checkpoint_seconds=0),
    )


def test_checkpoint_seconds_0_saves_every_due_iteration(tmp_path: Path) -> None:
    common = ("solve", "kuhn", "--iterations", 5, "--runtime.keep", 9)
    for name, seconds, expected in (("every", 0, [1, 2, 3, 4, 5]), ("last", 1000, [5])):
        assert deepcfr(*common, "--out", tmp_path / name, "--runtime.checkpoint-seconds", seconds).status == 0
        folders = (tmp_path / name / "checkpoints").glob("*/")
        assert sorted(int(folder.name) for folder in folders) == expected
        assert newest(tmp_path / name).name == "0000005"


def test_settings_of_the_other_command_are_one_sentence(tmp_path: Path, solved: dict[str, Solved]) -> None:
    tabular = solved["full-width"].path / "config.toml"
    networks = tmp_path / "networks.toml"
    networks.write_text("iterations = 3\n")
    for command, file, sentence in (
        ("train", tabular, f"{tabular} is for CFR+, which 'deepcfr solve' runs."),
        ("solve", networks, f"{networks} is for Deep CFR, which 'deepcfr train' runs."),
    ):
        assert sentence in problem(deepcfr(command, "kuhn", "--config", file, "--out", tmp_path / "run"))
    for command, solver, other in (("train", "cfr+", "solve"), ("solve", "nfsp", "train")):
        said = problem(deepcfr(command, "kuhn", "--solver", solver, "--out", tmp_path / "run"))
        assert f"--solver {solver} is for" in said
        assert f"which 'deepcfr {other}' runs." in said
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    "text, expected",
    [
        ("[solve\n", ["cannot be read"]),
        ("solver = 'fp'\n[solve]\niteration = 3\n", ["solve.iteration' is not", "'solver' must be one of"]),
        ("[solve]\nprecision = 16\ntraversals = 0\n", ["solve.precision' must be one of", "'solve.traversals' must"]),
        ("solve = 3\n", ["'solve' must be a section, but is 3"]),
    ],
)
def test_a_malformed_configuration_is_a_line_for_every_problem(tmp_path: Path, text: str, expected: list[str]) -> None:
    file = tmp_path / "settings.toml"
    file.write_text(text)
    lines = problems(deepcfr("solve", "kuhn", "--config", file, "--out", tmp_path / "run"))
    assert len(lines) == len(expected)
    assert all(str(file) in line for line in lines)
    for piece in expected:
        assert sum(piece in line for line in lines) == 1
    assert [p.name for p in tmp_path.iterdir()] == ["settings.toml"]


def test_the_help_of_solve_names_every_setting_and_variant() -> None:
    text = deepcfr("solve", "--help-all").out
    default = default_config("fhp", "linear-cfr")
    names = ["seed", "iterations", *(item.name for item in dataclasses.fields(TabularConfig))]
    for section in ("evaluation", "runtime"):
        names += [f"{section}.{item.name}" for item in dataclasses.fields(getattr(default, section))]
    assert len(names) > 15
    assert [name for name in names if not re.search(rf"--{re.escape(name.replace('_', '-'))}[ ,]", text)] == []
    every = (*ALGORITHMS, "xfp", "egt")
    assert get_args(TabularSolver) == every
    assert "{" + ",".join(every) + "}" in text


def whole(low: int, high: int) -> st.SearchStrategy[int]:
    return st.integers(low, high) | st.sampled_from([low, high])


def real(low: float, high: float) -> st.SearchStrategy[float]:
    return st.floats(low, high) | st.sampled_from([low, high])


TEXT = st.text(st.characters(exclude_categories=["Cs"]))  # a lone surrogate cannot be written in UTF-8
CONFIGS = st.builds(
    RunConfig,
    game=TEXT,
    seed=whole(0, 2**63 - 1),
    solver=st.sampled_from(ALGORITHMS),
    iterations=whole(1, 100_000_000),
    solve=st.builds(
        TabularConfig,
        precision=st.sampled_from(["float64", "float32", "int16"]),
        sampler=st.sampled_from(["external", "outcome"]),
        traversals=whole(1, 1_000_000_000),
        weighting=st.sampled_from(["linear", "uniform"]),
        exploration_start=real(0.0, 1.0),
        abstraction=TEXT,
    ),
    evaluation=st.builds(
        EvaluationConfig, every=whole(0, 100_000_000), at=st.lists(st.integers(1, 10**9), max_size=4).map(tuple)
    ),
    runtime=st.builds(
        RuntimeConfig,
        threads=whole(1, 1024),
        checkpoint_seconds=whole(0, 1_000_000),
        keep=whole(1, 1000),
    ),
)


def possible(config: RunConfig) -> RunConfig:
    """The same but for settings that the algorithm does not take."""
    solve = config.solve
    if config.solver != "mccfr":
        return dataclasses.replace(config, solve=dataclasses.replace(solve, abstraction="lossless"))
    precision: Any = "float32" if solve.precision == "int16" else solve.precision
    solve = dataclasses.replace(solve, precision=precision)
    return dataclasses.replace(config, solve=solve)


@given(CONFIGS.map(possible))
@example(tabular())
@example(default_config("fhp", "linear-cfr"))
@example(tabular("mccfr", abstraction='"\\\b\t\n\r\x00\x7f\x85\u2028é🂡#='))
def test_toml_there_and_back_is_the_same_configuration(config: RunConfig) -> None:
    table = tomllib.loads(config_to_toml(config))
    assert config_from_table(table) == config
    assert set(table) == {"game", "seed", "solver", "iterations", "solve", "evaluation", "runtime"}
    assert set(table["solve"]) == {item.name for item in dataclasses.fields(TabularConfig)}


def test_any_configuration_is_read_as_the_kind_that_it_is(tmp_path: Path) -> None:
    config: Any = tabular("mccfr", abstraction="körbe", game="spiele/Größe.game")
    (tmp_path / "run.toml").write_text(config_to_toml(config), encoding="utf-8")
    assert load_config(tmp_path / "run.toml") == config
