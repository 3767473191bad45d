"""Deep CFR on boards: what its memories hold, count and remember."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from deepcfr.boards.boards import kept_bytes
from deepcfr.boards.rounds import round_trees
from deepcfr.config import MemoryConfig, RunConfig, SamplingConfig, config_problems
from deepcfr.core.types import Infosets, Samples
from deepcfr.game.poker import PokerGame
from deepcfr.game.presets import load_game
from deepcfr.network.memory import Memory
from deepcfr.solve.data import IterationRecord
from deepcfr.solve.deep_cfr import DeepCFR
from deepcfr.solve.memories import HandMemories, InfosetMemories, board_bytes, panel_rows
from tables import changed, finished, small_config

LEDUC = load_game("leduc")


BRIEF = small_config(
    game="leduc",
    sampling=SamplingConfig(kind="public-chance", boards=3, samples=60),
    cfr={"first_round": "table", "keep_networks": 0, "weighting": "linear"},
    memory={"capacity": 10_000},
    network={"kind": "mlp", "width": 32, "layers": 2},
    advantage={"steps": 8, "refit": "fine-tune"},
    average={"steps": 8},
)


def solved(config: RunConfig, game: PokerGame = LEDUC) -> tuple[DeepCFR, list[IterationRecord]]:
    assert list(config_problems(config)) == []
    solver = DeepCFR(game, config)
    return solver, list(solver.iterations())


VARIANTS = {
    "infosets": changed(BRIEF, sampling={"decisions": 8}),
    "panel": changed(BRIEF, sampling={"panel": True}),
    "no table": changed(BRIEF, cfr={"first_round": "network"}),
    "without boards": small_config("dream"),
}


@pytest.mark.parametrize("config", VARIANTS.values(), ids=list(VARIANTS))
def test_records_say_what_was_done_and_memory_is_counted_as_it_is_allocated(config: RunConfig) -> None:
    game = load_game(config.game)
    solver, records = solved(replace(config, iterations=2), game)
    memories = [*solver.memories.stores.values(), *([solver.values.memory] if solver.values else [])]
    columns = [column for memory in memories for column in memory.columns.values()]
    assert DeepCFR.memory_bytes(game, config) == sum(column.nbytes for column in columns)
    if config.game != "leduc":
        return
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
    still = changed(BRIEF, sampling={"panel": panel}, advantage={"steps": 1, "learning_rate": 1e-12})
    one, other = (solved(changed(still, threads=n))[0] for n in (1, 3))
    other.workers.shutdown()
    for (_, mine), (_, theirs) in zip(one.memories.stores.items(), other.memories.stores.items(), strict=True):
        for name, column in mine.contents().items():
            torch.testing.assert_close(column, theirs.contents()[name], atol=1e-3, rtol=1e-3)


def test_a_discounted_panel_shrinks_its_sums_by_their_sign() -> None:
    linear = VARIANTS["panel"]
    discounted = changed(linear, cfr={"weighting": "discounted"})
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

    config = VARIANTS["panel"]
    forgetful = finished(Forgetful(LEDUC, config))
    assert_same(forgetful, solved(config)[0])


def test_the_strategies_that_are_recorded_are_those_that_were_played() -> None:
    solver = DeepCFR(LEDUC, changed(BRIEF, advantage={"refit": "scratch"}))
    for t in (1, 2):
        policy = solver.current_policy()
        next(solver.iterations())
        memory = solver.memories.strategies
        assert isinstance(memory, Memory)
        found = memory[(memory.filled("iteration") == t).nonzero()[:, 0]]
        assert len(found) > 50
        torch.testing.assert_close(policy.probabilities(found.infosets).float(), found.target, atol=1e-4, rtol=0)


def test_merged_targets_are_means_over_all_decisions_of_an_infoset() -> None:
    solver, _ = solved(changed(BRIEF, sampling={"decisions": 3}, advantage={"draw": "merged"}))
    assert isinstance(solver.memories, InfosetMemories)
    memory = solver.memories.advantages[0]
    samples, weight = memory[slice(None)], memory.filled("iteration").float()
    apart = Memory(LEDUC.encoding, 3 * len(memory))
    infosets = Infosets(samples.infosets.node.flatten(), samples.infosets.cards.repeat_interleave(3, 0))
    apart.add(Samples(infosets, samples.target.flatten(0, 1), samples.iteration.repeat_interleave(3)), 0)
    expected = apart.mean_targets(weight.repeat_interleave(3))
    torch.testing.assert_close(memory.mean_targets(weight).flatten(0, 1), expected)
    assert not torch.allclose(expected, apart.filled("target"))


def test_a_panel_takes_its_hands_and_no_more_whatever_the_capacity() -> None:
    small, large = (replace(VARIANTS["panel"], memory=MemoryConfig(capacity=n)) for n in (10, 10**10))
    assert DeepCFR.memory_bytes(LEDUC, small) == DeepCFR.memory_bytes(LEDUC, large)
    assert panel_rows(LEDUC, small.sampling) == [61, 3 * 61]
    solver = solved(replace(small, iterations=1))[0]
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
    solver, _ = solved(VARIANTS["panel"])
    taken = sum(array.nbytes for array in solver.collector.remembered._kept.values())
    settings = solver.config.sampling
    assert 0 < taken <= board_bytes(LEDUC, settings, round_trees(LEDUC)) - kept_bytes(LEDUC.rules, merge=True)
