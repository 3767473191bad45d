"""Deep CFR on boards: with exact tables in place of networks it is Linear CFR, and with networks it learns and resumes."""

from collections.abc import Callable
from dataclasses import replace
from math import comb
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pytest
import torch

from deepcfr.boards.boards import Board, Boards, kept_bytes
from deepcfr.boards.public_chance import BoardPass, RoundPart, traverse_boards
from deepcfr.boards.regret_kernels import match_regrets
from deepcfr.boards.rounds import RoundTree, round_trees
from deepcfr.config import (
    AdvantageFitConfig,
    CFRConfig,
    FitConfig,
    MemoryConfig,
    NetworkConfig,
    RunConfig,
    RuntimeConfig,
    SamplingConfig,
    config_problems,
)
from deepcfr.core.errors import GameError
from deepcfr.core.parallel import Workers
from deepcfr.core.types import HandSamples, Infosets, Samples
from deepcfr.game.cards import pack_cards
from deepcfr.game.poker import PokerGame
from deepcfr.game.presets import load_game
from deepcfr.game.rules import PRESETS, PokerRules
from deepcfr.measure.exploitability import exploitability
from deepcfr.network.memory import Memory
from deepcfr.policy.base import UniformPolicy
from deepcfr.solve.data import IterationRecord
from deepcfr.solve.deep_cfr import DeepCFR
from deepcfr.solve.first_round import FirstRoundTable
from deepcfr.solve.memories import HandMemories, InfosetMemories, board_bytes, panel_rows
from deepcfr.solve.vector_cfr import VectorCFR
from openspiel_poker import small_fhp
from tables import tabular

LEDUC = load_game("leduc")
Tables = dict[tuple[int, ...], npt.NDArray[np.float64]]


# Exact tables in place of networks
# ---------------------------------------------------------------------------------------


class Tabular:
    """Algorithm 1 with all boards, a table for the first round, and sums of `HandSamples` for the later ones."""

    def __init__(self, boards: Boards) -> None:
        self.boards = boards
        self.table = FirstRoundTable(boards.game, CFRConfig(weighting="linear", fallback="uniform"))
        self.regret, self.average = self._zeros(), self._zeros()

    def _zeros(self) -> list[Tables]:
        rounds = zip(self.boards.rounds, self.boards.kept, strict=True)
        return [{board.cards: np.zeros((tree.num_edges, len(board))) for board in boards} for tree, boards in rounds]

    def current(self, tree: RoundTree, board: Board) -> npt.NDArray[np.floating]:
        if board.round == 0:
            return self.table.strategy().on_board(board)
        return matched(tree, self.regret[board.round][board.cards])

    def averages(self, tree: RoundTree, board: Board) -> npt.NDArray[np.floating]:
        if board.round == 0:
            return self.table.average_strategy().on_board(board)
        return matched(tree, self.average[board.round][board.cards])

    def iterate(self, t: int) -> None:
        for player in (0, 1):
            settings = SamplingConfig(kind="public-chance", boards=100_000, samples=500, panel=True)
            found = traverse_boards(self.boards, self.current, player, settings, t, 77 * t + player, Workers(1))
            self.table.add_strategy(player, t)
            self.table.add_values(found.first_values, player, t)
            self._add_hands(found, player, t)

    def _add_hands(self, found: BoardPass, player: int, t: int) -> None:
        for round_ in range(1, len(self.boards.rounds)):
            edges = RoundPart.of(self.boards.rounds[round_], player).edges
            for sums, hands in ((self.regret, found.advantages), (self.average, found.strategies)):
                self._add_round(sums[round_], hands[round_], edges, round_, t)

    def _add_round(self, sums: Tables, hands: HandSamples, edges: npt.NDArray[np.int64], round_: int, t: int) -> None:
        packed, first = np.unique(pack_cards(hands.cards.numpy()), return_index=True)
        for board in self.boards.kept[round_]:
            row = np.searchsorted(packed, pack_cards(board.visible_cards))
            assert (packed[row] == pack_cards(board.visible_cards)).all()  # every hand was recorded
            sums[board.cards][edges] += t * hands.values.double().numpy()[first[row]].T


def matched(tree: RoundTree, weight: npt.NDArray[np.floating]) -> npt.NDArray[np.floating]:
    result = np.empty_like(weight)
    for node in range(len(tree.nodes)):
        match_regrets(tree.first_edge, node, weight, result)
    return result


def start_anywhere(tabular: Tabular, vector: VectorCFR) -> None:
    """The same random regrets for both, in each one's unit: then no actions are exactly as good as others."""
    rng = np.random.default_rng(0)
    rules = tabular.boards.game.rules
    for round_, boards in enumerate(vector.boards.kept):
        for board in boards:
            regret = vector._regrets[round_].load(board)
            regret[:] = rng.normal(size=regret.shape)
            for player in (0, 1):
                vector._regrets[round_].store(board, regret, player)
            if round_ == 0:
                tabular.table.regret[:] = regret
                continue
            others = comb(rules.num_cards - len(board.cards) - rules.hole_cards, rules.hole_cards)
            tabular.regret[round_][board.cards][:] = regret / others  # samples are shares of the opponent's hands


@pytest.mark.parametrize("rules", [PRESETS["leduc"], small_fhp(3, (1, 1), num_suits=3)], ids=["leduc", "small fhp"])
def test_with_exact_tables_the_solver_is_linear_cfr(rules: PokerRules) -> None:
    game = PokerGame(rules)
    exact = Tabular(Boards(game, merge=True, keep=True))
    vector = VectorCFR(game, tabular("linear-cfr", 8, precision="float64"))
    start_anywhere(exact, vector)
    for record in vector.iterations():
        exact.iterate(record.iteration)
        pairs: list[tuple[Callable[..., Any], Callable[..., Any]]] = [
            (exact.current, vector.current_policy().on_board),
            (exact.averages, vector.average_policy().on_board),
        ]
        for ours, theirs in pairs:
            for tree, boards in zip(exact.boards.rounds, exact.boards.kept, strict=True):
                for board in boards:
                    # samples are float32, and regret matching magnifies the rounding of small differences
                    np.testing.assert_allclose(ours(tree, board), theirs(tree, board), atol=1e-4)


# With networks
# -----------------------------------------------------------------------------------------------------------

FIT = FitConfig(steps=40, batch_size=64, learning_rate=3e-3, schedule="cosine")
ADVANTAGE = AdvantageFitConfig(**vars(FIT), refit="fine-tune")
CONFIG = RunConfig(
    game="leduc",
    iterations=18,
    cfr=CFRConfig(first_round="table", keep_networks=0),
    sampling=SamplingConfig(kind="public-chance", boards=3, samples=60),
    memory=MemoryConfig(advantage_capacity=10_000, strategy_capacity=10_000),
    network=NetworkConfig(kind="mlp", width=32, layers=2),
    advantage=ADVANTAGE,
    average=replace(FIT, steps=400),
    runtime=RuntimeConfig(threads=1),
)
BRIEF = replace(CONFIG, iterations=3, advantage=replace(ADVANTAGE, steps=8), average=replace(FIT, steps=8))


def solved(config: RunConfig, game: PokerGame = LEDUC) -> tuple[DeepCFR, list[IterationRecord]]:
    assert list(config_problems(config)) == []
    solver = DeepCFR(game, config)
    return solver, list(solver.iterations())


def with_settings(config: RunConfig, first_round: str = "table", **settings: Any) -> RunConfig:
    cfr = replace(config.cfr, first_round=first_round)  # type: ignore[arg-type]
    return replace(config, cfr=cfr, sampling=replace(config.sampling, **settings))


VARIANTS = {
    "infosets": replace(
        with_settings(CONFIG, decisions=8),
        advantage=replace(ADVANTAGE, batch_size=256),
        average=replace(CONFIG.average, batch_size=256),
    ),
    "panel": with_settings(CONFIG, panel=True),
    "no table": with_settings(CONFIG, first_round="network"),
}


@pytest.mark.parametrize("name", ["infosets", "panel"])
def test_a_short_run_is_far_less_exploitable_than_uniform_play(name: str) -> None:
    solver, _ = solved(VARIANTS[name])
    solver.fit_average()
    found = exploitability(solver.average_policy()).nash_conv
    assert found < 0.22 * exploitability(UniformPolicy(LEDUC)).nash_conv


@pytest.mark.parametrize("config", VARIANTS.values(), ids=list(VARIANTS))
def test_records_say_what_was_done(config: RunConfig) -> None:
    solver, records = solved(replace(config, iterations=2, advantage=BRIEF.advantage))
    advantages, strategies = solver.memories.sizes()
    assert records[-1].advantage_samples == advantages
    assert records[-1].strategy_samples == strategies > 0
    assert {record.traversals for record in records} == {2 * config.sampling.boards}
    assert solver.nodes_touched == sum(record.nodes_touched for record in records) > 0
    assert {record.trained for record in records} == {2 * 8 * 64}
    if isinstance(solver.memories, HandMemories):
        once = config.sampling.boards * config.sampling.samples
        times = 1 if config.sampling.panel else 2
        rounds = {(player, round_): len(memory) for (player, round_), memory in solver.memories.advantages.items()}
        assert rounds[0, 1] == pytest.approx(once * times, abs=4)
        assert ((0, 0) in rounds) == (config.cfr.first_round == "network")


def assert_same(one: DeepCFR, other: DeepCFR) -> None:
    for (name, mine), (same, theirs) in zip(one.memories.stores.items(), other.memories.stores.items(), strict=True):
        assert (name, mine.seen) == (same, theirs.seen)
        assert all(torch.equal(column, theirs.contents()[key]) for key, column in mine.contents().items())
    for network, twin in zip(one.advantage_networks, other.advantage_networks, strict=True):
        assert all(torch.equal(weight, twin.state_dict()[key]) for key, weight in network.state_dict().items())
    assert (one.table is None) == (other.table is None)
    if one.table and other.table:
        assert all(np.array_equal(array, other.table.arrays()[key]) for key, array in one.table.arrays().items())


@pytest.mark.parametrize("panel", [True, False])
def test_threads_change_what_is_collected_by_rounding_only(panel: bool) -> None:
    # fits too small to move random weights, so that the order of sums in a gradient cannot change the networks
    still = replace(with_settings(BRIEF, panel=panel), advantage=replace(ADVANTAGE, steps=1, learning_rate=1e-12))
    one, other = (solved(replace(still, runtime=replace(still.runtime, threads=n)))[0] for n in (1, 3))
    other.workers.shutdown()
    for (_, mine), (_, theirs) in zip(one.memories.stores.items(), other.memories.stores.items(), strict=True):
        for name, column in mine.contents().items():
            torch.testing.assert_close(column, theirs.contents()[name], atol=1e-3, rtol=1e-3)


def test_a_run_can_be_left_and_taken_up_again() -> None:
    solver = DeepCFR(LEDUC, BRIEF)
    next(solver.iterations())
    assert [record.iteration for record in solver.iterations()] == [2, 3]
    assert_same(solver, solved(BRIEF)[0])


@pytest.mark.parametrize(("average_weighting", "weights"), [("same", (1, 2, 3)), ("quadratic", (1, 4, 9))])
def test_a_panel_is_the_same_hands_with_the_weighted_mean_of_what_iterations_say(
    average_weighting: Literal["same", "quadratic"], weights: tuple[int, int, int]
) -> None:
    config = with_settings(BRIEF, panel=True, boards=2)
    config = replace(config, cfr=replace(config.cfr, average_weighting=average_weighting))
    solver = DeepCFR(LEDUC, config)
    assert isinstance(solver.memories, HandMemories)
    seen: list[dict[str, dict[str, torch.Tensor]]] = []
    for _ in solver.iterations():
        seen.append(
            {name: {k: c.clone() for k, c in m.contents().items()} for name, m in solver.memories.stores.items()}
        )
    for name in seen[0]:
        assert all(torch.equal(now[name]["cards"], seen[0][name]["cards"]) for now in seen)
        # iteration t's own values, from the running means before and after it
        w = weights if name.startswith("strategy") else (1, 2, 3)
        sums = [sum(w[: n + 1]) * seen[n][name]["values"] for n in range(3)]
        own = [sums[0], (sums[1] - sums[0]) / w[1], (sums[2] - sums[1]) / w[2]]
        if name.startswith("strategy"):  # probabilities and reach are known to lie between 0 and 1
            assert all(float(values.min()) >= -1e-4 and float(values.max()) <= 1 + 1e-4 for values in own)
        assert not torch.allclose(own[1], own[0], atol=1e-3)
    one, two = (solver.memories.advantages[player, 1].contents()["cards"] for player in (0, 1))
    assert torch.equal(one, two)  # both players' hands


def test_a_discounted_panel_shrinks_its_sums_by_their_sign() -> None:
    linear = with_settings(BRIEF, panel=True)
    discounted = replace(linear, cfr=replace(linear.cfr, weighting="discounted"))
    rows: list[list[torch.Tensor]] = []
    for config in (linear, discounted):
        solver, values = DeepCFR(LEDUC, config), []
        for _ in solver.iterations():
            assert isinstance(solver.memories, HandMemories)
            values.append(solver.memories.advantages[0, 1].contents()["values"].double())
        rows.append(values)
    (_, second, third), (_, same, found) = rows
    # after two iterations both have the mean with weights 1 and 2, so iteration 3 plays the same strategies
    torch.testing.assert_close(same, second, rtol=1e-4, atol=1e-4)
    own = 2 * third - second
    positive = 2**1.5 / (2**1.5 + 1)
    shrunk = 1.5 * second * torch.where(second > 0, positive, 0.5)
    torch.testing.assert_close(found, (shrunk + own) / (1.5 * positive + 1), rtol=1e-3, atol=1e-3)
    assert not torch.allclose(found, third, atol=1e-2)
    assert discounted.cfr.of_averages == "quadratic"


def test_remembering_changes_nothing() -> None:
    class Forgetful(DeepCFR):
        def fit_advantages(self, t: int, player: int) -> Any:
            self.collector.remembered._kept.clear()
            self.collector.remembered._seen.clear()
            return super().fit_advantages(t, player)

    config = with_settings(BRIEF, panel=True)
    forgetful = Forgetful(LEDUC, config)
    for _ in forgetful.iterations():
        pass
    assert_same(forgetful, solved(config)[0])


def test_the_strategies_that_are_recorded_are_those_that_were_played() -> None:
    solver = DeepCFR(LEDUC, replace(BRIEF, advantage=replace(BRIEF.advantage, refit="scratch")))
    assert isinstance(solver.memories, InfosetMemories)
    for t in (1, 2):
        policy = solver.current_policy()
        next(solver.iterations())
        found = solver.memories.strategies
        found = found[(found.filled("iteration") == t).nonzero()[:, 0]]
        assert len(found) > 50
        torch.testing.assert_close(policy.probabilities(found.infosets).float(), found.target, atol=1e-4, rtol=0)


def test_merged_targets_are_means_over_all_decisions_of_an_infoset() -> None:
    config = with_settings(BRIEF, decisions=3)
    solver, _ = solved(replace(config, advantage=replace(config.advantage, draw="merged")))
    assert isinstance(solver.memories, InfosetMemories)
    memory = solver.memories.advantages[0]
    samples, weight = memory[slice(None)], memory.filled("iteration").float()
    apart = Memory(LEDUC.encoding, 3 * len(memory))
    infosets = Infosets(samples.infosets.node.flatten(), samples.infosets.cards.repeat_interleave(3, 0))
    apart.add(Samples(infosets, samples.target.flatten(0, 1), samples.iteration.repeat_interleave(3)), 0)
    expected = apart.mean_targets(weight.repeat_interleave(3))
    torch.testing.assert_close(memory.mean_targets(weight).flatten(0, 1), expected)
    assert not torch.allclose(expected, apart.filled("target"))


# Memory
# ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("config", VARIANTS.values(), ids=list(VARIANTS))
def test_memory_is_counted_as_it_is_allocated(config: RunConfig) -> None:
    solver = DeepCFR(LEDUC, config)
    columns = [column for _, memory in solver.memories.stores.items() for column in memory.columns.values()]
    assert DeepCFR.memory_bytes(LEDUC, config) == sum(column.nbytes for column in columns)


def test_a_panel_takes_its_hands_and_no_more_whatever_the_capacity() -> None:
    small, large = (
        replace(VARIANTS["panel"], memory=MemoryConfig(advantage_capacity=n, strategy_capacity=n)) for n in (10, 10**10)
    )
    assert DeepCFR.memory_bytes(LEDUC, small) == DeepCFR.memory_bytes(LEDUC, large)
    assert panel_rows(LEDUC, small.sampling) == [61, 3 * 61]
    solver = solved(replace(small, iterations=1, advantage=BRIEF.advantage))[0]
    assert solver.memories.sizes() == ((180, 180), 360)


def test_boards_are_counted_with_what_is_remembered_of_them() -> None:
    game, rounds = load_game("fhp"), round_trees(load_game("fhp"))
    few, panel = (
        SamplingConfig(kind="public-chance", boards=100),
        SamplingConfig(kind="public-chance", boards=100, panel=True),
    )
    assert board_bytes(game, few, rounds) == kept_bytes(game.rules, merge=True) < 0.3e9
    remembered = board_bytes(game, panel, rounds) - board_bytes(game, few, rounds)
    assert remembered == 100 * 4 * rounds[1].num_edges * 1176
    solver, _ = solved(with_settings(BRIEF, panel=True))
    taken = sum(array.nbytes for array in solver.collector.remembered._kept.values())
    settings = solver.config.sampling
    assert 0 < taken <= board_bytes(LEDUC, settings, round_trees(LEDUC)) - kept_bytes(LEDUC.rules, merge=True)


# Refusals
# ----------------------------------------------------------------------------------------------------------------


def test_games_that_are_not_poker_or_deal_a_board_first_are_refused() -> None:
    first = PokerGame(replace(LEDUC.rules, name="board first", board_cards=(1, 0)))
    with pytest.raises(GameError, match="needs a round without public cards, but board first deals 1 before it"):
        DeepCFR(first, BRIEF)
    DeepCFR(first, with_settings(BRIEF, first_round="network"))
    other = load_game("kuhn")
    assert solved(with_settings(BRIEF, panel=True, first_round="network"), other)[0].memories.sizes()[0] == (60, 60)
