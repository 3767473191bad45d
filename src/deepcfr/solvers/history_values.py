"""Learnt values of histories, the baseline of DREAM and the source of ESCHER's advantages."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import torch

from deepcfr.config import NetworkConfig, RunConfig
from deepcfr.errors import GameError
from deepcfr.games.base import Deals, Game, NodeFunction
from deepcfr.memory.reservoir import Memory, bytes_per_sample
from deepcfr.parallel import Workers
from deepcfr.rng import generator, key
from deepcfr.sampling.outcome import Values, history_views
from deepcfr.training.examples import InfosetExamples, Objective, uniform_weights
from deepcfr.training.fit import FitResult, fit, value_loss
from deepcfr.training.networks import SplitNetwork, build_network
from deepcfr.types import TERMINAL, Encoding

if TYPE_CHECKING:
    from deepcfr.solvers.memories import TraversalResult


def history_encoding(game: Game) -> Encoding:
    """The encoding of histories: a node with the features of its infoset, and the cards that both players see.

    Raises GameError for a game with too many nodes to list.
    """
    actor, infoset, legal = game.actor, game.infoset, game.legal
    if isinstance(actor, NodeFunction) or isinstance(infoset, NodeFunction) or isinstance(legal, NodeFunction):
        raise GameError(f"Values of histories need a list of all nodes, and '{game.name}' has too many for one.")
    infoset = torch.where(actor == TERMINAL, 0, infoset)
    groups = game.encoding.card_groups
    return replace(
        game.encoding,
        node_features=game.encoding.node_features[infoset],
        legal=legal,
        card_groups=(*groups, *groups),
    )


def _network_config(config: NetworkConfig, encoding: Encoding) -> NetworkConfig:
    """As the other networks but for hand strength; without cards every history has a learnt vector of its own."""
    return replace(config, strength=False, node_embedding=config.node_embedding or not encoding.card_groups)


@dataclass
class HistoryValues:
    """A network of the values of actions at histories, to player 0 under the current profile, and its memory.

    An action's target is the value of the history after it, as in `sampling.outcome`. Fits go on from the last weights.
    """

    game: Game
    config: RunConfig
    network: SplitNetwork = field(init=False)
    memory: Memory = field(init=False)
    fitted: bool = field(init=False, default=False)

    def __post_init__(self) -> None:
        self.encoding = history_encoding(self.game)
        network = _network_config(self.config.network, self.encoding)
        first = generator(key(self.config.seed, "network", "values"))
        self.network = build_network(self.encoding, network, first)
        self.memory = Memory(self.encoding, self.config.values.capacity, "window", self.game.device)

    @property
    def come_first(self) -> bool:
        """Whether the values are learnt before the traversals that use them, from histories of their own.

        ESCHER takes advantages from these values, which should be those of the current profile. A baseline must not
        depend on the histories that it corrects, so it is learnt after them, for the next ones.
        """
        return self.config.sampling.kind == "outcome" and self.config.sampling.estimate == "values"

    def of(self, deals: Deals) -> Values:
        """The values of all actions at histories of some deals; 0 before the first fit."""
        game, network, rounds = self.game, self.network, deals.views.shape[2]
        if not self.fitted:
            return lambda node, row: torch.zeros(len(node), game.encoding.num_actions, device=row.device)
        with torch.no_grad():
            hands, nodes = network.encode_cards(history_views(deals).flatten(0, 1)), network.encode_nodes()

        @torch.no_grad()
        def values(node: torch.Tensor, row: torch.Tensor) -> torch.Tensor:
            outputs = network.joint(hands[row * rounds + game.round[node]], nodes[node])
            return outputs * network.scale

        return values

    def add(self, found: TraversalResult) -> None:
        """Remember the steps of sampled histories in place of the oldest ones."""
        assert found.histories is not None
        self.memory.add(found.histories, stream=0)  # a window needs no random numbers

    def fit(self, t: int, traverser: int, workers: Workers) -> FitResult:
        """Fit the network to the newest steps, after the traversals of iteration t for one player."""
        objective = Objective(self.encoding.legal, value_loss, uniform_weights, t)
        settings = self.config.values.fit
        examples = InfosetExamples(self.memory, objective, settings)
        stream = key(self.config.seed, "value fit", t, traverser)
        self.fitted = True
        return fit(self.network, examples, settings, stream, workers)


def value_memory_bytes(game: Game, config: RunConfig) -> int:
    """Bytes of the memory of history values when it is full; 0 if the run has none."""
    return config.values.capacity * bytes_per_sample(history_encoding(game)) if config.has_values else 0
