"""The experiments of Lin (2024) as data: figures 5, 7 and 8, and what each improvement does to exact exploitability.

"4 Improvements to Monte Carlo Counterfactual Regret Minimization for Texas Heads Up No Limit Poker" measures profits of
bots in its own game. In figure 5 bots with four shapes of rewards play each other; in figure 7 an ensemble of four bots
plays its variants; in figure 8 each of the four plays its own variants. The paper gives no seeds, intervals or lengths of
training. `lin-exact` answers the open question of exact exploitability, on a game with exact NashConv.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from experiments.studies.records import BUDGETS, Budget, Settings

LinKind = Literal["shapes", "ensemble", "members", "exact"]
MEMBERS = 4  # members of an ensemble, and Lin's individual bots
NONE = "none"  # the arm of lin-exact without any improvement
MEMBER, ALL_MEMBER = "member", "member-all"


@dataclass(frozen=True)
class Bot:
    """One configuration; its runs differ by their seeds only."""

    name: str  # name of its folders
    label: str
    changes: Settings = field(default_factory=dict)  # changes to the settings of the plan


@dataclass(frozen=True)
class Ensemble:
    """Several runs of a bot as one player."""

    label: str
    rule: str  # of `policies.ensemble`
    member: str  # the bot; the ensemble has MEMBERS runs of it


@dataclass(frozen=True)
class LinPlan:
    """A study at one budget."""

    settings: Settings  # of all bots
    bots: tuple[Bot, ...]  # one run of each for a seed
    members: tuple[Bot, ...]  # MEMBERS runs of each for a seed
    deals: int = 0  # deals of a match, each played in both seats


@dataclass(frozen=True)
class LinStudy:
    """An experiment of the paper, or the additional one."""

    name: str
    kind: LinKind  # what is measured, and how it is shown
    title: str
    about: str
    home: str  # the folder of its runs, which studies may share
    plans: Mapping[Budget, LinPlan]


# Bots of Lin's own game, with figure 4's buckets, exploration decay and initial strategies; the recipe lin is as long

_LADDER: dict[str, Any] = {
    "game": "hunl-ladder",
    "solve.algorithm": "mccfr",
    "solve.abstraction": "texture",
    "solve.exploration_start": 0.01,
    "solve.initial": "win-rates",
    "runtime.threads": 1,
    "runtime.checkpoint_every": 1,
    "runtime.checkpoint_seconds": 900,
    "runtime.keep": 1,
}
_LADDER_SIZE: dict[Budget, dict[str, Any]] = {
    "quick": {"solve.iterations": 300, "solve.traversals": 200},
    "paper": {"solve.iterations": 900, "solve.traversals": 1_000},  # about 10 minutes of one core
}
_DEALS: dict[Budget, int] = {"quick": 20_000, "paper": 50_000}  # Lin plays 100,000 games, which are 50,000 deals
SHAPES = ("y1", "y2", "y3", "y4")
_SHAPED = tuple(Bot(shape, f"rewards {shape}", {"solve.reward_shape": shape}) for shape in SHAPES)

# Profits of figure 5, big blinds a hand: of the row's bot against the column's
PROFITS = {("y1", "y2"): -0.3, ("y1", "y3"): -0.18, ("y1", "y4"): -0.22, ("y2", "y3"): 0.10, ("y2", "y4"): 0.06,
           ("y3", "y4"): -0.05}  # fmt: skip
# Win rates of figure 7, big blinds a hand. Figure 8 is a chart whose numbers the text does not have.
WIN_RATES = {"aggressive": 1.749, "tight": 0.609, "random": 4.0, "calling-machine": 1.788, "tight-aggressive": 0.125}

# Exact exploitability

_EXACT: dict[Budget, dict[str, Any]] = {
    "quick": {"game": "fhp-mini", "solve.iterations": 4_000, "solve.traversals": 500},
    "paper": {"game": "fhp", "solve.iterations": 40_000, "solve.traversals": 10_000},
}
EARLY: dict[Budget, int] = {"quick": 50, "paper": 50}  # an iteration at which all bots of lin-exact are evaluated
_EXACT_RUNS: dict[str, Any] = {
    "solve.algorithm": "mccfr",
    "runtime.threads": 1,
    "runtime.checkpoint_every": 1,
    "runtime.checkpoint_seconds": 600,
    "runtime.keep": 1,
}
_DECAY, _Y2, _STARTED = {"solve.exploration_start": 0.01}, {"solve.reward_shape": "y2"}, {"solve.initial": "win-rates"}
_ALONE = (
    Bot(NONE, "none"),
    Bot("decay", "exploration decay", _DECAY),
    Bot("y2", "y2 on payoffs", _Y2),
    Bot("y3", "y3 on payoffs", {"solve.reward_shape": "y3"}),
    Bot("y4", "y4 on payoffs", {"solve.reward_shape": "y4"}),
    Bot("y2-regret", "y2 on regrets", {"solve.reward_shape": "y2", "solve.reward_on": "regret"}),
    Bot("initial", "initial strategies", _STARTED),
    Bot("texture", "texture buckets", {"solve.abstraction": "texture"}),
)
ENSEMBLES = {
    "ensemble-sum": Ensemble("ensemble of four, sum", "sum", MEMBER),
    "ensemble-mixture": Ensemble("ensemble of four, mixture", "mixture", MEMBER),
    "all": Ensemble("all together", "sum", ALL_MEMBER),
}


def _ladder_plan(budget: Budget, bots: tuple[Bot, ...], members: tuple[Bot, ...]) -> LinPlan:
    return LinPlan({**_LADDER, **_LADDER_SIZE[budget]}, bots, members, _DEALS[budget])


def _exact_plan(budget: Budget) -> LinPlan:
    size = _EXACT[budget]
    last = size["solve.iterations"]
    every = [place for place in (20, 50, 100, 200, 500, 1_000, 2_000, 10_000) if place < last // MEMBERS]
    shorter = {"solve.iterations": last // MEMBERS, "evaluation.at": []}
    members = (
        Bot(MEMBER, "one of the four alone", shorter),
        Bot(ALL_MEMBER, "one of the four of all together", {**shorter, **_DECAY, **_Y2, **_STARTED}),
    )
    return LinPlan({**_EXACT_RUNS, **size, "evaluation.at": every}, _ALONE, members)


def _plans(bots: tuple[Bot, ...], members: tuple[Bot, ...]) -> dict[Budget, LinPlan]:
    return {budget: _ladder_plan(budget, bots, members) for budget in BUDGETS}


_FIGURES = (
    LinStudy(
        "lin-fig5", "shapes", "Lin's figure 5: shapes of rewards against each other",
        "Bots that differ by the shape of their rewards on payoffs, all against all, measured in the unchanged game.",
        "lin", _plans(_SHAPED, ()),
    ),
    LinStudy(
        "lin-fig7", "ensemble", "Lin's figure 7: four bots as one against variants of it",
        "The sum of the strategies of four bots, which differ by their seeds, against itself in every style. Lin's table "
        "has five of them.", "lin", _plans((), _SHAPED[:1]),
    ),
    LinStudy(
        "lin-fig8", "members", "Lin's figure 8: each of the four bots against its variants",
        "The bots of lin-fig7 one by one, each against itself in every style.", "lin", _plans((), _SHAPED[:1]),
    ),
    LinStudy(
        "lin-exact", "exact", "What each of Lin's improvements does to exploitability",
        "Linear MCCFR on the unchanged game, lossless unless buckets are named, alone and with each change. The members "
        "of an ensemble together touch as many nodes as one run of the others. *All together* is a sum of four bots with "
        "decay, y2 on payoffs and initial strategies.",
        "lin-exact", {budget: _exact_plan(budget) for budget in BUDGETS},
    ),
)  # fmt: skip
_TOGETHER = LinStudy(
    "lin-all", "ensemble", "Lin's bot with everything together",
    "The sum of the strategies of four bots with exploration decay, initial strategies and rewards of shape y2, against "
    "itself in every style.", "lin", _plans((), _SHAPED[1:2]),
)  # fmt: skip


def _plain(study: LinStudy) -> LinStudy:
    """The study with plain sums: every iteration has the same weight, as in Lin's paper."""
    return replace(
        study,
        name=f"{study.name}-plain",
        title=f"{study.title}, plain sums",
        about=f"{study.about} Here regrets and strategies are added to plain sums, without weights of iterations.",
        home=f"{study.home}-plain",
        plans={
            budget: replace(plan, settings={**plan.settings, "solve.weighting": "uniform"})
            for budget, plan in study.plans.items()
        },
    )


LIN_STUDIES: dict[str, LinStudy] = {
    study.name: study for study in (*_FIGURES, _TOGETHER, *(_plain(study) for study in _FIGURES))
}
