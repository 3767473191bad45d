"""Measured average regret beside the bound of Theorem 1, read from run folders."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deepcfr.errors import DeepCFRError
from deepcfr.evaluation.intervals import Interval, interval_of
from deepcfr.games.presets import load_rules
from deepcfr.report.studies import LEAST_SEEDS
from deepcfr.report.table import provenance
from deepcfr.report.theorem1.runs import (
    BOUNDED,
    GAME,
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
from deepcfr.runs.folder import RunFolder
from deepcfr.runs.metrics import read_metrics
from deepcfr.runs.study import difference

Warn = Callable[[str], None]


@dataclass(frozen=True)
class RegretPoint:
    """An arm at one iteration, in milli units; of each seed the player whose regret is larger, and of bounds the larger."""

    iteration: int
    regret: Interval
    sampling: float | None  # first term of the bound; None where no bound is known
    approximation: float | None  # second term

    @property
    def bound(self) -> float | None:
        """Both terms."""
        return None if self.sampling is None else self.sampling + (self.approximation or 0.0)


@dataclass(frozen=True)
class RegretArm:
    """The seeds of an arm together."""

    label: str
    seeds: int
    points: list[RegretPoint]
    made: tuple[str, ...]  # by which command and commit, and on what, each once


@dataclass(frozen=True)
class TheoremResult:
    """What is there of the theorem's study."""

    game: str
    unit: str
    facts: Constants
    arms: list[RegretArm]  # those with runs
    missing: list[str]  # sentences


def read_theorem(root: Path) -> TheoremResult:
    """The theorem's study as the folders under `root` have it, for every seed that any arm has and three at least."""
    found = (path.parent.name.rpartition("-s")[2] for path in (root / NAME).glob("*-s*/config.toml"))
    seeds = max(LEAST_SEEDS, 1 + max((int(number) for number in found if number.isdigit()), default=0))
    rules = load_rules(GAME)
    facts = Constants.of(rules)
    arms, missing = [], []
    for arm in ITERATIONS:
        runs, made = [], []
        for seed in range(seeds):
            path = arm_path(root, arm, seed)
            lines, problem = _lines(path, arm, seed)
            if problem:
                missing.append(f"`{arm}-s{seed}`: {problem}")
            else:
                runs.append(lines)
                made.append(_made(path))
        if runs:
            points = [_point(arm, facts, same) for same in zip(*runs, strict=True)]
            arms.append(RegretArm(LABELS[arm], len(runs), points, tuple(dict.fromkeys(made))))
    return TheoremResult(rules.name, rules.milli_unit, facts, arms, missing)


def _made(path: Path) -> str:
    command, commit, hardware = provenance(path)
    return f"`{command}`, {hardware}, commit {commit[:10]}"


def _lines(path: Path, arm: Arm, seed: int) -> tuple[list[dict[str, Any]], str | None]:
    if not (path / "config.toml").is_file():
        return [], "not there"
    try:
        problem = difference(RunFolder.open(path).config, arm_config(arm, seed))
    except DeepCFRError as error:
        return [], " ".join(error.problems)
    lines = read_metrics(path / "metrics.jsonl")
    if problem:
        return [], f"of other settings: {problem}"
    return lines, None if lines and lines[-1]["iteration"] == ITERATIONS[arm] else "not finished"


def _point(arm: Arm, facts: Constants, lines: tuple[dict[str, Any], ...]) -> RegretPoint:
    """All seeds at one iteration; the bound takes the largest excess loss of them."""
    iteration = int(lines[0]["iteration"])
    regret = interval_of([max(line["regret"]) for line in lines])
    if arm not in BOUNDED:
        return RegretPoint(iteration, regret, None, None)
    sampling = max(sampling_bound(facts, player, iteration, TRAVERSALS) for player in (0, 1))
    excess = max(max(line.get("excess_loss", [0.0])) for line in lines)
    approximation = max(approximation_bound(facts, player, excess) for player in (0, 1))
    return RegretPoint(iteration, regret, 1000 * sampling, 1000 * approximation)


def theorem_section(result: TheoremResult, picture: str | None) -> Iterator[str]:
    """The section of the report; `picture` is where the figure is, None without one."""
    facts = result.facts
    yield "## Theorem 1: average regret and its bound"
    yield ""
    yield (
        f"On {result.game}, with {TRAVERSALS:,} traversals an iteration for each player. The regret is exact: the "
        "value of a best response to the exact average of the opponent's strategies, less what the strategies gained. "
        "Shown is the player whose regret is larger."
    )
    yield ""
    yield (
        "The theorem is about strategies that stay as they are during an iteration. Two things here are otherwise: in "
        "every arm the second player of an iteration meets the first one's new strategy, and tables take in each traversal "
        f"at once, so what is measured are their strategies at the beginnings of iterations of {TRAVERSALS:,} traversals. "
        "Deep CFR has uniform weights here, fits from scratch of 200 steps, and else the defaults of `train kuhn`."
    )
    yield ""
    if picture:
        yield f"![Measured average regret and the bound of Theorem 1]({picture})"
        yield ""
    yield "With probability 1 − ρ, after T iterations of K traversals (Theorem 1 as in Appendix B.4, equation 54):"
    yield ""
    yield "    R_p / T  <=  (1 + sqrt(2 / (ρ K))) Δ |I_p| sqrt(|A|) / sqrt(T)  +  4 |I_p| sqrt(|A| Δ ε)"
    yield ""
    yield "| term | meaning | here |"
    yield "|---|---|---|"
    yield f"| ρ, K | chance that the bound fails; traversals an iteration | {RHO}, {TRAVERSALS:,} |"
    yield f"| Δ | range of payoffs, in the game's unit | {facts.range:g} |"
    yield f"| \\|I_p\\| | infosets of each player | {facts.infosets[0]}, {facts.infosets[1]} |"
    yield f"| \\|A\\| | most actions at an infoset | {facts.actions} |"
    yield (
        "| ε | how far the advantage loss on the memory is above the least possible, at most over iterations; 0 for "
        "tables. The proof bounds a norm by this squared one, so the units of the second term do not agree; it is "
        "computed as printed | measured |"
    )
    yield ""
    yield f"| arm | seeds | T | measured R / T, {result.unit} | first term | second term | bound / measured |"
    yield "|---|---|---|---|---|---|---|"
    for arm in result.arms:
        yield _regret_row(arm)
    for sentence in result.missing:
        yield ""
        yield f"Missing: {sentence}."
    if result.arms:
        yield ""
        yield from _reading(result)
        yield ""
        yield f"Made by {'; '.join(dict.fromkeys(made for arm in result.arms for made in arm.made))}."


def _regret_row(arm: RegretArm) -> str:
    point = arm.points[-1]
    terms = ("no bound", "no bound", "")
    if point.bound is not None and point.sampling is not None:
        terms = (
            f"{point.sampling:,.0f}",
            f"{point.approximation or 0.0:,.0f}",
            f"{point.bound / point.regret.mean:,.0f}",
        )
    return f"| {arm.label} | {arm.seeds} | {point.iteration:,} | {point.regret} | {' | '.join(terms)} |"


def _reading(result: TheoremResult) -> Iterator[str]:
    """What the figures say, in words made from them."""
    for arm in result.arms:
        bounded = [point for point in arm.points if point.bound is not None]
        over = [point for point in bounded if point.bound is not None and point.regret.mean > point.bound]
        first, last = arm.points[0], arm.points[-1]
        held = ""
        if bounded:
            held = "the bound holds at every point" if not over else f"the bound is broken at {len(over)} points"
            held = f"; {held}"
        yield (
            f"* {arm.label}: from T = {first.iteration:,} to {last.iteration:,} the measured regret goes from "
            f"{first.regret} to {last.regret} {result.unit}{held}."
        )
