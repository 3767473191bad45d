"""Shared by tests of tabular runs: the command in this process, small games, and what a run leaves behind."""

import os
import signal
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

from deepcfr.buckets.buckets import save_abstraction
from deepcfr.buckets.make import make_abstraction
from deepcfr.game.presets import load_rules
from deepcfr.measure.exploitability import Exploitability
from deepcfr.network.fit import FitResult
from deepcfr.run.folder import RunFolder
from deepcfr.run.metrics import read_metrics
from deepcfr.solve.base import Solver, TabularRecord
from deepcfr.solve.data import IterationRecord

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
        self.results: list[tuple[int, Exploitability | None]] = []
        self.saves: list[int] = []

    def warn(self, message: str) -> None:
        self.warnings.append(message)

    def start(self, run: RunFolder, solver: Solver, notes: Iterable[str]) -> None:  # noqa: ARG002
        self.notes, self.resumed_after = list(notes), solver.iteration

    def iteration(self, record: IterationRecord | TabularRecord, seconds: float) -> None:  # noqa: ARG002
        self.iterations.append(record.iteration)
        self._act("iteration", record.iteration)

    def evaluating(self, iteration: int, done: int, total: int) -> None:
        """Nothing to keep."""

    def evaluated(self, iteration: int, fit: FitResult | None, result: Exploitability | None) -> None:
        assert fit is None
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


def tables(path: Path) -> dict[str, bytes]:
    """The bytes of the tables in the newest checkpoint."""
    return {file.name: file.read_bytes() for file in newest(path).glob("*.npy")}


def assert_same_run(path: Path, other: Path) -> None:
    """Two runs have the same tables to the bit, and the same metrics, with exact values at the last iteration."""
    assert newest(path).name == newest(other).name
    ours, theirs = tables(path), tables(other)
    assert ours.keys() == theirs.keys() != set()
    assert [name for name in ours if ours[name] != theirs[name]] == []
    assert metrics(path) == metrics(other)
    assert metrics(path)[-1]["evaluation"]["nash_conv"] > 0
