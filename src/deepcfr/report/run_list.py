"""The runs of a folder: state, result, age, and the command that goes on with each, for `deepcfr runs`."""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Column, Table

from deepcfr.errors import CheckpointError, DeepCFRError
from deepcfr.games.presets import is_poker
from deepcfr.report.run_data import RunData, nash_conv, read_run
from deepcfr.runs.cards import restart
from deepcfr.runs.record import RunRecord, checkpoint_folders


def run_facts(folder: Path) -> list[dict[str, Any]]:
    """One record for each run folder below `folder`, the one that was written last first; `age` is in seconds.

    `state` is finished, unfinished or damaged; `nash_conv` is the newest exact one, in `unit`; `next` is a command. A
    damaged run has its path, its age, and the problem as `next`. Raises CheckpointError if there is no run.
    """
    now = time.time()
    facts = [_facts(path, now) for path in _run_folders(folder)]
    if not facts:
        raise CheckpointError(f"'{folder}' holds no runs: there is no folder below it with a config.toml.")
    return sorted(facts, key=lambda f: f["age"])


def _run_folders(folder: Path) -> Iterator[Path]:
    for path, folders, files in os.walk(folder):
        if "config.toml" in files:
            folders.clear()  # a run holds no other run
            yield Path(path)


def _facts(path: Path, now: float) -> dict[str, Any]:
    written = max(file.stat().st_mtime for file in path.iterdir() if file.suffix in (".toml", ".jsonl"))
    found: dict[str, Any] = {"run": str(path), "age": max(now - written, 0.0)}
    try:
        run, resumable = read_run(path, str(path)), RunRecord.open(path).keeps_memories()
    except DeepCFRError as error:
        return found | {"state": "damaged", "next": " ".join(error.problems)}
    values = [value for line in run.evaluated if (value := nash_conv(line)) is not None]
    return found | {
        "state": "finished" if run.finished else "unfinished",
        "game": run.game,
        "method": run.method,
        "iteration": run.lines[-1]["iteration"] if run.lines else 0,
        "iterations": run.config.iterations,
        "nash_conv": values[-1] if values else None,
        "unit": run.unit,
        "next": _next(run, path, resumable=resumable) if checkpoint_folders(path) else restart(path, run.config),
    }


def _next(run: RunData, path: Path, *, resumable: bool) -> str:
    """The command that goes on with a run: training, or its use where that is over."""
    resume = f"deepcfr resume {shlex.quote(str(path))}"
    if resumable and not run.finished:
        return resume
    if resumable and run.lines[-1]["iteration"] < run.config.iterations:  # its time was over
        return f"{resume} --minutes {2 * max(run.config.runtime.minutes, run.lines[-1]['seconds'] / 60):g}"
    if not resumable or run.family in ("nfsp", "ppo"):  # whose schedules end with its last iteration
        return f"deepcfr {'play' if is_poker(run.source) else 'exploitability'} {shlex.quote(str(path))}"
    return f"{resume} --iterations {2 * run.config.iterations}"


def show_runs(facts: list[dict[str, Any]], console: Console) -> None:
    """The facts as a table, with the command for each run below it."""
    table = Table(Column("run", overflow="fold"), "game", "method", "iterations", "exact NashConv", "written")
    for f in facts:
        if f["state"] == "damaged":
            table.add_row(f["run"], "damaged", "", "", "", age(f["age"]))
            continue
        done = f"{f['iteration']:,}" + ("" if f["state"] == "finished" else f" of {f['iterations']:,}")
        value = "–" if f["nash_conv"] is None else f"{f['nash_conv']:.2f} {f['unit']}"
        table.add_row(f["run"], f["game"], f["method"], done, value, age(f["age"]))
    console.print(table)
    for f in facts:
        console.print(f"{f['run']}: {f['next']}" if f["state"] == "damaged" else f["next"])


def age(seconds: float) -> str:
    """A time that has passed, in its largest whole unit."""
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= size:
            return f"{seconds // size:.0f} {unit} ago"
    return f"{seconds // 1:.0f} s ago"
