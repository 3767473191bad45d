"""Deep Counterfactual Regret Minimization for poker-like games, with exact exploitability.

The public names are loaded on first use, so that importing the package costs neither torch nor numba.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from deepcfr.api import (
        Agent,
        Ranges,
        Training,
        environment,
        exploitability,
        load,
        load_spot,
        match,
        solve_spot,
        solve_spots,
        train,
    )
    from deepcfr.config import RunConfig, load_config
    from deepcfr.core.errors import CheckpointError, ConfigError, DeepCFRError, GameError, TrainingError
    from deepcfr.game.base import Game, check_game
    from deepcfr.game.poker import PokerGame
    from deepcfr.game.presets import load_game, load_rules
    from deepcfr.game.rules import PokerRules
    from deepcfr.measure.exploitability import Exploitability
    from deepcfr.policy.base import Policy
    from deepcfr.solve.deep_cfr import DeepCFR

_HOME = {
    "Agent": "api",
    "Ranges": "api",
    "Training": "api",
    "environment": "api",
    "exploitability": "api",
    "load": "api",
    "load_spot": "api",
    "match": "api",
    "solve_spot": "api",
    "solve_spots": "api",
    "train": "api",
    "RunConfig": "config",
    "load_config": "config",
    "CheckpointError": "core.errors",
    "ConfigError": "core.errors",
    "DeepCFRError": "core.errors",
    "GameError": "core.errors",
    "TrainingError": "core.errors",
    "Exploitability": "measure.exploitability",
    "Game": "game.base",
    "check_game": "game.base",
    "PokerGame": "game.poker",
    "load_game": "game.presets",
    "load_rules": "game.presets",
    "PokerRules": "game.rules",
    "Policy": "policy.base",
    "DeepCFR": "solve.deep_cfr",
}

__all__ = [
    "Agent",
    "CheckpointError",
    "ConfigError",
    "DeepCFR",
    "DeepCFRError",
    "Exploitability",
    "Game",
    "GameError",
    "PokerGame",
    "PokerRules",
    "Policy",
    "Ranges",
    "RunConfig",
    "Training",
    "TrainingError",
    "check_game",
    "environment",
    "exploitability",
    "load",
    "load_config",
    "load_game",
    "load_rules",
    "load_spot",
    "match",
    "solve_spot",
    "solve_spots",
    "train",
]
__version__ = "0.3.0"


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'deepcfr' has no attribute {name!r}")
    return getattr(importlib.import_module(f"deepcfr.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
