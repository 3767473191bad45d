"""The page of Lin's experiments: published numbers, and means over seeds with 95 % intervals from `lin.runs`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deepcfr.evaluation.intervals import Interval, contrast, interval_of
from deepcfr.games.presets import load_source
from deepcfr.policies.styles import STYLES
from deepcfr.runs.metrics import read_metrics
from experiments.lin.runs import Key, bot_config, jobs_of_seed, measures_of, recorded, records_folder
from experiments.pages import (
    asked_seeds,
    bullets,
    command,
    made_by,
    not_run,
    paragraphs,
    sections_of,
    table,
    why_missing,
)
from experiments.studies import BUDGETS, Budget
from experiments.studies.lin import (
    EARLY,
    ENSEMBLES,
    LIN_STUDIES,
    MEMBERS,
    NONE,
    PROFITS,
    SHAPES,
    WIN_RATES,
    LinPlan,
    LinStudy,
)


@dataclass(frozen=True)
class LinResult:
    """The results of a study at one budget."""

    study: LinStudy
    budget: Budget
    plan: LinPlan
    game: str
    unit: str
    measured: Mapping[Key, dict[int, dict[str, Any]]]  # matches and evaluations by key and seed
    metrics: Mapping[str, dict[int, list[dict[str, Any]]]]  # of finished runs by bot and seed
    missing: tuple[str, ...]  # sentences
    cost: tuple[str, ...]  # sentences on the cost of the runs

    @property
    def started(self) -> bool:
        """Whether the study has any measurement of its own."""
        return bool(self.measured)


# Reading


def read_lin(root: Path, name: str, budget: Budget, studies: Mapping[str, LinStudy] = LIN_STUDIES) -> LinResult:
    """Read a study from the folders under `root`, for every seed with a measurement, and at least three."""
    study = studies[name]
    plan = study.plans[budget]
    seeds = asked_seeds(_seeds(records_folder(root, study, budget)))
    source = load_source(bot_config(plan, (*plan.bots, *plan.members)[0], 0).game)
    measured: dict[Key, dict[int, dict[str, Any]]] = {}
    absent = []
    for seed in seeds:
        for one in measures_of(root, study, budget, seed):
            if found := recorded(root, study, budget, seed, one.key):
                measured.setdefault(one.key, {})[seed] = found
            else:
                absent.append(seed)
    missing = [f"Seed {seed}: {absent.count(seed)} not measured." for seed in dict.fromkeys(absent)]
    jobs = list({job.path: job for seed in seeds for job in jobs_of_seed(root, study, budget, seed)}.values())
    metrics: dict[str, dict[int, list[dict[str, Any]]]] = {}
    paths = []
    for job in jobs:
        if problem := why_missing(job):
            missing.append(f"Run `{job.path.name}`: {problem}.")
            continue
        bot, _, seed_text = job.path.name.rpartition("-s")
        metrics.setdefault(bot, {})[int(seed_text)] = read_metrics(job.path / "metrics.jsonl")
        paths.append(job.path)
    cost = tuple(_cost(paths, metrics)) if paths else ()
    return LinResult(study, budget, plan, source.name, source.milli_unit, measured, metrics, tuple(missing), cost)


def read_all_lin(root: Path) -> list[LinResult]:
    """All studies at all budgets."""
    return [read_lin(root, name, budget) for name in LIN_STUDIES for budget in BUDGETS]


def _seeds(folder: Path) -> Iterator[int]:
    for path in folder.glob("s*-*.json"):
        number = path.name[1:].split("-")[0]
        if number.isdigit():
            yield int(number)


def _cost(paths: Sequence[Path], metrics: Mapping[str, dict[int, list[dict[str, Any]]]]) -> Iterator[str]:
    runs = [lines[-1] for own in metrics.values() for lines in own.values()]
    hours, nodes = sum(line["seconds"] for line in runs) / 3600, sum(line["total_nodes_touched"] for line in runs)
    yield f"{len(runs)} runs, one after another: {hours:.1f} hours, {nodes:,} nodes touched."
    for what, text in zip(("Commands", "Commits", "Hardware"), made_by(paths), strict=True):
        yield f"{what}: {text}."


# Values


def gain(result: LinResult, key: Key) -> Interval | None:
    """The gain of a match's first player over seeds, in the milli unit; None if it was not played."""
    found = result.measured.get(key)
    return interval_of([facts["value"] for facts in found.values()]) if found else None


def shape_gain(result: LinResult, own: str, other: str) -> Interval | None:
    """The gain of the bot of one shape against that of another."""
    if SHAPES.index(own) < SHAPES.index(other):
        return gain(result, (own, other))
    found = gain(result, (other, own))
    return found and Interval(-found.mean, found.half, found.count)


def bot_gains(result: LinResult, style: str) -> list[dict[str, Any]]:
    """The matches of all bots of lin-fig8 against themselves in a style."""
    return [facts for key, found in result.measured.items() if key[1] == style for facts in found.values()]


def exact_values(result: LinResult, early: bool = False) -> dict[str, Interval]:
    """NashConv by arm of lin-exact: at the end, or at the early evaluation, which ensembles do not have."""
    values = {}
    for bot in (*result.plan.bots, *result.plan.members):
        at = EARLY[result.budget] if early else None
        found = [
            line["evaluation"]["nash_conv"]
            for lines in result.metrics.get(bot.name, {}).values()
            for line in lines
            if "evaluation" in line and line["iteration"] == (at or lines[-1]["iteration"])
        ]
        if found:
            values[bot.name] = interval_of(found)
    for arm in () if early else ENSEMBLES:
        if measured := result.measured.get((arm,)):
            values[arm] = interval_of([facts["nash_conv"] for facts in measured.values()])
    return values


def verdict(value: Interval, more: str, less: str) -> str:
    """Whether a 95 % interval is above, below or around 0."""
    if value.count < 2:
        return "not shown: one seed"
    if value.mean - value.half > 0:
        return more
    return less if value.mean + value.half < 0 else "not shown"


def _judged(values: Sequence[Interval | None]) -> str:
    """The verdict on the statement that all these values are above 0."""
    said = [verdict(value, "above", "below") if value else "missing" for value in values]
    if "below" in said:
        return "does not hold"
    if "missing" in said:
        return "cannot be said"
    return "holds" if set(said) == {"above"} else "not shown"


# The page


def lin_page(results: Sequence[LinResult], figures: str, old: str = "") -> Iterator[str]:
    """The page of the studies; `figures` is the folder of the pictures of `lin_picture`.

    A study without measurements keeps its section of the page `old`.
    """
    sections = sections_of(old)
    shown = [result for result in results if result.started or _title(result) in sections]
    yield from paragraphs(
        "# Lin's improvements to Monte Carlo CFR",
        "`python -m experiments report` writes this page from the run folders of `python -m experiments reproduce NAME`. "
        'The paper is Jonathan Lin (2024), "4 Improvements to Monte Carlo Counterfactual Regret Minimization for Texas '
        "Heads Up No Limit Poker\"; see [lin.md](lin.md). Lin's numbers have no seeds and no intervals. Ours are means "
        "over seeds with Student's 95 % intervals. A bot *gains* or *loses* if the interval does not contain 0.",
    )
    for result in shown:
        if result.started:
            yield from study_lines(result, f"{figures}/{picture_name(result)}.svg")
        else:
            yield from sections[_title(result)]
    yield from not_run((result.study.title, _command(result)) for result in results if result not in shown)


def _title(result: LinResult) -> str:
    return f"{result.study.title} ({result.budget}, {result.game})"


def picture_name(result: LinResult) -> str:
    """The name of the study's figure, without its ending."""
    return f"{result.study.name}-{result.budget}"


def study_lines(result: LinResult, picture: str) -> Iterator[str]:
    """The section of one study: measure, Lin's statement, table, missing runs and cost."""
    deals = f" Matches are of {result.plan.deals:,} deals, each in both seats." if result.plan.deals else ""
    yield from paragraphs(
        f"## {_title(result)}",
        f"{result.study.about}{deals} Command: `{_command(result)}`.",
        f"![{result.study.title}]({picture})",
    )
    yield from {"shapes": _fig5, "ensemble": _fig7, "members": _fig8, "exact": _exact}[result.study.kind](result)
    yield from bullets((*result.missing, *result.cost))


def _command(result: LinResult) -> str:
    return command(result.study.name, result.budget)


def _signed(value: Interval | None) -> str:
    if value is None:
        return "not played"
    return f"{value.mean:+,.0f}" + (f" ± {value.half:,.0f}" if value.count > 1 else " (one seed)")


def _fig5(result: LinResult) -> Iterator[str]:
    y2 = [shape_gain(result, "y2", other) for other in SHAPES if other != "y2"]
    y1 = [shape_gain(result, other, "y1") for other in SHAPES if other != "y1"]
    yield f"1. y2 gains against every other shape (section 6.3). **{_judged(y2).capitalize()}**."
    yield f"2. Every other shape gains against y1, the unchanged reward (section 6.3). **{_judged(y1).capitalize()}**."
    yield ""
    yield from paragraphs(f"Gain of the row against the column, {result.unit}, and in brackets Lin's number:")
    yield from table(("", *SHAPES, "worst"), (_fig5_row(result, own) for own in SHAPES))


def _fig5_row(result: LinResult, own: str) -> Iterator[str]:
    yield own
    gains = {other: shape_gain(result, own, other) for other in SHAPES if other != own}
    for other in SHAPES:
        yield "-" if other == own else f"{_signed(gains[other])} ({_lin_profit(own, other):+,.0f})"
    known = [value for value in gains.values() if value]
    worst = _signed(min(known, key=lambda value: value.mean)) if known else ""
    yield f"{worst} ({min(_lin_profit(own, other) for other in gains):+,.0f})"


def _lin_profit(own: str, other: str) -> float:
    """Lin's profit in figure 5, in thousandths of a big blind."""
    return 1000 * (PROFITS[own, other] if (own, other) in PROFITS else -PROFITS[other, own])


def _fig7(result: LinResult) -> Iterator[str]:
    values = {style: gain(result, (style,)) for style in STYLES}
    named = [values[style] for style in WIN_RATES]
    yield from paragraphs(
        f"1. The bot gains against all five variants (section 9, figure 7). **{_judged(named).capitalize()}**."
    )
    rows = (
        (
            style,
            _signed(value),
            str(value.count if value else 0),
            f"{1000 * WIN_RATES[style]:+,.0f}" if style in WIN_RATES else "",
            verdict(value, "gains", "loses") if value else "",
        )
        for style, value in values.items()
    )
    yield from table(("variant", f"ours, {result.unit}", "seeds", "Lin", "verdict"), rows)


def _fig8(result: LinResult) -> Iterator[str]:
    every = {style: bot_gains(result, style) for style in STYLES}
    means = [interval_of([one["value"] for one in own]) if own else None for own in every.values()]
    yield from paragraphs(
        "1. Each bot stays profitable against virtually all its variants, and the tight-aggressive one is the hardest "
        f"(section 9, figure 8). Against all, on average: **{_judged(means)}**.",
        "*Mean* is over bots, and its interval is of their scatter. A single bot gains or loses by the interval of its "
        "match.",
    )
    rows = (
        (
            style,
            _signed(value),
            str(len(own)),
            str(sum(one["value"] > one["interval"] for one in own)),
            str(sum(one["value"] < -one["interval"] for one in own)),
            "a chart without numbers",
        )
        for (style, own), value in zip(every.items(), means, strict=True)
    )
    yield from table(("variant", f"mean, {result.unit}", "bots", "of these gain", "lose", "Lin"), rows)


def _exact(result: LinResult) -> Iterator[str]:
    values, early = exact_values(result), exact_values(result, early=True)
    when = EARLY[result.budget]
    reference = values.get(NONE)
    claims = (
        ("decay", "Exploration decay helps (section 6.2)"), ("y2", "Rewards of shape y2 help (section 6.3)"),
        ("ensemble-sum", "An ensemble by sum helps (section 6.4)"), ("all", "All together help"),
    )  # fmt: skip
    for number, (arm, text) in enumerate(claims, start=1):
        said = _judged([_difference(reference, values.get(arm), -1)])
        yield f"{number}. {text}: NashConv at the end is lower than without. **{said.capitalize()}**."
    said = _judged([_difference(early.get(NONE), early.get("initial"), -1)])
    yield (
        f"{len(claims) + 1}. Initial strategies shorten training (section 7): NashConv at iteration {when} is lower. "
        f"**{said.capitalize()}**."
    )
    yield ""
    head = ("change", f"NashConv, {result.unit}", "difference to none (Welch)", "verdict", f"at iteration {when}",
            "difference", "seeds", "nodes touched")  # fmt: skip
    rows = (_exact_row(result, arm, label, values, early) for arm, label in labels_of(result).items())
    yield from table(head, rows)


def _exact_row(
    result: LinResult, arm: str, label: str, values: Mapping[str, Interval], early: Mapping[str, Interval]
) -> tuple[str, ...]:
    members = {bot.name for bot in result.plan.members}  # which have only a part of the nodes
    value, then = values.get(arm), early.get(arm)
    difference = _difference(values.get(NONE), value, 1) if arm != NONE else None
    before = _difference(early.get(NONE), then, 1) if arm != NONE else None
    said = "" if arm in members or difference is None else verdict(difference, "it hurts", "it helps")
    if arm != NONE and value == values.get(NONE):
        said = "the same runs"
    cells = (str(value or "missing"), _by(difference), said, str(then or ""), _by(before))
    return label, *cells, str(value.count if value else 0), _nodes(result, arm)


def labels_of(result: LinResult) -> dict[str, str]:
    """The arms of lin-exact in the order of the table."""
    bots = {bot.name: bot.label for bot in (*result.plan.bots, *result.plan.members)}
    return bots | {arm: one.label for arm, one in ENSEMBLES.items()}


def _difference(reference: Interval | None, value: Interval | None, sign: int) -> Interval | None:
    return contrast((sign, value), (-sign, reference)) if reference and value else None


def _by(difference: Interval | None) -> str:
    if difference is None:
        return ""
    return f"{difference.mean:+,.1f}" + (f" ± {difference.half:,.1f}" if difference.count > 1 else "")


def _nodes(result: LinResult, arm: str) -> str:
    """Nodes touched by a run, or by all members of an ensemble, on average."""
    bot, runs = (ENSEMBLES[arm].member, MEMBERS) if arm in ENSEMBLES else (arm, 1)
    totals = [lines[-1]["total_nodes_touched"] for lines in result.metrics.get(bot, {}).values()]
    return f"{runs * sum(totals) / len(totals):,.0f}" if totals else ""
