"""The paper's table of matches: its abstractions' sizes, and a small cousin of it that is run, read and written."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from deepcfr.abstraction import make
from deepcfr.abstraction.make import bucket_counts
from deepcfr.config import (
    AdvantageFitConfig,
    CFRConfig,
    ExternalSampling,
    FitConfig,
    MemoryConfig,
    NetworkConfig,
    NFSPConfig,
    PublicChanceSampling,
    RunConfig,
    RuntimeConfig,
    SolveConfig,
    load_config,
)
from deepcfr.evaluation import limits
from deepcfr.evaluation.match import sampled_match
from deepcfr.evaluation.match.boards import dealer_value
from deepcfr.games.poker import PokerGame
from deepcfr.games.presets import load_rules
from deepcfr.policies.styles import scripted_policy
from deepcfr.runs import costs
from deepcfr.runs.folder import RunFolder
from deepcfr.runs.metrics import read_metrics
from deepcfr.solvers import mccfr
from experiments.reproduction.page import write_reproduction
from experiments.table1 import page as table1_report
from experiments.table1.page import read_table, read_tables, table_lines
from experiments.table1.runs import (
    PAPER,
    PLANS,
    Baseline,
    Plan,
    Progress,
    baseline_job,
    reason_to_leave_out,
    run_table,
)
from report.conftest import Silent

# Heads-up limit hold'em from ten cards, with one private card.
COUSIN = """GAMEDEF
limit
numPlayers = 2
numRounds = 4
blind = 1 2
raiseSize = 2 2 4 4
firstPlayer = 1 2 2 2
maxRaises = 1 1 1 1
numSuits = 2
numRanks = 5
numHoleCards = 1
numBoardCards = 0 1 1 1
END GAMEDEF
"""
FIT = FitConfig(steps=4, batch_size=16)
ADVANTAGE = AdvantageFitConfig(**vars(FIT))
BOARDS, HANDS = 6, 300


def plan_of(folder: Path) -> Plan:
    game = folder / "cousin.game"
    game.write_text(COUSIN)
    deep = RunConfig(
        game=str(game),
        cfr=CFRConfig(iterations=2, first_round="table"),
        sampling=ExternalSampling(traversals=20),
        memory=MemoryConfig(advantage_capacity=500, strategy_capacity=500),
        network=NetworkConfig(width=8, card_width=1),
        advantage=ADVANTAGE,
        average=FIT,
        runtime=RuntimeConfig(threads=1, checkpoint_every=1),
    )
    baselines = (Baseline("small", 3, 6.0, -40.0, 20, 50), Baseline("large", 4, -11.0, -55.0, 0))
    nfsp = RunConfig(
        game=str(game),
        solver="nfsp",
        nfsp=NFSPConfig(iterations=2, episodes=8, replay_capacity=100, reservoir_capacity=100, batch_size=16),
        network=deep.network,
        runtime=RuntimeConfig(threads=1, checkpoint_every=2),
    )
    return Plan(deep, baselines, HANDS, BOARDS, nfsp)


@contextmanager
def silent(_others: int) -> Iterator[Silent]:
    yield Silent()


def make_table(root: Path, plan: Plan, seeds: int = 2) -> Progress:
    return run_table(root, "quick", seeds, silent, lambda _: None, plan)


@pytest.fixture(autouse=True)
def out_of_reach(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in the large game, no run is evaluated exactly."""
    monkeypatch.setattr(limits, "MOST_BOARDS", 100)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Plan]:
    root = tmp_path_factory.mktemp("table")
    plan = plan_of(root)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(limits, "MOST_BOARDS", 100)
        progress = make_table(root, plan)
    assert (progress.ran, progress.there, progress.matches, progress.finished) == (4, 0, 11, True)
    return root, plan


# Sizes


@pytest.mark.parametrize(("position", "size"), [(0, 3.3e6), (1, 3.3e7), (2, 3.3e8)])
def test_the_baselines_have_the_papers_sizes(position: int, size: float) -> None:
    (buckets,) = {plan.baselines[position].buckets for plan in PLANS.values()}
    rules = load_rules("hulh")
    counts = bucket_counts(rules, (buckets,))
    assert counts == (169, buckets, buckets, buckets)
    pairs = mccfr.memory_bytes(PokerGame(rules), counts, "float64") / 16  # regrets and averages of 8 bytes
    assert pairs == pytest.approx(size, rel=0.01)


def test_the_papers_configuration_is_the_file() -> None:
    assert load_config("hulh-paper") == PAPER
    assert (PAPER.advantage.steps, PAPER.advantage.batch_size, PAPER.sampling.traversals) == (32_000, 20_000, 10_000)
    assert asdict(PAPER.average).items() <= asdict(PAPER.advantage).items()
    assert PAPER.memory == MemoryConfig("reservoir", 40_000_000, 40_000_000)


def test_what_does_not_fit_is_refused_with_its_figures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = PLANS["paper"]
    quick = reason_to_leave_out(PLANS["quick"], replace(PLANS["quick"].baselines[2], iterations=0))
    assert quick is not None
    assert "not part of this budget" in quick
    assert "the tables 2.6 GB" in quick
    monkeypatch.setattr(costs, "usable_memory", lambda: 3_000_000_000)
    tables = "The tables of hulh in float32 need 2.6 GB, and its abstraction 0.4 GB, and there are 3.0 GB."
    reasons = [reason_to_leave_out(plan, b) for b in plan.baselines[1:]]
    assert reasons == [None, f"3.3·10⁸ abstract decisions: {tables}"]
    monkeypatch.setattr(make, "usable_memory", lambda: 1_000_000_000)
    reason = reason_to_leave_out(plan, plan.baselines[0])
    assert reason is not None
    assert "The abstraction needs up to 1.4 GB of memory, and there are 1.0 GB" in reason
    small = plan_of(tmp_path)
    monkeypatch.setattr(make, "usable_memory", lambda: 1)
    progress = make_table(tmp_path, small, seeds=1)
    assert (progress.ran, progress.matches, len(progress.left_out)) == (
        2,
        4,
        2,
    )  # Deep CFR and NFSP; two styles, NFSP and itself
    assert not (tmp_path / "table1" / "quick" / "mccfr-3").exists()


# Runs and matches


def test_baselines_are_linear_mccfr_on_four_rounds_of_buckets(made: tuple[Path, Plan]) -> None:
    root, plan = made
    run = RunFolder.open(root / "table1" / "quick" / "mccfr-3")
    assert isinstance(run.config, SolveConfig)
    assert (run.config.solve.algorithm, run.config.solve.weighting) == ("mccfr", "linear")
    _, solver = run.load_policy("average", pytest.fail)
    assert isinstance(solver, mccfr.MCCFR)
    assert solver.abstraction.counts == (5, 3, 3, 3)  # five ranks before any board card
    assert read_metrics(run.metrics_path)[-1]["iteration"] == 20
    assert baseline_job(root, plan, plan.baselines[0]).buckets == 3


def test_a_baseline_may_end_by_the_clock(tmp_path: Path) -> None:
    plan = plan_of(tmp_path)
    brief = Baseline("medium", 3, None, None, 1_000_000, 50, minutes=0.002)
    plan = replace(plan, baselines=(brief,))
    assert make_table(tmp_path, plan, seeds=1).finished
    assert make_table(tmp_path, plan, seeds=1).ran == 0
    last = read_metrics(tmp_path / "table1" / "quick" / "mccfr-3" / "metrics.jsonl")[-1]
    assert last["seconds"] >= 60 * brief.minutes
    assert last["iteration"] < brief.iterations
    lines = table_lines(read_table(tmp_path, "quick", plan))
    label = "| Linear MCCFR, medium abstract decisions, trained for 0.002 min | 3 | "
    (row,) = [line for line in lines if line.startswith(label)]
    assert "|  |" in row  # nothing of the paper's Deep CFR
    assert row.endswith(" |  |")  # nor of its NFSP


def test_what_is_recorded_is_what_the_policies_gain(made: tuple[Path, Plan]) -> None:
    folder = made[0] / "table1" / "quick"
    for seed in (0, 1):
        deep = RunFolder.open(folder / f"deep-cfr-s{seed}").load_policy("average", pytest.fail)[0]
        rivals = {
            "mccfr-3": RunFolder.open(folder / "mccfr-3").load_policy("average", pytest.fail)[0],
            "nfsp": RunFolder.open(folder / "nfsp").load_policy("average", pytest.fail)[0],
            "call": scripted_policy("call", deep.game),
            "uniform": scripted_policy("uniform", deep.game),
        }
        for name, rival in rivals.items():
            match = sampled_match(deep, rival, HANDS, 0)
            found = result(folder, seed, name)
            assert (found["mean"], found["interval"]) == pytest.approx((match.value, match.interval), abs=1e-9)
            assert found["interval"] > 0
        own = result(folder, seed, "itself")
        assert (own["mean"], own["interval"]) == pytest.approx(dealer_value(deep, BOARDS, 0), abs=1e-9)
    match = sampled_match(rivals["nfsp"], rivals["mccfr-3"], HANDS, 0)
    assert result(folder, None, "mccfr-3")["mean"] == pytest.approx(match.value, abs=1e-9)


def result(folder: Path, seed: int | None, name: str) -> dict[str, Any]:
    """The match of a seed of Deep CFR, or without a seed of NFSP."""
    player = "nfsp" if seed is None else f"deep-cfr-s{seed}"
    found: dict[str, Any] = json.loads((folder / "matches" / f"{player}-against-{name}.json").read_text())
    return found["result"]  # type: ignore[no-any-return]


def test_only_what_is_missing_is_done_again(made: tuple[Path, Plan]) -> None:
    root, plan = made
    again = partial(make_table, root, plan)
    assert again().ran == again().matches == 0
    assert again().there == 4
    file = root / "table1" / "quick" / "matches" / "deep-cfr-s1-against-call.json"
    before = file.read_text()
    file.unlink()
    assert again().matches == 1
    assert json.loads(file.read_text())["result"]["mean"] == json.loads(before)["result"]["mean"]
    file.write_text(before.replace(f'"hands": {HANDS}', '"hands": 5'))  # of other terms
    assert again().matches == 1


# The report


def test_the_table_stands_beside_the_papers(made: tuple[Path, Plan], monkeypatch: pytest.MonkeyPatch) -> None:
    root, plan = made
    folder = root / "table1" / "quick"
    monkeypatch.setitem(table1_report.EQUILIBRIUM, "cousin", (87.7, 89.7))
    lines = list(table_lines(read_table(root, "quick", plan)))
    rows = {"mccfr-3": "Linear MCCFR, small abstract decisions | 3", "nfsp": "NFSP | "}
    row = result(folder, None, "mccfr-3")
    nfsp = f"{row['mean']:+.1f} ± {row['interval']:.1f} | -40 ± 2"
    for (name, start), rest in zip(rows.items(), (f"+6 ± 2 | {nfsp}", "+43 ± 2 |  | "), strict=True):
        found = [result(folder, seed, name) for seed in (0, 1)]
        cells = " | ".join(f"{match['mean']:+.1f} ± {match['interval']:.1f}" for match in found)
        assert f"| {start} | {cells} | {rest} |" in lines
    large = "| Linear MCCFR, large abstract decisions | 4 | left out | left out | -11 ± 2 | left out | -55 ± 2 |"
    assert large in lines
    assert any(line.startswith("*Deep CFR*: 2 iterations of 20 traversals a player; a table for the") for line in lines)
    drawn = replace(
        plan.deep, sampling=PublicChanceSampling(boards=7), advantage=replace(ADVANTAGE, target="bootstrap")
    )
    (sentence,) = (
        line
        for line in table_lines(read_table(root, "quick", replace(plan, deep=drawn)))
        if line.startswith("*Deep CFR*: 2 iterations of 7 drawn boards a player; a table for the first round;")
    )
    assert "networks that keep sums (`advantage.target` = bootstrap)" in sentence
    without = list(table_lines(read_table(root, "quick", replace(plan, nfsp=None))))
    assert "| NFSP |  | not played | not played | +43 ± 2 |  |  |" in without
    assert any(line.startswith("* large abstract decisions are not part of this budget") for line in lines)
    assert any(line.startswith("| `mccfr-3` | 20 | ") for line in lines)
    own = result(folder, 0, "itself")
    value = f"{own['mean']:+.1f} ± {own['interval']:.1f} mbb/g"
    beside = "in equilibrium it is between 87.7 and 89.7."
    assert f"* Seed 0 against itself, on {BOARDS} runouts: the dealer gains {value}; {beside}" in lines


def test_what_is_missing_is_named(made: tuple[Path, Plan], tmp_path: Path) -> None:
    root, plan = made
    assert not read_tables(tmp_path)
    longer = replace(plan, deep=replace(plan.deep, cfr=replace(plan.deep.cfr, iterations=3)))
    table = read_table(root, "quick", longer)
    assert [line.split(":")[0] for line in table.missing] == ["`deep-cfr-s0`", "`deep-cfr-s1`"]
    assert table.missing[0].endswith("stopped at iteration 2 of 3")
    assert "| not played | not played | +6 ± 2 |" in "\n".join(table_lines(table))


def test_its_page_is_written_alone_where_there_are_no_other_runs(
    made: tuple[Path, Plan], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, plan = made
    monkeypatch.setattr(table1_report, "PLANS", {"quick": plan, "paper": plan})
    other = tmp_path / "reproduction.md"
    other.write_text("of other runs")
    page = tmp_path / "reproduction-table1.md"
    assert write_reproduction(root, tmp_path) == [page]
    assert other.read_text() == "of other runs"
    lines = page.read_text().splitlines()
    assert lines[0] == "# Table 1: heads-up limit hold'em against card abstractions"
    assert "## The quick budget" in lines
    assert "## The paper budget" not in lines
    assert [line for line in lines if line.startswith("| NFSP |")]
