"""Distances of fitted strategies from a panel's exact targets, for fits of one memory with other settings.

    python -m experiments.fit_levers runs/f "network.width=128" "network.width=128 advantage.steps=800"

Every group of settings is fitted from random weights, `--fits` times for each player, to the memories of the run's newest
checkpoint, and a line of JSON has what `deepcfr error-budget` calls `fits`, and the processor seconds. The run needs a
panel. It says which settings are worth a training run, in minutes instead of hours.
"""

from __future__ import annotations

import argparse
import json
import time
import tomllib
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from deepcfr.evaluation.fit_noise import fit_noise
from deepcfr.runs.folder import RunFolder
from deepcfr.solvers.deep_cfr import DeepCFR


def main() -> None:
    """Print one line for each group of settings."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("changes", nargs="+", help="settings of advantage and network, separated by spaces")
    parser.add_argument("--fits", type=int, default=2)
    options = parser.parse_args()
    solver, _ = RunFolder.open(options.run).load_solver(print, memories=True)
    assert isinstance(solver, DeepCFR)
    for changes in options.changes:
        print(json.dumps({"changes": changes} | measured(solver, changes, options.fits)), flush=True)


def measured(solver: DeepCFR, changes: str, fits: int) -> dict[str, Any]:
    """The noise and the distances of fits with some settings, and what they cost."""
    table = tomllib.loads(changes.replace(" ", "\n"))
    advantage = replace(solver.config.advantage, refit="scratch", **table.get("advantage", {}))
    network = replace(solver.config.network, **table.get("network", {}))
    start = time.process_time()
    found = fit_noise(solver, fits, advantage, network)
    return {"processor_seconds": time.process_time() - start, "fits": [asdict(one) for one in found]}


if __name__ == "__main__":
    main()
