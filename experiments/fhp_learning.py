"""Tables of Deep CFR on flop hold'em from records: exact NashConv with nodes, network rows, samples, time; error budgets.

Rows are in experiments/results/fhp_learning.json, one for each evaluation of a run; the error budget is
experiments/results/fhp_error_budget_strength.json, the output of `deepcfr error-budget RUN --json`.
`python -m experiments report` writes README.md and docs/fhp.md with them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from experiments.filled import ROOT, filled, replaced, up
from experiments.pages import table

Row = dict[str, Any]
SETTINGS = ("paper", "faithful+", "strength")  # in the order of the table
RESULT = ROOT / "experiments" / "results" / "fhp_learning.json"
BEGIN, END = "<!-- learning -->", "<!-- end of learning -->"
BEGIN_FRONT, END_FRONT = "<!-- front -->", "<!-- end of front -->"
BEGIN_BUDGET, END_BUDGET = "<!-- error budget -->", "<!-- end of error budget -->"
# Commits whose runs have the settings of today's recipes; of earlier ones the page has what compares SD-CFR.
TODAY = ("3146fb6335", "487fd538cf", "5d0f76beda", "c712d731e4", "9cb75faf6c", "ecf61adc7a", "f7bfef72db")


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
        most("seconds", 60, 1),
        rows[0]["hardware"],
        figure(rows, "nash_conv"),
        averaged,
    )


def learning_table(rows: list[Row]) -> list[str]:
    """The table of results."""
    head = ("setting", "t", "nodes touched, M", "minutes", "hardware", "NashConv, mbb/g", "of SD-CFR")
    lines = (
        table_row(name, [row for row in group if row["t"] == t])
        for name, group in groups(rows).items()
        for t in sorted({row["t"] for row in group})
    )
    return list(table(head, lines))


def shown_rows(rows: list[Row]) -> list[Row]:
    """The rows that the page shows: the ends of today's runs, and of those of which SD-CFR was measured."""
    last = [row for group in groups(rows).values() for row in group if row["t"] == max(one["t"] for one in group)]
    return [row for row in last if row["commit"].startswith(TODAY) or "sd_cfr_nash_conv" in row]


def recorded() -> tuple[list[Row], dict[str, Any]]:
    """The recorded rows, and the error budget of a run of the setting `strength`."""
    budget = RESULT.with_name("fhp_error_budget_strength.json")
    return json.loads(RESULT.read_text(encoding="utf-8")), json.loads(budget.read_text(encoding="utf-8"))


def pages(docs: Path) -> dict[Path, str]:
    """The pages of records with their figures: benchmarks.md in `docs`, and fhp.md and README.md if they are there."""
    rows, budget = recorded()
    readme, page = docs.parent / "README.md", docs / "fhp.md"
    found = {docs / "benchmarks.md": filled("benchmarks")}
    for path, begin, end, lines in (
        (readme, BEGIN_FRONT, END_FRONT, filled("front").splitlines()),
        (page, BEGIN, END, [*learning_table(shown_rows(rows)), *filled("published").splitlines()]),
        (page, BEGIN_BUDGET, END_BUDGET, budget["verdict"]),
    ):
        if path.is_file():
            found[path] = replaced(found.get(path) or path.read_text(encoding="utf-8"), begin, end, lines)
    return found
