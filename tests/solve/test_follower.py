"""Traversals in another process, here played by objects of this one that only pickled pieces reach."""

import pickle
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, Literal, cast

import pytest
import torch

from deepcfr.config import CFRConfig, MemoryConfig, NamedSolver, NetworkConfig, RunConfig, RuntimeConfig, SamplingConfig
from deepcfr.defaults import default_config
from deepcfr.game.presets import load_game
from deepcfr.solve import data
from deepcfr.solve.data import IterationRecord, TraversalJob
from deepcfr.solve.deep_cfr import DeepCFR, Follower, Iterate

DRAWN = SamplingConfig(kind="public-chance", boards=2, samples=60)
SAMPLED: dict[str, tuple[SamplingConfig, Literal["network", "table"]]] = {
    "histories, table first": (SamplingConfig(), "table"),
    "drawn boards": (DRAWN, "network"),
    "fixed boards": (replace(DRAWN, panel=True), "network"),
    "fixed boards, table first": (replace(DRAWN, panel=True), "table"),
}
LEDUC = load_game("leduc")


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data, "_CHUNK", 16)


def config_of(name: str) -> RunConfig:
    """A short run of a solver with this name, or of Deep CFR with this sampling."""
    if name in SAMPLED:
        sampling, first_round = SAMPLED[name]
        config = RunConfig(game="leduc", sampling=sampling, cfr=CFRConfig(first_round=first_round))
    else:
        config = default_config("leduc", cast("NamedSolver", name))
    if config.sampling.kind != "public-chance":
        config = replace(config, sampling=replace(config.sampling, traversals=50))
    steps = {"steps": 10, "batch_size": 32}
    return replace(
        config,
        iterations=3,
        memory=MemoryConfig(advantage_capacity=300, strategy_capacity=300),
        network=NetworkConfig(kind="mlp", width=8, layers=1),
        advantage=replace(config.advantage, **steps),
        average=replace(config.average, **steps),
        values=replace(config.values, capacity=100, **steps),
        runtime=RuntimeConfig(threads=1),
    )


class Others:
    """`count` followers in turn; one of them is lost and made again after some pieces. An `Outside`."""

    def __init__(self, config: RunConfig, count: int, lost_after: int = -1) -> None:
        self._config, self._lost_after = config, lost_after
        self._followers = [self._follower() for _ in range(count)]

    def _follower(self) -> Follower:
        return Follower(load_game("leduc"), self._config)

    def run(self, job: TraversalJob, iterate: Iterate, pieces: Iterable[Any]) -> Iterator[Any]:
        for number, piece in enumerate(pieces):
            place = number % len(self._followers)
            self._lost_after -= 1
            if self._lost_after == 0:
                self._followers[place] = self._follower()
            sent = pickle.loads(pickle.dumps((piece, job, iterate)))
            yield pickle.loads(pickle.dumps(self._followers[place](*sent)))

    def close(self) -> None:
        self._followers.clear()


def solved(config: RunConfig, others: Others | None = None) -> tuple[DeepCFR, list[IterationRecord]]:
    solver = DeepCFR(LEDUC, config, others)
    return solver, list(solver.iterations())


def counts(record: IterationRecord) -> tuple[Any, ...]:
    return record.traversals, record.nodes_touched, record.evaluated, record.trained, record.advantage_loss


def assert_same(one: DeepCFR, other: DeepCFR) -> None:
    """The states as a checkpoint has them."""
    states = [solver.state(memories=True) for solver in (one, other)]
    assert states[0].facts == states[1].facts
    assert states[0].tensors.keys() == states[1].tensors.keys()
    for name, tensor in states[0].tensors.items():
        assert torch.equal(tensor, states[1].tensors[name]), name
    memories = [{name: store.contents() for name, store in solver.memories.stores.items()} for solver in (one, other)]
    for name, contents in memories[0].items():
        assert all(torch.equal(column, memories[1][name][key]) for key, column in contents.items()), name


@pytest.mark.parametrize("name", [*SAMPLED, "dream", "escher", "deep-pdcfr+"])
def test_a_run_is_the_same_wherever_its_traversals_run(name: str) -> None:
    config = config_of(name)
    here, records = solved(config)
    there, others = solved(config, Others(config, 3))
    assert list(map(counts, others)) == list(map(counts, records))
    assert_same(here, there)


@pytest.mark.parametrize("name", ["fixed boards", "escher"])
def test_a_follower_that_is_made_again_goes_on_where_the_lost_one_was(name: str) -> None:
    config = config_of(name)
    assert_same(solved(config)[0], solved(config, Others(config, 2, lost_after=9))[0])
