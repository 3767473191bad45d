"""Solvers by configuration."""

from __future__ import annotations

from deepcfr.abstraction.buckets import Abstraction
from deepcfr.config import AnyConfig, RunConfig
from deepcfr.errors import ConfigError
from deepcfr.games.openspiel import OpenSpielGame
from deepcfr.games.poker import PokerGame
from deepcfr.solvers.deep_cfr import DeepCFR, IterationRecord
from deepcfr.solvers.mccfr import MCCFR
from deepcfr.solvers.nfsp import NFSP, NFSPRecord
from deepcfr.solvers.tabular import TabularRecord
from deepcfr.solvers.tree_cfr import TreeCFR
from deepcfr.solvers.vector_cfr import VectorCFR

TabularSolver = VectorCFR | TreeCFR | MCCFR
NetworkSolver = DeepCFR | NFSP
Solver = NetworkSolver | TabularSolver
Record = IterationRecord | NFSPRecord | TabularRecord


def build_solver(game: PokerGame | OpenSpielGame, config: AnyConfig, abstraction: Abstraction | None = None) -> Solver:
    """A new solver for the game, before its first iteration; `abstraction` is for Monte Carlo CFR on poker games.

    Raises ConfigError and GameError for what the solver does not offer.
    """
    if isinstance(config, RunConfig):
        return NFSP(game, config) if config.solver == "nfsp" else DeepCFR(game, config)
    settings, threads = config.solve, config.runtime.threads
    if settings.algorithm == "mccfr":
        return MCCFR(game, settings, config.seed, threads, abstraction)
    if settings.abstraction != "lossless":
        raise ConfigError(f"{settings.algorithm} is full-width and takes no abstraction: mccfr does.")
    if isinstance(game, PokerGame):
        return VectorCFR(game, settings, threads, config.seed)
    return TreeCFR(game, settings)
