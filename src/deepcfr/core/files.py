"""Write files atomically: a crash, a full disk or a power failure never leaves part of a file; and keep large tables."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import logging
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from platformdirs import user_cache_dir, user_state_dir

from deepcfr.core.errors import CheckpointError, ConfigError

if TYPE_CHECKING:
    import torch

_LOG = logging.getLogger(__name__)


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give a temporary name for a file to be written, then sync and rename it; after an error nothing is left of it.

    If two processes write the same file at once, the later one wins. Raises CheckpointError if it cannot be written.
    """
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        with writing(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            yield temporary
            with open(temporary, "rb+") as file:
                os.fsync(file.fileno())
            os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise


def write_atomically(path: Path, data: bytes | memoryview) -> None:
    """Write a file as `replacing` does."""
    with replacing(path) as temporary:
        temporary.write_bytes(data)


def require_writable(path: Path) -> None:
    """Raise CheckpointError if `write_atomically` could not write a file here; makes its folder."""
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.touch()
        temporary.unlink()


def cannot_write(path: Path, error: OSError) -> CheckpointError:
    """The error for a path that cannot be written, with the system's reason."""
    return CheckpointError(f"'{path}' cannot be written: {error.strerror or error}.")


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Raise what `cannot_write` returns in the place of an OSError."""
    try:
        yield
    except OSError as error:
        raise cannot_write(path, error) from error


def sync_folder(path: Path) -> None:
    """Make renames within a folder durable. Windows opens no folders, and keeps renames in its journal."""
    if os.name == "nt":
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def checksum(path: Path) -> str:
    """BLAKE2b of a file's bytes, in hex."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "blake2b").hexdigest()


def self_checksum(value: dict[str, Any]) -> str:
    """BLAKE2b of a JSON object without its `checksum`, in hex."""
    rest = {name: item for name, item in value.items() if name != "checksum"}
    return hashlib.blake2b(json.dumps(rest, sort_keys=True).encode()).hexdigest()


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object from a file, whose `checksum`, if it has one, is verified.

    Raises CheckpointError naming the file if it is missing or damaged.
    """
    try:
        value = json.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, RecursionError) as error:
        raise CheckpointError(f"'{path}' cannot be read: {error}.") from error
    if not isinstance(value, dict):
        raise CheckpointError(f"'{path}' is damaged: it does not hold a JSON object.")
    if value.get("checksum", expected := self_checksum(value)) != expected:
        raise CheckpointError(f"'{path}' is damaged: its contents do not match their checksum.")
    return value


def text_of(path: Path) -> str:
    """The text of a file. Raises ConfigError if it is none."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(f"'{path}' is not a text in UTF-8.") from error


def json_bytes(value: dict[str, Any]) -> bytes:
    """A JSON object as indented UTF-8 text."""
    return (json.dumps(value, indent=2) + "\n").encode()


def signed_json(value: dict[str, Any]) -> bytes:
    """A JSON object as `json_bytes` gives it, with its `checksum`."""
    return json_bytes(value | {"checksum": self_checksum(value)})


def csv_text(rows: Iterable[Sequence[object]]) -> str:
    """Rows as CSV."""
    file = io.StringIO()
    csv.writer(file, lineterminator="\n").writerows(rows)
    return file.getvalue()


def cache_folder() -> Path | None:
    """The folder of large tables: DEEPCFR_CACHE of the environment, or a folder of this library in the user's cache.

    None for a user without a home, as in containers.
    """
    return _own_folder("DEEPCFR_CACHE", user_cache_dir)


def state_folder() -> Path | None:
    """The folder of what programs keep between runs: DEEPCFR_STATE of the environment, or one of this library's own.

    None for a user without a home.
    """
    return _own_folder("DEEPCFR_STATE", user_state_dir)


def _own_folder(variable: str, usual: Callable[[str], str]) -> Path | None:
    with suppress(RuntimeError):  # which both raise if there is no home
        return Path(os.environ.get(variable) or usual("deepcfr")).expanduser()
    return None


def kept_arrays(name: str, title: str, make: Callable[[], dict[str, torch.Tensor]]) -> dict[str, torch.Tensor]:
    """The arrays of the cache's file `name`; if it is missing or damaged, those that `make` returns, kept in it.

    `title` says in a note what cannot be kept.
    """
    from safetensors import SafetensorError
    from safetensors.torch import load_file, save_file

    folder = cache_folder()
    if folder is None:
        _LOG.warning(f"{title} cannot be kept: this user has no home, and DEEPCFR_CACHE names no folder.")
        return make()
    path = folder / f"{name}.safetensors"
    with suppress(OSError, SafetensorError):
        return load_file(path)
    arrays = make()
    try:
        with replacing(path) as temporary:
            save_file(arrays, temporary)
    except (CheckpointError, SafetensorError) as error:
        _LOG.warning(f"{title} cannot be kept in '{folder}': {error}")
    return arrays
