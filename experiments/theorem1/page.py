"""The page on measured average regret and the bound of Theorem 1, read from run folders."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deepcfr.games.presets import load_rules
from deepcfr.runs.folder import RunFolder
from deepcfr.runs.metrics import read_metrics
from experiments.grid import Job
from experiments.intervals import Interval, interval_of
from experiments.pages import (
    asked_seeds,
    bullets,
    joined,
    paragraphs,
    provenance,
    seeds_of,
    short_commits,
    table,
    why_missing,
)
from experiments.theorem1.runs import (
    BOUNDED,
    ITERATIONS,
    LABELS,
    NAME,
    RHO,
    TRAVERSALS,
    Arm,
    Constants,
    approximation_bound,
    arm_config,
    arm_path,
    sampling_bound,
)


@dataclass(frozen=True)
class RegretPoint:
    """An arm at one iteration, in milli units: for each seed the larger regret of the players, and the larger bound."""

    iteration: int
    regret: Interval
    sampling: float | None  # first term of the bound; None if no bound is known
    approximation: float | None  # second term

    @property
    def bound(self) -> float | None:
        """The sum of both terms."""
        return None if self.sampling is None else self.sampling + (self.approximation or 0.0)


@dataclass(frozen=True)
class RegretArm:
    """The seeds of an arm together."""

    label: str
    seeds: int
    points: list[RegretPoint]
    made: tuple[str, ...]  # commands, commits and hardware, each once


@dataclass(frozen=True)
class TheoremResult:
    """The results of the theorem's study on one game."""

    game: str
    unit: str
    facts: Constants
    arms: list[RegretArm]  # those with runs
    missing: list[str]  # sentences


def read_theorem(root: Path, game: str) -> TheoremResult:
    """Read the theorem's study on a game from the folders under `root`, for every seed of any arm, and at least three."""
    seeds = asked_seeds(seed for arm in ITERATIONS for seed in seeds_of(root / NAME / game, arm))
    rules = load_rules(game)
    facts = Constants.of(rules)
    arms, missing = [], []
    for arm in ITERATIONS:
        runs, made = [], []
        for seed in seeds:
            job = Job(arm_path(root, game, arm, seed), arm_config(game, arm, seed))
            if problem := why_missing(job, _is_measured):
                missing.append(f"`{arm}-s{seed}`: {problem}")
            else:
                runs.append(read_metrics(job.path / "metrics.jsonl"))
                made.append(_made(job.path))
        if runs:
            points = [_point(arm, facts, same) for same in zip(*runs, strict=True)]
            arms.append(RegretArm(LABELS[arm], len(runs), points, tuple(dict.fromkeys(made))))
    return TheoremResult(rules.name, rules.milli_unit, facts, arms, missing)


def _made(path: Path) -> str:
    command, commit, hardware = provenance(path)
    return f"`{command}`, {hardware}, commit {short_commits(commit)}"


def _is_measured(run: RunFolder) -> bool:
    lines = read_metrics(run.metrics_path)
    return bool(lines) and lines[-1]["iteration"] == run.config.iterations


def _point(arm: Arm, facts: Constants, lines: tuple[dict[str, Any], ...]) -> RegretPoint:
    """All seeds at one iteration; the bound uses their largest excess loss."""
    iteration = int(lines[0]["iteration"])
    regret = interval_of([max(line["regret"]) for line in lines])
    if arm not in BOUNDED:
        return RegretPoint(iteration, regret, None, None)
    sampling = max(sampling_bound(facts, player, iteration, TRAVERSALS) for player in (0, 1))
    excess = max(max(line.get("excess_loss", [0.0])) for line in lines)
    approximation = max(approximation_bound(facts, player, excess) for player in (0, 1))
    return RegretPoint(iteration, regret, 1000 * sampling, 1000 * approximation)


def theorem_page(results: Sequence[TheoremResult], pictures: Mapping[str, str]) -> Iterator[str]:
    """The page of the report; `pictures` has the path of each game's figure, where there is one."""
    yield from paragraphs(
        "# Theorem 1: average regret and its bound",
        "`python -m experiments report` writes this page from the run folders of "
        "`python -m experiments reproduce theorem1`. The theorem is of the "
        "Deep CFR paper (Brown et al., ICML 2019).",
        f"There are {TRAVERSALS:,} traversals an iteration for each player. The regret is exact: the value of a best "
        "response to the exact average of the opponent's strategies, less the gain of the strategies. Figures are of the "
        "player with the larger regret.",
        "The theorem assumes that strategies are fixed during an iteration. Here two things differ: in every arm the "
        "second player of an iteration meets the first one's new strategy, and tables take in each traversal at once. So "
        f"for tables we measure the strategies at the beginning of each iteration of {TRAVERSALS:,} traversals. "
        "Deep CFR has uniform weights here, fits from scratch of 200 steps, and otherwise the defaults of `train GAME`.",
        "With probability 1 − ρ, after T iterations of K traversals (Theorem 1 as in Appendix B.4, equation 54):",
        "    R_p / T  <=  (1 + sqrt(2 / (ρ K))) Δ |I_p| sqrt(|A|) / sqrt(T)  +  4 |I_p| sqrt(|A| Δ ε)",
    )
    for result in results:
        yield from _game_section(result, pictures.get(result.game))


def _game_section(result: TheoremResult, picture: str | None) -> Iterator[str]:
    facts = result.facts
    yield from paragraphs(f"## On {result.game}")
    if picture:
        yield from paragraphs(f"![Measured average regret on {result.game} and the bound of Theorem 1]({picture})")
    terms = (
        ("ρ, K", "chance that the bound fails; traversals an iteration", f"{RHO}, {TRAVERSALS:,}"),
        ("Δ", "range of payoffs, in the game's unit", f"{facts.range:g}"),
        ("|I_p|", "infosets of each player", f"{facts.infosets[0]}, {facts.infosets[1]}"),
        ("|A|", "most actions at an infoset", f"{facts.actions}"),
        (
            "ε",
            "the advantage loss on the memory less the least possible loss, its maximum over iterations; 0 for "
            "tables. The proof bounds a norm by this squared norm, so the units of the second term do not agree; it is "
            "computed as printed",
            "measured",
        ),
    )
    yield from table(("term", "meaning", "here"), terms)
    measured = f"measured R / T, {result.unit}"
    head = ("arm", "seeds", "T", measured, "first term", "second term", "bound / measured")
    yield from table(head, map(_regret_row, result.arms))
    yield from paragraphs(*(f"Missing: {sentence}." for sentence in result.missing))
    if result.arms:
        yield from bullets(_reading(result))
        yield from paragraphs(f"Made by {joined(made for arm in result.arms for made in arm.made)}.")


def _regret_row(arm: RegretArm) -> tuple[str, ...]:
    point = arm.points[-1]
    terms = ("no bound", "no bound", "")
    if point.bound is not None and point.sampling is not None:
        terms = (
            f"{point.sampling:,.0f}",
            f"{point.approximation or 0.0:,.0f}",
            f"{point.bound / point.regret.mean:,.0f}",
        )
    return arm.label, str(arm.seeds), f"{point.iteration:,}", str(point.regret), *terms


def _reading(result: TheoremResult) -> Iterator[str]:
    """The interpretation of the figures, in words."""
    for arm in result.arms:
        bounded = [point for point in arm.points if point.bound is not None]
        over = [point for point in bounded if point.bound is not None and point.regret.mean > point.bound]
        first, last = arm.points[0], arm.points[-1]
        held = ""
        if bounded:
            held = "the bound holds at every point" if not over else f"the bound is broken at {len(over)} points"
            held = f"; {held}"
        yield (
            f"{arm.label}: from T = {first.iteration:,} to {last.iteration:,} the measured regret goes from "
            f"{first.regret} to {last.regret} {result.unit}{held}."
        )
