"""Many runs one after another: each is an ordinary run folder; finished ones are skipped, interrupted ones are resumed.

A folder is claimed with a lock of the operating system, which goes when its process does, however that ends. So the
same command may run twice, on two cores: each takes what the other has not claimed.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deepcfr.buckets.buckets import DESCRIPTION, save_abstraction
from deepcfr.buckets.make import make_abstraction
from deepcfr.config import RunConfig, RuntimeConfig, settings_by_name
from deepcfr.core.errors import CheckpointError
from deepcfr.game.bet_size_betting import can_be_listed
from deepcfr.game.bet_sizes import BetSizeRules
from deepcfr.game.presets import cards_of, is_poker, load_rules
from deepcfr.measure.limits import too_many_boards
from deepcfr.run.checkpoint import save_checkpoint
from deepcfr.run.folder import RunFolder
from deepcfr.run.listing import duration
from deepcfr.run.metrics import read_metrics
from deepcfr.run.record import finished_at, held
from deepcfr.run.train import Observer, train

Say = Callable[[str], None]
Observing = Callable[[], AbstractContextManager[Observer]]
_ABSTRACTION_SEED = 0  # seeds of an arm differ by what is sampled, not by their abstraction


@dataclass(frozen=True)
class Job:
    """One run of a grid; `buckets` asks for an abstraction at the folder that the configuration names."""

    path: Path
    config: RunConfig
    buckets: int = 0


@dataclass(frozen=True)
class GridSummary:
    """The outcome of a call of `run_grid`."""

    jobs: int
    ran: int  # here and now
    there: int  # finished before, or by another process
    finished: bool  # False after an interrupt


def run_grid(jobs: Sequence[Job], observer: Observing, say: Say) -> GridSummary:
    """Finish every job, in order; wait at the end for those that another process is running.

    Ctrl-C finishes an iteration, saves and stops the grid. Raises CheckpointError for a folder that holds a run of
    other settings, and what `train` raises.
    """
    ran = there = 0
    waiting = list(jobs)
    for patient in (False, True):  # first what is free
        left = []
        for job in waiting:
            with claimed(job.path, wait=patient) as mine:
                if not mine:
                    left.append(job)
                    continue
                if is_finished(job):
                    there += 1
                    _drop_memories(job.path, say)
                    continue
                say(f"{job.path} ({ran + there + 1} of {len(jobs)})")
                started = time.perf_counter()
                if not _carry_on(job, observer, say):
                    return GridSummary(len(jobs), ran, there, finished=False)
                ran += 1
                if others := len(jobs) - ran - there:
                    seconds = time.perf_counter() - started
                    say(f"{others} to go, about {duration(others * seconds)} if each takes as long as this one")
        waiting = left
        if waiting and not patient:
            say(f"Another process is at {', '.join(str(job.path) for job in waiting)}: waiting for it.")
    return GridSummary(len(jobs), ran, there, finished=True)


def is_finished(job: Job) -> bool:
    """Whether the folder holds the job's run with its last evaluation. Raises CheckpointError if it holds another run."""
    if not (job.path / "config.toml").is_file():
        return False
    run = RunFolder.open(job.path)
    if problem := difference(run.config, job.config):
        raise CheckpointError(f"'{job.path}' holds a run of other settings: {problem}. Move it away to run this study.")
    return is_complete(run)


def is_complete(run: RunFolder) -> bool:
    """Whether a run came to its end, and was evaluated there if exact evaluation is within reach.

    Its end is its last iteration, or the first one after its time is over.
    """
    lines = read_metrics(run.metrics_path)
    if not lines or not finished_at(run.config, lines[-1]):
        return False
    source = run.source
    unlisted = isinstance(source, BetSizeRules) and not can_be_listed(source)
    out_of_reach = unlisted or (is_poker(source) and too_many_boards(cards_of(source)) is not None)
    return "evaluation" in lines[-1] or out_of_reach


def difference(found: RunConfig, asked: RunConfig) -> str | None:
    """The settings that solvers read in which two configurations differ, apart from where and how they run; or None."""
    own, other = (flat_settings(config) for config in (found, asked))
    differing = [key for key in sorted(own.keys() | other.keys()) if own.get(key) != other.get(key)]
    if not differing:
        return None
    return ", ".join(f"{key} is {own.get(key)!r} there and {other.get(key)!r} here" for key in differing)


def flat_settings(config: RunConfig) -> dict[str, Any]:
    """Settings by dotted key; an abstraction counts as present or absent, not by its folder."""
    if folder := config.solve.abstraction_folder:
        name = folder.name
        config = dataclasses.replace(config, solve=dataclasses.replace(config.solve, abstraction=name))
    return settings_by_name(dataclasses.replace(config, runtime=RuntimeConfig()))


def _carry_on(job: Job, observer: Observing, say: Say) -> bool:
    """Start or resume a run; False if it was interrupted."""
    if (job.path / "config.toml").is_file():
        run = RunFolder.open(job.path)
    else:
        if job.buckets:
            _require_abstraction(job, say)
        run = RunFolder.create(job.path, job.config)
    with observer() as watching:
        summary = train(run, watching)
    if summary.finished:
        _drop_memories(job.path, say)
    return summary.finished


def _require_abstraction(job: Job, say: Say) -> None:
    """Make the job's abstraction if its folder does not hold one."""
    folder = job.config.solve.abstraction_folder
    assert folder is not None
    with claimed(folder, wait=True):
        if (folder / DESCRIPTION).is_file():  # written last
            return
        rules = load_rules(job.config.game)
        say(f"{folder}: {job.buckets:,} buckets of {rules.name}")
        threads = job.config.runtime.threads
        made = make_abstraction(rules, (job.buckets,), _ABSTRACTION_SEED, threads, say)
        save_abstraction(folder, made, {"buckets": [job.buckets], "seed": _ABSTRACTION_SEED})


def _drop_memories(path: Path, say: Say) -> None:
    """Save a finished run's last state without its memories, which take most of its bytes."""
    run = RunFolder.open(path)
    checkpoint = run.checkpoint(say)
    if checkpoint is None or not checkpoint.state["memories"]:
        return
    solver, seconds = run.load_solver(say, memories=False)
    save_checkpoint(path, solver, run.fingerprint, seconds, keep=1, memories=False)


def claimed(path: Path, *, wait: bool) -> AbstractContextManager[bool]:
    """Claim a run folder while the body runs; False if another process has it and the call may not wait.

    The lock is a file beside the folder, so that folders stay as `RunFolder` makes them.
    """
    return held(path.with_name(f".{path.name}.lock"), wait=wait)
