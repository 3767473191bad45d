"""Checkpoints: everything that a solver needs to continue, verified by checksums; the newest undamaged one is used.

A checkpoint is a folder `checkpoints/<iteration>` with `state.json`, `networks.safetensors` if there are networks, and one
`.npy` for each large array (a column of a memory, a table). It is written under a temporary name, synced and renamed, so it
is there whole or not at all. What is in it is the solver's `State`.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from deepcfr.core.errors import CheckpointError
from deepcfr.core.files import (
    cannot_write,
    checksum,
    read_json,
    signed_json,
    sync_folder,
    write_atomically,
)
from deepcfr.run.record import STATE, checkpoint_folders
from deepcfr.solve.base import SavedState, Solver

FORMAT = 1
NETWORKS = "networks.safetensors"


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint that has been verified."""

    folder: Path
    state: dict[str, Any]

    @property
    def iteration(self) -> int:
        return int(self.state["iteration"])

    @property
    def seconds(self) -> float:
        return float(self.state["seconds"])


def save_checkpoint(
    run: Path, solver: Solver, fingerprint: str, seconds: float, keep: int = 2, *, memories: bool = True
) -> Path:
    """Write the solver's state, then drop all but the newest `keep` checkpoints; returns the new folder.

    Raises CheckpointError, leaving earlier checkpoints alone, if there is no room or no permission.
    """
    folder = run / "checkpoints" / f"{solver.iteration:07d}"
    temporary = folder.with_name(folder.name + ".tmp")
    try:
        shutil.rmtree(temporary, ignore_errors=True)
        temporary.mkdir(parents=True)
        _require_room(temporary, solver, memories)
        _write(temporary, solver, fingerprint, seconds, memories)
        replaced = folder.with_name(folder.name + ".old")
        if folder.exists():
            shutil.rmtree(replaced, ignore_errors=True)  # of a process that was killed
            os.replace(folder, replaced)
        os.replace(temporary, folder)
        shutil.rmtree(replaced, ignore_errors=True)
        sync_folder(folder.parent)
    except (OSError, SafetensorError, CheckpointError) as error:
        shutil.rmtree(temporary, ignore_errors=True)
        if isinstance(error, OSError):
            raise cannot_write(folder, error) from error
        raise CheckpointError(f"'{folder}' cannot be written: {error}") from error
    others = [other for other in checkpoint_folders(run) if other != folder]
    later = [other for other in others if int(other.name) > solver.iteration]  # damaged, or they would have been read
    for old in later + others[len(later) + keep - 1 :]:
        shutil.rmtree(old, ignore_errors=True)
    write_atomically(run / "checkpoints" / "latest", (folder.name + "\n").encode())
    for left in folder.parent.glob("latest.*.tmp"):
        left.unlink(missing_ok=True)
    for left in (*folder.parent.glob("[0-9]*.tmp"), *folder.parent.glob("[0-9]*.old")):
        shutil.rmtree(left, ignore_errors=True)
    return folder


def _require_room(folder: Path, solver: Solver, memories: bool) -> None:
    needed = solver.state_bytes(memories)
    free = shutil.disk_usage(folder).free
    if needed > free:
        raise OSError(28, f"it needs {needed / 1e6:,.0f} MB and {free / 1e6:,.0f} MB are free")


def _write(folder: Path, solver: Solver, fingerprint: str, seconds: float, memories: bool) -> None:
    found = solver.state(memories)
    if found.tensors:
        save_file(found.tensors, folder / NETWORKS)
    for name, array in found.arrays:
        np.save(folder / f"{name}.npy", array, allow_pickle=False)
    for path in folder.iterdir():
        with open(path, "rb+") as file:
            os.fsync(file.fileno())
    state = {
        "format": FORMAT,
        **found.facts,
        "fingerprint": fingerprint,
        "seconds": seconds,
        "checksums": {path.name: checksum(path) for path in sorted(folder.iterdir())},
    }
    write_atomically(folder / STATE, signed_json(state))


def newest_checkpoint(run: Path, fingerprint: str, warn: Callable[[str], None]) -> Checkpoint | None:
    """The newest undamaged checkpoint of a run, None if the run has none at all.

    Every damaged one is named through `warn` and passed over. Raises CheckpointError if all are damaged, or if one belongs
    to another game than `fingerprint` says.
    """
    folders = checkpoint_folders(run)
    damage = []
    for folder in folders:
        try:
            return _verify(folder, fingerprint)
        except _Damaged as error:
            damage.append(str(error))
            warn(f"{error} It is passed over for an earlier one.")
    if damage:
        raise CheckpointError([*damage, f"No checkpoint of '{run}' is undamaged."])
    return None


class _Damaged(Exception):
    pass


def _verify(folder: Path, fingerprint: str) -> Checkpoint:
    try:
        state = read_json(folder / STATE)
    except CheckpointError as error:
        raise _Damaged(f"The checkpoint file '{folder / STATE}' is damaged: {error}") from error
    if "checksum" not in state:
        raise _Damaged(f"The checkpoint file '{folder / STATE}' is damaged: it has no checksum.")
    if state["format"] != FORMAT:
        raise CheckpointError(f"'{folder}' has format {state['format']}, and this version reads format {FORMAT}.")
    if state["fingerprint"] != fingerprint:
        raise CheckpointError(f"'{folder}' belongs to another game or solver than the run's configuration asks for.")
    for name, digest in state["checksums"].items():
        path = folder / name
        try:
            same = checksum(path) == digest
        except FileNotFoundError:
            same = False
        if not same:
            raise _Damaged(f"The checkpoint file '{path}' is damaged: its bytes do not match their checksum.")
    return Checkpoint(folder, state)


def restore(solver: Solver, checkpoint: Checkpoint, *, memories: bool = True) -> None:
    """Put the solver into the checkpoint's state; without `memories` it can play but not train.

    Raises CheckpointError if `memories` are asked for and were not saved, if the checkpoint goes away meanwhile, and if
    settings were changed that it depends on.
    """
    if memories and not checkpoint.state["memories"]:
        raise CheckpointError(
            f"'{checkpoint.folder}' was saved without its memories, so training cannot go on from it."
        )

    def array(name: str) -> npt.NDArray[np.generic]:
        return np.load(checkpoint.folder / f"{name}.npy", mmap_mode="r", allow_pickle=False)

    try:
        path = checkpoint.folder / NETWORKS
        has_networks = path.name in checkpoint.state["checksums"]
        tensors = load_file(path, device=str(solver.game.device)) if has_networks else {}
        solver.restore(SavedState(checkpoint.state, tensors, array), memories)
    except FileNotFoundError as error:  # a run in training has newer ones
        raise CheckpointError(f"'{checkpoint.folder}' was removed while it was read.") from error
    except (
        LookupError,
        OverflowError,
        RuntimeError,
        SafetensorError,
        TypeError,
        ValueError,
    ) as error:  # what is missing
        reason = " ".join(str(error).split()) + (" is missing" if isinstance(error, KeyError) else "")
        raise CheckpointError(f"'{checkpoint.folder}' does not go with the run's config.toml: {reason}") from error
    except CheckpointError as error:
        raise CheckpointError(f"'{checkpoint.folder}': {error}") from error
