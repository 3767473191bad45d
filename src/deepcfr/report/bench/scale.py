"""What a Ray cluster costs on this machine: an iteration of flop hold'em in threads of one process against workers.

All sides do the same iteration and take turns, and medians are compared, because other programs may share the cores. Then
the same with all processes on one core, where nothing runs beside anything and all that workers cost can be seen. What the
cost model of docs/scaling.md needs is measured beside it: the time of traversals, of steps, of a block of samples and of a
checkpoint.
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

from deepcfr.config import RunConfig
from deepcfr.defaults import LOCAL_CLUSTER, default_cluster_config
from deepcfr.games.base import Game
from deepcfr.games.presets import build_game, load_source
from deepcfr.memory.reservoir import bytes_per_sample
from deepcfr.rng import key
from deepcfr.runs.checkpoint import save_checkpoint
from deepcfr.runs.metrics import environment
from deepcfr.runs.ray_collector import RayCluster
from deepcfr.solvers.deep_cfr import DeepCFR, IterationRecord
from deepcfr.solvers.remote import RemoteCollector
from deepcfr.solvers.shard_host import arrays_of
from deepcfr.solvers.shards import ShardedMemories
from deepcfr.training.examples import WEIGHTS

Say = Callable[[str], None]
Plans = dict[str, tuple[RunConfig, int]]  # of every side by its name: its settings, and its workers, 0 for none


@dataclass(frozen=True)
class Workload:
    """How much is measured: the paper's traversals, and fits as `train fhp --ray` has them."""

    game: str = "fhp"
    workers: tuple[int, ...] = (1, 2)
    repetitions: int = 5  # after one that warms up
    workers_on_one_core: tuple[int, ...] = (1, 2, 4)
    repetitions_on_one_core: int = 2
    traversals: int = 10_000
    steps: int = 300


def bench_scale(seed: int, say: Say, workload: Workload | None = None) -> dict[str, Any]:
    """Seconds of an iteration in this process, with two threads, and with workers, and of its parts.

    `overhead` is an iteration with the most workers over one in this process, less 1; `overhead_on_one_core` is the same
    where all processes share a core, and None where the system has no way to keep them there. `overlap` is what
    simultaneous updates change where a worker has one core and fits have another.
    """
    load = workload or Workload()
    config = _config(load, seed)
    alone = replace(config, runtime=replace(config.runtime, threads=1))
    both = replace(alone, cfr=replace(alone.cfr, updates="simultaneous"))
    plans: Plans = {"in_process": (config, 0)} | {f"workers_{n}": (config, n) for n in load.workers}
    plans |= {"one_worker_alternating": (alone, 1), "one_worker_simultaneous": (both, 1)}
    brief = _repeated(alone, load.repetitions_on_one_core)
    crowded = {"in_process": (brief, 0)} | {f"workers_{n}": (brief, n) for n in load.workers_on_one_core}
    found, pinned = _in_a_process(load.game, plans), {}
    if hasattr(os, "sched_setaffinity"):
        pinned = _in_a_process(load.game, crowded, _stay_on_one_core)
    overhead = _ratio(found, f"workers_{max(load.workers)}", "in_process")
    overlap = _ratio(found, "one_worker_simultaneous", "one_worker_alternating")
    overhead_on_one_core = _ratio(pinned, f"workers_{max(load.workers_on_one_core)}", "in_process") if pinned else None
    for place, sides in (("", found), ("one core, ", pinned)):
        for name, facts in sides.items():
            say(
                f"{place}{name}: {facts['iteration_seconds']:.2f} s an iteration, {facts['traversal_seconds']:.2f} s "
                f"traversals and {facts['fit_seconds']:.2f} s fits"
            )
    say(f"overhead {overhead:+.1%}, of traversals beside fits {overlap:+.1%}")
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
        "overlap": overlap,
        "overhead_on_one_core": overhead_on_one_core,
        **found,
        "one_core": pinned,
    }


def _measured(name: str, plans: Plans) -> dict[str, dict[str, float]]:
    """What every side takes, all of them in turns."""
    source = load_source(name)
    game = build_game(source, next(iter(plans.values()))[0].network.suits)
    cores = sum(n for _, n in plans.values())
    solvers = {
        side: DeepCFR(game, own, RayCluster(LOCAL_CLUSTER, n, cores=cores).collecting(source) if n else None)
        for side, (own, n) in plans.items()
    }
    sides = zip(*(solver.iterations() for solver in solvers.values()), strict=True)
    turns = [dict(zip(solvers, records, strict=True)) for records in sides]
    found = {side: _parts(solver, [turn[side] for turn in turns[1:]], game) for side, solver in solvers.items()}
    for solver in solvers.values():
        solver.collector.close()
    return found


def _in_a_process(name: str, plans: Plans, begin: Callable[[], None] | None = None) -> dict[str, dict[str, float]]:
    """What `_measured` finds in a process of its own, with which its cluster ends, after it has called `begin`."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), begin) as process:
        return process.submit(_measured, name, plans).result()


def _stay_on_one_core() -> None:
    """This process and those that it begins."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


def _ratio(found: dict[str, dict[str, float]], one: str, other: str) -> float:
    """How much longer an iteration of one side takes than one of the other, as a share of it."""
    return found[one]["iteration_seconds"] / found[other]["iteration_seconds"] - 1


def _config(load: Workload, seed: int) -> RunConfig:
    config = default_cluster_config(load.game)
    cfr = replace(config.cfr, traversals=load.traversals, keep_networks=0)
    memory = replace(config.memory, shards=max(config.memory.shards, *load.workers, *load.workers_on_one_core))
    fits = replace(config.advantage, steps=load.steps)
    return _repeated(replace(config, seed=seed, cfr=cfr, memory=memory, advantage=fits), load.repetitions)


def _repeated(config: RunConfig, times: int) -> RunConfig:
    return replace(config, cfr=replace(config.cfr, iterations=times + 1))


def _parts(solver: DeepCFR, records: list[IterationRecord], game: Game) -> dict[str, float]:
    """Medians of what an iteration takes, and the time and bytes of what it is made of."""
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
    """Seconds to ask all workers for something small, and to give them a network; and the memory of one."""
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
    """Seconds until shards are ready to draw for a fit, of their draws for a block, and of a block that is mixed."""
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
