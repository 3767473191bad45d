"""The relatives of Deep CFR on four games, as data: for equal iterations, and for equal time.

Their arms have the settings of `deepcfr train GAME --solver NAME`. On `fhp-mini` a small search, the same for every method,
first finds the size of an iteration.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from deepcfr.config import NamedSolver, RunConfig, config_from_table, load_config, settings_by_name
from deepcfr.defaults import default_config
from experiments.grid import flat_settings
from experiments.studies.arms import nested
from experiments.studies.plans import QUICK
from experiments.studies.records import Arm, Below, NotAbove, Plan, Published, Settings, Statement, Study, StudyName

_RELATIVES: dict[NamedSolver, Published | None] = {
    "rcfr": None,
    "double-neural": None,
    "dream": Published("its exploitability of 56 ± 5, twice; by a public re-implementation", 112),
    "escher": None,
    "deep-cfr+": None,
    "deep-dcfr+": None,
    "deep-pdcfr+": None,
    "vr-deep-cfr+": None,
    "vr-deep-dcfr+": Published("its exploitability of 69 ± 1, twice; by a public re-implementation", 138),
    "vr-deep-pdcfr+": Published("its exploitability of 77 ± 5, twice; by a public re-implementation", 154),
    "ppo": None,
    "mmd": None,
    "nfsp": Published("NashConv / 2 of 37, twice; footnote 4 of the Deep CFR paper", 74),
}

_SD_CFR = Statement(
    "The value networks' average (SD-CFR) is less exploitable than the policy network.",
    "section 4", (Below("sd-cfr", "deep-cfr", paired=True),),
    "The paper's games are larger, and its runs longer.",
)  # fmt: skip


def _family_plan() -> Plan:
    deep = _as_in_a_file(load_config("leduc-external"))  # Deep CFR with external sampling
    shared = {key: value for key, value in deep.items() if not key.startswith(("runtime.", "sampling."))}
    shared["sampling.traversals"] = deep["sampling.traversals"]
    settings = {**QUICK, **shared}
    arms = [
        Arm("deep-cfr", "Deep CFR, external sampling"),
        Arm("sd-cfr", "SD-CFR, external sampling", {"evaluation.policy": "sd-cfr"},
            Published("exploitability of 44 to 60, twice; by a public re-implementation", 104)),
    ]  # fmt: skip
    for name, published in _RELATIVES.items():
        config = default_config("leduc", name)
        found = {key: value for key, value in _as_in_a_file(config).items() if not key.startswith("runtime.")}
        arms.append(Arm(name, config.method, _differing(found, settings), published))
    statements = (
        _SD_CFR,
        Statement("Outcome sampling (DREAM) ends about where external sampling does.", "section 4",
                  (NotAbove("dream", "deep-cfr"),)),
    )  # fmt: skip
    return Plan(shared, tuple(arms), "deep-cfr", statements)


def _equal_time_plan(game: str, minutes: float, last: Mapping[str, int]) -> Plan:
    """Every method for the same time, with the settings of `train GAME --solver NAME`.

    `last` has the iterations of methods with schedules, by their names. SD-CFR's average is not measured on flop hold'em,
    where that takes longer than the run.
    """
    large = game == "fhp"
    own: dict[str, Any] = {"runtime.threads": 1, "runtime.minutes": minutes, "runtime.checkpoint_seconds": 3_600}
    if not large:
        own |= {"evaluation.every": 0, "evaluation.at": []}
    endless = {"iterations": 2_000, "cfr.keep_networks": 0}
    mean = {"advantage.target": "mean", "cfr.weighting": "linear", "cfr.average_weighting": "same"}
    base = _as_in_a_file(default_config(game, "deep-cfr+")) | endless | mean | own
    # other kinds of sampling have other settings
    shared = {
        key: value for key, value in base.items() if key.split(".")[0] != "sampling" or key == "sampling.traversals"
    }
    settings = {**QUICK, **shared}

    arms = [Arm("deep-cfr", "Deep CFR, external sampling")]
    if not large:
        arms.append(Arm("sd-cfr", "SD-CFR, external sampling", {"cfr.keep_networks": 1, "evaluation.policy": "sd-cfr"}))
    for name in _RELATIVES:
        config = default_config(game, name)
        changes: dict[str, Any] = endless if config.solver == "deep-cfr" else {}
        if config.solver != "deep-cfr" and name in last:
            changes = {"iterations": last[name]}
        if large and config.family == "ppo":
            changes = changes | {"evaluation.every": 0}
        if name == "rcfr" and game.startswith("fhp"):  # as in the kept runs, whose hands had 12 decisions each
            changes = changes | {"advantage.batch_size": 384, "average.batch_size": 384}
        if name == "dream":
            averages = {"cfr.keep_networks": 5, "evaluation.policy": "average"} if large else {"cfr.keep_networks": 1}
            changes = changes | averages
        found = _as_in_a_file(config) | own | changes
        arms.append(Arm(name, config.method, _differing(found, settings)))
    return Plan(shared, tuple(arms), "deep-cfr", ())


# The size of an iteration on `fhp-mini`: factors that are tried, smaller ones where the smallest was the best, and the one
# with the lowest NashConv for each method
_TRIED = (1.0, 0.3, 0.1, 0.03)
_SMALLER = dict.fromkeys(("escher", "vr-deep-pdcfr+", "ppo", "mmd", "nfsp"), (*_TRIED, 0.01))
BEST_SIZES = {
    "deep-cfr": 0.1, "sd-cfr": 0.1, "rcfr": 0.1, "double-neural": 0.3, "dream": 0.1, "escher": 0.03, "deep-cfr+": 0.1,
    "deep-dcfr+": 0.1, "deep-pdcfr+": 0.3, "vr-deep-cfr+": 0.1, "vr-deep-dcfr+": 0.3, "vr-deep-pdcfr+": 0.3, "ppo": 0.03,
    "mmd": 0.1, "nfsp": 0.1,
}  # fmt: skip
_SIZES = ("sampling.traversals", "sampling.boards", "advantage.steps", "values.steps", "ppo.episodes", "nfsp.episodes",
          "nfsp.q_steps", "nfsp.policy_steps")  # fmt: skip


def _at_sizes(plan: Plan, factors: Mapping[str, Sequence[float]]) -> Plan:
    """Each arm of a plan with the factors of its iterations' size, by its name; as it is where none are named.

    Methods with schedules have 1 / factor times as many iterations.
    """
    arms = []
    for arm in plan.arms:
        settings = {**QUICK, **plan.settings, **arm.changes}
        read = settings_by_name(config_from_table(nested(settings)))
        sizes = {key: settings[key] for key in _SIZES if settings.get(key) and key in read}
        scheduled = "solver" in arm.changes and "iterations" in arm.changes
        ends = {"iterations": settings["iterations"]} if scheduled else {}
        for factor in factors.get(arm.name, (1.0,)):
            scaled = {key: max(round(size * factor), 1) for key, size in sizes.items()}
            changes = {} if factor == 1 else scaled | {key: round(end / factor) for key, end in ends.items()}
            several = len(factors.get(arm.name, ())) > 1
            name, label = (f"{arm.name}-x{factor:g}", f"{arm.label} × {factor:g}") if several else (arm.name, arm.label)
            arms.append(replace(arm, name=name, label=label, changes={**arm.changes, **changes}))
    return replace(plan, arms=tuple(arms))


def _mini_plan() -> Plan:
    """Three minutes for every method, with the size of an iteration that was lowest in one minute."""
    last = {"ppo": 24, "mmd": 24, "nfsp": 124}  # 1 / factor times as many
    plan = _equal_time_plan("fhp-mini", 3.0, last)
    plan = _at_sizes(plan, {name: (factor,) for name, factor in BEST_SIZES.items()})
    return replace(plan, statements=(_SD_CFR,))


def _search_plan() -> Plan:
    """The same sizes of an iteration for every method, for a third of the time."""
    plan = _equal_time_plan("fhp-mini", 1.0, {"ppo": 50, "mmd": 50, "nfsp": 100})
    arms = tuple(arm for arm in plan.arms if arm.name != "sd-cfr")  # which has the networks of Deep CFR
    plan = replace(plan, arms=arms, reference="deep-cfr-x1")
    return _at_sizes(plan, {arm.name: _SMALLER.get(arm.name, _TRIED) for arm in arms})


def _differing(found: Settings, settings: Settings) -> Settings:
    """The settings of `found` that differ from `settings`.

    A setting that only another kind of sampling reads is None, which removes it.
    """
    before = _DEFAULTS | dict(settings)
    gone = {key: None for key in settings if key.startswith("sampling.") and key not in found}
    return gone | {key: value for key, value in found.items() if before.get(key) != value}


_DEFAULTS = {
    f"{section}.{key}": value
    for section, record in asdict(RunConfig()).items()
    if isinstance(record, dict)
    for key, value in record.items()
} | {"iterations": RunConfig().iterations, "solver": RunConfig().solver}


def _as_in_a_file(config: RunConfig) -> dict[str, Any]:
    """Settings by dotted key, with lists for tuples."""
    return {key: list(value) if isinstance(value, tuple) else value for key, value in flat_settings(config).items()}


RELATIVES: dict[StudyName, Study] = {
    study.name: study
    for study in (
        Study(
            "family", "", "Relatives of Deep CFR",
            "The settings of `deepcfr train leduc --solver NAME`: the same networks, 200 iterations, fits of 100 steps. "
            "RCFR has fits of 50 steps on all hands. PPO, MMD and NFSP play batches of episodes, with six and forty times "
            "the nodes of Deep CFR. Those that sample single histories touch 1.3 times as many nodes, ESCHER 2.6 times.",
            {"quick": _family_plan()},
        ),
        Study(
            "family-leduc", "", "Relatives of Deep CFR on Leduc hold'em",
            "The settings of `deepcfr train leduc --solver NAME`, one minute of one thread and then the last fit. The "
            "schedules of PPO, MMD and NFSP end about where the time does.",
            {"quick": _equal_time_plan("leduc", 1.0, {"ppo": 220, "mmd": 180, "nfsp": 160})},
        ),
        Study(
            "family-fhp", "", "Relatives of Deep CFR on flop hold'em",
            "The settings of `deepcfr train fhp --solver NAME`, 17 minutes of one thread and then the last fit. For DREAM "
            "the average network is measured, not SD-CFR's average. The schedules of PPO, MMD and NFSP end later than the "
            "time. The five best methods have three seeds, each with as many iterations as the first.",
            {"quick": _equal_time_plan("fhp", 17.0, {})}, growing=True,
        ),
        Study(
            "family-search", "", "Sizes of an iteration for the relatives on a small flop hold'em",
            "A search for every method, on one seed: `deepcfr train fhp-mini --solver NAME` for one minute of one thread. "
            "The traversals, episodes or boards of an iteration and the steps of its fits are as they are, and 0.3, 0.1 "
            "and 0.03 times as many, for five methods also 0.01. Runs of 0.03 and less had a faster machine, and so had "
            "those beside them where it could matter.",
            {"quick": _search_plan()},
        ),
        Study(
            "family-mini", "", "Relatives of Deep CFR on a small flop hold'em",
            "The settings of `deepcfr train fhp-mini --solver NAME` with the sizes that the search found, three minutes of "
            "one thread and then the last fit. SD-CFR has the size of Deep CFR. ESCHER and PPO ran for 1.7 minutes on a "
            "machine that is 1.7 times as fast.",
            {"quick": _mini_plan()},
        ),
        Study(
            "family-kuhn", "", "Relatives of Deep CFR on Kuhn poker",
            "The settings of `deepcfr train kuhn --solver NAME`, one minute of one thread and then the last fit.",
            {"quick": _equal_time_plan("kuhn", 1.0, {"ppo": 400, "mmd": 400, "nfsp": 1_200})},
        ),
    )
}  # fmt: skip
