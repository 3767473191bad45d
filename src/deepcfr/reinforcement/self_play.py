"""Networks as players of episodes, and the part of `solvers.build.Solver` that solvers by self-play share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from deepcfr.config import NFSPConfig, PPOConfig, RunConfig
from deepcfr.errors import NoPolicy
from deepcfr.games.base import Deals, Game, card_codes, distinct
from deepcfr.memory.reservoir import SavedState
from deepcfr.policies.base import Policy
from deepcfr.policies.network import ToStrategy
from deepcfr.rng import generator, key
from deepcfr.sampling.external import Strategy
from deepcfr.training.networks import NodeParts, SplitNetwork, build_network, count_parameters


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


PLAYERS = (0, 1)
EXPLORE = -1  # the mode of a player in a game in which it plays the first of its players, with random actions between
_RANDOM = 0.5  # probability of a random action then
CHUNK = 4096  # episodes that advance together in one thread, so that their data fits in the cache


@dataclass(frozen=True)
class NetworkPlayer:
    """A network with its encoded nodes, and the function that turns its outputs into a strategy."""

    network: SplitNetwork
    nodes: NodeParts
    to_strategy: ToStrategy

    @staticmethod
    @torch.no_grad()
    def of(network: SplitNetwork, to_strategy: ToStrategy) -> NetworkPlayer:
        """The network as it is."""
        return NetworkPlayer(network, network.node_parts(), to_strategy)

    def probabilities(self, hands: torch.Tensor, nodes: torch.Tensor, legal: torch.Tensor) -> torch.Tensor:
        """The strategy [..., A] from card parts and node parts that broadcast."""
        return self.to_strategy(self.network.joint(hands, nodes), legal)


@torch.no_grad()
def mixed(game: Game, deals: Deals, modes: torch.Tensor, player: int, kinds: Sequence[NetworkPlayer]) -> Strategy:
    """One player's strategy in some episodes: in each it plays the one of `kinds` that `modes`, int64 [B], names.

    With mode EXPLORE it plays the first one with random actions.
    """
    rounds, legal = deals.views.shape[2], game.encoding.legal
    views = deals.views[:, player].flatten(0, 1)
    # many deals share a hand before the board, so distinct views are encoded once
    example, view = distinct(card_codes(views, game.encoding))
    hands = [kind.network.encode_cards(views[example]) for kind in kinds]
    # in a small game each pair of a view and a node occurs many times, so all pairs are evaluated once
    small = len(example) * len(legal) < len(deals)
    tables = []
    if small:
        every = torch.arange(len(legal), device=legal.device)
        tables = [
            kind.probabilities(mine[:, None], kind.nodes[every], legal) for kind, mine in zip(kinds, hands, strict=True)
        ]

    @torch.no_grad()
    def strategy(node: torch.Tensor, row: torch.Tensor) -> torch.Tensor:
        mode, at, hand = modes[row], game.infoset[node], view[row * rounds + game.round[node]]
        result = torch.empty(len(node), legal.shape[1], device=node.device)
        for number, kind in enumerate(kinds):
            some = (mode.clamp(min=0) == number).nonzero()[:, 0]
            if small:
                result[some] = tables[number][hand[some], at[some]]
            elif len(some):
                places = at[some]
                result[some] = kind.probabilities(hands[number][hand[some]], kind.nodes[places], legal[places])
        options = legal[at]
        explored = torch.lerp(result, options / options.sum(1, keepdim=True), _RANDOM)
        return torch.where((mode == EXPLORE)[:, None], explored, result)

    return strategy
