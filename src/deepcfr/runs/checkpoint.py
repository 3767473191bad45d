"""Checkpoints: everything a solver needs to go on, verified by checksums, the newest good one wins.

A checkpoint is a folder `checkpoints/<iteration>` with `state.json`, `networks.safetensors` and one `.npy` for each column
of each memory. It is written under a temporary name, synced and renamed, so it is there whole or not at all.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from deepcfr.errors import CheckpointError
from deepcfr.files import (
    cannot_write,
    checksum,
    json_bytes,
    read_json,
    self_checksum,
    sync_folder,
    write_atomically,
)
from deepcfr.memory.reservoir import Memory
from deepcfr.solvers.deep_cfr import DeepCFR

FORMAT = 1
NETWORKS = "networks.safetensors"
STATE = "state.json"


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

    @property
    def has_memories(self) -> bool:
        return bool(self.state["memories"])


def save_checkpoint(
    run: Path, solver: DeepCFR, fingerprint: str, seconds: float, keep: int, *, memories: bool = True
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
            os.replace(folder, replaced)
        os.replace(temporary, folder)
        shutil.rmtree(replaced, ignore_errors=True)
        sync_folder(folder.parent)
    except (OSError, SafetensorError, CheckpointError) as error:
        shutil.rmtree(temporary, ignore_errors=True)
        if isinstance(error, OSError):
            raise cannot_write(folder, error) from error
        raise CheckpointError(f"'{folder}' cannot be written: {error}") from error
    for old in [other for other in _folders(run) if other != folder][keep - 1 :]:
        shutil.rmtree(old, ignore_errors=True)
    write_atomically(run / "checkpoints" / "latest", (folder.name + "\n").encode())
    return folder


def _require_room(folder: Path, solver: DeepCFR, memories: bool) -> None:
    columns = [c for _, memory in _memories(solver) for c in memory.contents().values()] if memories else []
    needed = sum(c.nbytes for c in columns)
    free = shutil.disk_usage(folder).free
    if needed > free:
        raise OSError(28, f"it needs {needed / 1e6:,.0f} MB and {free / 1e6:,.0f} MB are free")


def _write(folder: Path, solver: DeepCFR, fingerprint: str, seconds: float, memories: bool) -> None:
    save_file(dict(_network_tensors(solver)), folder / NETWORKS)
    if memories:
        for name, memory in _memories(solver):
            for column, tensor in memory.contents().items():
                np.save(folder / f"memory-{name}-{column}.npy", tensor.cpu().numpy(), allow_pickle=False)
    for path in folder.iterdir():
        with open(path, "rb+") as file:
            os.fsync(file.fileno())
    state = {
        "format": FORMAT,
        "solver": "deep-cfr",
        "game": solver.game.name,
        "fingerprint": fingerprint,
        "iteration": solver.iteration,
        "nodes_touched": solver.nodes_touched,
        "average_iteration": solver.average_iteration,
        "seconds": seconds,
        "memories": {name: memory.seen for name, memory in _memories(solver)} if memories else {},
        "checksums": {path.name: checksum(path) for path in sorted(folder.iterdir())},
    }
    write_atomically(folder / STATE, json_bytes(state | {"checksum": self_checksum(state)}))


def _network_tensors(solver: DeepCFR) -> Iterator[tuple[str, torch.Tensor]]:
    networks = {"advantage-0": solver.advantage_networks[0], "advantage-1": solver.advantage_networks[1]}
    if solver.average_network is not None:
        networks["average"] = solver.average_network
    for name, network in networks.items():
        for key, tensor in network.state_dict().items():
            yield f"{name}.{key}", tensor.cpu().contiguous()


def _memories(solver: DeepCFR) -> list[tuple[str, Memory]]:
    first, second = solver.advantage_memories
    return [("advantage-0", first), ("advantage-1", second), ("strategy", solver.strategy_memory)]


def _folders(run: Path) -> list[Path]:
    """Checkpoint folders, newest first."""
    folder = run / "checkpoints"
    return (
        sorted((p for p in folder.glob("*") if p.is_dir() and p.name.isdigit()), reverse=True)
        if folder.is_dir()
        else []
    )


def newest_checkpoint(run: Path, fingerprint: str, warn: Callable[[str], None]) -> Checkpoint | None:
    """The newest undamaged checkpoint of a run, None if the run has none at all.

    Every damaged one is named through `warn` and passed over. Raises CheckpointError if all are damaged, or if one belongs
    to another game than `fingerprint` says.
    """
    folders = _folders(run)
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
    if state.get("checksum") != self_checksum(state):
        raise _Damaged(f"The checkpoint file '{folder / STATE}' is damaged: its contents do not match their checksum.")
    if state["format"] != FORMAT:
        raise CheckpointError(f"'{folder}' has format {state['format']}, and this version reads format {FORMAT}.")
    if state["fingerprint"] != fingerprint:
        raise CheckpointError(f"'{folder}' belongs to another game or network than the run's configuration asks for.")
    for name, digest in state["checksums"].items():
        path = folder / name
        if not path.is_file() or checksum(path) != digest:
            raise _Damaged(f"The checkpoint file '{path}' is damaged: its bytes do not match their checksum.")
    return Checkpoint(folder, state)


def restore(solver: DeepCFR, checkpoint: Checkpoint, *, memories: bool = True) -> None:
    """Put the solver into the checkpoint's state; without `memories` it can play but not train."""
    state = checkpoint.state
    tensors = load_file(checkpoint.folder / NETWORKS, device=str(solver.game.device))
    for player in (0, 1):
        solver.advantage_networks[player].load_state_dict(_part(tensors, f"advantage-{player}."))
    average = _part(tensors, "average.")
    if average:
        solver.average_network = solver.new_average_network()
        solver.average_network.load_state_dict(average)
    solver.iteration, solver.nodes_touched = checkpoint.iteration, int(state["nodes_touched"])
    solver.average_iteration = int(state["average_iteration"])
    if not memories:
        return
    if not checkpoint.has_memories:
        raise CheckpointError(
            f"'{checkpoint.folder}' was saved without its memories, so training cannot go on from it."
        )
    for name, memory in _memories(solver):
        columns = {column: np.load(checkpoint.folder / f"memory-{name}-{column}.npy") for column in memory.columns}
        memory.restore(
            {column: torch.from_numpy(array) for column, array in columns.items()}, int(state["memories"][name])
        )


def _part(tensors: dict[str, torch.Tensor], prefix: str) -> dict[str, torch.Tensor]:
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}
