"""Deep Counterfactual Regret Minimization for poker-like games, with exact exploitability.

The public names are loaded on first use, so that importing the package costs neither torch nor numba.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from deepcfr.api import (
        Agent as Agent,
        Ranges as Ranges,
        Training as Training,
        environment as environment,
        exploitability as exploitability,
        load as load,
        load_spot as load_spot,
        match as match,
        solve_spot as solve_spot,
        solve_spots as solve_spots,
        train as train,
    )
    from deepcfr.config import (
        RunConfig as RunConfig,
        load_config as load_config,
    )
    from deepcfr.core.errors import (
        CheckpointError as CheckpointError,
        ConfigError as ConfigError,
        DeepCFRError as DeepCFRError,
        GameError as GameError,
        TrainingError as TrainingError,
    )
    from deepcfr.game.base import (
        Game as Game,
        check_game as check_game,
    )
    from deepcfr.game.poker import PokerGame as PokerGame
    from deepcfr.game.presets import (
        load_game as load_game,
        load_rules as load_rules,
    )
    from deepcfr.game.rules import PokerRules as PokerRules
    from deepcfr.measure.exploitability import Exploitability as Exploitability
    from deepcfr.policy.base import Policy as Policy
    from deepcfr.solve.deep_cfr import DeepCFR as DeepCFR

_NAMES = {
    "api": "Agent Ranges Training environment exploitability load load_spot match solve_spot solve_spots train",
    "config": "RunConfig load_config",
    "core.errors": "CheckpointError ConfigError DeepCFRError GameError TrainingError",
    "game.base": "Game check_game",
    "game.poker": "PokerGame",
    "game.presets": "load_game load_rules",
    "game.rules": "PokerRules",
    "measure.exploitability": "Exploitability",
    "policy.base": "Policy",
    "solve.deep_cfr": "DeepCFR",
}
_HOME = {name: module for module, names in _NAMES.items() for name in names.split()}
__all__ = sorted(_HOME)
__version__ = "0.3.0"


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'deepcfr' has no attribute {name!r}")
    return getattr(importlib.import_module(f"deepcfr.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return __all__
