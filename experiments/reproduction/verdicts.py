"""Verdicts on the paper's statements from the runs of a study, in words with the deciding figures."""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

from deepcfr.measure.intervals import student_t_95
from experiments.intervals import Interval, contrast, interval_of
from experiments.reproduction.results import (
    ArmResult,
    StudyResult,
    at_iteration,
    at_nodes,
    common_nodes,
    final,
    mean_when_full,
    nodes_to_reach,
)
from experiments.studies import (
    LEAST_SEEDS,
    Below,
    FewerNodes,
    LevelsOff,
    MostlyFits,
    Moves,
    NotAbove,
    Statement,
    Test,
)

Outcome = Literal["holds", "not shown", "does not hold", "cannot be said"]
_WORST_FIRST: tuple[Outcome, ...] = ("cannot be said", "does not hold", "not shown", "holds")
_MOST_SEEDS = 1_000
_FEW = f"fewer than {LEAST_SEEDS} seeds show nothing"


class Judgement(NamedTuple):
    """The outcome of a test or a statement, in words."""

    outcome: Outcome
    words: str


def judge_statement(statement: Statement, result: StudyResult) -> Judgement:
    """A statement holds if all its tests do; its outcome is the worst of theirs.

    It is not refuted by a study that differs from the paper in what matters for it.
    """
    found = [judge(test, result) for test in statement.tests]
    worst = min((one.outcome for one in found), key=_WORST_FIRST.index)
    if worst == "does not hold" and statement.otherwise:
        worst = "not shown"
    return Judgement(worst, "; ".join(one.words for one in found))


def judge(test: Test, result: StudyResult) -> Judgement:
    """The outcome of one test."""
    if isinstance(test, Below):
        return _judge_below(test, result)
    if isinstance(test, NotAbove):
        return _judge_not_above(test, result)
    if isinstance(test, FewerNodes):
        return _judge_fewer_nodes(test, result)
    if isinstance(test, LevelsOff):
        return _judge_levels_off(test, result)
    return _judge_fits(test, result) if isinstance(test, MostlyFits) else _judge_moves(test, result)


def arms_of(test: Test) -> tuple[str, ...]:
    """The names of a test's arms."""
    if isinstance(test, Below):
        return test.better, test.worse
    if isinstance(test, NotAbove | FewerNodes):
        return test.arm, test.than
    if isinstance(test, LevelsOff):
        return test.small, test.middle, test.large
    return (test.arm,)


def _judge_below(test: Below, result: StudyResult) -> Judgement:
    better, worse = result.arms[test.better], result.arms[test.worse]
    if test.paired:
        return _judge_pairs(better, worse, result.unit)
    pair: tuple[Interval | None, Interval | None] = None, None
    if test.at == "equal nodes":
        nodes = common_nodes(better, worse)
        where = "at equal nodes" if nodes is None else f"at {nodes:,} nodes"
        if nodes is not None:
            pair = at_nodes(better, nodes), at_nodes(worse, nodes)
    elif test.at == "full memories":
        pair, where = (mean_when_full(better), mean_when_full(worse)), "in the mean since memories are full"
    elif test.at == "the end":
        pair, where = (final(better), final(worse)), "at the end"
    else:
        pair, where = (at_iteration(better, test.at), at_iteration(worse, test.at)), f"at iteration {test.at:,}"
    if pair[0] is None or pair[1] is None:
        return _unsaid(test, result, where)
    return _compare(pair[0], pair[1], (better.arm.label, worse.arm.label), f"{result.unit} {where}")


def _judge_pairs(better: ArmResult, worse: ArmResult, unit: str) -> Judgement:
    """The outcome of the claim that `better` ends below `worse` on the same seeds."""
    seeds = sorted(better.runs.keys() & worse.runs.keys())
    if not seeds:
        return Judgement("cannot be said", f"no finished run of {better.arm.label}, or of {worse.arm.label}")
    found = interval_of([better.runs[seed].last - worse.runs[seed].last for seed in seeds])
    words = f"{better.arm.label} less {worse.arm.label} is {found} {unit} at the end, seed by seed"
    if found.count < LEAST_SEEDS:
        return Judgement("not shown", f"{words}: {_FEW}")
    outcome: Outcome = "holds" if found.mean + found.half < 0 else "not shown"
    return Judgement("does not hold" if found.mean - found.half > 0 else outcome, words)


def _compare(low: Interval, high: Interval, labels: tuple[str, str], where: str) -> Judgement:
    """The outcome of the claim that `low` is below `high` and their intervals do not overlap."""
    figures = f"{labels[0]} {low}, {labels[1]} {high} {where}"
    ordered = low.mean < high.mean
    order = "" if ordered else "opposite order, but "
    if min(low.count, high.count) < LEAST_SEEDS:
        return Judgement("not shown", f"{figures}: {order}{_FEW}")
    if low.meets(high):
        more = f"; {_seeds_to_part(low, high)}" if ordered else ""
        return Judgement("not shown", f"{figures}: {order}the intervals overlap{more}")
    return Judgement("holds" if ordered else "does not hold", figures)


def _seeds_to_part(low: Interval, high: Interval) -> str:
    """The number of seeds that would separate two intervals if means and scatter stayed the same, in words."""
    apart = high.mean - low.mean
    scatter = sum(one.error * math.sqrt(one.count) for one in (low, high))
    for seeds in range(min(low.count, high.count) + 1, _MOST_SEEDS + 1):
        if student_t_95(seeds - 1) * scatter / math.sqrt(seeds) < apart:
            return f"about {seeds} seeds of each would separate them"
    return f"{_MOST_SEEDS:,} seeds would not separate them"


def _judge_not_above(test: NotAbove, result: StudyResult) -> Judgement:
    arm, than = result.arms[test.arm], result.arms[test.than]
    own, other = final(arm), final(than)
    if own is None or other is None:
        return _unsaid(test, result, "at the end")
    allowed = test.margin * other.mean
    figures = f"{arm.arm.label} {own}, {than.arm.label} {other} {result.unit} at the end"
    difference = contrast((1, own), (-1, other))
    if difference.count < LEAST_SEEDS:
        return Judgement("not shown", f"{figures}: {_FEW}")
    words = f"{figures}: difference {difference}, allowed {allowed:,.1f} ({test.margin:.0%})"
    if difference.mean + difference.half <= allowed:
        return Judgement("holds", words)
    if difference.mean - difference.half > allowed:
        return Judgement("does not hold", words)
    return Judgement("not shown", words)


def _judge_fewer_nodes(test: FewerNodes, result: StudyResult) -> Judgement:
    """It holds if every run of the other arm needs the stated nodes, and does not hold if every one gets there before."""
    arm, than = result.arms[test.arm], result.arms[test.than]
    where = "at the end" if test.at == "the end" else f"at iteration {test.at:,}"
    points = [run.curve[-1] for run in arm.furthest]
    if test.at != "the end":
        points = [point for run in arm.runs.values() for point in run.curve if point.iteration == test.at]
    if not points or not than.runs:
        return _unsaid(test, result, where)
    level = interval_of([point.nash_conv for point in points])
    own = sum(point.nodes for point in points) / len(points)
    needed = [nodes_to_reach(run, level.mean) for run in than.furthest]
    least = [nodes or run.curve[-1].nodes for nodes, run in zip(needed, than.furthest, strict=True)]
    factors = sorted(nodes / own for nodes in least)
    reached = sum(nodes is not None for nodes in needed)
    words = (
        f"{arm.arm.label} has {level.mean:,.1f} {result.unit} after {own:,.0f} nodes; {reached} of {len(needed)} runs of "
        f"{than.arm.label} reached that, and took or ended at {_times(factors[0])} to {_times(factors[-1])} times as many; "
        f"stated: at least {test.factor:,.0f}"
    )
    if min(level.count, len(needed)) < LEAST_SEEDS:
        return Judgement("not shown", f"{words}; {_FEW}")
    if factors[0] >= test.factor:
        return Judgement("holds", words)
    if reached == len(needed) and factors[-1] < test.factor:
        return Judgement("does not hold", words)
    return Judgement("not shown", words)


def _times(factor: float) -> str:
    return f"{factor:,.0f}" if factor >= 10 else f"{factor:.2g}"


def _judge_levels_off(test: LevelsOff, result: StudyResult) -> Judgement:
    small, middle, large = (final(result.arms[name]) for name in arms_of(test))
    if small is None or middle is None or large is None:
        return _unsaid(test, result, "at the end")
    labels = [result.arms[name].arm.label for name in arms_of(test)]
    first = _compare(middle, small, (labels[1], labels[0]), f"{result.unit} at the end")
    before = contrast((1 / test.steps, small), (-1 / test.steps, middle))
    last = contrast((1, middle), (-1, large))
    excess = contrast((1 + 1 / test.steps, middle), (-1, large), (-1 / test.steps, small))
    words = (
        f"{first.words}; a step up to {labels[1]} gains {before} on average, the one to {labels[2]} {last}: "
        f"difference {excess}"
    )
    outcome: Outcome = "not shown"
    if excess.count < LEAST_SEEDS:
        words += f"; {_FEW}"
    elif excess.mean + excess.half < 0:
        outcome = "holds"
    elif excess.mean > excess.half:
        outcome = "does not hold"
    return Judgement(min(first.outcome, outcome, key=_WORST_FIRST.index), words)


def _judge_moves(test: Moves, result: StudyResult) -> Judgement:
    arm = result.arms[test.arm]
    found = [run.since_full for run in arm.runs.values()]
    if not found or min(map(len, found)) < 2:
        return _unsaid(test, result, "with full memories")
    change = interval_of([points[-1].nash_conv - points[0].nash_conv for points in found])
    first = min(points[0].iteration for points in found)
    words = f"{arm.arm.label} changes by {change} {result.unit} from iteration {first:,} to the end, seed by seed"
    if change.count < LEAST_SEEDS:
        return Judgement("not shown", f"{words}: {_FEW}")
    rise = change.mean if test.rises else -change.mean
    outcome: Outcome = "holds" if rise > change.half else "does not hold" if -rise > change.half else "not shown"
    return Judgement(outcome, words)


def _judge_fits(test: MostlyFits, result: StudyResult) -> Judgement:
    arm = result.arms[test.arm]
    shares = sorted(run.fit_share for run in arm.runs.values())
    if not shares:
        return _unsaid(test, result, "")
    words = f"fits take {shares[0]:.0%} to {shares[-1]:.0%} of the time of {arm.arm.label}"
    if len(shares) < LEAST_SEEDS:
        return Judgement("not shown", f"{words}: {_FEW}")
    return Judgement("holds" if shares[0] > 0.5 else "does not hold" if shares[-1] < 0.5 else "not shown", words)


def _unsaid(test: Test, result: StudyResult, where: str) -> Judgement:
    empty = [result.arms[name].arm.label for name in arms_of(test) if not result.arms[name].runs]
    what = f"no finished run of {', '.join(empty)}" if empty else f"no evaluations {where}"
    return Judgement("cannot be said", what)
