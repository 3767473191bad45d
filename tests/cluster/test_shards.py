"""Deep CFR with its memories in shards: what each holds depends on its number, and not on where it is."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from deepcfr.cluster.shards import MemoryShards, ShardedCollector, part_of_memory, shard_chunks
from deepcfr.config import (
    AdvantageFitConfig,
    CFRConfig,
    ExternalSampling,
    FitConfig,
    MemoryConfig,
    NetworkConfig,
    PublicChanceSampling,
    RunConfig,
    validate_config,
)
from deepcfr.errors import ConfigError
from deepcfr.evaluation.exploitability import exploitability
from deepcfr.games.presets import load_game
from deepcfr.memory.reservoir import Memory
from deepcfr.parallel import Workers
from deepcfr.policies.base import UniformPolicy
from deepcfr.solvers.deep_cfr import DeepCFR

LEDUC = load_game("leduc")
FIT = FitConfig(steps=60, batch_size=256, learning_rate=5e-3, schedule="cosine")
ADVANTAGE = AdvantageFitConfig(**vars(FIT))
CONFIG = RunConfig(
    game="leduc",
    cfr=CFRConfig(iterations=2),
    sampling=ExternalSampling(traversals=50),
    memory=MemoryConfig(advantage_capacity=100_000, strategy_capacity=100_000, shards=3),
    network=NetworkConfig(kind="mlp", width=32, layers=2),
    advantage=ADVANTAGE,
    average=replace(FIT, steps=300, batch_size=512),
)


def with_shards(count: int, config: RunConfig = CONFIG) -> RunConfig:
    return replace(config, memory=replace(config.memory, shards=count))


def new_solver(config: RunConfig) -> DeepCFR:
    return DeepCFR(LEDUC, config, ShardedCollector)


def solved(config: RunConfig) -> DeepCFR:
    solver = new_solver(config)
    for _ in solver.iterations():
        pass
    return solver


def contents(solver: DeepCFR) -> dict[str, dict[str, torch.Tensor]]:
    return {name: store.contents() for name, store in solver.memories.named()}


def rows(memories: list[Memory]) -> list[tuple[float, ...]]:
    """All samples of some memories, in a fixed order."""
    found = []
    for memory in memories:
        samples = memory[slice(0, None)]
        columns = (samples.infosets.node[:, None], samples.infosets.cards, samples.iteration[:, None], samples.target)
        found += [tuple(row) for row in torch.cat([column.double() for column in columns], 1).tolist()]
    return sorted(found)


@pytest.mark.parametrize("shards", [1, 2, 7, 50])
def test_the_shards_run_every_traversal_once(shards: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deepcfr.solvers.histories._CHUNK", 9)
    config = with_shards(shards)
    chunks = [chunk for number in range(shards) for chunk in shard_chunks(config, number)]
    assert [n for first, count in chunks for n in range(first, first + count)] == list(range(50))
    assert all(count <= 9 for _, count in chunks)


def test_the_shards_have_all_rows_of_a_memory() -> None:
    config = MemoryConfig(advantage_capacity=11, strategy_capacity=4, shards=4)
    parts = [part_of_memory(config, number) for number in range(4)]
    assert [part.advantage_capacity for part in parts] == [3, 3, 3, 2]
    assert [part.strategy_capacity for part in parts] == [1, 1, 1, 1]


def test_shards_together_find_what_one_memory_finds() -> None:
    """From the same networks, that is, before these are fitted to other mini-batches."""
    found = []
    for count in (1, 3):
        solver = new_solver(with_shards(count))
        for some in solver.collector.traverse(1, 0, solver.current()):
            solver.memories.add(0, some)
        found.append(solver.memories.named())
    for name in ("advantage-0", "strategy"):
        one, several = ([m for n, m in named if n.startswith(name) and isinstance(m, Memory)] for named in found)
        assert len(several) == 3
        assert rows(one) == rows(several)


def test_a_shard_holds_the_same_wherever_it_is() -> None:
    """Shards 2 and 0 with two threads, and shard 1 elsewhere, against all of them in a solver."""
    solver = new_solver(CONFIG)
    elsewhere = [MemoryShards(LEDUC, CONFIG, numbers, Workers(threads)) for numbers, threads in (([2, 0], 2), ([1], 1))]
    for player in (0, 1):
        touched = [0, 0]
        for shards in elsewhere:
            for found in shards.traverse(1, player, solver.current()):
                shards.add(player, found)
                touched[0] += found.nodes_touched
        for found in solver.collector.traverse(1, player, solver.current()):
            solver.memories.add(player, found)
            touched[1] += found.nodes_touched
        assert touched[0] == touched[1] > 0
    everywhere = {name: store for shards in elsewhere for name, store in shards.named()}
    assert everywhere.keys() == contents(solver).keys()
    for name, columns in contents(solver).items():
        assert len(everywhere[name])
        assert all(torch.equal(column, everywhere[name].contents()[c]) for c, column in columns.items())


def test_a_run_in_shards_is_the_same_again() -> None:
    one, again = solved(CONFIG), solved(CONFIG)
    assert all(
        torch.equal(column, contents(again)[name][c])
        for name, columns in contents(one).items()
        for c, column in columns.items()
    )


def test_a_run_in_shards_learns_as_well_as_any() -> None:
    config = replace(CONFIG, cfr=replace(CONFIG.cfr, iterations=16), sampling=replace(CONFIG.sampling, traversals=400))
    found = []
    for count in (1, 3):
        solver = solved(with_shards(count, config))
        solver.fit_average()
        found.append(exploitability(solver.average_policy()).nash_conv)
    assert found[1] == pytest.approx(found[0], rel=0.2)
    assert max(found) < 0.5 * exploitability(UniformPolicy(LEDUC)).nash_conv


def test_the_records_count_all_shards() -> None:
    solver = new_solver(CONFIG)
    *_, last = solver.iterations()
    stores = dict(solver.memories.named())
    for player in (0, 1):
        assert last.advantage_samples[player] == sum(len(stores[f"advantage-{player}-shard-{n}"]) for n in range(3))
    assert last.strategy_samples == sum(len(stores[f"strategy-shard-{n}"]) for n in range(3))


def test_memories_in_files_hold_the_same(tmp_path: Path) -> None:
    """With the bytes that a checkpoint of a full memory has."""
    small = replace(CONFIG.memory, advantage_capacity=90, strategy_capacity=60)
    solver = solved(replace(CONFIG, memory=small))
    in_files = solved(replace(CONFIG, memory=replace(small, files=str(tmp_path / "memory"))))
    for name, columns in contents(solver).items():
        for column, tensor in columns.items():
            assert torch.equal(contents(in_files)[name][column], tensor)
            held = np.load(tmp_path / "memory" / f"{name}-{column}.npy")
            np.save(tmp_path / "saved.npy", tensor.numpy())
            assert np.array_equal(held, tensor.numpy())
            assert (tmp_path / "saved.npy").stat().st_size == (
                tmp_path / "memory" / f"{name}-{column}.npy"
            ).stat().st_size


@pytest.mark.parametrize(
    "name, changes",
    [
        ("sampling.kind", {"sampling": PublicChanceSampling()}),
        ("memory.shards", {"memory": replace(CONFIG.memory, shards=51)}),
    ],
)
def test_what_shards_do_not_offer_is_refused_in_a_sentence(name: str, changes: dict[str, Any]) -> None:
    config = replace(CONFIG, **changes)
    with pytest.raises(ConfigError, match=re.escape(name)) as caught:
        validate_config(config)
    assert len(caught.value.problems) == 1
    if "memory" not in changes:
        assert validate_config(with_shards(1, config)).memory.shards == 1
