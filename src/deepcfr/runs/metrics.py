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

from deepcfr.files import cannot_write, write_atomically


def append_metrics(path: Path, record: dict[str, Any]) -> None:
    """Add one line. Raises CheckpointError if it cannot be written."""
    try:
        with open(path, "a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")
    except OSError as error:
        raise cannot_write(path, error) from error


def read_metrics(path: Path) -> list[dict[str, Any]]:
    """The lines of a file up to the first damaged one (a crash can tear the last). Empty without a file."""
    return list(whole_lines(path.read_bytes().splitlines())) if path.is_file() else []


def whole_lines(texts: Iterable[bytes], constant: Callable[[str], float | None] = float) -> Iterator[dict[str, Any]]:
    """Lines in order, up to the first damaged one. `constant` reads NaN and Infinity, which JSON does not have."""
    for text in texts:
        try:
            line = json.loads(text, parse_constant=constant)
        except ValueError:
            return
        if not isinstance(line, dict) or not isinstance(line.get("iteration"), int):
            return
        yield line


def truncate_metrics(path: Path, iteration: int) -> None:
    """Drop the lines after `iteration`, which a resumed run writes again."""
    kept = [record for record in read_metrics(path) if record["iteration"] <= iteration]
    write_atomically(path, "".join(json.dumps(record) + "\n" for record in kept).encode())


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
    script = ["-m", f"experiments.{path.stem}"] if path.parent.name == "experiments" else [program]
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
