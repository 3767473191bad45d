"""Games and solvers by configuration."""

from __future__ import annotations

from deepcfr.buckets.buckets import Abstraction
from deepcfr.config import RunConfig
from deepcfr.core.errors import ConfigError
from deepcfr.game.base import Game
from deepcfr.game.bet_size_game import BetSizePoker
from deepcfr.game.poker import Poker, PokerGame, poker_game
from deepcfr.game.presets import GameSource, build_game
from deepcfr.game.tree_game import TreeGame
from deepcfr.search.cfr_d import CFRD
from deepcfr.solve.base import FullWidthSolver, Solver
from deepcfr.solve.deep_cfr import DeepCFR, Outside
from deepcfr.solve.mccfr import MCCFR
from deepcfr.solve.nfsp import NFSP
from deepcfr.solve.policy_gradient import PolicyGradient
from deepcfr.solve.sequence_form import ExcessiveGap, FictitiousPlay, TreeCFR
from deepcfr.solve.vector_cfr import VectorCFR

_LEARNING: dict[str, type[Solver]] = {"deep-cfr": DeepCFR, "nfsp": NFSP, "ppo": PolicyGradient, "mmd": PolicyGradient}
_ON_TREES: dict[str, type[FullWidthSolver]] = {"xfp": FictitiousPlay, "egt": ExcessiveGap}


def make_game(source: GameSource, config: RunConfig, device: str = "cpu") -> Game:
    """The game of a run, with cards as its networks see them."""
    if config.tabular:
        return build_game(source, device=device)
    game = build_game(source, config.network.suits, device)
    return poker_game(game) if isinstance(game, Poker) else game


def solver_class(game: Game, config: RunConfig) -> type[Solver]:
    """The solver of a configuration. Raises ConfigError for a game that it does not offer."""
    if not config.tabular:
        return _LEARNING[config.solver]
    if not isinstance(game, PokerGame | TreeGame | BetSizePoker):
        raise ConfigError(f"Tabular solvers need a list of histories, and '{game.name}' has too many: use train.")
    if config.solver == "mccfr":
        return MCCFR
    if isinstance(game, BetSizePoker):
        raise ConfigError(f"{game.name} is solved with mccfr, and '{config.solver}' was asked for.")
    if config.solver == "cfr-d":
        if isinstance(game, PokerGame):
            return CFRD
        raise ConfigError(f"cfr-d is for games of poker, and {game.name} is none: use dcfr.")
    return VectorCFR if isinstance(game, PokerGame) else _ON_TREES.get(config.solver, TreeCFR)


def build_solver(
    game: Game, config: RunConfig, abstraction: Abstraction | None = None, outside: Outside | None = None
) -> Solver:
    """A new solver for the game, before its first iteration; `abstraction` is for Monte Carlo CFR on poker games.

    `outside` is for Deep CFR: the other processes that run its traversals, if any.

    Raises ConfigError and GameError for what the solver does not offer.
    """
    kind = solver_class(game, config)
    if kind is DeepCFR:
        return DeepCFR(game, config, outside)
    if kind is MCCFR:
        return MCCFR(game, config, abstraction)  # type: ignore[arg-type]
    return kind(game, config)  # type: ignore[call-arg]
