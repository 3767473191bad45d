"""What an iteration of the paper's limit hold'em would take on clusters, from what one machine measures.

    deepcfr bench scale --json > benchmarks/results/scale.json
    python benchmarks/scale_model.py        # prints the tables of docs/scaling.md

Per-unit times are those of `bench scale` on flop hold'em, measured on CPU cores, and limit hold'em has as many more nodes
for each traversal as its shipped run counted. A GPU was not measured: its time of a step is that of the multiplications of
a step, at a share of the peak that is an assumption, `UTILISATION`, and so are the rates of network and disk. Without GPUs
every worker has a core for traversals and one for fits.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
TRAVERSALS, STEPS, BATCH, CAPACITY = 10_000, 32_000, 20_000, 40_000_000  # ICML 2019, section 5.2 and 5.3
PEAK, UTILISATION = (
    60e12,
    0.1,
)  # float32 operations a second of a large GPU, and the share of it that small layers reach
NETWORK = 1e9  # bytes a second between machines
DISK = 5e8  # bytes a second of the driver's


@dataclass(frozen=True)
class Units:
    """Seconds and bytes of one of everything."""

    traversal: float  # of one core, limit hold'em
    example: float  # of a fit, one core
    surveyed: float  # a row of a memory before a fit, one core of a worker
    served: float  # a row of a block, one core of a worker
    taken: float  # a row of a block, one learner
    call: float  # one worker is asked for something
    sample_bytes: float
    network_bytes: float
    samples: float  # that a traversal finds, limit hold'em
    parameters: float


def units(scale: dict[str, Any], run: list[dict[str, Any]]) -> Units:
    """From the benchmark's JSON, and the metrics of a run of limit hold'em."""
    one, two, here = scale["workers_1"], scale["workers_2"], scale["in_process"]
    threads = scale["environment"]["threads"]
    deals = 2 * scale["traversals"]  # of both players
    nodes = sum(line["nodes_touched"] for line in run) / sum(line["traversals"] for line in run)
    own_nodes = one["nodes_per_second"] * one["traversal_seconds"] / deals
    rows = one["block_rows"]
    return Units(
        traversal=nodes / one["nodes_per_second"],
        example=here["fit_seconds"] * threads / (2 * scale["steps"] * scale["batch_size"]),
        surveyed=one["survey_seconds"] / one["survey_rows"],
        served=here["block_seconds"] / rows,
        taken=max(0.0, two["block_seconds"] - here["block_seconds"] / 2) / rows,
        call=two["call_seconds"] / 2,
        sample_bytes=here["bytes_a_sample"] + 2,  # two board cards more
        network_bytes=one["network_bytes"],
        samples=one["samples_an_iteration"] / deals * nodes / own_nodes,
        parameters=one["network_bytes"] / 4,
    )


def iteration(u: Units, workers: int, gpus: int) -> dict[str, float]:
    """Seconds of one iteration of both players, by what takes them."""
    learners = gpus or workers  # without GPUs every worker has a learner's core beside it
    share = -(-BATCH // learners)
    step = share * (6 * u.parameters / (PEAK * UTILISATION) if gpus else u.example)
    blocks = STEPS / max(1, min(100, (1 << 18) // share))
    feeding = max(
        STEPS * BATCH * u.served / workers,  # workers draw
        STEPS * BATCH * u.taken / learners,  # learners take in and mix
        blocks * workers * u.call,  # each learner asks every worker
        STEPS * BATCH * u.sample_bytes / (NETWORK * learners),
    )
    return {
        "traversals": 2 * TRAVERSALS * u.traversal / workers,
        "calls and broadcast": 4 * workers * u.call + 2 * workers * u.network_bytes / NETWORK,
        "surveys": 2 * CAPACITY * u.surveyed / workers,
        "steps": 2 * STEPS * step,
        "drawing": 2 * STEPS * BATCH * u.served / workers,
        "taking in": 2 * STEPS * BATCH * u.taken / learners,
        "asking": 2 * blocks * workers * u.call,
        "gradients": 2 * STEPS * 2 * u.network_bytes / NETWORK if learners > 1 else 0.0,
        "checkpoint": 3 * CAPACITY * u.sample_bytes * (1 / NETWORK + 1 / DISK),  # all of it through the driver
        "feeding": 2 * feeding,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=Path, default=ROOT / "benchmarks" / "results" / "scale.json")
    parser.add_argument("--run", type=Path, default=ROOT / "models" / "hulh" / "metrics.jsonl")
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
        ("call of one worker", 1e3 * u.call, "ms"),
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
    """A line of the table; what feeds steps runs beside them, so the longer of the two counts."""
    t = iteration(u, workers, gpus)
    total = t["traversals"] + t["surveys"] + t["calls and broadcast"] + max(t["steps"] + t["gradients"], t["feeding"])
    names = ("traversals", "surveys", "steps", "drawing", "taking in", "asking", "gradients")
    first = max(names, key=lambda name: t[name])
    shown = " | ".join(f"{t[name]:,.1f}" for name in names)
    return f"| {workers} | {gpus or 'none'} | {shown} | {total:,.0f} s | {t['checkpoint']:,.0f} s | {first} |"


if __name__ == "__main__":
    main()
