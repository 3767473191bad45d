"""Kuhn and Leduc over several seeds: exact NashConv / 2, wall time and processor time.

python -m experiments.small_games [seeds] > experiments/results/small_games.json
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import mean

from deepcfr.run.metrics import environment

RUNS = {
    "kuhn": ["kuhn"],
    "leduc": ["leduc"],
    "leduc-external": ["leduc", "--config", "leduc-external"],
}


def train(name: str, seed: int, folder: Path) -> dict[str, float]:
    """One run in a separate process, as started by a user."""
    words = [*RUNS[name], "--seed", str(seed), "--out", str(folder / f"{name}-{seed}"), "--json"]
    before = os.times().children_user
    result = subprocess.run(
        [sys.executable, "-m", "deepcfr.cli", "train", *words], check=True, stdout=subprocess.PIPE, text=True
    )
    used = os.times().children_user - before  # 0 on Windows
    facts = json.loads(result.stdout)
    return {
        "seed": seed,
        "exploitability": facts["exploitability"],
        "seconds": facts["seconds"],
        "processor_seconds": used,
    }


def main(seeds: int) -> None:
    """Print one JSON object."""
    facts = {key: value for key, value in environment("cpu", 1).items() if key != "command"}
    with tempfile.TemporaryDirectory() as folder:
        games = {name: [train(name, seed, Path(folder)) for seed in range(seeds)] for name in RUNS}
    summary = {
        name: {
            "unit": "mA/g",
            "mean_exploitability": mean(run["exploitability"] for run in runs),
            "mean_seconds": mean(run["seconds"] for run in runs),
            "mean_processor_seconds": mean(run["processor_seconds"] for run in runs),
            "runs": runs,
        }
        for name, runs in games.items()
    }
    print(json.dumps({"environment": facts, **summary}, indent=2))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 3)
