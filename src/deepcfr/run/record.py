"""A run folder as data, without what trains or plays: configuration, game, metrics, lock; and the shipped agents.

A lock between processes is a file, and goes when its process does, however that ends.
"""

from __future__ import annotations

import math
import warnings
from collections import ChainMap
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Self

from deepcfr.config import RunConfig, load_config
from deepcfr.core.errors import CheckpointError, GameError, HiddenAgent
from deepcfr.core.files import cannot_write, read_json
from deepcfr.game.bet_sizes import bet_size_rules
from deepcfr.game.presets import ClassSource, GameSource, OpenSpielSource
from deepcfr.game.rules import PokerRules
from deepcfr.run.metrics import nash_conv, number, read_thinned

with warnings.catch_warnings():
    # Without the system's locks, the file that names its process is the lock, for as long as that process lives.
    warnings.filterwarnings("ignore", message="only soft file lock is available")
    from filelock import FileLock, Timeout, UnixFileLock

LARGER = ("hulh", "hunl-200")  # the agents of the package in packages/agents
_PACKAGE = Path(__file__).parents[1]


def shipped_agents() -> dict[str, Path]:
    """The agents that come with the package by name, with their run folders; in a clone those of `models/`.

    Packages with agents add theirs: an entry point of the group `deepcfr.agents` names a module whose folder holds run
    folders. An agent of this package wins over another one of its name.
    """
    folders = (_PACKAGE / "agents", _PACKAGE.parents[1] / "models")
    own: dict[str, Path] = next((found for folder in folders if (found := models_in(folder))), {})
    others = [models_in(folder) for folder in _other_folders()]
    return dict(sorted(ChainMap(own, *others).items()))


def _other_folders() -> list[Path]:
    """The folders of packages with agents, as they are installed, without importing them."""
    points = entry_points(group="deepcfr.agents")
    return [Path(str(p.dist.locate_file(p.module.replace(".", "/")))) for p in points if p.dist]


def run_path(name: Path) -> Path:
    """`name`, or the folder of the shipped agent of that name.

    A run folder that is there wins, with a HiddenAgent warning.
    """
    # a name has no folders; to ask every installed package for its agents takes as long as to read a run
    agent = shipped_agents().get(str(name)) if len(name.parts) == 1 else None
    if agent is None:
        return name
    if (name / "config.toml").is_file():
        warnings.warn(
            f"'{name}' is the folder here, and not the shipped agent of that name.", HiddenAgent, stacklevel=2
        )
        return name
    return agent


def models_in(folder: Path) -> dict[str, Path]:
    """Return the run folders directly in `folder`, by name."""
    return {path.parent.name: path.parent for path in sorted(folder.glob("*/config.toml"))}


STATE = "state.json"  # the file of a checkpoint that has its facts and checksums
LOCK = "lock"  # the file in the folder of a run that is being trained


class RunRecord:
    """A run by its folder; `RunFolder` adds its solver and its policies."""

    def __init__(self, path: Path, config: RunConfig, source: GameSource) -> None:
        self.path, self.config, self.source = path, config, source

    @classmethod
    def open(cls, path: Path) -> Self:
        """Find a run by its folder, or a shipped agent by its name.

        Raises CheckpointError if the folder holds no run or is damaged, ConfigError, GameError.
        """
        path = run_path(path)
        if not (path / "config.toml").is_file():
            agents = "" if path.exists() else f" Shipped agents are {', '.join(shipped_agents())}."
            if str(path) in LARGER:
                agents += f" '{path}' is in the package of larger agents: pip install ./packages/agents in a clone."
            raise CheckpointError(f"'{path}' does not hold a run: there is no config.toml in it.{agents}")
        config = load_config(path / "config.toml")
        game = read_json(path / "game.json")
        game.pop("checksum", None)
        stored: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in game.items()}
        try:
            source = _source(stored, path / "game.json")
        except (TypeError, GameError) as error:
            raise CheckpointError(f"'{path / 'game.json'}' is damaged: {error}.") from error
        return cls(path, config, source)

    @property
    def metrics_path(self) -> Path:
        return self.path / "metrics.jsonl"

    def keeps_memories(self) -> bool:
        """Whether training can go on from the newest readable checkpoint, or from the start, where there is none.

        Raises CheckpointError if none of them can be read.
        """
        damage: CheckpointError | None = None
        for folder in checkpoint_folders(self.path):
            try:
                return bool(read_json(folder / STATE).get("memories"))
            except CheckpointError as error:
                damage = damage or error
        if damage:
            raise damage
        return True


def checkpoint_folders(run: Path) -> list[Path]:
    """The folders of a run's checkpoints, newest first, damaged ones too."""
    named = (path for path in (run / "checkpoints").glob("*") if path.is_dir() and path.name.isdecimal())
    return sorted(named, key=lambda path: int(path.name), reverse=True)


def _source(stored: dict[str, Any], path: Path) -> GameSource:
    """The game source in `game.json`; raises the errors of the sources."""
    if "bet_sizes" in stored:
        return bet_size_rules(stored, path)
    kinds: dict[str, type[OpenSpielSource | ClassSource]] = {"openspiel": OpenSpielSource, "python": ClassSource}
    kind = next((kinds[word] for word in kinds if word in stored), PokerRules)
    return kind(**stored)


MOST_LINES = 2_000  # most lines of metrics that are read, besides evaluations


@dataclass(frozen=True)
class RunData:
    """The data of a run folder at one moment."""

    name: str
    config: RunConfig
    source: GameSource
    environment: dict[str, Any]  # empty if not recorded
    lines: tuple[dict[str, Any], ...]  # of metrics, oldest first
    every: int  # `lines` has every `every`-th iteration, and all with an evaluation
    size: int  # bytes of the metrics when they were read, or a little less

    @property
    def game(self) -> str:
        """The name of the run's game."""
        return self.source.name

    @property
    def unit(self) -> str:
        """The milli unit, such as mbb/g."""
        return self.source.milli_unit

    @property
    def finished(self) -> bool:
        """Whether it has done its last iteration or used its time."""
        return bool(self.lines) and finished_at(self.config, self.lines[-1])

    @property
    def iteration(self) -> int:
        """The last iteration that it has done."""
        return int(self.lines[-1]["iteration"]) if self.lines else 0

    @property
    def progress(self) -> str:
        """Iterations done as text, with the total if it has not finished."""
        return f"{self.iteration:,}" if self.finished else f"{self.iteration:,} of {self.config.iterations:,}"

    @property
    def nash_conv(self) -> float | None:
        """The last exact NashConv in the milli unit; None if there is none."""
        return nash_conv(self.evaluated[-1]) if self.evaluated else None

    @property
    def evaluated(self) -> list[dict[str, Any]]:
        """The lines with an exact evaluation."""
        return [line for line in self.lines if nash_conv(line) is not None]


def read_run(path: Path, name: str) -> RunData:
    """Read a run folder; `name` is its name on pages. Raises CheckpointError, ConfigError, GameError if it is damaged."""
    run = RunRecord.open(path)
    try:
        environment = read_json(run.path / "environment.json")
    except CheckpointError:
        environment = {}  # the page says that it was not recorded
    size = run.metrics_path.stat().st_size if run.metrics_path.is_file() else 0
    lines, every = read_thinned(run.metrics_path, MOST_LINES)
    return RunData(name, run.config, run.source, environment, tuple(lines), every, size)


def finished_at(config: RunConfig, line: dict[str, Any]) -> bool:
    """Whether a run ends with this line of metrics: its last iteration, or the first one after its time limit."""
    limit = 60 * config.runtime.minutes or math.inf
    return bool(line["iteration"] >= config.iterations or (number(line, "seconds") or 0.0) >= limit)


@contextmanager
def held(path: Path, *, wait: bool = False) -> Iterator[bool]:
    """Hold the lock file `path` while the body runs; False if another process has it and the call may not wait.

    The file is made, and removed when the body has ended. Raises CheckpointError if the file cannot be written.
    """
    lock = FileLock(path, blocking=wait)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock.acquire()
    except Timeout:
        pass
    except OSError as error:
        raise cannot_write(path, error) from error
    try:
        yield lock.is_locked
    finally:
        if lock.is_locked and isinstance(lock, UnixFileLock):
            path.unlink(missing_ok=True)  # the other locks do so when released
        lock.release()


@contextmanager
def trained_here(path: Path) -> Iterator[None]:
    """Keep other processes from training the run in `path` while the body runs.

    The folder is made if it is missing. Raises CheckpointError if one does, or if it cannot be written.
    """
    with held(path / LOCK) as mine:
        if not mine:
            raise CheckpointError(f"'{path}' is being trained by another process.")
        yield
