"""What a checkpoint holds of each kind of solver, and how it is put back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from deepcfr.errors import CheckpointError
from deepcfr.policies.iterates import Iterate, iterate_bytes, iterate_tensors, iterates_from
from deepcfr.solvers.build import NetworkSolver, Solver, TabularSolver
from deepcfr.solvers.deep_cfr import DeepCFR
from deepcfr.solvers.ladder import LadderMCCFR
from deepcfr.solvers.mccfr import MCCFR
from deepcfr.solvers.nfsp import NFSP
from deepcfr.solvers.tree_cfr import TreeCFR
from deepcfr.solvers.vector_cfr import VectorCFR

_NAMES = {
    DeepCFR: "deep-cfr", NFSP: "nfsp", VectorCFR: "vector-cfr", TreeCFR: "tree-cfr", MCCFR: "mccfr",
    LadderMCCFR: "ladder-mccfr",
}  # fmt: skip
_COMPACT = "average-compact"


def state_facts(solver: Solver, memories: bool) -> dict[str, Any]:
    """The counters of a solver, for `state.json`; "memories" is empty if training cannot go on from the rest."""
    facts = {
        "solver": _NAMES[type(solver)],
        "game": solver.game.name,
        "iteration": solver.iteration,
        "nodes_touched": solver.nodes_touched,
    }
    if not isinstance(solver, NetworkSolver):
        return facts | {"memories": {name: array.size for name, array in _regrets(solver)} if memories else {}}
    facts["memories"] = {name: memory.seen for name, memory in solver.memories.named()} if memories else {}
    return facts if isinstance(solver, NFSP) else facts | {"average_iteration": solver.average_iteration}


def state_tensors(solver: Solver) -> dict[str, torch.Tensor]:
    """The weights of a solver's networks by name, and those of its iterates, stacked."""
    if isinstance(solver, NFSP):
        return {name: tensor.cpu().contiguous() for name, tensor in solver.tensors().items()}
    if not isinstance(solver, DeepCFR):
        return {}
    networks = {"advantage-0": solver.advantage_networks[0], "advantage-1": solver.advantage_networks[1]}
    if solver.average_network is not None:
        networks["average"] = solver.average_network
    return (
        {
            f"{name}.{key}": tensor.cpu().contiguous()
            for name, network in networks.items()
            for key, tensor in network.state_dict().items()
        }
        | iterate_tensors(solver.iterates)
        | _smoothed_tensors(solver)
        | _tables(solver)
    )


def state_arrays(solver: Solver, memories: bool) -> Iterator[tuple[str, npt.NDArray[np.generic]]]:
    """The large arrays of a solver; without `memories` only those that its average strategy needs."""
    if isinstance(solver, LadderMCCFR) and not memories:
        yield _COMPACT, solver.compact()
    elif not isinstance(solver, NetworkSolver):
        regrets = {name for name, _ in _regrets(solver)}
        yield from ((name, array) for name, array in solver.arrays().items() if memories or name not in regrets)
    elif memories:
        for name, memory in solver.memories.named():
            for column, tensor in memory.contents().items():
                yield f"memory-{name}-{column}", tensor.cpu().numpy()


def state_bytes(solver: Solver, memories: bool) -> int:
    """What `state_arrays` and the iterates take, without copying anything from a device."""
    if isinstance(solver, LadderMCCFR) and not memories:
        return solver.layout.size  # a byte an entry, and then compressed
    if not isinstance(solver, NetworkSolver):
        return sum(array.nbytes for _, array in state_arrays(solver, memories))
    stored = sum(memory.nbytes for _, memory in solver.memories.named()) if memories else 0
    return stored + (iterate_bytes(solver.iterates) if isinstance(solver, DeepCFR) else 0)


def put_back(
    solver: Solver, folder: Path, state: dict[str, Any], tensors: dict[str, torch.Tensor], *, memories: bool
) -> None:
    """Put the solver into a checkpoint's state; without `memories` it can play but not train.

    Raises CheckpointError if `memories` are asked for and were not saved.
    """
    if memories and not state["memories"]:
        raise CheckpointError(f"'{folder}' was saved without its memories, so training cannot go on from it.")
    solver.iteration, solver.nodes_touched = int(state["iteration"]), int(state["nodes_touched"])
    if isinstance(solver, LadderMCCFR) and not state["memories"]:
        solver.put_compact(np.load(folder / f"{_COMPACT}.npy", allow_pickle=False))
        return
    if not isinstance(solver, NetworkSolver):
        for name, array in _needed(solver, memories):
            np.copyto(array, np.load(folder / f"{name}.npy", mmap_mode="r", allow_pickle=False), casting="no")
        return
    if isinstance(solver, NFSP):
        solver.load_tensors(tensors)
    else:
        _put_back_deep_cfr(solver, state, tensors)
    for name, memory in solver.memories.named() if memories else []:
        columns = {column: np.load(folder / f"memory-{name}-{column}.npy") for column in memory.column_names}
        memory.restore(
            {column: torch.from_numpy(array) for column, array in columns.items()}, int(state["memories"][name])
        )


def _needed(solver: TabularSolver, memories: bool) -> Iterator[tuple[str, npt.NDArray[np.generic]]]:
    """The tables to fill: without `memories` only those that the average strategy needs."""
    return ((name, array) for name, array in solver.arrays().items() if memories or not name.startswith("regret"))


def _put_back_deep_cfr(solver: DeepCFR, state: dict[str, Any], tensors: dict[str, torch.Tensor]) -> None:
    for player in (0, 1):
        solver.advantage_networks[player].load_state_dict(_part(tensors, f"advantage-{player}."))
    average = _part(tensors, "average.")
    if average:
        solver.average_network = solver.new_average_network()
        solver.average_network.load_state_dict(average)
    solver.average_iteration = int(state["average_iteration"])
    solver.iterates = iterates_from(tensors)
    smoothed = [_part(tensors, f"smoothed-{player}.") for player in (0, 1)]
    if all(smoothed):
        solver.smoothed = Iterate(solver.iteration, 1.0, (smoothed[0], smoothed[1]), None)
    for name, table in _tables(solver).items():
        table.copy_(tensors[name])


def _smoothed_tensors(solver: DeepCFR) -> dict[str, torch.Tensor]:
    if solver.smoothed is None:
        return {}
    return {
        f"smoothed-{player}.{name}": weight
        for player, weights in enumerate(solver.smoothed.networks)
        for name, weight in weights.items()
    }


def _part(tensors: dict[str, torch.Tensor], prefix: str) -> dict[str, torch.Tensor]:
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}


def _tables(solver: DeepCFR) -> dict[str, torch.Tensor]:
    """The first round's table, if there is one, in the solver's own memory."""
    arrays = solver.table.arrays() if solver.table else {}
    return {name: torch.from_numpy(array) for name, array in arrays.items()}


def _regrets(solver: TabularSolver) -> list[tuple[str, npt.NDArray[np.generic]]]:
    return [(name, array) for name, array in solver.arrays().items() if name.startswith("regret")]
