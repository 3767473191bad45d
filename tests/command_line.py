"""The command line in this process, as several test modules run it."""

from __future__ import annotations

import io
import json
import re
import sys
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

import numba  # noqa: F401
import pytest
import torch  # noqa: F401

from deepcfr import cli

NOTE = "deepcfr: loading libraries takes some seconds.\n"  # of a process that has not loaded them yet, as this one has


class Outcome(NamedTuple):
    """How the command ended."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        """The one object on standard output."""
        assert self.status == 0, self.err
        assert self.out.count("\n") == 1
        value = json.loads(self.out)
        assert isinstance(value, dict)
        return value


def edit_settings(run: Path, old: str, new: str) -> None:
    """Replace the first match of the pattern `old` in a run's configuration, and delete its checksum, as a user does."""
    text, count = re.subn(old, new, (run / "config.toml").read_text(), count=1)
    assert count == 1
    (run / "config.toml").write_text("".join(text.splitlines(keepends=True)[:-1]))


def deepcfr(*arguments: object, answers: str = "") -> Outcome:
    """Run the command in this process; an exception that the command would show as a traceback passes through."""
    return _outcome(cli.main, "deepcfr", arguments, answers)


def experiments(*arguments: object) -> Outcome:
    """Run `python -m experiments` in this process, as `deepcfr` is run."""
    from experiments import __main__ as program

    return _outcome(program.main, program.__file__, arguments)


def _outcome(main: Callable[[], None], name: str, arguments: tuple[object, ...], answers: str = "") -> Outcome:
    out, err = io.StringIO(), io.StringIO()
    status: Any = 0
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.setattr(sys, "argv", [name, *map(str, arguments)])
        patch.setattr(sys, "stdin", io.StringIO(answers))
        patch.setenv("COLUMNS", "120")
        try:
            main()
        except SystemExit as stop:
            status = stop.code or 0
    return Outcome(status, out.getvalue(), err.getvalue())


def problems(outcome: Outcome) -> list[str]:
    """The sentences of a refusal: status 2 and nothing on standard output."""
    assert outcome.status == 2
    assert outcome.out.strip() == ""
    lines = outcome.err.strip().splitlines()
    for line in lines:
        assert re.fullmatch(r"deepcfr: .*[.?]", line), line
        assert "Traceback" not in line
    return [line.removeprefix("deepcfr: ") for line in lines]


def problem(outcome: Outcome) -> str:
    """The one sentence of a refusal."""
    (sentence,) = problems(outcome)
    return sentence
