"""A run is the same run however often it is stopped, killed or broken off; and it says what it did and will cost."""

import dataclasses
import io
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from rich.console import Console

from command_line import deepcfr, problem
from deepcfr.config import (
    AdvantageFitConfig,
    CFRConfig,
    EvaluationConfig,
    FitConfig,
    MemoryConfig,
    NetworkConfig,
    RunConfig,
    RuntimeConfig,
    SamplingConfig,
    config_to_toml,
    signed_toml,
)
from deepcfr.core.errors import CheckpointError, ConfigError, TrainingError
from deepcfr.core.files import cache_folder
from deepcfr.defaults import default_config
from deepcfr.game.presets import build_game, load_source
from deepcfr.measure.exploitability import Exploitability, exploitability
from deepcfr.network.fit import FitResult
from deepcfr.network.networks import build_network, count_parameters, number_of_weights
from deepcfr.run import costs, folder
from deepcfr.run.costs import cost_notes
from deepcfr.run.folder import RunFolder, export
from deepcfr.run.live import LiveObserver
from deepcfr.run.metrics import read_metrics
from deepcfr.run.record import trained_here
from deepcfr.run.train import Summary, train
from deepcfr.solve.data import IterationRecord
from deepcfr.solve.deep_cfr import DeepCFR
from experiments.pages import provenance
from solve_runs import metrics, without_costs
from struck import INTERRUPT, KILL, struck

FIT = FitConfig(steps=4, batch_size=16)
ADVANTAGE = AdvantageFitConfig(**vars(FIT))
CONFIG = RunConfig(
    game="kuhn",
    iterations=6,
    sampling=SamplingConfig(traversals=20),
    memory=MemoryConfig(advantage_capacity=80, strategy_capacity=100),  # full on the way
    network=NetworkConfig(kind="mlp", width=8, layers=1),
    advantage=ADVANTAGE,
    average=FIT,
    evaluation=EvaluationConfig(every=4, at=(1,)),
    runtime=RuntimeConfig(threads=1, keep=2, checkpoint_seconds=0),
)
LAST = CONFIG.iterations
EVALUATED = (1, 4, 6)


class Recorder:
    """An observer that keeps what it is told, and does something after an iteration or a save if asked to."""

    def __init__(self, at: int = 0, do: Callable[[], None] | None = None, *, when: str = "iteration") -> None:
        self.at, self.do, self.when = at, do, when
        self.warnings: list[str] = []
        self.notes: list[str] = []
        self.resumed_after = -1
        self.iterations: list[int] = []
        self.boards: list[tuple[int, int, int]] = []
        self.results: list[tuple[int, Exploitability | None]] = []
        self.saves: list[int] = []

    def warn(self, message: str) -> None:
        self.warnings.append(message)

    def start(self, run: RunFolder, solver: DeepCFR, notes: Iterable[str]) -> None:  # noqa: ARG002
        self.notes, self.resumed_after = list(notes), solver.iteration

    def iteration(self, record: IterationRecord, seconds: float) -> None:
        assert seconds > 0
        self.iterations.append(record.iteration)
        self._act("iteration", record.iteration)

    def evaluating(self, iteration: int, done: int, total: int) -> None:
        self.boards.append((iteration, done, total))

    def evaluated(self, iteration: int, fit: FitResult | None, result: Exploitability | None) -> None:
        assert fit is None or fit.steps > 0  # None where an evaluation is caught up
        self.results.append((iteration, result))
        self._act("evaluated", iteration)

    def saved(self, iteration: int) -> None:
        self.saves.append(iteration)
        self._act("saved", iteration)

    def _act(self, when: str, iteration: int) -> None:
        if self.do and (when, iteration) == (self.when, self.at):
            self.do()


class Crash(BaseException):
    """The process is gone: nothing that catches errors runs."""


def crash() -> None:
    raise Crash


def press_ctrl_c() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def start(path: Path, config: RunConfig = CONFIG, observer: Recorder | None = None) -> tuple[RunFolder, Summary]:
    run = RunFolder.create(path, config)
    return run, train(run, observer or Recorder())


def resume(path: Path, observer: Recorder | None = None) -> Summary:
    return train(RunFolder.open(path), observer or Recorder())


def newest(path: Path) -> tuple[str, dict[str, bytes]]:
    """The name of the newest checkpoint, and the bytes of its networks and memories."""
    folder = path / "checkpoints" / (path / "checkpoints" / "latest").read_text().strip()
    return folder.name, {file.name: file.read_bytes() for file in folder.iterdir() if file.name != "state.json"}


def assert_same_run(path: Path, other: Path) -> None:
    (name, files), (other_name, other_files) = newest(path), newest(other)
    assert name == other_name
    # networks, and four columns of each memory: 3 of infosets, or 4 of hands in each round without a table
    assert len(files) in (1 + 3 * 4, 1 + 4 * 4, 1 + 8 * 4)
    assert files.keys() == other_files.keys()
    assert [n for n in files if files[n] != other_files[n]] == []
    for line, same in zip(metrics(path), metrics(other), strict=True):
        # a resumed run has forgotten what its networks said about a panel, and asks again
        assert line | {"evaluated": 0} == same | {"evaluated": 0}
        assert line["evaluated"] <= 2 * same["evaluated"] <= 4 * line["evaluated"]


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An uninterrupted run."""
    path = tmp_path_factory.mktemp("reference") / "run"
    start(path)
    return path


# What is recorded

EVERY_LINE = {
    "iteration", "traversals", "nodes_touched", "evaluated", "trained", "traversal_seconds", "fit_seconds",
    "advantage_loss", "advantage_samples", "strategy_samples", "total_nodes_touched", "seconds", "resident_bytes",
}  # fmt: skip
EVALUATED_LINE = EVERY_LINE | {
    "average_loss", "average_examples", "average_fit_seconds", "evaluation", "evaluated_policy",
}  # fmt: skip


def test_every_iteration_has_its_line_with_the_documented_keys(reference: Path) -> None:
    lines = read_metrics(reference / "metrics.jsonl")
    assert [line["iteration"] for line in lines] == list(range(1, LAST + 1))
    for line in lines:
        assert set(line) == (EVALUATED_LINE if line["iteration"] in EVALUATED else EVERY_LINE)
        assert line["traversals"] == 2 * CONFIG.sampling.traversals
        assert line["trained"] == 2 * FIT.steps * FIT.batch_size
        assert line.get("average_examples", FIT.steps * FIT.batch_size) == FIT.steps * FIT.batch_size
        assert 0 < line["evaluated"] < line["nodes_touched"]
        assert len(line["advantage_loss"]) == len(line["advantage_samples"]) == 2
        assert min(line["advantage_loss"]) > 0
        assert line["seconds"] > line["traversal_seconds"] + line["fit_seconds"] > 0
    touched = [line["nodes_touched"] for line in lines]
    assert [line["total_nodes_touched"] for line in lines] == [sum(touched[: t + 1]) for t in range(LAST)]
    assert [line["seconds"] for line in lines] == sorted(line["seconds"] for line in lines)
    assert (lines[-1]["advantage_samples"], lines[-1]["strategy_samples"]) == ([80, 80], 100)


@pytest.mark.parametrize(
    "every, at, expected",
    [(0, (), (6,)), (2, (), (2, 4, 6)), (4, (1,), (1, 4, 6)), (0, (3, 6, 9), (3, 6)), (5, (5, 5), (5, 6))],
)
def test_evaluations_are_at_the_configured_iterations_and_the_last(
    tmp_path: Path, reference: Path, every: int, at: tuple[int, ...], expected: tuple[int, ...]
) -> None:
    observer = Recorder()
    run, summary = start(tmp_path / "run", replace(CONFIG, evaluation=EvaluationConfig(every, at)), observer)
    lines = metrics(run.path)
    assert tuple(line["iteration"] for line in lines if "evaluation" in line) == expected
    assert tuple(iteration for iteration, _ in observer.results) == expected
    assert summary.result == observer.results[-1][1]
    # An evaluation looks on: the run is the same without it.
    assert newest(run.path) == newest(reference)


def test_an_evaluation_reports_every_board(tmp_path: Path) -> None:
    observer = Recorder()
    config = replace(CONFIG, game="leduc", iterations=1)
    _, summary = start(tmp_path / "run", config, observer)
    assert summary.result is not None
    assert observer.boards == [(1, done, 3) for done in (1, 2, 3)]  # a jack, a queen and a king: suits are merged


def test_the_last_evaluation_is_of_the_policy_that_the_run_folder_holds(reference: Path) -> None:
    policy, solver = RunFolder.open(reference).load_policy("average", pytest.fail)
    assert solver.average_iteration == LAST
    facts = without_costs(dataclasses.asdict(exploitability(policy)))
    assert facts | {"best_response_values": list(facts["best_response_values"])} == metrics(reference)[-1]["evaluation"]


def test_the_summary_and_the_observer_tell_the_same_story(tmp_path: Path) -> None:
    observer = Recorder()
    run, summary = start(tmp_path / "run", observer=observer)
    line = read_metrics(run.metrics_path)[-1]
    assert (summary.finished, summary.iterations, summary.nodes_touched) == (True, LAST, line["total_nodes_touched"])
    assert summary.seconds >= line["seconds"]
    assert observer.iterations == list(range(1, LAST + 1))
    assert observer.saves == observer.iterations
    assert observer.resumed_after == 0


def test_a_run_shorter_than_the_interval_has_a_checkpoint_at_the_end(tmp_path: Path) -> None:
    observer = Recorder()
    rare = RuntimeConfig(threads=1, checkpoint_seconds=1_000)
    run, _ = start(tmp_path / "run", replace(CONFIG, runtime=rare), observer)
    assert observer.saves == [6]
    assert newest(run.path)[0] == "0000006"


def test_same_seed_same_bytes_and_another_seed_other_bytes(tmp_path: Path, reference: Path) -> None:
    start(tmp_path / "again")
    assert_same_run(tmp_path / "again", reference)
    start(tmp_path / "other", replace(CONFIG, seed=1))
    assert newest(tmp_path / "other") != newest(reference)


# Stopping and going on

BOARDS = replace(
    CONFIG,
    game="leduc",
    cfr=replace(CONFIG.cfr, first_round="table"),
    sampling=SamplingConfig(kind="public-chance", boards=2, samples=9),
)
VARIANTS = {
    "as it is": CONFIG,
    "table": replace(CONFIG, game="leduc", cfr=replace(CONFIG.cfr, first_round="table")),
    "boards": BOARDS,
    "panel": replace(BOARDS, sampling=replace(BOARDS.sampling, panel=True)),
    "boards in two threads": replace(BOARDS, runtime=replace(CONFIG.runtime, threads=2)),
    "boards without a table": replace(BOARDS, cfr=replace(BOARDS.cfr, first_round="network")),
    "two threads": replace(CONFIG, runtime=replace(CONFIG.runtime, threads=2)),
    "window": replace(CONFIG, memory=replace(CONFIG.memory, kind="window")),
    "fine-tuned advantages": replace(CONFIG, advantage=replace(ADVANTAGE, refit="fine-tune")),
    "merged infosets": replace(CONFIG, advantage=replace(ADVANTAGE, draw="merged")),
    "drawn by weight": replace(
        CONFIG, advantage=replace(ADVANTAGE, draw="balanced"), average=replace(FIT, draw="balanced")
    ),
    "uniform": replace(CONFIG, cfr=replace(CONFIG.cfr, weighting="uniform", fallback="uniform")),
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_run_broken_off_between_checkpoints_ends_as_an_uninterrupted_one(tmp_path: Path, variant: str) -> None:
    start(tmp_path / "whole", VARIANTS[variant])
    with pytest.raises(Crash):
        start(tmp_path / "broken", VARIANTS[variant], Recorder(at=5, do=crash))
    assert resume(tmp_path / "broken").finished
    assert_same_run(tmp_path / "broken", tmp_path / "whole")


@pytest.mark.parametrize("when", ["iteration", "evaluated", "saved"])
def test_at_most_one_checkpoint_interval_is_lost_wherever_a_run_breaks_off(
    tmp_path: Path, reference: Path, when: str
) -> None:
    places = {"iteration": range(1, LAST + 1), "evaluated": EVALUATED, "saved": (2, 4, 6)}[when]
    for at in places:
        path = tmp_path / str(at)
        with pytest.raises(Crash):
            start(path, observer=Recorder(at=at, do=crash, when=when))
        observer = Recorder()
        assert resume(path, observer).finished
        assert observer.resumed_after == (at if when == "saved" else at - 1)
        assert_same_run(path, reference)


def interrupted(path: Path, at: int, config: RunConfig = CONFIG) -> Summary:
    """Ctrl-C in iteration `at`: it is finished and saved."""
    observer = Recorder(at=at, do=press_ctrl_c)
    _, summary = start(path, config, observer)
    assert (summary.finished, summary.iterations) == (False, at)
    assert observer.saves[-1] == at
    assert len(read_metrics(path / "metrics.jsonl")) == at
    return summary


@pytest.mark.parametrize(
    "at",
    [
        pytest.param(
            t,
        )
        for t in range(1, LAST)
    ],
)
def test_ctrl_c_finishes_the_iteration_saves_and_resuming_gives_the_same_run(
    tmp_path: Path, reference: Path, at: int
) -> None:
    interrupted(tmp_path / "run", at)
    observer = Recorder()
    assert resume(tmp_path / "run", observer).finished
    assert (observer.resumed_after, observer.iterations[0]) == (at, at + 1)
    assert_same_run(tmp_path / "run", reference)


def test_ctrl_c_in_the_last_iteration_changes_nothing(tmp_path: Path, reference: Path) -> None:
    _, summary = start(tmp_path / "run", observer=Recorder(at=LAST, do=press_ctrl_c))
    assert summary.finished
    assert_same_run(tmp_path / "run", reference)


@pytest.mark.parametrize("at", [4, LAST])
def test_an_evaluation_that_a_signal_breaks_off_is_made_when_the_run_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    config = replace(CONFIG, game="leduc")
    start(tmp_path / "whole", config)
    assert "evaluation" in metrics(tmp_path / "whole")[at - 1]
    with monkeypatch.context() as patched:
        patched.setattr("deepcfr.run.train._PATIENCE", 0.0)
        observer = Recorder(at=at, do=press_ctrl_c)
        _, summary = start(tmp_path / "run", config, observer)
    assert (summary.finished, summary.iterations, observer.saves[-1]) == (False, at, at)
    assert [iteration for iteration, _ in observer.results if iteration == at] == []
    last = metrics(tmp_path / "run")[-1]
    assert (last["unmeasured"], "evaluation" in last) == (True, False)
    observer = Recorder()
    assert resume(tmp_path / "run", observer).finished
    assert observer.results[0][0] == at
    assert_same_run(tmp_path / "run", tmp_path / "whole")


def test_an_evaluation_that_soon_ends_is_not_broken_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deepcfr.run.train._PATIENCE", 200.0)
    config = replace(CONFIG, game="leduc", iterations=1)
    observer = Recorder(at=1, do=press_ctrl_c)
    _, summary = start(tmp_path / "run", config, observer)
    assert summary.finished
    assert summary.result == observer.results[-1][1]


def test_an_evaluation_shows_its_progress_where_there_is_no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SimpleNamespace(now=0.0)
    monkeypatch.setattr("deepcfr.run.live.time", SimpleNamespace(monotonic=lambda: clock.now))
    out = io.StringIO()
    observer = LiveObserver(Console(file=out, width=100))
    for done, clock.now in ((1, 100.0), (2, 105.0), (3, 111.0)):
        observer.evaluating(7, done, 22_100)
    assert out.getvalue() == "exact evaluation at 7: 1 of 22,100\nexact evaluation at 7: 3 of 22,100\n"


def test_a_run_stopped_after_every_iteration_is_the_same_run(tmp_path: Path) -> None:
    config = replace(CONFIG, evaluation=EvaluationConfig())
    start(tmp_path / "whole", config)
    summary = interrupted(tmp_path / "run", 1, config)
    for at in range(2, LAST + 1):
        assert not summary.finished
        summary = resume(tmp_path / "run", Recorder(at=at, do=press_ctrl_c))
    assert summary.finished
    assert_same_run(tmp_path / "run", tmp_path / "whole")


def test_a_second_ctrl_c_stops_at_once_and_costs_what_a_crash_costs(tmp_path: Path, reference: Path) -> None:
    def press_twice() -> None:
        press_ctrl_c()
        press_ctrl_c()

    with pytest.raises(KeyboardInterrupt):
        start(tmp_path / "run", observer=Recorder(at=4, do=press_twice))
    assert newest(tmp_path / "run")[0] == "0000003"
    assert resume(tmp_path / "run").finished
    assert_same_run(tmp_path / "run", reference)


def test_ctrl_c_means_what_it_meant_once_a_run_is_over(tmp_path: Path) -> None:
    before = signal.getsignal(signal.SIGINT)
    start(tmp_path / "run")
    assert signal.getsignal(signal.SIGINT) is before
    with pytest.raises(Crash):
        start(tmp_path / "other", observer=Recorder(at=1, do=crash))
    assert signal.getsignal(signal.SIGINT) is before


def test_a_damaged_newest_checkpoint_is_named_and_the_run_ends_the_same_from_the_one_before(
    tmp_path: Path, reference: Path
) -> None:
    with pytest.raises(Crash):
        start(tmp_path / "run", observer=Recorder(at=5, do=crash))
    damaged = tmp_path / "run" / "checkpoints" / "0000004" / "memory-strategy-target.npy"
    os.truncate(damaged, 200)
    observer = Recorder()
    resume(tmp_path / "run", observer)
    assert observer.resumed_after == 3
    (warning,) = observer.warnings
    assert str(damaged) in warning
    assert_same_run(tmp_path / "run", reference)


def test_a_torn_last_line_of_metrics_is_written_again(tmp_path: Path, reference: Path) -> None:
    with pytest.raises(Crash):
        start(tmp_path / "run", observer=Recorder(at=4, do=crash))
    file = tmp_path / "run" / "metrics.jsonl"
    file.write_bytes(file.read_bytes() + b'{"iteration": 4, "nodes_tou')
    resume(tmp_path / "run")
    assert_same_run(tmp_path / "run", reference)


def flipped(file: Path) -> Iterator[bytes]:
    """The bytes of a file with one bit changed, at every place."""
    whole = file.read_bytes()
    for at in range(len(whole)):
        yield whole[:at] + bytes([whole[at] ^ 1 << at % 8]) + whole[at + 1 :]


@pytest.mark.parametrize("name", ["config.toml", "game.json"])
def test_a_damaged_configuration_or_game_is_refused_and_named(tmp_path: Path, name: str) -> None:
    run = RunFolder.create(tmp_path / "run", CONFIG)
    passed: set[bytes] = set()
    named: list[str] = []
    for contents in flipped(run.path / name):
        (run.path / name).write_bytes(contents)
        try:
            found = RunFolder.open(run.path)
        except (CheckpointError, ConfigError) as error:
            named.append(str(error))
        else:  # the mark of the checksum is damaged, or white space is
            assert (found.config, found.source) == (run.config, run.source)
            passed.add(contents)
    assert len(passed) < 100
    assert all(f"'{run.path / name}'" in sentence for sentence in named)


def test_a_configuration_edited_on_purpose_is_taken_without_its_checksum_and_gets_another(
    tmp_path: Path, reference: Path
) -> None:
    shutil.copytree(reference, tmp_path / "run")
    file = tmp_path / "run" / "config.toml"
    text = file.read_text().replace("iterations = 6", "iterations = 7")
    file.write_text(text)
    with pytest.raises(ConfigError, match=r"If you changed it on purpose, delete its last line\."):
        resume(tmp_path / "run")
    body = "".join(text.splitlines(keepends=True)[:-1])
    file.write_text(body)
    assert resume(tmp_path / "run").iterations == 7
    assert file.read_text() == signed_toml(body) != body


def test_metrics_that_end_before_the_checkpoint_are_said_to_be_lost(tmp_path: Path, reference: Path) -> None:
    shutil.copytree(reference, tmp_path / "run")
    file = tmp_path / "run" / "metrics.jsonl"
    os.truncate(file, file.stat().st_size - 20)
    observer = Recorder()
    resume(tmp_path / "run", observer)
    assert observer.warnings == [
        f"'{file}' ends with iteration {LAST - 1}, and the checkpoint is of {LAST}: the lines between them are lost."
    ]


def test_seconds_add_up_over_sessions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    readings = count(0.0)
    monkeypatch.setattr("deepcfr.run.train.time", SimpleNamespace(perf_counter=lambda: next(readings)))
    interrupted(tmp_path / "run", 3)
    before = read_metrics(tmp_path / "run" / "metrics.jsonl")[-1]["seconds"]
    readings = count(1e6)  # a long time after, not spent on the run
    summary = resume(tmp_path / "run")
    lines = read_metrics(tmp_path / "run" / "metrics.jsonl")
    assert before < lines[3]["seconds"] < before + 1000
    assert summary.seconds >= lines[-1]["seconds"] > lines[3]["seconds"]


def contents(path: Path) -> dict[str, bytes]:
    return {str(p.relative_to(path)): p.read_bytes() for p in sorted(path.rglob("*")) if p.is_file()}


def test_resuming_a_finished_run_changes_no_byte_and_gives_its_result_again(tmp_path: Path, reference: Path) -> None:
    shutil.copytree(reference, tmp_path / "run")
    observer = Recorder()
    summary = resume(tmp_path / "run", observer)
    assert (summary.finished, summary.iterations, observer.iterations, observer.saves) == (True, LAST, [], [])
    assert summary.result is not None
    assert summary.result.nash_conv == metrics(reference)[-1]["evaluation"]["nash_conv"]
    assert contents(tmp_path / "run") == contents(reference)


def edit(path: Path, config: RunConfig) -> None:
    (path / "config.toml").write_text(config_to_toml(config))


def test_more_iterations_go_on_from_the_last(tmp_path: Path, reference: Path) -> None:
    longer = replace(CONFIG, iterations=8)
    start(tmp_path / "whole", longer)
    shutil.copytree(reference, tmp_path / "run")
    run = RunFolder.open(tmp_path / "run")
    run.extend(8)
    train(run, Recorder())
    assert newest(tmp_path / "run") == newest(tmp_path / "whole")


def test_a_run_is_not_made_shorter_or_longer_than_its_schedules(tmp_path: Path, reference: Path) -> None:
    shutil.copytree(reference, tmp_path / "run")
    before = contents(tmp_path / "run")
    with pytest.raises(ConfigError, match="run of 6 iterations: --iterations must be more, but is 6"):
        RunFolder.open(tmp_path / "run").extend(6)
    with pytest.raises(ConfigError, match=r"'iterations' must be between 1 and 100,000,000, but is 100,000,001"):
        RunFolder.open(tmp_path / "run").extend(100_000_001)
    assert contents(tmp_path / "run") == before
    learnt = RunFolder.create(tmp_path / "nfsp", RunConfig(game="kuhn", solver="nfsp"))
    with pytest.raises(ConfigError, match="NFSP cannot go on past its last iteration"):
        learnt.extend(10**7)


@pytest.mark.parametrize("iterations", [2, 3])
def test_fewer_iterations_than_done_are_done(tmp_path: Path, iterations: int) -> None:
    config = replace(CONFIG, evaluation=EvaluationConfig())
    interrupted(tmp_path / "run", 3, config)
    edit(tmp_path / "run", replace(config, iterations=iterations))
    assert resume(tmp_path / "run").finished


# Training that cannot go on

DIVERGING = FitConfig(steps=4, batch_size=16, learning_rate=10.0)
DEEP = replace(CONFIG, network=replace(CONFIG.network, layers=64))


def test_a_loss_that_is_no_number_stops_the_run_and_earlier_checkpoints_stay_good(tmp_path: Path) -> None:
    start(tmp_path / "whole", DEEP)
    interrupted(tmp_path / "run", 3, DEEP)
    before = contents(tmp_path / "run" / "checkpoints")
    edit(tmp_path / "run", replace(DEEP, advantage=AdvantageFitConfig(**vars(DIVERGING))))
    with pytest.raises(TrainingError) as caught:
        resume(tmp_path / "run")
    (sentence,) = caught.value.problems
    assert sentence.startswith("The loss is not a number after 4 of 4 steps at learning rate 10")
    assert contents(tmp_path / "run" / "checkpoints") == before
    edit(tmp_path / "run", DEEP)
    assert resume(tmp_path / "run").finished
    assert newest(tmp_path / "run") == newest(tmp_path / "whole")


def test_an_average_fit_that_is_no_number_is_an_error_too(tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match="The loss is not a number"):
        start(tmp_path / "run", replace(DEEP, average=DIVERGING, evaluation=EvaluationConfig(at=(3,))))
    assert newest(tmp_path / "run")[0] == "0000002"


@pytest.mark.parametrize("solver, copies", [("deep-cfr", 6), ("nfsp", 18), ("ppo", 16), ("escher", 7)])
def test_networks_that_cannot_fit_are_refused_before_they_are_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, solver: Any, copies: int
) -> None:
    config = default_config("kuhn", solver)
    config = replace(config, network=NetworkConfig(kind="mlp", width=8192, layers=64))
    config = replace(config, cfr=replace(config.cfr, keep_networks=0))
    weights = 63 * 8192 * 8193  # and the first and the last layer
    assert costs.network_bytes(build_game(load_source("kuhn")), config) == pytest.approx(4 * copies * weights, rel=0.01)
    monkeypatch.setattr(costs, "usable_memory", lambda: 20_000_000_000)
    with pytest.raises(ConfigError, match=r"The networks need up to \d+\.\d GB, and there are 20\.0 GB: lower"):
        start(tmp_path / "run", config)


def test_snapshots_of_networks_are_counted() -> None:
    game = build_game(load_source("kuhn"))
    config = replace(CONFIG, iterations=100, cfr=CFRConfig(keep_networks=0))
    kept = replace(CONFIG, iterations=100, cfr=CFRConfig(keep_networks=5))
    weights = number_of_weights(game.encoding, CONFIG.network)
    assert weights == count_parameters(build_network(game.encoding, CONFIG.network, torch.Generator()))
    assert costs.network_bytes(game, kept) - costs.network_bytes(game, config) == 20 * 2 * 2 * weights


def test_memories_that_cannot_fit_are_refused_with_the_figures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Kuhn takes 2 bytes for the node, 1 for the card, 4 for the iteration and 3 times 4 for the targets.
    config = replace(CONFIG, memory=MemoryConfig(advantage_capacity=10**10, strategy_capacity=10**10))
    monkeypatch.setattr(costs, "usable_memory", lambda: 63_300_000_000)
    with pytest.raises(ConfigError) as caught:
        start(tmp_path / "run", config)
    (sentence,) = caught.value.problems
    assert "need up to 570.0 GB, and there are 63.3 GB" in sentence
    assert "memory.advantage_capacity" in sentence


def test_the_cost_is_said_before_it_is_paid(tmp_path: Path) -> None:
    memory = MemoryConfig(advantage_capacity=10**6, strategy_capacity=3 * 10**6)
    run = RunFolder.create(tmp_path / "run", replace(CONFIG, memory=memory))
    assert cost_notes(run.config, run.source) == [
        "memories take up to 0.10 GB, and a checkpoint as much on disk"
    ]  # 5 million of 19 bytes
    observer = Recorder()
    start(tmp_path / "other", observer=observer)
    other = RunFolder.open(tmp_path / "other")
    assert observer.notes == cost_notes(other.config, other.source)


def test_the_memories_of_a_listed_game_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """In Kuhn poker of OpenSpiel: 2 bytes for the node, 4 for the iteration and 2 times 4 for the targets."""
    memory = MemoryConfig(advantage_capacity=10**9, strategy_capacity=2 * 10**9)
    config = replace(CONFIG, game="openspiel:kuhn_poker", memory=memory)
    source = load_source(config.game)
    monkeypatch.setattr(costs, "usable_memory", lambda: 63_300_000_000)
    assert cost_notes(config, source)[1] == "memories take up to 56.00 GB, and a checkpoint as much on disk"
    monkeypatch.setattr(costs, "usable_memory", lambda: 53_300_000_000)
    with pytest.raises(
        ConfigError, match=r"need up to 56\.0 GB, and there are 53\.3 GB: lower memory\.advantage_capacity"
    ):
        cost_notes(config, source)


def test_the_table_of_hand_strengths_takes_memory_of_a_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """The table of fhp takes 20.56 MB, which a processor maps from a file."""
    config = replace(CONFIG, game="fhp", network=NetworkConfig(strength=True, width=8))
    monkeypatch.setattr(costs, "_memory_of", lambda _device: 24_000_000)
    assert "the table of hand strengths takes 0.02 GB" in cost_notes(config, load_source("fhp"))
    on_device = replace(config, runtime=replace(config.runtime, device="cuda"), memory=MemoryConfig(10**5, 10**5))
    with pytest.raises(ConfigError, match=r"and there are 0\.0 GB: lower"):
        cost_notes(on_device, load_source("fhp"))


def test_the_cost_of_boards_is_said_and_games_with_too_many_are_refused(tmp_path: Path) -> None:
    memory = MemoryConfig(advantage_capacity=10**6, strategy_capacity=10**6)
    sampling = replace(BOARDS.sampling, decisions=8)
    run = RunFolder.create(tmp_path / "run", replace(BOARDS, memory=memory, sampling=sampling))
    # each of three memories keeps 2 cards, the iteration, and for 8 decisions a node in 2 bytes and 3 actions in 4 each:
    # 118 bytes a hand
    assert cost_notes(run.config, run.source) == [
        "memories take up to 0.35 GB, and a checkpoint as much on disk",
        "boards take up to 0.00 GB",
    ]
    some = replace(BOARDS, sampling=replace(sampling, hands=3))
    ignored = "sampling.hands: ignored, because all boards of leduc are kept with all their hands"
    assert cost_notes(some, run.source)[2:] == [ignored]
    large = replace(BOARDS, game="hulh", sampling=replace(BOARDS.sampling, hands=3))
    drawn = RunFolder.create(tmp_path / "large", large)
    notes = cost_notes(drawn.config, drawn.source)
    assert "each thread takes up to 0.59 GB for a drawn board" in notes
    assert not any("ignored" in note for note in notes)
    seen = replace(large, network=NetworkConfig(kind="two-tower", strength=True))
    assert f"the table of hand strengths takes 2.01 GB, kept in {cache_folder()}" in cost_notes(seen, drawn.source)
    small = replace(BOARDS, network=NetworkConfig(kind="two-tower", strength=True))
    assert "the table of hand strengths takes 0.00 GB" in cost_notes(small, run.source)
    panel = RunFolder.create(tmp_path / "panel", replace(large, sampling=replace(large.sampling, panel=True)))
    with pytest.raises(ConfigError, match="hulh has too many boards to keep, and a panel keeps its boards"):
        cost_notes(panel.config, panel.source)


def test_a_folder_that_holds_a_run_is_not_started_again(tmp_path: Path, reference: Path) -> None:
    shutil.copytree(reference, tmp_path / "run")
    with pytest.raises(CheckpointError, match="already holds a run"):
        RunFolder.create(tmp_path / "run", CONFIG)
    assert contents(tmp_path / "run") == contents(reference)


def test_a_folder_of_runs_is_no_folder_for_a_run(tmp_path: Path, reference: Path) -> None:
    shutil.copytree(reference, tmp_path / "runs" / "one")
    with pytest.raises(CheckpointError, match=r"holds other runs, such as '.*one': choose another folder"):
        RunFolder.create(tmp_path / "runs", CONFIG)
    assert [path.name for path in (tmp_path / "runs").iterdir()] == ["one"]


def test_a_folder_in_use_by_another_process_is_not_begun(tmp_path: Path) -> None:
    path = tmp_path / "run"
    path.mkdir()
    with trained_here(path), pytest.raises(CheckpointError, match="is being trained by another process"):
        RunFolder.create(path, CONFIG)
    assert contents(path) == {}


def test_of_two_that_begin_a_run_at_once_one_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = (RunFolder.plan(tmp_path / "run", replace(CONFIG, seed=seed)) for seed in (1, 2))
    found = folder.environment("cpu", 1)

    def interleaved(device: str, threads: int) -> dict[str, Any]:  # in the middle of `first.begin`
        monkeypatch.setattr(folder, "environment", lambda _device, _threads: found)
        with pytest.raises(CheckpointError, match="is being trained by another process"):
            second.begin()
        return found | {"device": device, "threads": threads}

    monkeypatch.setattr(folder, "environment", interleaved)
    first.begin()
    assert RunFolder.open(tmp_path / "run").config.seed == 1


def test_of_two_commands_that_train_in_one_folder_one_is_refused_and_the_other_keeps_its_settings(
    tmp_path: Path,
) -> None:
    edit(tmp_path, CONFIG)
    words = [sys.executable, "-m", "deepcfr.cli", "train", "kuhn", "--config", str(tmp_path / "config.toml"), "--seed"]
    processes = {
        seed: subprocess.Popen([*words, str(seed), "--out", str(tmp_path / "run")], stderr=subprocess.PIPE, text=True)
        for seed in (1, 2)
    }
    errors = {process.communicate(timeout=240)[1]: seed for seed, process in processes.items() if process.wait()}
    ((error, loser),) = errors.items()
    assert processes[loser].returncode == 2
    assert re.search(r"is being trained by another process|already holds a run", error)
    assert RunFolder.open(tmp_path / "run").config.seed == 3 - loser


def test_one_process_at_a_time_trains_a_run(tmp_path: Path) -> None:
    interrupted(tmp_path / "run", 3)
    before = contents(tmp_path / "run")
    with (
        trained_here(tmp_path / "run"),
        pytest.raises(CheckpointError, match="is being trained by another process"),
    ):
        resume(tmp_path / "run")
    assert contents(tmp_path / "run") == before
    assert resume(tmp_path / "run").finished


def test_a_time_limit_before_the_first_snapshot_loses_nothing(tmp_path: Path) -> None:
    config = replace(
        CONFIG,
        iterations=500,
        cfr=replace(CONFIG.cfr, keep_networks=400),
        evaluation=EvaluationConfig(policy="sd-cfr"),
        runtime=replace(CONFIG.runtime, minutes=1e-4, checkpoint_seconds=1_000),
    )
    observer = Recorder()
    run, summary = start(tmp_path / "run", config, observer)
    (iteration,) = observer.saves
    assert iteration == observer.iterations[-1] == summary.iterations < 400
    assert observer.results == [(iteration, None)]
    assert f"'{run.path}' has kept no networks" in observer.warnings[-1]
    assert read_metrics(run.metrics_path)[-1]["iteration"] == iteration


def test_more_time_is_more_than_a_run_has_used(tmp_path: Path) -> None:
    interrupted(tmp_path / "run", 3)
    run = RunFolder.open(tmp_path / "run")
    used = read_metrics(tmp_path / "run" / "metrics.jsonl")[-1]["seconds"] / 60
    with pytest.raises(ConfigError, match="--minutes, the time in all, must be more, but is"):
        run.allow(used)
    run.allow(2 * used + 1)
    assert RunFolder.open(tmp_path / "run").config.runtime.minutes == 0  # nothing is written before training begins
    assert train(run, Recorder()).finished
    assert RunFolder.open(tmp_path / "run").config.runtime.minutes == 2 * used + 1


def test_what_cannot_be_trained_keeps_its_configuration(tmp_path: Path, reference: Path) -> None:
    export(RunFolder.open(reference), tmp_path / "export", pytest.fail)
    run = RunFolder.open(tmp_path / "export")
    before = contents(run.path)
    run.extend(9)
    with pytest.raises(CheckpointError, match="was saved without its memories"):
        train(run, Recorder())
    assert contents(run.path) == before


def test_a_run_without_an_average_network_is_not_exported(tmp_path: Path) -> None:
    interrupted(tmp_path / "run", 3, replace(CONFIG, evaluation=EvaluationConfig()))
    run = RunFolder.open(tmp_path / "run")
    with pytest.raises(CheckpointError, match=r"has no average-strategy network yet: 'deepcfr resume .*run' fits one"):
        export(run, tmp_path / "export", pytest.fail, keep_networks=0)
    assert not (tmp_path / "export").exists()
    export(run, tmp_path / "export", pytest.fail)  # whose snapshots can be played
    RunFolder.open(tmp_path / "export").load_policy("sd-cfr", pytest.fail)


def test_an_export_that_is_cut_off_is_no_run_and_can_be_made_again(
    tmp_path: Path, reference: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "export"
    for place in ("save_checkpoint", "truncate_metrics", "write_atomically"):
        with monkeypatch.context() as patch:
            patch.setattr(f"deepcfr.run.folder.{place}", lambda *_, **__: crash())
            patch.setattr("deepcfr.run.folder.shutil.rmtree", lambda *_, **__: None)  # nothing is tidied up
            with pytest.raises(Crash):
                export(RunFolder.open(reference), target, pytest.fail)
        assert not target.exists()
        assert list(tmp_path.glob("*/config.toml")) == []
    export(RunFolder.open(reference), target, pytest.fail)
    assert RunFolder.open(target).load_policy("own", pytest.fail)


def test_a_run_without_a_checkpoint_is_not_resumed(tmp_path: Path) -> None:
    run = RunFolder.create(tmp_path / "run", CONFIG)
    before = contents(run.path)
    sentence = problem(deepcfr("resume", run.path))
    again = f"deepcfr train kuhn --config {run.path}/config.toml --out {run.path}-again"
    assert sentence == f"'{run.path}' has no checkpoint to go on from: begin again with '{again}'."
    assert contents(run.path) == before
    assert "holds a run, which has no checkpoint: remove it" in problem(deepcfr("train", "kuhn", "--out", run.path))


# In a process of its own, with real signals

LONG = replace(
    CONFIG,
    iterations=60,
    evaluation=EvaluationConfig(every=7),
    runtime=RuntimeConfig(threads=1, keep=2, checkpoint_seconds=0),
)


@pytest.fixture(scope="module")
def long_reference(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("long") / "run"
    start(path, replace(LONG, runtime=replace(LONG.runtime, checkpoint_seconds=1_000)))
    return path


def arguments(path: Path, config: RunConfig) -> list[object]:
    """Of `deepcfr train` or, if the folder holds a run already, `deepcfr resume`."""
    if (path / "config.toml").is_file():
        return ["resume", path]
    edit(path.parent, config)
    return ["train", "kuhn", "--config", path.parent / "config.toml", "--out", path]


def test_kill_9_at_random_moments_does_not_change_the_run(tmp_path: Path, long_reference: Path) -> None:
    seed = time.time_ns()
    print(f"the moments come from seed {seed}")  # shown when the test fails
    chance = random.Random(seed)
    path = tmp_path / "run"
    for iteration in (3, 25):
        status, _, _ = struck(KILL, iteration, *arguments(path, LONG), after=chance.uniform(0, 0.1))
        assert status == -KILL
        done = len(read_metrics(path / "metrics.jsonl"))
        checkpoint = RunFolder.open(path).checkpoint(pytest.fail)
        assert checkpoint is not None
        assert checkpoint.iteration >= done - 1
    assert resume(path).finished
    assert_same_run(path, long_reference)
    assert {p.name for p in (path / "checkpoints").iterdir()} == {"0000059", "0000060", "latest"}


@pytest.mark.parametrize("blow", [signal.SIGTERM, signal.SIGHUP])
def test_other_signals_that_end_a_process_save_too_and_are_its_status(tmp_path: Path, blow: signal.Signals) -> None:
    path = tmp_path / "run"
    config = replace(LONG, evaluation=EvaluationConfig(), runtime=replace(LONG.runtime, checkpoint_seconds=1_000))
    status, out, err = struck(blow, 4, *arguments(path, config))
    assert status == 128 + blow
    stopped = re.search(rf"Stopped after iteration (\d+) and saved\. Go on with: deepcfr resume {path}\n", out)
    assert stopped
    assert newest(path)[0] == f"{int(stopped[1]):07d}"
    assert err.endswith(f"deepcfr: ended by {blow.name}.\n")
    assert "Traceback" not in err


def test_ctrl_c_in_the_terminal_saves_says_how_to_go_on_and_the_run_ends_the_same(tmp_path: Path) -> None:
    config = replace(LONG, evaluation=EvaluationConfig(), runtime=replace(LONG.runtime, checkpoint_seconds=1_000))
    path = tmp_path / "run"
    status, out, err = struck(INTERRUPT, 4, *arguments(path, config))
    assert (status, "Traceback" in err) == (0, False)
    assert out.count("Stopping after this iteration, which is then saved.") == 1
    stopped = re.search(rf"Stopped after iteration (\d+) and saved\. Go on with: deepcfr resume {path}\n", out)
    assert stopped
    done = int(stopped[1])
    assert done in (4, 5)
    assert newest(path)[0] == f"{done:07d}"
    assert [line["iteration"] for line in metrics(path)] == list(range(1, done + 1))
    start(tmp_path / "whole", config)
    assert resume(path).finished
    assert_same_run(path, tmp_path / "whole")
    assert json.loads((path / "environment.json").read_text())["command"].startswith("deepcfr train kuhn --config")


def test_what_a_run_goes_on_with_is_recorded_beside_what_began_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = RunFolder.create(tmp_path / "run", replace(default_config("kuhn"), runtime=RuntimeConfig(threads=1)))
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
    command, commit, _ = provenance(run.path)
    assert command == f"{first['command']}, then deepcfr resume it, then deepcfr finish it"
    assert commit == (first["commit"] or "not recorded")


def test_using_a_run_leaves_its_memories_in_files_as_they_are(tmp_path: Path) -> None:
    """Another process may be training it."""
    files = tmp_path / "memory"
    config = replace(CONFIG, memory=replace(CONFIG.memory, files=str(files)))
    run = RunFolder.create(tmp_path / "run", config)
    train(run, Recorder())
    before = {path.name: path.read_bytes() for path in files.iterdir()}
    assert len(before) == 3 * 4
    policy, _ = run.load_policy("average", pytest.fail)
    assert exploitability(policy).nash_conv > 0
    export(run, tmp_path / "export", pytest.fail)
    assert {path.name: path.read_bytes() for path in files.iterdir()} == before


def test_memories_that_do_not_fit_are_refused() -> None:
    source = load_source("leduc")
    huge = replace(CONFIG, game="leduc", memory=MemoryConfig(advantage_capacity=10**10, strategy_capacity=10**10))
    with pytest.raises(ConfigError, match=r"lower memory.advantage_capacity or memory.strategy_capacity\.$"):
        cost_notes(huge, source)
    dream = replace(huge, sampling=SamplingConfig(kind="outcome", estimate="baseline"))
    with pytest.raises(ConfigError, match=r"lower .* or memory.strategy_capacity or values.capacity\.$"):
        cost_notes(dream, source)
