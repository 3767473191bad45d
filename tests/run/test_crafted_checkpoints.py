"""Checkpoints whose checksums are right and whose arrays are not are refused by name, whatever the solver."""

import re
import shutil
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from deepcfr.config import RunConfig
from deepcfr.core.errors import CheckpointError
from deepcfr.core.files import checksum, read_json, signed_json
from deepcfr.defaults import default_config
from deepcfr.run.folder import RunFolder
from small_runs import small_config, with_sections
from tables import tabular

DEEP = small_config(iterations=2, memory={"capacity": 40})


def self_play(solver: Any, **settings: int) -> RunConfig:
    config = with_sections(default_config("kuhn", solver), iterations=1, network=DEEP.network, runtime=DEEP.runtime)
    return with_sections(config, **{solver: settings})


SOLVERS: dict[str, RunConfig] = {
    "deep-cfr": DEEP,
    "deep-cfr with a table": with_sections(
        DEEP, game="leduc", cfr={"first_round": "table"}, sampling={"kind": "public-chance", "boards": 2}
    ),
    "nfsp": self_play("nfsp", reservoir_capacity=50, replay_capacity=50),
    "ppo": self_play("ppo"),
    "cfr": tabular("cfr", 2, game="kuhn"),
    "mccfr": tabular("mccfr", 2, game="kuhn", traversals=20),
}

Array = Any  # of numpy or torch
CRAFTS: dict[str, Callable[[Array], Array]] = {
    "a row less": lambda array: array[:-1],
    "one row": lambda array: array[:1],
    "transposed": lambda array: array.swapaxes(0, 1),
    "an axis more": lambda array: array[None],
    "an axis more at the end": lambda array: array[..., None],
}


def crafted(array: Array) -> Iterator[tuple[str, Array]]:
    """Arrays of other shapes or of another type, with what was done to them."""
    for what, craft in CRAFTS.items():
        if what.startswith("an axis") or array.ndim > (what == "transposed"):
            made = craft(array)
            if made.shape != array.shape:
                yield what, made
    if isinstance(array, torch.Tensor):
        yield "another type", array.to(torch.int32 if array.is_floating_point() else torch.float32)
        if array.dtype == torch.float32:
            yield "more bits", array.double()
    else:
        yield "another type", array.astype(np.float64 if array.dtype.kind in "iu" else np.int64)


def sign(folder: Path, name: str) -> None:
    """Write the right checksum of a file into the checkpoint."""
    state = read_json(folder / "state.json")
    (folder / "state.json").write_bytes(
        signed_json(state | {"checksums": state["checksums"] | {name: checksum(folder / name)}})
    )


def crafted_checkpoints(folder: Path) -> Iterator[tuple[str, str]]:
    """Craft every array of a checkpoint, two ways each in turn; yields its name and what was done."""
    turn = count()

    def some(made: list[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
        first = next(turn)
        yield from (made[first % len(made)], made[(first + len(made) // 2) % len(made)])

    for file in sorted(folder.iterdir()):
        before = file.read_bytes()
        if file.suffix == ".npy":
            for what, made in some([*crafted(np.load(file))]):
                np.save(file, made)
                sign(folder, file.name)
                yield file.stem, what
        elif file.suffix == ".safetensors":
            tensors = load_file(file)
            for name, tensor in tensors.items():
                for what, made in some([*crafted(tensor), ("left out", None)]):
                    others = {key: value for key, value in tensors.items() if key != name}
                    save_file(others | ({} if made is None else {name: made.contiguous().clone()}), file)
                    sign(folder, file.name)
                    yield name, what
        if file.suffix != ".json":
            file.write_bytes(before)
            sign(folder, file.name)


@pytest.mark.parametrize("solver", SOLVERS)
def test_arrays_of_other_shapes_or_types_are_refused_by_name(tmp_path: Path, solver: str) -> None:
    run = RunFolder.create(tmp_path / "run", SOLVERS[solver])
    made, _ = run.load_solver(pytest.fail, memories=True)
    for _ in made.iterations() if solver.startswith("deep-cfr") else ():  # the arrays of the others are there at once
        if made.iteration == run.config.iterations:
            made.fit_average()
            break
    folder = run.save(made, 0.0)
    run.load_solver(pytest.fail, memories=True)
    shutil.copytree(folder, tmp_path / "whole")
    accepted, unnamed = [], []
    for name, what in crafted_checkpoints(folder):
        try:
            RunFolder.open(run.path).load_solver(pytest.fail, memories=True)
        except CheckpointError as error:
            parts = {name.partition(".")[0], name.rpartition(".")[2], "first_round"}  # the last is of a missing table
            if not parts & set(re.findall(r"[\w-]+", str(error))):
                unnamed.append((name, what, str(error)))
        else:
            accepted.append((name, what))
    assert (accepted, unnamed) == ([], [])
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == {
        file.name: file.read_bytes() for file in (tmp_path / "whole").iterdir()
    }
