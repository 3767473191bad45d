"""Kuhn and Leduc over several seeds: exact NashConv / 2, wall time and processor time. And solvers in tables.

python -m experiments.small_games [seeds] > experiments/results/small_games.json
python -m experiments.small_games tables > experiments/results/small_game_tables.json
python -m experiments.small_games twice > experiments/results/small_game_twice.json
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import mean

import pyspiel
from open_spiel.python.algorithms import cfr
from open_spiel.python.algorithms.exploitability import nash_conv

from deepcfr import exploitability, train
from deepcfr.run.metrics import environment

RUNS = {
    "kuhn": ["kuhn"],
    "leduc": ["leduc"],
    "leduc-external": ["leduc", "--config", "leduc-external"],
}


def train_apart(name: str, seed: int, folder: Path) -> dict[str, float]:
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


OPENSPIEL = {
    "leduc_poker": "leduc_poker",
    "liars_dice": "liars_dice",
    "goofspiel": "goofspiel(num_cards=4,imp_info=True,points_order=descending)",
}
SOLVERS = ("egt", "xfp", "cfr", "cfr+", "pcfr+", "dcfr")
MARKS = (100, 1_000)  # iterations


def tables() -> None:
    """Print NashConv / 2 of our solvers after some numbers of iterations, and of OpenSpiel's by the order of updates."""
    solved = {game: {solver: solve(name, solver, MARKS) for solver in SOLVERS} for game, name in OPENSPIEL.items()}
    orders = {
        f"{game} {kind}": {
            order: by_order(game, kind == "cfr+", order == "in turn") for order in ("in turn", "at once")
        }
        for game in ("kuhn_poker", "leduc_poker")
        for kind in ("cfr", "cfr+")
    }
    facts = {"environment": environment("cpu", 1), "unit": "mpoints/g", "iterations": MARKS}
    print(json.dumps({**facts, **solved, "orders": orders}, indent=2))


def twice() -> None:
    """Print the same of Discounted CFR after twice the iterations: as many nodes as the excessive gap technique touches."""
    marks = [2 * mark for mark in MARKS]
    solved = {game: solve(name, "dcfr", marks) for game, name in OPENSPIEL.items()}
    print(
        json.dumps({"environment": environment("cpu", 1), "unit": "mpoints/g", "iterations": marks, **solved}, indent=2)
    )


def solve(name: str, solver: str, marks: Sequence[int]) -> list[float]:
    """NashConv / 2 in thousandths of a solver in tables after each number of iterations in `marks`."""
    run = train(f"openspiel:{name}", solver=solver, iterations=marks[-1])
    return [exploitability(run.agent).exploitability for record in run if record.iteration in marks]


def by_order(game: str, plus: bool, in_turn: bool) -> float:
    """NashConv / 2 in thousandths of OpenSpiel's CFR or CFR+ after 1,000 passes, with updates in turn or at once.

    An iteration with updates in turn passes over the game twice.
    """
    found = pyspiel.load_game(game)
    solver = cfr._CFRSolver(found, in_turn, plus, plus)
    for _ in range(500 if in_turn else 1_000):
        solver.evaluate_and_update_policy()
    return 500.0 * float(nash_conv(found, solver.average_policy(), use_cpp_br=True))


def main(seeds: int) -> None:
    """Print one JSON object."""
    facts = {key: value for key, value in environment("cpu", 1).items() if key != "command"}
    with tempfile.TemporaryDirectory() as folder:
        games = {name: [train_apart(name, seed, Path(folder)) for seed in range(seeds)] for name in RUNS}
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
    if sys.argv[1:] in (["tables"], ["twice"]):
        {"tables": tables, "twice": twice}[sys.argv[1]]()
    else:
        main(int(sys.argv[1]) if len(sys.argv) > 1 else 3)
