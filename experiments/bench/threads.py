"""The gain by compilation and threads: Monte Carlo CFR in one and two threads against plain Python, in one process.

The three sides run in turns, and medians are compared, because other programs may share the cores.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median
from typing import Any

from deepcfr.config import RunConfig, RuntimeConfig, TabularConfig
from deepcfr.game.poker import PokerGame
from deepcfr.game.presets import load_rules
from deepcfr.run.metrics import environment
from deepcfr.solve.base import TabularRecord
from deepcfr.solve.mccfr import MCCFR
from experiments.bench.plain_mccfr import PlainMCCFR
from experiments.bench.tabular import random_abstraction
from experiments.grid import Say


@dataclass(frozen=True)
class Workload:
    """The size of the measurement; a repetition of the default takes some seconds, most of them in plain Python."""

    game: str = "fhp"
    buckets: int = 1_000  # random buckets on the flop; look-ups cost the same as in real ones
    repetitions: int = 7  # after one warm-up
    traversals: int = 131_072  # for each player in an iteration of the compiled solver: whole chunks for both threads
    plain_traversals: int = 1_000
    threads: int = 2


def bench_threads(seed: int, say: Say, workload: Workload | None = None) -> dict[str, Any]:
    """Nodes per second of the compiled solver in one and two threads and of plain Python, on the same seeds.

    `threads_ratio` is two threads over one, and `python_ratio` two threads over plain Python. A repetition is an iteration
    on each side; each has its own tables. Plain Python runs only the first of the compiled solver's traversals, because
    all of them would take minutes.
    """
    load = workload or Workload()
    game = PokerGame(load_rules(load.game))
    abstraction = random_abstraction(game.rules, load.buckets, seed)

    def solver(traversals: int, threads: int) -> MCCFR:
        settings, runtime = TabularConfig(traversals=traversals), RuntimeConfig(threads=threads)
        config = RunConfig(load.game, seed, "mccfr", load.repetitions + 1, solve=settings, runtime=runtime)
        return MCCFR(game, config, abstraction)

    compiled = [solver(load.traversals, threads) for threads in (1, load.threads)]
    sides = [side.iterations() for side in compiled] + [PlainMCCFR(solver(load.plain_traversals, 1)).iterations()]
    rates = list(_in_turns(sides))[1:]
    for side in compiled:
        side.workers.shutdown()
    one, more, plain = (median(side) for side in zip(*rates, strict=True))
    say(f"{load.game}, MCCFR: {one:,.0f} nodes/s in one thread, {more:,.0f} in {load.threads}, {more / one:.2f} x")
    say(f"plain Python: {plain:,.0f} nodes/s; compiled and in {load.threads} threads {more / plain:.0f} x")
    return {
        "game": load.game,
        "buckets": load.buckets,
        "seed": seed,
        "environment": environment("cpu", load.threads),
        "threads": load.threads,
        "python_ratio": more / plain,
        "python_ratio_one_thread": one / plain,
        "threads_ratio": more / one,
        "python_nodes_per_second": plain,
        "one_thread_nodes_per_second": one,
        "threads_nodes_per_second": more,
    }


def _in_turns(sides: list[Iterator[TabularRecord]]) -> Iterator[list[float]]:
    """The rates of all sides, one iteration of each at a time."""
    for records in zip(*sides, strict=True):
        yield [record.nodes_touched / record.iteration_seconds for record in records]
