"""Small copies of runs, to play and to measure."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from deepcfr.errors import CheckpointError, ConfigError, NoPolicy
from deepcfr.files import cannot_write, write_atomically
from deepcfr.runs.checkpoint import save_checkpoint
from deepcfr.runs.folder import RunFolder
from deepcfr.runs.metrics import truncate_metrics
from deepcfr.solvers.build import Solver
from deepcfr.types import Say


def export(run: RunFolder, target: Path, warn: Say, keep_networks: int = 1) -> None:
    """Copy a run to the folder `target` without its memories. The copy is small; it can play and be measured, not resumed.

    The weights of Deep CFR's networks have 16 bits in it. Of the iterates for SD-CFR every `keep_networks`-th stays,
    counted back from the newest, or none if that is 0. Raises ConfigError for a number below 0, and CheckpointError for a
    folder that is in use and for a run without a policy to play.
    """
    if keep_networks < 0:
        raise ConfigError(f"--keep-networks must be at least 0, but is {keep_networks}.")
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        what = "is not empty" if target.is_dir() else "is a file"
        raise CheckpointError(f"'{target}' {what}: choose another folder.")
    solver, seconds = run.load_solver(warn, memories=False)
    if solver.iteration == 0:
        raise CheckpointError(f"'{run.path}' has no checkpoint yet, so there is nothing to export.")
    solver.thin(keep_networks)
    if not any(_has_policy(solver, which) for which in ("average", "sd-cfr")):
        run.played(solver, "average")  # says what is missing
    beside = target.absolute().with_name(f"{target.absolute().name}.{os.getpid()}.tmp")
    try:
        _write(run, beside, solver, seconds)
        if target.exists():  # and is empty; only some systems replace it
            target.rmdir()
        os.replace(beside, target)
    except OSError as error:
        raise cannot_write(target, error) from error
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def _write(run: RunFolder, target: Path, solver: Solver, seconds: float) -> None:
    """Write the copy; `config.toml`, which makes a folder a run, comes last."""
    save_checkpoint(target, solver, run.fingerprint, seconds, keep=1, memories=False)
    if run.abstraction_path:
        shutil.copytree(run.abstraction_path, target / "abstraction")
    for name in ("metrics.jsonl", "game.json", "environment.json", "config.toml"):
        if (run.path / name).is_file():
            write_atomically(target / name, (run.path / name).read_bytes())
            if name == "metrics.jsonl":
                truncate_metrics(target / name, solver.iteration)  # a run in training has later lines


def _has_policy(solver: Solver, which: str) -> bool:
    try:
        solver.policy(which)
    except NoPolicy:
        return False
    return True
