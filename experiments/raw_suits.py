"""Exact NashConv on FHP of the paper's network with raw suits: all 22,100 flops. Time and peak memory.

python -m experiments.raw_suits > experiments/results/raw_suits.json
"""

from __future__ import annotations

import dataclasses
import json
import resource

from deepcfr.config import CFRConfig, ExternalSampling, MemoryConfig, load_config
from deepcfr.evaluation.exploitability import exploitability
from deepcfr.games.presets import load_game
from deepcfr.runs.metrics import environment
from deepcfr.solvers.deep_cfr import DeepCFR


def main() -> None:
    """Fit the average network briefly, since its quality does not change the cost, and evaluate it exactly."""
    paper = load_config("fhp-paper")
    config = dataclasses.replace(
        paper,
        cfr=CFRConfig(iterations=1),
        sampling=ExternalSampling(traversals=2_000),
        memory=MemoryConfig(advantage_capacity=100_000, strategy_capacity=100_000),
        advantage=dataclasses.replace(paper.advantage, steps=2, batch_size=100),
        average=dataclasses.replace(paper.average, steps=20, batch_size=2_000),
    )
    made_with = {k: v for k, v in environment("cpu", config.runtime.threads).items() if k != "command"}
    solver = DeepCFR(load_game("fhp", suits="raw"), config)
    list(solver.iterations())
    solver.fit_average()
    result = exploitability(solver.average_policy(), threads=config.runtime.threads)
    facts = {
        "environment": made_with,
        **dataclasses.asdict(result),
        "peak_memory_gb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6,
    }
    print(json.dumps(facts, indent=2))


if __name__ == "__main__":
    main()
