"""The experiments of sections 5 and 6 of the paper, figures 2 to 4, as data.

For each budget a study has a plan: settings that all arms share; the arms, each of which changes one key; and the tested
statements of the paper. `paper` is the paper's own scale on FHP; `quick` is a small scale on `fhp-mini`, a variant of FHP
with five ranks. Published values are entered only if the paper's text states them or a curve was read off.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from experiments.studies.records import (
    BUDGETS,
    DIGITISED,
    STATED,
    Arm,
    Below,
    Budget,
    FewerNodes,
    LevelsOff,
    MostlyFits,
    Moves,
    NotAbove,
    Plan,
    Published,
    PublishedCurve,
    Statement,
    Study,
    StudyName,
)

# Shared settings. The paper's: section 5.2, the network of section 5.1, iterations of figure 4's caption, traversals
# that section 6 states for figure 2. Evaluation visits all flops, because suits are raw.
PAPER: dict[str, Any] = {
    "game": "fhp",
    "network.suits": "raw",
    "cfr.keep_networks": 0,
    "evaluation.at": [50, 100, 200, 300],
    "runtime.device": "cuda",
    "runtime.threads": 16,
}
# The quick ones differ from the paper's by size, by canonical suits, which merge flops in exact evaluations, and by their
# fits: with Adam and few steps the fits limit the results and hide all effects except that of the steps.
QUICK_LAST, QUICK_EARLY = 32, 8
_QUICK_FIT = {
    "batch_size": 512,
    "optimizer": "muon",
    "learning_rate": 0.01,
    "schedule": "cosine",
    "draw": "merged",
}
QUICK: dict[str, Any] = {
    "game": "fhp-mini",
    "iterations": QUICK_LAST,
    "sampling.traversals": 40_000,
    "cfr.keep_networks": 0,
    "memory.capacity": 10_000_000,
    "network.width": 32,
    **{f"{fit}.{key}": value for fit in ("advantage", "average") for key, value in _QUICK_FIT.items()},
    "advantage.steps": 500,
    "average.steps": 2_000,
    "evaluation.at": [4, QUICK_EARLY, 16, 24],
    "runtime.threads": 1,
    "runtime.checkpoint_seconds": 20,
}
SHARED: dict[Budget, dict[str, Any]] = {"quick": QUICK, "paper": PAPER}
BASE = "base"  # the folder of the arm that changes nothing, which most studies share
EARLY: dict[Budget, int] = {"quick": QUICK_EARLY, "paper": 100}


def base_arm(label: str, name: str = BASE, published: Published | None = None) -> Arm:
    """The arm without changes."""
    return Arm(name, label, published=published, home=BASE)


def _sweep(
    key: str, values: tuple[int, ...], unchanged: int, unit: str, published: Mapping[int, Published] | None = None
) -> tuple[Arm, ...]:
    """One arm for each value of a key; the arm with the common value of all plans is the base."""
    read = published or {}
    return tuple(
        base_arm(f"{value:,} {unit}", published=read.get(value))
        if value == unchanged
        else Arm(f"{key.split('.')[-1]}-{value}", f"{value:,} {unit}", {key: value}, read.get(value))
        for value in values
    )


def _names(arms: tuple[Arm, ...]) -> list[str]:
    return [arm.name for arm in arms]


# Figure 2

_NFSP: dict[Budget, dict[str, Any]] = {
    # Heinrich and Silver 2016 with the networks of Deep CFR; an iteration is much shorter than one of Deep CFR
    "quick": {
        "solver": "nfsp",
        "iterations": 1_500,
        "nfsp.episodes": 4_096,
        "nfsp.anticipatory": 0.3,
        "nfsp.epsilon_start": 0.5,
        "nfsp.replay_capacity": 500_000,
        "nfsp.reservoir_capacity": 2_000_000,
        "nfsp.batch_size": 1_024,
        "nfsp.q_steps": 24,
        "nfsp.policy_steps": 12,
        "nfsp.target_every": 24,
        "nfsp.q_learning_rate": 2e-3,
        "nfsp.policy_learning_rate": 2e-3,
        "evaluation.at": [50, 100, 200, 400, 800],
    },
    "paper": {
        "solver": "nfsp",
        "iterations": 8_000,
        "nfsp.episodes": 8_192,
        "nfsp.replay_capacity": 600_000,
        "nfsp.reservoir_capacity": 40_000_000,
        "nfsp.batch_size": 2_048,
        "nfsp.q_steps": 8,
        "nfsp.policy_steps": 8,
        "nfsp.q_learning_rate": 1e-3,
        "nfsp.policy_learning_rate": 1e-3,
        "evaluation.at": [500, 1_000, 2_000, 4_000],
    },
}
_MCCFR: dict[Budget, dict[str, Any]] = {
    "quick": {
        "iterations": 4_000,
        "solve.traversals": 500,
        "evaluation.at": [20, 50, 100, 200, 500, 1_000, 2_000],
        "runtime.threads": 1,
        "runtime.checkpoint_seconds": 60,
    },
    "paper": {
        "iterations": 100_000,
        "solve.traversals": 10_000,
        "evaluation.at": [50, 100, 300, 1_000, 3_000, 10_000, 30_000],
        "runtime.threads": 16,
        "runtime.checkpoint_seconds": 600,  # lossless tables take 2.4 GB
    },
}
# flop buckets of the three abstractions: the paper's 40,000, 368,000 and 3.6 million abstract decisions on FHP
_BUCKETS: dict[Budget, tuple[int, ...]] = {"quick": (20, 200, 2_000), "paper": (200, 2_000, 20_000)}


def _nfsp_arm(budget: Budget, published: Published | None) -> Arm:
    return Arm("nfsp", "NFSP", _NFSP[budget], published, home="nfsp")


_BEATS_NFSP = Statement(
    "Deep CFR is less exploitable than NFSP after touching as many nodes.",
    "section 6 and figure 2",
    (Below(BASE, "nfsp", "equal nodes"),),
)
_DEEP_37 = Published(f"{STATED} of section 6", nash_conv=37)
_NFSP_47 = Published(f"{STATED} of section 6", nash_conv=47)


def _mccfr(budget: Budget, name: str, label: str, buckets: int = 0, **changes: Any) -> Arm:
    settings = {"game": SHARED[budget]["game"], "solver": "mccfr", **_MCCFR[budget], **changes}
    return Arm(name, label, settings, tabular=True, buckets=buckets)


def _figure_2(budget: Budget) -> Plan:
    sizes = _BUCKETS[budget]
    coarse, fine = f"buckets-{sizes[0]}", f"buckets-{sizes[-1]}"
    arms = (
        base_arm("Deep CFR", published=_DEEP_37),
        _nfsp_arm(budget, _NFSP_47),
        *(_mccfr(budget, f"buckets-{n}", f"{n:,} buckets", n) for n in sizes),
        _mccfr(budget, "lossless", "no abstraction"),
    )
    quick = budget == "quick"
    small = "Here fits are short, and 32 iterations few." if quick else ""
    tables = _against_tables(BASE, coarse, fine, 20 if quick else 50, small)
    fits = Statement("Deep CFR and NFSP spend most of their time in SGD steps.", "section 6",
                     (MostlyFits(BASE), MostlyFits("nfsp")))  # fmt: skip
    return Plan({}, arms, BASE, (_BEATS_NFSP, *tables, fits))


def _against_tables(deep: str, coarse: str, fine: str, early: int, otherwise: str = "") -> tuple[Statement, ...]:
    """Figure 2 on abstractions, and on Deep CFR against them; `early` is an iteration of the tables."""
    source = "section 6 and figure 2"
    return (
        Statement("A coarser abstraction converges faster and ends more exploitable.", source,
                  (Below(coarse, fine, early), Below(fine, coarse))),
        Statement("At its end Deep CFR is about as exploitable as the largest abstraction.", source,
                  (NotAbove(deep, fine),), otherwise),
        Statement("Deep CFR gets there after fewer nodes than the largest abstraction.", source,
                  (FewerNodes(deep, fine),), otherwise),
        Statement("Deep CFR needs 2 to 3 orders of magnitude fewer samples than the lossless abstraction.",
                  "the caption of figure 2", (FewerNodes(deep, "lossless", 100),), otherwise),
        Statement("An abstraction is less exploitable than none after touching as many nodes.",
                  "section 5 of Lin 2024", (Below(fine, "lossless", "equal nodes"),)),
    )  # fmt: skip


# Figure 3

_K_10000 = PublishedCurve(
    "the paper, figure 3, left: K = 10,000",
    ((50, 154), (100, 70), (200, 51), (300, 40), (450, 40)),
    nodes=(0.94e6, 1.23e6),  # by figure 2
)
_STEPS_4000 = PublishedCurve(
    "the paper, figure 3, middle: 4,000 SGD steps",
    ((50, 75), (100, 82), (200, 72), (300, 75), (450, 65)),
)
_TRAVERSALS: dict[Budget, tuple[int, ...]] = {
    "quick": (400, 4_000, 40_000),
    "paper": (1_000, 3_000, 10_000, 30_000),
}
_LINEAR_CFR: dict[Budget, dict[str, Any]] = {
    "quick": {"iterations": QUICK_LAST, "evaluation.at": QUICK["evaluation.at"], "runtime.threads": 1},
    "paper": {"iterations": 50, "evaluation.at": [20, 30], "runtime.threads": 16},
}


def _figure_3_left(budget: Budget) -> Plan:
    key, values = "sampling.traversals", _TRAVERSALS[budget]
    unchanged = 40_000 if budget == "quick" else 10_000
    arms = _sweep(
        key,
        values,
        unchanged,
        "traversals",
        {10_000: Published(f"{DIGITISED} of figure 3, left, at t = 450", 40, curves=(_K_10000,))},
    )
    settings = {"game": SHARED[budget]["game"], "solver": "linear-cfr", **_LINEAR_CFR[budget]}
    published = Published(f"{DIGITISED} of figure 3, left (dashed), at t = 50", nash_conv=31)
    exact = Arm("linear-cfr", "Linear CFR in tables, no sampling", settings, published, tabular=True)
    few, *between, many = _names(arms)
    short = f"Here the fewest are still falling: runs have {QUICK_LAST} iterations." if budget == "quick" else ""
    statements = (
        Statement("Fewer traversals an iteration slow convergence.", "section 6 and figure 3, left",
                  (Below(many, few, EARLY[budget]),)),
        Statement("Fewer traversals an iteration do not raise the final NashConv.", "section 6 and figure 3, left",
                  tuple(NotAbove(name, many) for name in (few, *between)), short),
        Statement("More traversals an iteration touch more nodes for the same NashConv.", "section 6",
                  (FewerNodes(few, many),)),
    )  # fmt: skip
    return Plan({}, (*arms, exact), BASE, statements)


_STEPS: dict[Budget, tuple[int, ...]] = {
    "quick": (60, 500, 1_500),
    "paper": (1_000, 2_000, 4_000, 8_000, 16_000, 32_000),
}
_STEPS_READ = {
    steps: Published(f"{DIGITISED} of figure 3, middle, at its end", nash_conv=value)
    for steps, value in zip(_STEPS["paper"], (110, 80, 65, 43, 37, 35), strict=True)
}


def _figure_3_middle(budget: Budget) -> Plan:
    values = _STEPS[budget]
    # only the paper's own numbers of steps have published values
    read = _STEPS_READ if budget == "paper" else {}
    arms = _sweep("advantage.steps", values, 500 if budget == "quick" else 4_000, "SGD steps", read)
    few, many = _names(arms)[0], _names(arms)[-1]
    text = "More SGD steps for each advantage network lower the final NashConv."
    return Plan({}, arms, BASE, (Statement(text, "section 6 and figure 3, middle", (Below(many, few),)),))


_WIDTHS: dict[Budget, tuple[int, ...]] = {"quick": (8, 32, 64), "paper": (8, 16, 32, 64, 128)}


def _figure_3_right(budget: Budget) -> Plan:
    values = _WIDTHS[budget]
    arms = _sweep("network.width", values, 32 if budget == "quick" else 64, "features a layer")
    names = _names(arms)
    text = "A wider network lowers the final NashConv, up to a certain size."
    tests = (LevelsOff("width-8", names[-2], names[-1], steps=len(names) - 2 - names.index("width-8")),)
    return Plan({}, arms, BASE, (Statement(text, "section 6 and figure 3, right", tests),))


# Figure 4

# what differs from the paper at the quick budget
_STEPS_HERE = f"{QUICK['advantage.steps']} steps of {_QUICK_FIT['batch_size']}"
_SHORT_FITS = f"Here a fit has {_STEPS_HERE} samples, in the paper 4,000 of 10,000."
_HALF_AS_MUCH = Published("'about 50 % higher' in the caption of figure 4", ratio=1.5)


def _figure_4_left(budget: Budget) -> Plan:
    arms = (
        base_arm("Deep CFR"),
        Arm("uniform-weighting", "without linear weighting", {"cfr.weighting": "uniform"},
            Published("'similar', by the caption of figure 4", ratio=1.0)),
        Arm("fine-tune", "fine-tuned instead of from scratch", {"advantage.refit": "fine-tune"}, _HALF_AS_MUCH),
        Arm("uniform-fallback", "uniform where no advantage is positive", {"cfr.fallback": "uniform"}, _HALF_AS_MUCH),
    )  # fmt: skip
    source = "section 6 and figure 4, left"
    short = _SHORT_FITS if budget == "quick" else ""
    statements = (
        Statement("Linear weighting converges faster early.", source, (Below(BASE, "uniform-weighting", EARLY[budget]),)),
        Statement("Without linear weighting the final NashConv is similar.", source,
                  (NotAbove("uniform-weighting", BASE),),
                  f"Here runs have {QUICK_LAST} iterations, in the paper 450." if budget == "quick" else ""),
        Statement("Networks from scratch end less exploitable than fine-tuned ones (in the paper with 4,000 SGD steps).",
                  source, (Below(BASE, "fine-tune"),), short),
        Statement("Playing the highest advantage where none is positive ends less exploitable than playing uniformly.",
                  source, (Below(BASE, "uniform-fallback"),)),
    )  # fmt: skip
    return Plan({}, arms, BASE, statements)


def _figure_4_right(budget: Budget) -> Plan:
    # The paper's memories are full after about 50 iterations of 10,000 traversals (footnote 6). Ours record fewer samples
    # of a traversal (about 5 and 3.4 advantages, 13 strategies on FHP), so they are as much smaller as that takes.
    capacity = {"memory.capacity": {"quick": 1_000_000, "paper": 2_500_000}[budget]}
    arms = (
        Arm("reservoir", "reservoir sampling"),
        Arm("window", "sliding window", {"memory.kind": "window"},
            Published("no number: NashConv begins to rise once the memory is full, by section 6")),
    )  # fmt: skip
    source = "section 6 and figure 4, right"
    statements = (
        Statement("Once the memories are full, a reservoir is less exploitable than a sliding window.", source,
                  (Below("reservoir", "window", "full memories"),)),
        Statement("Then NashConv with a sliding window rises.", source, (Moves("window", rises=True),)),
        Statement("NashConv with a reservoir goes on falling.", "the caption of figure 4", (Moves("reservoir"),)),
    )  # fmt: skip
    return Plan(capacity, arms, arms[0].name, statements)


# The paper's setting on FHP itself: figures 3 and 4 as far as their first iterations go

_CORES: dict[str, Any] = {
    "cfr.keep_networks": 1, "runtime.device": "cpu", "runtime.threads": 1,
}  # fmt: skip
_AT = 20  # iterations of most arms, where all are compared
# As the recipe leduc-nfsp, with half the iterations; a replay memory holds about as many of them
_NFSP_CORES: dict[str, Any] = {
    "solver": "nfsp",
    "iterations": 2_000,
    "nfsp.episodes": 16_384,
    "nfsp.epsilon_start": 1.0,
    "nfsp.exploration": 0.2,
    "nfsp.replay_capacity": 600_000,
    "nfsp.reservoir_capacity": 10_000_000,
    "nfsp.q_steps": 12,
    "nfsp.policy_steps": 6,
    "nfsp.batch_size": 4_096,
    "nfsp.target_every": 6,
    "nfsp.q_learning_rate": 3e-3,
    "nfsp.policy_learning_rate": 3e-3,
    "evaluation.at": [200, 600],
}
# As figure 2's, on two cores
_TABLES: dict[str, Any] = {
    "iterations": 5_000,
    "evaluation.at": [20, 50, 100, 300, 1_000, 2_500],
    "runtime.threads": 1,
}


def _fhp_plan() -> Plan:
    """Arms with 1,000 steps a fit, of which one goes on; the paper's own 4,000 steps as far as they go."""
    fewer, few = {"advantage.steps": 1_000}, "steps-1000"
    short = {**fewer, "iterations": _AT, "evaluation.at": []}  # an evaluation takes 18 minutes of a core
    arms = (
        Arm(few, "1,000 SGD steps", {**fewer, "iterations": 450, "evaluation.at": [10, _AT, 50, 100, 200]},
            _STEPS_READ[1_000]),
        Arm("steps-4000", "4,000 SGD steps",
            {"iterations": 450, "evaluation.at": [5, 10, _AT, 30, 50, 75, 100, 150, 200, 250]},
            replace(_STEPS_READ[4_000], curves=(_K_10000, _STEPS_4000))),
        Arm("appendix-c", "Appendix C's network",
            {**fewer, "network.card_width": 1, "network.card_embedding": True, "iterations": 50,
             "evaluation.at": [_AT]}, predicted={_AT: "332 to 359 (of seed 0, by one seed before)"}),
        Arm("traversals-3000", "3,000 traversals", {**short, "sampling.traversals": 3_000}),
        Arm("traversals-25000", "25,000 traversals",
            {**fewer, "sampling.traversals": 25_000, "iterations": 100, "evaluation.at": [_AT, 50]},
            predicted={_AT: "185 to 245", 50: "164", 100: "98"}),
        Arm("passes-10", "10 passes a fit, at most 4,000 SGD steps", {**short, "advantage.steps": 4_000,
            "advantage.passes": 10.0}, predicted={_AT: "250 to 350"}),
        Arm("paper-plus", "2 passes a fit, at most 16,000 SGD steps, 25,000 traversals",
            {"advantage.steps": 16_000, "advantage.passes": 2.0, "sampling.traversals": 25_000, "iterations": 100,
             "evaluation.at": [_AT, 50]},
            predicted={_AT: "210 to 290", 45: "120 to 180 (of t = 40)", 50: "110 to 170", 100: "55 to 95"}),
        Arm("width-16", "16 features a layer", {**short, "network.width": 16}),
        Arm("uniform-weighting", "without linear weighting", {**short, "cfr.weighting": "uniform"}),
        Arm("uniform-fallback", "uniform where no advantage is positive",
            {**short, "cfr.fallback": "uniform"}),
        Arm("nfsp", "NFSP", _NFSP_CORES, _NFSP_47),
        *(_mccfr("paper", f"buckets-{n}", f"{n:,} buckets", n, **_TABLES) for n in _BUCKETS["paper"]),
        _mccfr("paper", "lossless", "no abstraction", **_TABLES),
    )  # fmt: skip
    statements = (
        Statement("More SGD steps a fit lower NashConv after 20 iterations.", "section 6 and figure 3, middle",
                  (Below("steps-4000", few, _AT),), "The paper compares them after 450 iterations. Of single runs 1,000 "
                  "steps are ahead at t = 100 too (141.4 against 174.8); later they have 117.2 at t = 200, and 4,000 steps "
                  "91.2 at t = 257."),
        Statement("Fewer traversals an iteration slow convergence.", "section 6 and figure 3, left",
                  (Below(few, "traversals-3000", _AT), Below("traversals-25000", few, _AT))),
        Statement("A wider network lowers NashConv.", "section 6 and figure 3, right", (Below(few, "width-16", _AT),)),
        Statement("Linear weighting converges faster early.", "section 6 and figure 4, left",
                  (Below(few, "uniform-weighting", _AT),)),
        Statement("Playing the highest advantage where none is positive is less exploitable than playing uniformly.",
                  "section 6 and figure 4, left", (Below(few, "uniform-fallback", _AT),)),
        Statement("Deep CFR is less exploitable than NFSP after touching as many nodes.", "section 6 and figure 2",
                  (Below("steps-4000", "nfsp", "equal nodes"),)),
        *_against_tables("steps-4000", "buckets-200", "buckets-20000", 50),
        Statement("Deep CFR touches fewer nodes than the largest abstraction to come to the NashConv that it has after 20 "
                  "iterations.", "section 6 and figure 2", (FewerNodes(few, "buckets-20000", at=_AT),)),
        Statement("To come to the same it touches 2 orders of magnitude fewer than the lossless abstraction.",
                  "the caption of figure 2", (FewerNodes(few, "lossless", 100, _AT),)),
    )  # fmt: skip
    return Plan(_CORES, arms, few, statements)


# The first version's figures 2 and 3, on its own game

_POT = {"game": "fhp-pot", "cfr.first_round": "table"}
_POT_TRAVERSALS, _POT_STEPS = (3_000, 30_000, 300_000, 2_000_000), (125, 500, 2_000)  # the middle ones are the base


def _pot_plan() -> Plan:
    tables = [_mccfr("quick", f"buckets-{n}", f"{n:,} buckets", n, game=_POT["game"]) for n in (300, 3_000, 30_000)]
    tables.append(_mccfr("quick", "lossless", "no abstraction", game=_POT["game"]))
    base = Arm(BASE, "30,000 traversals, 500 SGD steps", {"sampling.traversals": 30_000})
    more = [
        Arm(f"traversals-{n}", f"{n:,} traversals", {"sampling.traversals": n}) for n in _POT_TRAVERSALS if n != 30_000
    ]
    more += [
        Arm(f"steps-{n}", f"{n:,} SGD steps", {**base.changes, "advantage.steps": n}) for n in _POT_STEPS if n != 500
    ]
    coarse, middle, fine, lossless = (arm.name for arm in tables)
    figure, sweeps = "section 6 and figure 2 of the first version", "section 6 and figure 3 of the first version"
    statements = (
        Statement("Deep CFR is not more exploitable than 30,000 buckets after touching as many nodes.", figure,
                  (Below(BASE, fine, "equal nodes"),)),
        Statement("A coarser abstraction converges faster.", figure,
                  (Below(coarse, middle, 50), Below(middle, fine, 50))),
        Statement("A coarser abstraction ends more exploitable.", figure,
                  (Below(middle, coarse), Below(fine, middle)), "The finest table has not converged."),
        Statement("Deep CFR needs 1 to 2 orders of magnitude fewer samples than the lossless game.", figure,
                  (FewerNodes(BASE, lossless, 10),)),
        Statement("30,000 traversals an iteration are more sample efficient than 2,000,000.", figure,
                  (FewerNodes(BASE, "traversals-2000000"),)),
        Statement("2,000,000 traversals an iteration need fewer iterations than 30,000.", figure,
                  (Below("traversals-2000000", BASE, QUICK_EARLY),)),
        Statement("More traversals an iteration and more SGD steps a fit help.", sweeps,
                  (Below(BASE, "traversals-3000"), Below(BASE, "steps-125"))),
        Statement("More traversals an iteration help, with diminishing returns.", sweeps,
                  (LevelsOff("traversals-3000", BASE, "traversals-300000", steps=1),)),
        Statement("More SGD steps a fit help, with diminishing returns.", sweeps,
                  (LevelsOff("steps-125", BASE, "steps-2000", steps=1),)),
    )  # fmt: skip
    return Plan(_POT, (base, *more, *tables), BASE, statements)


# Lin's changes to Monte Carlo CFR, each alone and together

_LIN: dict[str, tuple[str, dict[str, Any]]] = {
    "decay": ("exploration decay", {"solve.exploration_start": 0.01}),
    "y2": ("reward y2", {"solve.reward_shape": "y2"}),
    "y3": ("reward y3", {"solve.reward_shape": "y3"}),
    "win-rates": ("initial strategies by win rates", {"solve.initial": "win-rates"}),
    "texture": ("texture buckets", {"solve.abstraction": "texture"}),
}
_LIN["together"] = (
    "decay, y2 and initial strategies",
    {key: value for name in ("decay", "y2", "win-rates") for key, value in _LIN[name][1].items()},
)


def _lin_plan() -> Plan:
    plain: dict[str, Any] = {"solve.weighting": "uniform"}
    arms = [
        replace(_mccfr("quick", "lossless", "no change"), home="fig2"),
        _mccfr("quick", "plain", "no change, plain", **plain),
    ]
    for name, (label, changes) in _LIN.items():
        arms += [
            _mccfr("quick", name, label, **changes),
            _mccfr("quick", f"{name}-plain", f"{label}, plain", **changes, **plain),
        ]

    def both(name: str, at: Any = "the end") -> tuple[Below, ...]:
        return Below(name, "lossless", at), Below(f"{name}-plain", "plain", at)

    early, other = 50, "Lin's game is no-limit hold'em in buckets, with many more infosets."
    statements = (
        Statement("Rewards of shape y2 lower NashConv.", "section 6.3", both("y2"), other),
        Statement(
            "Decay, y2 and initial strategies together lower NashConv early.", "section 1", both("together", early)
        ),
        Statement("They lower NashConv at the end.", "section 1", both("together"), other),
        Statement(
            "Initial strategies lower NashConv early and at the end, with plain sums, which the paper seems to use.",
            "section 7",
            (Below("win-rates-plain", "plain", early), Below("win-rates-plain", "plain")),
        ),
        Statement(
            "The same with linear weights.",
            "section 7",
            (Below("win-rates", "lossless", early), Below("win-rates", "lossless")),
        ),
        Statement("Buckets lower NashConv early.", "section 5", both("texture", early)),
    )
    return Plan({}, tuple(arms), "lossless", statements)


def _study(name: StudyName, figure: str, title: str, about: str, make: Any, swept: str = "") -> Study:
    return Study(name, figure, title, about, {budget: make(budget) for budget in BUDGETS}, swept)


FIGURES: dict[StudyName, Study] = {
    study.name: study
    for study in (
        _study(
            "fig2", "2", "Deep CFR, NFSP and abstractions",
            "Deep CFR and NFSP with the same networks, and Linear MCCFR with external sampling on abstractions of three "
            "sizes and without an abstraction.", _figure_2,
        ),
        _study(
            "fig3-left", "3, left", "Traversals per iteration",
            "The number K of external-sampling traversals in an iteration, and Linear CFR without sampling and networks. "
            "The paper's K go from 3,000 to 1,000,000, by the source of its curve; we chose ours so that they differ.",
            _figure_3_left,
        ),
        _study(
            "fig3-middle", "3, middle", "SGD steps per iteration",
            "The number of mini-batch steps of an advantage fit. The paper does not specify the traversals of an iteration "
            "in this figure; by its footnote 6 there are far more than 10,000.",
            _figure_3_middle,
        ),
        _study(
            "fig3-right", "3, right", "Network width",
            "The number d of features in the hidden layers of all networks. We chose the widths.",
            _figure_3_right, "network.width",
        ),
        _study(
            "fig4-left", "4, left", "Ablations",
            "One component at a time: Linear CFR's weights, refits from scratch, the action if no advantage is "
            "positive.", _figure_4_left,
        ),
        _study(
            "fig4-right", "4, right", "Reservoir or sliding window",
            "The rule by which a full memory replaces samples.", _figure_4_right,
        ),
        Study(
            "fhp", "2, 3 and 4", "Flop hold'em, 10,000 traversals an iteration, to t = 20 with 1,000 steps",
            "An arm has 10,000 traversals an iteration and 1,000 SGD steps a fit if it says nothing else; buckets and no "
            "abstraction are Linear MCCFR. Arms are compared at iteration 20; of those with 1,000 and 4,000 steps one each "
            "went on. On CUDA sums have no fixed order, so runs do not repeat: another run of 1,000 steps with seed 0 "
            "had 350.35 mbb/g at iteration 20 instead of 395.80, so intervals of three seeds may be too narrow.",
            {"paper": _fhp_plan()}, growing=True,
        ),
        Study(
            "v1", "2 and 3 of the first version", "Flop hold'em with pot bets",
            "The game of the paper's first version, `fhp-pot`, with its 30,000 and 2,000,000 traversals and a table for "
            "the first round, beside Linear MCCFR on buckets and without an abstraction. The fits and the number of "
            "iterations are those of the other quick studies.",
            {"quick": _pot_plan()},
        ),
        Study(
            "lin", "Lin 2024", "What each change does to exploitability",
            "Monte Carlo CFR without abstraction, alone and with each change, at equal iterations. *Plain* "
            "runs weigh all iterations alike; Lin mentions no weights. Early is iteration 50 of 4,000.",
            {"quick": _lin_plan()},
        ),
    )
}  # fmt: skip
