"""Memories of Deep CFR at the paper's size, 3 times 40 million samples: in memory, and in files.

    python -m experiments.cold_storage        # writes experiments/results/cold_storage.json
    python -m experiments.cold_storage --capacity 1000000 --out /tmp/cold_storage.json

Each side is a separate process that uses memories as a run of flop hold'em does. It fills them with samples of one pool,
repeated, a million at a time; adds a tenth more, which replace some; draws mini-batches of 10,000; and fits the paper's
network with mini-batches of that size. Resident memory is reported by kind, because the system can release pages of files.

To measure files with less memory, run the script with `--sides files` in a control group with a limit.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import torch

from deepcfr.config import AdvantageFitConfig, MemoryConfig, NetworkConfig
from deepcfr.games.poker import poker_game
from deepcfr.games.presets import load_game
from deepcfr.parallel import Workers
from deepcfr.rng import generator
from deepcfr.runs.metrics import environment
from deepcfr.solvers.memories import InfosetMemories
from deepcfr.training.examples import WEIGHTS
from deepcfr.training.fit import fit
from deepcfr.training.networks import build_network
from deepcfr.types import Infosets, Samples

GAME, POOL, BATCH, STEPS, THREADS = "fhp", 1_000_000, 10_000, 100, 2


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--capacity", type=int, default=40_000_000, help="samples of each of the three memories")
    parser.add_argument("--folder", type=Path, help="of the files; a temporary one unless named")
    parser.add_argument("--sides", nargs="+", choices=("memory", "files"), default=["memory", "files"])
    parser.add_argument("--out", type=Path, default=Path("experiments/results/cold_storage.json"))
    asked = parser.parse_args()
    facts: dict[str, Any] = {"environment": environment("cpu", THREADS), "capacity": asked.capacity}
    for side in asked.sides:
        with tempfile.TemporaryDirectory(dir=asked.folder) as folder:
            facts[side] = in_a_process(asked.capacity, folder if side == "files" else "")
        print(f"{side}: {facts[side]}", flush=True)
    if {"memory", "files"} <= set(facts):
        facts["slower"] = facts["files"]["step_ms"] / facts["memory"]["step_ms"] - 1
    asked.out.write_text(json.dumps(facts, indent=2) + "\n")
    print(f"Wrote {asked.out}.")


def in_a_process(capacity: int, files: str) -> dict[str, float]:
    """Results of `measured` in a new process."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(measured, (capacity, files))


def measured(capacity: int, files: str) -> dict[str, float]:
    """Samples a second, times of batches and steps, and resident bytes."""
    torch.set_num_threads(1)
    game = load_game(GAME)
    before = resident()
    memories = InfosetMemories(game, MemoryConfig("reservoir", capacity, capacity, files=files))
    pool, seconds, rows = some_samples(), [], capacity + capacity // 10
    for number, memory in enumerate((*memories.advantages, memories.strategies)):
        for first in range(0, rows, POOL):
            part = pool[slice(0, min(POOL, rows - first))]
            seconds.append(timed(partial(memory.add, part, number * rows + first)) / len(part))
    full = resident()
    advantages = memories.advantages[0]

    def batch(number: int) -> Samples:
        return advantages[torch.randint(len(advantages), (BATCH,), generator=generator(number))]

    config = AdvantageFitConfig(steps=STEPS, batch_size=BATCH)
    network = build_network(game.encoding, NetworkConfig(), generator(0))
    fits, workers = [], Workers(THREADS)
    batches = [timed(partial(batch, n)) for n in range(200)]
    for number in range(4):
        examples = memories.advantage_examples(0, WEIGHTS["linear"], 1, config)
        fits.append(fit(network, examples, config, number, workers).seconds / STEPS)
    end = resident()
    return {
        "bytes": sum(store.nbytes for _, store in memories.named()),
        "append_per_second": 1 / median(seconds),
        "append_per_second_slowest_million": 1 / max(seconds),
        "batch_ms": 1e3 * median(batches[100:]),
        "first_batches_ms": 1e3 * median(batches[:100]),
        "step_ms": 1e3 * median(fits[1:]),
        **{f"resident_before_{kind}": value for kind, value in before.items()},
        **{f"resident_full_{kind}": value for kind, value in full.items()},
        **{f"resident_end_{kind}": value for kind, value in end.items()},
    }


def some_samples() -> Samples:
    """Random infosets with random targets."""
    game = poker_game(load_game(GAME))
    draw = generator(0)
    deals = game.deal(POOL, 0)
    cards = deals.views[:, 0, -1].contiguous()
    return Samples(
        Infosets(torch.randint(len(game.encoding.legal), (POOL,), generator=draw, dtype=torch.int32), cards),
        torch.randn(POOL, game.encoding.num_actions, generator=draw),
        torch.ones(POOL, dtype=torch.int32),
    )


def timed(work: Callable[[], object]) -> float:
    """The seconds that `work` takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def resident() -> dict[str, int]:
    """Resident bytes of this process by kind: anonymous, of files, and the peak of both. Source: proc_pid_status(5)."""
    lines = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    kinds = {"own": "RssAnon", "file": "RssFile", "peak": "VmHWM"}
    return {kind: 1024 * int(lines[name].split()[0]) for kind, name in kinds.items()}


if __name__ == "__main__":
    main()
