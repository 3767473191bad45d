"""The page of table 1: published and played results, read from the folders of `table1`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deepcfr.config import ExternalSampling, PublicChanceSampling
from deepcfr.files import read_json
from deepcfr.games.presets import load_rules
from deepcfr.runs.metrics import read_metrics
from experiments.grid import Job
from experiments.pages import bullets, command, made_by, paragraphs, seeds_of, table, why_missing
from experiments.studies import BUDGETS, Budget
from experiments.table1.runs import (
    ITSELF,
    MARGIN,
    NAME,
    NFSP,
    NFSP_PUBLISHED,
    PLANS,
    STYLES,
    Plan,
    deep_job,
    deep_name,
    recorded,
    rival_jobs,
    rival_names,
)

EQUILIBRIUM = {"hulh": (87.7, 89.7)}  # player 0's value, mbb/g (Bowling et al., Science 2015)
_THEIRS = (
    " The paper has cards as dealt, networks in all rounds, and fits from scratch of 32,000 steps of 20,000 by Adam "
    "(sections 5.1 and 5.2); its inputs are cards and bets only."
)


@dataclass(frozen=True)
class Table:
    """The results of the table at one budget."""

    budget: Budget
    plan: Plan
    game: str
    unit: str
    seeds: tuple[int, ...]  # seeds with a folder
    matches: dict[tuple[str, str], dict[str, Any]]  # by the names of both players
    left_out: dict[str, str]  # the reason why a baseline is not played, by name
    missing: tuple[str, ...]  # sentences
    cost: tuple[tuple[str, ...], ...]  # rows of finished runs


def read_table(root: Path, budget: Budget, plan: Plan | None = None) -> Table:
    """Read the table at one budget from the folders under `root`; `plan` replaces that of the budget."""
    plan = plan or PLANS[budget]
    folder, rules = root / NAME / budget, load_rules(plan.deep.game)
    left_out = read_json(folder / "left-out.json") if (folder / "left-out.json").is_file() else {}
    rivals = [baseline for baseline in plan.baselines if baseline.name not in left_out]
    seeds = tuple(sorted(seeds_of(folder, "deep-cfr")))
    jobs = [*(deep_job(folder, plan, seed) for seed in seeds or (0,)), *rival_jobs(folder, plan, rivals)]
    players = [*(deep_name(seed) for seed in seeds), *([NFSP] if plan.nfsp else [])]
    found = {
        (player, name): recorded(folder, plan, player, name)
        for player in players
        for name in rival_names(plan, rivals, player)
    }
    problems = [(job, why_missing(job)) for job in jobs]
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


def _cost_row(job: Job) -> tuple[str, ...]:
    last = read_metrics(job.path / "metrics.jsonl")[-1]
    _, commits, hardware = made_by([job.path])
    done = f"{last['iteration']:,}", f"{last['total_nodes_touched']:,}", f"{last['seconds'] / 60:.1f}"
    return f"`{job.path.name}`", *done, hardware, commits


def read_tables(root: Path) -> tuple[Table, ...]:
    """The table at every budget with results."""
    return tuple(table for budget in BUDGETS if (table := read_table(root, budget)).seeds)


def table_page(tables: Iterable[Table]) -> Iterator[str]:
    """The page with these tables."""
    yield from paragraphs(
        "# Table 1: heads-up limit hold'em against card abstractions",
        "`python -m experiments report` writes this page from the run folders of "
        f"`python -m experiments reproduce {NAME}`.",
    )
    for found in tables:
        yield from table_lines(found)


def table_lines(found: Table) -> Iterator[str]:
    """The table at one budget."""
    yield from paragraphs(
        f"## The {found.budget} budget",
        f"Command: `{command(NAME, found.budget)}`, game {found.game}. Gains of Deep CFR as described below, and of NFSP, "
        f"with a 95 % interval over {found.plan.hands:,} sampled deals, each played in both seats "
        "([matches.md](matches.md)). There is one run of each baseline and of NFSP; the seeds are those of Deep CFR. "
        "The paper specifies its abstractions by their size only; ours have the same sizes ([hulh.md](hulh.md)).",
        agent(found),
    )
    seeds = (f"seed {seed}, {found.unit}" for seed in found.seeds)
    head = ("against", "buckets a round", *seeds, "the paper's Deep CFR", f"NFSP, {found.unit}", "the paper's NFSP")
    yield from table(head, _rows(found))
    yield from bullets((*found.left_out.values(), *(f"Missing: {s}." for s in found.missing), *_dealer(found)))
    if found.cost:
        yield from table(("run", "iterations", "nodes touched", "minutes", "hardware", "commit"), found.cost)


def agent(found: Table) -> str:
    """The configuration and the settings of Deep CFR at a budget."""
    deep = found.plan.deep
    file = f" is `configs/hulh-{found.budget}.toml` of the commit below" if found.game == "hulh" else ""
    sampled = ""
    if isinstance(deep.sampling, ExternalSampling):
        sampled = f" of {deep.sampling.traversals:,} traversals a player"
    elif isinstance(deep.sampling, PublicChanceSampling):
        sampled = f" of {deep.sampling.boards:,} drawn boards a player"
    seen = "canonical suits" if deep.network.suits == "canonical" else "cards as dealt"
    fit = deep.advantage
    parts = [
        f"{deep.iterations:,} iterations{sampled}",
        f"a {deep.cfr.first_round} for the first round",
        seen + (" and hand strength (domain knowledge)" if deep.network.strength else ""),
        f"advantage fits {'from scratch' if fit.refit == 'scratch' else 'that are fine-tuned'}, of {fit.steps:,} steps "
        f"of {fit.batch_size:,} by {fit.optimizer.capitalize()}",
    ]
    if fit.bootstrapped:
        parts.append(f"networks that keep sums (`advantage.target` = {fit.target})")
    return f"*Deep CFR*{file}: {'; '.join(parts)}.{'' if found.budget == 'paper' else _THEIRS}"


_ACTS = {"call": "always checks and calls", "uniform": "acts uniformly at random"}


def _rows(found: Table) -> Iterator[tuple[str, ...]]:
    for baseline in found.plan.baselines:
        label = f"Linear MCCFR, {baseline.size} abstract decisions"
        if baseline.minutes:
            label += f", trained for {baseline.minutes:g} min"
        yield _row(found, label, f"{baseline.buckets:,}", baseline.name, baseline.published, baseline.published_nfsp)
    yield _row(found, "NFSP", "", NFSP, NFSP_PUBLISHED, None)
    for style in STYLES:
        yield _row(found, f"a player that {_ACTS[style]}", "", style, None, None)


def _row(found: Table, label: str, buckets: str, name: str, deep: float | None, nfsp: float | None) -> tuple[str, ...]:
    cells = (_cell(found, deep_name(seed), name) for seed in found.seeds)
    beside = _cell(found, NFSP, name) if any(name == b.name for b in found.plan.baselines) else ""
    return label, buckets, *cells, _published(deep), beside, _published(nfsp)


def _published(value: float | None) -> str:
    """A value of the paper's table 1."""
    return "" if value is None else f"{value:+g} ± {MARGIN:g}"


def _cell(table: Table, player: str, name: str) -> str:
    match = table.matches.get((player, name))
    if match is None:
        return "left out" if name in table.left_out else "not played"
    return f"{match['mean']:+.1f} ± {match['interval']:.1f}"


def _dealer(table: Table) -> Iterator[str]:
    """The first seat's value in self-play, and that in equilibrium where it is known."""
    for seed in table.seeds:
        own = table.matches.get((deep_name(seed), ITSELF))
        if own is None:
            continue
        known = EQUILIBRIUM.get(table.game)
        beside = f"; in equilibrium it is between {known[0]} and {known[1]}" if known else ""
        value = f"{own['mean']:+.1f} ± {own['interval']:.1f} {table.unit}"
        yield f"Seed {seed} against itself, on {table.plan.boards:,} runouts: the dealer gains {value}{beside}."
