"""What a run will take in memory and time: said before it is paid, and refused if it cannot fit."""

from __future__ import annotations

import os

import torch

from deepcfr.config import AnyConfig, RunConfig, SolveConfig
from deepcfr.errors import ConfigError
from deepcfr.evaluation.exploitability import refusal
from deepcfr.games.poker import PokerGame
from deepcfr.games.presets import GameSource
from deepcfr.games.rules import PokerRules
from deepcfr.solvers import deep_cfr, vector_cfr
from deepcfr.solvers.build import Solver
from deepcfr.solvers.vector_cfr import VectorCFR


def cost_notes(config: AnyConfig, source: GameSource) -> list[str]:
    """What a run will take in memory, in sentences.

    Raises ConfigError if its device is not there or its memories or tables cannot fit into it.
    """
    if not isinstance(source, PokerRules):
        return []  # OpenSpiel's games are small, or refused when they are compiled
    available = _physical_memory(config.runtime.device)
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
    reason = refusal(rules)
    if config.solve.algorithm == "mccfr":
        return [reason] if reason else []
    if reason:
        raise ConfigError(f"{config.solve.algorithm} visits every board: {reason} mccfr samples them.")
    needed = vector_cfr.memory_bytes(rules, config.solve)
    if available and needed > 0.9 * available:
        raise ConfigError(
            f"The tables of {rules.name} in {config.solve.precision} need {needed / 1e9:.1f} GB, and there are "
            f"{available / 1e9:.1f} GB: choose int16, or mccfr with an abstraction."
        )
    return [f"tables and boards take {needed / 1e9:.2f} GB, and a checkpoint about as much on disk"]


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


def _physical_memory(device: str) -> int:
    if device.startswith("cuda"):
        if not torch.cuda.is_available():
            raise ConfigError(f"'runtime.device' is {device}, but this machine has no CUDA device.")
        return int(torch.cuda.get_device_properties(device).total_memory)
    names = os.sysconf_names if hasattr(os, "sysconf") else {}
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if "SC_PHYS_PAGES" in names else 0
