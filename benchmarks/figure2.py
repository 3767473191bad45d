"""The runs of figure 2: card abstractions of flop hold'em solved by Linear Monte Carlo CFR, and no abstraction.

    python benchmarks/figure2.py [NAME ...]        # all runs, or only those named

Makes the abstractions and the runs in runs/, and writes their curves to benchmarks/results/figure2.json. `deepcfr report
fig2` draws whatever is in runs/, with the run of `make run` and those of `benchmarks/fhp_solve.py` if they are there.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from deepcfr.runs.metrics import read_metrics

ROOT = Path(__file__).parents[1]
TRAVERSALS = 100_000  # per iteration and player
AT = (5, 10, 20, 40, 80, 160, 320, 640, 1_280, 2_560)  # iterations that are evaluated
RUNS = {200: 2_560, 2_000: 640, 20_000: 1_000, 0: 1_280}  # iterations by buckets of the flop; 0 is lossless


RESULT = ROOT / "benchmarks" / "results" / "figure2.json"


def deepcfr(command: str) -> None:
    """A command as a user would give it."""
    print(f"deepcfr {command}", flush=True)
    subprocess.run([sys.executable, "-m", "deepcfr.cli", *command.split()], check=True, cwd=ROOT)


def make(buckets: int) -> None:
    """The abstraction, if it is not there, and its run."""
    name = f"b{buckets}" if buckets else "lossless"
    abstraction = ""
    if buckets:
        if not (ROOT / "runs" / name).is_dir():
            deepcfr(f"abstract fhp --buckets {buckets} --out runs/{name}")
        abstraction = f"--abstraction runs/{name} "
    at = " ".join(str(iteration) for iteration in AT if iteration < RUNS[buckets])
    deepcfr(
        f"solve fhp --algorithm mccfr {abstraction}--traversals {TRAVERSALS} --iterations {RUNS[buckets]} "
        f"--evaluation.at {at} --out runs/mccfr-{name}"
    )


def curve(name: str) -> dict[str, Any]:
    """The exact evaluations of a run, and the command and commit that made it."""
    run = ROOT / "runs" / name
    made = json.loads((run / "environment.json").read_text())
    return {
        "command": made["command"],
        "commit": made["commit"],
        "curve": [
            {"seconds": line["seconds"], "nodes_touched": line["total_nodes_touched"], **line["evaluation"]}
            | {"iteration": line["iteration"]}
            for line in read_metrics(run / "metrics.jsonl")
            if "evaluation" in line
        ],
    }


if __name__ == "__main__":
    for size in sys.argv[1:] or RUNS:
        make(int(size))
    found = {path.name: curve(path.name) for path in sorted((ROOT / "runs").glob("mccfr-*"))}
    RESULT.write_text(json.dumps(found, indent=2) + "\n")
