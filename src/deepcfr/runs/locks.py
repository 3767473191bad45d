"""Locks between processes, as files: a lock goes when its process does, however that ends."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from deepcfr.errors import CheckpointError
from deepcfr.files import cannot_write

with warnings.catch_warnings():
    # Without the system's locks, the file that names its process is the lock, for as long as that process lives.
    warnings.filterwarnings("ignore", message="only soft file lock is available")
    from filelock import FileLock, Timeout, UnixFileLock

LOCK = "lock"  # the file in the folder of a run that is being trained


@contextmanager
def held(path: Path, *, wait: bool = False) -> Iterator[bool]:
    """Hold the lock file `path` while the body runs; False if another process has it and the call may not wait.

    The file is made, and removed when the body has ended. Raises CheckpointError if the file cannot be written.
    """
    lock = FileLock(path, blocking=wait)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock.acquire()
    except Timeout:
        pass
    except OSError as error:
        raise cannot_write(path, error) from error
    try:
        yield lock.is_locked
    finally:
        if lock.is_locked and isinstance(lock, UnixFileLock):
            path.unlink(missing_ok=True)  # the other locks do so when released
        lock.release()


@contextmanager
def trained_here(path: Path) -> Iterator[None]:
    """Keep other processes from training the run in `path` while the body runs.

    The folder is made if it is missing. Raises CheckpointError if one does, or if it cannot be written.
    """
    with held(path / LOCK) as mine:
        if not mine:
            raise CheckpointError(f"'{path}' is being trained by another process.")
        yield
