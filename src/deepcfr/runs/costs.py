"""What a run will take in memory and time: said before it is paid, and refused if it cannot fit."""

from __future__ import annotations

import torch

from deepcfr.config import AnyConfig, RunConfig, SolveConfig
from deepcfr.errors import ConfigError
from deepcfr.evaluation.exploitability import refusal
from deepcfr.games.poker import PokerGame
from deepcfr.games.presets import GameSource
from deepcfr.games.rules import PokerRules
from deepcfr.machine import physical_memory
from deepcfr.solvers import deep_cfr, mccfr, vector_cfr
from deepcfr.solvers.build import Solver
from deepcfr.solvers.vector_cfr import VectorCFR


def cost_notes(config: AnyConfig, source: GameSource) -> list[str]:
    """What a run will take in memory, in sentences.

    Raises ConfigError if its device is not there or its memories or tables cannot fit into it.
    """
    if not isinstance(source, PokerRules):
        return []  # OpenSpiel's games are small, or refused when they are compiled
    available = _memory_of(config.runtime.device)
    if isinstance(config, SolveConfig):
        return _tabular_notes(config, source, available)
    needed = deep_cfr.memory_bytes(PokerGame(source, config.network.suits), config)
    if available and needed > 0.9 * available:
        raise ConfigError(
            f"The memories need up to {needed / 1e9:.1f} GB, and there are {available / 1e9:.1f} GB: "
            "lower memory.advantage_capacity or memory.strategy_capacity."
        )
    notes = [f"memories take up to {needed / 1e9:.2f} GB, and a checkpoint as much on disk"]
    reason = refusal(source)
    return [*notes, reason] if reason else notes


def _tabular_notes(config: SolveConfig, rules: PokerRules, available: int) -> list[str]:
    settings, reason = config.solve, refusal(rules)
    sampled = settings.algorithm == "mccfr"
    if sampled and settings.abstraction != "lossless":
        return [reason] if reason else []  # tables over buckets are small
    if reason and not sampled:
        raise ConfigError(f"{settings.algorithm} visits every board: {reason} mccfr samples them.")
    if sampled:
        needed = mccfr.memory_bytes(PokerGame(rules), None, settings.precision)
    else:
        needed = vector_cfr.memory_bytes(rules, settings)
    if available and needed > 0.9 * available:
        raise ConfigError(
            f"The tables of {rules.name} in {settings.precision} need {needed / 1e9:.1f} GB, and there are "
            f"{available / 1e9:.1f} GB: choose {'' if sampled else 'int16, or mccfr with '}an abstraction."
        )
    return [f"tables take {needed / 1e9:.2f} GB, and a checkpoint about as much on disk"]


def time_notes(solver: Solver, config: AnyConfig) -> list[str]:
    """What the rest of a run will take in time where that can be said: a full-width solver tries a few boards."""
    left = config.iterations - solver.iteration
    if isinstance(config, RunConfig) or not isinstance(solver, VectorCFR) or left < 1:
        return []
    seconds = solver.seconds_per_iteration()
    return [
        f"{left:,} iterations take about {_duration(left * seconds)}, {seconds:.2g} s each, and evaluations besides"
    ]


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


def _memory_of(device: str) -> int:
    if device.startswith("cuda"):
        if not torch.cuda.is_available():
            raise ConfigError(f"'runtime.device' is {device}, but this machine has no CUDA device.")
        return int(torch.cuda.get_device_properties(device).total_memory)
    return physical_memory()
