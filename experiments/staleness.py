"""The cost of merging the tables of Monte Carlo CFR less often: exact NashConv after the same traversals.

    python -m experiments.staleness        # writes its games to experiments/results/staleness.json
    python -m experiments.staleness --games leduc --seeds 1 --out /tmp/staleness.json

A part knows only its own traversals since the last merge, so more parts and longer epochs make its strategy more stale.
Parts run one after the other in one process, with the same results as on a cluster; 1 part is the single process.
Traversals, iterations and seeds are the same for all. Flop hold'em is solved with 2,000 buckets, where a short run gets as
close to an equilibrium as the buckets allow.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from deepcfr.abstraction.buckets import Abstraction
from deepcfr.abstraction.make import make_abstraction
from deepcfr.config import RuntimeConfig, SolveConfig, TabularConfig
from deepcfr.evaluation.exploitability import exploitability
from deepcfr.games.presets import load_game, load_rules
from deepcfr.policies.base import UniformPolicy
from deepcfr.runs.folder import make_solver
from deepcfr.runs.metrics import environment
from deepcfr.solvers.mccfr import MCCFR

THREADS = 2


@dataclass(frozen=True)
class Plan:
    """The numbers of parts and lengths of epochs for a game, its buckets (None: all hands), and its length."""

    game: str
    buckets: int | None
    iterations: int
    traversals: int  # of each player in an iteration, over all parts
    seeds: int
    parts_and_epochs: tuple[tuple[int, int], ...]


PLANS = {
    "leduc": Plan(
        "leduc", None, 1_000, 400, 3, ((1, 1), (2, 1), (2, 10), (2, 100), (8, 1), (8, 10), (8, 100), (8, 1_000))
    ),
    "fhp-2000": Plan(
        "fhp", 2_000, 1_000, 20_000, 2, ((1, 1), (2, 1), (2, 10), (2, 100), (8, 10), (8, 100), (8, 1_000))
    ),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--games", nargs="+", default=list(PLANS), choices=list(PLANS))
    parser.add_argument("--seeds", type=int, help="fewer or more than the plan of a game has")
    parser.add_argument("--out", type=Path, default=Path("experiments/results/staleness.json"))
    asked = parser.parse_args()
    facts = json.loads(asked.out.read_text()) if asked.out.exists() else {"games": {}}
    for name in asked.games:
        facts["games"][name] = {
            "environment": environment("cpu", THREADS),
            **measured(name, PLANS[name], asked.seeds or PLANS[name].seeds),
        }
        asked.out.write_text(json.dumps(facts, indent=2) + "\n")
        print(f"Wrote {name} to {asked.out}.")


def measured(name: str, plan: Plan, seeds: int) -> dict[str, Any]:
    """NashConv in the milli unit for every number of parts and length of an epoch."""
    uniform = exploitability(UniformPolicy(load_game(plan.game)), threads=THREADS).nash_conv
    abstraction = make_abstraction(load_rules(plan.game), (plan.buckets,), 0, THREADS) if plan.buckets else None
    rows = []
    for parts, epoch in plan.parts_and_epochs:
        start = time.monotonic()
        found = [solved(plan, abstraction, parts, epoch, seed) for seed in range(seeds)]
        row = {
            "parts": parts,
            "epoch": epoch,
            "nash_conv": [value for value, _ in found],
            "mean": mean(value for value, _ in found),
            "error": stdev(value for value, _ in found) / len(found) ** 0.5 if seeds > 1 else None,
            "nodes_touched": [nodes for _, nodes in found],
            "seconds": time.monotonic() - start,
        }
        print(
            f"{name}, {parts} parts, {epoch} iterations an epoch: {row['mean']:.2f}, {row['seconds']:.0f} s", flush=True
        )
        rows.append(row)
    return {
        "buckets": plan.buckets,
        "iterations": plan.iterations,
        "traversals": plan.traversals,
        "uniform": uniform,
        "rows": rows,
    }


def solved(plan: Plan, abstraction: Abstraction | None, parts: int, epoch: int, seed: int) -> tuple[float, int]:
    """NashConv of the average strategy at the end, and the nodes touched."""
    settings = TabularConfig("mccfr", plan.iterations, traversals=plan.traversals, parts=parts, epoch=epoch)
    config = SolveConfig(game=plan.game, seed=seed, solve=settings, runtime=RuntimeConfig(threads=1))
    solver = make_solver(load_game(plan.game), config, abstraction)
    assert isinstance(solver, MCCFR)
    for _ in solver.iterations():
        pass
    return exploitability(solver.average_policy(), threads=THREADS).nash_conv, solver.nodes_touched


if __name__ == "__main__":
    main()
