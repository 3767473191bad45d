"""The facts of games, of trained models with their cards, and of run folders; for `deepcfr games`, `models` and `runs`."""

from __future__ import annotations

import os
import re
import shlex
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Column, Table

from deepcfr.config import RunConfig
from deepcfr.core.errors import CheckpointError, DeepCFRError, GameError
from deepcfr.core.files import read_json
from deepcfr.game.bet_sizes import BET_SIZE_GAMES, BetSizeRules
from deepcfr.game.betting import PublicTree
from deepcfr.game.presets import (
    ClassSource,
    GameSource,
    OpenSpielSource,
    game_in_words,
    is_poker,
    load_source,
    public_tree,
)
from deepcfr.game.rules import PRESETS, PokerRules
from deepcfr.measure.limits import too_many_boards
from deepcfr.run.metrics import read_metrics
from deepcfr.run.record import RunData, RunRecord, checkpoint_folders, models_in, read_run, shipped_agents

CARD = "card.md"
_WRITTEN = (CARD, "report.html")  # about a model, and no part of it
_ROW = re.compile(r"\| (?P<name>[^|]+) \| (?P<value>.+) \|")
_BOUND = re.compile(
    r"(?P<mean>-?[\d,.]+) ± (?P<half>[\d,.]+) (?P<unit>\S+) a seat"
)  # of a local best response, in a card
_HANDS = 100  # that a loss is told for


# Games


def game_facts(definitions: list[str]) -> list[dict[str, Any]]:
    """Sizes, unit and reach of exact evaluation, one record for each preset and each game-definition file.

    A betting tree that is too large to list has None as its number of decisions.
    """
    facts = []
    for name in [*PRESETS, *BET_SIZE_GAMES, *definitions]:
        source = load_source(name)
        if isinstance(source, OpenSpielSource | ClassSource):
            raise GameError(f"'{name}' is no game definition.")
        rules, tree = source.deck, _tree(source)
        facts.append(
            {
                "game": rules.name,
                "unit": rules.milli_unit,
                "deck": f"{rules.num_ranks}x{rules.num_suits}",
                "hole_cards": rules.hole_cards,
                "board_cards": list(rules.board_cards),
                "betting_decisions": tree.num_decisions if tree else None,
                "boards": rules.count_boards()[-1],
                "exact_evaluation": tree is not None and too_many_boards(rules) is None,
            }
        )
    return facts


def _tree(source: PokerRules | BetSizeRules) -> PublicTree | None:
    """The betting tree; None if it is too large to list."""
    try:
        return public_tree(source)
    except GameError:
        return None


def show_games(facts: list[dict[str, Any]], console: Console) -> None:
    """The facts as a table."""
    table = Table("game", "deck", "hole", "board", "decisions", "boards", "unit", "exact")
    for f in facts:
        decisions = f["betting_decisions"]
        table.add_row(
            f["game"], f["deck"], str(f["hole_cards"]), "+".join(map(str, f["board_cards"])),
            "many" if decisions is None else f"{decisions:,}", f"{f['boards']:,}", f["unit"],
            "yes" if f["exact_evaluation"] else "no",
        )  # fmt: skip
    console.print(table)


# Models


def model_facts(folder: Path | None = None) -> list[dict[str, Any]]:
    """One record for each run folder in `folder`, or for each shipped agent, the most interesting first.

    First come games with free bets and many cards, and of one game the strongest agents. See `agent_facts`. Raises
    CheckpointError if there is no such folder or no model in it.
    """
    models = shipped_agents() if folder is None else models_in(folder)
    if not models:
        raise CheckpointError(f"'{folder}' holds no models: there is no folder in it with a config.toml.")
    found = [agent_facts(RunRecord.open(path), name if folder is None else str(path)) for name, path in models.items()]
    return sorted(found, key=lambda facts: facts.pop("rank"))


def agent_facts(run: RunRecord, name: str) -> dict[str, Any]:
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
        "solver": config.solver if config.tabular else config.method,
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
    return 0, -isinstance(source, BetSizeRules), -sum(source.deck.board_cards), -source.deck.num_cards, gained


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
        bound = f"(local best response {mean:g} ± {half:g} {milli}).{folder}"
        if mean <= half:
            return f"How much a perfect opponent wins from it is not known {bound}"
        won = f"about {_HANDS * mean / 1000:.3g} {unit} or more in {_HANDS} hands"
        return f"A perfect opponent wins {won} from it {bound}"
    return "How much a perfect opponent wins from it was not measured."


def _made(config: RunConfig, iterations: int, seconds: float | None, made: dict[str, Any]) -> str:
    """The method with what it sees, and how long that took on which machine."""
    if config.tabular:
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


def restart(path: Path, config: RunConfig) -> str:
    """Return a command that begins a run without a checkpoint again, beside it."""
    return recipe(path, config, f"{path}-again")


def recipe(path: Path, config: RunConfig, out: str | None = None) -> str:
    """Return a command of this version that makes such a run in `out`, or else in `runs`, by the run's own settings."""
    verb, file = "solve" if config.tabular else "train", path.absolute() / "config.toml"
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


# Runs


def run_facts(folder: Path) -> list[dict[str, Any]]:
    """One record for each run folder below `folder`, the one that was written last first; `age` is in seconds.

    `state` is finished, unfinished or damaged; `nash_conv` is the newest exact one, in `unit`; `next` is a command. A
    damaged run has its path, its age, and the problem as `next`. Raises CheckpointError if there is no run.
    """
    now = time.time()
    facts = [_facts(path, now) for path in _run_folders(folder)]
    if not facts:
        raise CheckpointError(f"'{folder}' holds no runs: there is no folder below it with a config.toml.")
    return sorted(facts, key=lambda f: f["age"])


def _run_folders(folder: Path) -> Iterator[Path]:
    for path, folders, files in os.walk(folder):
        if "config.toml" in files:
            folders.clear()  # a run holds no other run
            yield Path(path)


def _facts(path: Path, now: float) -> dict[str, Any]:
    written = max(file.stat().st_mtime for file in path.iterdir() if file.suffix in (".toml", ".jsonl"))
    found: dict[str, Any] = {"run": str(path), "age": max(now - written, 0.0)}
    try:
        run, resumable = read_run(path, str(path)), RunRecord.open(path).keeps_memories()
    except DeepCFRError as error:
        return found | {"state": "damaged", "next": " ".join(error.problems)}
    return found | {
        "state": "finished" if run.finished else "unfinished",
        "game": run.game,
        "method": run.config.method,
        "iteration": run.iteration,
        "iterations": run.config.iterations,
        "nash_conv": run.nash_conv,
        "unit": run.unit,
        "next": _next(run, path, resumable=resumable) if checkpoint_folders(path) else restart(path, run.config),
    }


def _next(run: RunData, path: Path, *, resumable: bool) -> str:
    """The command that goes on with a run: training, or its use where that is over."""
    resume = f"deepcfr resume {shlex.quote(str(path))}"
    if resumable and not run.finished:
        return resume
    if resumable and run.iteration < run.config.iterations:  # its time was over
        return f"{resume} --minutes {2 * max(run.config.runtime.minutes, run.lines[-1]['seconds'] / 60):g}"
    if not resumable or run.config.family in ("nfsp", "ppo"):  # whose schedules end with its last iteration
        return f"deepcfr {'play' if is_poker(run.source) else 'exploitability'} {shlex.quote(str(path))}"
    return f"{resume} --iterations {2 * run.config.iterations}"


def show_runs(facts: list[dict[str, Any]], console: Console) -> None:
    """The facts as a table, with the command for each run below it."""
    table = Table(Column("run", overflow="fold"), "game", "method", "iterations", "exact NashConv", "written")
    for f in facts:
        if f["state"] == "damaged":
            table.add_row(f["run"], "damaged", "", "", "", age(f["age"]))
            continue
        done = f"{f['iteration']:,}" + ("" if f["state"] == "finished" else f" of {f['iterations']:,}")
        value = "–" if f["nash_conv"] is None else f"{f['nash_conv']:.2f} {f['unit']}"
        table.add_row(f["run"], f["game"], f["method"], done, value, age(f["age"]))
    console.print(table)
    for f in facts:
        console.print(f"{f['run']}: {f['next']}" if f["state"] == "damaged" else f["next"])


def age(seconds: float) -> str:
    """A time that has passed, in its largest whole unit."""
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= size:
            return f"{seconds // size:.0f} {unit} ago"
    return f"{seconds // 1:.0f} s ago"


def duration(seconds: float) -> str:
    """A time as a short text, in seconds or minutes."""
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
