"""Output of commands: standard output, a console, progress, one JSON object, a warning."""

from __future__ import annotations

import io
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from typing import Any, TextIO, cast

from rich.console import Console

from deepcfr.core.errors import DeepCFRError


class StandardOutput:
    """Standard output that says so when it cannot be written.

    When its reader has gone (as `| head` does), a command that saves its work goes on without it.
    """

    def __init__(self, file: TextIO, goes_on: bool) -> None:
        self._file, self._goes_on = file, goes_on

    def write(self, text: str) -> int:
        self._try(lambda: self._file.write(text))
        return len(text)

    def flush(self) -> None:
        self._try(self._file.flush)

    def _try(self, act: Callable[[], object]) -> None:
        try:
            act()
        except OSError as error:
            nowhere = os.open(os.devnull, os.O_WRONLY)  # what is still in the buffer goes there
            os.dup2(nowhere, self._file.fileno())
            os.close(nowhere)
            if not isinstance(error, BrokenPipeError):
                raise DeepCFRError(f"Standard output cannot be written: {error.strerror}.") from error
            if not self._goes_on:
                raise
            warn("standard output is closed; the command goes on without it and saves what it makes.")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


@contextmanager
def standard_output(*, goes_on: bool) -> Iterator[None]:
    """A block whose standard output is a `StandardOutput`, flushed at its end; `?` stands for what it cannot encode."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")
    with redirect_stdout(cast("TextIO", StandardOutput(sys.stdout, goes_on))):
        try:
            yield
        finally:
            sys.stdout.flush()


def open_console(as_json: bool) -> Console:
    """The console for messages: standard error if standard output is for one JSON object."""
    # no markup: names of runs and files may hold square brackets
    return Console(stderr=as_json, highlight=False, soft_wrap=True, markup=False)


@contextmanager
def progress_of(what: str, console: Console) -> Iterator[Callable[..., None]]:
    """Yield what is told (done, total, what is done) of long work: a bar; without a terminal a line every half minute.

    Such lines go to standard error, where no result is.
    """
    from rich.progress import Progress

    with Progress(console=console, transient=True) as progress:
        task, told = progress.add_task(what, total=None), time.monotonic()

        def update(done: int, total: int | None = None, description: str = what) -> None:
            nonlocal told
            progress.update(task, completed=done, total=total, description=description)
            if not console.is_terminal and time.monotonic() - told >= 30:
                told = time.monotonic()
                print(f"{description}: {done:,}{f' of {total:,}' if total else ''}", file=sys.stderr, flush=True)

        yield update


def print_json(value: dict[str, Any]) -> None:
    """Print one JSON object on standard output."""
    print(json.dumps(value))


def tell(as_json: bool, facts: dict[str, Any], text: str) -> None:
    """Print a result on standard output, as one JSON object or as text."""
    if as_json:
        print_json(facts)
    else:
        open_console(False).print(text)


def warn(message: str) -> None:
    """Print a sentence on standard error."""
    print(f"deepcfr: {message}", file=sys.stderr)
