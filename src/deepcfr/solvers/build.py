"""Solvers by configuration."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

from deepcfr.abstraction.buckets import Abstraction
from deepcfr.config import AnyConfig, RunConfig
from deepcfr.errors import ConfigError
from deepcfr.games.base import Game
from deepcfr.games.ladder_game import LadderPoker
from deepcfr.games.poker import PokerGame
from deepcfr.games.tree_game import TreeGame
from deepcfr.memory.reservoir import SavedState, SolverState
from deepcfr.reinforcement.nfsp import NFSP
from deepcfr.reinforcement.policy_gradient import PolicyGradient
from deepcfr.solvers.collector import Outside
from deepcfr.solvers.deep_cfr import DeepCFR
from deepcfr.solvers.excessive_gap import ExcessiveGap
from deepcfr.solvers.fictitious_play import FictitiousPlay
from deepcfr.solvers.mccfr import MCCFR
from deepcfr.solvers.tree_cfr import TreeCFR
from deepcfr.solvers.vector_cfr import VectorCFR
from deepcfr.training.fit import FitResult


class Record(Protocol):
    """The record of one iteration; each solver has its own dataclass."""

    @property
    def iteration(self) -> int: ...

    @property
    def nodes_touched(self) -> int: ...

    def figures(self) -> str:
        """The figures for the progress display."""


class Solver(Protocol):
    """The interface of a run of any algorithm, for training, checkpoints and play."""

    @property
    def game(self) -> Any: ...

    @property
    def iteration(self) -> int: ...

    @property
    def nodes_touched(self) -> int: ...

    @property
    def average_iteration(self) -> int:
        """The iteration whose average strategy can be played; 0 if there is none."""

    def iterations(self) -> Iterator[Record]:
        """Advance one iteration at a time."""

    def fit_average(self) -> FitResult | None:
        """Fit the average strategy if that is a network to be fitted; otherwise do nothing and return None."""

    def policy(self, name: str) -> Any:
        """The strategy of a name in `config.records.EvaluationConfig.policy`, or "current".

        Raises NoPolicy if there is none (yet).
        """

    def state(self, memories: bool) -> SolverState:
        """The state that a checkpoint stores; without `memories` it can be played but not trained."""

    def restore(self, saved: SavedState, memories: bool) -> None:
        """Restore the result of `state`; without `memories` only what play needs."""

    def memory_bytes(self, memories: bool) -> int:
        """Bytes of the large arrays of `state`, without copying anything from a device."""

    def thin(self, keep_networks: int) -> None:
        """Keep every `keep_networks`-th snapshot, counted back from the newest, or none if that is 0."""

    def describe(self) -> str:
        """One line that describes the run: algorithm, game and sizes."""

    def seconds_per_iteration(self) -> float | None:
        """A measured forecast from a small trial; None if there is none."""

    def close(self) -> None:
        """End the processes that this one started."""


def build_solver(
    game: Game,
    config: AnyConfig,
    abstraction: Abstraction | None = None,
    outside: Outside | None = None,
) -> Solver:
    """A new solver for the game, before its first iteration; `abstraction` is for Monte Carlo CFR on poker games.

    `outside` is for Deep CFR: the other processes that run its traversals, if any.

    Raises ConfigError and GameError for what the solver does not offer.
    """
    if isinstance(config, RunConfig):
        if config.solver == "deep-cfr":
            return DeepCFR(game, config, outside)
        return NFSP(game, config) if config.solver == "nfsp" else PolicyGradient(game, config)
    settings, threads = config.solve, config.runtime.threads
    game = require_tabular(game)
    if settings.algorithm == "mccfr":
        return MCCFR(game, settings, config.seed, threads, abstraction)
    if settings.abstraction != "lossless":
        raise ConfigError(f"{settings.algorithm} is full-width and takes no abstraction: use mccfr.")
    if isinstance(game, LadderPoker):
        raise ConfigError(f"{game.name} is solved with mccfr, and '{settings.algorithm}' was asked for.")
    if isinstance(game, PokerGame):
        return VectorCFR(game, settings, threads, config.seed)
    kind = {"xfp": FictitiousPlay, "egt": ExcessiveGap}.get(settings.algorithm, TreeCFR)
    return kind(game, settings)


def require_tabular(game: Game) -> PokerGame | TreeGame | LadderPoker:
    """The same game; ConfigError if it is one whose histories no tabular solver holds."""
    if not isinstance(game, PokerGame | TreeGame | LadderPoker):
        raise ConfigError(f"Tabular solvers need a list of histories, and '{game.name}' has too many: use train.")
    return game
