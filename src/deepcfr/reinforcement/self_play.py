"""The part of `solvers.build.Solver` that solvers by self-play share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

from deepcfr.config import NFSPConfig, PPOConfig, RunConfig
from deepcfr.errors import NoPolicy
from deepcfr.games.base import Game
from deepcfr.memory.state import SavedState
from deepcfr.policies.base import Policy
from deepcfr.rng import generator, key
from deepcfr.training.networks import SplitNetwork, build_network, count_parameters


@dataclass
class SelfPlay(ABC):
    """A solver whose iterations are batches of episodes, each followed by updates of all networks.

    Every random stream is derived from (seed, purpose, iteration, player), so there is no generator state to save.
    """

    game: Game
    config: RunConfig
    iteration: int = 0
    nodes_touched: int = 0

    @property
    @abstractmethod
    def settings(self) -> NFSPConfig | PPOConfig:
        """The solver's own section of the configuration."""

    @abstractmethod
    def average_policy(self) -> Policy:
        """The result of the run."""

    @abstractmethod
    def current_policy(self) -> Policy:
        """The newest strategy."""

    def policy(self, name: str) -> Policy:
        """The strategy `current`, or the result for other names. Raises NoPolicy for snapshot policies."""
        if name == "sd-cfr":
            raise NoPolicy("is not a run of Deep CFR and has no snapshots: use --policy average.")
        return self.current_policy() if name == "current" else self.average_policy()

    @property
    def average_iteration(self) -> int:
        """The iteration of the result's networks."""
        return self.iteration

    def fit_average(self) -> None:  # noqa: B027
        """Do nothing: the result's networks are trained in every iteration."""

    def describe(self) -> str:
        """One line with game, iterations, episodes, network size and seed."""
        return (
            f"{self.config.method} on {self.game.name}: {self.settings.iterations:,} iterations of "
            f"{self.settings.episodes:,} episodes, networks of {count_parameters(self._new_network('size')):,} parameters, "
            f"seed {self.config.seed}"
        )

    def seconds_per_iteration(self) -> None:  # noqa: B027
        """None: not known before an iteration has run."""

    def thin(self, keep_networks: int) -> None:  # noqa: B027
        """Do nothing: there are no snapshots."""

    def close(self) -> None:  # noqa: B027
        """Do nothing: there are no other processes."""

    def _facts(self, memories: dict[str, int]) -> dict[str, Any]:
        """The facts of a checkpoint; `memories` is empty if training cannot go on from it."""
        return {
            "solver": self.config.solver,
            "game": self.game.name,
            "iteration": self.iteration,
            "nodes_touched": self.nodes_touched,
            "memories": memories,
        }

    def _restore_facts(self, saved: SavedState) -> None:
        self.iteration, self.nodes_touched = int(saved.facts["iteration"]), int(saved.facts["nodes_touched"])

    def _new_network(self, *purpose: str | int) -> SplitNetwork:
        return build_network(self.game.encoding, self.config.network, generator(self._stream("network", *purpose)))

    def _stream(self, *purpose: str | int) -> int:
        return key(self.config.seed, self.config.solver, *purpose)
