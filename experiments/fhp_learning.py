"""Tables of Deep CFR on flop hold'em from records: exact NashConv with nodes, network rows, samples, time; error budgets.

Rows are in experiments/results/fhp_learning.json, one for each evaluation of a run; error budgets are
experiments/results/fhp_error_budget*.json, the output of `deepcfr error-budget RUN --json`. `python -m experiments report`
writes README.md and docs/fhp.md with them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from math import ceil
from pathlib import Path
from typing import Any

from experiments.filled import ROOT, filled, replaced, short, up
from experiments.pages import table

Row = dict[str, Any]
SETTINGS = ("paper", "faithful+", "strength")  # in the order of the table
RESULT = ROOT / "experiments" / "results" / "fhp_learning.json"
BEGIN, END = "<!-- learning -->", "<!-- end of learning -->"
BEGIN_FRONT, END_FRONT = "<!-- front -->", "<!-- end of front -->"
BEGIN_BUDGET, END_BUDGET = "<!-- error budget -->", "<!-- end of error budget -->"
_SAME = 0.05  # mbb/g; a network's exact NashConv on another device differs by rounding


def groups(rows: list[Row]) -> dict[str, list[Row]]:
    """The rows of each setting, configuration and hardware, by a name: the setting, numbered if there are several.

    For a seed that was run at several commits, only the rows of the newest measurement count.
    """
    kept: dict[tuple[str, str, str], list[Row]] = {}
    for row in rows:
        kept.setdefault((row["setting"], row["recipe"], row["hardware"]), []).append(row)
    named = {}
    for setting in SETTINGS:
        found = [key for key in kept if key[0] == setting]
        for number, key in enumerate(found, start=1):
            newest = {row["seed"]: row["commit"] for row in kept[key]}
            name = setting if len(found) == 1 else f"{setting} ({number})"
            named[name] = [row for row in kept[key] if row["commit"] == newest[row["seed"]]]
    return named


def figure(rows: list[Row], name: str, digits: int = 2) -> str:
    """A figure for which less is better: the mean over seeds, and the least and largest value of several seeds."""
    values = [row[name] for row in rows]
    mean = up(sum(values) / len(values), digits)
    return mean if len(values) == 1 else f"{mean} ({up(min(values), digits)} to {up(max(values), digits)})"


def table_row(name: str, rows: list[Row]) -> tuple[str, ...]:
    """The cells of one line of the table: runs of one group at one iteration. Costs are the largest of any seed."""

    def most(item: str, unit: float, digits: int) -> str:
        return up(max(row[item] for row in rows) / unit, digits)

    seeds = "" if len(rows) == 1 else f", {len(rows)} seeds"
    measured = [row for row in rows if "sd_cfr_nash_conv" in row]
    averaged = "–"
    if measured:
        networks = max(row["sd_cfr_networks"] for row in measured)
        averaged = f"{figure(measured, 'sd_cfr_nash_conv')}; {networks} snapshots"
    return (
        name + seeds,
        f"{rows[0]['t']}",
        most("nodes_touched", 1e6, 1),
        most("evaluated", 1e6, 1),
        most("sgd_samples", 1e6, 1),
        most("seconds", 60, 1),
        rows[0]["hardware"],
        figure(rows, "nash_conv"),
        averaged,
    )


def learning_table(rows: list[Row]) -> list[str]:
    """The table of results, and below it settings and hardware."""
    head = ("setting", "t", "nodes touched, M", "network rows evaluated, M", "SGD samples, M", "minutes", "hardware",
            "NashConv of the policy network, mbb/g", "of SD-CFR")  # fmt: skip
    lines = (
        table_row(name, [row for row in group if row["t"] == t])
        for name, group in groups(rows).items()
        for t in sorted({row["t"] for row in group})
    )
    return [*table(head, lines), *(made_by(name, group) for name, group in groups(rows).items())]


def made_by(name: str, group: list[Row]) -> str:
    """The origin of the runs of a group."""
    seeds = ", ".join(str(seed) for seed in sorted({row["seed"] for row in group}))
    commits = " and ".join(sorted({short(row["commit"] or "unknown") for row in group}))
    torch = " and ".join(sorted({row["torch"] for row in group}))
    facts = [f"seed {seeds}", f"commit {commits}", f"torch {torch}"]
    measured = [row for row in group if "sd_cfr_seconds" in row]
    if measured:
        slowest = max(measured, key=lambda row: row["sd_cfr_seconds"])
        threads = "one thread" if slowest["sd_cfr_threads"] == 1 else f"{slowest['sd_cfr_threads']} threads"
        facts.append(f"SD-CFR evaluated in {ceil(slowest['sd_cfr_seconds'])} s with {threads}")
    return f"* {name}: `{group[-1]['command']}` ({'; '.join(facts)})"


def owner(budget: dict[str, Any], rows: list[Row]) -> str:
    """The line of the table to which a budget belongs, found by iterations and the average network's NashConv."""
    average = next((part["nash_conv"] for part in budget["parts"] if part["name"] == "average"), None)
    if average is None:
        raise SystemExit("An error budget without the part 'average' cannot be told to be of a run in the table.")
    for name, group in groups(rows).items():
        for row in group:
            if row["t"] == budget["iterations"] and abs(row["nash_conv"] - average) < _SAME:
                return f"{name}, seed {row['seed']}"
    raise SystemExit(f"No run in the table has {average:.3f} {budget['unit']} at t = {budget['iterations']}.")


def budget_tables(budget: dict[str, Any], name: str) -> Iterator[str]:
    """One error budget: verdict, parts, gaps, deviations."""
    unit = budget["unit"]
    yield from (f"**{name}, t = {budget['iterations']}.** {' '.join(budget['verdict'])}", "")
    parts = [
        (f"`{part['name']}`", part["meaning"], up(part["nash_conv"], 2), up(part["seconds"], 0))
        for part in budget["parts"]
    ]
    missing = [(f"`{part}`", f"not measured: {reason}", "", "") for part, reason in budget["unmeasured"].items()]
    yield from table(("part", "what it is", f"NashConv, {unit}", "seconds"), parts + missing)
    gaps = ((gap["name"], f"`{gap['formula']}`", f"{gap['value']:.2f}") for gap in budget["gaps"])
    yield from table(("gap", "formula", f"adds, {unit}"), gaps)
    if budget["deviations"]:
        head = (f"deviating from `{budget['deviating']}` only", f"gains, {unit}", "player 0", "player 1", "decisions")
        yield from table(
            head,
            (
                (one["name"], *(f"{gain:.2f}" for gain in (one["nash_conv"], *one["gains"])), str(one["decisions"]))
                for one in budget["deviations"]
            ),
        )


def recorded() -> tuple[list[Row], list[dict[str, Any]]]:
    """The recorded rows and error budgets."""
    rows = json.loads(RESULT.read_text(encoding="utf-8"))
    found = sorted(RESULT.parent.glob("fhp_error_budget*.json"))
    return rows, [json.loads(path.read_text(encoding="utf-8")) for path in found]


def pages(docs: Path) -> dict[Path, str]:
    """The pages of records with their figures: benchmarks.md in `docs`, and fhp.md and README.md if they are there."""
    rows, budgets = recorded()
    shown = [line for budget in budgets for line in budget_tables(budget, owner(budget, rows))]
    readme, page = docs.parent / "README.md", docs / "fhp.md"
    found = {docs / "benchmarks.md": filled("benchmarks")}
    for path, begin, end, lines in (
        (readme, BEGIN_FRONT, END_FRONT, filled("front").splitlines()),
        (page, BEGIN, END, [*learning_table(rows), "", *filled("published").splitlines()]),
        (page, BEGIN_BUDGET, END_BUDGET, shown),
    ):
        if path.is_file():
            found[path] = replaced(found.get(path) or path.read_text(encoding="utf-8"), begin, end, lines)
    return found
