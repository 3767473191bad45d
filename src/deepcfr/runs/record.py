"""A run folder as data, without what trains or plays: its configuration and its game; and the shipped agents' folders."""

from __future__ import annotations

import warnings
from collections import ChainMap
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Self

from deepcfr.config import AnyConfig, load_any_config
from deepcfr.errors import CheckpointError, GameError, HiddenAgent
from deepcfr.files import read_json
from deepcfr.games.ladder import ladder_rules
from deepcfr.games.presets import ClassSource, GameSource, OpenSpielSource
from deepcfr.games.rules import PokerRules

LARGER = ("hulh", "hunl-200", "hunl-200-deep")  # the agents of the package in packages/agents
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
    agent = shipped_agents().get(str(name))
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


class RunRecord:
    """A run by its folder; `RunFolder` adds its solver and its policies."""

    def __init__(self, path: Path, config: AnyConfig, source: GameSource) -> None:
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
        config = load_any_config(path / "config.toml")
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
    if "ladder" in stored:
        return ladder_rules(stored, path)
    kinds: dict[str, type[OpenSpielSource | ClassSource]] = {"openspiel": OpenSpielSource, "python": ClassSource}
    kind = next((kinds[word] for word in kinds if word in stored), PokerRules)
    return kind(**stored)
