"""Flop hold'em solved full-width: CFR, Linear CFR in 32 and 16 bits, and Discounted CFR until it is nearly exact.

    python -m experiments.fhp_solve [NAME ...]    # all runs, or only those named: writes experiments/results/fhp_solve.json

The runs are stored in runs/, and existing ones are not repeated. Each run is a separate command, as a user would enter it.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

from deepcfr.runs.metrics import read_metrics

ROOT = Path(__file__).parents[1]
RESULT = ROOT / "experiments" / "results" / "fhp_solve.json"
_LENGTH = "--iterations 50 --evaluation.at 20 30"
LINEAR = f"--algorithm linear-cfr {_LENGTH}"
RUNS = {
    "cfr": f"--algorithm cfr {_LENGTH}",
    "lcfr": LINEAR,
    "lcfr16": f"{LINEAR} --precision int16",
    "pcfr": "--algorithm pcfr+ --iterations 100 --evaluation.at 20 50",
    "dcfr": "--algorithm dcfr --iterations 300 --evaluation.at 20 50 100 150 200 250",
}


def solve(name: str, options: str) -> dict[str, Any]:
    """Run one command; returns its curve, seconds per iteration and peak memory."""
    out = ROOT / "runs" / name
    command = [sys.executable, "-m", "deepcfr.cli", "solve", "fhp", *options.split(), "--out", str(out), "--json"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1e6
    lines = read_metrics(out / "metrics.jsonl")
    later = [line["iteration_seconds"] for line in lines[1:]]  # the first one also compiles and touches new memory
    return {
        "command": f"deepcfr solve fhp {options} --out runs/{name}",
        "commit": json.loads((out / "environment.json").read_text())["commit"],
        "seconds_per_iteration": sum(later) / len(later),
        "peak_memory_gb_of_all_so_far": peak,
        "curve": [
            {"iteration": line["iteration"], **line["evaluation"], "seconds": line["seconds"]}
            for line in lines
            if "evaluation" in line
        ],
    }


def main(names: list[str]) -> None:
    """Run the named runs, and keep the recorded figures of the others."""
    facts = json.loads(RESULT.read_text()) if RESULT.is_file() else {}
    for name in names:
        facts[name] = solve(name, RUNS[name])
        RESULT.write_text(json.dumps(facts, indent=2) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:] or list(RUNS))
