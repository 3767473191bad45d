"""Estimate the time of an iteration of the paper's limit hold'em on clusters, from measurements on one machine.

    python -m experiments bench scale --json > experiments/results/scale.json
    python -m experiments.scale_model        # prints the tables of docs/scaling.md

Per-unit times are those of `bench scale` on flop hold'em, measured on CPU cores. Nodes per traversal of limit hold'em are
those of its shipped run. A GPU was not measured: its time of a step is that of the step's multiplications at an assumed
share of the peak, `UTILISATION`. The rates of network and disk are assumptions too. Without GPUs every worker has a core
for traversals and one for fits. The time that another worker adds to a call of all workers is measured on one core, so it
includes the worker's own part, which on a cluster runs in parallel.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass
from pathlib import Path
from statistics import linear_regression
from typing import Any

from deepcfr.cluster.examples import BLOCK, LONGEST

ROOT = Path(__file__).parent.parent
# ICML 2019, section 5.2; traversals are those of flop hold'em in section 6, because it states none for limit hold'em
TRAVERSALS, STEPS, BATCH, CAPACITY = 10_000, 32_000, 20_000, 40_000_000
PEAK, UTILISATION = (
    60e12,
    0.1,
)  # float32 operations a second of a large GPU, and the share of it that small layers reach
NETWORK = 1e9  # bytes a second between machines
DISK = 5e8  # bytes a second of the driver's


@dataclass(frozen=True)
class Units:
    """Seconds and bytes of one of everything."""

    traversal: float  # on one core, limit hold'em
    example: float  # of a fit, one core
    surveyed: float  # a row of a memory before a fit, one core of a worker
    served: float  # a row of a block, one core of a worker
    taken: float  # a row of a block, one learner, from its arrival to the step
    call: float  # added by one more worker in a call of all
    latency: float  # until the first worker answers
    sample_bytes: float
    network_bytes: float
    samples: float  # of a traversal, limit hold'em
    parameters: float


def units(scale: dict[str, Any], run: list[dict[str, Any]]) -> Units:
    """Compute the units from the benchmark's JSON and the metrics of a run of limit hold'em."""
    one, here = scale["workers_1"], scale["in_process"]
    threads = scale["environment"]["threads"]
    deals = 2 * scale["traversals"]  # of both players
    nodes = sum(line["nodes_touched"] for line in run) / sum(line["traversals"] for line in run)
    own_nodes = one["nodes_per_second"] * one["traversal_seconds"] / deals
    rows = one["block_rows"]
    crowded = {
        int(name.removeprefix("workers_")): side for name, side in scale["one_core"].items() if "workers" in name
    }
    call, latency = linear_regression(list(crowded), [side["call_seconds"] for side in crowded.values()])
    return Units(
        traversal=nodes / one["nodes_per_second"],
        example=here["fit_seconds"] * threads / (2 * scale["steps"] * scale["batch_size"]),
        surveyed=one["survey_seconds"] / one["survey_rows"],
        served=here["draw_seconds"] / rows,
        taken=(one["block_seconds"] - here["draw_seconds"]) / rows,
        call=call,
        latency=max(0.0, latency),
        sample_bytes=here["bytes_a_sample"] + 2,  # two board cards more
        network_bytes=one["network_bytes"],
        samples=one["samples_an_iteration"] / deals * nodes / own_nodes,
        parameters=one["network_bytes"] / 4,
    )


def iteration(u: Units, workers: int, gpus: int) -> dict[str, float]:
    """Seconds of one iteration of both players, by part."""
    learners = gpus or workers  # without GPUs every worker has another core for a learner
    share = -(-BATCH // learners)
    step = share * (6 * u.parameters / (PEAK * UTILISATION) if gpus else u.example)
    rows = STEPS * share  # of one learner in a fit
    blocks = max(8.0, rows / min(BLOCK * max(8, workers), LONGEST))  # as many shards as workers, and at least 8
    return {
        "traversals": 2 * TRAVERSALS * u.traversal / workers,
        "calls and broadcast": 4 * (u.latency + workers * u.call) + 2 * workers * u.network_bytes / NETWORK,
        "surveys": 2 * CAPACITY * u.surveyed / workers,
        "steps": 2 * STEPS * step,
        "drawing": 2 * STEPS * BATCH * u.served / workers,
        "taking in": 2 * STEPS * BATCH * u.taken / learners,
        "asking": 2 * blocks * (u.latency + workers * u.call),
        "gradients": 2 * STEPS * 2 * u.network_bytes / NETWORK if learners > 1 else 0.0,
        "checkpoint": 3 * CAPACITY * u.sample_bytes * (1 / NETWORK + 1 / DISK),  # all of it through the driver
        "network": 2 * STEPS * BATCH * u.sample_bytes / (NETWORK * learners),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=Path, default=ROOT / "experiments" / "results" / "scale.json")
    parser.add_argument("--run", type=Path, default=ROOT / "experiments" / "results" / "hulh_external.json")
    asked = parser.parse_args()
    scale = json.loads(asked.scale.read_text())
    u = units(scale, [json.loads(line) for line in asked.run.read_text().splitlines() if "traversals" in line])
    print("| one of | takes |\n|---|---|")
    for name, value, unit in (
        ("traversal, one core", 1e6 * u.traversal, "µs"),
        ("example of a step, one core", 1e6 * u.example, "µs"),
        ("row of a memory surveyed before a fit, one core", 1e9 * u.surveyed, "ns"),
        ("row drawn, one core", 1e9 * u.served, "ns"),
        ("row taken in and mixed, one learner", 1e9 * u.taken, "ns"),
        ("call of all workers, for each", 1e3 * u.call, "ms"),
        ("and in any case", 1e3 * u.latency, "ms"),
        ("network", u.network_bytes / 1e3, "kB"),
        ("sample", u.sample_bytes, "bytes"),
    ):
        print(f"| {name} | {value:,.2f} {unit} |")
    names = (
        "workers, GPUs, traversals, surveys, steps, drawing, taking in, asking, gradients, iteration, checkpoint, most"
    )
    print(f"\n| {names.replace(', ', ' | ')} |\n|{'---|' * 12}")
    for workers in (8, 64, 512):
        for gpus in (0, 1, 8):
            print(row(u, workers, gpus))


def row(u: Units, workers: int, gpus: int) -> str:
    """A line of the table. Steps, workers and network run in parallel, so the longest of the three counts."""
    t = iteration(u, workers, gpus)
    learning = t["steps"] + t["gradients"] + t["taking in"] + t["asking"]
    total = t["traversals"] + t["surveys"] + t["calls and broadcast"] + max(learning, t["drawing"], t["network"])
    names = ("traversals", "surveys", "steps", "drawing", "taking in", "asking", "gradients")
    first = max(names, key=lambda name: t[name])
    shown = " | ".join(f"{t[name]:,.1f}" for name in names)
    return f"| {workers} | {gpus or 'none'} | {shown} | {total:,.0f} s | {t['checkpoint']:,.0f} s | {first} |"


if __name__ == "__main__":
    main()
