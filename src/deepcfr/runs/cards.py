"""The facts of trained models from their files and their cards: what they play, how strong they are, how they were made."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from deepcfr.config import AnyConfig, RunConfig, SolveConfig
from deepcfr.errors import CheckpointError
from deepcfr.files import read_json
from deepcfr.games.ladder import LadderRules
from deepcfr.games.presets import ClassSource, GameSource, OpenSpielSource, game_in_words
from deepcfr.runs.metrics import read_metrics
from deepcfr.runs.pace import duration
from deepcfr.runs.record import RunRecord, models_in, shipped_agents

CARD = "card.md"
_WRITTEN = (CARD, "report.html")  # about a model, and no part of it
_ROW = re.compile(r"\| (?P<name>[^|]+) \| (?P<value>.+) \|")
_BOUND = re.compile(
    r"(?P<mean>[\d,.]+) ± (?P<half>[\d,.]+) (?P<unit>\S+) a seat"
)  # of a local best response, in a card
_HANDS = 100  # that a loss is told for


def model_facts(folder: Path | None = None) -> list[dict[str, Any]]:
    """One record for each run folder in `folder`, or for each shipped agent, the most interesting first.

    First come games with free bets and many cards, and of one game the strongest agents. See `run_facts`. Raises
    CheckpointError if there is no such folder or no model in it.
    """
    models = shipped_agents() if folder is None else models_in(folder)
    if not models:
        raise CheckpointError(f"'{folder}' holds no models: there is no folder in it with a config.toml.")
    found = [run_facts(RunRecord.open(path), name if folder is None else str(path)) for name, path in models.items()]
    return sorted(found, key=lambda facts: facts.pop("rank"))


def run_facts(run: RunRecord, name: str) -> dict[str, Any]:
    """Return what a run is, as JSON values, and its `rank`, by which agents are sorted.

    `nash_conv` is that of the newest exact evaluation in `unit`, None without one; `at_least` is the mean gain of the
    card's local best response and half of its 95 % interval, a seat, if there is one. `size` is in bytes. `recipe` is a
    command that makes such a run with this version; `command` is the one that made it, at `commit`. `card` has the rows
    of the card as text, and nothing if there is no card.
    """
    path, config = run.path, run.config
    made = read_json(path / "environment.json") if (path / "environment.json").is_file() else {}
    lines, card = read_metrics(path / "metrics.jsonl"), read_card(path / CARD)
    evaluation: dict[str, Any] = next((line["evaluation"] for line in reversed(lines) if "evaluation" in line), {})
    bound = _BOUND.search(card.get("a local best response gains", ""))
    at_least = [float(bound[part].replace(",", "")) for part in ("mean", "half")] if bound else None
    exact = evaluation.get("nash_conv")
    title, about = game_in_words(run.source)
    iterations, seconds = (lines[-1]["iteration"], lines[-1].get("seconds")) if lines else (0, None)
    return {
        "model": name,
        "game": run.source.name,
        "title": title,
        "about": about,
        "strength": _strength(run.source, exact, at_least),
        "made": _made(config, iterations, seconds, made),
        "solver": config.method if isinstance(config, RunConfig) else config.solve.algorithm,
        "iterations": iterations,
        "nodes_touched": lines[-1].get("total_nodes_touched") if lines else None,
        "nash_conv": exact,
        "at_least": at_least,
        "unit": evaluation.get("unit"),
        "recipe": recipe(path, config),
        "command": made.get("command"),
        "commit": made.get("commit"),
        "seed": config.seed,
        "size": sum(file.stat().st_size for file in path.rglob("*") if file.is_file() and file.name not in _WRITTEN),
        "card": card,
        "rank": _rank(run.source, exact, at_least),
    }


def _rank(source: GameSource, exact: float | None, at_least: list[float] | None) -> tuple[float, ...]:
    gained = exact / 2 if exact is not None else at_least[0] if at_least else float("inf")
    if isinstance(source, OpenSpielSource | ClassSource):
        return 1, 0, 0, 0, gained
    return 0, -isinstance(source, LadderRules), -sum(source.deck.board_cards), -source.deck.num_cards, gained


def _strength(source: GameSource, exact: float | None, at_least: list[float] | None) -> str:
    """Tell what a perfect opponent wins from the agent, beside what it wins from somebody who always folds."""
    unit, folder = "points", ""
    if not isinstance(source, OpenSpielSource | ClassSource):
        unit = source.deck.unit
        lost = sum(source.deck.blinds) / 2 / source.deck.unit_chips
        folder = f" Always folding loses {_HANDS * lost:g}."
    milli = source.milli_unit
    if exact is not None:
        won = f"{_HANDS * exact / 2000:.2f} {unit} in {_HANDS} hands"
        return f"A perfect opponent wins {won} from it (exploitability {exact / 2:.2f} {milli}, exact).{folder}"
    if at_least:
        mean, half = at_least
        won = f"about {_HANDS * mean / 1000:.3g} {unit} or more in {_HANDS} hands"
        return f"A perfect opponent wins {won} from it (local best response {mean:g} ± {half:g} {milli}).{folder}"
    return "How much a perfect opponent wins from it was not measured."


def _made(config: AnyConfig, iterations: int, seconds: float | None, made: dict[str, Any]) -> str:
    """The method with what it sees, and how long that took on which machine."""
    if isinstance(config, SolveConfig):
        tables = "tables" if config.solve.abstraction == "lossless" else "tables of hands in buckets"
        parts = [f"{config.method} in {tables}"]
    else:
        strength = " that see hand strength" if config.network.strength else ""
        parts = [f"{config.method} with networks{strength}"]
        if config.solver == "deep-cfr":
            boards = config.sampling.kind == "public-chance"
            parts.append("all hands on sampled boards" if boards else f"{config.sampling.kind} sampling")
    taken = f"{iterations:,} iterations"
    if seconds:
        taken += f" in {duration(seconds)}"
    parts.append(taken)
    if processor := made.get("processor"):
        parts.append("a GPU" if made.get("device", "cpu") != "cpu" else processor)
    return ", ".join(parts) + "."


def restart(path: Path, config: AnyConfig) -> str:
    """Return a command that begins a run without a checkpoint again, beside it."""
    return recipe(path, config, f"{path}-again")


def recipe(path: Path, config: AnyConfig, out: str | None = None) -> str:
    """Return a command of this version that makes such a run in `out`, or else in `runs`, by the run's own settings."""
    verb, file = "train" if isinstance(config, RunConfig) else "solve", path.absolute() / "config.toml"
    shown = os.path.relpath(file) if file.is_relative_to(Path.cwd()) else str(file)
    return shlex.join(["deepcfr", verb, config.game, "--config", shown, "--out", out or f"runs/{file.parent.name}"])


def read_card(path: Path) -> dict[str, str]:
    """The rows of a card's table by name, without their markup; empty without a card."""
    if not path.is_file():
        return {}
    rows = (_ROW.fullmatch(line.strip()) for line in path.read_text(encoding="utf-8").splitlines())
    return {row["name"].strip(" *"): row["value"].strip(" *") for row in rows if row and row["name"].strip()}


def show_models(facts: list[dict[str, Any]], console: Console) -> None:
    """The facts as a table, with what each model is and how to make one like it below it."""
    table = Table("model", "game", "solver", "iterations", "exact NashConv", "size")
    for column in table.columns[3:]:
        column.justify = "right"
    for f in facts:
        value = "not measured" if f["nash_conv"] is None else f"{f['nash_conv']:.2f} {f['unit']}"
        size = f"{f['size'] / 1e6:.2f} MB"
        table.add_row(f["model"], f["game"], f["solver"], f"{f['iterations']:,}", value, size)
    console.print(table)
    for f in facts:
        console.print(f"\n{f['model']}: {f['title']} ({f['about']}).\n  {f['strength']}\n  {f['made']}")
        console.print(f"  Make one like it: {f['recipe']}")
    with_cards = [f["model"] for f in facts if f["card"]]
    if with_cards:
        console.print(f"\nMore is in {CARD} of {', '.join(with_cards)}. Try: deepcfr play {with_cards[-1]}")
