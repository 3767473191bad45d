"""The error budget of a Deep CFR run: how much each part of the method adds to its NashConv.

Each part is compared with what it approximates: the iterates with exact tabular CFR after as many iterations, the
average network with the exact average of the iterates (SD-CFR), and the architecture with the solved game that it is
fitted to.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from deepcfr.boards.boards import Boards, OnBoard, count_boards
from deepcfr.boards.public_chance import BoardSampler, visited_boards
from deepcfr.boards.sweep import sweep
from deepcfr.config import RunConfig, RuntimeConfig
from deepcfr.core.errors import CheckpointError, ConfigError, GameError, require_least
from deepcfr.core.machine import usable_memory
from deepcfr.core.parallel import Workers
from deepcfr.core.rng import generator, key
from deepcfr.core.types import Say
from deepcfr.game.poker import PokerGame
from deepcfr.game.rules import PokerRules
from deepcfr.measure.deviations import ALL, Deviation, decision_sets, deviations
from deepcfr.measure.exact_average import first_round_table, solved_examples
from deepcfr.measure.exploitability import exploitability
from deepcfr.measure.limits import too_many_boards
from deepcfr.network.fit import fit
from deepcfr.network.networks import build_network
from deepcfr.policy.base import Policy
from deepcfr.policy.network import AveragePolicy, WithFirstRound
from deepcfr.policy.tables import RangePolicy
from deepcfr.run.costs import require_memory
from deepcfr.run.folder import RunFolder
from deepcfr.solve.data import panel_stream
from deepcfr.solve.vector_cfr import VectorCFR

POLICIES = ("sd-cfr", "average", "current")
SKIPPABLE = ("tabular", "architecture", *POLICIES, "panel", "deviations")
_MEANINGS = {
    "tabular": "exact tabular {algorithm} after {iterations} iterations, as many as the run",
    "solved": "exact tabular {algorithm} after {iterations} iterations, which the next line's network is fitted to",
    "fitted": "average network fitted to that solution in {steps:,} steps: what the architecture can represent",
    "sd-cfr": "exact average of the run's iterates (SD-CFR)",
    "average": "the run's average network",
    "current": "the run's newest iterate",
    "panel": "the run's average network in the game that has only the {boards:,} boards of its panel",
}
UNSPLIT = "iterates and average network"  # one part if SD-CFR, which separates the two, was not measured
_LIMITS = {
    "iterations": "number of iterations limits: even exact CFR leaves",
    "iterates": "iterates limit (advantage networks and samples): they add",
    "average network": "average network limits: it adds",
    UNSPLIT: "iterates and the average network together limit: they add",
}
# by the weighting of Deep CFR's iterations
_SOLVERS: dict[str, Any] = {"linear": "linear-cfr", "uniform": "cfr", "discounted": "dcfr"}
Progress = Callable[[str, int, int], None]
"""Progress report: (description of the step, done, total)."""


@dataclass(frozen=True)
class BudgetSettings:
    """Parts to measure, and limits on their cost."""

    skip: frozenset[str] = frozenset()  # names from SKIPPABLE
    solve_iterations: int | None = None  # for the solved game; None: twice those of the run, at least 100
    steps: int | None = None  # of the fit to the solved game; None: those of the run's average network
    examples: int | None = None  # limit on examples from the solved game; None: as in `exact_average`
    deviate: str = "average"  # the policy whose deviations are valued
    threads: int = 1


@dataclass(frozen=True)
class Part:
    """An exact NashConv in thousandths of the game's unit, and the seconds to compute it."""

    name: str
    meaning: str
    nash_conv: float
    seconds: float


@dataclass(frozen=True)
class Gap:
    """The NashConv that one part of the method adds."""

    name: str
    formula: str  # in names of parts
    value: float


@dataclass(frozen=True)
class ErrorBudget:
    """The result of `error_budget`; values are in thousandths of the game's unit (`unit`)."""

    game: str
    unit: str
    iterations: int
    parts: tuple[Part, ...]
    unmeasured: dict[str, str]  # requested parts that could not be measured, with the reason
    gaps: tuple[Gap, ...]
    deviating: str | None  # the policy of these deviations
    deviations: tuple[Deviation, ...]
    verdict: tuple[str, ...]  # sentences

    def facts(self) -> dict[str, Any]:
        """The budget as one JSON object."""
        facts = dataclasses.asdict(self)
        facts["deviations"] = [dataclasses.asdict(one) | {"nash_conv": one.nash_conv} for one in self.deviations]
        return facts


def run_budget(run: RunFolder, settings: BudgetSettings, warn: Say, progress: Progress | None = None) -> ErrorBudget:
    """The error budget of a Deep CFR run at its newest checkpoint; missing policies are listed as unmeasured.

    Raises ConfigError for runs of other solvers, GameError for games without boards or too large, CheckpointError if
    the run has no checkpoint, and the errors of `error_budget`.
    """
    config = run.config
    if config.solver != "deep-cfr":
        other = "a tabular solver" if config.tabular else config.method
        raise ConfigError(f"An error budget needs a Deep CFR run, and '{run.path}' is a run of {other}.")
    if not isinstance(run.source, PokerRules):
        raise GameError(f"An error budget is for limit and pot betting, and '{run.source.name}' has neither.")
    if reason := too_many_boards(run.source):
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


def error_budget(
    game: PokerGame,
    config: RunConfig,
    iteration: int,
    policies: Mapping[str, Policy],
    settings: BudgetSettings,
    unmeasured: Mapping[str, str] | None = None,
    progress: Progress | None = None,
) -> ErrorBudget:
    """Measure the parts of a run at `iteration`; `policies` has some of `average`, `sd-cfr` and `current`.

    `unmeasured` gives the reason for each missing policy. Sets torch to one thread in this process. Raises ConfigError
    for contradictory settings and for tables that do not fit into memory.
    """
    _check(game, config, iteration, settings)
    measure = _Measurement(game, config, settings, progress or (lambda *_: None))
    missing, valued = dict(unmeasured or {}), []
    parts = measure.tabular_parts(iteration)
    deviating = None if "deviations" in settings.skip else settings.deviate
    if deviating and deviating not in policies:
        missing["deviations"] = f"Without the policy '{deviating}' its deviations have no value."
        deviating = None
    for name, policy in policies.items():
        if name in settings.skip:
            continue
        part, found = measure.policy_part(name, policy, name == deviating)
        parts.append(part)
        valued += found
    if "average" in policies and not {"average", "panel"} & settings.skip:
        parts += measure.panel_parts(policies["average"])
    gaps = find_gaps({part.name: part.nash_conv for part in parts})
    return ErrorBudget(
        game=game.name,
        unit=game.milli_unit,
        iterations=iteration,
        parts=tuple(parts),
        unmeasured=missing,
        gaps=tuple(gaps),
        deviating=deviating,
        deviations=tuple(valued),
        verdict=(
            *(explain_gaps(gaps, game.milli_unit) if parts else ()),
            *explain_deviations(valued, game.milli_unit),
        ),
    )


def _check(game: PokerGame, config: RunConfig, iteration: int, settings: BudgetSettings) -> None:
    if settings.deviate in settings.skip and "deviations" not in settings.skip:
        raise ConfigError(f"Deviations of the policy '{settings.deviate}' cannot be valued when it is skipped.")
    if settings.solve_iterations is not None and settings.solve_iterations < iteration:
        raise ConfigError(
            f"The solved game needs at least the {iteration} iterations of the run, but {settings.solve_iterations} "
            "are asked for."
        )
    require_least(1, {f"'{name}'": getattr(settings, name) for name in ("steps", "examples", "threads")})
    if not {"tabular", "architecture"} <= settings.skip:
        needed = VectorCFR.memory_bytes(game, _tabular(config, 1))
        require_memory(f"The tables of {game.name} need", needed, usable_memory(), "skip tabular and architecture")


def _tabular(config: RunConfig, iterations: int, threads: int = 1) -> RunConfig:
    solver = _SOLVERS[config.cfr.weighting]
    if config.advantage.target in ("bootstrap", "predict") and solver == "cfr":
        solver = "cfr+"  # sums of which only the positive part stays
    return RunConfig(solver=solver, iterations=iterations, runtime=RuntimeConfig(threads=threads))


@dataclass(frozen=True)
class _Measurement:
    """Measures the parts of one run."""

    game: PokerGame
    config: RunConfig
    settings: BudgetSettings
    tell: Progress

    def tabular_parts(self, iteration: int) -> list[Part]:
        """Exact CFR after as many iterations as the run, the solved game, and the network fitted to it."""
        skip = self.settings.skip
        goals = [] if "tabular" in skip else [("tabular", iteration)]
        if "architecture" not in skip:
            goals.append(("solved", self.settings.solve_iterations or max(2 * iteration, 100)))
        if not goals:
            return []
        canonical = self.game if self.game.suits == "canonical" else PokerGame(self.game.rules)
        solver = VectorCFR(canonical, _tabular(self.config, goals[-1][1], self.settings.threads))
        parts = []
        with solver.workers:
            steps = solver.iterations()
            for name, iterations in goals:
                start = time.perf_counter()
                while solver.iteration < iterations:
                    next(steps)
                    self.tell(f"{name}: iterations", solver.iteration, iterations)
                meaning = _MEANINGS[name].format(algorithm=solver.config.solver, iterations=iterations)
                parts.append(self._part(name, meaning, solver.average_policy(), start))
        if "architecture" not in skip:
            start = time.perf_counter()
            self.tell("fitted: network", 0, 1)
            policy, number = fit_solved(self.game, self.config, solver.average_policy(), self.settings)
            parts.append(self._part("fitted", _MEANINGS["fitted"].format(steps=number), policy, start))
        return parts

    def policy_part(self, name: str, policy: Policy, deviating: bool) -> tuple[Part, list[Deviation]]:
        """A policy's NashConv, and its deviations if `deviating`; NashConv is then one of them."""
        start = time.perf_counter()
        if not deviating:
            return self._part(name, _MEANINGS[name], policy, start), []
        sets = decision_sets(self.game.rules, self.game.tree)
        found = deviations(policy, sets, threads=self.settings.threads, on_board=self._on_board(name))
        nash_conv = next(one.nash_conv for one in found if one.name == ALL)
        return Part(name, _MEANINGS[name], nash_conv, time.perf_counter() - start), found

    def panel_parts(self, policy: Policy) -> list[Part]:
        """NashConv if chance deals only the boards of the run's panel; empty without a panel or with all boards."""
        sampling, rules = self.config.sampling, self.game.rules
        if not sampling.on_panel:
            return []
        merge = self.game.suits == "canonical"
        if visited_boards(rules, sampling, merge=merge) == count_boards(rules, merge=merge):
            return []
        start = time.perf_counter()
        boards = Boards(self.game, merge=merge)
        panel = BoardSampler(boards, sampling, panel_stream(self.config))
        with Workers(self.settings.threads) as workers:
            result = sweep(boards, policy.on_board, workers, self._on_board("panel"), panel.choose)
        meaning = _MEANINGS["panel"].format(boards=result.boards)
        return [Part("panel", meaning, 1000 * sum(result.best_response), time.perf_counter() - start)]

    def _part(self, name: str, meaning: str, policy: Policy, start: float) -> Part:
        """The exact NashConv of a policy, whose part was begun at `start`."""
        found = exploitability(policy, threads=self.settings.threads, on_board=self._on_board(name))
        return Part(name, meaning, found.nash_conv, time.perf_counter() - start)

    def _on_board(self, name: str) -> OnBoard:
        return lambda done, total: self.tell(f"{name}: boards", done, total)


def fit_solved(game: PokerGame, config: RunConfig, solved: RangePolicy, settings: BudgetSettings) -> tuple[Policy, int]:
    """Fit a network of the run's architecture to the solved strategy; returns its policy and the number of steps.

    If the run plays its first round from a table, so does the policy, with the solved strategy as the table.
    """
    # examples of one infoset all have the same target
    draw: Literal["balanced", "uniform"] = "balanced" if config.average.draw == "balanced" else "uniform"
    plan = replace(config.average, draw=draw, steps=settings.steps or config.average.steps)
    examples = solved_examples(solved, game, config, plan, settings.examples, key(config.seed, "exact examples"))
    network = build_network(game.encoding, config.network, generator(key(config.seed, "exact network")))
    with Workers(settings.threads) as workers:
        steps = fit(network, examples, plan, key(config.seed, "exact fit"), workers).steps
    policy = AveragePolicy(game, network)
    if config.cfr.first_round == "network":
        return policy, steps
    return WithFirstRound(policy, first_round_table(solved, game)), steps


def find_gaps(nash_conv: Mapping[str, float]) -> list[Gap]:
    """The NashConv that each part of the method adds, from `nash_conv` by part, without gaps to unmeasured parts.

    The NashConv of the average network is the sum `iterations + iterates + average network`. The architecture is not a
    term of this sum: it is what a fit to an exact solution adds. The panel is not a term either: the cost of its few
    boards is spread over the iterates and the network.
    """
    formulas = [
        ("iterations", ("tabular", None)),
        ("iterates", ("sd-cfr", "tabular")),
        ("average network", ("average", "sd-cfr")),
        ("architecture", ("fitted", "solved")),
        ("panel", ("average", "panel")),
    ]
    if "sd-cfr" not in nash_conv:
        formulas[1:3] = [(UNSPLIT, ("average", "tabular"))]
    return [
        Gap(name, more if less is None else f"{more} - {less}", nash_conv[more] - (nash_conv[less] if less else 0.0))
        for name, (more, less) in formulas
        if more in nash_conv and (less is None or less in nash_conv)
    ]


def explain_gaps(gaps: Sequence[Gap], unit: str) -> list[str]:
    """Sentences that say which part limits, as far as the gaps show it."""
    size = {gap.name: gap.value for gap in gaps}
    said = _limiting_part(gaps, size, unit)
    if "panel" in size:
        said.append(
            f"On all boards the average network has {size['panel']:.3f} {unit} more than on those of its panel."
        )
    return said


def _limiting_part(gaps: Sequence[Gap], size: Mapping[str, float], unit: str) -> list[str]:
    chain = [gap for gap in gaps if gap.name not in ("architecture", "panel")]
    if len(chain) < 2:
        return ["Too few parts were measured to say which of them limits."]
    most = max(chain, key=lambda gap: gap.value)
    said = [f"The {_LIMITS[most.name]} {most.value:.3f} {unit} ({most.formula}), more than any other part."]
    if "architecture" not in size:
        return said
    said.append(f"Fitted to a solved game, the architecture adds {size['architecture']:.3f} {unit} to it.")
    if most.name == "average network":
        half = size["architecture"] >= 0.5 * most.value
        said.append(
            "So what the network can represent in that many steps explains half or more of the average network's part."
            if half
            else "So samples and fit of the average network limit, not what it can represent."
        )
    return said


def explain_deviations(found: Sequence[Deviation], unit: str) -> list[str]:
    """Sentences that say where deviating gains most."""
    kinds = [one for one in found if one.kind is not None]
    if not kinds:
        return []
    said = []
    rounds = [one for one in found if one.round is not None and one.kind is None]
    if rounds:
        most = max(rounds, key=lambda one: one.nash_conv)
        said.append(f"Deviating in one round only gains most in {most.name}: {most.nash_conv:.3f} {unit}.")
    most = max(kinds, key=lambda one: one.nash_conv)
    return [*said, f"At one kind of decision it gains most in {most.name}: {most.nash_conv:.3f} {unit}."]


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
