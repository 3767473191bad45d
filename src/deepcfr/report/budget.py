"""The error budget of a run folder, and its tables for the terminal."""

from __future__ import annotations

from collections.abc import Iterator

from deepcfr.config import RunConfig
from deepcfr.errors import CheckpointError, ConfigError, GameError
from deepcfr.evaluation.deviations import ALL
from deepcfr.evaluation.error_budget import POLICIES, BudgetSettings, ErrorBudget, Progress, error_budget
from deepcfr.evaluation.limits import refusal
from deepcfr.games.poker import PokerGame
from deepcfr.games.rules import PokerRules
from deepcfr.policies.base import Policy
from deepcfr.runs.folder import RunFolder
from deepcfr.types import Say


def run_budget(run: RunFolder, settings: BudgetSettings, warn: Say, progress: Progress | None = None) -> ErrorBudget:
    """The error budget of a Deep CFR run at its newest checkpoint; missing policies are listed as unmeasured.

    Raises ConfigError for runs of other solvers, GameError for games without boards or too large, CheckpointError if the
    run has no checkpoint, and the errors of `error_budget`.
    """
    config = run.config
    if not isinstance(config, RunConfig) or config.solver != "deep-cfr":
        other = config.method if isinstance(config, RunConfig) else "a tabular solver"
        raise ConfigError(f"An error budget needs a Deep CFR run, and '{run.path}' is a run of {other}.")
    if not isinstance(run.source, PokerRules):
        raise GameError(f"An error budget is for limit and pot betting, and '{run.source.name}' has neither.")
    if reason := refusal(run.source):
        raise GameError(f"An error budget is exact. {reason}")
    newest, solver = run.load_policy("current", warn)
    assert isinstance(newest.game, PokerGame)
    policies: dict[str, Policy] = {}
    unmeasured: dict[str, str] = {}
    for name in POLICIES:
        if name in settings.skip:
            continue
        try:
            policies[name] = newest if name == "current" else run.load_policy(name, warn)[0]
        except CheckpointError as error:
            unmeasured[name] = " ".join(error.problems)
    return error_budget(newest.game, config, solver.iteration, policies, settings, unmeasured, progress)


def budget_lines(budget: ErrorBudget) -> Iterator[str]:
    """A budget as lines of text: its parts, the contribution of each, deviations, and the largest part."""
    measured = f": exact NashConv in {budget.unit}, and seconds spent" if budget.parts else ""
    yield f"{budget.game} after {budget.iterations} iterations{measured}"
    for part in budget.parts:
        yield f"  {part.name:<9} {part.nash_conv:>12.3f} {part.seconds:>8.1f} s  {part.meaning}"
    for name, reason in budget.unmeasured.items():
        yield f"  {name:<9} not measured: {reason}"
    if budget.gaps:
        yield "What each part adds"
    for gap in budget.gaps:
        yield f"  {gap.name:<29} {gap.value:>12.3f}  {gap.formula}"
    yield from _deviation_lines(budget)
    yield from budget.verdict


def _deviation_lines(budget: ErrorBudget) -> Iterator[str]:
    if not budget.deviations:
        return
    width = max(len(one.name) for one in budget.deviations) + 2
    title = f"Gains of deviating from '{budget.deviating}' only"
    yield f"{title:<{width}} {'both':>12} {'player 0':>12} {'player 1':>12} {'nodes':>7}"
    for one in budget.deviations:
        gains = " ".join(f"{gain:>12.3f}" for gain in (one.nash_conv, *one.gains))
        yield f"  {one.name:<{width - 2}} {gains} {one.decisions:>7}"
    kinds = sum(one.nash_conv for one in budget.deviations if one.kind is not None)
    whole = next(one.nash_conv for one in budget.deviations if one.name == ALL)
    yield (
        f"  The kinds of decision come to {kinds:.3f} in all, and everywhere is {whole:.3f}: deviations do not add up, "
        "because one changes what the others are worth."
    )
