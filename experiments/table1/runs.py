"""Run table 1 of the Deep CFR paper: heads-up limit hold'em against Linear MCCFR on three card abstractions.

The paper does not specify its abstractions, except by 3.3e6, 3.3e7 and 3.3e8 buckets for more than 1e14 decisions. 169
hands before the flop and B buckets in each later round make 21 * 169 + 16,562 * B triples of a decision, a bucket and an
action. B = 200, 2,000 and 20,000 give these numbers, and the same B give those of the paper's figure 2 on flop hold'em.

All results are in folders below a root: runs as in other studies, and one JSON file for each match.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deepcfr.abstraction import make
from deepcfr.abstraction.buckets import table_bytes
from deepcfr.config import EvaluationConfig, RunConfig, RuntimeConfig, SolveConfig, TabularConfig, config_from_table
from deepcfr.defaults import default_config
from deepcfr.evaluation.match import sampled_match
from deepcfr.evaluation.match.boards import dealer_value
from deepcfr.files import json_bytes, write_atomically
from deepcfr.games.poker import PokerGame
from deepcfr.games.presets import load_rules
from deepcfr.policies.base import Policy
from deepcfr.policies.styles import scripted_policy
from deepcfr.runs.costs import tables_refusal
from deepcfr.runs.folder import RunFolder
from deepcfr.solvers import mccfr
from experiments.grid import Job, Observing, Say, run_grid
from experiments.kept_results import read_record, write_record
from experiments.studies import Budget

NAME = "table1"
MARGIN = 2.0  # of every value in the paper's table, mbb/g
NFSP, NFSP_PUBLISHED = "nfsp", 43.0  # of its folder, and what Deep CFR gains against NFSP in the paper, mbb/g
MATCH_SEED = 0
ITSELF = "itself"  # name of the match for the value of the first seat
STYLES = ("call", "uniform")  # scripted styles that any solver should beat
_SAVE_SECONDS = 600  # between checkpoints of tables: the largest take 2.6 GB each


@dataclass(frozen=True)
class Baseline:
    """Linear MCCFR on one abstraction."""

    size: str  # abstract decisions in the paper's words
    buckets: int  # of each round with board cards
    published: float | None  # what the paper's Deep CFR gains against it, mbb/g, stated in table 1; None if not there
    published_nfsp: float | None  # what its NFSP gains
    iterations: int  # of `traversals` for each player; 0 excludes it from the budget
    traversals: int = 20_000
    minutes: float = 0.0  # time limit; 0 for none

    @property
    def name(self) -> str:
        """The name of its folder."""
        return f"mccfr-{self.buckets}"


@dataclass(frozen=True)
class Plan:
    """The table at one budget; the game is that of `deep`."""

    deep: RunConfig
    baselines: tuple[Baseline, ...]
    hands: int  # deals of a match, each played in both seats
    boards: int  # runouts for the first seat's value
    nfsp: RunConfig | None = None  # None for no NFSP


# not in the paper: the result of a minute with the simplest abstraction
MINUTE = Baseline("1.7·10⁷", 1_000, None, None, 1_000_000, minutes=1.0)


def _baselines(*iterations: int, traversals: int) -> tuple[Baseline, ...]:
    sizes, buckets = ("3.3·10⁶", "3.3·10⁷", "3.3·10⁸"), (200, 2_000, 20_000)
    rows = zip(sizes, buckets, (6.0, -6.0, -11.0), (-40.0, -49.0, -55.0), iterations, strict=True)
    return tuple(Baseline(*row, traversals=traversals) for row in rows)


# Section 5.2 for HULH, as in the recipe hulh-paper. The paper does not say how many iterations and traversals it took
# there; the defaults are those of its flop hold'em.
_PAPER_FIT = {"steps": 32_000, "batch_size": 20_000}
PAPER = config_from_table(
    {
        "game": "hulh",
        "network": {"suits": "raw", "card_embedding": True},
        "advantage": _PAPER_FIT,
        "average": _PAPER_FIT,
        "runtime": {"device": "cuda", "threads": 16},
    }
)


def _nfsp(deep: RunConfig, iterations: int, reservoir: int) -> RunConfig:
    """NFSP with the networks and runtime settings of `deep`; its own settings are not tuned to limit hold'em."""
    start = default_config(deep.game, "nfsp")
    settings = dataclasses.replace(start.nfsp, iterations=iterations, reservoir_capacity=reservoir)
    runtime = dataclasses.replace(start.runtime, device=deep.runtime.device, threads=deep.runtime.threads)
    return dataclasses.replace(
        start, nfsp=settings, network=deep.network, evaluation=EvaluationConfig(), runtime=runtime
    )


_QUICK = default_config("hulh")
PLANS: Mapping[Budget, Plan] = {
    "quick": Plan(
        _QUICK,
        (*_baselines(4_000, 4_000, 4_000, traversals=20_000), MINUTE),
        hands=1_000_000,
        boards=200,
        nfsp=_nfsp(_QUICK, 600, 10_000_000),
    ),
    "paper": Plan(
        PAPER,
        _baselines(20_000, 40_000, 80_000, traversals=50_000),
        hands=4_000_000,
        boards=2_000,
        nfsp=_nfsp(PAPER, 8_000, 40_000_000),
    ),
}


# Running


@dataclass(frozen=True)
class Progress:
    """The result of a call of `run_table`."""

    ran: int  # runs made or finished by this call
    there: int  # runs finished before
    matches: int  # played by this call
    left_out: tuple[str, ...]  # one sentence for each baseline that is not played
    finished: bool  # False after an interrupt


def run_table(
    root: Path,
    budget: Budget,
    seeds: int,
    observer: Observing,
    say: Say,
    plan: Plan | None = None,
) -> Progress:
    """Make the missing parts of the table: runs of Deep CFR, baselines, matches; existing ones are kept.

    `plan` replaces that of the budget. Baselines have one seed, and a match one sample of deals.
    Raises the errors of runs and matches.
    """
    plan = plan or PLANS[budget]
    folder = root / NAME / budget
    left_out = {b.name: reason for b in plan.baselines if (reason := reason_to_leave_out(plan, b))}
    for sentence in left_out.values():
        say(sentence)
    write_atomically(folder / "left-out.json", json_bytes(left_out))
    rivals = [b for b in plan.baselines if b.name not in left_out]
    ran = there = matches = 0
    for seed in range(seeds):
        jobs = [deep_job(folder, plan, seed), *(rival_jobs(folder, plan, rivals) if seed == 0 else ())]
        summary = run_grid(jobs, observer, say)
        ran, there = ran + summary.ran, there + summary.there
        if not summary.finished:
            return Progress(ran, there, matches, tuple(left_out.values()), finished=False)
        matches += play(folder, plan, rivals, deep_name(seed), say)
    if plan.nfsp:
        matches += play(folder, plan, rivals, NFSP, say)
    return Progress(ran, there, matches, tuple(left_out.values()), finished=True)


def deep_name(seed: int) -> str:
    """The name of Deep CFR's folder with a seed."""
    return f"deep-cfr-s{seed}"


def deep_job(folder: Path, plan: Plan, seed: int) -> Job:
    """The run of Deep CFR with a seed."""
    return Job(folder / deep_name(seed), dataclasses.replace(plan.deep, seed=seed))


def baseline_job(folder: Path, plan: Plan, baseline: Baseline) -> Job:
    """The run of a baseline on an abstraction of its own."""
    settings = TabularConfig(
        "mccfr",
        baseline.iterations,
        traversals=baseline.traversals,
        abstraction=str(folder / f"abstraction-{baseline.buckets}"),
    )
    runtime = RuntimeConfig(
        threads=plan.deep.runtime.threads,
        minutes=baseline.minutes,
        checkpoint_every=1,
        checkpoint_seconds=_SAVE_SECONDS,
        keep=1,
    )
    config = SolveConfig(plan.deep.game, 0, settings, EvaluationConfig(), runtime)
    return Job(folder / baseline.name, config, baseline.buckets)


def rival_jobs(folder: Path, plan: Plan, baselines: Sequence[Baseline]) -> tuple[Job, ...]:
    """The runs of those baselines, and of NFSP if the plan has it."""
    nfsp = [Job(folder / NFSP, plan.nfsp)] if plan.nfsp else []
    return (*(baseline_job(folder, plan, baseline) for baseline in baselines), *nfsp)


def rival_names(plan: Plan, baselines: Sequence[Baseline], player: str) -> tuple[str, ...]:
    """The opponents of a row: baselines, and for a run of Deep CFR also NFSP, scripted styles, and itself."""
    others = () if player == NFSP else (*([NFSP] if plan.nfsp else []), *STYLES, ITSELF)
    return (*(b.name for b in baselines), *others)


def reason_to_leave_out(plan: Plan, baseline: Baseline) -> str | None:
    """A sentence with the reason why a baseline is not played, and its cost; None if it is played."""
    rules = load_rules(plan.deep.game)
    counts = make.bucket_counts(rules, (baseline.buckets,))
    cost = make.cost(rules, counts)
    needed, beside = mccfr.memory_bytes(PokerGame(rules), counts, "float32"), table_bytes(rules, counts)
    if reason := make.refusal(cost):
        return f"{baseline.size} abstract decisions: {reason}"
    if reason := tables_refusal(rules.name, "float32", needed, beside):
        return f"{baseline.size} abstract decisions: {reason}."
    if baseline.iterations:
        return None
    threads = plan.deep.runtime.threads
    return (
        f"{baseline.size} abstract decisions are not part of this budget: the abstraction would take "
        f"about {cost.seconds(threads) / 60:.0f} minutes on {threads} threads and up to {cost.bytes / 1e9:.1f} GB, the "
        f"tables {needed / 1e9:.1f} GB."
    )


def play(folder: Path, plan: Plan, rivals: Sequence[Baseline], player: str, say: Say) -> int:
    """Play the missing matches of a row, the name of a run's folder; returns their number."""
    names = rival_names(plan, rivals, player)
    missing = [name for name in names if recorded(folder, plan, player, name) is None]
    if not missing:
        return 0
    policy = _policy(folder / player, say)
    threads = plan.deep.runtime.threads
    for name in missing:
        if name == ITSELF:
            say(f"{folder / player} against {name}: {plan.boards:,} boards")
            mean, interval = dealer_value(policy, plan.boards, MATCH_SEED, threads=threads)
            facts: dict[str, Any] = {"mean": mean, "interval": interval, "unit": policy.game.milli_unit}
        else:
            say(f"{folder / player} against {name}: {plan.hands:,} deals")
            other = scripted_policy(name, policy.game) if name in STYLES else _policy(folder / name, say)
            facts = sampled_match(policy, other, plan.hands, MATCH_SEED, threads=threads).facts()
        write_record(_match_file(folder, player, name), _terms(plan, player, name), facts)
    return len(missing)


def recorded(folder: Path, plan: Plan, player: str, name: str) -> dict[str, Any] | None:
    """The recorded result of a player's match against `name`; None if none was played on these terms."""
    return read_record(_match_file(folder, player, name), _terms(plan, player, name))


def _policy(path: Path, say: Say) -> Policy:
    return RunFolder.open(path).load_policy("own", say)[0]


def _match_file(folder: Path, player: str, name: str) -> Path:
    return folder / "matches" / f"{player}-against-{name}.json"


def _terms(plan: Plan, player: str, name: str) -> dict[str, Any]:
    """The terms with which a recorded match must agree; runs are checked against the plan before they play."""
    baseline = next((b for b in plan.baselines if b.name == name), None)
    size = {"boards": plan.boards} if name == ITSELF else {"hands": plan.hands}
    terms: dict[str, Any] = size | {"seed": MATCH_SEED}
    nfsp = [plan.nfsp.iterations, plan.nfsp.nfsp.episodes] if plan.nfsp else []
    if player == NFSP:
        terms["nfsp"] = nfsp
    else:
        terms["iterations"] = plan.deep.iterations
    rival = [baseline.iterations, baseline.traversals, baseline.minutes] if baseline else []
    return terms | {"rival": nfsp if name == NFSP else rival}
