"""Locks of the operating system on run folders; they go when their process does, however that ends."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from deepcfr.errors import CheckpointError
from deepcfr.files import cannot_write


@contextmanager
def trained_here(path: Path) -> Iterator[None]:
    """Keep other processes from training the run in `path` while the body runs. Raises CheckpointError if one does."""
    folder = os.open(path, os.O_RDONLY)
    try:
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise CheckpointError(f"'{path}' is being trained by another process.") from error
        yield
    finally:
        os.close(folder)


@contextmanager
def claimed(path: Path, *, wait: bool) -> Iterator[bool]:
    """Claim a run folder while the body runs; False if another process has it and the call may not wait.

    The lock is a file beside the folder, so that folders stay as `RunFolder` makes them.
    """
    lock = path.with_name(f".{path.name}.lock")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = open(lock, "ab")  # noqa: SIM115  # closed below, which gives the lock back
    except OSError as error:
        raise cannot_write(lock, error) from error
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
