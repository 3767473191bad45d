"""`deepcfr solve` and `deepcfr abstract`: their figures, what else works on their runs, and their settings."""

import dataclasses
import re
import shutil
from pathlib import Path

import pytest

import made_runs
from command_line import deepcfr, problem
from deepcfr.config import EvaluationConfig, RuntimeConfig, load_config
from deepcfr.defaults import default_config
from deepcfr.run.metrics import read_metrics
from small_runs import TINY, contents, metrics, saved_state, tables
from tables import tabular

KEYS = {
    "game", "unit", "iterations", "nodes_touched", "nash_conv", "exploitability", "best_response_values", "value",
    "seconds", "policy", "boards", "boards_used", "finished", "run",
}  # fmt: skip
UNITS = {"full-width": ("leduc", "mA/g"), "buckets": ("leduc", "mA/g"), "openspiel": ("kuhn_poker", "mpoints/g")}
SOLVED = (*UNITS,)
LEDUC_VALUE, KUHN_VALUE = -85.6064, -1000 / 18  # thousandths of an ante, to the first player
ONE_THREAD = ("--runtime.threads", 1)


# Figures


@pytest.mark.parametrize("name", SOLVED)
def test_solve_prints_one_json_object_whose_figures_enclose_the_value(name: str) -> None:
    path, outcome = made_runs.solved(name)
    result = outcome.json
    assert set(result) == KEYS
    assert (result["finished"], result["run"]) == (True, str(path))
    assert (result["game"], result["unit"]) == UNITS[name]
    lines = read_metrics(path / "metrics.jsonl")
    assert result["iterations"] == len(lines) == load_config(path / "config.toml").iterations
    assert result["nodes_touched"] == sum(line["nodes_touched"] for line in lines)
    assert result["seconds"] >= lines[-1]["seconds"] > 0
    for key in ("game", "unit", "nash_conv", "value", "best_response_values", "policy"):
        assert result[key] == lines[-1]["evaluation"][key]
    assert f"iteration {len(lines)}: exact NashConv" in outcome.err
    first, second = result["best_response_values"]
    assert result["nash_conv"] == pytest.approx(first + second, rel=1e-12)
    assert result["exploitability"] == result["nash_conv"] / 2
    assert -second <= result["value"] <= first  # a best response does no worse than the profile
    assert -second <= (KUHN_VALUE if name == "openspiel" else LEDUC_VALUE) <= first


@pytest.mark.parametrize("algorithm", ["cfr", "cfr+", "pcfr+", "linear-cfr", "dcfr", "mccfr"])
def test_every_algorithm_comes_close_to_the_value_of_kuhn_here_and_in_openspiel(tmp_path: Path, algorithm: str) -> None:
    arguments = ("--json", "--solver", algorithm, "--iterations", 200, "--precision", "float64", "--traversals", 100)
    ours, theirs = (
        deepcfr("solve", game, "--out", tmp_path / game, *arguments, *ONE_THREAD).json
        for game in ("kuhn", "openspiel:kuhn_poker")
    )
    for result in (ours, theirs):
        first, second = result["best_response_values"]
        assert -second <= KUHN_VALUE <= first
        assert result["nash_conv"] < 40  # of 917 for uniform play
    if algorithm != "mccfr":
        assert ours["nash_conv"] == pytest.approx(theirs["nash_conv"], rel=1e-6)
        assert ours["value"] == pytest.approx(theirs["value"], rel=1e-6)


def test_fictitious_play_solves_a_game_of_openspiel(tmp_path: Path) -> None:
    arguments = ("--solver", "xfp", "--iterations", 300, "--json", *ONE_THREAD)
    result = deepcfr("solve", "openspiel:kuhn_poker", "--out", tmp_path / "run", *arguments).json
    assert 0 < result["nash_conv"] < 100
    assert deepcfr("exploitability", tmp_path / "run", "--policy", "current", "--json").json["nash_conv"] > 100
    assert deepcfr("resume", tmp_path / "run", "--iterations", 320, "--json").json["iterations"] == 320


def test_the_options_of_monte_carlo_cfr_reach_the_solver(tmp_path: Path) -> None:
    common = ("solve", "kuhn", "--solver", "mccfr", "--iterations", 2, "--traversals", 100, *ONE_THREAD)
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


def test_a_definition_of_flop_holdem_is_solved_in_every_precision(tmp_path: Path) -> None:
    values = {}
    for precision in ("float64", "float32", "int16"):
        arguments = ("--solver", "dcfr", "--iterations", 60, "--precision", precision)
        result = deepcfr("solve", made_runs.places().game, "--out", tmp_path / precision, "--json", *arguments).json
        assert (result["game"], result["unit"], result["boards"]) == ("small-flop", "mbb/g", 28)
        assert result["nash_conv"] < 10
        values[precision] = result
    # Values of a zero-sum game lie between what best responses gain, whatever the precision.
    for result in values.values():
        for other in values.values():
            assert -other["best_response_values"][1] <= result["best_response_values"][0]
    assert values["float32"]["value"] == pytest.approx(values["float64"]["value"], abs=5)


def test_solve_without_json_says_its_cost_first_and_then_the_result(tmp_path: Path) -> None:
    arguments = ("--solver", "cfr+", "--iterations", 200, "--evaluation.every", 50)
    outcome = deepcfr("solve", "leduc", "--out", tmp_path / "run", *arguments)
    assert (outcome.status, outcome.err) == (0, "")
    text, result = outcome.out, made_runs.solved("full-width").outcome.json
    assert text.startswith("cfr+ on leduc: 200 iterations, float32")
    first = text.index("iteration 50: exact NashConv")
    assert 0 < text.index("take 0.00 GB") < first
    assert f"exact NashConv {result['nash_conv']:.3f} mA/g" in text
    assert f"{result['nodes_touched']:,} nodes touched" in text
    assert f"deepcfr play {tmp_path / 'run'}" in text


# What else works on its runs


@pytest.mark.parametrize("name", SOLVED)
def test_a_run_is_measured_and_exported_without_its_regrets(tmp_path: Path, name: str) -> None:
    path, outcome = made_runs.solved(name)
    before, small = contents(path), tmp_path / "small"
    expected = {k: v for k, v in outcome.json.items() if k not in ("seconds", "finished", "run")}
    for threads in (1, 2):
        measured = deepcfr("exploitability", path, "--json", "--threads", threads).json
        assert {k: v for k, v in measured.items() if k != "seconds"} == expected
    assert f"NashConv {expected['nash_conv']:.3f} {expected['unit']}" in deepcfr("exploitability", path).out
    current = deepcfr("exploitability", path, "--json", "--policy", "current").json
    assert (measured["policy"].split()[0], current["policy"].split()[0]) == ("average", "current")
    assert current["nash_conv"] > measured["nash_conv"] > 0  # iterates circle around what averages converge to

    assert deepcfr("export", path, "--out", small) == (0, f"Exported to {small}.\n", "")
    assert contents(path) == before
    assert tables(small) == {file: data for file, data in tables(path).items() if file.startswith("average")}
    again = deepcfr("exploitability", small, "--json").json
    assert again | {"seconds": 0} == measured | {"seconds": 0}
    for command in (("exploitability", small, "--policy", "current"), ("resume", small)):
        assert re.search("without its (memories|regrets)", problem(deepcfr(*command)))
    if name != "openspiel":
        assert "was exported without" in problem(deepcfr("strategy", small, "K", "--policy", "current"))
        asked = [deepcfr("strategy", p, "K / c", "--json").json for p in (small, path)]
        assert asked[0] == asked[1]
    assert deepcfr("export", small, "--out", tmp_path / "again").status == 0
    assert tables(tmp_path / "again") == tables(small)


def test_strategy_answers_for_runs_of_leduc_and_a_solved_game_is_played_well() -> None:
    for path in (made_runs.solved(name).path for name in ("full-width", "buckets")):
        for policy in ("average", "current"):
            answer = deepcfr("strategy", path, "K / rc / Q / r", "--json", "--policy", policy).json
            assert (answer["game"], answer["player"], answer["policy"]) == ("leduc", 1, policy)
            assert set(answer["probabilities"]) == {"fold", "call", "raise"}
            assert sum(answer["probabilities"].values()) == pytest.approx(1, abs=1e-6)
    path = made_runs.solved("full-width").path
    kings, jacks = (deepcfr("strategy", path, f"{card} / r", "--json").json["probabilities"] for card in "KJ")
    assert kings["fold"] < 0.001  # never behind before the board comes
    assert jacks["fold"] > 0.5


def test_a_run_of_an_openspiel_game_is_asked_by_infoset_and_not_recommended_for_play(tmp_path: Path) -> None:
    path = made_runs.solved("openspiel").path
    for extra in ((), ("--policy", "current")):
        shares = deepcfr("strategy", path, "0pb", "--json", *extra).json["probabilities"]
        assert sum(shares.values()) == pytest.approx(1)
    arguments = ("--solver", "cfr+", "--iterations", 2, "--precision", "int16")
    outcome = deepcfr("solve", "openspiel:kuhn_poker", "--out", tmp_path / "run", *arguments)
    assert outcome.status == 0
    assert "deepcfr play" not in outcome.out
    assert "2 iterations, float64" in outcome.out  # the precision that it has
    assert "int16" not in outcome.out


def test_networks_train_on_openspiel_games(tmp_path: Path) -> None:
    path = tmp_path / "run"
    result = deepcfr("train", "openspiel:kuhn_poker", "--out", path, "--json", "--iterations", 1, *TINY).json
    assert (result["game"], result["unit"], result["policy"]) == ("kuhn_poker", "mpoints/g", "average network")
    first, second = result["best_response_values"]
    assert -second <= KUHN_VALUE <= first
    assert deepcfr("exploitability", path, "--json").json["nash_conv"] == result["nash_conv"]
    assert deepcfr("resume", path, "--json").json["nash_conv"] == result["nash_conv"]


# Abstractions


def test_hands_in_one_bucket_of_the_command_abstract_are_played_alike(tmp_path: Path) -> None:
    made = deepcfr("abstract", "leduc", "--buckets", 1, 1, "--out", tmp_path / "buckets", "--json").json
    assert (made["game"], made["counts"]) == ("leduc", [1, 1])
    arguments = ("--solver", "mccfr", "--iterations", 2, "--traversals", 500, "--abstraction", tmp_path / "buckets")
    assert deepcfr("solve", "leduc", "--out", tmp_path / "run", *arguments).status == 0
    shutil.rmtree(tmp_path / "buckets")  # the run has its own copy, and so has its export
    assert deepcfr("export", tmp_path / "run", "--out", tmp_path / "small").status == 0
    for run in (tmp_path / "run", tmp_path / "small"):
        alike = []
        for betting in ("", " / r", " / cc / Q / r"):
            jack, king = (deepcfr("strategy", run, card + betting, "--json").json["probabilities"] for card in "JK")
            assert jack == king
            alike.append(max(jack.values()) == min(jack.values()))
        assert not all(alike)  # nor is everything played uniformly


# Settings: command line over file over defaults


def test_the_configuration_of_a_run_starts_the_same_run_and_options_override_it(tmp_path: Path) -> None:
    assert deepcfr("solve", "kuhn", "--iterations", 2, "--out", tmp_path / "plain").status == 0
    expected = dataclasses.replace(default_config("kuhn", "linear-cfr"), iterations=2)
    assert load_config(tmp_path / "plain" / "config.toml") == expected
    first = tmp_path / "first"
    options = (
        "--solver", "mccfr", "--iterations", 3, "--traversals", 70, "--sampler", "outcome", "--exploration-start", 0.25,
        "--seed", 9, "--evaluation.at", 1, 2, *ONE_THREAD,
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
        runtime=RuntimeConfig(threads=1, checkpoint_seconds=120),
    )
    for name, words in (("two", ("--config", first / "config.toml")), ("three", (f"--config={first}/config.toml",))):
        assert deepcfr("solve", "kuhn", "--out", tmp_path / name, *words).status == 0
        assert (tmp_path / name / "config.toml").read_bytes() == (first / "config.toml").read_bytes()
        assert saved_state(tmp_path / name) == saved_state(first)
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
