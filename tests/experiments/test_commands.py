"""The commands of the experiments: python -m experiments reproduce, report, bench."""

from __future__ import annotations

import re

import pytest

from command_line import experiments, problem
from experiments import __main__ as program
from experiments.grid import GridSummary


def test_an_unknown_experiment_is_refused_and_help_names_all_that_there_are() -> None:
    assert problem(experiments("reproduce", "fig99")).endswith(f"there are {', '.join(program.NAMES)}.")
    listed = re.findall(r"[a-z0-9-]+", experiments("reproduce", "--help").out)
    assert set(program.NAMES) <= set(listed)


def test_unknown_benchmarks_and_numbers_are_refused() -> None:
    assert experiments("bench", "nothing").status == 2
    assert problem(experiments("bench", "fhp", "--iterations", 0)) == "--iterations must be at least 1, but is 0."


@pytest.mark.parametrize("finished, words", [(True, "experiments report --studies here"), (False, "resumes from here")])
def test_the_end_of_an_experiment_names_the_command_that_goes_on(
    finished: bool, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(program, "run_grid", lambda *_: GridSummary(0, 0, 0, finished))
    assert words in experiments("reproduce", "fig2", "--out", "here").out
