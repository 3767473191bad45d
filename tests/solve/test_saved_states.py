"""Runs of every solver go on to the bit from the state that a checkpoint saves, and repeat themselves."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from bet_size_games import TWO_ROUNDS
from deepcfr.config import RunConfig, SamplingConfig
from deepcfr.defaults import default_config
from deepcfr.game.base import Game
from deepcfr.game.bet_size_game import ImplicitPoker
from deepcfr.game.presets import build_game, load_source
from deepcfr.run.build import build_solver
from deepcfr.run.folder import RunFolder
from deepcfr.solve.base import SavedState, Solver
from tables import changed, small_config, tabular

BOARDS = SamplingConfig(kind="public-chance", boards=3, samples=60)
FIT = {"steps": 5, "batch_size": 16}
LITTLE = {"advantage": FIT, "average": FIT, "values": FIT}
MCCFR = tabular("mccfr", traversals=100, game="leduc")
CONFIGS: dict[str, RunConfig] = {
    **{
        name: small_config(name, **LITTLE, **({} if name in ("nfsp", "ppo", "mmd") else {"sampling": {"traversals": 50}}))  # type: ignore[arg-type]
        for name in (
            "deep-cfr", "nfsp", "ppo", "mmd", "dream", "escher", "rcfr", "double-neural", "vr-deep-cfr+", "deep-pdcfr+",
        )
    },
    "table, boards": small_config(game="leduc", sampling=BOARDS, cfr={"first_round": "table", "weighting": "linear"}),
    "table, panel": small_config(game="leduc", sampling=replace(BOARDS, panel=True), cfr={"first_round": "table"}),
    "window": small_config(memory={"kind": "window", "capacity": 99}, advantage={"refit": "fine-tune"}),
    "int16": tabular("dcfr", game="leduc", precision="int16"),
    "cfr-d": tabular("cfr-d", game="leduc", boards=2),
    "float32, predicted": tabular("pcfr+", game="leduc", precision="float32"),
    "mccfr, floor": changed(MCCFR, exploration_start=0.1),
    "mccfr, win rates": changed(MCCFR, initial="win-rates"),
    "mccfr, outcome": changed(MCCFR, sampler="outcome"),
    "mccfr, bet sizes": changed(MCCFR, game="two-rounds"),
    **{name: tabular(name, game="openspiel:kuhn_poker") for name in ("dcfr", "pcfr+", "xfp", "egt", "mccfr")},
}  # fmt: skip


def game_of(config: RunConfig) -> Game:
    return ImplicitPoker(TWO_ROUNDS) if config.game == "two-rounds" else build_game(load_source(config.game))


def content(solver: Solver) -> dict[str, bytes]:
    """The tensors and arrays of a saved state, as bytes."""
    state = solver.state(memories=True)
    tensors = {name: tensor.numpy().tobytes() for name, tensor in state.tensors.items()}
    return tensors | {name: array.tobytes() for name, array in state.arrays}


@pytest.mark.parametrize("name", CONFIGS)
def test_a_run_goes_on_to_the_bit_from_its_saved_state(name: str) -> None:
    config = replace(CONFIGS[name], iterations=3)
    game = game_of(config)
    torch.manual_seed(1)
    straight, half, again = (build_solver(game, config) for _ in range(3))
    records = list(straight.iterations())
    torch.manual_seed(2)  # the global generator plays no part
    next(half.iterations())
    state = half.state(memories=True)
    tensors = {key: tensor.clone() for key, tensor in state.tensors.items()}
    arrays = {key: array.copy() for key, array in state.arrays}
    again.restore(SavedState(json.loads(json.dumps(state.facts)), tensors, arrays.__getitem__), memories=True)
    for solver in (half, again):
        assert [record.iteration for record in solver.iterations()] == [2, 3]
        assert list(solver.iterations()) == []
        assert (solver.iteration, solver.nodes_touched) == (3, sum(record.nodes_touched for record in records))
        assert solver.state(memories=True).facts == straight.state(memories=True).facts
        found, expected = content(solver), content(straight)
        assert [key for key in expected if found[key] != expected[key]] == []
        assert found.keys() == expected.keys() != set()
    small = straight.state(memories=False)
    assert not small.facts["memories"]
    kept = [*small.tensors, *(key for key, _ in small.arrays)]
    assert not any(key.startswith(("memory-", "regret", "values")) for key in kept)


@pytest.mark.parametrize("precision", ["float64", "float32", "int16"])
@pytest.mark.parametrize("algorithm", ["dcfr", "pcfr+"])
def test_threads_change_no_table(precision: str, algorithm: str) -> None:
    config = tabular(algorithm, 4, game="fhp-mini", precision=precision)
    one, two = (build_solver(game_of(config), changed(config, threads=threads)) for threads in (1, 2))
    for solver in (one, two):
        assert len(list(solver.iterations())) == 4
    assert content(one) == content(two)
    assert all(np.any(array) for _, array in one.state(memories=True).arrays)


def test_a_checkpoint_belongs_to_the_solver_estimate_target_and_capacity_that_made_it(tmp_path: Path) -> None:
    configs = [
        default_config("kuhn", name) for name in ("deep-cfr", "dream", "deep-cfr+", "vr-deep-cfr+", "ppo", "nfsp")
    ]
    configs += [
        changed(configs[1], values={"capacity": 5}),
        changed(configs[-1], nfsp={"reservoir_capacity": 5}),
        replace(configs[4], solver="mmd"),
    ]
    rules = load_source("kuhn")
    assert len({RunFolder(tmp_path, config, rules).fingerprint for config in configs}) == len(configs)
