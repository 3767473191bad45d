"""Traversals in another process, here played by objects of this one that only pickled pieces reach."""

import pickle
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pytest

from deepcfr.config import RunConfig, SamplingConfig
from deepcfr.game.presets import load_game
from deepcfr.solve import data
from deepcfr.solve.data import IterationRecord, TraversalJob
from deepcfr.solve.deep_cfr import DeepCFR, Follower, Iterate
from tables import small_config

LEDUC = load_game("leduc")
LINEAR = {"weighting": "linear", "first_round": "network"}
FIT = {"steps": 10, "batch_size": 32}
SMALL: dict[str, Any] = {
    "memory": {"capacity": 300}, "network": {"kind": "mlp", "width": 8, "layers": 1},
    "advantage": FIT, "average": FIT, "values": FIT | {"capacity": 100},
}  # fmt: skip
DRAWN, FIXED = (SamplingConfig(kind="public-chance", boards=2, samples=60, panel=panel) for panel in (False, True))
CONFIGS = {
    "histories, table first": small_config(
        game="leduc", sampling=SamplingConfig(traversals=50), cfr=LINEAR | {"first_round": "table"}, **SMALL
    ),
    "drawn boards": small_config(game="leduc", sampling=DRAWN, cfr=LINEAR, **SMALL),
    "fixed boards": small_config(game="leduc", sampling=FIXED, cfr={"first_round": "table"}, **SMALL),
    "escher": small_config("escher", "leduc", sampling={"traversals": 50}, **SMALL),
    "vr-deep-pdcfr+": small_config("vr-deep-pdcfr+", "leduc", sampling={"traversals": 50}, **SMALL),
}


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data, "_CHUNK", 16)


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
    for part in ([state.tensors.items() for state in states], [state.arrays for state in states]):
        mine, theirs = (dict(items) for items in part)
        assert mine.keys() == theirs.keys() != set()
        assert [name for name in mine if np.asarray(mine[name]).tobytes() != np.asarray(theirs[name]).tobytes()] == []


@pytest.mark.parametrize("name", CONFIGS)
def test_a_run_is_the_same_wherever_its_traversals_run(name: str) -> None:
    config = CONFIGS[name]
    here, records = solved(config)
    there, others = solved(config, Others(config, 3))
    assert list(map(counts, others)) == list(map(counts, records))
    assert_same(here, there)


@pytest.mark.parametrize("name", ["fixed boards", "escher"])
def test_a_follower_that_is_made_again_goes_on_where_the_lost_one_was(name: str) -> None:
    config = CONFIGS[name]
    assert_same(solved(config)[0], solved(config, Others(config, 2, lost_after=9))[0])
