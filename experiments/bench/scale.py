"""The overhead of a Ray cluster on this machine: an iteration of flop hold'em in threads of one process, and with workers.

All sides run the same iteration in turns, and medians are compared, because other programs may share the cores. A second
measurement puts all processes on one core, where nothing runs in parallel and the whole overhead of workers is visible. The
benchmark also measures the inputs of the cost model of docs/scaling.md: the time of traversals, of steps, of a block of
samples and of a checkpoint.
"""

from __future__ import annotations

import multiprocessing
import os
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

from deepcfr.cluster.ray_cluster import RayCluster
from deepcfr.cluster.remote import RemoteCollector
from deepcfr.cluster.shard_host import arrays_of
from deepcfr.cluster.shards import ShardedCollector, ShardedMemories
from deepcfr.config import RunConfig
from deepcfr.defaults import LOCAL_CLUSTER, default_cluster_config
from deepcfr.games.base import Game
from deepcfr.games.presets import build_game, load_source
from deepcfr.memory.reservoir import bytes_per_sample
from deepcfr.rng import key
from deepcfr.runs.checkpoint import save_checkpoint
from deepcfr.runs.metrics import environment
from deepcfr.solvers.collector import IterationRecord
from deepcfr.solvers.deep_cfr import DeepCFR
from deepcfr.solvers.histories import history_sampling
from deepcfr.training.examples import WEIGHTS
from experiments.grid import Say

Plans = dict[str, tuple[RunConfig, int]]  # by the name of a side: its settings and its number of workers


@dataclass(frozen=True)
class Workload:
    """The size of the measurement: the paper's traversals, and the fits of `train fhp --ray`."""

    game: str = "fhp"
    workers: tuple[int, ...] = (1, 2)
    repetitions: int = 5  # after one warm-up
    workers_on_one_core: tuple[int, ...] = (1, 2, 4)
    repetitions_on_one_core: int = 2
    traversals: int = 10_000
    steps: int = 300


def bench_scale(seed: int, say: Say, workload: Workload | None = None) -> dict[str, Any]:
    """Seconds of an iteration in this process, with two threads, and with workers, and of its parts.

    `overhead` is the time of an iteration with the most workers over that in this process, minus 1.
    `overhead_on_one_core` is the same with all processes on one core, or None if the system cannot pin processes.
    """
    load = workload or Workload()
    config = _config(load, seed)
    plans: Plans = {"in_process": (config, 0)} | {f"workers_{n}": (config, n) for n in load.workers}
    brief = _repeated(replace(config, runtime=replace(config.runtime, threads=1)), load.repetitions_on_one_core)
    crowded = {"in_process": (brief, 0)} | {f"workers_{n}": (brief, n) for n in load.workers_on_one_core}
    found, pinned = _in_a_process(load.game, plans), {}
    if hasattr(os, "sched_setaffinity"):
        pinned = _in_a_process(load.game, crowded, _stay_on_one_core)
    overhead = _ratio(found, f"workers_{max(load.workers)}", "in_process")
    overhead_on_one_core = _ratio(pinned, f"workers_{max(load.workers_on_one_core)}", "in_process") if pinned else None
    for place, sides in (("", found), ("one core, ", pinned)):
        for name, facts in sides.items():
            say(
                f"{place}{name}: {facts['iteration_seconds']:.2f} s an iteration, {facts['traversal_seconds']:.2f} s "
                f"traversals and {facts['fit_seconds']:.2f} s fits"
            )
    say(f"overhead {overhead:+.1%}")
    if overhead_on_one_core is None:
        say("This system cannot keep processes on one core, so nothing was measured there.")
    else:
        say(f"overhead on one core {overhead_on_one_core:+.1%}")
    return {
        "game": load.game,
        "seed": seed,
        "environment": environment("cpu", config.runtime.threads),
        "traversals": load.traversals,
        "steps": load.steps,
        "batch_size": config.advantage.batch_size,
        "overhead": overhead,
        "overhead_on_one_core": overhead_on_one_core,
        **found,
        "one_core": pinned,
    }


def _measured(name: str, plans: Plans) -> dict[str, dict[str, float]]:
    """The seconds of every side, measured in turns."""
    source = load_source(name)
    game = build_game(source, next(iter(plans.values()))[0].network.suits)
    cores = sum(n for _, n in plans.values())
    solvers = {
        side: DeepCFR(
            game, own, RayCluster(LOCAL_CLUSTER, n, cores=cores).collecting(source) if n else ShardedCollector
        )
        for side, (own, n) in plans.items()
    }
    sides = zip(*(solver.iterations() for solver in solvers.values()), strict=True)
    turns = [dict(zip(solvers, records, strict=True)) for records in sides]
    found = {side: _parts(solver, [turn[side] for turn in turns[1:]], game) for side, solver in solvers.items()}
    for solver in solvers.values():
        solver.collector.close()
    return found


def _in_a_process(name: str, plans: Plans, begin: Callable[[], None] | None = None) -> dict[str, dict[str, float]]:
    """Results of `_measured` in a separate process, which calls `begin` first; its cluster ends with it."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), begin) as process:
        return process.submit(_measured, name, plans).result()


def _stay_on_one_core() -> None:
    """Pin this process and its children to one core."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


def _ratio(found: dict[str, dict[str, float]], one: str, other: str) -> float:
    """The relative difference of the times of an iteration of two sides."""
    return found[one]["iteration_seconds"] / found[other]["iteration_seconds"] - 1


def _config(load: Workload, seed: int) -> RunConfig:
    config = default_cluster_config(load.game)
    cfr = replace(config.cfr, keep_networks=0)
    sampling = replace(history_sampling(config), traversals=load.traversals)
    memory = replace(config.memory, shards=max(config.memory.shards, *load.workers, *load.workers_on_one_core))
    fits = replace(config.advantage, steps=load.steps)
    return _repeated(
        replace(config, seed=seed, cfr=cfr, sampling=sampling, memory=memory, advantage=fits), load.repetitions
    )


def _repeated(config: RunConfig, times: int) -> RunConfig:
    return replace(config, cfr=replace(config.cfr, iterations=times + 1))


def _parts(solver: DeepCFR, records: list[IterationRecord], game: Game) -> dict[str, float]:
    """Medians of an iteration's time, and times and bytes of its parts."""
    traversal, fit = (median(getattr(r, f"{part}_seconds") for r in records) for part in ("traversal", "fit"))
    samples = sum(memory.seen for _, memory in solver.memories.named())
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        save_checkpoint(Path(folder), solver, "bench", 0.0, keep=1)
        checkpoint = time.perf_counter() - start
    return {
        "iteration_seconds": median(r.traversal_seconds + r.fit_seconds for r in records),
        "traversal_seconds": traversal,
        "fit_seconds": fit,
        "nodes_per_second": median(r.nodes_touched / r.traversal_seconds for r in records),
        "samples_an_iteration": samples / solver.iteration,
        "bytes_a_sample": bytes_per_sample(game.encoding),
        "network_bytes": sum(array.nbytes for array in arrays_of(solver.advantage_networks[0]).values()),
        **_block(solver),
        "checkpoint_seconds": checkpoint,
        "checkpoint_rows": sum(len(memory) for _, memory in solver.memories.named()),
        **_calls(solver),
    }


def _calls(solver: DeepCFR) -> dict[str, float]:
    """Seconds of a small call to all workers, seconds to send them a network, and the memory of a worker."""
    if not isinstance(solver.collector, RemoteCollector):
        return {}
    shards, weights = solver.collector.shards, arrays_of(solver.advantage_networks[0])
    calls, broadcasts = [], []
    for _ in range(20):
        start = time.perf_counter()
        shards.of_all("resident")
        calls.append(time.perf_counter() - start)
        start = time.perf_counter()
        resident = shards.of_all("resident", shards.hosts.put(weights))
        broadcasts.append(time.perf_counter() - start)
    return {
        "call_seconds": median(calls),
        "broadcast_seconds": median(broadcasts),
        "worker_resident_bytes": float(max(resident)),
    }


def _block(solver: DeepCFR) -> dict[str, float]:
    """Seconds to prepare shards for a fit, to draw a block, and to mix a block."""
    config, t, memories = solver.config.advantage, solver.iteration, solver.memories
    assert isinstance(memories, ShardedMemories)
    surveys, draws, blocks = [], [], []
    for number in range(4):
        start = time.perf_counter()
        examples = memories.advantage_examples(0, WEIGHTS[solver.config.cfr.weighting], t, config)
        surveys.append(time.perf_counter() - start)
        rows, stream = examples.block, key(0, "bench", number)
        start = time.perf_counter()
        examples.ask(rows, stream)()
        blocks.append(time.perf_counter() - start)
        start = time.perf_counter()
        memories.shards.draw(examples.order, dict.fromkeys(examples.surveys, rows // len(examples.surveys)), stream)()
        draws.append(time.perf_counter() - start)
    return {
        "survey_rows": len(examples),
        "survey_seconds": median(surveys[1:]),
        "block_rows": rows,
        "draw_seconds": median(draws[1:]),
        "block_seconds": median(blocks[1:]),
    }
