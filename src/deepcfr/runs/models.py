"""The agents that come with the package, and the facts of trained models by their cards and files."""

from __future__ import annotations

import re
import warnings
from collections import ChainMap
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from deepcfr.config import RunConfig, load_any_config
from deepcfr.errors import CheckpointError, HiddenAgent
from deepcfr.files import read_json
from deepcfr.runs.metrics import read_metrics

CARD = "card.md"
_WRITTEN = (CARD, "report.html")  # about a model, and no part of it
_PACKAGE = Path(__file__).parents[1]
_ROW = re.compile(r"\| (?P<name>[^|]+) \| (?P<value>.+) \|")


def shipped_agents() -> dict[str, Path]:
    """The agents that come with the package by name, with their run folders; in a clone those of `models/`.

    Packages with agents add theirs: an entry point of the group `deepcfr.agents` names a module whose folder holds run
    folders. An agent of this package wins over another one of its name.
    """
    folders = (_PACKAGE / "agents", _PACKAGE.parents[1] / "models")
    own: dict[str, Path] = next((found for folder in folders if (found := _models(folder))), {})
    others = [_models(folder) for folder in _other_folders()]
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


def _models(folder: Path) -> dict[str, Path]:
    return {path.parent.name: path.parent for path in sorted(folder.glob("*/config.toml"))}


def model_facts(folder: Path | None = None) -> list[dict[str, Any]]:
    """One record for each run folder in `folder`, or for each shipped agent, by name; NashConv is in `unit`, size in bytes.

    `nash_conv` is that of the newest exact evaluation, and None without one. `card` has the rows of the card as text, and
    nothing if there is no card. Raises CheckpointError if there is no such folder or no model in it.
    """
    if folder is None:
        return [_facts(path, name) for name, path in shipped_agents().items()]
    models = _models(folder)
    if not models:
        raise CheckpointError(f"'{folder}' holds no models: there is no folder in it with a config.toml.")
    return [_facts(path, str(path)) for path in models.values()]


def _facts(path: Path, name: str) -> dict[str, Any]:
    config = load_any_config(path / "config.toml")
    game = read_json(path / "game.json")
    made = read_json(path / "environment.json") if (path / "environment.json").is_file() else {}
    lines = read_metrics(path / "metrics.jsonl")
    evaluation: dict[str, Any] = next((line["evaluation"] for line in reversed(lines) if "evaluation" in line), {})
    return {
        "model": name,
        "game": game.get("name", config.game),
        "solver": config.method if isinstance(config, RunConfig) else config.solve.algorithm,
        "iterations": lines[-1]["iteration"] if lines else 0,
        "nodes_touched": lines[-1].get("total_nodes_touched") if lines else None,
        "nash_conv": evaluation.get("nash_conv"),
        "unit": evaluation.get("unit"),
        "recipe": made.get("command"),
        "commit": made.get("commit"),
        "seed": config.seed,
        "size": sum(file.stat().st_size for file in path.rglob("*") if file.is_file() and file.name not in _WRITTEN),
        "card": read_card(path / CARD),
    }


def read_card(path: Path) -> dict[str, str]:
    """The rows of a card's table by name, without their markup; empty without a card."""
    if not path.is_file():
        return {}
    rows = (_ROW.fullmatch(line.strip()) for line in path.read_text(encoding="utf-8").splitlines())
    return {row["name"].strip(" *"): row["value"].strip(" *") for row in rows if row and row["name"].strip()}


def show_models(facts: list[dict[str, Any]], console: Console) -> None:
    """The facts as a table, with the recipe of each model and how to use one below it."""
    table = Table("model", "game", "solver", "iterations", "exact NashConv", "size")
    for column in table.columns[3:]:
        column.justify = "right"
    for f in facts:
        value = "not measured" if f["nash_conv"] is None else f"{f['nash_conv']:.2f} {f['unit']}"
        size = f"{f['size'] / 1e6:.2f} MB"
        table.add_row(f["model"], f["game"], f["solver"], f"{f['iterations']:,}", value, size)
    console.print(table)
    for f in facts:
        at = f", at commit {f['commit'][:10]}" if f["commit"] else ""  # whose options it has
        console.print(f"{f['model']}: {f['recipe'] or 'recipe not recorded'}, seed {f['seed']}{at}")
    with_cards = [f["model"] for f in facts if f["card"]]
    if with_cards:
        console.print(f"More is in {CARD} of {', '.join(with_cards)}. Try: deepcfr play {with_cards[0]}")
