"""A tabular run is the same run however often it is stopped, killed or broken off; and it says what it will cost."""

import dataclasses
import io
import json
import os
import random
import re
import shutil
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from deepcfr.config import EvaluationConfig, RunConfig, RuntimeConfig, config_to_toml
from deepcfr.core.errors import CheckpointError, ConfigError
from deepcfr.game.betting import build_tree
from deepcfr.game.poker import PokerGame
from deepcfr.game.presets import load_rules
from deepcfr.measure.exploitability import exploitability
from deepcfr.run import costs
from deepcfr.run import train as loop
from deepcfr.run.costs import cost_notes
from deepcfr.run.folder import RunFolder
from deepcfr.run.live import LiveObserver
from deepcfr.run.metrics import read_metrics
from deepcfr.run.train import Summary, train
from deepcfr.solve.vector_cfr import VectorCFR
from solve_runs import (
    Crash,
    Places,
    Recorder,
    assert_same_run,
    contents,
    crash,
    make_places,
    metrics,
    newest,
    press_ctrl_c,
    tables,
    without_costs,
)
from struck import INTERRUPT, KILL, struck
from tables import changed, tabular

LAST = 7
SMALL_FLOP, BUCKETS = "the small flop game", "buckets of leduc"  # stand for the paths of files


def config(game: str = "leduc", threads: int = 1, **settings: Any) -> RunConfig:
    """Seven iterations, a checkpoint after each, evaluations after 3, 6 and 7."""
    settings = {"iterations": LAST, "traversals": 50} | settings
    return tabular(
        **settings,
        game=game,
        evaluation=EvaluationConfig(every=3),
        runtime=RuntimeConfig(threads=threads, keep=2, checkpoint_seconds=0),
    )


FULL_WIDTH = {
    f"{algorithm} {precision}, {threads} threads": config(solver=algorithm, precision=precision, threads=threads)
    for algorithm in ("cfr", "cfr+", "linear-cfr", "dcfr")
    for precision in ("float64", "float32", "int16")
    for threads in (1, 2)
}
BOARDS = {
    f"small flop {precision}, 2 threads": config(SMALL_FLOP, 2, solver="dcfr", precision=precision)
    for precision in ("float64", "float32", "int16")
}
MONTE_CARLO = {
    "external": config(solver="mccfr"),
    "external on buckets": config(solver="mccfr", abstraction=BUCKETS),
    "external in float64, uniform": config(solver="mccfr", precision="float64", weighting="uniform"),
    "external on boards": config(SMALL_FLOP, solver="mccfr"),
    "outcome": config(solver="mccfr", sampler="outcome"),
    "outcome on buckets": config(solver="mccfr", sampler="outcome", abstraction=BUCKETS),
}
OPENSPIEL = {
    "openspiel cfr+": config("openspiel:leduc_poker", solver="cfr+"),
    "openspiel dcfr": config("openspiel:leduc_poker", solver="dcfr"),
    "openspiel external": config("openspiel:leduc_poker", solver="mccfr"),
    "openspiel outcome": config("openspiel:leduc_poker", solver="mccfr", sampler="outcome"),
}
VARIANTS = FULL_WIDTH | BOARDS | MONTE_CARLO | OPENSPIEL
KINDS = ("dcfr int16, 2 threads", "external on buckets", "openspiel cfr+")  # one of each solver


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
            return replace(found, solve=replace(found.solve, abstraction=str(places.abstraction)))
        return found

    return find


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory, variant: Callable[[str], RunConfig]) -> Callable[[str], Path]:
    """The folder of an uninterrupted run by the name of its variant; not to be changed."""
    folder = tmp_path_factory.mktemp("whole")

    def find(name: str) -> Path:
        if not (folder / name).exists():
            start(folder / name, variant(name))
        return folder / name

    return find


def start(path: Path, settings: RunConfig, observer: Recorder | None = None) -> tuple[RunFolder, Summary]:
    run = RunFolder.create(path, settings)
    return run, train(run, observer or Recorder())


def resume(path: Path, observer: Recorder | None = None) -> Summary:
    return train(RunFolder.open(path), observer or Recorder())


def edit(path: Path, settings: RunConfig) -> None:
    (path / "config.toml").write_text(config_to_toml(settings))


# What is recorded

LINE = {"iteration", "nodes_touched", "iteration_seconds", "total_nodes_touched", "seconds", "resident_bytes"}


@pytest.mark.parametrize("name", KINDS)
def test_every_iteration_has_its_line_and_evaluations_are_where_they_are_due(
    name: str, whole: Callable[[str], Path]
) -> None:
    lines = read_metrics(whole(name) / "metrics.jsonl")
    assert [line["iteration"] for line in lines] == list(range(1, LAST + 1))
    for line in lines:
        assert set(line) == (LINE | {"evaluation"} if line["iteration"] in (3, 6, 7) else LINE)
    touched = [line["nodes_touched"] for line in lines]
    assert min(touched) > 0
    assert [line["total_nodes_touched"] for line in lines] == [sum(touched[: t + 1]) for t in range(LAST)]
    assert [line["seconds"] for line in lines] == sorted(line["seconds"] for line in lines)
    assert all(line["seconds"] > line["iteration_seconds"] > 0 for line in lines)


@pytest.mark.parametrize("name", KINDS)
def test_the_last_evaluation_is_of_the_policy_that_the_folder_holds(name: str, whole: Callable[[str], Path]) -> None:
    policy, solver = RunFolder.open(whole(name)).load_policy("average", pytest.fail)
    assert solver.iteration == LAST
    facts = without_costs(dataclasses.asdict(exploitability(policy)))
    assert (
        facts | {"best_response_values": list(facts["best_response_values"])} == metrics(whole(name))[-1]["evaluation"]
    )


@pytest.mark.parametrize("name", KINDS)
def test_evaluations_look_on(tmp_path: Path, name: str, variant: Any, whole: Callable[[str], Path]) -> None:
    start(tmp_path / "run", replace(variant(name), evaluation=EvaluationConfig()))
    assert tables(tmp_path / "run") == tables(whole(name))


@pytest.mark.parametrize("name", ["external", "openspiel outcome", "external on buckets"])
def test_another_seed_is_another_run(tmp_path: Path, name: str, variant: Any, whole: Callable[[str], Path]) -> None:
    start(tmp_path / "again", variant(name))
    assert_same_run(tmp_path / "again", whole(name))
    start(tmp_path / "other", replace(variant(name), seed=1))
    assert tables(tmp_path / "other") != tables(whole(name))


@pytest.mark.parametrize("precision", ["float64", "float32", "int16"])
def test_full_width_tables_do_not_depend_on_threads(precision: str, whole: Callable[[str], Path]) -> None:
    assert_same_run(whole(f"dcfr {precision}, 1 threads"), whole(f"dcfr {precision}, 2 threads"))


def test_the_variants_and_precisions_differ(whole: Callable[[str], Path]) -> None:
    values = {metrics(whole(name))[-1]["evaluation"]["nash_conv"] for name in FULL_WIDTH if "1 threads" in name}
    assert len(values) == 4 * 3


# Stopping and going on


@pytest.mark.parametrize("name", VARIANTS)
def test_a_run_broken_off_between_checkpoints_ends_as_an_uninterrupted_one(
    tmp_path: Path, name: str, variant: Any, whole: Callable[[str], Path]
) -> None:
    with pytest.raises(Crash):
        start(tmp_path / "run", variant(name), Recorder(at=5, do=crash))
    observer = Recorder()
    assert resume(tmp_path / "run", observer).finished
    assert (observer.resumed_after, observer.iterations) == (4, [5, 6, 7])
    assert_same_run(tmp_path / "run", whole(name))


@pytest.mark.parametrize("name", VARIANTS)
def test_ctrl_c_finishes_the_iteration_saves_and_resuming_gives_the_same_run(
    tmp_path: Path, name: str, variant: Any, whole: Callable[[str], Path]
) -> None:
    observer = Recorder(at=3, do=press_ctrl_c)
    _, summary = start(tmp_path / "run", variant(name), observer)
    assert (summary.finished, summary.iterations, observer.saves) == (False, 3, [1, 2, 3])
    assert resume(tmp_path / "run").finished
    assert_same_run(tmp_path / "run", whole(name))


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("when", ["iteration", "evaluated", "saved"])
def test_at_most_one_checkpoint_interval_is_lost_wherever_a_run_breaks_off(
    tmp_path: Path, name: str, when: str, variant: Any, whole: Callable[[str], Path]
) -> None:
    for at in {"iteration": (1, 2, 6, 7), "evaluated": (3, 6, 7), "saved": (2, 4, 6, 7)}[when]:
        path = tmp_path / str(at)
        with pytest.raises(Crash):
            start(path, variant(name), Recorder(at=at, do=crash, when=when))
        observer = Recorder()
        assert resume(path, observer).finished
        assert observer.resumed_after == (at if when == "saved" else at - 1)
        assert_same_run(path, whole(name))


@pytest.mark.parametrize("name", KINDS)
def test_a_run_stopped_after_every_iteration_is_the_same_run(
    tmp_path: Path, name: str, variant: Any, whole: Callable[[str], Path]
) -> None:
    _, summary = start(tmp_path / "run", variant(name), Recorder(at=1, do=press_ctrl_c))
    for at in range(2, LAST + 1):
        assert not summary.finished
        summary = resume(tmp_path / "run", Recorder(at=at, do=press_ctrl_c))
    assert summary.finished
    assert_same_run(tmp_path / "run", whole(name))


@pytest.mark.parametrize("name", KINDS)
def test_every_damaged_file_of_the_newest_checkpoint_is_named_and_the_run_ends_the_same(
    tmp_path: Path, name: str, variant: Any, whole: Callable[[str], Path]
) -> None:
    with pytest.raises(Crash):
        start(tmp_path / "run", variant(name), Recorder(at=5, do=crash))
    files = sorted(file.name for file in newest(tmp_path / "run").iterdir())
    assert len(files) == {"dcfr int16, 2 threads": 9, "external on buckets": 3, "openspiel cfr+": 3}[name]
    for number, file in enumerate(files):
        path = tmp_path / str(number)
        shutil.copytree(tmp_path / "run", path)
        damaged = path / "checkpoints" / "0000004" / file
        data = bytearray(damaged.read_bytes())
        data[-len(data) // 3] ^= 4
        damaged.write_bytes(data)
        observer = Recorder()
        resume(path, observer)
        assert observer.resumed_after == 3
        (warning,) = observer.warnings
        assert f"'{damaged}' is damaged" in warning
        assert_same_run(path, whole(name))


def test_a_run_with_one_checkpoint_that_is_damaged_says_so_and_changes_nothing(tmp_path: Path, variant: Any) -> None:
    settings = replace(variant("external"), runtime=RuntimeConfig(threads=1, keep=1, checkpoint_seconds=0))
    run, _ = start(tmp_path / "run", settings)
    os.truncate(newest(run.path) / "average.npy", 200)
    before = contents(run.path)
    with pytest.raises(CheckpointError) as caught:
        resume(run.path)
    assert f"No checkpoint of '{run.path}' is undamaged." in caught.value.problems
    assert contents(run.path) == before


@pytest.mark.parametrize("name", KINDS)
def test_resuming_a_finished_run_changes_no_byte_and_gives_its_result_again(
    tmp_path: Path, name: str, whole: Callable[[str], Path]
) -> None:
    shutil.copytree(whole(name), tmp_path / "run")
    observer = Recorder()
    summary = resume(tmp_path / "run", observer)
    assert (summary.finished, summary.iterations, observer.iterations, observer.saves) == (True, LAST, [], [])
    assert summary.result is not None
    assert summary.result.nash_conv == metrics(whole(name))[-1]["evaluation"]["nash_conv"]
    assert contents(tmp_path / "run") == contents(whole(name))


@pytest.mark.parametrize("name", KINDS)
def test_more_iterations_go_on_from_the_last(
    tmp_path: Path, name: str, variant: Any, whole: Callable[[str], Path]
) -> None:
    settings = variant(name)
    longer = replace(settings, iterations=LAST + 2)
    start(tmp_path / "whole", longer)
    shutil.copytree(whole(name), tmp_path / "run")
    run = RunFolder.open(tmp_path / "run")
    run.extend(LAST + 2)
    run.keep_config()
    assert resume(tmp_path / "run").iterations == LAST + 2
    assert tables(tmp_path / "run") == tables(tmp_path / "whole")


@pytest.mark.parametrize(
    "change",
    [{"precision": "float64"}, {"solver": "cfr"}, {"solver": "mccfr", "precision": "float32"}],
)
def test_a_checkpoint_of_another_solver_is_refused(tmp_path: Path, change: dict[str, Any], whole: Any) -> None:
    name = "dcfr int16, 2 threads"
    shutil.copytree(whole(name), tmp_path / "run")
    edit(tmp_path / "run", changed(VARIANTS[name], **change))
    with pytest.raises(CheckpointError, match="belongs to another game or solver"):
        resume(tmp_path / "run")
    assert tables(tmp_path / "run") == tables(whole(name))


def test_a_run_does_not_need_the_abstraction_that_it_was_made_with(tmp_path: Path, whole: Any, places: Places) -> None:
    shutil.copytree(places.abstraction, tmp_path / "buckets")
    settings = VARIANTS["external on buckets"]
    settings = replace(settings, solve=replace(settings.solve, abstraction=str(tmp_path / "buckets")))
    run, _ = start(tmp_path / "run", settings, Recorder(at=3, do=press_ctrl_c))
    assert contents(run.path / "abstraction") == contents(places.abstraction)
    (tmp_path / "buckets").rename(tmp_path / "elsewhere")
    assert resume(run.path).finished
    assert_same_run(run.path, whole("external on buckets"))


# When checkpoints are written


class Clock:
    """A clock that stands still unless it is moved."""

    def __init__(self) -> None:
        self.now = 1000.0

    def perf_counter(self) -> float:
        return self.now


@pytest.mark.parametrize("seconds, expected", [(0, [1, 2, 3, 4, 5, 6, 7]), (3, [3, 6, 7]), (1000, [7])])
def test_checkpoints_are_written_once_enough_time_has_passed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seconds: int, expected: list[int]
) -> None:
    clock = Clock()
    monkeypatch.setattr(loop, "time", clock)  # the loop's own clock: an iteration takes a second
    observer = Recorder()

    def tick(record: Any, _seconds: float) -> None:
        clock.now += 1
        observer.iterations.append(record.iteration)

    monkeypatch.setattr(observer, "iteration", tick)
    runtime = RuntimeConfig(threads=1, checkpoint_seconds=seconds)
    _, summary = start(tmp_path / "run", replace(config(), runtime=runtime), observer)
    assert observer.saves == expected
    assert summary.seconds == LAST


# What it costs, said first


@pytest.mark.parametrize("precision, size", [("float64", 8), ("float32", 4), ("int16", 2)])
def test_the_memory_of_flop_holdem_is_that_of_all_its_hands(precision: str, size: int) -> None:
    # 169 hands before the flop and 1,286,792 with it differ by more than suits; 1,755 flops, 80 bytes for each of 1,326.
    rules = load_rules("fhp")
    tree = build_tree(rules)
    actions = [int(tree.legal[: tree.num_decisions][tree.round[: tree.num_decisions] == r].sum()) for r in (0, 1)]
    expected = 2 * size * (169 * actions[0] + 1_286_792 * actions[1]) + 1326 * 80 * (1 + 1755)
    note, *_ = cost_notes(config("fhp", solver="dcfr", precision=precision), rules)
    assert f"take {expected / 1e9:.2f} GB" in note


def test_tables_that_cannot_fit_are_refused_with_the_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(costs, "usable_memory", lambda: 1_000_000_000)
    with pytest.raises(ConfigError) as caught:
        cost_notes(config("fhp", solver="cfr+", precision="float64"), load_rules("fhp"))
    (sentence,) = caught.value.problems
    assert re.search(r"tables of fhp in float64 need \d+\.\d GB, and there are 1\.0 GB", sentence)


@pytest.mark.parametrize("name", FULL_WIDTH)
def test_the_estimate_of_memory_covers_the_tables(name: str, whole: Callable[[str], Path]) -> None:
    array_bytes = sum(np.load(file).nbytes for file in newest(whole(name)).glob("*.npy"))
    assert 0 < array_bytes <= VectorCFR.memory_bytes(PokerGame(load_rules("leduc")), VARIANTS[name])


@pytest.mark.parametrize("algorithm", ["cfr", "cfr+", "linear-cfr", "dcfr"])
def test_time_and_memory_are_said_before_the_first_iteration(tmp_path: Path, algorithm: str) -> None:
    observer = Recorder(at=1, do=crash)
    with pytest.raises(Crash):
        start(tmp_path / "run", config(solver=algorithm), observer)
    memory, *_, duration = observer.notes
    assert re.fullmatch(r"tables .*take 0\.00 GB, and a checkpoint about as much on disk", memory)
    assert re.match(r"7 iterations take about \d+ s, [\d.e-]+ s each", duration)


def test_what_a_run_does_is_said_before_its_time_is_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    console, shown = Console(file=io.StringIO()), list[str]()
    measure = VectorCFR.seconds_per_iteration
    monkeypatch.setattr(
        VectorCFR,
        "seconds_per_iteration",
        lambda solver: shown.append(console.file.getvalue()) or measure(solver),
    )
    with LiveObserver(console) as observer:
        train(RunFolder.create(tmp_path / "run", config()), observer)
    assert shown[0].startswith("linear-cfr on leduc: 7 iterations")


def test_trying_boards_for_the_estimate_does_not_change_the_tables(tmp_path: Path, whole: Any) -> None:
    settings = VARIANTS["linear-cfr int16, 1 threads"]
    run = RunFolder.create(tmp_path / "run", settings)
    solver, _ = run.load_solver(pytest.fail, memories=True)
    for _ in solver.iterations():
        assert list(costs.time_notes(solver, settings)) != [] or solver.iteration == LAST
    run.save(solver, 0.0)
    assert tables(run.path) == tables(whole("linear-cfr int16, 1 threads"))


def first_notes(path: Path, settings: RunConfig) -> str:
    """The lines before the first iteration."""
    observer = Recorder(at=1, do=crash)
    with pytest.raises(Crash):
        start(path, settings, observer)
    return "\n".join(observer.notes)


def test_a_monte_carlo_run_says_its_memory_first(tmp_path: Path, variant: Any) -> None:
    assert re.search(r"tables take 0\.00 GB", first_notes(tmp_path / "run", variant("external")))


def test_a_monte_carlo_run_on_buckets_says_its_memory_first(tmp_path: Path, variant: Any) -> None:
    notes = first_notes(tmp_path / "run", variant("external on buckets"))
    assert re.search(r"tables take 0\.00 GB", notes)
    assert "the abstraction takes 0.00 GB" in notes


@pytest.mark.parametrize("name", ["external", "outcome on buckets", "openspiel external"])
def test_a_monte_carlo_run_says_its_time_first(tmp_path: Path, name: str, variant: Any) -> None:
    assert "7 iterations take about" in first_notes(tmp_path / "run", variant(name))


def test_monte_carlo_tables_that_cannot_fit_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(costs, "usable_memory", lambda: 1_000_000_000)
    with pytest.raises(ConfigError, match=r"tables of hulh in float32 need [\d,.]+ GB, and there are 1\.0 GB"):
        cost_notes(config("hulh", solver="mccfr"), load_rules("hulh"))


def test_monte_carlo_tables_over_buckets_that_cannot_fit_are_refused(
    tmp_path: Path, variant: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(costs, "usable_memory", lambda: 100)
    with pytest.raises(ConfigError, match="GB"):
        start(tmp_path / "run", variant("external on buckets"))


# In a process of its own, with real signals

MANY = 400


def long(settings: RunConfig) -> RunConfig:
    """So many iterations that a signal falls between them."""
    traversals = 500 if settings.solver == "mccfr" else 1
    return replace(
        settings,
        iterations=MANY,
        solve=replace(settings.solve, traversals=traversals),
        evaluation=EvaluationConfig(every=25),
        runtime=replace(settings.runtime, checkpoint_seconds=0),
    )


def arguments(path: Path, settings: RunConfig) -> list[object]:
    """Of `deepcfr solve` or, if the folder holds a run already, `deepcfr resume`."""
    if (path / "config.toml").is_file():
        return ["resume", path]
    edit(path.parent, settings)
    return ["solve", settings.game, "--config", path.parent / "config.toml", "--out", path]


@pytest.mark.parametrize("name", [KINDS[0], *(pytest.param(name, marks=pytest.mark.long) for name in KINDS[1:])])
def test_kill_9_and_then_ctrl_c_in_the_terminal_do_not_change_the_run(tmp_path: Path, name: str, variant: Any) -> None:
    settings = long(variant(name))
    start(tmp_path / "whole", replace(settings, runtime=replace(settings.runtime, checkpoint_seconds=1_000)))
    seed = time.time_ns()
    print(f"the moment comes from seed {seed}")  # shown when the test fails
    path = tmp_path / "run"

    status, _, _ = struck(KILL, 6, *arguments(path, settings), after=random.Random(seed).uniform(0, 0.05))
    assert status == -KILL
    done = len(read_metrics(path / "metrics.jsonl"))
    checkpoint = RunFolder.open(path).checkpoint(pytest.fail)
    assert checkpoint is not None
    assert checkpoint.iteration >= done - 1

    status, out, err = struck(INTERRUPT, done + 4, *arguments(path, settings))
    assert (status, "Traceback" in err) == (0, False)
    stopped = re.search(rf"Stopped after iteration (\d+) and saved\. Go on with: deepcfr resume {path}\n", out)
    assert stopped
    assert done < int(stopped[1]) < MANY
    assert newest(path).name == f"{int(stopped[1]):07d}"

    assert resume(path).finished
    assert_same_run(path, tmp_path / "whole")
    assert json.loads((path / "environment.json").read_text())["command"].startswith("deepcfr solve ")


def test_a_run_killed_before_its_first_checkpoint_starts_again(tmp_path: Path, whole: Callable[[str], Path]) -> None:
    name = "outcome"
    with pytest.raises(Crash):
        start(tmp_path / "run", VARIANTS[name], Recorder(at=1, do=crash))
    run = RunFolder.open(tmp_path / "run")
    with pytest.raises(CheckpointError, match="has no checkpoint yet"):
        run.load_policy("average", pytest.fail)
    assert resume(run.path).finished
    assert_same_run(run.path, whole(name))


def test_tables_in_a_checkpoint_are_plain_sums_over_iterations(whole: Callable[[str], Path]) -> None:
    average = np.load(newest(whole("cfr float64, 1 threads")) / "average-0-values.npy", allow_pickle=False)
    actions = average.reshape(14, 3)  # six decisions with 2, 2, 3, 3, 2 and 2 actions in some order; three cards
    assert (actions >= 0).all()
    # CFR weighs all iterations alike, and nothing stands before the root: its two actions share one each iteration.
    assert actions[:2].sum(0) == pytest.approx(LAST, rel=1e-12)
