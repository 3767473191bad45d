"""Performance in one process: against OpenSpiel's PyTorch Deep CFR on Leduc, and our own speeds on FHP.

Ratios against another implementation in the same run are more reliable than speeds, because machines and loads differ.
"""

from __future__ import annotations

import dataclasses
import importlib.util
import time
from typing import Any

import torch

from deepcfr.config import (
    AdvantageFitConfig,
    FitConfig,
    MemoryConfig,
    NetworkConfig,
    RunConfig,
    SamplingConfig,
    load_config,
)
from deepcfr.core.errors import ConfigError
from deepcfr.game.poker import PokerGame
from deepcfr.game.presets import load_game
from deepcfr.measure.exploitability import exploitability
from deepcfr.network.fit import orthogonalised
from deepcfr.network.memory import bytes_per_sample
from deepcfr.run.metrics import environment
from deepcfr.solve.deep_cfr import DeepCFR
from experiments.bench import peak_memory
from experiments.grid import Say

_EVALUATE_EVERY = 5  # iterations between exact evaluations, to find when OpenSpiel's NashConv is reached
_MOST_ITERATIONS = 400
_HIDDEN = 192  # rows and columns of the paper network's hidden card matrices


def bench_openspiel(iterations: int, seed: int, say: Say) -> dict[str, Any]:
    """Deep CFR on Leduc against OpenSpiel's PyTorch implementation with its example's settings.

    Both networks have one hidden layer of 64. `traversals_ratio` compares traversals per second during collection;
    `time_ratio` compares OpenSpiel's whole run with our time until the average strategy is at least as good as its final
    one, our fits and evaluations included. Raises ConfigError if OpenSpiel is not installed.
    """
    if importlib.util.find_spec("pyspiel") is None or importlib.util.find_spec("tree") is None:
        raise ConfigError("This benchmark needs OpenSpiel: pip install 'deepcfr[openspiel]'.")
    peer = _run_openspiel(iterations, seed)
    say(
        f"OpenSpiel: {peer['traversals_per_second']:,.0f} traversals/s, {peer['seconds']:.1f} s, "
        f"exploitability {peer['exploitability']:.1f} mA/g after {iterations} iterations"
    )
    ours = _run_ours(seed, peer["exploitability"])
    say(
        f"deepcfr: {ours['traversals_per_second']:,.0f} traversals/s, {ours['seconds']:.2f} s to "
        f"{ours['exploitability']:.1f} mA/g ({ours['iterations']} iterations)"
    )
    facts = {
        "game": "leduc",
        "unit": "mA/g",
        "seed": seed,
        "environment": environment("cpu", 1),
        "openspiel": peer,
        "deepcfr": ours,
        "traversals_ratio": ours["traversals_per_second"] / peer["traversals_per_second"],
        "time_ratio": peer["seconds"] / ours["seconds"],
    }
    say(f"traversals {facts['traversals_ratio']:.0f} x, time {facts['time_ratio']:.1f} x")
    return facts


def _run_openspiel(iterations: int, seed: int) -> dict[str, Any]:
    import pyspiel
    from open_spiel.python import policy
    from open_spiel.python.pytorch import deep_cfr

    timer = _Timer()

    class TimedSolver(deep_cfr.DeepCFRSolver):  # type: ignore[misc]
        depth = 0

        def _traverse_game_tree(self, state: Any, player: int) -> Any:
            if self.depth:
                return super()._traverse_game_tree(state, player)
            self.depth = 1
            with timer:
                value = super()._traverse_game_tree(state, player)
            self.depth = 0
            return value

    game = pyspiel.load_game("leduc_poker")
    start = time.perf_counter()
    solver = TimedSolver(
        game,
        policy_network_layers=(64,),
        advantage_network_layers=(64,),
        num_iterations=iterations,
        num_traversals=375,
        reinitialize_advantage_networks=True,
        learning_rate=1e-3,
        batch_size_advantage=256,
        batch_size_strategy=256,
        memory_capacity=100_000,
        policy_network_train_steps=2_500,
        advantage_network_train_steps=375,
        seed=seed,
    )
    solver.solve()
    seconds = time.perf_counter() - start
    table = policy.tabular_policy_from_callable(game, solver.action_probabilities)
    nash_conv = pyspiel.nash_conv(game, policy.python_policy_to_pyspiel_policy(table))
    return {
        "iterations": iterations,
        "seconds": seconds,
        "traversals_per_second": timer.count / timer.seconds,
        "exploitability": 500 * nash_conv,
    }


class _Timer:
    """Sums the time in a `with` block and counts its entries."""

    def __init__(self) -> None:
        self.seconds, self.count, self._start = 0.0, 0, 0.0

    def __enter__(self) -> None:
        self._start = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        self.seconds += time.perf_counter() - self._start
        self.count += 1


def _run_ours(seed: int, target: float) -> dict[str, Any]:
    base = load_config("leduc-external")  # external sampling, as in OpenSpiel
    config = dataclasses.replace(
        base,
        seed=seed,
        iterations=_MOST_ITERATIONS,
        network=NetworkConfig(kind="mlp", width=64, layers=1),
        # a small network with short fits needs a higher learning rate (measured over three seeds)
        advantage=dataclasses.replace(base.advantage, learning_rate=1e-2),
        average=dataclasses.replace(base.average, learning_rate=1e-2, steps=300),
    )
    game = load_game("leduc")
    _compile(game, config)
    start = time.perf_counter()
    solver = DeepCFR(game, config)
    traversals, traversal_seconds, reached = 0, 0.0, float("inf")
    for record in solver.iterations():
        traversals += record.traversals
        traversal_seconds += record.traversal_seconds
        if record.iteration % _EVALUATE_EVERY == 0:
            solver.fit_average()
            reached = exploitability(solver.average_policy()).exploitability
            if reached <= target:
                break
    else:
        raise ConfigError(
            f"{_MOST_ITERATIONS} iterations did not reach {target:.1f} mA/g; there is no time to compare."
        )
    return {
        "iterations": solver.iteration,
        "seconds": time.perf_counter() - start,
        "traversals_per_second": traversals / traversal_seconds,
        "exploitability": reached,
    }


def _compile(game: PokerGame, config: RunConfig) -> None:
    """Run everything once, so that compilation is not measured."""
    tiny = dataclasses.replace(config, iterations=1, sampling=SamplingConfig(traversals=16))
    solver = DeepCFR(game, tiny)
    list(solver.iterations())
    solver.fit_average()
    if game.rules.num_cards <= 12:
        exploitability(solver.average_policy())


def bench_fhp(seed: int, say: Say) -> dict[str, Any]:
    """Our own speeds on FHP with the default network: traversals, fits, exact evaluation, memory.

    Steps are timed with Adam and with Muon, and Muon's orthogonalisation of one hidden matrix in both precisions:
    processors without bfloat16 instructions take many times longer in bfloat16.
    """
    config = RunConfig(
        seed=seed,
        iterations=4,
        sampling=SamplingConfig(traversals=15_000),
        memory=MemoryConfig(capacity=1_000_000),
        advantage=AdvantageFitConfig(
            steps=50,
            batch_size=4_096,
            draw="balanced",
            optimizer="muon",
            learning_rate=0.002,
            schedule="cosine",
            refit="fine-tune",
            units="pots",
        ),
        average=FitConfig(steps=50, batch_size=4_096, draw="balanced", learning_rate=0.003, schedule="cosine"),
    )
    game = load_game("fhp")
    _compile(game, config)
    solver = DeepCFR(game, config)
    records = list(solver.iterations())
    seconds = sum(r.traversal_seconds for r in records)
    say(f"{sum(r.traversals for r in records) / seconds:,.0f} traversals/s")
    fitted = solver.fit_average()
    step = 1000 * sum(r.fit_seconds for r in records) / (2 * len(records) * config.advantage.steps)
    say(f"{step:.1f} ms for a step of {config.advantage.batch_size:,} samples with {config.advantage.optimizer}")
    muon = solver.fit_average(dataclasses.replace(config.average, optimizer="muon"))
    muon_step = 1000 * muon.seconds / config.average.steps
    orthogonalisation = {dtype: _orthogonalisation_ms(dtype, seed) for dtype in (torch.float32, torch.bfloat16)}
    say(
        f"{muon_step:.1f} ms with Muon (average network; {1000 * fitted.seconds / config.average.steps:.1f} ms with Adam); "
        f"orthogonalising a matrix of {_HIDDEN} x {_HIDDEN} takes {orthogonalisation[torch.float32]:.2f} ms in float32, "
        f"{orthogonalisation[torch.bfloat16]:.2f} ms in bfloat16"
    )
    result = exploitability(solver.average_policy(), threads=config.runtime.threads)
    say(f"exact evaluation in {result.seconds:.1f} s")
    return {
        "game": "fhp",
        "unit": "mbb/g",
        "seed": seed,
        "environment": environment("cpu", config.runtime.threads),
        "traversals_per_second": sum(r.traversals for r in records) / seconds,
        "nodes_per_second": sum(r.nodes_touched for r in records) / seconds,
        "advantage_step_ms": step,
        "average_step_ms": 1000 * fitted.seconds / config.average.steps,
        "average_muon_step_ms": muon_step,
        "orthogonalisation_float32_ms": orthogonalisation[torch.float32],
        "orthogonalisation_bfloat16_ms": orthogonalisation[torch.bfloat16],
        "batch_size": config.advantage.batch_size,
        "exact_evaluation_seconds": result.seconds,
        "boards": result.boards,
        "bytes_per_sample": bytes_per_sample(game.encoding),
        "peak_memory_gb": peak_memory() / 1e9,
    }


def _orthogonalisation_ms(dtype: torch.dtype, seed: int, repeats: int = 50) -> float:
    """Milliseconds of processor time for Muon's orthogonalisation of one hidden matrix."""
    matrix = torch.randn(_HIDDEN, _HIDDEN, generator=torch.Generator().manual_seed(seed)).to(dtype)
    orthogonalised(matrix)
    start = time.process_time()
    for _ in range(repeats):
        orthogonalised(matrix)
    return 1000 * (time.process_time() - start) / repeats
