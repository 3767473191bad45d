"""The metrics of a run, one JSON object a line; and the environment that made them."""

from __future__ import annotations

import importlib.metadata
import json
import math
import os
import platform
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from deepcfr.core.errors import CheckpointError
from deepcfr.core.files import write_atomically, writing


def append_metrics(path: Path, record: dict[str, Any]) -> None:
    """Add one line. Raises CheckpointError if it cannot be written."""
    with writing(path), open(path, "a", encoding="utf-8") as file:
        file.write(json.dumps(record) + "\n")


def read_metrics(path: Path) -> list[dict[str, Any]]:
    """The lines of a file, without a torn end. Empty without a file; raises CheckpointError for damage elsewhere."""
    return list(whole_lines(path, enumerate(path.read_bytes().splitlines(), 1))) if path.is_file() else []


def whole_lines(
    path: Path, numbered: Iterable[tuple[int, bytes]], constant: Callable[[str], float | None] = float
) -> Iterator[dict[str, Any]]:
    """The lines of `path` among (number, text), in order, without an end that is torn, as a crash can leave it.

    `constant` reads NaN and Infinity, which JSON does not have. Raises CheckpointError for damage before a whole line.
    """
    damaged = 0
    for number, text in numbered:
        try:
            line = json.loads(text, parse_constant=constant)
        except (ValueError, RecursionError):
            line = None
        if not isinstance(line, dict) or not isinstance(line.get("iteration"), int):
            damaged = damaged or number
        elif damaged:
            raise CheckpointError(
                f"Line {damaged} of '{path}' is damaged: put back a copy of the file, or delete the line."
            )
        else:
            yield line


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


def truncate_metrics(path: Path, iteration: int) -> int:
    """Drop the lines after `iteration`, which a resumed run writes again; returns the last iteration that is left, or 0.

    Raises the errors of `read_metrics`.
    """
    kept = [record for record in read_metrics(path) if record["iteration"] <= iteration]
    write_atomically(path, "".join(json.dumps(record) + "\n" for record in kept).encode())
    return kept[-1]["iteration"] if kept else 0


def environment(device: str, threads: int) -> dict[str, Any]:
    """The environment of a run: versions, hardware, commit and command."""
    packages = ("deepcfr", "torch", "numpy", "numba", "safetensors")
    return {
        "command": _command(),
        "commit": _commit(),
        "python": platform.python_version(),
        "versions": {name: importlib.metadata.version(name) for name in packages},
        "platform": platform.platform(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "device": device,
        "threads": threads,
    }


def _command() -> str:
    program, *arguments = sys.argv or [""]  # an embedded interpreter may have none
    path = Path(program)
    if path.stem == "deepcfr" or path.parts[-3:] == ("deepcfr", "cli", "__main__.py"):
        return shlex.join(["deepcfr", *arguments])
    script = [program]
    if path.parent.name == "experiments":
        script = ["-m", "experiments" if path.stem == "__main__" else f"experiments.{path.stem}"]
    return shlex.join(["python", *script, *arguments])


def _commit() -> str | None:
    """The git commit of the source tree, with a mark if it has changes; None outside the project's own checkout."""
    tracked = _git("ls-files", "--error-unmatch", Path(__file__).name)
    commit = _git("rev-parse", "HEAD")
    if tracked is None or commit is None:
        return None
    return commit + ("+changes" if _git("status", "--porcelain", "-uno") else "")


def _git(*arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", *arguments], cwd=Path(__file__).parent, capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.is_file():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor()
