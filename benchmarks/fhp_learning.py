"""What Deep CFR learns of flop hold'em for its compute: exact NashConv beside nodes, network rows, samples and time.

    python benchmarks/fhp_learning.py strength=runs/s faithful+=runs/f --sd-cfr --note "..."   # take runs in
    python benchmarks/fhp_learning.py --render                                                # write README, docs/fhp.md

A run is given with its setting, and refused if its configuration is not of that setting. Figures are kept in
benchmarks/results/fhp_learning.json; one that is measured again at the same commit replaces the one before. Error budgets
are benchmarks/results/fhp_error_budget*.json, each as `deepcfr error-budget RUN --json` printed it.
"""

from __future__ import annotations

import argparse
import json
from math import ceil
from pathlib import Path
from typing import Any

from deepcfr.errors import DeepCFRError
from fhp_rows import SETTINGS, Row, merged, rows_of
from readme_results import ROOT, load, replaced, short, up

RESULT = ROOT / "benchmarks" / "results" / "fhp_learning.json"
BEGIN, END = "<!-- learning -->", "<!-- end of learning -->"
BEGIN_BUDGET, END_BUDGET = "<!-- error budget -->", "<!-- end of error budget -->"
_SAME = 0.05  # mbb/g; a network's exact NashConv on another device differs by rounding
# NashConv in mbb/g that others report, by iteration; remarks are theirs too
PUBLISHED: tuple[tuple[str, dict[int, str], str], ...] = (
    (
        "Deep CFR paper (Brown et al. 2019), figure 3, 10,000 traversals: read off the curve",
        {50: "154", 100: "70", 200: "51", 300: "40", 450: "40"},
        "37 in its text",
    ),
    (
        "best public re-implementation (github.com/romaf5/headsup-poker), 10,000 traversals",
        {100: "202", 200: "113", 300: "95", 450: "78"},
        "",
    ),
    (
        "the same, 25,000 traversals",
        {100: "117", 200: "91", 300: "69", 450: "75"},
        "58 with 16,000 SGD steps a fit",
    ),
    (
        "Deep CFR as run for Neural ReCFR-B (arXiv 2012.01870)",
        {},
        "47 at 600 M nodes touched, rising to 73 at 1,300 M",
    ),
)


def groups(rows: list[Row]) -> dict[str, list[Row]]:
    """The rows of each setting, configuration and hardware, by a name: the setting, numbered if there are several.

    Of a seed that was run at several commits, the rows of the newest measurement count.
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
    """A figure of which less is better: its mean over seeds, and its least and largest value if there are several."""
    values = [row[name] for row in rows]
    mean = up(sum(values) / len(values), digits)
    return mean if len(values) == 1 else f"{mean} ({up(min(values), digits)} to {up(max(values), digits)})"


def table_row(name: str, rows: list[Row]) -> str:
    """One line of the table: runs of one group at one iteration, one for each seed. What was used is the most of any."""

    def most(item: str, unit: float, digits: int) -> str:
        return up(max(row[item] for row in rows) / unit, digits)

    seeds = "" if len(rows) == 1 else f", {len(rows)} seeds"
    measured = [row for row in rows if "sd_cfr_nash_conv" in row]
    averaged = "–"
    if measured:
        networks = max(row["sd_cfr_networks"] for row in measured)
        averaged = f"{figure(measured, 'sd_cfr_nash_conv')}; {networks} iterates"
    cells = (
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
    return f"| {' | '.join(cells)} |"


def learning_table(rows: list[Row]) -> list[str]:
    """What was reached, and beneath it how and with what."""
    if not rows:
        return ["No run has been recorded yet."]
    lines = [
        "| setting | t | nodes touched, M | network rows evaluated, M | SGD samples, M | minutes | hardware | "
        "NashConv of the policy network, mbb/g | of SD-CFR |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for name, group in groups(rows).items():
        for t in sorted({row["t"] for row in group}):
            lines.append(table_row(name, [row for row in group if row["t"] == t]))
    return [*lines, "", *(made_by(name, group) for name, group in groups(rows).items())]


def made_by(name: str, group: list[Row]) -> str:
    """How the runs of a group were made."""
    seeds = ", ".join(str(seed) for seed in sorted({row["seed"] for row in group}))
    commits = " and ".join(sorted({short(row["commit"] or "unknown") for row in group}))
    torch = " and ".join(sorted({row["torch"] for row in group}))
    facts = [f"seed {seeds}", f"commit {commits}", f"torch {torch}", *sorted({row["note"] for row in group} - {""})]
    measured = [row for row in group if "sd_cfr_seconds" in row]
    if measured:
        slowest = max(measured, key=lambda row: row["sd_cfr_seconds"])
        threads = "one thread" if slowest["sd_cfr_threads"] == 1 else f"{slowest['sd_cfr_threads']} threads"
        facts.append(f"SD-CFR evaluated in {ceil(slowest['sd_cfr_seconds'])} s with {threads}")
    return f"* {name}: `{group[-1]['command']}` ({'; '.join(facts)})"


def published_table() -> list[str]:
    """What others report, and what exact tabular CFR has after so many iterations."""
    at = sorted({t for _, values, _ in PUBLISHED for t in values})
    lines = [f"| NashConv, mbb/g | {' | '.join(f't = {t}' for t in at)} | |", "|---" * (len(at) + 2) + "|"]
    for source, values, remark in PUBLISHED:
        lines.append(f"| {source} | {' | '.join(values.get(t, '') for t in at)} | {remark} |")
    points = load("fhp_solve.json")["lcfr"]["curve"]
    exact = ", ".join(f"{up(point['nash_conv'], 2)} at t = {point['iteration']}" for point in points)
    return [
        *lines,
        f"| exact tabular Linear CFR (`deepcfr solve fhp`), no sampling and no networks |{' |' * len(at)} {exact} |",
    ]


def learning_section(rows: list[Row]) -> list[str]:
    """The tables of README and docs/fhp.md."""
    return [*learning_table(rows), "", *published_table()]


def owner(budget: dict[str, Any], rows: list[Row]) -> str:
    """Which line of the table a budget is of: the one with its iterations and its average network's NashConv."""
    average = next((part["nash_conv"] for part in budget["parts"] if part["name"] == "average"), None)
    if average is None:
        raise SystemExit("An error budget without the part 'average' cannot be told to be of a run in the table.")
    for name, group in groups(rows).items():
        for row in group:
            if row["t"] == budget["iterations"] and abs(row["nash_conv"] - average) < _SAME:
                return f"{name}, seed {row['seed']}"
    raise SystemExit(f"No run in the table has {average:.3f} {budget['unit']} at t = {budget['iterations']}.")


def budget_section(budgets: list[dict[str, Any]], rows: list[Row]) -> list[str]:
    """The error budgets, as `deepcfr error-budget RUN --json` prints them."""
    if not budgets:
        return ["No error budget has been recorded yet."]
    return [line for budget in budgets for line in budget_tables(budget, owner(budget, rows))]


def budget_tables(budget: dict[str, Any], name: str) -> list[str]:
    """One error budget: verdict, parts, gaps, deviations."""
    unit, deviations = budget["unit"], budget["deviations"]
    lines = [f"**{name}, t = {budget['iterations']}.** {' '.join(budget['verdict'])}", ""]
    lines += [f"| part | | NashConv, {unit} | seconds |", "|---|---|---|---|"]
    for part in budget["parts"]:
        lines.append(
            f"| `{part['name']}` | {part['meaning']} | {up(part['nash_conv'], 2)} | {up(part['seconds'], 0)} |"
        )
    for missing, reason in budget["unmeasured"].items():
        lines.append(f"| `{missing}` | not measured: {reason} | | |")
    lines += ["", f"| gap | formula | adds, {unit} |", "|---|---|---|"]
    lines += [f"| {gap['name']} | `{gap['formula']}` | {gap['value']:.2f} |" for gap in budget["gaps"]]
    if not deviations:
        return [*lines, ""]
    lines += ["", f"| deviating from `{budget['deviating']}` only | gains, {unit} | player 0 | player 1 | decisions |"]
    lines += ["|---|---|---|---|---|"]
    for one in deviations:
        gains = " | ".join(f"{gain:.2f}" for gain in (one["nash_conv"], *one["gains"]))
        lines.append(f"| {one['name']} | {gains} | {one['decisions']} |")
    return [*lines, ""]


def recorded() -> tuple[list[Row], list[dict[str, Any]]]:
    """The rows and the error budgets that there are."""
    rows = json.loads(RESULT.read_text(encoding="utf-8")) if RESULT.is_file() else []
    found = sorted(RESULT.parent.glob("fhp_error_budget*.json"))
    return rows, [json.loads(path.read_text(encoding="utf-8")) for path in found]


def pages() -> dict[Path, str]:
    """README and docs/fhp.md as the recorded figures make them."""
    rows, budgets = recorded()
    readme, page = ROOT / "README.md", ROOT / "docs" / "fhp.md"
    section = learning_section(rows)
    text = replaced(page.read_text(encoding="utf-8"), BEGIN, END, section)
    return {
        readme: replaced(readme.read_text(encoding="utf-8"), BEGIN, END, section),
        page: replaced(text, BEGIN_BUDGET, END_BUDGET, budget_section(budgets, rows)),
    }


def main() -> None:
    """Take runs in, render pages, or both."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="*", metavar="SETTING=FOLDER", help=f"settings are {', '.join(SETTINGS)}")
    parser.add_argument(
        "--sd-cfr", action="store_true", help="measure the SD-CFR average of each newest checkpoint too"
    )
    parser.add_argument("--threads", type=int, default=1, help="for that")
    parser.add_argument("--note", default="", help="what else was running, and the like")
    parser.add_argument("--hardware", help="what the runs were made on, if on a GPU")
    parser.add_argument("--render", action="store_true", help="write README.md and docs/fhp.md")
    given = parser.parse_args()
    for text in given.runs:
        setting, separator, folder = text.partition("=")
        if not separator:
            parser.error(f"'{text}' is not SETTING=FOLDER.")
        threads = given.threads if given.sd_cfr else None
        try:
            new = rows_of(setting, Path(folder), given.note, given.hardware, threads)
        except DeepCFRError as error:
            raise SystemExit(str(error)) from None
        rows = merged(recorded()[0], new)
        RESULT.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")
    if given.render:
        for path, text in pages().items():
            path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
