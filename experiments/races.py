"""The effect of data races between Monte Carlo CFR's threads: the same traversals with one and two threads, several seeds.

    python -m experiments.races        # writes experiments/results/races.json

The result is exact exploitability; the difference of means has a 95 % interval.
"""

from __future__ import annotations

import json
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from deepcfr.config import TabularConfig
from deepcfr.evaluation.exploitability import exploitability
from deepcfr.games.presets import load_game
from deepcfr.runs.metrics import environment
from deepcfr.solvers.mccfr import MCCFR

SEEDS = 8
CASES = (("kuhn", "external", 150), ("leduc", "external", 150), ("leduc", "outcome", 150))
TRAVERSALS = 8_192


def measure(game: str, sampler: str, iterations: int, threads: int) -> list[float]:
    """NashConv / 2 of the average strategy, one number for each seed."""
    config = TabularConfig(algorithm="mccfr", sampler=sampler, iterations=iterations, traversals=TRAVERSALS)  # type: ignore[arg-type]
    found = []
    for seed in range(SEEDS):
        solver = MCCFR(load_game(game), config, seed, threads)
        for _ in solver.iterations():
            pass
        found.append(exploitability(solver.average_policy()).exploitability)
    return found


def main() -> None:
    facts: dict[str, Any] = {
        "environment": environment("cpu", 2),
        "seeds": SEEDS,
        "traversals": TRAVERSALS,
        "cases": [],
    }
    for game, sampler, iterations in CASES:
        one, two = (measure(game, sampler, iterations, threads) for threads in (1, 2))
        interval = 1.96 * ((stdev(one) ** 2 + stdev(two) ** 2) / SEEDS) ** 0.5
        case = {
            "game": game, "sampler": sampler, "iterations": iterations, "unit": "mA/g, NashConv / 2",
            "one_thread": fmean(one), "two_threads": fmean(two),
            "difference": fmean(two) - fmean(one), "interval_95": interval,
        }  # fmt: skip
        facts["cases"].append(case)
        print(
            f"{game} {sampler}: {fmean(one):.2f} with one thread, {fmean(two):.2f} with two (difference +- {interval:.2f})"
        )
    target = Path(__file__).parent / "results" / "races.json"
    target.write_text(json.dumps(facts, indent=2) + "\n")


if __name__ == "__main__":
    main()
