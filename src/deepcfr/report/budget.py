"""The error budget of a run folder, and its tables for the terminal."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from deepcfr.config import RunConfig
from deepcfr.errors import CheckpointError, ConfigError, GameError
from deepcfr.evaluation.deviations import Deviation
from deepcfr.evaluation.error_budget import POLICIES, BudgetSettings, ErrorBudget, Progress, error_budget, is_exact
from deepcfr.evaluation.fit_noise import FITS, FitNoise, fit_noise
from deepcfr.evaluation.limits import refusal
from deepcfr.games.rules import PokerRules
from deepcfr.policies.base import Policy
from deepcfr.runs.folder import RunFolder
from deepcfr.solvers.deep_cfr import DeepCFR
from deepcfr.types import Say


def run_budget(run: RunFolder, settings: BudgetSettings, warn: Say, progress: Progress | None = None) -> ErrorBudget:
    """The error budget of a Deep CFR run at its newest checkpoint; missing policies are listed as unmeasured.

    Raises ConfigError for runs of other solvers and for nothing but fits of bootstrapped advantages, GameError for games
    without boards or too large, CheckpointError if the run has no checkpoint, and the errors of `error_budget`.
    """
    config = run.config
    if not isinstance(config, RunConfig) or config.solver != "deep-cfr":
        other = config.method if isinstance(config, RunConfig) else "a tabular solver"
        raise ConfigError(f"An error budget needs a Deep CFR run, and '{run.path}' is a run of {other}.")
    forgets = ""
    if config.advantage.bootstrapped and "fits" not in settings.skip:
        forgets = (
            "Fits are compared with a memory of all iterations, but 'advantage.target' is "
            f"{config.advantage.target}, and such a run forgets its samples."
        )
        if not is_exact(settings):
            raise ConfigError(forgets)
    if not isinstance(run.source, PokerRules):
        raise GameError(f"An error budget is for limit and pot betting, and '{run.source.name}' has neither.")
    if is_exact(settings) and (reason := refusal(run.source)):
        raise GameError(f"An error budget is exact. {reason} Its noise of single fits can be measured: skip all else.")
    newest, solver = run.load_policy("current", warn)
    policies: dict[str, Policy] = {}
    unmeasured: dict[str, str] = {}
    for name in POLICIES:
        if name in settings.skip:
            continue
        try:
            policies[name] = newest if name == "current" else run.load_policy(name, warn)[0]
        except CheckpointError as error:
            unmeasured[name] = " ".join(error.problems)
    fits = []
    if forgets:
        unmeasured["fits"] = forgets
    elif "fits" not in settings.skip:
        fits = _fits(run, unmeasured, warn, progress or (lambda *_: None))
    return error_budget(newest.game, config, solver.iteration, policies, settings, unmeasured, progress, fits)


def _fits(run: RunFolder, unmeasured: dict[str, str], warn: Say, progress: Progress) -> list[FitNoise]:
    """The noise of fits to the memories of the newest checkpoint; exports have none."""
    try:
        solver, _ = run.load_solver(warn, memories=True)
    except CheckpointError as error:
        unmeasured["fits"] = " ".join(error.problems)
        return []
    assert isinstance(solver, DeepCFR)
    try:
        return fit_noise(solver, progress=partial(progress, "fits of one memory"))
    finally:
        solver.close()


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
    yield from _fit_lines(budget)
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
    whole = _everywhere(budget.deviations).nash_conv
    yield (
        f"  The kinds of decision come to {kinds:.3f} in all, and everywhere is {whole:.3f}: deviations do not add up, "
        "because one changes what the others are worth."
    )


def _fit_lines(budget: ErrorBudget) -> Iterator[str]:
    """Distances in thousandths: two strategies that always differ have 1,000."""
    if not budget.fits:
        return
    yield (
        f"Distances of strategies after {FITS} fits of one memory with different seeds, in thousandths: between two means "
        "of k networks, and to the memory's targets where these are exact"
    )
    width = max(len(one.name) for one in budget.fits) + 12
    sizes = sorted({*budget.fits[0].between, *budget.fits[0].to_target})
    yield " " * width + "".join(f"{f'k = {size}':>16}" for size in sizes)
    for one in budget.fits:
        for what, found in (("", one.between), ("to targets", one.to_target)):
            row = "".join(f"{1000 * found[size]:>16.1f}" if size in found else " " * 16 for size in sizes)
            if found:
                yield f"  {what or f'player {one.player}, {one.name}':<{width - 2}}{row}"


def _everywhere(deviations: tuple[Deviation, ...]) -> Deviation:
    return next(one for one in deviations if one.round is None)
