"""The command: its help, figures and settings, and its ends that are nobody's mistake; `test_refusals` has the mistakes."""

import io
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
from typing import Any, get_args, get_type_hints

import pytest
from tyro.conf import Positional

import made_runs
from command_line import NOTE, deepcfr, edit_settings, problem
from deepcfr import cli
from deepcfr.cli import output
from deepcfr.config import RunConfig, TabularConfig, load_config
from deepcfr.config.records import TabularSolver
from deepcfr.defaults import LOCAL_CLUSTER, default_config
from deepcfr.game.poker import PokerGame
from deepcfr.game.presets import load_rules
from deepcfr.measure.exploitability import exploitability
from deepcfr.run import folder
from deepcfr.run.folder import RunFolder
from deepcfr.run.metrics import read_metrics
from definitions import format_game_definition
from made_runs import Made
from small_runs import TINY, contents

COMMANDS = (
    "games", "runs", "train", "solve", "abstract", "resume", "exploitability", "strategy", "match", "play", "export",
    "report", "error-budget", "tournament", "lbr", "acpc", "dealer", "models", "serve", "spot", "spots",
    "api", "slumbot", "review", "hands",
)  # fmt: skip
OUT = ["--out", "runs/r"]


@pytest.fixture(scope="module")
def kuhn() -> Made:
    return made_runs.trained()


@pytest.fixture
def run(kuhn: Made, tmp_path: Path) -> Path:
    """A copy of the finished run, of the same name, that may be changed."""
    shutil.copytree(kuhn.path, tmp_path / kuhn.path.name)
    return tmp_path / kuhn.path.name


# Help and the cost of starting


def options(text: str) -> set[str]:
    """The options that a help lists, without --help itself."""
    return set(re.findall(r"^  (--[a-z][a-z.-]*)", text, re.MULTILINE))


def is_required(item: Field[Any]) -> bool:
    return item.default is MISSING and item.default_factory is MISSING


@pytest.mark.parametrize("command", COMMANDS)
def test_help_shows_the_ten_options_that_matter_and_help_all_shows_every_one(command: str) -> None:
    short, whole = deepcfr(command, "--help"), deepcfr(command, "--help-all")
    assert (short.status, short.err, whole.status, whole.err) == (0, "", 0, "")
    assert f"usage: deepcfr {command}" in short.out
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


def test_the_help_names_every_command_and_the_version_is_the_packages() -> None:
    outcome = deepcfr("--help")
    assert (outcome.status, outcome.err) == (0, "")
    (listed,) = re.findall(r"\{([a-z,-]+)\}", outcome.out.split("\n\n")[0].replace("\n", ""))
    assert set(listed.split(",")) == set(COMMANDS)
    assert deepcfr("--version") == (0, f"deepcfr {metadata.version('deepcfr')}\n", "")


@pytest.mark.parametrize("command", ["train", "solve"])
def test_the_whole_help_names_every_setting(command: str) -> None:
    text = deepcfr(command, "--help-all").out
    names = ["seed", "iterations"]
    for section in fields(RunConfig):
        record = getattr(RunConfig(), section.name)
        if command == "train" and is_dataclass(record) and section.name != "solve":
            names += [f"{section.name}.{item.name}" for item in fields(record)]
    if command == "solve":
        names += [item.name for item in fields(TabularConfig)]
        assert "{" + ",".join(get_args(TabularSolver)) + "}" in text
    assert len(names) > 9
    assert [name for name in names if not re.search(rf"--{re.escape(name.replace('_', '-'))}[ ,]", text)] == []


@pytest.mark.parametrize(
    ("words", "default"),
    [
        (["openspiel:kuhn_poker"], 1_500),  # sampling.traversals
        (["leduc", "--solver", "dream"], 6_000),
        (["leduc", "--solver", "nfsp"], 4_500),  # iterations
        (["leduc", "--solver=ppo"], 600),
        (["kuhn", "--config", "fhp-paper"], 450),
    ],
)
def test_the_help_of_train_has_the_defaults_of_what_it_names(words: list[str], default: int) -> None:
    text = deepcfr("train", *words, "--help-all").out
    assert f"(default: {default})" in text
    assert f"(default: {default})" not in deepcfr("train", "fhp", "--help-all").out
    assert {name for name in options(text) if name.endswith("iterations")} == {"--iterations"}


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


LOADED = (  # by one command after the other in one process, beside what the commands before it have loaded
    *((f"{command} --help", "") for command in ("", *COMMANDS)),
    ("models --json", ""),
    (f"runs {Path(__file__).parents[1] / 'models'} --json", ""),
    ("strategy kuhn", ""),  # refused
    ("spot --board Qs7h2c9d4s --pot 1 --stacks 1 --dealer A5s+,KK:0.5 --big-blind QQ-77 --out s.npz", "numba"),
    ("games --json", ""),
    ("strategy kuhn K --json", "torch"),
)


def test_commands_load_no_library_that_they_do_not_need_and_say_so_before_they_do(tmp_path: Path) -> None:
    """The first line says that it takes some seconds, and no heavy library is loaded when it is written.

    Compilers of networks and other libraries that play does not need take seconds, and play is to start within three.
    """
    code = f"""
import contextlib, os, sys
import deepcfr
heavy, told = ("ray", "pyspiel", "numba", "torch", "pokerkit", "scipy.linalg", "typeguard"), []
def loaded():
    return {{name for name in heavy if name in sys.modules}}
assert not loaded()
from deepcfr import cli
def note(message):
    if message in {NOTE!r}:
        told.append(loaded())
cli.warn = note
for line, name in {LOADED!r}:
    before = loaded()
    sys.argv = ["deepcfr", *line.split()]
    with contextlib.suppress(SystemExit), open(os.devnull, "w") as nothing:
        with contextlib.redirect_stdout(nothing), contextlib.redirect_stderr(nothing):
            cli.main()
    assert loaded() - before == ({{name}} if name else set()), line
    assert told == ([before] if name else []), line
    told.clear()
    if name == "numba":
        assert deepcfr.load_spot("s.npz").decisions and loaded() - before == {{"numba"}}
import deepcfr.play.terminal, deepcfr.run.players
slow = ("torch._dynamo", "torch._inductor", "ray", "pyspiel", "sklearn", "fastapi", "pokerkit")
assert not [name for name in slow if name in sys.modules]
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")


# Train, exploitability, resume

KEYS = {
    "game", "unit", "iterations", "nodes_touched", "nash_conv", "exploitability", "best_response_values", "value",
    "seconds", "policy",
}  # fmt: skip


def test_train_prints_one_json_object_and_progress_to_standard_error(kuhn: Made) -> None:
    result = kuhn.outcome.json
    assert set(result) >= KEYS
    assert (result["game"], result["unit"], result["iterations"]) == ("kuhn", "mA/g", 3)
    assert result["policy"] == "average network"
    lines = read_metrics(kuhn.path / "metrics.jsonl")
    assert result["nodes_touched"] == sum(line["nodes_touched"] for line in lines)
    assert result["seconds"] >= lines[-1]["seconds"] > 0
    for name in ("nash_conv", "value", "best_response_values"):
        assert result[name] == lines[-1]["evaluation"][name]
    assert "Deep CFR on kuhn: 3 iterations" in kuhn.outcome.err
    assert "iteration 2: exact NashConv" in kuhn.outcome.err
    first, second = result["best_response_values"]
    assert result["nash_conv"] == pytest.approx(first + second, rel=1e-12)
    assert result["exploitability"] == result["nash_conv"] / 2
    assert -second <= result["value"] <= first  # a best response does no worse than the profile
    assert -second <= -1000 / 18 <= first  # and Kuhn is worth -1/18


@pytest.mark.parametrize("name", ["run", "[bold]", "x[/y]"])  # brackets are just brackets
def test_train_without_json_prints_the_result_and_nothing_to_standard_error(
    tmp_path: Path, kuhn: Made, name: str
) -> None:
    arguments = ("--iterations", 3, "--evaluation.at", 1, 2, *TINY)
    outcome = deepcfr("train", "kuhn", "--out", tmp_path / name, *arguments)
    assert (outcome.status, outcome.err) == (0, "")
    result = kuhn.outcome.json  # of the same seed
    assert f"exact NashConv {result['nash_conv']:.3f} mA/g" in outcome.out
    assert f"{result['exploitability']:.3f} mA/g" in outcome.out
    assert f"{result['nodes_touched']:,} nodes touched" in outcome.out
    assert f"deepcfr play {tmp_path / name}" in outcome.out
    assert load_config(tmp_path / name / "config.toml").evaluation.at == (1, 2)


def test_exploitability_agrees_with_the_end_of_training(kuhn: Made) -> None:
    trained, measured = kuhn.outcome.json, deepcfr("exploitability", kuhn.path, "--json", "--threads", 1).json
    assert set(trained) - set(measured) == {"finished", "run"}
    assert measured | {"seconds": 0} == {k: v for k, v in trained.items() if k in measured} | {"seconds": 0}
    again = deepcfr("exploitability", kuhn.path, "--json", "--threads", 3).json
    assert again | {"seconds": 0} == measured | {"seconds": 0}
    shown = deepcfr("exploitability", kuhn.path).out
    assert f"exact NashConv {measured['nash_conv']:.3f} mA/g" in shown
    gains = [*map(float, re.findall(r"gain (-?[\d.]+) as player 0 and (-?[\d.]+) as player 1", shown)[0])]
    assert sum(gains) == pytest.approx(measured["nash_conv"], abs=0.01)
    assert min(gains) >= 0


def test_measuring_asking_and_resuming_a_finished_run_change_no_file(run: Path, kuhn: Made) -> None:
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
    edit_settings(run, "iterations = 3", "iterations = 4")
    assert deepcfr("resume", run, "--json").json["iterations"] == 4


def test_a_damaged_checkpoint_is_a_warning_as_long_as_an_earlier_one_is_good(tmp_path: Path) -> None:
    run = tmp_path / "run"
    arguments = ("--iterations", 2, "--evaluation.every", 1, "--runtime.checkpoint-seconds", 0, *TINY)
    whole = deepcfr("train", "kuhn", "--out", run, "--json", *arguments).json
    damaged = run / "checkpoints" / "0000002" / "networks.safetensors"
    os.truncate(damaged, 100)
    outcome = deepcfr("exploitability", run, "--json")
    assert outcome.json["iterations"] == 1
    assert f"deepcfr: The checkpoint file '{damaged}' is damaged" in outcome.err
    assert deepcfr("resume", run, "--json").json["nash_conv"] == whole["nash_conv"]


# Settings: command line over file over defaults


def test_the_command_line_overrides_the_file_and_the_file_the_defaults(tmp_path: Path, kuhn: Made) -> None:
    file = tmp_path / "settings.toml"
    file.write_text(
        'game = "leduc"\nseed = 5\niterations = 7\n[sampling]\ntraversals = 11\n'
        '[network]\nkind = "mlp"\nwidth = 6\n[advantage]\nsteps = 2\nbatch_size = 9\n[average]\nsteps = 3\n'
        "[memory]\ncapacity = 50\n[evaluation]\nat = [1]\n"
    )
    options = ("--iterations", 1, "--network.width=5", "--advantage.batch_size", 8, "--average.batch-size", 8)
    for name, given in (("one", ("--config", file)), ("two", (f"--config={file}",))):
        ran = deepcfr("train", "kuhn", "--out", tmp_path / name, *given, *options)
        assert ran.status == 0
        assert f"{file} has settings for leduc; they are used for kuhn." in ran.err
        config = load_config(tmp_path / name / "config.toml")
        assert (config.game, config.seed) == ("kuhn", 5)
        assert (config.iterations, config.sampling.traversals) == (1, 11)
        assert (config.network.kind, config.network.width) == ("mlp", 5)
        assert (config.advantage.steps, config.advantage.batch_size) == (2, 8)
        assert (config.average.steps, config.average.batch_size) == (3, 8)
        assert config.evaluation.at == (1,)
        # What neither says is the default, and not what is tuned for the game.
        assert config.advantage.learning_rate == RunConfig().advantage.learning_rate
        assert config.advantage.learning_rate != default_config("kuhn").advantage.learning_rate
    config, default = load_config(kuhn.path / "config.toml"), default_config("kuhn")  # without a file
    assert config.average.learning_rate == default.average.learning_rate
    assert config.advantage.schedule == default.advantage.schedule
    assert (config.iterations, config.sampling.traversals) == (3, 20)


def test_the_games_defaults_do_not_depend_on_the_order_of_the_arguments() -> None:
    first = cli.parse_command(["train", "kuhn", "--out", "x"])
    assert cli.parse_command(["train", "--out", "x", "kuhn"]) == first


@pytest.mark.parametrize(
    "words, address",
    [(["--ray", *OUT], LOCAL_CLUSTER), ([*OUT, "--ray"], LOCAL_CLUSTER), (["--ray", "h:1", *OUT], "h:1"), (OUT, None)],
)
def test_ray_has_an_address_or_is_on_this_machine_and_changes_no_setting(words: list[str], address: str | None) -> None:
    for game in ("leduc", "fhp", "hunl-200"):
        command = cli.parse_command(["train", game, *words])
        assert command.ray == address
        assert command.run_config() == default_config(game)
    resumed = cli.parse_command(["resume", "runs/r", "--ray", "--workers", "3"])
    assert (resumed.ray, resumed.workers) == (LOCAL_CLUSTER, 3)


def test_a_run_of_tables_is_not_resumed_on_a_cluster(tmp_path: Path) -> None:
    pytest.importorskip("ray")
    shutil.copytree(made_runs.solved("openspiel").path, tmp_path / "run")
    resumed = deepcfr("resume", tmp_path / "run", "--iterations", 40, "--ray")
    assert resumed.status == 2
    assert "--ray is for Deep CFR, but" in resumed.err.splitlines()[-1]


def test_a_game_definition_is_trained_like_a_preset(tmp_path: Path) -> None:
    (tmp_path / "mine.game").write_text(format_game_definition(load_rules("kuhn")))
    outcome = deepcfr("train", tmp_path / "mine.game", "--out", tmp_path / "run", "--json", "--iterations", 1, *TINY)
    assert outcome.json["game"] == "mine"
    # The run does not need the file any more. Its ranks are 2 3 4, as the format has no symbols.
    (tmp_path / "mine.game").unlink()
    answer = deepcfr("strategy", tmp_path / "run", "4 / r", "--json").json
    assert set(answer["probabilities"]) == {"fold", "call"}


# Strategy, play and export


def test_strategy_answers_in_json_and_in_text(kuhn: Made) -> None:
    answer = deepcfr("strategy", kuhn.path, "K / c", "--json").json
    assert (answer["game"], answer["player"], answer["situation"]) == ("kuhn", 1, "K / c")
    assert set(answer["probabilities"]) == {"check", "bet"}
    assert sum(answer["probabilities"].values()) == pytest.approx(1, abs=1e-6)
    outcome = deepcfr("strategy", kuhn.path, "K / c")
    assert (outcome.status, outcome.err) == (0, "")
    assert "player 1 to act" in outcome.out
    for name, share in answer["probabilities"].items():
        assert re.search(rf"^  {name} +{100 * share:.2f}%$", outcome.out, re.MULTILINE)
    current = deepcfr("strategy", kuhn.path, "K / c", "--json", "--policy", "current").json
    assert current["policy"] != answer["policy"]
    assert current["probabilities"] != answer["probabilities"]


def test_play_ends_cleanly_and_is_decided_by_its_seed(kuhn: Made) -> None:
    one, same, other = (deepcfr("play", kuhn.path, "--hands", 5, "--seed", s, answers="c\n" * 30) for s in (1, 1, 2))
    assert (one.status, one.err) == (0, "")
    assert one.out.count("Your cards:") == 5
    assert re.search(r"Session: 5 hands, [+-]", one.out)
    assert one == same != other
    new = deepcfr("play", kuhn.path, "--hands", 5, answers="c\n" * 30).out
    (seed,) = re.findall(r"--seed (\d+) deals these hands again", new)
    assert new == deepcfr("play", kuhn.path, "--hands", 5, "--seed", seed, answers="c\n" * 30).out
    for answers in ("q\n", "", "what\nq\n"):
        outcome = deepcfr("play", kuhn.path, answers=answers)
        assert (outcome.status, outcome.err) == (0, "")
        assert "Session: no hand was finished." in outcome.out
    assert "'what' is not possible here" in outcome.out


def test_an_export_is_small_measures_the_same_and_is_exported_again(run: Path, tmp_path: Path, kuhn: Made) -> None:
    before = contents(run)
    small = tmp_path / "small"
    assert deepcfr("export", run, "--out", small) == (0, f"Exported to {small}.\n", "")
    assert contents(run) == before
    assert {Path(name).name for name in contents(small)} == {
        "config.toml", "game.json", "environment.json", "metrics.jsonl", "latest", "networks.safetensors", "state.json",
    }  # fmt: skip
    measured, whole = (deepcfr("exploitability", path, "--json").json for path in (small, kuhn.path))
    assert measured["nash_conv"] == pytest.approx(whole["nash_conv"], rel=0.02)  # weights have 16 bits
    assert {name for name in whole if measured[name] != whole[name]} <= {
        "nash_conv", "exploitability", "best_response_values", "value", "seconds",
    }  # fmt: skip
    assert deepcfr("export", small, "--out", tmp_path / "again").status == 0
    for policy in ("average", "current"):
        asked = [
            deepcfr("strategy", p, "J / r", "--json", "--policy", policy).json for p in (run, small, tmp_path / "again")
        ]
        assert asked[1] == asked[2]
        assert asked[0].pop("probabilities") == pytest.approx(asked[1].pop("probabilities"), abs=5e-3)
        assert asked[0] == asked[1]


def test_a_run_without_an_average_network_says_what_to_do(tmp_path: Path) -> None:
    run = tmp_path / "run"
    assert (
        deepcfr("train", "kuhn", "--out", run, "--iterations", 2, "--runtime.checkpoint-seconds", 0, *TINY).status == 0
    )
    shutil.rmtree(run / "checkpoints" / "0000002")  # only the last one has the average network
    sentence = problem(deepcfr("exploitability", run))
    assert f"deepcfr resume {run}" in sentence
    assert "--policy current" in sentence
    assert deepcfr("exploitability", run, "--policy", "current", "--json").json["iterations"] == 1


# The average of snapshots


def test_every_command_takes_the_average_of_the_snapshots(kuhn: Made, tmp_path: Path) -> None:
    run = kuhn.path
    policy, _ = RunFolder.open(run).load_policy("sd-cfr", pytest.fail)
    measured = deepcfr("exploitability", run, "--policy", "sd-cfr", "--json").json
    assert measured["nash_conv"] == pytest.approx(exploitability(policy).nash_conv, abs=1e-6)
    assert measured["policy"] == "exact average of 3 snapshots up to 3 (SD-CFR)"
    answer = deepcfr("strategy", run, "Q", "--policy", "sd-cfr", "--json").json
    assert sum(answer["probabilities"].values()) == pytest.approx(1)
    assert deepcfr("match", run, run, "--policy", "sd-cfr", "--json").json["value"] == pytest.approx(0, abs=1e-6)
    assert deepcfr("match", run, run, "--policy", "sd-cfr", "--hands", 50, "--json").json["hands"] == 50
    assert "Session: 2 hands" in deepcfr("play", run, "--hands", 2, "--policy", "sd-cfr", answers="c\n" * 9).out
    assert deepcfr("export", run, "--out", tmp_path / "half", "--keep-networks", 2).status == 0
    thinned = deepcfr("exploitability", tmp_path / "half", "--policy", "sd-cfr", "--json").json
    assert thinned["policy"] == "exact average of 2 snapshots up to 3 (SD-CFR)"


def test_a_run_measures_and_plays_what_its_configuration_names(kuhn: Made, tmp_path: Path) -> None:
    path = tmp_path / "own"
    options = ("--json", "--iterations", 3, *TINY, "--evaluation.policy", "sd-cfr")
    assert deepcfr("train", "kuhn", "--out", path, *options).status == 0
    own = deepcfr("exploitability", path, "--json").json
    assert own["nash_conv"] == deepcfr("exploitability", kuhn.path, "--policy", "sd-cfr", "--json").json["nash_conv"]
    network = deepcfr("exploitability", path, "--policy", "average", "--json").json
    assert network["nash_conv"] != pytest.approx(own["nash_conv"], abs=1e-3)
    last = read_metrics(path / "metrics.jsonl")[-1]
    assert last["evaluated_policy"] == "sd-cfr"
    assert last["evaluation"]["nash_conv"] == pytest.approx(own["nash_conv"], abs=1e-6)
    value = deepcfr("match", path, kuhn.path, "--json").json["value"]
    plain = deepcfr("match", path, kuhn.path, "--policy", "average", "--json").json["value"]
    assert value != pytest.approx(plain, abs=1e-6)


# A game whose exact evaluation is out of reach, and the list of games


def test_a_game_out_of_reach_is_trained_and_queried_without_an_evaluation(tmp_path: Path) -> None:
    # the table of hand strengths of this game takes a minute and more than a gigabyte
    options = (
        *TINY,
        "--advantage.target",
        "mean",
        "--iterations",
        1,
        "--sampling.traversals",
        2,
        "--network.no-strength",
    )
    outcome = deepcfr("train", "hulh", "--out", tmp_path / "run", "--json", *options)
    result = outcome.json
    assert (result["game"], result["unit"], result["iterations"], result["finished"]) == ("hulh", "mbb/g", 1, True)
    assert "nash_conv" not in result
    assert outcome.err.index("51,979,200 boards") < outcome.err.index("iteration 1")  # said before the training
    sentence = problem(deepcfr("exploitability", tmp_path / "run"))
    assert f"hulh has {math.comb(52, 3) * 49 * 48:,} boards" in sentence
    assert "at most 1,000,000" in sentence
    answer = deepcfr("strategy", tmp_path / "run", "As Kd / r / Qs 7h 2c", "--json").json
    assert (answer["round"], set(answer["probabilities"])) == ("flop", {"check", "bet"})


def test_games_lists_the_presets_with_known_sizes_and_definitions_too(tmp_path: Path) -> None:
    (tmp_path / "mine.game").write_text(format_game_definition(load_rules("leduc")))
    found = deepcfr("games", "--json", "--definition", tmp_path / "mine.game").json["games"]
    facts = {fact["game"]: fact for fact in found}
    mine = facts.pop("mine")
    assert list(facts) == ["kuhn", "leduc", "fhp", "fhp-mini", "hulh", "fhp-pot", "hunl-pot", "hunl-ladder", "hunl-200"]
    assert facts["hunl-ladder"]["betting_decisions"] is None
    assert [fact["betting_decisions"] for fact in facts.values()][:2] == [4, 6 + 5 * 6]
    assert mine["betting_decisions"] == facts["leduc"]["betting_decisions"]
    four_rounds = math.comb(52, 3) * 49 * 48
    assert [fact["boards"] for fact in facts.values()] == [
        1, 6, math.comb(52, 3), math.comb(20, 3), four_rounds, math.comb(52, 3), *[four_rounds] * 3,
    ]  # fmt: skip
    assert [fact["exact_evaluation"] for fact in facts.values()] == [True, True, True, True, False, True, *[False] * 3]
    assert [fact["unit"] for fact in facts.values()] == ["mA/g"] * 2 + ["mbb/g"] * 7
    outcome = deepcfr("games")
    assert (outcome.status, outcome.err) == (0, "")
    for name, fact in facts.items():
        (row,) = [line for line in outcome.out.splitlines() if re.search(rf"(?<![\w-]){name}(?![\w-])", line)]
        assert f"{fact['boards']:,}" in row
        assert ("yes" in row) == fact["exact_evaluation"]


# Ends that are nobody's mistake


def test_ctrl_c_is_status_130_without_a_traceback(kuhn: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    def press(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setitem(cli.COMMANDS, "exploitability", (cli.player_records.Exploit, press))
    outcome = deepcfr("exploitability", kuhn.path)
    assert (outcome.status, outcome.out, outcome.err) == (130, "", "deepcfr: interrupted.\n")


def test_a_closed_pipe_ends_the_installed_command_quietly() -> None:
    command = [Path(sys.executable).parent / "deepcfr", "--help"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()  # like `| head` when it has seen enough
        assert process.stderr.read() == ""
    assert process.returncode == 1


def test_a_run_whose_reader_has_gone_goes_on_to_its_end(tmp_path: Path) -> None:
    """As in `deepcfr solve … | head -1`: the run is finished and saved, and standard error says so."""
    words = ["solve", "kuhn", "--iterations", "5", "--evaluation.every", "1", "--out", str(tmp_path / "run")]
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
    "command", [("train", "kuhn", "--iterations", 1, *TINY), ("solve", "kuhn", "--solver", "mccfr", "--iterations", 2)]
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


@pytest.mark.parametrize(("options", "command"), [([], ["models", "--json"]), (["-u"], ["--help"]), ([], ["--help"])])
def test_an_output_that_takes_nothing_is_a_sentence(command: list[str], options: list[str]) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, *options, "-m", "deepcfr.cli", *command], stdout=full, stderr=subprocess.PIPE, text=True
        )
    sentence = "deepcfr: Standard output cannot be written: No space left on device.\n"
    assert (done.returncode, done.stderr) == (2, sentence)


def test_characters_that_standard_output_cannot_encode_are_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding="ascii"))
    with output.standard_output(goes_on=False):
        print("A♠ −1")
    assert written.getvalue() == b"A? ?1\n"
