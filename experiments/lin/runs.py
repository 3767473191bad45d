"""Run Lin's experiments: runs of bots, their matches, and the exact exploitability of ensembles, recorded as files.

All results are in folders below a root: runs as in other studies, and one JSON file for each match or evaluation that is
not in a run's own metrics. A repeated call keeps existing results and makes the missing ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

from deepcfr.config import SolveConfig, solve_config_from_table
from deepcfr.errors import GameError
from deepcfr.evaluation.exploitability import exploitability
from deepcfr.games.ladder_game import LadderGame
from deepcfr.policies.base import Policy
from deepcfr.policies.styles import STYLES
from deepcfr.report.matches import TournamentTerms
from deepcfr.runs.players import load_players
from experiments.grid import Job, Observing, Say, run_grid
from experiments.kept_results import read_record, write_record
from experiments.studies import Budget
from experiments.studies.arms import nested
from experiments.studies.lin import ENSEMBLES, LIN_STUDIES, MEMBERS, Bot, LinPlan, LinStudy

Key = tuple[str, ...]  # the subject of a measure, such as two bots or a style


@dataclass(frozen=True)
class Progress:
    """The result of a call of `run_lin`."""

    ran: int  # runs made or finished by this call
    there: int  # runs finished before
    measured: int  # matches and evaluations of this call
    finished: bool  # False after an interrupt


class Measure(NamedTuple):
    """A match between two players, or the exact NashConv of one player; players are named as for `match`."""

    key: Key
    players: tuple[str, ...]
    seed: int  # seed of a match's deals; matches that are averaged have different ones


def run_lin(
    root: Path,
    name: str,
    budget: Budget,
    seeds: int,
    observer: Observing,
    say: Say,
    studies: Mapping[str, LinStudy] = LIN_STUDIES,
) -> Progress:
    """Make the missing parts of a study: its runs, then its matches or evaluations, seed by seed.

    Raises the errors of runs and matches.
    """
    study = studies[name]
    ran = there = measured = 0
    for seed in range(seeds):
        summary = run_grid(jobs_of_seed(root, study, budget, seed), observer, say)
        ran, there = ran + summary.ran, there + summary.there
        if not summary.finished:
            return Progress(ran, there, measured, finished=False)
        measured += measure_seed(root, study, budget, seed, say)
    return Progress(ran, there, measured, finished=True)


def jobs_of_seed(root: Path, study: LinStudy, budget: Budget, seed: int) -> list[Job]:
    """The runs that a seed of a study needs."""
    plan = study.plans[budget]
    wanted = [(bot, seed) for bot in plan.bots]
    wanted += [(bot, number) for bot in plan.members for number in member_seeds(seed)]
    return [Job(bot_path(root, study, budget, bot.name, n), bot_config(plan, bot, n)) for bot, n in wanted]


def bot_path(root: Path, study: LinStudy, budget: Budget, bot: str, seed: int) -> Path:
    """The run folder of a bot and a seed."""
    return root / study.home / budget / f"{bot}-s{seed}"


def bot_config(plan: LinPlan, bot: Bot, seed: int) -> SolveConfig:
    """The configuration of a bot's run. Raises ConfigError if the plan names an unknown setting."""
    return solve_config_from_table(nested({**plan.settings, **bot.changes, "seed": seed}))


def member_seeds(seed: int) -> range:
    """The seeds of an ensemble's members; every seed of a study has separate members."""
    return range(MEMBERS * seed, MEMBERS * (seed + 1))


def measures_of(root: Path, study: LinStudy, budget: Budget, seed: int) -> list[Measure]:
    """The measures of a seed's runs in addition to their own metrics."""

    def run(bot: str, number: int) -> str:
        return str(bot_path(root, study, budget, bot, number))

    def four(bot: str, rule: str) -> str:
        return f"ensemble:{rule}:{','.join(run(bot, number) for number in member_seeds(seed))}"

    if study.kind == "shapes":
        pairs = combinations((bot.name for bot in study.plans[budget].bots), 2)
        return [Measure(pair, (run(pair[0], seed), run(pair[1], seed)), seed) for pair in pairs]
    if study.kind == "exact":
        return [Measure((arm,), (four(one.member, one.rule),), seed) for arm, one in ENSEMBLES.items()]
    (bot,) = study.plans[budget].members
    if study.kind == "ensemble":
        whole = four(bot.name, "sum")
        return [Measure((style,), (whole, f"{style}:{whole}"), seed) for style in STYLES]
    return [
        Measure((str(place), style), (run(bot.name, number), f"{style}:{run(bot.name, number)}"), number)
        for place, number in enumerate(member_seeds(seed))
        for style in STYLES
    ]


def measure_seed(root: Path, study: LinStudy, budget: Budget, seed: int, say: Say) -> int:
    """Make a seed's missing matches and evaluations; returns their number."""
    wanted = measures_of(root, study, budget, seed)
    missing = [one for one in wanted if recorded(root, study, budget, seed, one.key) is None]
    if not missing:
        return 0
    names = list(dict.fromkeys(name for one in missing for name in one.players))
    players = dict(zip(names, load_players(names, "average", say), strict=True))
    plan = study.plans[budget]
    for one in missing:
        say(f"{study.name}, seed {seed}: {' against '.join(one.key)}")
        facts = _measure([players[name] for name in one.players], one.seed, plan)
        write_record(_file(root, study, budget, seed, one.key), _terms(study, plan), facts)
    return len(missing)


def _measure(players: list[Policy], seed: int, plan: LinPlan) -> dict[str, Any]:
    """A match or an exact evaluation, as data."""
    threads = int(plan.settings["runtime.threads"])
    policy = players[0]
    if len(players) == 2:
        return TournamentTerms(hands=plan.deals, seed=seed, threads=threads).play(policy, players[1]).facts()
    if isinstance(policy.game, LadderGame):
        raise GameError(f"The exact exploitability of {policy.game.name} is out of reach.")
    return asdict(exploitability(policy, threads=threads))


def recorded(root: Path, study: LinStudy, budget: Budget, seed: int, key: Key) -> dict[str, Any] | None:
    """The recorded result of a measure; None if it was not made with the plan's terms."""
    return read_record(_file(root, study, budget, seed, key), _terms(study, study.plans[budget]))


def records_folder(root: Path, study: LinStudy, budget: Budget) -> Path:
    """The folder of the study's matches and evaluations."""
    return root / study.name / budget / "measured"


def _file(root: Path, study: LinStudy, budget: Budget, seed: int, key: Key) -> Path:
    return records_folder(root, study, budget) / f"s{seed}-{'-against-'.join(key)}.json"


def _terms(study: LinStudy, plan: LinPlan) -> dict[str, Any]:
    """The terms with which a record must agree: the settings of its runs and of its match."""
    bots = {bot.name: dict(bot.changes) for bot in (*plan.bots, *plan.members)}
    settings = {key: value for key, value in plan.settings.items() if not key.startswith(("runtime.", "evaluation."))}
    changes = {name: {k: v for k, v in own.items() if not k.startswith("evaluation.")} for name, own in bots.items()}
    return {"study": study.name, "deals": plan.deals, "settings": settings, "bots": changes}
