"""Programs as other systems run them: without what Linux alone has, without a home, and where files cannot be written."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

NOT_ON_WINDOWS = ("fcntl", "resource", "pwd", "grp", "termios", "tty", "pty", "syslog")
WITHOUT = f"import sys\nsys.modules.update(dict.fromkeys({NOT_ON_WINDOWS}))\n"
"""Begins a program in which those modules cannot be imported."""

SRC = Path(__file__).parents[1] / "src"
HOMELESS = dict.fromkeys(("HOME", "DEEPCFR_CACHE", "DEEPCFR_STATE", "XDG_CACHE_HOME", "XDG_STATE_HOME"))
"""What `program` takes out of the environment, so that a user without a name has no folder of its own."""


def lock_up(folder: Path) -> None:
    """Take the right to write from a folder and all below it."""
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)


def read_only_code(folder: Path) -> Path:
    """A copy of the package in `folder` that cannot be written; its `source` for `program`."""
    shutil.copytree(SRC / "deepcfr", folder / "src" / "deepcfr", ignore=shutil.ignore_patterns("__pycache__"))
    lock_up(folder / "src")
    return folder / "src"


def unprivileged() -> list[str]:
    """Begins a command that minds the rights of files, even if root runs it."""
    return ["setpriv", "--bounding-set=-dac_override", "--inh-caps=-dac_override"] if os.geteuid() == 0 else []


def program(code: str, *arguments: object, source: Path = SRC, **environment: str | None) -> subprocess.Popen[str]:
    """Start Python code with the package in `source`; None takes a name out of the environment."""
    names = os.environ | {"PYTHONPATH": str(source)} | environment
    return subprocess.Popen(
        [*unprivileged(), sys.executable, "-c", code, *map(str, arguments)],
        env={name: value for name, value in names.items() if value is not None},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
