"""The table below a chart: the method, result, environment and command of each run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deepcfr.errors import CheckpointError
from deepcfr.files import read_json
from deepcfr.report.methods import Method
from deepcfr.runs.folder import RunFolder
from deepcfr.runs.metrics import read_metrics

Warn = Callable[[str], None]
_UNKNOWN = "not recorded"


@dataclass(frozen=True)
class Row:
    """One run; NashConv is in the game's milli unit and has its iteration."""

    run: str  # the path of its folder
    method: Method
    seed: int
    iterations: int  # done
    planned: int
    nodes_touched: int
    seconds: float  # evaluations included
    evaluation_seconds: float
    first: tuple[float, int]
    last: tuple[float, int]
    best: tuple[float, int]
    command: str
    commit: str
    hardware: str


def row(run: RunFolder, method: Method, warn: Warn) -> Row:
    """The row of a run with at least one exact evaluation; `warn` gets a message if its environment was not recorded."""
    lines = read_metrics(run.metrics_path)
    measured = [(line["evaluation"]["nash_conv"], line["iteration"]) for line in lines if "evaluation" in line]
    command, commit, hardware = provenance(run.path, warn)
    return Row(
        run=str(run.path),
        method=method,
        seed=run.config.seed,
        iterations=lines[-1]["iteration"],
        planned=run.config.iterations,
        nodes_touched=lines[-1]["total_nodes_touched"],
        seconds=lines[-1]["seconds"],
        evaluation_seconds=sum(line["evaluation"]["seconds"] for line in lines if "evaluation" in line),
        first=measured[0],
        last=measured[-1],
        best=min(measured),
        command=command,
        commit=commit,
        hardware=hardware,
    )


def provenance(path: Path, warn: Warn = lambda _: None) -> tuple[str, str, str]:
    """Command, commit and hardware of the run in a folder, including those of resumed parts."""
    try:
        environment = read_json(path / "environment.json")
    except CheckpointError as error:
        warn(" ".join(error.problems))
        return _UNKNOWN, _UNKNOWN, _UNKNOWN
    sittings = [environment, *environment.get("resumed", [])]
    commands = (sitting.get("command") or _UNKNOWN for sitting in sittings)
    commits = (sitting.get("commit") or _UNKNOWN for sitting in sittings)
    return tuple(", then ".join(dict.fromkeys(texts)) for texts in (commands, commits, map(_hardware, sittings)))  # type: ignore[return-value]


def _hardware(environment: dict[str, Any]) -> str:
    processor, cores = environment.get("processor") or "processor unknown", environment.get("cores")
    return f"{processor}, {cores} cores; {environment.get('device')}, {environment.get('threads')} threads"
