"""The page on measured average regret and the bound of Theorem 1, read from run folders."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from deepcfr.game.presets import load_rules
from deepcfr.run.folder import RunFolder
from deepcfr.run.metrics import read_metrics
from experiments.filled import filled
from experiments.grid import Job
from experiments.intervals import Interval, interval_of
from experiments.pages import asked_seeds, seeds_of, why_missing
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

    @property
    def tested(self) -> list[RegretPoint]:
        """The points that test the bound: where it is below the regret of uniform play, which is that of iteration 1."""
        most = self.points[0].regret.mean
        return [point for point in self.points if point.bound is not None and point.bound < most]

    @property
    def broken(self) -> int:
        """The number of points whose regret is above the bound."""
        return sum(point.bound is not None and point.regret.mean > point.bound for point in self.points)


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
        runs = []
        for seed in seeds:
            job = Job(arm_path(root, game, arm, seed), arm_config(game, arm, seed))
            if problem := why_missing(job, _is_measured):
                missing.append(f"`{arm}-s{seed}`: {problem}")
            else:
                runs.append(read_metrics(job.path / "metrics.jsonl"))
        if runs:
            points = [_point(arm, facts, same) for same in zip(*runs, strict=True)]
            arms.append(RegretArm(LABELS[arm], len(runs), points))
    return TheoremResult(rules.name, rules.milli_unit, facts, arms, missing)


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


def theorem_page(results: Sequence[TheoremResult]) -> str:
    """The page of the report."""
    sections = (filled("theorem1-game", _facts(result)) for result in results)
    return filled("theorem1", {"traversals": TRAVERSALS}) + "".join(sections)


def _facts(result: TheoremResult) -> dict[str, Any]:
    """Return what the section of a game on the page is made of."""
    facts = {"game": result.game, "unit": result.unit, "rho": RHO, "traversals": TRAVERSALS, **asdict(result.facts)}
    missing = "".join(f"Missing: {sentence}.\n\n" for sentence in result.missing)
    return facts | {"missing": missing, "arms": [_arm(arm) for arm in result.arms]}


def _arm(arm: RegretArm) -> dict[str, Any]:
    last = arm.points[-1]
    found = {
        "label": arm.label, "seeds": arm.seeds, "held": "", "iteration": f"{last.iteration:,}", "regret": last.regret,
        "sampling": "no bound", "approximation": "no bound", "ratio": "",
    }  # fmt: skip
    if last.bound is None:
        return found
    return found | {
        "sampling": f"{last.sampling:,.0f}", "approximation": f"{last.approximation or 0.0:,.0f}",
        "ratio": f"{last.bound / last.regret.mean:,.0f}",
        "held": f"; the bound is broken at {arm.broken} points" if arm.broken
        else f"; the bound holds at the {len(arm.tested)} points that test it" if arm.tested
        else "; no point tests it",
    }  # fmt: skip
