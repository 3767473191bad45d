"""The runs of figure 2: card abstractions of flop hold'em solved by Linear Monte Carlo CFR, and no abstraction.

    python -m experiments.figure2 [BUCKETS ...]     # all runs, or only those of so many flop buckets; 0 is lossless

Makes the abstractions and the runs in runs/figure2-*, and writes their curves to experiments/results/figure2.json. Then
`deepcfr report fig2` draws all runs in runs/, including those of `make run` and of `experiments/fhp_solve.py`.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from deepcfr.runs.metrics import read_metrics

ROOT = Path(__file__).parents[1]
# per iteration and player; the opponent's strategy stands still meanwhile, so that early progress goes with iterations
TRAVERSALS = 10_000
AT = (50, 100, 200, 400, 800, 1_600, 3_200)  # iterations that are evaluated, besides the last
RUNS = {200: 6_400, 2_000: 3_200, 20_000: 6_400, 0: 6_400}  # iterations by buckets of the flop; 0 is lossless
RESULT = ROOT / "experiments" / "results" / "figure2.json"


def name_of(buckets: int) -> str:
    """The run's folder."""
    return f"figure2-{f'b{buckets}' if buckets else 'lossless'}"


def deepcfr(command: str) -> None:
    """A command as a user would give it."""
    print(f"deepcfr {command}", flush=True)
    subprocess.run([sys.executable, "-m", "deepcfr.cli", *command.split()], check=True, cwd=ROOT)


def make(buckets: int) -> None:
    """Make the abstraction, if it is missing, and its run."""
    abstraction = ""
    if buckets:
        if not (ROOT / "runs" / f"b{buckets}").is_dir():
            deepcfr(f"abstract fhp --buckets {buckets} --out runs/b{buckets}")
        abstraction = f"--abstraction runs/b{buckets} "
    at = " ".join(str(iteration) for iteration in AT if iteration < RUNS[buckets])
    deepcfr(
        f"solve fhp --algorithm mccfr {abstraction}--traversals {TRAVERSALS} --iterations {RUNS[buckets]} "
        f"--evaluation.at {at} --out runs/{name_of(buckets)}"
    )


def curve(name: str) -> dict[str, Any]:
    """The exact evaluations of a run, and the command and commit that made it."""
    run = ROOT / "runs" / name
    made = json.loads((run / "environment.json").read_text())
    return {
        "command": made["command"],
        "commit": made["commit"],
        "curve": [
            {
                "iteration": line["iteration"],
                "nodes_touched": line["total_nodes_touched"],
                **line["evaluation"],
                "seconds": line["seconds"],
            }
            for line in read_metrics(run / "metrics.jsonl")
            if "evaluation" in line
        ],
    }


if __name__ == "__main__":
    for size in map(int, sys.argv[1:] or RUNS):
        make(size)
    names = [name_of(buckets) for buckets in RUNS if (ROOT / "runs" / name_of(buckets)).is_dir()]
    RESULT.write_text(json.dumps({name: curve(name) for name in names}, indent=2) + "\n")
