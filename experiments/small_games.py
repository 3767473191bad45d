"""Kuhn and Leduc with their default configurations over several seeds: exact NashConv / 2 and wall time.

python -m experiments.small_games [seeds] > experiments/results/small_games.json
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import mean

from deepcfr.runs.metrics import environment


def train(game: str, seed: int, folder: Path) -> dict[str, float]:
    """One run in a separate process, as started by a user."""
    out = folder / f"{game}-{seed}"
    command = [sys.executable, "-m", "deepcfr.cli", "train", game, "--seed", str(seed), "--out", str(out), "--json"]
    result = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    facts = json.loads(result.stdout)
    return {"seed": seed, "exploitability": facts["exploitability"], "seconds": facts["seconds"]}


def main(seeds: int) -> None:
    """Print one JSON object."""
    facts = {key: value for key, value in environment("cpu", 1).items() if key != "command"}
    with tempfile.TemporaryDirectory() as folder:
        games = {game: [train(game, seed, Path(folder)) for seed in range(seeds)] for game in ("kuhn", "leduc")}
    summary = {
        game: {
            "unit": "mA/g",
            "mean_exploitability": mean(run["exploitability"] for run in runs),
            "mean_seconds": mean(run["seconds"] for run in runs),
            "runs": runs,
        }
        for game, runs in games.items()
    }
    print(json.dumps({"environment": facts, **summary}, indent=2))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 3)
