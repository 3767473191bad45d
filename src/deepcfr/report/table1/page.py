"""Table 1 of the paper beside what was played here, read from the folders of `table1`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deepcfr.errors import DeepCFRError
from deepcfr.files import read_json
from deepcfr.games.presets import load_rules
from deepcfr.report.studies import BUDGETS, Budget
from deepcfr.report.table import provenance
from deepcfr.report.table1.runs import (
    ITSELF,
    MARGIN,
    NAME,
    NFSP,
    NFSP_PUBLISHED,
    PLANS,
    STYLES,
    Plan,
    deep_job,
    recorded,
    rival_jobs,
    rival_names,
)
from deepcfr.runs.folder import RunFolder
from deepcfr.runs.metrics import read_metrics
from deepcfr.runs.study import Job, is_finished

EQUILIBRIUM = {"hulh": (87.7, 89.7)}  # player 0's value, mbb/g (Bowling et al., Science 2015)
_HOW = "stated in table 1"


@dataclass(frozen=True)
class Table:
    """What is there of the table at one budget."""

    budget: Budget
    plan: Plan
    game: str
    unit: str
    seeds: tuple[int, ...]  # those with a folder
    matches: dict[tuple[int, str], dict[str, Any]]  # by seed and rival
    left_out: dict[str, str]  # why a baseline is not played, by name
    missing: tuple[str, ...]  # sentences
    cost: tuple[str, ...]  # rows of finished runs


def read_table(root: Path, budget: Budget, plan: Plan | None = None) -> Table:
    """The table at one budget as the folders under `root` have it; `plan` stands in for that of the budget."""
    plan = plan or PLANS[budget]
    folder, rules = root / NAME / budget, load_rules(plan.deep.game)
    left_out = read_json(folder / "left-out.json") if (folder / "left-out.json").is_file() else {}
    rivals = [baseline for baseline in plan.baselines if baseline.name not in left_out]
    seeds = tuple(sorted(_seeds(folder)))
    jobs = [*(deep_job(folder, plan, seed) for seed in seeds or (0,)), *rival_jobs(folder, plan, rivals)]
    names = rival_names(plan, rivals)
    found = {(seed, name): recorded(folder, plan, seed, name) for seed in seeds for name in names}
    problems = [(job, _problem(job)) for job in jobs]
    return Table(
        budget,
        plan,
        rules.name,
        rules.milli_unit,
        seeds,
        {place: result for place, result in found.items() if result},
        left_out,
        tuple(f"`{job.path.name}`: {problem}" for job, problem in problems if problem),
        tuple(_cost_row(job) for job, problem in problems if not problem),
    )


def _seeds(folder: Path) -> Iterator[int]:
    for path in folder.glob("deep-cfr-s*/config.toml"):
        number = path.parent.name.removeprefix("deep-cfr-s")
        if number.isdigit():
            yield int(number)


def _problem(job: Job) -> str | None:
    """Why a run is not there, None if it is."""
    try:
        if is_finished(job):
            return None
    except DeepCFRError as error:
        return " ".join(error.problems).rstrip(".")
    if not (job.path / "config.toml").is_file():
        return "not there"
    lines = read_metrics(job.path / "metrics.jsonl")
    return f"stopped at iteration {lines[-1]['iteration'] if lines else 0:,} of {job.config.iterations:,}"


def _cost_row(job: Job) -> str:
    run = RunFolder.open(job.path)
    last = read_metrics(run.metrics_path)[-1]
    _, commits, hardware = provenance(job.path)
    short = ", then ".join(commit[:10] for commit in commits.split(", then "))
    return (
        f"| `{job.path.name}` | {last['iteration']:,} | {last['total_nodes_touched']:,} | {last['seconds'] / 60:.1f} | "
        f"{hardware} | {short} |"
    )


def read_tables(root: Path) -> tuple[Table, ...]:
    """The table at every budget that was begun."""
    return tuple(table for budget in BUDGETS if (table := read_table(root, budget)).seeds)


def table_page(tables: Iterable[Table]) -> Iterator[str]:
    """The page with these tables."""
    yield "# Table 1: heads-up limit hold'em against card abstractions"
    yield ""
    yield f"Written by `deepcfr report` from run folders alone, which `deepcfr reproduce {NAME}` makes."
    for table in tables:
        yield ""
        yield from table_lines(table)


def table_lines(table: Table) -> Iterator[str]:
    """The table at one budget."""
    yield f"## The {table.budget} budget"
    yield ""
    yield (
        f"Command: `deepcfr reproduce {NAME} --budget {table.budget}`, game {table.game}. What Deep CFR gains, with a 95 % "
        f"interval over {table.plan.hands:,} sampled deals, each played in both seats ([matches.md](matches.md)). "
        "One run of each baseline; the seeds are those of Deep CFR. The paper describes its abstractions by "
        "their size only, and ours are those of the same size ([hulh.md](hulh.md))."
    )
    yield ""
    columns = "".join(f" seed {seed}, {table.unit} |" for seed in table.seeds)
    yield f"| against | buckets a round |{columns} the paper, mbb/g | how read |"
    yield "|---|---|" + "---|" * len(table.seeds) + "---|---|"
    for baseline in table.plan.baselines:
        label = f"Linear MCCFR, {baseline.size} abstract decisions"
        if baseline.minutes:
            label += f", trained for {baseline.minutes:g} min"
        published = "" if baseline.published is None else f"{baseline.published:+g} ± {MARGIN:g}"
        yield _row(table, label, f"{baseline.buckets:,}", baseline.name, published)
    yield _row(table, "NFSP", "", NFSP, f"{NFSP_PUBLISHED:+g} ± {MARGIN:g}")
    for style in STYLES:
        yield _row(table, f"a player that {_ACTS[style]}", "", style, "")
    yield ""
    yield from (f"* {sentence}" for sentence in table.left_out.values())
    yield from (f"* Missing: {sentence}." for sentence in table.missing)
    yield from _dealer(table)
    if table.cost:
        yield ""
        yield "| run | iterations | nodes touched | minutes | hardware | commit |"
        yield "|---|---|---|---|---|---|"
        yield from table.cost


_ACTS = {"call": "always checks and calls", "uniform": "acts uniformly at random"}


def _row(table: Table, label: str, buckets: str, name: str, published: str) -> str:
    cells = "".join(f" {_cell(table, seed, name)} |" for seed in table.seeds)
    return f"| {label} | {buckets} |{cells} {published} | {_HOW if published else ''} |"


def _cell(table: Table, seed: int, name: str) -> str:
    match = table.matches.get((seed, name))
    if match is None:
        return "left out" if name in table.left_out else "not played"
    return f"{match['mean']:+.1f} ± {match['interval']:.1f}"


def _dealer(table: Table) -> Iterator[str]:
    """The first seat's value against oneself, beside that in equilibrium where it is known."""
    for seed in table.seeds:
        own = table.matches.get((seed, ITSELF))
        if own is None:
            continue
        known = EQUILIBRIUM.get(table.game)
        beside = f"; in equilibrium it is between {known[0]} and {known[1]}" if known else ""
        value = f"{own['mean']:+.1f} ± {own['interval']:.1f} {table.unit}"
        yield f"* Seed {seed} against itself, on {table.plan.boards:,} runouts: the dealer gains {value}{beside}."
