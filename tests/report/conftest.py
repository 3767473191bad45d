"""A finished run of every kind of solver, on Leduc; they take a few seconds together."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from deepcfr.abstraction.buckets import save_abstraction
from deepcfr.config import (
    AnyConfig,
    EvaluationConfig,
    NetworkConfig,
    RuntimeConfig,
    SolveConfig,
    TabularConfig,
    load_config,
)
from deepcfr.games.presets import load_rules
from deepcfr.runs.folder import RunFolder
from deepcfr.runs.train import train
from experiments.bench.tabular import random_abstraction

EVALUATED = (1, 2, 4)


class Silent:
    """An observer that keeps nothing."""

    def warn(self, message: str) -> None:
        raise AssertionError(message)

    def start(self, *_: Any) -> None: ...
    def iteration(self, *_: Any) -> None: ...
    def evaluating(self, *_: Any) -> None: ...
    def evaluated(self, *_: Any) -> None: ...
    def saved(self, *_: Any) -> None: ...


def finished(path: Path, config: AnyConfig) -> RunFolder:
    run = RunFolder.create(path, config)
    train(run, Silent())
    return run


def tabular(game: str = "leduc", seed: int = 0, **solve: Any) -> SolveConfig:
    settings = TabularConfig(**{"iterations": EVALUATED[-1], "traversals": 100, **solve})
    return SolveConfig(game, seed, settings, EvaluationConfig(at=EVALUATED[:-1]), RuntimeConfig(threads=1))


def tiny_deep() -> AnyConfig:
    base = load_config("leduc-external")
    return dataclasses.replace(
        base,
        cfr=dataclasses.replace(base.cfr, iterations=EVALUATED[-1]),
        sampling=dataclasses.replace(base.sampling, traversals=20),
        memory=dataclasses.replace(base.memory, advantage_capacity=500, strategy_capacity=500),
        network=NetworkConfig(kind="mlp", width=8, layers=1),
        advantage=dataclasses.replace(base.advantage, steps=4, batch_size=16),
        average=dataclasses.replace(base.average, steps=4, batch_size=16),
        evaluation=EvaluationConfig(at=EVALUATED[:-1]),
    )


@pytest.fixture(scope="session")
def leduc_runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, RunFolder]:
    """Runs by the names of their folders, not in the order of charts."""
    root = tmp_path_factory.mktemp("leduc")
    rules = load_rules("leduc")
    save_abstraction(root / "buckets", random_abstraction(rules, 4, seed=0), {})
    configs: dict[str, AnyConfig] = {
        "full": tabular(algorithm="linear-cfr"),
        "lossless": tabular(algorithm="mccfr"),
        "lossless-again": tabular(algorithm="mccfr", seed=1),
        "bucketed": tabular(algorithm="mccfr", abstraction=str(root / "buckets")),
        "deep": tiny_deep(),
    }
    return {name: finished(root / name, config) for name, config in configs.items()}
