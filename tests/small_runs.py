"""Shared by tests of runs: small configurations, an observer that interferes, and what a run leaves behind."""

import json
import os
import signal
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from deepcfr.buckets.buckets import save_abstraction
from deepcfr.buckets.make import make_abstraction
from deepcfr.config import (
    AdvantageFitConfig,
    FitConfig,
    MemoryConfig,
    NetworkConfig,
    RunConfig,
    RuntimeConfig,
    SamplingConfig,
)
from deepcfr.game.presets import load_rules
from deepcfr.measure.exploitability import Exploitability
from deepcfr.network.fit import FitResult
from deepcfr.run.folder import RunFolder
from deepcfr.run.metrics import read_metrics
from deepcfr.run.train import Summary, train
from deepcfr.solve.base import Record, Solver

# Flop hold'em from four ranks in two suits: 28 hands, 56 boards, suits that can be renamed, flushes.
SMALL_FLOP = """GAMEDEF
limit
numPlayers = 2
numRounds = 2
blind = 1 2
raiseSize = 2 2
firstPlayer = 1 2
maxRaises = 1 2
numSuits = 2
numRanks = 4
numHoleCards = 2
numBoardCards = 0 3
END GAMEDEF
"""
TINY = (
    "--sampling.kind", "external", "--sampling.traversals", 20, "--network.kind", "mlp", "--network.width", 8,
    "--network.layers", 1, "--advantage.steps", 4, "--advantage.batch-size", 16, "--average.steps", 4,
    "--average.batch-size", 16, "--memory.capacity", 100,
    "--runtime.threads", 1,
)  # fmt: skip
"""Options of `deepcfr train` for a run of a second."""


def small_config(game: str = "kuhn", iterations: int = 6, **changes: Any) -> RunConfig:
    """Deep CFR with little to sample, keep and fit, in one thread; `changes` are settings, or dicts of a section's."""
    fit = FitConfig(steps=4, batch_size=16)
    config = RunConfig(
        game=game,
        iterations=iterations,
        sampling=SamplingConfig(traversals=20),
        memory=MemoryConfig(capacity=80),  # full after some iterations
        network=NetworkConfig(kind="mlp", width=8, layers=1),
        advantage=AdvantageFitConfig(**vars(fit)),
        average=fit,
        runtime=RuntimeConfig(threads=1, checkpoint_seconds=0),
    )
    return with_sections(config, **changes)


def with_sections(config: RunConfig, **changes: Any) -> RunConfig:
    """The configuration with other settings, or with other settings in its sections where a change is a dict."""
    for name, value in changes.items():
        whole = replace(getattr(config, name), **value) if isinstance(value, dict) else value
        config = replace(config, **{name: whole})
    return config


class Places(NamedTuple):
    """Files that runs start from."""

    game: Path  # SMALL_FLOP
    abstraction: Path  # of leduc, 3 + 5 buckets of 3 + 15 hands


def make_places(path: Path) -> Places:
    """Write the files into a folder."""
    places = Places(path / "small-flop.game", path / "buckets")
    places.game.write_text(SMALL_FLOP)
    save_abstraction(places.abstraction, make_abstraction(load_rules("leduc"), (3, 5), seed=0), {})
    return places


class Recorder:
    """An observer that keeps what it is told, and does something after an iteration, evaluation or save if asked to."""

    def __init__(self, at: int = 0, do: Callable[[], None] | None = None, *, when: str = "iteration") -> None:
        self.at, self.do, self.when = at, do, when
        self.warnings: list[str] = []
        self.notes: list[str] = []
        self.resumed_after = -1
        self.iterations: list[int] = []
        self.boards: list[tuple[int, int, int]] = []
        self.results: list[tuple[int, Exploitability | None]] = []
        self.saves: list[int] = []

    def warn(self, message: str) -> None:
        self.warnings.append(message)

    def start(self, run: RunFolder, solver: Solver, notes: Iterable[str]) -> None:  # noqa: ARG002
        self.notes, self.resumed_after = list(notes), solver.iteration

    def iteration(self, record: Record, seconds: float) -> None:
        assert seconds > 0
        self.iterations.append(record.iteration)
        self._act("iteration", record.iteration)

    def evaluating(self, iteration: int, done: int, total: int) -> None:
        self.boards.append((iteration, done, total))

    def evaluated(self, iteration: int, fit: FitResult | None, result: Exploitability | None) -> None:
        assert fit is None or fit.steps > 0  # None for tables, and where an evaluation is caught up
        self.results.append((iteration, result))
        self._act("evaluated", iteration)

    def saved(self, iteration: int) -> None:
        self.saves.append(iteration)
        self._act("saved", iteration)

    def _act(self, when: str, iteration: int) -> None:
        if self.do and (when, iteration) == (self.when, self.at):
            self.do()


class Crash(BaseException):
    """The process is gone: nothing that catches errors runs."""


def crash() -> None:
    raise Crash


def press_ctrl_c() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def start(path: Path, config: RunConfig, observer: Recorder | None = None) -> tuple[RunFolder, Summary]:
    """Begin a run and train it."""
    run = RunFolder.create(path, config)
    return run, train(run, observer or Recorder())


def resume(path: Path, observer: Recorder | None = None) -> Summary:
    """Open a run and go on with it."""
    return train(RunFolder.open(path), observer or Recorder())


def flip(path: Path, position: int = -1, bit: int = 0) -> None:
    """Change one bit of a file."""
    data = bytearray(path.read_bytes())
    data[position] ^= 1 << bit
    path.write_bytes(data)


def contents(path: Path) -> dict[str, bytes]:
    return {str(p.relative_to(path)): p.read_bytes() for p in sorted(path.rglob("*")) if p.is_file()}


def without_costs(value: Any) -> Any:
    """The records without times and memory, which differ between runs."""
    if isinstance(value, dict):
        costs = ("seconds", "resident_bytes")
        return {name: without_costs(item) for name, item in value.items() if not name.endswith(costs)}
    return value


def metrics(path: Path) -> list[dict[str, Any]]:
    """All that a run recorded but what it cost."""
    return [without_costs(line) for line in read_metrics(path / "metrics.jsonl")]


def newest(path: Path) -> Path:
    """The newest checkpoint."""
    return path / "checkpoints" / (path / "checkpoints" / "latest").read_text().strip()


def saved_state(path: Path) -> dict[str, Any]:
    """All that is in the newest checkpoint: networks, memories and tables as bytes, and the counters without times."""
    facts = json.loads((newest(path) / "state.json").read_text())
    return contents(newest(path)) | {"state.json": {**facts, "seconds": 0, "checksum": ""}}


def tables(path: Path) -> dict[str, bytes]:
    """The bytes of the tables in the newest checkpoint."""
    return {file.name: file.read_bytes() for file in newest(path).glob("*.npy")}


def assert_same_run(path: Path, other: Path) -> None:
    """Two runs have the same state to the bit, and the same metrics."""
    assert newest(path).name == newest(other).name
    ours, theirs = saved_state(path), saved_state(other)
    assert len(ours) > 1
    assert ours.keys() == theirs.keys()
    assert [name for name in ours if ours[name] != theirs[name]] == []
    for line, same in zip(metrics(path), metrics(other), strict=True):
        # a resumed run has forgotten what its networks said about a panel, and asks again
        asked, before = line.pop("evaluated", 0), same.pop("evaluated", 0)
        assert asked <= 2 * before <= 4 * asked
        assert line == same
