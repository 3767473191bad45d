"""Deep Counterfactual Regret Minimization for poker-like games, with exact exploitability.

The public names are loaded on first use, so that importing the package costs neither torch nor numba.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from deepcfr.api import Agent, Ranges, Training, environment, exploitability, load, match, solve_spot, train
    from deepcfr.config import RunConfig, load_config
    from deepcfr.errors import CheckpointError, ConfigError, DeepCFRError, GameError, TrainingError
    from deepcfr.evaluation.exploitability import Exploitability
    from deepcfr.games.base import Game, check_game
    from deepcfr.games.poker import PokerGame
    from deepcfr.games.presets import load_game, load_rules
    from deepcfr.games.rules import PokerRules
    from deepcfr.policies.base import Policy
    from deepcfr.solvers.deep_cfr import DeepCFR

_HOME = {
    "Agent": "api",
    "Ranges": "api",
    "Training": "api",
    "environment": "api",
    "exploitability": "api",
    "load": "api",
    "match": "api",
    "solve_spot": "api",
    "train": "api",
    "RunConfig": "config",
    "load_config": "config",
    "CheckpointError": "errors",
    "ConfigError": "errors",
    "DeepCFRError": "errors",
    "GameError": "errors",
    "TrainingError": "errors",
    "Exploitability": "evaluation.exploitability",
    "Game": "games.base",
    "check_game": "games.base",
    "PokerGame": "games.poker",
    "load_game": "games.presets",
    "load_rules": "games.presets",
    "PokerRules": "games.rules",
    "Policy": "policies.base",
    "DeepCFR": "solvers.deep_cfr",
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
    "match",
    "solve_spot",
    "train",
]
__version__ = "0.3.0"


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'deepcfr' has no attribute {name!r}")
    return getattr(importlib.import_module(f"deepcfr.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
