"""What a run will take in memory and time: said before it is paid, and refused if it cannot fit."""

from __future__ import annotations

from pathlib import Path

import torch

from deepcfr.abstraction.files import read_description
from deepcfr.config import AnyConfig, PublicChanceConfig, SolveConfig, unread_settings
from deepcfr.errors import ConfigError
from deepcfr.evaluation.exploitability import refusal
from deepcfr.games.openspiel import OpenSpielGame
from deepcfr.games.poker import PokerGame
from deepcfr.games.presets import GameSource, build_game
from deepcfr.games.rules import PokerRules
from deepcfr.machine import physical_memory
from deepcfr.ranges.boards import round_trees
from deepcfr.ranges.public_chance import check_settings
from deepcfr.solvers import deep_cfr, mccfr, nfsp, tree_cfr, vector_cfr
from deepcfr.solvers.build import NetworkSolver, Solver
from deepcfr.solvers.memories import board_bytes


def cost_notes(config: AnyConfig, source: GameSource, abstraction: Path | None = None) -> list[str]:
    """What a run will take in memory, and which settings it will not read, in sentences.

    `abstraction` is the folder of the one that the run uses, if any.
    Raises ConfigError if its device is not there, or if its memories or tables cannot fit into it, and what the game or the
    abstraction raise if they are not there.
    """
    if isinstance(config, SolveConfig):
        return _tabular_notes(config, source, abstraction)
    available = _memory_of(config.runtime.device)
    if not isinstance(source, PokerRules):
        game = build_game(source)
        assert isinstance(game, OpenSpielGame)
        return [_size(game), *unread_settings(config)]
    poker, is_nfsp = PokerGame(source, config.network.suits), config.solver == "nfsp"
    needed = nfsp.memory_bytes(poker, config.nfsp) if is_nfsp else deep_cfr.memory_bytes(poker, config)
    if available and needed > 0.9 * available:
        names = "nfsp.reservoir_capacity or nfsp.replay" if is_nfsp else "memory.advantage_capacity or memory.strategy"
        raise ConfigError(
            f"The memories need up to {needed / 1e9:.1f} GB, and there are {available / 1e9:.1f} GB: "
            f"lower {names}_capacity."
        )
    notes = [f"memories take up to {needed / 1e9:.2f} GB, and a checkpoint as much on disk"]
    if config.cfr.sampler == "public-chance" and not is_nfsp:
        notes.append(_board_note(poker, config.public_chance))
    notes += unread_settings(config)
    reason = refusal(source)
    return [*notes, reason] if reason else notes


def _board_note(game: PokerGame, settings: PublicChanceConfig) -> str:
    check_settings(game.rules, settings)
    needed, available = board_bytes(game, settings, round_trees(game)), physical_memory()
    if available and needed > 0.9 * available:
        raise ConfigError(
            f"Public-chance traversals keep all boards of {game.name}, which need {needed / 1e9:,.1f} GB, and there are "
            f"{available / 1e9:.1f} GB: cfr.sampler = external keeps none."
        )
    return f"boards take up to {needed / 1e9:.2f} GB"


def _tabular_notes(config: SolveConfig, source: GameSource, abstraction: Path | None) -> list[str]:
    settings, available = config.solve, physical_memory()
    sampled = settings.algorithm == "mccfr"
    notes = []
    if isinstance(source, PokerRules):
        reason = refusal(source)
        if reason and not sampled:
            raise ConfigError(f"{settings.algorithm} visits every board: {reason} mccfr samples them.")
        notes = [reason] if reason else []
        needed = _poker_bytes(config, source, abstraction)
    else:
        game = build_game(source)
        assert isinstance(game, OpenSpielGame)
        notes = [_size(game)]
        needed = mccfr.memory_bytes(game, None, settings.precision) if sampled else tree_cfr.memory_bytes(game)
    if available and needed > 0.9 * available:
        raise ConfigError(
            f"The tables of {source.name} in {settings.precision} need {needed / 1e9:.1f} GB, and there are "
            f"{available / 1e9:.1f} GB{_advice(source, sampled)}."
        )
    return [*notes, f"tables take {needed / 1e9:.2f} GB, and a checkpoint about as much on disk"]


def _advice(source: GameSource, sampled: bool) -> str:
    if not isinstance(source, PokerRules):
        return ""
    return ": choose an abstraction" if sampled else ": choose int16, or mccfr with an abstraction"


def _poker_bytes(config: SolveConfig, rules: PokerRules, abstraction: Path | None) -> int:
    if config.solve.algorithm != "mccfr":
        return vector_cfr.memory_bytes(rules, config.solve)
    counts = tuple(read_description(abstraction)["counts"]) if abstraction else None
    return mccfr.memory_bytes(PokerGame(rules), counts, config.solve.precision)


def _size(game: OpenSpielGame) -> str:
    return f"{game.explicit.num_nodes:,} histories, {game.explicit.num_infosets:,} infosets"


def time_notes(solver: Solver, config: AnyConfig) -> list[str]:
    """What the rest of a run will take in time: a tabular solver tries it on a small scale."""
    left = config.iterations - solver.iteration
    if isinstance(solver, NetworkSolver) or left < 1:
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
