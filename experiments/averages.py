"""The average strategies of one Deep CFR run with memories: its network, the exact average (SD-CFR), and a longer fit.

python -m experiments.averages RUN > experiments/results/averages.json

SD-CFR takes an evaluation of every network, so all three are measured in the game that deals a sample of the boards, where
NashConv is exact, too.
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from deepcfr.boards.boards import Boards
from deepcfr.boards.public_chance import BoardSampler
from deepcfr.boards.sweep import sweep
from deepcfr.config import SamplingConfig
from deepcfr.core.rng import key
from deepcfr.game.poker import poker_game
from deepcfr.policy.base import Policy
from deepcfr.run.folder import RunFolder
from deepcfr.run.metrics import environment
from deepcfr.solve.deep_cfr import DeepCFR

BOARDS = 1_000
STEPS = BATCH = 20_000  # of section 5.2 of the paper: mini-batches of the average network's fit on FHP


def measured(solver: DeepCFR, policy: Policy) -> dict[str, Any]:
    """NashConv in the game that deals BOARDS boards of the first round, in thousandths of the game's unit."""
    start = time.perf_counter()
    boards = Boards(poker_game(solver.game), merge=poker_game(solver.game).suits == "canonical")
    sampler = BoardSampler(boards, SamplingConfig("public-chance", boards=BOARDS), key(0, "averages"))
    result = sweep(boards, policy.on_board, solver.workers, None, sampler.choose)
    value = 1000 * sum(result.best_response)
    return {"nash_conv": value, "boards": result.boards, "seconds": round(time.perf_counter() - start)}


def averages(path: Path) -> dict[str, Any]:
    """Measure the averages of a run. Raises CheckpointError for one without memories or snapshots."""
    solver, _ = RunFolder.open(path).load_solver(print, memories=True)
    assert isinstance(solver, DeepCFR)
    found: dict[str, Any] = {
        "run": path.name,
        "iteration": solver.iteration,
        "environment": environment("cpu", solver.config.runtime.threads),
    }
    with solver.workers:
        found["network"] = measured(solver, solver.policy("average"))
        found["sd-cfr"] = measured(solver, solver.policy("sd-cfr"))
        longer = replace(solver.config.average, steps=STEPS, batch_size=BATCH)
        fit = solver.fit_average(longer)
        found["longer fit"] = {"steps": STEPS, "batch_size": BATCH, "loss": fit.loss, "fit_seconds": round(fit.seconds)}
        found["longer fit"] |= measured(solver, solver.policy("average"))
    return found


if __name__ == "__main__":
    print(json.dumps(averages(Path(sys.argv[1])), indent=2))
