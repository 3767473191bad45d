"""A grid of runs ends the same wherever it was broken off, and leaves finished runs and those of other settings alone."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from deepcfr.config import (
    EvaluationConfig,
    RuntimeConfig,
)
from deepcfr.core.errors import CheckpointError
from deepcfr.run.folder import RunFolder
from experiments.grid import GridSummary, Job, claimed, difference, run_grid
from small_runs import metrics, small_config, with_sections
from tables import tabular

CONFIG = small_config(iterations=4, evaluation={"at": (2,)})
TABULAR = tabular("linear-cfr", 4, game="kuhn", evaluation=EvaluationConfig(at=(2,)), runtime=RuntimeConfig(threads=1))


def jobs(root: Path) -> list[Job]:
    return [
        Job(root / "base-s0", CONFIG),
        Job(root / "window-s0", with_sections(CONFIG, memory={"kind": "window"})),
        Job(root / "base-s1", replace(CONFIG, seed=1)),
        Job(root / "tables-s0", TABULAR),
    ]


class Killed(Exception):
    """Stands for a process that ends here and now."""


class Watch:
    """An observer that ends everything after some iterations of the whole grid, if asked to."""

    def __init__(self, after: int = -1) -> None:
        self.after, self.iterations = after, 0
        self.started: list[str] = []

    def warn(self, message: str) -> None:
        assert message.startswith("Stopping after this iteration")

    def start(self, run: RunFolder, solver: Any, notes: list[str]) -> None:  # noqa: ARG002
        self.started.append(f"{run.path.name} after {solver.iteration}")

    def iteration(self, *_: Any) -> None:
        self.iterations += 1
        if self.iterations == self.after:
            raise Killed

    def evaluating(self, *_: Any) -> None: ...
    def evaluated(self, *_: Any) -> None: ...
    def saved(self, *_: Any) -> None: ...


def grid(root: Path, watch: Watch) -> GridSummary:
    @contextmanager
    def observer() -> Iterator[Watch]:
        yield watch

    return run_grid(jobs(root), observer, lambda _: None)


def results(root: Path) -> dict[str, list[dict[str, Any]]]:
    """The records of every run, without time and memory."""
    return {job.path.name: metrics(job.path) for job in jobs(root)}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("whole")
    watch = Watch()
    assert grid(root, watch) == GridSummary(jobs=4, ran=4, there=0, finished=True)
    return root


def test_a_grid_runs_every_job_to_its_end_in_order(whole: Path) -> None:
    watch = Watch()
    assert grid(whole, watch) == GridSummary(jobs=4, ran=0, there=4, finished=True)
    assert watch.started == []
    found = results(whole)
    assert [[line["iteration"] for line in lines] for lines in found.values()] == [[1, 2, 3, 4]] * 4
    values = [lines[-1]["evaluation"]["nash_conv"] for lines in found.values()]
    assert len(set(values)) == 4
    for job in jobs(whole):  # which keep their policy and not their memories
        assert not list(job.path.rglob("memory-*.npy"))
        assert RunFolder.open(job.path).load_policy("average", pytest.fail)[1].iteration == 4


@pytest.mark.parametrize("after", [1, 4, 7, 16])
def test_a_grid_broken_off_anywhere_goes_on_from_there(tmp_path: Path, whole: Path, after: int) -> None:
    with pytest.raises(Killed):
        grid(tmp_path, Watch(after))
    there = (after - 1) // 4
    watch = Watch()
    assert grid(tmp_path, watch) == GridSummary(jobs=4, ran=4 - there, there=there, finished=True)
    # the iteration that was broken off is done again, and no other; tables are saved by their own clock
    if there < 3:
        assert watch.iterations == 16 - (after - 1)
    assert results(tmp_path) == results(whole)


def test_a_run_of_other_settings_is_refused_with_both_values(tmp_path: Path) -> None:
    RunFolder.create(tmp_path / "base-s0", with_sections(CONFIG, advantage={"steps": 5}))
    with pytest.raises(
        CheckpointError, match=r"base-s0' holds a run of other settings: advantage.steps is 5 there and 4"
    ):
        grid(tmp_path, Watch())


def test_where_a_run_runs_is_no_difference() -> None:
    assert difference(CONFIG, replace(CONFIG, runtime=RuntimeConfig(threads=7, checkpoint_seconds=9))) is None
    assert difference(CONFIG, TABULAR) is not None
    nfsp = replace(CONFIG, solver="nfsp")
    assert (
        difference(nfsp, replace(nfsp, cfr=replace(CONFIG.cfr, fallback="uniform"))) is None
    )  # a section that it does not read
    assert difference(nfsp, replace(nfsp, nfsp=replace(CONFIG.nfsp, episodes=7))) is not None
    one, other = (tabular("mccfr", abstraction=f"{f}/b-20") for f in ("here", "there"))
    assert difference(one, other) is None
    assert difference(one, TABULAR) is not None


def test_a_folder_that_another_process_has_claimed_is_waited_for_at_the_end(tmp_path: Path) -> None:
    lock = tmp_path / ".base-s0.lock"
    code = "import fcntl, sys, time\nf = open(sys.argv[1], 'ab')\nfcntl.flock(f, fcntl.LOCK_EX)\nprint(1, flush=True)\n"
    other = subprocess.Popen([sys.executable, "-c", code + "time.sleep(60)", str(lock)], stdout=subprocess.PIPE)
    assert other.stdout is not None
    other.stdout.readline()
    with claimed(tmp_path / "base-s0", wait=False) as mine:
        assert not mine

    class Releasing(Watch):
        def start(self, run: RunFolder, solver: Any, notes: list[str]) -> None:
            super().start(run, solver, notes)
            if run.path.name == "tables-s0":
                other.kill()  # which gives the lock back, as any end of a process does

    try:
        watch = Releasing()
        assert grid(tmp_path, watch).finished
    finally:
        other.kill()
        other.wait()
        other.stdout.close()
    assert [name.split()[0] for name in watch.started] == ["window-s0", "base-s1", "tables-s0", "base-s0"]
