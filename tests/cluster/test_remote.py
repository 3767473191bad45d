"""Shards in other processes, here played by objects of this one: the same samples and networks as without them."""

from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
import torch
from test_shards import CONFIG, LEDUC, contents

from deepcfr.cluster.remote import RemoteCollector
from deepcfr.cluster.shard_host import ShardHost
from deepcfr.cluster.shards import ShardedCollector
from deepcfr.config import CFRConfig, ExternalSampling, RunConfig, RuntimeConfig
from deepcfr.errors import WorkerLost
from deepcfr.files import read_json
from deepcfr.games.base import Game
from deepcfr.games.presets import GameSource, load_game
from deepcfr.runs.checkpoint import newest_checkpoint, restore, save_checkpoint
from deepcfr.runs.folder import RunFolder
from deepcfr.runs.train import train
from deepcfr.solvers.deep_cfr import DeepCFR
from deepcfr.solvers.first_round import FirstRoundTable
from hosts_here import HostsHere


class Shards(HostsHere):
    """Arguments are read-only, as they would be in another process."""

    def __init__(self, game: Game, config: RunConfig, count: int) -> None:
        super().__init__(config.memory.shards, count, lambda numbers, _: ShardHost(game, config, numbers))
        self.puts = 0
        self.traversers: list[int] = []  # of traversals that have begun and are not fetched

    def put(self, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        self.puts += 1
        kept = {name: array.copy() for name, array in value.items()}
        for array in kept.values():
            array.flags.writeable = False
        return kept


def remote(count: int, kept: list[Shards] | None = None) -> Any:
    def collecting(game: Game, config: RunConfig, table: FirstRoundTable | None) -> RemoteCollector:
        hosts = Shards(game, config, count)
        if kept is not None:
            kept.append(hosts)
        return RemoteCollector(game, config, table, hosts)

    return collecting


def finished(config: RunConfig, collecting: Any = ShardedCollector, game: Game = LEDUC) -> DeepCFR:
    solver = DeepCFR(game, config, collecting)
    for _ in solver.iterations():
        pass
    solver.fit_average()
    return solver


def assert_same(one: DeepCFR, other: DeepCFR) -> None:
    mine, theirs = contents(one), contents(other)
    assert list(mine) == list(theirs)
    for name, columns in mine.items():
        assert all(torch.equal(column, theirs[name][c]) for c, column in columns.items()), name
    networks = zip(
        [*one.advantage_networks, one.average_network], [*other.advantage_networks, other.average_network], strict=True
    )
    for network, same in networks:
        assert network is not None
        assert same is not None
        state = same.state_dict()
        assert all(torch.equal(weight, state[name]) for name, weight in network.state_dict().items())


@pytest.mark.parametrize("draw", ["uniform", "merged", "balanced"])
def test_one_process_and_three_hold_and_learn_the_same(draw: Any) -> None:
    advantage, average = replace(CONFIG.advantage, draw=draw), replace(CONFIG.average, draw=draw)
    config = replace(CONFIG, advantage=advantage, average=average)
    alone = finished(config)
    assert alone.nodes_touched > 0
    for count in (1, 3):
        other = finished(config, remote(count))
        assert other.nodes_touched == alone.nodes_touched
        assert_same(alone, other)


def test_a_table_of_the_first_round_is_the_same_too() -> None:
    cfr = CFRConfig(iterations=2, first_round="table", fallback="uniform")
    sampling = ExternalSampling(traversals=40)
    config = replace(CONFIG, game="fhp-mini", cfr=cfr, sampling=sampling, network=replace(CONFIG.network, width=8))
    game = load_game("fhp-mini")
    alone, other = finished(config, game=game), finished(config, remote(2), game)
    assert alone.table
    assert other.table
    assert np.abs(alone.table.regret).sum() > 0
    assert all(np.array_equal(a, other.table.arrays()[name]) for name, a in alone.table.arrays().items())
    assert_same(alone, other)


def test_networks_are_sent_once_after_each_fit() -> None:
    kept: list[Shards] = []
    finished(CONFIG, remote(2, kept))
    assert kept[0].puts == 2 + 2 * CONFIG.cfr.iterations - 1  # the fit that ends the run is asked for no more


def test_a_checkpoint_goes_on_with_other_processes(tmp_path: Path) -> None:
    """Saved by two, taken up by three, by this process, and the other way round: as if nothing had happened."""
    whole = finished(CONFIG)
    here = ShardedCollector
    for first, second in ((remote(2), remote(3)), (remote(2), here), (here, remote(2))):
        begun = DeepCFR(LEDUC, CONFIG, first)
        next(begun.iterations())
        folder = tmp_path / f"{len(list(tmp_path.iterdir()))}"
        save_checkpoint(folder, begun, "fingerprint", 1.0, keep=1)
        found = newest_checkpoint(folder, "fingerprint", pytest.fail)
        assert found
        solver = DeepCFR(LEDUC, CONFIG, second)
        restore(solver, found)
        for _ in solver.iterations():
            pass
        solver.fit_average()
        assert_same(whole, solver)


class Losing:
    """A cluster in this process whose workers are lost in every iteration from the third on."""

    is_here = True

    def connect(self) -> None:
        """It is here."""

    def collecting(self, source: GameSource) -> Any:  # noqa: ARG002
        class Lost(Shards):
            def begin(self, host: int, method: str, *arguments: Any, results: int = 1) -> list[Any]:
                if method == "collect" and arguments[0] >= 3:
                    raise WorkerLost("A worker was lost.")
                return super().begin(host, method, *arguments, results=results)

        return lambda game, config, table: RemoteCollector(game, config, table, Lost(game, config, 2))


def test_a_run_gives_up_after_three_losses_and_goes_on_without_a_cluster(tmp_path: Path) -> None:
    config = replace(
        CONFIG, cfr=replace(CONFIG.cfr, iterations=3), runtime=RuntimeConfig(threads=1, checkpoint_every=2)
    )
    folder, observer = RunFolder.create(tmp_path / "run", config), Mock()
    with pytest.raises(WorkerLost, match="was lost"):
        train(folder, observer, Losing())  # type: ignore[arg-type]
    said = [call.args[0] for call in observer.warn.call_args_list]
    assert len(said) == 2
    assert all("goes on from iteration 2" in sentence for sentence in said)
    assert [loss["goes_on_from"] for loss in read_json(folder.path / "environment.json")["losses"]] == [2, 2, 2]
    assert train(folder, observer, None).finished
    solver, _ = folder.load_solver(pytest.fail, memories=True)
    assert isinstance(solver, DeepCFR)
    assert_same(finished(config), solver)
