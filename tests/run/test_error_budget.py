"""The error budget: examples of a solved game are what they claim, parts are exact, and the verdict follows the numbers."""

import json
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
import torch

from command_line import deepcfr
from deepcfr.boards.boards import Boards
from deepcfr.boards.public_chance import BoardSampler
from deepcfr.boards.sweep import sweep
from deepcfr.cli.player_records import BudgetPart
from deepcfr.config import FitConfig, NetworkConfig, RunConfig, SamplingConfig
from deepcfr.core.errors import ConfigError, GameError
from deepcfr.core.parallel import Workers
from deepcfr.core.types import TERMINAL, Infosets
from deepcfr.defaults import default_config
from deepcfr.game.cards import canonical_cards, pack_cards
from deepcfr.game.poker import PokerGame, Suits
from deepcfr.game.rules import PRESETS, PokerRules
from deepcfr.measure.deviations import ALL, DecisionSet, deviations
from deepcfr.measure.exact_average import draw_hands, draw_infosets, first_round_table, solved_examples
from deepcfr.measure.exploitability import exploitability
from deepcfr.policy.base import Policy, UniformPolicy
from deepcfr.policy.network import WithFirstRound
from deepcfr.policy.tables import RangePolicy
from deepcfr.run import error_budget as module
from deepcfr.run.error_budget import (
    SKIPPABLE,
    UNSPLIT,
    BudgetSettings,
    ErrorBudget,
    budget_lines,
    error_budget,
    explain_gaps,
    find_gaps,
    fit_solved,
    run_budget,
)
from deepcfr.run.folder import RunFolder
from deepcfr.solve.data import panel_stream
from deepcfr.solve.vector_cfr import VectorCFR
from openspiel_poker import small_fhp
from small_runs import TINY
from tables import finished, tabular

LEDUC = PRESETS["leduc"]
THREE_ROUNDS = replace(
    LEDUC,
    name="three rounds",
    board_cards=(0, 1, 1),
    first_player=(0, 1, 0),
    raise_size=(1, 2, 4),
    max_raises=(1, 1, 1),
    rank_symbols="",
)
COUSIN = small_fhp(3, (1, 2), num_suits=3)
MLP = NetworkConfig(kind="mlp", width=32, layers=2)
QUICK = FitConfig(steps=20, batch_size=64)


@pytest.fixture(scope="module", autouse=True)
def one_torch_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def solve(rules: PokerRules, iterations: int, algorithm: Any = "linear-cfr") -> VectorCFR:
    return finished(VectorCFR(PokerGame(rules), tabular(algorithm, iterations)))


@cache
def solved(rules: PokerRules, iterations: int) -> RangePolicy:
    return solve(rules, iterations).average_policy()


def run_config(game: str = "leduc", **sections: Any) -> RunConfig:
    return RunConfig(game=game, network=MLP, average=QUICK, **sections)


# Examples of a solved game.


def all_deals(rules: PokerRules) -> list[tuple[int, ...]]:
    deals: list[tuple[int, ...]] = [()]
    for size in (rules.hole_cards, rules.hole_cards, *rules.board_cards):
        deals = [
            (*deal, *new)
            for deal in deals
            for new in combinations([card for card in range(rules.num_cards) if card not in deal], size)
        ]
    return deals


def own_reach(policy: RangePolicy, game: PokerGame) -> dict[tuple[int, bytes], float]:
    """Chance times own reach of every infoset of `game`, from all of its deals: the plain definition."""
    dealt = np.array(all_deals(game.rules), np.uint8)
    views = game.deals_of(dealt).visible_cards.numpy()
    canonical = PokerGame(game.rules).deals_of(dealt).visible_cards
    found: dict[tuple[int, bytes], float] = {}

    def visit(node: int, reach: list[np.ndarray[Any, Any]]) -> None:
        actor, round_ = int(game.tree.actor[node]), int(game.tree.round[node])
        if actor == TERMINAL:
            return
        for row in range(len(dealt)):
            place = (node, views[row, actor, round_].tobytes())
            found[place] = found.get(place, 0.0) + reach[actor][row] / len(dealt)
        sigma = policy.probabilities(Infosets(torch.full((len(dealt),), node), canonical[:, actor, round_])).numpy()
        for action in np.flatnonzero(game.tree.legal[node]):
            after = list(reach)
            after[actor] = after[actor] * sigma[:, action]
            visit(int(game.tree.child[node, action]), after)

    visit(0, [np.ones(len(dealt)), np.ones(len(dealt))])
    return found


@pytest.mark.parametrize(
    ("rules", "first_round"), [(LEDUC, 0), (THREE_ROUNDS, 1), (COUSIN, 0)], ids=lambda value: getattr(value, "name", "")
)
def test_infosets_are_drawn_in_proportion_to_chance_and_own_reach(rules: PokerRules, first_round: int) -> None:
    policy, game, count = solved(rules, 3), PokerGame(rules), 20_000
    memory = draw_infosets(policy, game, count, stream=1, first_round=first_round)
    assert len(memory) == memory.capacity == count
    expected = {
        place: reach for place, reach in own_reach(policy, game).items() if game.tree.round[place[0]] >= first_round
    }
    whole = sum(expected.values())
    drawn: dict[tuple[int, bytes], int] = {}
    samples = memory[:]
    for node, cards in zip(samples.infosets.node.tolist(), samples.infosets.cards.numpy(), strict=True):
        drawn[node, cards.tobytes()] = drawn.get((node, cards.tobytes()), 0) + 1
    assert set(drawn) <= set(expected)
    # systematic draws: every infoset has its expected number, rounded down or up
    assert all(abs(drawn.get(place, 0) - count * reach / whole) < 1 + 1e-6 for place, reach in expected.items())


@pytest.mark.parametrize(
    ("rules", "first_round", "suits"),
    [(LEDUC, 0, "canonical"), (THREE_ROUNDS, 1, "raw"), (COUSIN, 1, "raw")],
    ids=lambda value: getattr(value, "name", ""),
)
def test_hands_are_drawn_by_chance_and_hold_strategy_and_own_reach(
    rules: PokerRules, first_round: int, suits: Suits
) -> None:
    policy, game, count = solved(rules, 3), PokerGame(rules, suits), 4_000
    memories = draw_hands(policy, game, count, stream=4, first_round=first_round)
    assert {round_ for _, round_ in memories.strategies} == set(range(first_round, rules.num_rounds))
    expected = own_reach(policy, PokerGame(rules))
    for (player, round_), memory in memories.strategies.items():
        assert len(memory) == count
        hands = memory[:]
        tree = policy.boards.rounds[round_]
        canonical = canonical_cards(hands.cards.numpy(), game.card_groups, rules.num_suits)
        edges = np.flatnonzero(tree.actor[tree.edge_node] == player)
        for n, node in enumerate(tree.nodes[tree.actor == player].tolist()):
            found: dict[bytes, float] = {}
            for cards, reach in zip(canonical, hands.reach[:, n].tolist(), strict=True):
                found[cards.tobytes()] = found.get(cards.tobytes(), 0.0) + reach
            # each hand is drawn as often as expected, rounded down or up, and counts with its reach of at most 1
            theirs = {cards: reach for (at, cards), reach in expected.items() if at == node}
            assert all(abs(found.get(cards, 0.0) - count * reach) < 1.02 for cards, reach in theirs.items())
            probabilities = policy.probabilities(
                Infosets(torch.full((count,), node), torch.from_numpy(canonical))
            ).numpy()
            here = edges[tree.nodes[tree.edge_node[edges]] == node]
            columns = np.searchsorted(edges, here)
            joint = probabilities[:, tree.edge_action[here]] * hands.reach[:, [n]].numpy()
            assert np.allclose(hands.values[:, columns], joint, atol=1e-3)


def test_targets_are_the_solved_strategy() -> None:
    policy, game = solved(COUSIN, 3), PokerGame(COUSIN, "raw")
    samples = draw_infosets(policy, game, 3_000, stream=2)[:]
    cards = torch.from_numpy(canonical_cards(samples.infosets.cards.numpy(), game.card_groups, COUSIN.num_suits))
    expected = policy.probabilities(Infosets(samples.infosets.node.long(), cards))
    assert torch.allclose(samples.target, expected.float(), atol=1e-6)
    assert samples.target.std() > 0.1


def test_raw_suits_are_drawn_evenly_among_all_renamings() -> None:
    policy, game, count = solved(COUSIN, 3), PokerGame(COUSIN, "raw"), 20_000
    samples = draw_infosets(policy, game, count, stream=3)[:]
    expected = own_reach(policy, game)
    whole = sum(expected.values())
    root = samples.infosets.cards[samples.infosets.node == 0].numpy()
    keys, times = np.unique(pack_cards(root), return_counts=True)
    hands = {int(pack_cards(np.frombuffer(c, np.uint8)[None])[0]): r for (n, c), r in expected.items() if n == 0}
    assert set(keys.tolist()) == set(hands)  # all 36 hands, each with its cards in ascending order
    share = np.array([hands[int(k)] for k in keys]) * count / whole
    chi_squared = float(((times - share) ** 2 / share).sum())
    assert chi_squared < 70  # 35 degrees of freedom: 1 in 2,500 is above


def test_the_table_of_the_first_round_is_the_solved_strategy() -> None:
    policy, game = solved(COUSIN, 3), PokerGame(COUSIN, "raw")
    played = WithFirstRound(UniformPolicy(game), first_round_table(policy, game))
    rows = torch.from_numpy(played.first_round.visible_cards)
    canonical = torch.from_numpy(canonical_cards(rows.numpy(), game.card_groups, COUSIN.num_suits))
    for node in played.first_round.tree.nodes.tolist():
        nodes = torch.full((len(rows),), node)
        expected = policy.probabilities(Infosets(nodes, canonical))
        assert torch.allclose(played.probabilities(Infosets(nodes, rows)), expected, atol=1e-6)


# What the architecture can represent.


SAMPLINGS = pytest.mark.parametrize(
    "sampling", [SamplingConfig(), SamplingConfig(kind="public-chance")], ids=["infosets", "hands"]
)


@SAMPLINGS
def test_a_wide_network_comes_near_the_solution_and_a_tiny_one_does_not(sampling: SamplingConfig) -> None:
    policy, game = solved(LEDUC, 200), PokerGame(LEDUC)
    batch = 512 if sampling.kind == "external" else 32
    plan = FitConfig(steps=250, batch_size=batch, learning_rate=3e-3, schedule="cosine")
    fitted = {}
    for width in (1, 64):
        network = NetworkConfig(kind="mlp", width=width, layers=2)
        config = RunConfig(game="leduc", network=network, average=plan, sampling=sampling)
        found, steps = fit_solved(game, config, policy, BudgetSettings())
        assert steps == plan.steps
        fitted[width] = exploitability(found).nash_conv
    exact = exploitability(policy).nash_conv
    assert exact < 50 < fitted[64] < exact + 500
    assert fitted[1] > 2 * fitted[64]


def test_a_run_with_a_table_for_its_first_round_has_the_solved_one_there() -> None:
    policy, game = solved(COUSIN, 30), PokerGame(COUSIN)
    config = run_config(cfr=replace(RunConfig().cfr, first_round="table"))
    found, _ = fit_solved(game, config, policy, BudgetSettings())
    assert isinstance(found, WithFirstRound)
    assert (found.first_round.probabilities == first_round_table(policy, game).probabilities).all()


@SAMPLINGS
def test_no_more_examples_are_drawn_than_asked_for_or_used(sampling: SamplingConfig) -> None:
    for most, count in ((None, 20 * 64), (10_000, 20 * 64), (100, 100)):
        found = solved_examples(
            solved(LEDUC, 3), PokerGame(LEDUC), run_config(sampling=sampling), QUICK, most, stream=5
        )
        assert len(found) == count


# Parts and gaps.


@pytest.fixture(scope="module")
def leduc_budget() -> tuple[ErrorBudget, dict[str, Policy]]:
    """A run whose iterates are well solved and whose average network is uniform."""
    game = PokerGame(LEDUC)
    policies: dict[str, Policy] = {"sd-cfr": solved(LEDUC, 60), "average": UniformPolicy(game)}
    settings = BudgetSettings(solve_iterations=40, steps=30)
    return error_budget(game, run_config(), 10, policies, settings, {"current": "It is lost."}), policies


def test_parts_are_the_exact_nash_conv_of_what_they_name(leduc_budget: tuple[ErrorBudget, dict[str, Policy]]) -> None:
    budget, policies = leduc_budget
    found = {part.name: part.nash_conv for part in budget.parts}
    assert list(found) == ["tabular", "solved", "fitted", "sd-cfr", "average"]
    for name, policy in {"tabular": solved(LEDUC, 10), "solved": solved(LEDUC, 40), **policies}.items():
        assert found[name] == pytest.approx(exploitability(policy).nash_conv, rel=1e-9), name
    assert found["fitted"] > found["solved"]
    assert budget.unmeasured == {"current": "It is lost."}
    assert (budget.deviating, budget.deviations[0].name) == ("average", ALL)
    assert budget.deviations[0].nash_conv == found["average"]


def test_the_average_network_is_measured_on_its_panel_too() -> None:
    game, policies = PokerGame(LEDUC), {"average": UniformPolicy(PokerGame(LEDUC))}
    skip = BudgetSettings(skip=frozenset({"tabular", "architecture", "deviations"}))

    def found(sampling: SamplingConfig) -> ErrorBudget:
        return error_budget(game, run_config(sampling=sampling), 10, policies, skip)

    budget = found(SamplingConfig(kind="public-chance", boards=2, panel=True))
    average, panel = budget.parts
    assert (average.name, panel.name) == ("average", "panel")
    boards = Boards(game, merge=True)
    sampler = BoardSampler(
        boards, SamplingConfig(kind="public-chance", boards=2, panel=True), panel_stream(run_config())
    )
    expected = sweep(boards, policies["average"].on_board, Workers(1), choose=sampler.choose)
    assert panel.nash_conv == pytest.approx(1000 * sum(expected.best_response))
    assert "2 boards of its panel" in panel.meaning
    (gap,) = [gap for gap in budget.gaps if gap.name == "panel"]
    assert gap.value == average.nash_conv - panel.nash_conv
    for other in (
        found(SamplingConfig(kind="public-chance", boards=3, panel=True)),  # that is all of them
        found(SamplingConfig(kind="public-chance", boards=2)),
        found(SamplingConfig()),
    ):
        assert [part.name for part in other.parts] == ["average"]


def test_the_largest_gap_is_named(leduc_budget: tuple[ErrorBudget, dict[str, Policy]]) -> None:
    budget, _ = leduc_budget
    gaps = {gap.name: gap.value for gap in budget.gaps}
    assert max(gaps, key=lambda name: gaps[name]) == "average network"
    assert budget.verdict[0].startswith(f"The average network limits: it adds {gaps['average network']:.3f} mA/g")


def test_gaps_along_the_method_add_up_to_the_average_network() -> None:
    parts = {"tabular": 100.0, "solved": 20.0, "fitted": 35.0, "sd-cfr": 130.0, "average": 190.0}
    gaps = {gap.name: (gap.formula, gap.value) for gap in find_gaps(parts)}
    assert gaps == {
        "iterations": ("tabular", 100.0),
        "iterates": ("sd-cfr - tabular", 30.0),
        "average network": ("average - sd-cfr", 60.0),
        "architecture": ("fitted - solved", 15.0),
    }
    without = {gap.name: gap.value for gap in find_gaps({k: v for k, v in parts.items() if k != "sd-cfr"})}
    assert without == {"iterations": 100.0, UNSPLIT: 90.0, "architecture": 15.0}
    assert find_gaps({"average": 190.0}) == []
    assert explain_gaps(find_gaps({"tabular": 3.0}), "mbb/g") == [
        "Too few parts were measured to say which of them limits."
    ]


@pytest.mark.parametrize(
    ("tabular", "sd_cfr", "average", "fitted", "words"),
    [
        (100, 130, 190, 35, ["The number of iterations limits: even exact CFR leaves 100.000 mbb/g (tabular)"]),
        (40, 130, 190, 35, ["The iterates limit (advantage networks and samples): they add 90.000 mbb/g"]),
        (40, 60, 190, 35, ["The average network limits: it adds 130.000 mbb/g", "15.000 mbb/g", "samples and fit"]),
        (
            40,
            60,
            190,
            95,
            ["The average network limits: it adds 130.000 mbb/g", "75.000 mbb/g", "can represent in that"],
        ),
    ],
)
def test_the_verdict_follows_the_gaps(
    tabular: float, sd_cfr: float, average: float, fitted: float, words: list[str]
) -> None:
    parts = {"tabular": tabular, "sd-cfr": sd_cfr, "average": average, "solved": 20.0, "fitted": fitted}
    said = " ".join(explain_gaps(find_gaps(parts), "mbb/g"))
    assert all(word in said for word in words), said


def test_a_run_of_raw_suits_is_set_beside_the_same_exact_solution() -> None:
    settings = BudgetSettings(skip=frozenset({"current", "deviations"}), solve_iterations=5, steps=10)
    config = replace(run_config(), network=replace(MLP, suits="raw"))
    budgets = [error_budget(PokerGame(LEDUC, suits), config, 3, {}, settings) for suits in ("canonical", "raw")]
    (tabular, first, _), (raw_tabular, raw_first, raw_fitted) = ([part.nash_conv for part in b.parts] for b in budgets)
    assert (tabular, first) == (raw_tabular, raw_first)
    assert raw_fitted > raw_first


# Refusals.


def test_settings_that_cannot_be_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    game, config = PokerGame(LEDUC), run_config()

    def refused(settings: BudgetSettings) -> str:
        with pytest.raises(ConfigError) as caught:
            error_budget(game, config, 10, {}, settings)
        (sentence,) = caught.value.problems
        return sentence

    assert "at least the 10 iterations of the run, but 9 are asked for" in refused(BudgetSettings(solve_iterations=9))
    assert "'steps' must be at least 1, but is 0" in refused(BudgetSettings(steps=0))
    assert "'threads' must be at least 1, but is -1" in refused(BudgetSettings(threads=-1))
    skipped = BudgetSettings(skip=frozenset({"average"}))
    assert refused(skipped) == "Deviations of the policy 'average' cannot be valued when it is skipped."
    monkeypatch.setattr(module, "usable_memory", lambda: 1_000)
    assert "GB, and there are 0.0 GB: skip tabular and architecture." in refused(BudgetSettings())


def test_a_missing_policy_is_named() -> None:
    settings = BudgetSettings(skip=frozenset({"tabular", "architecture", "current"}), deviate="sd-cfr")
    policies: dict[str, Policy] = {"current": UniformPolicy(PokerGame(LEDUC))}  # which is skipped
    budget = error_budget(PokerGame(LEDUC), run_config(), 10, policies, settings, {"sd-cfr": "None was kept."})
    assert (budget.parts, budget.deviating, budget.deviations, budget.gaps) == ((), None, (), ())
    assert set(budget.unmeasured) == {"sd-cfr", "deviations"}
    assert "sd-cfr    not measured: None was kept." in "\n".join(budget_lines(budget))


def test_runs_without_boards_or_networks_and_games_out_of_reach_are_refused(tmp_path: Path) -> None:
    tables = RunFolder.create(tmp_path / "solve", tabular(game="leduc"))
    with pytest.raises(ConfigError, match=r"needs a Deep CFR run, and '.*solve' is a run of a tabular solver\."):
        run_budget(tables, BudgetSettings(), pytest.fail)
    other = RunFolder.create(tmp_path / "nfsp", default_config("leduc", "nfsp"))
    with pytest.raises(ConfigError, match=r"needs a Deep CFR run, and '.*nfsp' is a run of NFSP\."):
        run_budget(other, BudgetSettings(), pytest.fail)
    large = RunFolder.create(tmp_path / "hulh", default_config("hulh"))
    with pytest.raises(GameError, match=r"An error budget is exact\. hulh has 51,979,200 boards"):
        run_budget(large, BudgetSettings(), pytest.fail)
    listed = RunFolder.create(tmp_path / "dice", RunConfig(game="openspiel:liars_dice"))
    with pytest.raises(GameError, match=r"for limit and pot betting, and 'liars_dice' has neither\."):
        run_budget(listed, BudgetSettings(), pytest.fail)


# The command.


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("budget") / "run"
    assert deepcfr("train", "leduc", "--out", path, "--iterations", 3, *TINY, "--cfr.weighting", "linear").status == 0
    return path


def test_the_command_measures_every_part_of_a_run(run: Path) -> None:
    outcome = deepcfr("error-budget", run, "--json", "--solve-iterations", 4, "--threads", 1)
    facts = outcome.json
    found = {part["name"]: part for part in facts["parts"]}
    assert set(found) == {"tabular", "solved", "fitted", "sd-cfr", "average", "current"}
    for name in ("sd-cfr", "average", "current"):
        alone = deepcfr("exploitability", run, "--json", "--policy", name).json
        assert found[name]["nash_conv"] == pytest.approx(alone["nash_conv"], rel=1e-6), name
    assert all(part["seconds"] > 0 for part in found.values())
    policy, _ = RunFolder.open(run).load_policy("average", pytest.fail)
    (expected,) = deviations(policy, [DecisionSet(ALL, None, None, np.ones(36, bool))])
    assert facts["deviations"][0]["gains"] == pytest.approx(list(expected.gains))
    assert facts["unmeasured"] == {}
    assert facts["verdict"]


def test_the_command_prints_what_the_object_holds(run: Path) -> None:
    arguments = ("error-budget", run, "--skip", "architecture", "current", "--deviate", "sd-cfr", "--threads", 1)
    outcome, facts = deepcfr(*arguments), deepcfr(*arguments, "--json").json
    assert outcome.status == 0
    for part in facts["parts"]:
        assert f"{part['nash_conv']:.3f}" in outcome.out
    for one in facts["deviations"]:
        assert f"{one['name']} " in outcome.out
        assert f"{one['nash_conv']:.3f}" in outcome.out
    assert facts["deviating"] == "sd-cfr"
    assert all(sentence in outcome.out for sentence in facts["verdict"])
    assert json.dumps(facts["parts"]).count("fitted") == 0


@pytest.mark.parametrize(("name", "algorithm"), [("deep-cfr+", "cfr+"), ("double-neural", "cfr")])
def test_a_run_that_keeps_sums_is_set_beside_its_own_kind_of_tables(name: str, algorithm: Any, tmp_path: Path) -> None:
    path = tmp_path / "plus"
    assert deepcfr("train", "leduc", "--solver", name, "--out", path, "--iterations", 3, *TINY).status == 0
    facts = deepcfr("error-budget", path, "--json", "--skip", "architecture", "--threads", 1).json
    tables, *others = facts["parts"]
    assert {part["name"] for part in others} == {"sd-cfr", "average", "current"}
    solver = finished(VectorCFR(PokerGame(LEDUC), tabular(algorithm, 3)))
    assert tables["nash_conv"] == pytest.approx(exploitability(solver.average_policy()).nash_conv)


def test_the_parts_of_the_command_are_those_that_can_be_skipped() -> None:
    assert get_args(BudgetPart) == SKIPPABLE
