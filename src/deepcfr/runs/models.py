"""The agents that come with the package, and those of other packages."""

from __future__ import annotations

import warnings
from collections import ChainMap
from importlib.metadata import entry_points
from pathlib import Path

from deepcfr.errors import HiddenAgent

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
