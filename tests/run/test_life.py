"""The life of a run: however often it is stopped, killed, damaged or broken off, it ends as an uninterrupted one."""

import dataclasses
import json
import os
import random
import re
import shutil
import signal
import time
from collections.abc import Callable
from dataclasses import replace
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from command_line import deepcfr, problem
from deepcfr.config import EvaluationConfig, RunConfig, config_to_toml, signed_toml
from deepcfr.core.errors import CheckpointError, ConfigError, TrainingError
from deepcfr.defaults import default_config
from deepcfr.measure.exploitability import exploitability
from deepcfr.run import folder, train as deepcfr_train
from deepcfr.run.folder import RunFolder, export
from deepcfr.run.metrics import read_metrics
from deepcfr.run.record import trained_here
from deepcfr.run.train import Summary, train
from small_runs import (
    Crash,
    Places,
    Recorder,
    assert_same_run,
    contents,
    crash,
    flip,
    make_places,
    metrics,
    newest,
    press_ctrl_c,
    resume,
    saved_state,
    small_config,
    start,
    tables,
    with_sections,
    without_costs,
)
from struck import INTERRUPT, KILL, struck
from tables import changed, tabular

LAST, EVALUATED = 6, (1, 4, 6)
SMALL_FLOP, BUCKETS = "the small flop game", "buckets of leduc"  # stand for the paths of files
EVALUATION = {"every": 4, "at": (1,)}


def deep(game: str = "kuhn", **changes: Any) -> RunConfig:
    return small_config(game, evaluation=EVALUATION, **changes)


def named(solver: Any, **changes: Any) -> RunConfig:
    """A solver's own configuration of Kuhn poker, with little of everything."""
    plain, own = deep(), default_config("kuhn", solver)
    kept = {name: getattr(plain, name) for name in ("iterations", "memory", "network", "evaluation", "runtime")}
    return with_sections(replace(own, **kept), **changes)


def table(game: str = "leduc", threads: int = 1, **settings: Any) -> RunConfig:
    runtime = deep().runtime
    settings = {"iterations": LAST, "traversals": 50, "evaluation": EvaluationConfig(**EVALUATION)} | settings  # type: ignore[arg-type]
    return tabular(**settings, game=game, runtime=replace(runtime, threads=threads))


SHORT = {"steps": 4, "batch_size": 16}
VALUES = {"sampling": {"traversals": 20}, "advantage": SHORT, "average": SHORT, "values": SHORT}
VARIANTS = {
    "deep": deep(),
    "deep, two threads": deep(runtime={"threads": 2}, advantage={"refit": "fine-tune", "draw": "merged"}),
    "table and window": deep("leduc", cfr={"first_round": "table"}, memory={"kind": "window"}),
    "panel": deep(
        "leduc",
        cfr={"first_round": "table"},
        sampling={"kind": "public-chance", "boards": 2, "samples": 9, "panel": True},
    ),
    "dream": named("dream", **VALUES),
    "nfsp": named("nfsp", nfsp={"episodes": 20, "replay_capacity": 50, "reservoir_capacity": 50, "batch_size": 16}),
    "cfr": table(solver="cfr", precision="float64"),
    "cfr+": table(solver="cfr+", threads=2),
    "dcfr": table(solver="dcfr", precision="int16", threads=2),
    "small flop": table(SMALL_FLOP, 2, solver="dcfr", precision="int16"),
    "cfr-d": table(SMALL_FLOP, 2, solver="cfr-d", boards=9),
    "external": table(solver="mccfr"),
    "external on buckets": table(solver="mccfr", abstraction=BUCKETS),
    "outcome": table(solver="mccfr", sampler="outcome"),
    "openspiel cfr+": table("openspiel:leduc_poker", solver="cfr+"),
}
KINDS = ("deep", "nfsp", "dcfr", "external on buckets", "openspiel cfr+")  # one of each class of solver


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Places:
    return make_places(tmp_path_factory.mktemp("places"))


@pytest.fixture(scope="module")
def variant(places: Places) -> Callable[[str], RunConfig]:
    """A configuration by its name."""

    def find(name: str) -> RunConfig:
        found = VARIANTS[name]
        if found.game == SMALL_FLOP:
            return replace(found, game=str(places.game))
        if found.solve.abstraction == BUCKETS:
            return changed(found, abstraction=str(places.abstraction))
        return found

    return find


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory, variant: Callable[[str], RunConfig]) -> Callable[[str], Path]:
    """The folder of an uninterrupted run by the name of its variant; not to be changed."""
    root = tmp_path_factory.mktemp("whole")

    def find(name: str) -> Path:
        if not (root / name).exists():
            observer = Recorder()
            run, summary = start(root / name, variant(name), observer)
            assert (summary.finished, summary.iterations) == (True, LAST)
            assert observer.iterations == observer.saves == [*range(1, LAST + 1)]
            assert summary.nodes_touched == read_metrics(run.metrics_path)[-1]["total_nodes_touched"]
            assert [at for at, _ in observer.results] == [*EVALUATED]
            assert summary.result == observer.results[-1][1]
        return root / name

    return find


@pytest.fixture
def run(whole: Callable[[str], Path], tmp_path: Path) -> Path:
    """A copy of the finished run of Deep CFR."""
    shutil.copytree(whole("deep"), tmp_path / "run")
    return tmp_path / "run"


def edit(path: Path, config: RunConfig) -> None:
    (path / "config.toml").write_text(config_to_toml(config))


def broken_off(path: Path, at: int, config: RunConfig | None, when: str = "iteration") -> int:
    """Begin a run, or go on with one, that crashes; returns the iteration after which it went on."""
    observer = Recorder(at=at, do=crash, when=when)
    with pytest.raises(Crash):
        start(path, config, observer) if config else resume(path, observer)
    return observer.resumed_after


def interrupted(path: Path, at: int, config: RunConfig) -> Summary:
    """Ctrl-C in iteration `at`: it is finished and saved."""
    observer = Recorder(at=at, do=press_ctrl_c)
    _, summary = start(path, config, observer)
    assert (summary.finished, summary.iterations, observer.saves[-1]) == (False, at, at)
    assert len(read_metrics(path / "metrics.jsonl")) == at
    return summary


# Stopping and going on


@pytest.mark.parametrize("name", [name for name in VARIANTS if name not in ("cfr", "external")])
def test_a_run_killed_stopped_and_damaged_ends_as_an_uninterrupted_one(
    tmp_path: Path, name: str, variant: Any, whole: Callable[[str], Path]
) -> None:
    path = tmp_path / "run"
    assert broken_off(path, 3, variant(name)) == 0
    with (path / "metrics.jsonl").open("ab") as file:
        file.write(b'{"iteration": 3, "nodes_tou')  # a torn line
    stopped = Recorder(at=4, do=press_ctrl_c)
    assert not resume(path, stopped).finished
    assert (stopped.resumed_after, stopped.iterations, stopped.saves) == (2, [3, 4], [3, 4])
    arrays = [file for file in sorted(newest(path).iterdir()) if file.name != "state.json"]
    flip(damaged := arrays[len(name) % len(arrays)])
    again = Recorder(at=5, do=crash, when="saved")
    with pytest.raises(Crash):
        resume(path, again)
    (warning,) = again.warnings
    assert f"'{damaged}' is damaged" in warning
    assert (again.resumed_after, again.iterations) == (3, [4, 5])
    last = Recorder()
    assert resume(path, last).finished
    assert (last.resumed_after, last.iterations) == (5, [6])
    assert_same_run(path, whole(name))


@pytest.mark.parametrize("name", KINDS)
def test_every_damaged_file_of_the_newest_checkpoint_is_named_and_another_seed_is_another_run(
    tmp_path: Path, name: str, variant: Any, whole: Callable[[str], Path]
) -> None:
    shutil.copytree(whole(name), tmp_path / "run")
    saved, before = RunFolder.open(tmp_path / "run"), saved_state(whole(name))
    for file in sorted(newest(saved.path).iterdir()):
        good = file.read_bytes()
        flip(file)
        warnings: list[str] = []
        solver, _ = saved.load_solver(warnings.append, memories=True)
        assert solver.iteration == LAST - 1
        assert [f"'{file}' is damaged" in warning for warning in warnings] == [True]
        file.write_bytes(good)
    start(tmp_path / "other", replace(variant(name), seed=1))
    other = saved_state(tmp_path / "other")
    same = [key for key in before if key != "state.json" and before[key] != other.get(key)] == []
    assert same == (name == "openspiel cfr+")  # which draws nothing; 16 bits are rounded at random
    resumed = Recorder()
    summary = resume(saved.path, resumed)
    assert (summary.finished, resumed.iterations, resumed.saves) == (True, [], [])
    assert summary.result is not None
    assert summary.result.nash_conv == metrics(whole(name))[-1]["evaluation"]["nash_conv"]
    assert contents(saved.path) == contents(whole(name))


def test_a_run_broken_off_in_an_evaluation_or_its_last_save_loses_one_iteration_at_most(
    tmp_path: Path, whole: Callable[[str], Path]
) -> None:
    for when, at, kept in (("evaluated", 4, 3), ("evaluated", LAST, 5), ("saved", LAST, LAST)):
        path = tmp_path / f"{when} {at}"
        broken_off(path, at, deep(), when)
        observer = Recorder()
        assert resume(path, observer).finished
        assert observer.resumed_after == kept
        assert_same_run(path, whole("deep"))


def test_a_run_stopped_after_every_iteration_is_the_same_run(tmp_path: Path) -> None:
    config = small_config(iterations=4)
    start(tmp_path / "whole", config)
    summary = interrupted(tmp_path / "run", 1, config)
    for at in (2, 3, 4):  # in the last iteration it changes nothing
        assert not summary.finished
        summary = resume(tmp_path / "run", Recorder(at=at, do=press_ctrl_c))
    assert summary.finished
    assert_same_run(tmp_path / "run", tmp_path / "whole")


@pytest.mark.parametrize("name", ["deep", "dcfr", "external on buckets", "openspiel cfr+"])
def test_more_iterations_go_on_from_the_last_and_evaluations_look_on(
    tmp_path: Path, name: str, variant: Any, whole: Callable[[str], Path]
) -> None:
    longer = with_sections(variant(name), iterations=LAST + 2, evaluation=EvaluationConfig())
    start(tmp_path / "whole", longer)
    shutil.copytree(whole(name), tmp_path / "run")
    saved = RunFolder.open(tmp_path / "run")
    saved.extend(LAST + 2)
    train(saved, Recorder())
    assert saved_state(saved.path) == saved_state(tmp_path / "whole")


def test_full_width_tables_do_not_depend_on_threads(tmp_path: Path, whole: Callable[[str], Path], variant: Any) -> None:
    start(tmp_path / "run", changed(variant("dcfr"), threads=1))
    assert_same_run(tmp_path / "run", whole("dcfr"))


def test_an_evaluation_that_a_signal_breaks_off_is_made_when_the_run_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = deep("leduc", iterations=4)
    start(tmp_path / "whole", config)
    for at in (1, 4):
        path = tmp_path / str(at)
        with monkeypatch.context() as patched:
            patched.setattr("deepcfr.run.train._PATIENCE", 0.0)
            observer = Recorder(at=at, do=press_ctrl_c)
            _, summary = start(path, config, observer)
        assert (summary.finished, summary.iterations, observer.saves[-1]) == (False, at, at)
        assert [iteration for iteration, _ in observer.results if iteration == at] == []
        last = metrics(path)[-1]
        assert (last["unmeasured"], "evaluation" in last) == (True, False)
        observer = Recorder()
        assert resume(path, observer).finished
        assert observer.results[0][0] == at
        assert_same_run(path, tmp_path / "whole")


def test_an_evaluation_that_soon_ends_is_not_broken_off_and_reports_every_board(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("deepcfr.run.train._PATIENCE", 200.0)
    observer = Recorder(at=1, do=press_ctrl_c)
    _, summary = start(tmp_path / "run", deep("leduc", iterations=1), observer)
    assert summary.finished
    assert summary.result is not None
    assert observer.boards == [(1, done, 3) for done in (1, 2, 3)]  # a jack, a queen and a king: suits are merged


def test_a_second_ctrl_c_stops_at_once_and_costs_what_a_crash_costs(
    tmp_path: Path, whole: Callable[[str], Path]
) -> None:
    def press_twice() -> None:
        press_ctrl_c()
        press_ctrl_c()

    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        start(tmp_path / "run", deep(), Recorder(at=4, do=press_twice))
    assert signal.getsignal(signal.SIGINT) is before
    assert newest(tmp_path / "run").name == "0000003"
    assert resume(tmp_path / "run").finished
    assert signal.getsignal(signal.SIGINT) is before
    assert_same_run(tmp_path / "run", whole("deep"))


def test_a_run_whose_checkpoints_are_all_damaged_says_so_and_changes_nothing(tmp_path: Path) -> None:
    run, _ = start(tmp_path / "run", changed(VARIANTS["external"], iterations=2))
    for kept in (run.path / "checkpoints").glob("[0-9]*"):
        os.truncate(kept / "average.npy", 200)
    before = contents(run.path)
    with pytest.raises(CheckpointError) as caught:
        resume(run.path)
    assert f"No checkpoint of '{run.path}' is undamaged." in caught.value.problems
    assert contents(run.path) == before


def test_a_run_killed_before_its_first_checkpoint_starts_again(tmp_path: Path, whole: Callable[[str], Path]) -> None:
    broken_off(tmp_path / "run", 1, VARIANTS["outcome"])
    run = RunFolder.open(tmp_path / "run")
    with pytest.raises(CheckpointError, match="has no checkpoint yet"):
        run.load_policy("average", pytest.fail)
    assert resume(run.path).finished
    assert_same_run(run.path, whole("outcome"))


def test_a_run_without_a_checkpoint_is_not_resumed_by_the_command(tmp_path: Path) -> None:
    run = RunFolder.create(tmp_path / "run", deep())
    before = contents(run.path)
    again = f"deepcfr train kuhn --config {run.path}/config.toml --out {run.path}-again"
    assert problem(deepcfr("resume", run.path)) == (
        f"'{run.path}' has no checkpoint to go on from: begin again with '{again}'."
    )
    assert contents(run.path) == before
    assert "holds a run, which has no checkpoint: remove it" in problem(deepcfr("train", "kuhn", "--out", run.path))


def test_a_run_does_not_need_the_abstraction_that_it_was_made_with(tmp_path: Path, whole: Any, places: Places) -> None:
    shutil.copytree(places.abstraction, tmp_path / "buckets")
    settings = changed(VARIANTS["external on buckets"], abstraction=str(tmp_path / "buckets"))
    interrupted(tmp_path / "run", 3, settings)
    assert contents(tmp_path / "run" / "abstraction") == contents(places.abstraction)
    (tmp_path / "buckets").rename(tmp_path / "elsewhere")
    assert resume(tmp_path / "run").finished
    assert tables(tmp_path / "run") == tables(whole("external on buckets"))
    assert metrics(tmp_path / "run") == metrics(whole("external on buckets"))


def test_metrics_that_end_before_the_checkpoint_are_said_to_be_lost(run: Path) -> None:
    file = run / "metrics.jsonl"
    os.truncate(file, file.stat().st_size - 20)
    observer = Recorder()
    resume(run, observer)
    assert observer.warnings == [
        f"'{file}' ends with iteration {LAST - 1}, and the checkpoint is of {LAST}: the lines between them are lost."
    ]


# Settings of a run that has begun


@pytest.mark.parametrize("name", ["config.toml", "game.json"])
def test_a_damaged_configuration_or_game_is_refused_and_named(tmp_path: Path, name: str) -> None:
    run = RunFolder.create(tmp_path / "run", deep())
    data, passed, refusals = (run.path / name).read_bytes(), 0, list[str]()
    for at in range(0, len(data), 11):
        (run.path / name).write_bytes(data[:at] + bytes([data[at] ^ 1 << at % 8]) + data[at + 1 :])
        try:
            found = RunFolder.open(run.path)
        except (CheckpointError, ConfigError) as error:
            refusals.append(str(error))
        else:  # the mark of the checksum is damaged, or white space is
            assert (found.config, found.source) == (run.config, run.source)
            passed += 1
    assert passed < 15 < len(refusals)
    assert all(f"'{run.path / name}'" in sentence for sentence in refusals)


def test_a_configuration_edited_on_purpose_is_taken_without_its_checksum_and_gets_another(run: Path) -> None:
    file = run / "config.toml"
    text = file.read_text().replace("iterations = 6", "iterations = 7")
    file.write_text(text)
    with pytest.raises(ConfigError, match=r"If you changed it on purpose, delete its last line\."):
        resume(run)
    body = "".join(text.splitlines(keepends=True)[:-1])
    file.write_text(body)
    assert resume(run).iterations == 7
    assert file.read_text() == signed_toml(body) != body
    edit(run, small_config(iterations=3))
    assert resume(run).finished  # fewer iterations than done are done


def test_a_run_is_not_made_shorter_or_longer_than_its_schedules(tmp_path: Path, run: Path) -> None:
    before = contents(run)
    with pytest.raises(ConfigError, match="run of 6 iterations: --iterations must be more, but is 6"):
        RunFolder.open(run).extend(6)
    with pytest.raises(ConfigError, match=r"'iterations' must be between 1 and 100,000,000, but is 100,000,001"):
        RunFolder.open(run).extend(100_000_001)
    used = read_metrics(run / "metrics.jsonl")[-1]["seconds"] / 60
    with pytest.raises(ConfigError, match="--minutes, the time in all, must be more, but is"):
        RunFolder.open(run).allow(used)
    assert contents(run) == before
    saved = RunFolder.open(run)
    saved.allow(2 * used + 1)
    assert contents(run) == before  # nothing is written before training begins
    assert train(saved, Recorder()).finished
    assert RunFolder.open(run).config.runtime.minutes == 2 * used + 1
    learnt = RunFolder.create(tmp_path / "nfsp", RunConfig(game="kuhn", solver="nfsp"))
    with pytest.raises(ConfigError, match="NFSP cannot go on past its last iteration"):
        learnt.extend(10**7)


def test_a_checkpoint_of_another_tabular_solver_is_refused(tmp_path: Path, whole: Any) -> None:
    shutil.copytree(whole("dcfr"), tmp_path / "run")
    for change in ({"precision": "float64"}, {"solver": "cfr"}, {"solver": "mccfr", "precision": "float32"}):
        edit(tmp_path / "run", changed(VARIANTS["dcfr"], **change))
        with pytest.raises(CheckpointError, match="belongs to another game or solver"):
            resume(tmp_path / "run")
    assert tables(tmp_path / "run") == tables(whole("dcfr"))


def test_what_cannot_be_trained_keeps_its_configuration(tmp_path: Path, run: Path) -> None:
    export(RunFolder.open(run), tmp_path / "export", pytest.fail)
    exported = RunFolder.open(tmp_path / "export")
    before = contents(exported.path)
    exported.extend(9)
    with pytest.raises(CheckpointError, match="was saved without its memories"):
        train(exported, Recorder())
    assert contents(exported.path) == before


def test_a_loss_that_is_no_number_stops_the_run_and_earlier_checkpoints_stay_good(tmp_path: Path) -> None:
    sound = deep(network={"layers": 64}, iterations=4)
    start(tmp_path / "whole", sound)
    interrupted(tmp_path / "run", 3, sound)
    before = contents(tmp_path / "run" / "checkpoints")
    edit(tmp_path / "run", with_sections(sound, advantage={"learning_rate": 10.0}))
    diverged = r"^The loss is not a number after 4 of 4 steps at learning rate 10"
    with pytest.raises(TrainingError, match=diverged):
        resume(tmp_path / "run")
    assert contents(tmp_path / "run" / "checkpoints") == before
    edit(tmp_path / "run", sound)
    assert resume(tmp_path / "run").finished
    assert saved_state(tmp_path / "run") == saved_state(tmp_path / "whole")
    with pytest.raises(TrainingError, match=diverged):
        start(
            tmp_path / "other",
            with_sections(sound, average={"learning_rate": 10.0}, evaluation=EvaluationConfig(at=(3,))),
        )
    assert newest(tmp_path / "other").name == "0000002"


# What is recorded

TABLE_LINE = {"iteration", "nodes_touched", "total_nodes_touched", "seconds", "resident_bytes"}
DEEP_LINE = TABLE_LINE | {
    "traversals", "evaluated", "trained", "traversal_seconds", "fit_seconds", "advantage_loss", "advantage_samples",
    "strategy_samples",
}  # fmt: skip
FITTED = {"average_loss", "average_examples", "average_fit_seconds", "evaluated_policy"}


@pytest.mark.parametrize("name", ["deep", "dcfr", "external on buckets", "openspiel cfr+"])
def test_every_iteration_has_its_line_and_the_folder_holds_what_was_measured_last(
    name: str, whole: Callable[[str], Path]
) -> None:
    lines = read_metrics(whole(name) / "metrics.jsonl")
    assert [line["iteration"] for line in lines] == list(range(1, LAST + 1))
    plain = DEEP_LINE if name == "deep" else TABLE_LINE | {"iteration_seconds"}
    for line in lines:
        measured = {"evaluation"} | (FITTED if name == "deep" else set())
        assert set(line) == (plain | measured if line["iteration"] in EVALUATED else plain)
        parts = line.get("traversal_seconds", 0), line.get("fit_seconds", 0), line.get("iteration_seconds", 0)
        assert line["seconds"] > sum(parts) > 0
    touched = [line["nodes_touched"] for line in lines]
    assert min(touched) > 0
    assert [line["total_nodes_touched"] for line in lines] == [sum(touched[: t + 1]) for t in range(LAST)]
    assert [line["seconds"] for line in lines] == sorted(line["seconds"] for line in lines)
    policy, solver = RunFolder.open(whole(name)).load_policy("average", pytest.fail)
    assert (solver.iteration, getattr(solver, "average_iteration", LAST)) == (LAST, LAST)
    facts = without_costs(dataclasses.asdict(exploitability(policy)))
    facts["best_response_values"] = list(facts["best_response_values"])
    assert facts == metrics(whole(name))[-1]["evaluation"]


def test_the_figures_of_deep_cfr_are_those_of_its_settings(whole: Callable[[str], Path]) -> None:
    lines = read_metrics(whole("deep") / "metrics.jsonl")
    for line in lines:
        assert (line["traversals"], line["trained"]) == (2 * 20, 2 * 4 * 16)
        assert line.get("average_examples", 4 * 16) == 4 * 16
        assert 0 < line["evaluated"] < line["nodes_touched"]
        assert len(line["advantage_loss"]) == len(line["advantage_samples"]) == 2
        assert min(line["advantage_loss"]) > 0
    assert (lines[-1]["advantage_samples"], lines[-1]["strategy_samples"]) == ([80, 80], 80)


def test_tables_in_a_checkpoint_are_plain_sums_over_iterations(whole: Callable[[str], Path]) -> None:
    average = np.load(newest(whole("cfr")) / "average-0-values.npy", allow_pickle=False)
    actions = average.reshape(14, 3)  # six decisions with 2, 2, 3, 3, 2 and 2 actions in some order; three cards
    assert (actions >= 0).all()
    # CFR weighs all iterations alike, and nothing stands before the root: its two actions share one each iteration.
    assert actions[:2].sum(0) == pytest.approx(LAST, rel=1e-12)


def test_seconds_add_up_over_sessions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    readings = count(0.0)
    monkeypatch.setattr("deepcfr.run.train.time", SimpleNamespace(perf_counter=lambda: next(readings)))
    interrupted(tmp_path / "run", 3, deep())
    before = read_metrics(tmp_path / "run" / "metrics.jsonl")[-1]["seconds"]
    readings = count(1e6)  # a long time after, not spent on the run
    summary = resume(tmp_path / "run")
    lines = read_metrics(tmp_path / "run" / "metrics.jsonl")
    assert before < lines[3]["seconds"] < before + 1000
    assert summary.seconds >= lines[-1]["seconds"] > lines[3]["seconds"]


@pytest.mark.parametrize("seconds, expected", [(0, [1, 2, 3, 4, 5, 6]), (4, [4, 6]), (1000, [6])])
def test_checkpoints_are_written_once_enough_time_has_passed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seconds: int, expected: list[int]
) -> None:
    clock = SimpleNamespace(now=1000.0)
    monkeypatch.setattr("deepcfr.run.train.time", SimpleNamespace(perf_counter=lambda: clock.now))
    observer = Recorder()

    def tick(record: Any, _seconds: float) -> None:  # an iteration takes a second
        clock.now += 1
        observer.iterations.append(record.iteration)

    monkeypatch.setattr(observer, "iteration", tick)
    _, summary = start(tmp_path / "run", changed(table(), checkpoint_seconds=seconds), observer)
    assert observer.saves == expected
    assert summary.seconds == LAST


@pytest.mark.parametrize(
    "every, at, expected", [(0, (), (6,)), (2, (), (2, 4, 6)), (0, (3, 6, 9), (3, 6)), (5, (5, 5), (5, 6))]
)
def test_evaluations_are_at_the_configured_iterations_and_the_last(
    tmp_path: Path, every: int, at: tuple[int, ...], expected: tuple[int, ...]
) -> None:
    run, _ = start(tmp_path / "run", replace(table("kuhn"), evaluation=EvaluationConfig(every, at)))
    assert tuple(line["iteration"] for line in metrics(run.path) if "evaluation" in line) == expected


def test_a_time_limit_before_the_first_snapshot_loses_nothing(tmp_path: Path) -> None:
    config = small_config(
        iterations=500,
        cfr={"keep_networks": 400},
        evaluation={"policy": "sd-cfr"},
        runtime={"minutes": 1e-4, "checkpoint_seconds": 1_000},
    )
    observer = Recorder()
    run, summary = start(tmp_path / "run", config, observer)
    (iteration,) = observer.saves
    assert iteration == observer.iterations[-1] == summary.iterations < 400
    assert observer.results == [(iteration, None)]
    assert f"'{run.path}' has kept no networks" in observer.warnings[-1]
    assert read_metrics(run.metrics_path)[-1]["iteration"] == iteration


def test_what_a_run_goes_on_with_is_recorded_beside_what_began_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = RunFolder.create(tmp_path / "run", deep())
    first = json.loads((run.path / "environment.json").read_text())
    run.note_resumption(3)  # with the same of everything
    assert json.loads((run.path / "environment.json").read_text()) == first
    for iteration, command in ((3, "resume it"), (5, "resume it"), (7, "finish it")):
        monkeypatch.setattr("sys.argv", ["deepcfr", *command.split()])
        run.note_resumption(iteration)
    found = json.loads((run.path / "environment.json").read_text())
    resumed = [(sitting["iteration"], sitting["command"]) for sitting in found.pop("resumed")]
    assert resumed == [(3, "deepcfr resume it"), (7, "deepcfr finish it")]
    assert found == first


# One folder, one run, one process


def test_a_folder_that_holds_a_run_or_several_is_not_started_again(tmp_path: Path, run: Path) -> None:
    before = contents(run)
    with pytest.raises(CheckpointError, match="already holds a run"):
        RunFolder.create(run, deep())
    with pytest.raises(CheckpointError, match=r"holds other runs, such as '.*run': choose another folder"):
        RunFolder.create(tmp_path, deep())
    assert contents(run) == before
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_one_process_at_a_time_begins_and_trains_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "new"
    path.mkdir()
    refused = pytest.raises(CheckpointError, match="is being trained by another process")
    with trained_here(path), refused:
        RunFolder.create(path, deep())
    assert contents(path) == {}
    interrupted(tmp_path / "run", 3, deep())
    before = contents(tmp_path / "run")
    with trained_here(tmp_path / "run"), refused:
        resume(tmp_path / "run")
    assert contents(tmp_path / "run") == before
    assert resume(tmp_path / "run").finished

    first, second = (RunFolder.plan(path, replace(deep(), seed=seed)) for seed in (1, 2))
    found = folder.environment("cpu", 1)

    def interleaved(device: str, threads: int) -> dict[str, Any]:  # in the middle of `first.begin`
        monkeypatch.setattr(folder, "environment", lambda _device, _threads: found)
        with refused:
            second.begin()
        return found | {"device": device, "threads": threads}

    monkeypatch.setattr(folder, "environment", interleaved)
    first.begin()
    assert RunFolder.open(path).config.seed == 1


# In a process of its own, with real signals


def long(config: RunConfig) -> RunConfig:
    """So many iterations that a signal falls between them."""
    return with_sections(config, iterations=200, solve={"traversals": 500}, evaluation=EvaluationConfig(every=25))


@pytest.mark.parametrize(
    "name", ["deep", *(pytest.param(name, marks=pytest.mark.long) for name in ("dcfr", "external on buckets"))]
)
def test_kill_9_and_then_ctrl_c_in_the_terminal_do_not_change_the_run(tmp_path: Path, name: str, variant: Any) -> None:
    config = replace(long(variant(name)), iterations=16 if name == "deep" else 200)
    start(tmp_path / "whole", with_sections(config, runtime={"checkpoint_seconds": 1_000}))
    edit(tmp_path, config)
    seed = time.time_ns()
    print(f"the moment comes from seed {seed}")  # shown when the test fails
    path = tmp_path / "run"
    command = "train" if name == "deep" else "solve"
    begin = (command, config.game, "--config", tmp_path / "config.toml", "--out", path)
    status, _, _ = struck(KILL, 6, *begin, after=random.Random(seed).uniform(0, 0.05))
    assert status == -KILL
    done = len(read_metrics(path / "metrics.jsonl"))
    checkpoint = RunFolder.open(path).checkpoint(pytest.fail)
    assert checkpoint is not None
    assert checkpoint.iteration >= done - 1

    status, out, err = struck(INTERRUPT, done + 4, "resume", path)
    assert (status, "Traceback" in err) == (0, False)
    assert out.count("Stopping after this iteration, which is then saved.") == 1
    stopped = re.search(rf"Stopped after iteration (\d+) and saved\. Go on with: deepcfr resume {path}\n", out)
    assert stopped
    assert done < int(stopped[1]) < config.iterations
    assert newest(path).name == f"{int(stopped[1]):07d}"
    assert resume(path).finished
    assert_same_run(path, tmp_path / "whole")
    found = json.loads((path / "environment.json").read_text())
    assert found["command"].startswith(f"deepcfr {command} ")
    assert found["resumed"][0]["command"] == f"deepcfr resume {path}"


def test_a_signal_that_ends_a_process_saves_too_and_is_its_status(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    append = deepcfr_train.append_metrics

    def watched(path: Path, record: dict[str, Any]) -> None:
        append(path, record)
        if record["iteration"] == 4:
            signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr(deepcfr_train, "append_metrics", watched)
    path = tmp_path / "run"
    edit(tmp_path, deep(runtime={"checkpoint_seconds": 1_000}))
    status, out, err = deepcfr("train", "kuhn", "--config", tmp_path / "config.toml", "--out", path)
    assert status == 128 + signal.SIGTERM
    assert f"Stopped after iteration 4 and saved. Go on with: deepcfr resume {path}\n" in out
    assert newest(path).name == "0000004"
    assert err.endswith("deepcfr: ended by SIGTERM.\n")
