"""Rows with costs and results of Deep CFR on flop hold'em, one for each evaluation of a run; and three settings.

`experiments/fhp_learning.py` stores the rows and makes tables from them.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from deepcfr.config import RunConfig, settings_by_name
from deepcfr.games.poker import PokerGame
from deepcfr.games.presets import load_rules
from deepcfr.runs.folder import RunFolder
from deepcfr.runs.metrics import read_metrics

_SECTIONS = ("cfr", "sampling", "memory", "network", "advantage", "average", "values")  # that a recipe consists of
KEY = ("setting", "recipe", "hardware", "seed", "t", "commit")  # of a row
Row = dict[str, Any]

_FIT = {
    "steps": 4_000, "batch_size": 10_000, "optimizer": "adam", "learning_rate": 1e-3, "schedule": "constant",
    "draw": "uniform",
}  # fmt: skip
_INPUTS = {
    "network.kind": "paper", "network.width": 64, "network.card_width": 3, "network.card_embedding": False,
    "network.strength": False,
}  # fmt: skip
# required values in the configuration of a setting
SETTINGS: dict[str, dict[str, Any]] = {
    "paper": {
        **_INPUTS,
        "network.suits": "raw",
        "sampling.kind": "external",
        "cfr.first_round": "network",
        "sampling.traversals": 10_000,
        "cfr.weighting": "linear",
        "cfr.fallback": "highest",
        **{f"{section}.{name}": value for section in ("advantage", "average") for name, value in _FIT.items()},
        "advantage.refit": "scratch",
    },
    "faithful+": _INPUTS,
    "strength": {"network.strength": True},
}


def misfits(setting: str, config: RunConfig) -> list[str]:
    """Sentences on where a configuration differs from the setting."""
    values = settings_by_name(config)  # other kinds of sampling have other settings
    return [
        f"The setting '{setting}' has {name} = {wanted}, and the run has {values.get(name)}."
        for name, wanted in SETTINGS[setting].items()
        if values.get(name) != wanted
    ]


def recipe(config: RunConfig) -> str:
    """A short name for all settings that determine the result, without the seed and the number of iterations.

    Settings at their defaults do not count, so that the name stays when later versions have other settings.
    """
    plain = RunConfig(sampling=type(config.sampling)())
    sections = {name: dataclasses.asdict(getattr(config, name)) for name in _SECTIONS}
    parts = {
        f"{name}.{item}": value
        for name, section in sections.items()
        for item, value in section.items()
        if item != "iterations" and (item == "kind" or value != getattr(getattr(plain, name), item))
    }
    return hashlib.blake2b(json.dumps(parts, sort_keys=True).encode(), digest_size=4).hexdigest()


def hardware(made: dict[str, Any], named: str | None) -> str:
    """The hardware of a run, from its environment; a GPU must be `named`, because the environment has no name for it."""
    if named:
        return named
    if made["device"] != "cpu":
        raise SystemExit(f"The run was made on '{made['device']}': name it with --hardware.")
    threads = sorted({made["threads"], *(part["threads"] for part in made.get("resumed", []))})
    return f"{made['processor']}, {' or '.join(str(number) for number in threads)} of {made['cores']} cores"


def without_home(command: str) -> str:
    """A command whose folders begin with `runs`, wherever that folder was."""
    return re.sub(r"(?<= )/\S*/(?=runs/)", "", command)


def decisions(run: RunFolder) -> tuple[int, int]:
    """Infosets per example of an advantage fit and of a policy fit: those of a hand of one player or of both, or 1."""
    config = run.config
    assert isinstance(config, RunConfig)
    sampling = config.sampling
    if sampling.kind != "public-chance":
        return 1, 1
    game = run.game()
    assert isinstance(game, PokerGame)
    tree, first = game.tree, 1 if config.cfr.first_round == "table" else 0

    mine, theirs = (int(((tree.round >= first) & (tree.actor == player)).sum()) for player in (0, 1))
    if mine != theirs:
        raise SystemExit(f"Examples of the players have {mine} and {theirs} infosets, and metrics count them together.")
    return mine, mine + theirs


def curve(run: RunFolder) -> Iterator[Row]:
    """Costs and results of a run at each of its evaluations.

    Time is the run's wall clock without exact evaluations and without the policy fits of earlier evaluations, because a run
    with one evaluation needs only one. Samples are counted in the same way.
    """
    config = run.config
    assert isinstance(config, RunConfig)
    of_advantages, of_policy = decisions(run)
    evaluated = trained = 0
    apart = policy_seconds = 0.0
    for line in read_metrics(run.metrics_path):
        if missing := {"evaluated", "trained"} - set(line):
            raise SystemExit(
                f"The metrics of '{run.path}' lack {', '.join(sorted(missing))} at t = {line['iteration']}."
            )
        evaluated += line["evaluated"]
        trained += line["trained"] * of_advantages
        if "evaluation" not in line:
            continue
        if "average_examples" not in line:
            raise SystemExit(f"The metrics of '{run.path}' lack the examples of policy fits: they are too old.")
        apart += line["evaluation"]["seconds"] + policy_seconds
        policy_seconds = line["average_fit_seconds"]
        yield {
            "t": line["iteration"],
            "nodes_touched": line["total_nodes_touched"],
            "evaluated": evaluated,
            "sgd_samples": trained + line["average_examples"] * of_policy,
            "seconds": line["seconds"] - apart,
            "policy_fit_seconds": policy_seconds,
            "nash_conv": line["evaluation"]["nash_conv"],
            "boards_used": line["evaluation"]["boards_used"],
        }


def sd_cfr(run: RunFolder, threads: int) -> tuple[int, Row]:
    """The iteration of the newest checkpoint, and the exact NashConv of its SD-CFR policy."""
    from deepcfr.evaluation.exploitability import exploitability
    from deepcfr.solvers.deep_cfr import DeepCFR

    policy, solver = run.load_policy("sd-cfr", print)
    assert isinstance(solver, DeepCFR)
    start = time.perf_counter()
    nash_conv = exploitability(policy, threads=threads).nash_conv
    facts = {"sd_cfr_nash_conv": nash_conv, "sd_cfr_networks": len(solver.snapshots.kept)}
    return solver.iteration, facts | {"sd_cfr_seconds": time.perf_counter() - start, "sd_cfr_threads": threads}


def rows_of(setting: str, path: Path, note: str, named: str | None, sd_cfr_threads: int | None) -> list[Row]:
    """The rows of a run folder. Raises SystemExit if the run is of another setting or of another game."""
    if setting not in SETTINGS:
        raise SystemExit(f"'{setting}' is not a setting; there are {', '.join(SETTINGS)}.")
    run = RunFolder.open(path)
    if not isinstance(run.config, RunConfig) or run.source != load_rules("fhp"):
        raise SystemExit(f"'{path}' is not a run of Deep CFR on flop hold'em.")
    if problems := misfits(setting, run.config):
        raise SystemExit("\n".join(problems))
    made = json.loads((path / "environment.json").read_text(encoding="utf-8"))
    about = {
        "setting": setting,
        "recipe": recipe(run.config),
        "hardware": hardware(made, named),
        "seed": run.config.seed,
        "commit": made["commit"],
        "command": without_home(made["command"]),
        "torch": made["versions"]["torch"],
        "note": note,
    }
    rows = [about | row for row in curve(run)]
    if sd_cfr_threads:
        iteration, facts = sd_cfr(run, sd_cfr_threads)
        row = next((row for row in rows if row["t"] == iteration), None)
        if row is None:
            raise SystemExit(f"'{path}' has a checkpoint of iteration {iteration}, which its metrics did not evaluate.")
        row |= facts
    return rows


def merged(known: list[Row], new: list[Row]) -> list[Row]:
    """All rows; a new row replaces the old one of the same key, but keeps its SD-CFR result if the new one has none."""
    rows = {tuple(row[name] for name in KEY): row for row in known}
    for row in new:
        key = tuple(row[name] for name in KEY)
        rows[key] = rows.pop(key, {}) | row  # at the end: the newest measurements are the last
    return list(rows.values())
