"""What the page of a run is made from: its configuration, its environment, and its metrics, thinned if they are long."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deepcfr.config import AnyConfig, RunConfig
from deepcfr.defaults import default_config, default_solve_config
from deepcfr.errors import CheckpointError
from deepcfr.files import read_json
from deepcfr.runs.folder import RunFolder
from deepcfr.web.run_chart import figure

MOST_LINES = 2_000  # of metrics that are read, besides those with an evaluation
_METHODS = {
    "deep-cfr": "Deep CFR",
    "nfsp": "NFSP",
    "mccfr": "Monte Carlo CFR",
    "cfr": "CFR",
    "cfr+": "CFR+",
    "linear-cfr": "Linear CFR",
    "dcfr": "Discounted CFR",
}
_UNREAD = {  # sections that a solver does not read
    "nfsp": ("cfr", "public_chance", "memory", "advantage", "average"),
    "deep-cfr": ("nfsp",),
}


@dataclass(frozen=True)
class RunData:
    """A run as its folder has it at one moment."""

    name: str
    config: AnyConfig
    game: str
    unit: str  # the milli unit, such as mbb/g
    environment: dict[str, Any]  # empty if it was not recorded
    lines: tuple[dict[str, Any], ...]  # of metrics, oldest first
    every: int  # of iterations without an evaluation, every so many-th one is in `lines`
    size: int  # bytes of the metrics when they were read, or a little less

    @property
    def method(self) -> str:
        """What the run does, in a word or two."""
        return _METHODS[self.config.solver if isinstance(self.config, RunConfig) else self.config.solve.algorithm]

    @property
    def family(self) -> str:
        """What kind of metrics it has: of deep-cfr, nfsp or tabular solvers."""
        return self.config.solver if isinstance(self.config, RunConfig) else "tabular"

    @property
    def full_width(self) -> bool:
        """Whether it counts as nodes what full-width passes count, and not sampled histories."""
        return not isinstance(self.config, RunConfig) and self.config.solve.algorithm != "mccfr"

    @property
    def finished(self) -> bool:
        """Whether it came to its last iteration, or to the end of its time."""
        return bool(self.lines) and finished_at(self.config, self.lines[-1])

    @property
    def iterations(self) -> str:
        """How many are done, and of how many if it has not come to its end."""
        done = self.lines[-1]["iteration"] if self.lines else 0
        return f"{done:,}" if self.finished else f"{done:,} of {self.config.iterations:,}"

    @property
    def nash_conv(self) -> str:
        """The last exact one, in the milli unit; a dash if there is none."""
        values = [value for line in self.lines if (value := nash_conv(line)) is not None]
        return figure(values[-1]) if values else "–"

    @property
    def evaluated(self) -> list[dict[str, Any]]:
        """The lines with an exact evaluation."""
        return [line for line in self.lines if nash_conv(line) is not None]


def read_run(path: Path, name: str) -> RunData:
    """The run in a folder, under a name. Raises CheckpointError, ConfigError, GameError if it is damaged."""
    run = RunFolder.open(path)
    try:
        environment = read_json(path / "environment.json")
    except CheckpointError:
        environment = {}  # its page says that it was not recorded
    size = run.metrics_path.stat().st_size if run.metrics_path.is_file() else 0
    lines, every = read_thinned(run.metrics_path, MOST_LINES)
    return RunData(name, run.config, run.source.name, run.source.milli_unit, environment, tuple(lines), every, size)


def read_thinned(path: Path, most: int) -> tuple[list[dict[str, Any]], int]:
    """At most about `most` lines of metrics evenly, all with an evaluation and the last one, up to the first damaged one.

    With them, of how many lines each stands for. Empty without a file.
    """
    if not path.is_file():
        return [], 1
    raw = path.read_bytes().splitlines()
    every = max(1, -(-len(raw) // most))
    chosen = (i for i, text in enumerate(raw) if i % every == 0 or i >= len(raw) - 2 or b'"evaluation"' in text)
    return list(_whole(raw[i] for i in chosen)), every


def read_new(path: Path, after: int, most: int) -> tuple[list[dict[str, Any]], int]:
    """At most `most` lines of metrics after the byte `after`, and the byte to go on from.

    A file shorter than that was written anew by a resumed run, and is read from its start; a torn line waits to be whole.
    """
    if not path.is_file():
        return [], 0
    with open(path, "rb") as file:
        size = file.seek(0, 2)
        at = file.seek(after if after <= size else 0)
        lines: list[dict[str, Any]] = []
        while len(lines) < most and (text := file.readline()).endswith(b"\n"):
            at += len(text)
            lines += _whole([text])
    return lines, at


def _whole(texts: Iterable[bytes]) -> Iterator[dict[str, Any]]:
    for text in texts:
        try:
            line = json.loads(text, parse_constant=lambda _: None)  # NaN and Infinity are no JSON
        except ValueError:
            return
        if not isinstance(line, dict) or not isinstance(line.get("iteration"), int):
            return
        yield line


def finished_at(config: AnyConfig, line: dict[str, Any]) -> bool:
    """Whether a run ends with this line of metrics: with its last iteration, or the first one after its time is over."""
    limit = 60 * config.runtime.minutes or math.inf
    return bool(line["iteration"] >= config.iterations or (number(line, "seconds") or 0.0) >= limit)


def number(line: dict[str, Any], key: str, index: int | None = None) -> float | None:
    """A finite number of a line of metrics, one of a pair with `index`; None if there is none."""
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
    """What `settings` would be if nothing had been asked for but the game and the solver."""
    config = run.config
    plain = default_config(config.game, config.solver) if isinstance(config, RunConfig) else default_solve_config()
    return _flat(dataclasses.replace(plain, game=config.game))


def _flat(config: AnyConfig) -> dict[str, Any]:
    unread = _UNREAD[config.solver] if isinstance(config, RunConfig) else ()
    flat: dict[str, Any] = {}
    for section, value in dataclasses.asdict(config).items():
        if not isinstance(value, dict):
            flat[section] = value
        elif section not in unread:
            flat |= {f"{section}.{key}": item for key, item in value.items()}
    return flat
