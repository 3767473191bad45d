"""A run says what it will take, by its iterations and evaluations so far; every measurement corrects that."""

import dataclasses
import io
from types import SimpleNamespace

import pytest
from hypothesis import given, strategies as st
from rich.console import Console

from command_line import deepcfr
from deepcfr.config import EvaluationConfig, RuntimeConfig
from deepcfr.run import live as module
from deepcfr.run.live import LATEST, LiveObserver, Pace
from tables import tabular


class Clock:
    """A clock that is set by hand."""

    now = 100.0

    def perf_counter(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(module, "time", made)
    return made


CONFIG = tabular("linear-cfr", 40, evaluation=EvaluationConfig(at=(20, 30)))


def iterate(pace: Pace, clock: Clock, iteration: int, seconds: float) -> None:
    clock.now += seconds
    pace.iterated(iteration, clock.now - 100)


def test_the_estimate_is_of_the_latest_iterations_and_the_evaluations_to_come(clock: Clock) -> None:
    pace = Pace(CONFIG, 0)
    assert pace.left() == ""
    iterate(pace, clock, 1, 3.0)
    assert pace.left() == ""  # too early to say
    iterate(pace, clock, 2, 5.0)
    assert pace.seconds_left == 38 * 5.0  # the first one took time for what is done once
    assert pace.left() == "3 min left"
    assert pace.sentence() == "about 3 min left: 5 s an iteration, and 3 evaluations, not timed yet"
    for t in range(3, 3 + LATEST):
        iterate(pace, clock, t, 2.0)
    assert pace.seconds_left == 28 * 2.0  # the second is forgotten too


def test_a_single_iteration_is_enough_if_it_is_long(clock: Clock) -> None:
    pace = Pace(CONFIG, 0)
    iterate(pace, clock, 1, 59.0)
    assert pace.left() == ""
    clock.now += 1
    assert pace.left() == "38 min left"


def test_evaluations_and_checkpoints_are_no_part_of_iterations(clock: Clock) -> None:
    pace = Pace(CONFIG, 19)
    iterate(pace, clock, 20, 10.0)
    clock.now += 50
    pace.evaluated()
    clock.now += 7
    pace.saved()
    iterate(pace, clock, 21, 10.0)
    assert pace.seconds_left == 19 * 10.0 + 2 * 50
    assert pace.sentence() == "about 5 min left: 10 s an iteration, and 2 evaluations, 50 s each"
    iterate(pace, clock, 40, 10.0)
    assert pace.seconds_left == 0


def test_a_run_with_a_time_ends_with_it(clock: Clock) -> None:
    pace = Pace(dataclasses.replace(CONFIG, runtime=RuntimeConfig(minutes=1)), 0)
    iterate(pace, clock, 1, 20.0)
    assert pace.seconds_left == 40
    iterate(pace, clock, 2, 50.0)
    assert pace.seconds_left == 0


@given(st.integers(0, 8), st.lists(st.integers(1, 30), max_size=5), st.integers(0, 25), st.integers(1, 25))
def test_evaluations_to_come_are_those_that_are_due(every: int, at: list[int], done: int, last: int) -> None:
    settings = EvaluationConfig(every=every, at=tuple(at))
    due = [t for t in range(done + 1, last + 1) if t == last or settings.is_due(t)]
    assert settings.number_due(done, last) == len(due)


def test_an_evaluation_shows_its_progress_where_there_is_no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SimpleNamespace(now=0.0)
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: clock.now))
    out = io.StringIO()
    observer = LiveObserver(Console(file=out, width=100))
    for done, clock.now in ((1, 100.0), (2, 105.0), (3, 111.0)):
        observer.evaluating(7, done, 22_100)
    assert out.getvalue() == "exact evaluation at 7: 1 of 22,100\nexact evaluation at 7: 3 of 22,100\n"


def test_a_run_prints_what_it_will_take(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_FIRST", 0.0)
    options = ["--iterations", "30", "--evaluation.at", "10"]
    lines = deepcfr("solve", "kuhn", "--out", tmp_path / "run", *options).out.splitlines()
    told = [line for line in lines if line.startswith("  about ")]
    assert len(told) == 2  # once at first, once when an evaluation has been timed
    assert "2 evaluations, not timed yet" in told[0]
    assert "1 evaluation, 0 s each" in told[1]
