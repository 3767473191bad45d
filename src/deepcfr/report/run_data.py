"""Data of runs: configuration, environment, and metrics, thinned if they are long; and the list of a folder's runs.

The list has state, result and age, and the command that goes on with each, for `deepcfr runs`.
"""

from __future__ import annotations

import dataclasses
import math
import os
import shlex
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Column, Table

from deepcfr.config import UNREAD, AnyConfig, RunConfig, settings_by_name
from deepcfr.defaults import default_config, default_solve_config
from deepcfr.errors import CheckpointError, ConfigError, DeepCFRError, GameError
from deepcfr.files import read_json
from deepcfr.games.presets import GameSource, is_poker
from deepcfr.report.chart import figure
from deepcfr.runs.cards import restart
from deepcfr.runs.metrics import whole_lines
from deepcfr.runs.record import RunRecord, checkpoint_folders

MOST_LINES = 2_000  # most lines of metrics that are read, besides evaluations


@dataclass(frozen=True)
class RunData:
    """The data of a run folder at one moment."""

    name: str
    config: AnyConfig
    source: GameSource
    environment: dict[str, Any]  # empty if not recorded
    lines: tuple[dict[str, Any], ...]  # of metrics, oldest first
    every: int  # `lines` has every `every`-th iteration, and all with an evaluation
    size: int  # bytes of the metrics when they were read, or a little less

    @property
    def game(self) -> str:
        """The name of the run's game."""
        return self.source.name

    @property
    def unit(self) -> str:
        """The milli unit, such as mbb/g."""
        return self.source.milli_unit

    @property
    def method(self) -> str:
        """The name of the run's method."""
        return self.config.method

    @property
    def family(self) -> str:
        """The kind of its metrics: of deep-cfr, nfsp, ppo or tabular solvers."""
        return self.config.solver if isinstance(self.config, RunConfig) else "tabular"

    @property
    def all_hands(self) -> bool:
        """Whether it counts nodes of public-chance or full-width passes, not of sampled histories."""
        return self.config.plays_all_hands

    @property
    def finished(self) -> bool:
        """Whether it has done its last iteration or used its time."""
        return bool(self.lines) and finished_at(self.config, self.lines[-1])

    @property
    def iterations(self) -> str:
        """Iterations done as text, with the total if it has not finished."""
        done = self.lines[-1]["iteration"] if self.lines else 0
        return f"{done:,}" if self.finished else f"{done:,} of {self.config.iterations:,}"

    @property
    def nash_conv(self) -> str:
        """The last exact NashConv as text, in the milli unit; a dash if there is none."""
        values = [value for line in self.lines if (value := nash_conv(line)) is not None]
        return figure(values[-1]) if values else "–"

    @property
    def evaluated(self) -> list[dict[str, Any]]:
        """The lines with an exact evaluation."""
        return [line for line in self.lines if nash_conv(line) is not None]


def read_run(path: Path, name: str) -> RunData:
    """Read a run folder; `name` is its name on pages. Raises CheckpointError, ConfigError, GameError if it is damaged."""
    run = RunRecord.open(path)
    try:
        environment = read_json(run.path / "environment.json")
    except CheckpointError:
        environment = {}  # the page says that it was not recorded
    size = run.metrics_path.stat().st_size if run.metrics_path.is_file() else 0
    lines, every = read_thinned(run.metrics_path, MOST_LINES)
    return RunData(name, run.config, run.source, environment, tuple(lines), every, size)


def read_thinned(path: Path, most: int) -> tuple[list[dict[str, Any]], int]:
    """About `most` evenly spaced lines of metrics, all with an evaluation, and the last one.

    Returns also the step between lines. Empty without a file; raises CheckpointError for damage before the end.
    """
    if not path.is_file():
        return [], 1
    raw = path.read_bytes().splitlines()
    every = max(1, -(-len(raw) // most))
    chosen = (i for i, text in enumerate(raw) if i % every == 0 or i >= len(raw) - 2 or b'"evaluation"' in text)
    return list(whole_lines(path, ((i + 1, raw[i]) for i in chosen), lambda _: None)), every


def read_new(path: Path, after: int, most: int) -> tuple[list[dict[str, Any]], int]:
    """At most `most` lines of metrics after the byte `after`, and the byte at which to continue.

    A shorter file was rewritten by a resumed run and is read from its start. An incomplete last line is not read yet.
    """
    if not path.is_file():
        return [], 0
    with open(path, "rb") as file:
        size = file.seek(0, 2)
        at = file.seek(after if after <= size else 0)
        lines: list[dict[str, Any]] = []
        while len(lines) < most and (text := file.readline()).endswith(b"\n"):
            at += len(text)
            lines += whole_lines(path, [(0, text)], lambda _: None)
    return lines, at


def finished_at(config: AnyConfig, line: dict[str, Any]) -> bool:
    """Whether a run ends with this line of metrics: its last iteration, or the first one after its time limit."""
    limit = 60 * config.runtime.minutes or math.inf
    return bool(line["iteration"] >= config.iterations or (number(line, "seconds") or 0.0) >= limit)


def number(line: dict[str, Any], key: str, index: int | None = None) -> float | None:
    """A finite number of a line of metrics, with `index` one of a pair; None if there is none."""
    value = line.get(key)
    if index is not None:
        value = value[index] if isinstance(value, list) and len(value) > index else None
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value)


def nash_conv(line: dict[str, Any]) -> float | None:
    """The exact NashConv of a line of metrics, in the game's milli unit; None if it has none."""
    evaluation = line.get("evaluation")
    return number(evaluation, "nash_conv") if isinstance(evaluation, dict) else None


def settings(run: RunData) -> dict[str, Any]:
    """All settings that the run's solver reads, by dotted name."""
    return _flat(run.config)


def default_settings(run: RunData) -> dict[str, Any]:
    """The default settings of the run's game and solver; its own settings if the game cannot be made here."""
    config = run.config
    if isinstance(config, RunConfig):
        try:
            plain: AnyConfig = default_config(config.game, config.solver, run.source)
        except (ConfigError, GameError):  # such as OpenSpiel, which is not installed
            plain = config
    else:
        plain = default_solve_config()
    return _flat(dataclasses.replace(plain, game=config.game))


def _flat(config: AnyConfig) -> dict[str, Any]:
    unread = UNREAD[config.solver] if isinstance(config, RunConfig) else ()
    return {name: value for name, value in settings_by_name(config).items() if name.split(".")[0] not in unread}


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
