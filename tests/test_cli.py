"""The command: its figures, its sentences for mistakes, and that a mistake costs nothing."""

import json
import math
import os
import re
import shutil
import subprocess
import sys
from dataclasses import MISSING, Field, fields, is_dataclass
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple, get_args, get_type_hints

import pytest
import torch
from tyro.conf import Positional

from command_line import NOTE, Outcome, deepcfr, edit_settings, problem, problems
from deepcfr import cli
from deepcfr.cli import output
from deepcfr.config import RunConfig, load_config
from deepcfr.core.files import signed_json
from deepcfr.defaults import default_config
from deepcfr.game.poker import PokerGame
from deepcfr.game.presets import load_rules
from deepcfr.run import folder
from definitions import format_game_definition

COMMANDS = (
    "games", "runs", "train", "solve", "abstract", "resume", "exploitability", "strategy", "match", "play", "export",
    "report", "error-budget", "tournament", "lbr", "acpc", "dealer", "models", "serve", "spot",
    "api", "slumbot", "review",
)  # fmt: skip
TINY = (
    "--sampling.traversals", "20", "--network.kind", "mlp", "--network.width", "8", "--network.layers", "1",
    "--advantage.steps", "4", "--advantage.batch-size", "16", "--average.steps", "4", "--average.batch-size", "16",
    "--memory.advantage-capacity", "100", "--memory.strategy-capacity", "100",
)  # fmt: skip


def contents(path: Path) -> dict[str, bytes]:
    return {str(p.relative_to(path)): p.read_bytes() for p in sorted(path.rglob("*")) if p.is_file()}


def python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


class Trained(NamedTuple):
    path: Path
    outcome: Outcome


@pytest.fixture(scope="module")
def kuhn(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    """A finished run, and what the command said with --json."""
    path = tmp_path_factory.mktemp("kuhn") / "run"
    arguments = ("--iterations", 3, "--evaluation.every", 2, *TINY)
    return Trained(path, deepcfr("train", "kuhn", "--out", path, "--json", *arguments))


@pytest.fixture
def run(kuhn: Trained, tmp_path: Path) -> Path:
    """A copy of the finished run that may be damaged."""
    shutil.copytree(kuhn.path, tmp_path / "run")
    return tmp_path / "run"


# Help and the cost of starting


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(command: str) -> None:
    outcome = deepcfr(command, "--help")
    assert (outcome.status, outcome.err) == (0, "")
    assert f"usage: deepcfr {command}" in outcome.out
    assert "--help" in outcome.out


def test_the_help_names_every_command() -> None:
    outcome = deepcfr("--help")
    assert (outcome.status, outcome.err) == (0, "")
    (listed,) = re.findall(r"\{([a-z,-]+)\}", outcome.out.split("\n\n")[0].replace("\n", ""))
    assert set(listed.split(",")) == set(COMMANDS)


def options(text: str) -> set[str]:
    """The options that a help lists, without --help itself."""
    return set(re.findall(r"^  (--[a-z][a-z.-]*)", text, re.MULTILINE))


def is_required(item: Field[Any]) -> bool:
    return item.default is MISSING and item.default_factory is MISSING


@pytest.mark.parametrize("command", COMMANDS)
def test_help_shows_the_ten_options_that_matter_and_help_all_shows_every_one(command: str) -> None:
    short, whole = deepcfr(command, "--help"), deepcfr(command, "--help-all")
    assert (whole.status, whole.err) == (0, "")
    assert options(short.out) <= options(whole.out)
    assert len(options(short.out)) <= 10
    assert (f"deepcfr {command} --help-all" in short.out) == (options(short.out) != options(whole.out))
    kind, _ = cli.COMMANDS[command]
    hints = get_type_hints(kind, include_extras=True)
    needed = [
        item.name.upper() if Positional in get_args(hints[item.name]) else f"--{item.name}"
        for item in fields(kind)
        if is_required(item)
    ]
    for text in (short.out, whole.out):
        assert re.findall(r"\bNone\b|\bINT\b|\bFLOAT\b|\bSTR\b|\bPATH\b|\(default: \)", text) == []
        assert [item for item in needed if not re.search(rf"^  \[?{item}\]?\s", text, re.MULTILINE)] == []


def test_help_counts_the_iterations_of_the_solver_that_is_named() -> None:
    for solver, count in (("deep-cfr", 200), ("dream", 200), ("nfsp", 4_500), ("mmd", 600)):
        text = deepcfr("train", "leduc", "--solver", solver, "--help").out
        assert {name for name in options(text) if name.endswith("iterations")} == {"--iterations"}
        assert f"(default: {count})" in text


def test_the_version_is_the_packages() -> None:
    assert deepcfr("--version") == (0, f"deepcfr {metadata.version('deepcfr')}\n", "")


@pytest.mark.parametrize(
    ("option", "word", "kind"), [("--seed", "1.5", "whole number"), ("--seconds", "ten", "number")]
)
def test_a_word_that_is_no_number_is_quoted(option: str, word: str, kind: str) -> None:
    outcome = deepcfr("acpc", "kuhn", "--port", "1", option, word)
    assert (outcome.status, outcome.out) == (2, "")
    assert f"Error parsing {option}: '{word}' is not a {kind}." in outcome.err


def test_the_whole_help_of_train_names_every_setting() -> None:
    text = deepcfr("train", "--help-all").out
    names = ["seed", "iterations"]
    for section in fields(RunConfig):
        record = getattr(RunConfig(), section.name)
        if is_dataclass(record) and section.name != "solve":
            names += [f"{section.name}.{item.name}" for item in fields(record)]
    assert len(names) > 30
    assert [name for name in names if not re.search(rf"--{re.escape(name.replace('_', '-'))}[ ,]", text)] == []


@pytest.mark.parametrize(
    ("words", "default"),
    [
        (["openspiel:kuhn_poker"], 1_500),  # sampling.traversals
        (["leduc", "--solver", "dream"], 6_000),
        (["leduc", "--solver=ppo"], 600),
        (["kuhn", "--config", "fhp-paper"], 450),
    ],
)
def test_the_help_of_train_has_the_defaults_of_what_it_names(words: list[str], default: int) -> None:
    text = deepcfr("train", *words, "--help-all").out
    assert f"(default: {default})" in text
    assert f"(default: {default})" not in deepcfr("train", "fhp", "--help-all").out


def test_gains_of_best_responses_add_up_to_nash_conv() -> None:
    shown = deepcfr("exploitability", "kuhn").out
    first, second = map(float, re.findall(r"gain (-?[\d.]+) as player 0 and (-?[\d.]+) as player 1", shown)[0])
    assert first + second == pytest.approx(float(re.findall(r"NashConv ([\d.]+)", shown)[0]), abs=0.01)
    assert min(first, second) >= 0


def test_a_start_that_fails_leaves_no_folder(tmp_path: Path) -> None:
    settings = ("openspiel:kuhn_poker", "--iterations", 1, "--average.steps", 20, "--out", tmp_path / "run")
    assert "need a poker game" in problem(deepcfr("train", *settings, "--sampling.kind", "public-chance"))
    assert not (tmp_path / "run").exists()
    assert deepcfr("train", *settings).status == 0


def test_no_command_or_an_unknown_one_or_an_unknown_option_is_status_2() -> None:
    for arguments in (
        (),
        ("trane", "kuhn"),
        ("games", "--jsn"),
        ("train", "kuhn", "--out", "x", "--cfr.iteration", "3"),
    ):
        outcome = deepcfr(*arguments)
        assert (outcome.status, outcome.out) == (2, "")
        assert outcome.err


def test_importing_the_package_and_asking_for_help_load_no_heavy_library() -> None:
    code = f"""
import contextlib, io, sys
import deepcfr
heavy = ("torch", "numba", "ray", "pyspiel")
print([name for name in heavy if name in sys.modules])
from deepcfr import cli
for command in ("", *{COMMANDS!r}):
    sys.argv = ["deepcfr", *command.split(), "--help"]
    with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
        cli.main()
    print([name for name in heavy if name in sys.modules])
"""
    result = python(code)
    assert result.stderr == ""
    assert result.stdout == "[]\n" * (2 + len(COMMANDS))


def test_long_work_says_how_far_it_is_where_there_is_no_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = SimpleNamespace(now=0.0)
    monkeypatch.setattr(output, "time", SimpleNamespace(monotonic=lambda: clock.now))
    with output.progress_of("match", output.open_console(as_json=False)) as update:
        for done, clock.now in ((1, 29.0), (2, 30.0), (3, 59.0), (1400, 61.0)):
            update(done, 2000)
        clock.now = 95.0
        update(5, None, "hands")
    assert capsys.readouterr() == ("\n", "match: 2 of 2,000\nmatch: 1,400 of 2,000\nhands: 5\n")


@pytest.mark.parametrize(
    ("arguments", "heavy", "said"),
    [
        (["--version"], [], []),
        (["models", "--json"], [], []),
        (["runs", str(Path(__file__).parents[1] / "models"), "--json"], [], []),
        (["games", "--json"], ["numba"], ["none"]),
        (["strategy", "kuhn", "K", "--json"], ["numba", "torch"], ["none"]),
        (["train", "openspiel:no_such_game", "--out", "never"], ["numba", "torch"], ["none"]),
        (["strategy", "kuhn"], [], []),  # refused: nothing is loaded
    ],
)
def test_commands_load_no_library_that_they_do_not_need_and_say_so_before_they_do(
    arguments: list[str], heavy: list[str], said: list[str], tmp_path: Path
) -> None:
    """The first line says that it takes some seconds, and no heavy library is loaded when it is written."""
    code = f"""
import contextlib, os, sys
from deepcfr import cli
def loaded():
    return [name for name in ("numba", "torch") if name in sys.modules]
def note(message):
    if message in {NOTE!r}:
        print("note", *loaded() or ["none"], file=sys.stderr)
cli.warn = note
sys.argv = ["deepcfr", *{arguments!r}]
with contextlib.suppress(SystemExit), open(os.devnull, "w") as nothing, contextlib.redirect_stdout(nothing):
    cli.main()
print("end", *loaded(), file=sys.stderr)
"""
    err = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path).stderr
    assert re.findall("^note (.*)$", err, re.MULTILINE) == said
    assert re.findall("^end ?(.*)$", err, re.MULTILINE) == [" ".join(heavy)]


def test_playing_loads_no_compiler_of_networks_and_no_other_library_that_play_does_not_need() -> None:
    """They take seconds, and play is to start within three."""
    result = python(
        "import sys\n"
        "import deepcfr.play.terminal, deepcfr.run.players\n"
        "slow = ('torch._dynamo', 'torch._inductor', 'ray', 'pyspiel', 'sklearn', 'fastapi', 'pokerkit')\n"
        "print([name for name in slow if name in sys.modules])"
    )
    assert (result.stdout, result.stderr) == ("[]\n", "")


def test_the_installed_command_is_this_one() -> None:
    result = subprocess.run([Path(sys.executable).parent / "deepcfr", "--help"], capture_output=True, text=True)
    assert result.returncode == 0
    assert result.stdout.startswith("usage: deepcfr")


# Train, exploitability, resume

KEYS = {
    "game", "unit", "iterations", "nodes_touched", "nash_conv", "exploitability", "best_response_values", "value",
    "seconds", "policy",
}  # fmt: skip


def test_train_prints_one_json_object_and_progress_to_standard_error(kuhn: Trained) -> None:
    result = kuhn.outcome.json
    assert set(result) >= KEYS
    assert (result["game"], result["unit"], result["iterations"]) == ("kuhn", "mA/g", 3)
    assert result["policy"] == "average network"
    lines = [json.loads(line) for line in (kuhn.path / "metrics.jsonl").read_text().splitlines()]
    assert result["nodes_touched"] == sum(line["nodes_touched"] for line in lines)
    assert result["seconds"] >= lines[-1]["seconds"] > 0
    for name in ("nash_conv", "value", "best_response_values"):
        assert result[name] == lines[-1]["evaluation"][name]
    assert "Deep CFR on kuhn: 3 iterations" in kuhn.outcome.err
    assert "iteration 2: exact NashConv" in kuhn.outcome.err


def test_the_figures_of_an_evaluation_fit_together(kuhn: Trained) -> None:
    result = kuhn.outcome.json
    first, second = result["best_response_values"]
    assert result["nash_conv"] == pytest.approx(first + second, rel=1e-12)
    assert result["exploitability"] == result["nash_conv"] / 2
    assert -second <= result["value"] <= first  # a best response does no worse than the profile
    assert -second <= -1000 / 18 <= first  # and Kuhn is worth -1/18


def test_train_without_json_prints_the_result_and_nothing_to_standard_error(tmp_path: Path, kuhn: Trained) -> None:
    arguments = ("--iterations", 3, "--evaluation.every", 2, *TINY)
    outcome = deepcfr("train", "kuhn", "--out", tmp_path / "run", *arguments)
    assert (outcome.status, outcome.err) == (0, "")
    result = kuhn.outcome.json
    assert f"exact NashConv {result['nash_conv']:.3f} mA/g" in outcome.out
    assert f"{result['exploitability']:.3f} mA/g" in outcome.out
    assert f"{result['nodes_touched']:,} nodes touched" in outcome.out
    assert f"deepcfr play {tmp_path / 'run'}" in outcome.out


def test_the_seed_decides_the_figures(tmp_path: Path, kuhn: Trained) -> None:
    arguments = ("--json", "--iterations", 3, "--evaluation.every", 2, *TINY)
    same = deepcfr("train", "kuhn", "--out", tmp_path / "same", *arguments, "--seed", 0).json
    other = deepcfr("train", "kuhn", "--out", tmp_path / "other", *arguments, "--seed", 1).json
    assert same["nash_conv"] == kuhn.outcome.json["nash_conv"] != other["nash_conv"]


def test_exploitability_agrees_with_the_end_of_training(kuhn: Trained) -> None:
    trained, measured = kuhn.outcome.json, deepcfr("exploitability", kuhn.path, "--json").json
    assert set(measured) >= KEYS
    assert set(trained) - set(measured) == {"finished", "run"}
    assert set(measured) <= set(trained)
    assert {k: v for k, v in measured.items() if k != "seconds"} == {
        k: v for k, v in trained.items() if k not in ("seconds", "finished", "run")
    }
    for threads in (1, 3):
        again = deepcfr("exploitability", kuhn.path, "--json", "--threads", threads).json
        assert again | {"seconds": 0} == measured | {"seconds": 0}
    text = deepcfr("exploitability", kuhn.path)
    assert f"exact NashConv {measured['nash_conv']:.3f} mA/g" in text.out


def test_the_current_policy_is_measured_on_its_own(kuhn: Trained) -> None:
    average, current = (
        deepcfr("exploitability", kuhn.path, "--json", "--policy", p).json for p in ("average", "current")
    )
    assert average["policy"] != current["policy"]
    assert average["nash_conv"] != current["nash_conv"] > 0


def test_measuring_asking_and_resuming_a_finished_run_change_no_file(run: Path, kuhn: Trained) -> None:
    before = contents(run)
    deepcfr("exploitability", run)
    deepcfr("strategy", run, "K")
    resumed = deepcfr("resume", run, "--json").json
    assert contents(run) == before
    first = kuhn.outcome.json
    assert {k: resumed[k] for k in KEYS - {"seconds"}} == {k: first[k] for k in KEYS - {"seconds"}}
    assert resumed["finished"]
    outcome = deepcfr("resume", run)
    assert outcome.status == 0
    assert "resuming after iteration 3" in outcome.out


def test_a_longer_run_goes_on_from_a_shorter_ones_checkpoint(run: Path) -> None:
    edit_settings(run, "iterations = 3", "iterations = 4")
    assert deepcfr("resume", run, "--json").json["iterations"] == 4


# Settings: command line over file over defaults


def settings_of(path: Path) -> RunConfig:
    return load_config(path / "config.toml")


def test_the_command_line_overrides_the_file_and_the_file_the_defaults(tmp_path: Path) -> None:
    file = tmp_path / "settings.toml"
    file.write_text(
        'game = "leduc"\nseed = 5\niterations = 7\n[sampling]\ntraversals = 11\n'
        '[network]\nkind = "mlp"\nwidth = 6\n[advantage]\nsteps = 2\nbatch_size = 9\n[average]\nsteps = 3\n'
        "[memory]\nadvantage_capacity = 50\nstrategy_capacity = 60\n[evaluation]\nat = [1]\n"
    )
    options = ("--iterations", 1, "--network.width=5", "--advantage.batch_size", 8, "--average.batch-size", 8)
    for name, given in (("one", ("--config", file)), ("two", (f"--config={file}",))):
        ran = deepcfr("train", "kuhn", "--out", tmp_path / name, *given, *options)
        assert ran.status == 0
        assert f"{file} has settings for leduc; they are used for kuhn." in ran.err
        config = settings_of(tmp_path / name)
        assert (config.game, config.seed) == ("kuhn", 5)
        assert (config.iterations, config.sampling.traversals) == (1, 11)
        assert (config.network.kind, config.network.width) == ("mlp", 5)
        assert (config.advantage.steps, config.advantage.batch_size) == (2, 8)
        assert (config.average.steps, config.average.batch_size) == (3, 8)
        assert config.evaluation.at == (1,)
        # What neither says is the default, and not what is tuned for the game.
        assert config.advantage.learning_rate == RunConfig().advantage.learning_rate
        assert config.advantage.learning_rate != default_config("kuhn").advantage.learning_rate


def test_without_a_file_settings_start_from_the_games_defaults(kuhn: Trained) -> None:
    config, default = settings_of(kuhn.path), default_config("kuhn")
    assert config.average.learning_rate == default.average.learning_rate
    assert (config.advantage.schedule, config.runtime) == (default.advantage.schedule, default.runtime)
    assert (config.iterations, config.sampling.traversals) == (3, 20)


def test_the_games_defaults_do_not_depend_on_the_order_of_the_arguments() -> None:
    first = cli.parse_command(["train", "kuhn", "--out", "x"])
    assert cli.parse_command(["train", "--out", "x", "kuhn"]) == first


def test_lists_are_given_on_the_command_line(tmp_path: Path) -> None:
    arguments = ("--iterations", 3, *TINY, "--evaluation.at", 1, 2)
    assert deepcfr("train", "kuhn", "--out", tmp_path / "run", *arguments).status == 0
    assert settings_of(tmp_path / "run").evaluation.at == (1, 2)


def test_a_game_definition_is_trained_like_a_preset(tmp_path: Path) -> None:
    (tmp_path / "mine.game").write_text(format_game_definition(load_rules("kuhn")))
    arguments = ("--json", "--iterations", 3, *TINY)
    outcome = deepcfr("train", tmp_path / "mine.game", "--out", tmp_path / "run", *arguments)
    assert outcome.json["game"] == "mine"
    # The run does not need the file any more. Its ranks are 2 3 4, as the format has no symbols.
    (tmp_path / "mine.game").unlink()
    answer = deepcfr("strategy", tmp_path / "run", "4 / r", "--json").json
    assert set(answer["probabilities"]) == {"fold", "call"}


# Strategy


def test_strategy_answers_in_json_and_in_text(kuhn: Trained) -> None:
    answer = deepcfr("strategy", kuhn.path, "K / c", "--json").json
    assert (answer["game"], answer["player"], answer["situation"]) == ("kuhn", 1, "K / c")
    assert set(answer["probabilities"]) == {"check", "bet"}
    assert sum(answer["probabilities"].values()) == pytest.approx(1, abs=1e-6)
    outcome = deepcfr("strategy", kuhn.path, "K / c")
    assert (outcome.status, outcome.err) == (0, "")
    assert "player 1 to act" in outcome.out
    for name, share in answer["probabilities"].items():
        assert re.search(rf"^  {name} +{100 * share:.2f}%$", outcome.out, re.MULTILINE)


def test_the_average_and_the_current_strategy_differ(kuhn: Trained) -> None:
    answers = [deepcfr("strategy", kuhn.path, "Q / r", "--json", "--policy", p).json for p in ("average", "current")]
    assert answers[0]["policy"] != answers[1]["policy"]
    assert answers[0]["probabilities"] != answers[1]["probabilities"]


@pytest.mark.parametrize(
    "situation, named",
    [
        ("A", "'A'"),
        ("K / x", "'x'"),
        ("K / f", "'f'"),
        ("K / rc", "'rc'"),
        ("K / ccc", "'ccc'"),
        ("K J", "2 cards"),
        ("K / c / Q", "3"),
        ("", "''"),
        ("/", "'/'"),
        ("K / [b]", "'['"),
        ("♠", "'♠'"),
        ("Ks", "'s'"),
    ],
)
def test_an_impossible_situation_is_one_sentence_that_names_it(kuhn: Trained, situation: str, named: str) -> None:
    for extra in ((), ("--json",)):
        assert named in problem(deepcfr("strategy", kuhn.path, situation, *extra))


# Mistakes

UNREADABLE = (
    "GAMEDEF\nlimit\nnumPlayers = 3\nnumRounds = 1\nblind = 1 x\nraiseSize = 1 2\nmaxRaises = 1\nnumSuits = 9\n"
)


def test_an_unknown_game_is_one_sentence_with_the_known_ones(tmp_path: Path) -> None:
    for name in ("kuhm", "", str(tmp_path)):
        sentence = problem(deepcfr("train", name, "--out", tmp_path / "run"))
        assert (
            f"'{name}' is neither a preset (kuhn, leduc, fhp, fhp-mini, hulh, fhp-pot, hunl-pot, hunl-ladder, hunl-200) "
            "nor a readable game definition" in sentence
        )
    assert list(tmp_path.iterdir()) == []


def test_a_malformed_game_definition_is_a_line_for_every_problem(tmp_path: Path) -> None:
    (tmp_path / "bad.game").write_text(UNREADABLE)
    for command in (
        ("train", tmp_path / "bad.game", "--out", tmp_path / "run"),
        ("games", "--definition", tmp_path / "bad.game"),
    ):
        lines = problems(deepcfr(*command))
        assert len(lines) >= 5
        assert any(line.startswith("line 3: numPlayers is 3") for line in lines)
        assert any(line.startswith("line 5: blind holds 'x'") for line in lines)
        assert any(line.startswith("line 6: raiseSize has 2 values") for line in lines)
        assert any("END GAMEDEF is missing" in line for line in lines)
    assert [p.name for p in tmp_path.iterdir()] == ["bad.game"]


@pytest.mark.parametrize(
    "text, expected",
    [
        ("[cfr\n", ["cannot be read"]),
        ("[cfr]\niterations = 0\ntraversal = 3\n[network]\nkind = 'cnn'\n", ["cfr.traversal'", "network.kind'"]),
        ("seed = -1\n[average]\nsteps = 0\n", ["'seed' must be between", "'average.steps' must be between"]),
    ],
)
def test_a_malformed_configuration_is_a_line_for_every_problem(tmp_path: Path, text: str, expected: list[str]) -> None:
    file = tmp_path / "settings.toml"
    file.write_text(text)
    lines = problems(deepcfr("train", "kuhn", "--config", file, "--out", tmp_path / "run"))
    assert all(str(file) in line for line in lines)
    for piece in expected:
        assert sum(piece in line for line in lines) == 1
    assert [p.name for p in tmp_path.iterdir()] == ["settings.toml"]


def test_a_configuration_that_is_not_there_is_named(tmp_path: Path) -> None:
    sentence = problem(deepcfr("train", "kuhn", "--config", tmp_path / "no.toml", "--out", tmp_path / "run"))
    assert str(tmp_path / "no.toml") in sentence


def test_impossible_values_are_all_named_at_once(tmp_path: Path) -> None:
    options = {
        "--seed": -1, "--iterations": 0, "--network.width": 100_000, "--advantage.learning-rate": "nan",
        "--average.batch-size": 0, "--runtime.threads": 0, "--evaluation.at": -3, "--runtime.device": "tpu",
    }  # fmt: skip
    given = [word for pair in options.items() for word in pair]
    lines = problems(deepcfr("train", "kuhn", "--out", tmp_path / "run", *given))
    assert len(lines) == len(options)
    for option in options:
        name = option.removeprefix("--").replace("-", "_")
        assert sum(f"'{name}' must" in line for line in lines) == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "option, value",
    [
        ("--iterations", "many"),
        ("--network.kind", "cnn"),
        ("--advantage.scale-targets", "perhaps"),
        ("--policy", "x"),
    ],
)
def test_values_of_the_wrong_kind_are_status_2(tmp_path: Path, option: str, value: str) -> None:
    outcome = deepcfr("train", "kuhn", "--out", tmp_path / "run", option, value)
    assert (outcome.status, outcome.out) == (2, "")
    assert "Traceback" not in outcome.err
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_holds_a_run_is_left_alone(run: Path) -> None:
    before = contents(run)
    sentence = problem(deepcfr("train", "kuhn", "--out", run, *TINY))
    assert f"'{run}' already holds a run" in sentence
    assert f"deepcfr resume {run}" in sentence
    assert contents(run) == before


def commands_on(run: Path, target: Path) -> list[tuple[object, ...]]:
    """Every command that reads a run."""
    return [
        ("resume", run),
        ("resume", run, "--json"),
        ("exploitability", run),
        ("exploitability", run, "--json"),
        ("strategy", run, "K"),
        ("play", run),
        ("export", run, "--out", target),
    ]


def test_a_run_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "empty").mkdir()
    for path in (tmp_path / "none", tmp_path / "file", tmp_path / "empty"):
        for command in commands_on(path, tmp_path / "target"):
            assert f"'{path}' does not hold a run" in problem(deepcfr(*command))
    assert {p.name for p in tmp_path.iterdir()} == {"file", "empty"}


def test_a_checkpoint_of_another_game_is_refused_and_nothing_is_lost(run: Path, tmp_path: Path) -> None:
    game = json.loads((run / "game.json").read_text())
    (run / "game.json").write_text(signed_json(game | {"raise_size": [2]}).decode())
    before = contents(run)
    for command in commands_on(run, tmp_path / "target"):
        assert "belongs to another game" in problem(deepcfr(*command))
    assert contents(run) == before
    assert not (tmp_path / "target").exists()


@pytest.mark.parametrize(
    "name, text, expected",
    [
        ("game.json", "{", "game.json' cannot be read"),
        ("game.json", "[]", "does not hold a JSON object"),
        ("game.json", "{}", "game.json' is damaged"),
        ("game.json", '{"name": "kuhn", "nmae": 1}', "game.json' is damaged"),
        ("config.toml", "seed = ", "config.toml' cannot be read"),
        ("config.toml", "sed = 1", "'sed' is not a setting"),
    ],
)
def test_a_damaged_run_folder_is_named_and_nothing_is_lost(
    run: Path, tmp_path: Path, name: str, text: str, expected: str
) -> None:
    (run / name).write_text(text)
    before = contents(run)
    for command in commands_on(run, tmp_path / "target"):
        assert expected in problem(deepcfr(*command))
    assert contents(run) == before


def test_a_damaged_checkpoint_is_a_warning_as_long_as_an_earlier_one_is_good(tmp_path: Path) -> None:
    run = tmp_path / "run"
    arguments = ("--iterations", 2, "--evaluation.every", 1, "--runtime.checkpoint-seconds", 0, *TINY)
    whole = deepcfr("train", "kuhn", "--out", run, "--json", *arguments).json
    damaged = run / "checkpoints" / "0000002" / "networks.safetensors"
    os.truncate(damaged, 100)
    outcome = deepcfr("exploitability", run, "--json")
    assert outcome.json["iterations"] == 1
    assert f"deepcfr: The checkpoint file '{damaged}' is damaged" in outcome.err
    outcome = deepcfr("resume", run, "--json")
    assert outcome.json["nash_conv"] == whole["nash_conv"]
    assert str(damaged) in outcome.err
    for iteration in ("0000001", "0000002"):
        os.truncate(run / "checkpoints" / iteration / "networks.safetensors", 100)
    outcome = deepcfr("exploitability", run, "--json")
    assert (outcome.status, outcome.out) == (2, "")
    assert f"No checkpoint of '{run}' is undamaged." in outcome.err


def test_a_folder_that_cannot_be_made_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    for out in (tmp_path / "file", tmp_path / "file" / "run"):
        assert "cannot be written" in problem(deepcfr("train", "kuhn", "--out", out, *TINY))
    assert (tmp_path / "file").read_text() == "mine"


HUGE = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") > 3e11


@pytest.mark.skipif(HUGE, reason="this machine has room for them")
def test_memories_that_cannot_fit_are_refused_with_the_figures(tmp_path: Path) -> None:
    options = ("--memory.advantage-capacity", 10**10, "--memory.strategy-capacity", 10**10)
    sentence = problem(deepcfr("train", "kuhn", "--out", tmp_path / "run", *options))
    assert re.search(r"need up to 570\.0 GB, and there are \d+\.\d GB", sentence)


@pytest.mark.skipif(HUGE, reason="this machine has room for them")
def test_a_run_refused_for_its_cost_does_not_take_the_folder(tmp_path: Path) -> None:
    out = tmp_path / "run"
    assert deepcfr("train", "kuhn", "--out", out, "--memory.advantage-capacity", 10**10).status == 2
    assert deepcfr("train", "kuhn", "--out", out, "--iterations", 1, *TINY).status == 0


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
@pytest.mark.parametrize("cluster", [(), ("--ray", "10.0.0.1:6379")])
def test_a_device_that_is_not_there_is_one_sentence(tmp_path: Path, cluster: tuple[str, ...]) -> None:
    asked = ("train", "kuhn", "--out", tmp_path / "run", *TINY, "--runtime.device", "cuda")
    sentence = problem(deepcfr(*asked, *cluster))
    assert "no CUDA device" in sentence


def test_training_that_cannot_go_on_is_status_2_with_the_reason(tmp_path: Path) -> None:
    run = tmp_path / "run"
    options = ("--network.layers", 64, "--advantage.learning-rate", 10)
    outcome = deepcfr("train", "kuhn", "--out", run, "--json", *TINY, *options)
    assert (outcome.status, outcome.out) == (2, "")
    assert re.search(r"^deepcfr: The loss is not a number after 4 of 4 steps at learning rate 10", outcome.err, re.M)
    assert "has no checkpoint yet" in problem(deepcfr("exploitability", run))
    assert "has no checkpoint yet" in problem(deepcfr("export", run, "--out", tmp_path / "copy"))


def test_impossible_options_of_other_commands_are_one_sentence(kuhn: Trained) -> None:
    assert "--threads must be at least 1, but is 0" in problem(deepcfr("exploitability", kuhn.path, "--threads", 0))
    assert "The number of hands is 0" in problem(deepcfr("play", kuhn.path, "--hands", 0))
    assert deepcfr("exploitability", kuhn.path, "--policy", "best").status == 2


@pytest.mark.parametrize("name", ["[bold]", "x[/y]"])
def test_brackets_in_the_name_of_a_folder_are_just_brackets(tmp_path: Path, name: str) -> None:
    outcome = deepcfr("train", "kuhn", "--out", tmp_path / name, "--iterations", 1, *TINY)
    assert outcome.status == 0
    assert f"deepcfr play {tmp_path / name}" in outcome.out


# A game whose exact evaluation is out of reach


@pytest.fixture(scope="module")
def hulh(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    path = tmp_path_factory.mktemp("hulh") / "run"
    # the table of hand strengths of this game takes a minute and more than a gigabyte
    arguments = (
        "--sampling.kind", "external", "--advantage.target", "mean",
        "--iterations", 1, *TINY, "--sampling.traversals", 2, "--network.no-strength",
    )  # fmt: skip
    return Trained(path, deepcfr("train", "hulh", "--out", path, "--json", *arguments))


def test_a_game_out_of_reach_is_trained_without_an_evaluation(hulh: Trained) -> None:
    result = hulh.outcome.json
    assert (result["game"], result["unit"], result["iterations"], result["finished"]) == ("hulh", "mbb/g", 1, True)
    assert "nash_conv" not in result
    assert "51,979,200 boards" in hulh.outcome.err  # said before the training, not after
    assert hulh.outcome.err.index("51,979,200 boards") < hulh.outcome.err.index("iteration 1")


def test_the_exploitability_of_a_game_out_of_reach_is_refused_with_the_figure(hulh: Trained) -> None:
    boards = math.comb(52, 3) * 49 * 48
    for extra in ((), ("--json",)):
        sentence = problem(deepcfr("exploitability", hulh.path, *extra))
        assert f"hulh has {boards:,} boards" in sentence
        assert "at most 1,000,000" in sentence


def test_a_game_out_of_reach_is_queried_all_the_same(hulh: Trained) -> None:
    answer = deepcfr("strategy", hulh.path, "As Kd / r / Qs 7h 2c", "--json").json
    assert (answer["round"], set(answer["probabilities"])) == ("flop", {"check", "bet"})
    for situation, named in (("As Kx", "'Kx'"), ("As As", "As"), ("As Kd / r / Qs 7h", "3 cards")):
        assert named in problem(deepcfr("strategy", hulh.path, situation))


# Games


def test_games_lists_the_presets_with_known_sizes() -> None:
    facts = {fact["game"]: fact for fact in deepcfr("games", "--json").json["games"]}
    assert list(facts) == ["kuhn", "leduc", "fhp", "fhp-mini", "hulh", "fhp-pot", "hunl-pot", "hunl-ladder", "hunl-200"]
    assert facts["hunl-ladder"]["betting_decisions"] is None
    assert [fact["betting_decisions"] for fact in facts.values()][:2] == [4, 6 + 5 * 6]
    assert [fact["boards"] for fact in facts.values()] == [
        1, 6, math.comb(52, 3), math.comb(20, 3), math.comb(52, 3) * 49 * 48, math.comb(52, 3), math.comb(52, 3) * 49 * 48,
        math.comb(52, 3) * 49 * 48, math.comb(52, 3) * 49 * 48,
    ]  # fmt: skip
    assert [fact["exact_evaluation"] for fact in facts.values()] == [True, True, True, True, False, True, *[False] * 3]
    assert [fact["unit"] for fact in facts.values()] == ["mA/g"] * 2 + ["mbb/g"] * 7
    outcome = deepcfr("games")
    assert (outcome.status, outcome.err) == (0, "")
    for name, fact in facts.items():
        (row,) = [line for line in outcome.out.splitlines() if re.search(rf"(?<![\w-]){name}(?![\w-])", line)]
        assert f"{fact['boards']:,}" in row
        assert ("yes" in row) == fact["exact_evaluation"]


def test_games_lists_definitions_too(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / f"{name}.game").write_text(format_game_definition(load_rules("leduc")))
    files = (tmp_path / "one.game", tmp_path / "two.game")
    facts = deepcfr("games", "--json", "--definition", *files).json["games"]
    assert [fact["game"] for fact in facts] == [
        "kuhn",
        "leduc",
        "fhp",
        "fhp-mini",
        "hulh",
        "fhp-pot",
        "hunl-pot",
        "hunl-ladder",
        "hunl-200",
        "one",
        "two",
    ]
    assert facts[9]["betting_decisions"] == facts[1]["betting_decisions"]


# Play and export


def test_play_ends_cleanly_after_its_hands_at_q_and_at_the_end_of_input(kuhn: Trained) -> None:
    hands = deepcfr("play", kuhn.path, "--hands", 2, "--seed", 3, answers="c\n" * 20)
    assert (hands.status, hands.err) == (0, "")
    assert hands.out.count("Your cards:") == 2
    assert re.search(r"Session: 2 hands, [+-]", hands.out)
    for answers in ("q\n", "", "what\nq\n"):
        outcome = deepcfr("play", kuhn.path, answers=answers)
        assert (outcome.status, outcome.err) == (0, "")
        assert "Session: no hand was finished." in outcome.out
    assert "'what' is not possible here" in outcome.out


def test_play_is_decided_by_its_seed(kuhn: Trained) -> None:
    one, same, other = (deepcfr("play", kuhn.path, "--hands", 5, "--seed", s, answers="c\n" * 30) for s in (1, 1, 2))
    assert one == same != other
    new = deepcfr("play", kuhn.path, "--hands", 5, answers="c\n" * 30).out
    (seed,) = re.findall(r"--seed (\d+) deals these hands again", new)
    assert new == deepcfr("play", kuhn.path, "--hands", 5, "--seed", seed, answers="c\n" * 30).out
    assert len({deepcfr("play", kuhn.path, answers="q\n").out for _ in range(3)}) > 1


def test_an_export_is_small_measures_the_same_and_cannot_be_resumed(run: Path, tmp_path: Path, kuhn: Trained) -> None:
    before = contents(run)
    small = tmp_path / "small"
    outcome = deepcfr("export", run, "--out", small)
    assert (outcome.status, outcome.out, outcome.err) == (0, f"Exported to {small}.\n", "")
    assert contents(run) == before
    names = {Path(name).name for name in contents(small)}
    assert names == {
        "config.toml", "game.json", "environment.json", "metrics.jsonl", "latest", "networks.safetensors", "state.json",
    }  # fmt: skip
    measured, whole = (deepcfr("exploitability", path, "--json").json for path in (small, kuhn.path))
    assert measured["nash_conv"] == pytest.approx(whole["nash_conv"], rel=0.02)  # weights have 16 bits
    assert {name for name in whole if measured[name] != whole[name]} <= {
        "nash_conv", "exploitability", "best_response_values", "value", "seconds",
    }  # fmt: skip
    for policy in ("average", "current"):
        asked = [deepcfr("strategy", p, "J / r", "--json", "--policy", policy).json for p in (small, run)]
        assert asked[0].pop("probabilities") == pytest.approx(asked[1].pop("probabilities"), abs=5e-3)
        assert asked[0] == asked[1]
    exported = contents(small)
    assert "without its memories, so training cannot go on" in problem(deepcfr("resume", small))
    assert contents(small) == exported
    assert "is not empty" in problem(deepcfr("export", run, "--out", small))
    assert contents(small) == exported
    assert deepcfr("export", small, "--out", tmp_path / "again").status == 0
    twice = [deepcfr("strategy", p, "J / r", "--json", "--policy", "current").json for p in (small, tmp_path / "again")]
    assert twice[0] == twice[1]


def test_an_export_to_a_file_is_one_sentence(run: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    assert str(tmp_path / "file") in problem(deepcfr("export", run, "--out", tmp_path / "file"))


def test_a_run_without_an_average_network_says_what_to_do(run: Path) -> None:
    shutil.rmtree(run)
    arguments = ("--iterations", 3, "--runtime.checkpoint-seconds", 0, *TINY)
    assert deepcfr("train", "kuhn", "--out", run, *arguments).status == 0
    shutil.rmtree(run / "checkpoints" / "0000003")  # only the last one has the average network
    sentence = problem(deepcfr("exploitability", run))
    assert f"deepcfr resume {run}" in sentence
    assert "--policy current" in sentence
    assert deepcfr("exploitability", run, "--policy", "current", "--json").json["iterations"] == 2


# Ends that are nobody's mistake


def test_ctrl_c_is_status_130_without_a_traceback(kuhn: Trained, monkeypatch: pytest.MonkeyPatch) -> None:
    def press(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setitem(cli.COMMANDS, "exploitability", (cli.player_records.Exploit, press))
    outcome = deepcfr("exploitability", kuhn.path)
    assert (outcome.status, outcome.out, outcome.err) == (130, "", "deepcfr: interrupted.\n")


def test_a_closed_pipe_ends_the_command_quietly() -> None:
    command = [sys.executable, "-m", "deepcfr.cli", "--help"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()  # like `| head` when it has seen enough
        assert process.stderr.read() == ""
    assert process.returncode == 1


@pytest.mark.parametrize("extra", [[], ["--json"]], ids=["text", "json"])
def test_a_run_whose_reader_has_gone_goes_on_to_its_end(extra: list[str], tmp_path: Path) -> None:
    """As in `deepcfr solve … | head -1`: the run is finished and saved, and standard error says so."""
    words = ["solve", "kuhn", "--iterations", "5", "--evaluation.every", "1", "--out", str(tmp_path / "run"), *extra]
    command = [sys.executable, "-u", "-m", "deepcfr.cli", *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        err = process.stderr.read()
    assert process.returncode == 0
    note = "deepcfr: standard output is closed; the command goes on without it and saves what it makes.\n"
    assert err.count(note) == 1
    assert "Traceback" not in err
    assert deepcfr("exploitability", tmp_path / "run", "--json").json["iterations"] == 5


@pytest.mark.parametrize(
    "command", [("train", "kuhn", "--iterations", 1, *TINY), ("solve", "kuhn", "--solver", "mccfr")]
)
def test_a_run_builds_its_game_once_and_estimates_its_cost_once(
    command: tuple[object, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = {"games": 0, "costs": 0}
    build, estimate = PokerGame.__init__, folder.cost_notes

    def counted_build(self: PokerGame, *arguments: object) -> None:
        counts["games"] += 1
        build(self, *arguments)  # type: ignore[arg-type]

    def counted_estimate(*arguments: object, **options: object) -> list[str]:
        counts["costs"] += 1
        return estimate(*arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(PokerGame, "__init__", counted_build)
    monkeypatch.setattr(folder, "cost_notes", counted_estimate)
    assert deepcfr(*command, "--out", tmp_path / "run", "--json").status == 0
    assert counts == {"games": 1, "costs": 1}


def test_a_device_that_the_machine_does_not_have_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr("torch.cuda.device_count", lambda: 2)
    sentence = problem(deepcfr("train", "kuhn", "--out", tmp_path / "run", "--runtime.device", "cuda:7"))
    assert sentence == "'runtime.device' is cuda:7, but the devices of this machine are 0 to 1."


@pytest.mark.parametrize("options", [[], ["-u"]], ids=["buffered", "unbuffered"])
@pytest.mark.parametrize("command", [["models"], ["models", "--json"], ["--help"], ["--version"]], ids=" ".join)
def test_an_output_that_takes_nothing_is_a_sentence(command: list[str], options: list[str]) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, *options, "-m", "deepcfr.cli", *command], stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert (done.returncode, done.stderr) == (
        2,
        "deepcfr: Standard output cannot be written: No space left on device.\n",
    )


def test_a_path_that_is_not_utf8_is_a_sentence() -> None:
    for arguments in (
        ("train", "kuhn", "--out", "caf\udce9"),
        ("exploitability", "caf\udce9/run"),
        ("runs", "caf\udce9"),
    ):
        assert problem(deepcfr(*arguments)) == f"{arguments[-1]!r} is not text in UTF-8: rename the file or folder."


@pytest.mark.parametrize("option", ["--hands", "--boards"])
def test_more_than_memory_holds_is_a_sentence(option: str) -> None:
    said = problem(deepcfr("match", "kuhn", "kuhn", option, 10**15))
    assert said.startswith("This needs more memory than there is: Unable to allocate")
