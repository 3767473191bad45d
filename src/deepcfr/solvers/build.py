"""Solvers by configuration."""

from __future__ import annotations

from typing import TypeVar

from deepcfr.abstraction.buckets import Abstraction, lossless
from deepcfr.abstraction.texture import TEXTURE, Buckets, TextureBuckets
from deepcfr.config import AnyConfig, RunConfig
from deepcfr.errors import ConfigError, GameError
from deepcfr.games.ladder_betting import LadderGame
from deepcfr.games.openspiel import OpenSpielGame
from deepcfr.games.poker import PokerGame
from deepcfr.games.presets import NOT_LISTED
from deepcfr.games.rules import PokerRules
from deepcfr.solvers.collector import Collecting
from deepcfr.solvers.deep_cfr import DeepCFR, IterationRecord
from deepcfr.solvers.ladder import LadderMCCFR
from deepcfr.solvers.mccfr import MCCFR
from deepcfr.solvers.nfsp import NFSP, NFSPRecord
from deepcfr.solvers.parts import MergedHere
from deepcfr.solvers.sampled import SampledSolver
from deepcfr.solvers.tabular import TabularRecord
from deepcfr.solvers.tree_cfr import TreeCFR
from deepcfr.solvers.vector_cfr import VectorCFR

TabularSolver = VectorCFR | TreeCFR | MCCFR | LadderMCCFR
NetworkSolver = DeepCFR | NFSP
Solver = NetworkSolver | TabularSolver
Record = IterationRecord | NFSPRecord | TabularRecord


def build_solver(
    game: PokerGame | OpenSpielGame,
    config: AnyConfig,
    abstraction: Abstraction | None = None,
    collecting: Collecting | None = None,
) -> Solver:
    """A new solver for the game, before its first iteration; `abstraction` is for Monte Carlo CFR on poker games.

    `collecting` is for Deep CFR: what makes the collector, if traversals are not to run in this process.

    Raises ConfigError and GameError for what the solver does not offer.
    """
    if isinstance(config, RunConfig):
        return NFSP(game, config) if config.solver == "nfsp" else DeepCFR(game, config, collecting)
    settings, threads = config.solve, config.runtime.threads
    if settings.algorithm == "mccfr":
        buckets = _texture(game) if settings.abstraction == TEXTURE else abstraction
        return in_parts(MCCFR(game, settings, config.seed, threads, buckets))
    if settings.abstraction != "lossless":
        raise ConfigError(f"{settings.algorithm} is full-width and takes no abstraction: mccfr does.")
    if isinstance(game, PokerGame):
        return VectorCFR(game, settings, threads, config.seed)
    return TreeCFR(game, settings)


def build_ladder_solver(game: LadderGame, config: AnyConfig, abstraction: Abstraction | None = None) -> LadderMCCFR:
    """A new solver for a raise-ladder game, before its first iteration; `abstraction` is what the settings name, if any.

    Raises ConfigError for settings that it does not offer, and GameError for buckets that do not fit the game.
    """
    if isinstance(config, RunConfig):
        raise ConfigError(NOT_LISTED.format(game.name))
    settings = config.solve
    buckets = abstraction or ladder_buckets(game.rules.deck, settings.abstraction)
    return in_parts(LadderMCCFR(game, settings, buckets, config.seed, config.runtime.threads))


def close_solver(solver: Solver) -> None:
    """End what a solver has begun in other processes, if anything."""
    if isinstance(solver, DeepCFR):
        solver.collector.close()
    elif isinstance(solver, SampledSolver) and solver.merging:
        solver.merging.close()


_Sampled = TypeVar("_Sampled", MCCFR, LadderMCCFR)


def in_parts(solver: _Sampled) -> _Sampled:
    """The solver, whose parts, if it has several, run in this process one after the other."""
    if solver.config.parts > 1:
        solver.merging = MergedHere(solver, solver.config.parts)
    return solver


def ladder_buckets(deck: PokerRules, abstraction: str) -> Buckets:
    """What players of a raise-ladder game tell apart if that is in no folder.

    Raises ConfigError for anything but texture and lossless, and for a game with too many hands to tell all of them apart.
    """
    if abstraction == TEXTURE:
        return TextureBuckets(deck)
    if abstraction == "lossless":
        try:
            return lossless(deck)
        except GameError as error:
            reason = " ".join(error.problems).removesuffix(": ask for fewer buckets instead.")
            raise ConfigError(f"{reason}: ask for --abstraction {TEXTURE}, or a folder.") from error
    raise ConfigError(f"The abstraction '{abstraction}' of {deck.name} is in a folder, and was not loaded from it.")


def _texture(game: PokerGame | OpenSpielGame) -> TextureBuckets:
    if not isinstance(game, PokerGame):
        raise ConfigError(f"Texture buckets are of poker hands, and '{game.name}' is solved as it is.")
    return TextureBuckets(game.rules)
