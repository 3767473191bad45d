"""A lock of the operating system on a run folder; it goes when its process does, however that ends."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from deepcfr.errors import CheckpointError


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
