"""What the commands refuse: one sentence, status 2, nothing on standard output, and nothing written."""

import os
import re
import shlex
import shutil
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

import made_runs
from command_line import deepcfr, experiments, problem, problems
from deepcfr.core.files import read_json, signed_json
from deepcfr.game import presets
from deepcfr.game.presets import load_rules
from deepcfr.game.rules import PRESETS
from deepcfr.run import costs
from definitions import format_game_definition
from small_runs import TINY, contents, flip

BOARDS = "--sampling.kind public-chance"
# A command line, with names of runs and files in braces, and a part of the sentence.
REFUSALS = [
    # games
    ("train kuhm --out {out}", "'kuhm' is neither a preset (" + ", ".join(PRESETS)),
    ("train '' --out {out}", "'' is neither a preset"),
    ("train {empty} --out {out}", "nor a readable game definition"),
    ("solve kuhm --out {out}", "'kuhm' is neither a preset"),
    ("abstract kuhm --buckets 3 --out {out}", "'kuhm' is neither a preset"),
    ("solve openspiel:kuhn_pokr --out {out}", "OpenSpiel has no game 'kuhn_pokr'. Did you mean kuhn_poker"),
    ("solve openspiel: --out {out}", "OpenSpiel has no game ''"),
    ("solve 'openspiel:kuhn_poker(players=3)' --out {out}", "has 3 players, and two are supported"),
    ("solve openspiel:chess --solver mccfr --out {out}", "at most 20,000,000 can be compiled"),
    ("solve hulh --solver linear-cfr --out {out}", "hulh has 51,979,200 boards"),
    ("train hunl-ladder --out {out}", "more than 200,000 nodes"),
    # settings
    ("train kuhn --config {none} --out {out}", "{none}"),
    ("train kuhn --config {tables}/config.toml --out {out}", "is for CFR+, which 'deepcfr solve' runs."),
    ("solve kuhn --config {run}/config.toml --out {out}", "is for Deep CFR, which 'deepcfr train' runs."),
    ("train kuhn --solver cfr+ --out {out}", "--solver cfr+ is for"),
    ("solve kuhn --solver nfsp --out {out}", "which 'deepcfr train' runs."),
    ("solve kuhn --solver xfp --out {out}", "openspiel:leduc_poker"),
    ("solve leduc --iterations -3 --out {out}", "'iterations' must be between 1 and 100,000,000"),
    ("solve leduc --iterations 0 --out {out}", "but is 0."),
    ("solve leduc --evaluation.threshold nan --out {out}", "'evaluation.threshold' must be between"),
    ("solve leduc --runtime.device cuda --out {out}", "must be cpu for tabular solvers, but is 'cuda'"),
    ("solve {two} --solver mccfr --minutes -1 --out {out}", "--minutes must be above 0, but is -1."),
    ("solve leduc --solver mccfr --precision int16 --out {out}", "float32 or float64, but 'solve.precision'"),
    ("solve openspiel:kuhn_poker --solver mccfr --precision int16 --out {out}", "float32 or float64"),
    (f"train openspiel:kuhn_poker {BOARDS} --out {{out}}", "need a poker game"),
    (f"train hulh {BOARDS} --sampling.panel --advantage.target mean --out {{out}}", "hulh has too many boards to keep"),
    ("train kuhn --out caf\udce9", "is not text in UTF-8: rename the file or folder."),
    ("runs caf\udce9", "is not text in UTF-8: rename the file or folder."),
    # runs and folders
    *(
        (f"{command} {{{path}}}{rest}", f"'{{{path}}}' does not hold a run")
        for path in ("none", "file", "empty")
        for command, rest in (("resume", ""), ("exploitability", " --json"), ("strategy", " K"), ("play", ""))
    ),
    ("export {none} --out {out}", "'{none}' does not hold a run"),
    ("exploitability nobody", "Shipped agents are fhp, fhp-cfr-d, fhp-faithful,"),
    ("train kuhn --out {file}", "cannot be written"),
    ("solve kuhn --out {file}/run", "cannot be written"),
    ("train kuhn --out {run}", "'{run}' already holds a run: go on with 'deepcfr resume {run}'"),
    ("solve leduc --out {run}", "'{run}' already holds a run: go on with 'deepcfr resume {run}'"),
    ("resume {exported}", "without its memories, so training cannot go on"),
    ("export {run} --out {exported}", "is not empty"),
    ("export {run} --out {file}", "'{file}' is a file"),
    ("export {run} --out {out} --keep-networks -1", "--keep-networks must be at least 0, but is -1."),
    ("runs {empty}", "'{empty}' holds no runs"),
    ("runs {none}", "holds no runs"),
    ("models {empty}", "'{empty}' holds no models: there is no folder in it with a config.toml."),
    ("models {none}", "'{none}' holds no models: there is no folder in it with a config.toml."),
    # abstractions
    ("solve leduc --solver cfr --abstraction {buckets} --out {out}", "cfr is full-width and takes no abstraction"),
    ("solve openspiel:leduc_poker --solver cfr --abstraction {buckets} --out {out}", "takes no abstraction"),
    (
        "solve openspiel:leduc_poker --solver mccfr --abstraction {buckets} --out {out}",
        "Abstractions are for poker games, and 'leduc_poker' is not one",
    ),
    ("solve kuhn --solver mccfr --abstraction {buckets} --out {out}", "belongs to leduc, whose rules are not those of"),
    ("solve {two} --solver mccfr --abstraction {kuhn_buckets} --out {out}", "whose cards are not those of two"),
    ("solve leduc --solver mccfr --abstraction {tables} --out {out}", "abstraction.json' cannot be read"),
    ("abstract leduc --buckets 3 4 --out {buckets}", "'{buckets}' already exists"),
    ("abstract leduc --buckets 3 --threads 0 --out {out}", "--threads must be at least 1, but is 0"),
    ("abstract kuhn --buckets 2 --seed -1 --out {out}", "seed"),
    ("abstract leduc --buckets 0 --out {out}", "Round 2 of leduc was given 0 buckets, but must have 1 to 15"),
    ("abstract leduc --buckets 3 16 --out {out}", "Round 2 of leduc was given 16 buckets, but must have 1 to 15"),
    ("abstract leduc --buckets 1 2 3 --out {out}", "leduc has 2 rounds, but 3 numbers of buckets were given"),
    # policies and players
    ("exploitability {exported0} --policy sd-cfr", "has kept no networks"),
    ("match {tables} {tables} --policy sd-cfr", "is not a run of Deep CFR"),
    ("match kuhn leduc --hands 10", "A match needs two policies of one game"),
    ("play scripted:call", "but none is among scripted:call"),
    ("play mad:{sizes}", "'mad' is not a style of play"),
    ("play resolv:leduc", "is not a style of play"),
    ("tournament leduc --styles mad --hands 10", "'mad' is not a style of play"),
    ("match ensemble:leduc leduc --hands 10", "names no ensemble"),
    ("match ensemble:max:leduc,leduc leduc --hands 10", "'max' is not an ensemble rule"),
    ("play kuhn --hands 0", "The number of hands is 0"),
    ("exploitability {hulh}", "hulh has 51,979,200 boards, but exact"),  # before its tables are made
    ("exploitability kuhn --threads 0", "--threads must be at least 1, but is 0"),
    ("match kuhn kuhn --hands 1000000000000000", "This needs more memory than there is: Unable to allocate"),
    ("match kuhn kuhn --boards 1000000000000000", "This needs more memory than there is: Unable to allocate"),
    ("exploitability resolve:leduc --search.rounds 2", "'search.rounds' names 2"),
    ("match resolve:leduc leduc --search.iterations 0", "must be at least 1, but is 0"),
    ("strategy leduc Kc --search.iterations 10", "players named resolve:RUN, but not"),
    ("serve leduc --search.iterations 10", "players named resolve:RUN, but not"),
    ("serve --search.iterations 10", "and none is named"),
    # situations
    *(
        (f"strategy kuhn '{situation}'", name)
        for situation, name in (
            ("A", "'A'"), ("K / x", "'x'"), ("K / f", "'f'"), ("K / rc", "'rc'"), ("K / ccc", "'ccc'"),
            ("K J", "2 cards"), ("K / c / Q", "3"), ("", "''"), ("/", "'/'"), ("K / [b]", "'['"), ("♠", "'♠'"),
            ("Ks", "'s'"),
        )
    ),
    ("strategy fhp 'As Kx'", "'Kx'"),
    ("strategy fhp 'As As'", "As"),
    ("strategy fhp 'As Kd / r / Qs 7h'", "3 cards"),
    ("strategy {listed} K", "'kuhn_poker' has no infoset 'K'; some are '0', '1', '2'."),
    # reports, budgets, clusters
    ("report {run}", "ending in .svg, but is missing."),
    ("report", "report needs runs: "),
    ("report {run} --out a.pdf", "ending in .svg, but is 'a.pdf'."),
    ("report --run {run} {run}", "--out must name the page of several runs"),
    ("report --run {run} --out x.svg", "but is 'x.svg'"),
    ("report fig2 --run {run}", "no other arguments except --out"),
    ("report --run {empty}", "does not hold a run"),
    ("error-budget {run} --solve-iterations 2", "at least the 3 iterations"),
    ("train leduc --workers 2 --out {out}", "--workers is for runs on a Ray cluster: also give --ray."),
    ("resume kuhn --workers 2", "--workers is for runs on a Ray cluster: also give --ray."),
    ("train leduc --solver nfsp --ray --out {out}", "--ray is for Deep CFR"),
]  # fmt: skip
EXPERIMENTS = [
    ("reproduce fig99", "theorem1"),  # of the list of all that there are
    ("reproduce fig4-left --seeds 0", "--seeds must be between 1 and 1,000, but is 0."),
    ("reproduce fig4-right --arms reservoir windows", "'windows' is no arm of fig4-right: reservoir, window are."),
    ("reproduce theorem1 --arms mccfr", "--arms is for the paper's figures"),
    ("bench fhp --iterations 0", "--iterations must be at least 1, but is 0."),
]
# What the parser refuses, and words of what it says.
MISPARSED = [
    ("", ""), ("trane kuhn", ""), ("games --jsn", ""), ("train kuhn --out x --cfr.iteration 3", ""),
    ("acpc kuhn --port 1 --seed 1.5", "Error parsing --seed: '1.5' is not a whole number."),
    ("acpc kuhn --port 1 --seconds ten", "Error parsing --seconds: 'ten' is not a number."),
    ("train kuhn --out x --network.kind cnn", ""), ("train kuhn --out x --advantage.scale-targets perhaps", ""),
    ("solve kuhn --out x --solver cfr++", ""), ("solve kuhn --out x --precision float16", ""),
    ("solve kuhn --out x --iterations many", ""), ("abstract leduc --buckets x --out x", ""),
    ("exploitability kuhn --policy best", ""),
]  # fmt: skip


@pytest.fixture(scope="module")
def named(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Runs and files by the names that stand for them; nothing is at `out` and `none`."""
    root = tmp_path_factory.mktemp("refusals")
    (root / "empty").mkdir()
    (root / "file").write_text("mine")
    assert deepcfr("abstract", "kuhn", "--buckets", 2, "--out", root / "kuhn_buckets").status == 0
    assert deepcfr("export", made_runs.trained().path, "--out", root / "exported0", "--keep-networks", 0).status == 0
    found = {name: root / name for name in ("empty", "file", "out", "none", "kuhn_buckets", "exported0")} | {
        "hulh": Path(__file__).parents[1] / "models/hulh",
        "run": made_runs.trained().path,
        "tables": made_runs.solved("full-width").path,
        "listed": made_runs.solved("openspiel").path,
        "buckets": made_runs.places().abstraction,
        "sizes": made_runs.bet_sizes(),
        "two": made_runs.ROOT / "two.toml",
        "exported": made_runs.exported(),
    }
    return {name: str(path) for name, path in found.items()}


@pytest.mark.parametrize(("line", "sentence"), REFUSALS)
def test_a_mistake_is_one_sentence_and_nothing_is_written(line: str, sentence: str, named: dict[str, str]) -> None:
    words = shlex.split(line.format_map(named))
    folders = [Path(named[name]) for name in ("run", "exported", "empty")]
    before = [contents(folder) for folder in folders]
    assert sentence.format_map(named) in problem(deepcfr(*words))
    assert not Path(named["out"]).exists()
    assert [contents(folder) for folder in folders] == before
    assert Path(named["file"]).read_text() == "mine"


@pytest.mark.parametrize(("line", "sentence"), EXPERIMENTS)
def test_a_mistake_of_an_experiment_is_one_sentence(line: str, sentence: str) -> None:
    assert sentence in problem(experiments(*shlex.split(line)))


@pytest.mark.parametrize(("line", "words"), MISPARSED)
def test_what_cannot_be_parsed_is_status_2(
    line: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    outcome = deepcfr(*shlex.split(line))
    assert (outcome.status, outcome.out) == (2, "")
    assert outcome.err
    assert words in outcome.err
    assert "Traceback" not in outcome.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("words", [("exploitability", "none"), ("solve", "kuhm", "--out", "none")])
def test_with_json_a_mistake_is_the_same_sentence(words: tuple[str, ...]) -> None:
    assert problem(deepcfr(*words, "--json")) == problem(deepcfr(*words))


# Several mistakes are named at once


@pytest.mark.parametrize(
    ("command", "options"),
    [
        (
            "train",
            "--seed -1 --iterations 0 --network.width 100000 --advantage.learning-rate nan --average.batch-size 0 "
            "--runtime.threads 0 --evaluation.at -3 --runtime.device tpu",
        ),
        (
            "solve",
            "--seed -1 --iterations 0 --evaluation.threshold -1 --traversals 0 --exploration-start 2 --runtime.minutes -1 "
            "--runtime.checkpoint-seconds -1 --evaluation.at -3",
        ),
    ],
)
def test_impossible_values_are_all_named_at_once(tmp_path: Path, command: str, options: str) -> None:
    lines = problems(deepcfr(command, "kuhn", "--out", tmp_path / "run", *options.split()))
    asked = options.split()[::2]
    assert len(lines) == len(asked)
    for option in asked:
        name = option.removeprefix("--").replace("-", "_")
        assert sum(bool(re.search(rf"'(solve\.)?{re.escape(name)}' must", line)) for line in lines) == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("command", "text", "expected"),
    [
        ("train", "[cfr\n", ["cannot be read"]),
        ("train", "[cfr]\ntraversal = 3\n[network]\nkind = 'cnn'\n", ["cfr.traversal'", "network.kind'"]),
        ("train", "seed = -1\n[average]\nsteps = 0\n", ["'seed' must be between", "'average.steps' must be between"]),
        ("solve", "solver = 'fp'\n[solve]\niteration = 3\n", ["solve.iteration' is not", "'solver' must be one of"]),
        ("solve", "solve = 3\n", ["'solve' must be a section, but is 3"]),
    ],
)
def test_a_malformed_configuration_is_a_line_for_every_problem(
    tmp_path: Path, command: str, text: str, expected: list[str]
) -> None:
    file = tmp_path / "settings.toml"
    file.write_text(text)
    lines = problems(deepcfr(command, "kuhn", "--config", file, "--out", tmp_path / "run"))
    assert len(lines) == len(expected)
    assert all(str(file) in line for line in lines)
    assert [sum(piece in line for line in lines) for piece in expected] == [1] * len(expected)
    assert [p.name for p in tmp_path.iterdir()] == ["settings.toml"]


def test_a_malformed_game_definition_is_refused_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "bad.game").write_text(format_game_definition(PRESETS["kuhn"]).replace("blind = 1 1", "blind = 1 x"))
    for command in (
        ("train", tmp_path / "bad.game", "--out", tmp_path / "run"),
        ("games", "--definition", tmp_path / "bad.game"),
    ):
        (line,) = problems(deepcfr(*command))
        assert "line 5: blind holds 'x'" in line
    assert [p.name for p in tmp_path.iterdir()] == ["bad.game"]


# Damage


def on_a_run(run: Path, target: Path) -> list[tuple[object, ...]]:
    """Every command that reads a run."""
    return [
        ("resume", run),
        ("exploitability", run, "--json"),
        ("strategy", run, "K"),
        ("play", run),
        ("export", run, "--out", target),
    ]


def raised(run: Path) -> None:
    (run / "game.json").write_bytes(signed_json(read_json(run / "game.json") | {"raise_size": [2]}))


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (raised, "belongs to another game"),
        (lambda run: (run / "game.json").write_text("{"), "game.json' cannot be read"),
        (lambda run: (run / "game.json").write_text("[]"), "does not hold a JSON object"),
        (lambda run: (run / "game.json").write_text("{}"), "game.json' is damaged"),
        (lambda run: (run / "game.json").write_text('{"name": "kuhn", "nmae": 1}'), "game.json' is damaged"),
        (lambda run: (run / "config.toml").write_text("seed = "), "config.toml' cannot be read"),
        (lambda run: (run / "config.toml").write_text("sed = 1"), "'sed' is not a setting"),
    ],
)
def test_a_damaged_run_folder_is_named_and_nothing_is_lost(
    tmp_path: Path, damage: Callable[[Path], object], sentence: str
) -> None:
    run = tmp_path / "run"
    shutil.copytree(made_runs.trained().path, run)
    damage(run)
    before = contents(run)
    for command in on_a_run(run, tmp_path / "target"):
        assert sentence in problem(deepcfr(*command))
    assert contents(run) == before
    assert not (tmp_path / "target").exists()


def other_rules(path: Path) -> None:
    """An abstraction of leduc with other bets, which has as many hands and buckets."""
    rules = replace(load_rules("leduc"), raise_size=(2, 6))
    definition = path.with_suffix(".game")
    definition.write_text(format_game_definition(rules))
    shutil.rmtree(path)
    assert deepcfr("abstract", definition, "--buckets", 3, 15, "--out", path).status == 0


UNREADABLE, UNSOUND = "buckets/abstraction.json' cannot be read", "abstraction.json' is damaged"
DAMAGE: dict[str, tuple[Callable[[Path], object], str]] = {
    "missing": (shutil.rmtree, UNREADABLE),
    "no description": (lambda p: (p / "abstraction.json").unlink(), UNREADABLE),
    "a file": (lambda p: (shutil.rmtree(p), p.write_text("x")), UNREADABLE),
    "no JSON": (lambda p: os.truncate(p / "abstraction.json", 100), UNREADABLE),
    "no text": (lambda p: (p / "abstraction.json").write_bytes(b"\xff\xfe"), UNREADABLE),
    "a list": (lambda p: (p / "abstraction.json").write_text("[]"), UNSOUND),
    "nothing": (lambda p: (p / "abstraction.json").write_text("{}"), "abstraction.json' has format None"),
    "no table": (lambda p: (p / "round-1.npy").unlink(), "buckets/round-1.npy' cannot be read"),
    "truncated": (lambda p: os.truncate(p / "round-1.npy", 130), "buckets/round-1.npy' is damaged"),
    "emptied": (lambda p: os.truncate(p / "round-0.npy", 0), "buckets/round-0.npy' is damaged"),
    "flipped": (lambda p: flip(p / "round-1.npy"), "buckets/round-1.npy' is damaged"),
    "exchanged": (lambda p: shutil.copy(p / "round-0.npy", p / "round-1.npy"), "buckets/round-1.npy' is damaged"),
    "of another game": (other_rules, "belongs to buckets, whose rules are not those of leduc"),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_a_damaged_abstraction_is_one_sentence(tmp_path: Path, name: str) -> None:
    damage, expected = DAMAGE[name]
    buckets = tmp_path / "buckets"
    shutil.copytree(made_runs.places().abstraction, buckets)
    damage(buckets)
    arguments = ("--solver", "mccfr", "--abstraction", buckets, "--out", tmp_path / "run")
    assert expected in problem(deepcfr("solve", "leduc", *arguments))
    assert not (tmp_path / "run").exists()


def test_damage_to_the_runs_own_abstraction_is_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "run"
    shutil.copytree(made_runs.solved("buckets").path, path)
    flip(path / "abstraction" / "round-1.npy")
    for command in on_a_run(path, tmp_path / "target")[:4]:
        assert f"'{path / 'abstraction' / 'round-1.npy'}' is damaged" in problem(deepcfr(*command))


# Machines


def test_a_device_that_the_machine_does_not_have_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = ("train", "kuhn", "--out", tmp_path / "run", *TINY, "--runtime.device")
    if not torch.cuda.is_available():
        for cluster in ((), ("--ray", "10.0.0.1:6379")):
            assert "no CUDA device" in problem(deepcfr(*asked, "cuda", *cluster))
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr("torch.cuda.device_count", lambda: 2)
    sentence = problem(deepcfr(*asked, "cuda:7"))
    assert sentence == "'runtime.device' is cuda:7, but the devices of this machine are 0 to 1."


def test_a_run_refused_for_its_cost_does_not_take_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out, solved = tmp_path / "run", made_runs.solved("full-width").path
    with monkeypatch.context() as small:
        small.setattr(costs, "usable_memory", lambda: 200_000_000)
        needed, available = re.findall(r"(\d+\.\d) GB", problem(deepcfr("solve", "fhp", "--out", out)))
        assert float(needed) > 0.9 * float(available) == 0.9 * 0.2
        huge = ("--memory.capacity", 10**10)
        assert "need up to" in problem(deepcfr("train", "kuhn", "--out", out, *huge))
        small.setattr(costs, "usable_memory", lambda: 1_000)
        assert "The tables of leduc" in problem(deepcfr("resume", solved))
    assert list(tmp_path.iterdir()) == []
    assert deepcfr("train", "kuhn", "--out", out, "--iterations", 1, *TINY).status == 0


def test_without_openspiel_or_ray_a_sentence_says_how_to_get_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = made_runs.solved("openspiel").path
    presets._openspiel_game.cache_clear()  # of games that other tests loaded
    for name in ("pyspiel", "ray"):
        monkeypatch.setitem(sys.modules, name, None)  # importing it fails
    monkeypatch.delitem(sys.modules, "deepcfr.cluster.ray_cluster", raising=False)
    for command in (
        ("solve", "openspiel:kuhn_poker", "--out", tmp_path / "a"),
        ("train", "openspiel:kuhn_poker", "--out", tmp_path / "c"),
        ("resume", path),
        ("exploitability", path),
        ("export", path, "--out", tmp_path / "d"),
    ):
        assert "OpenSpiel is not installed: run pip install 'deepcfr[openspiel]'" in problem(deepcfr(*command))
    assert "pip install 'deepcfr[ray]'" in problem(deepcfr("train", "leduc", "--ray", "--out", tmp_path / "run"))
    assert list(tmp_path.iterdir()) == []
    assert deepcfr("solve", "kuhn", "--iterations", 1, "--out", tmp_path / "e").status == 0


def test_training_that_cannot_go_on_is_status_2_with_the_reason(tmp_path: Path) -> None:
    run = tmp_path / "run"
    outcome = deepcfr(
        "train", "kuhn", "--out", run, "--json", *TINY, "--network.layers", 64, "--advantage.learning-rate", 10
    )
    assert (outcome.status, outcome.out) == (2, "")
    assert re.search(r"^deepcfr: The loss is not a number after 4 of 4 steps at learning rate 10", outcome.err, re.M)
    for command in (("exploitability", run), ("export", run, "--out", tmp_path / "copy")):
        assert "has no checkpoint yet" in problem(deepcfr(*command))


def test_a_mistyped_style_is_told_from_a_folder_with_a_colon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    ways: tuple[Any, ...] = ("--hands", 10, "--threads", 1)
    known = (
        "'agressive' is not a style of play. Choose one of aggressive, tight, random, calling-machine, tight-aggressive, "
        "deterministic, initial, or write resolve:RUN, scripted:STYLE or ensemble:RULE:RUN,RUN."
    )
    for command in (
        ("match", "agressive:leduc", "leduc", *ways),
        ("match", "leduc", "ensemble:sum:leduc,agressive:leduc", *ways),
        ("tournament", "leduc", "tight:agressive:leduc", *ways),
        ("play", "agressive:leduc"),
        ("serve", "agressive:leduc"),
    ):
        assert problem(deepcfr(*command)) == known
    for folder in ("C:run", "agressive:run", "1:0"):
        Path(folder).symlink_to(made_runs.bet_sizes())
        assert deepcfr("match", folder, f"tight:{folder}", *ways, "--json").json["runs"] == [folder, f"tight:{folder}"]
    for missing in (r"C:\runs\none", "runs/agressive:none", "1:1"):
        assert "does not hold a run" in problem(deepcfr("match", missing, "leduc", *ways))
