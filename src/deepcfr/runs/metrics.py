"""The metrics of a run, one JSON object a line; and the environment that made them."""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from deepcfr.errors import CheckpointError
from deepcfr.files import cannot_write, write_atomically


def append_metrics(path: Path, record: dict[str, Any]) -> None:
    """Add one line. Raises CheckpointError if it cannot be written."""
    try:
        with open(path, "a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")
    except OSError as error:
        raise cannot_write(path, error) from error


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
