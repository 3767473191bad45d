"""Regrets and average strategy of the first betting round in a table, as the first version of Deep CFR kept them.

The first round of hold'em has few infosets (169 hands at 8 nodes), is visited by every traversal, and errors there cost
most.

Bootstrapped advantages (Xu et al. 2025, "Deep (Predictive) Discounted CFR"): sums kept by the last network.

A network R^t is fitted to the samples r of iteration t alone, with targets

    d_t max(R^(t-1)(I, .), 0) + r ,

so it is the positive part of a cumulative advantage as in CFR+, discounted by d_t. Predictive CFR+ (Farina et al. 2021)
plays d_(t+1) max(R^t(I, .), 0) + r in iteration t + 1, as if the next samples were like the last ones; another network
is fitted to that. Double Neural CFR (Li et al. 2020) keeps the negative part too, and discounts nothing: R^(t-1)(I, .)
+ r.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch

from deepcfr.boards.regret_kernels import match_regrets
from deepcfr.config.records import CFRConfig, Weighting
from deepcfr.core.types import Doubles, Samples
from deepcfr.game.poker import PokerGame
from deepcfr.network.examples import InfosetExamples
from deepcfr.network.networks import SplitNetwork
from deepcfr.policy.network import FirstRound, first_board, regret_matching
from deepcfr.solve.full_width import DISCOUNTED, Discounting
from deepcfr.solve.memories import TraversalResult
from deepcfr.solve.snapshots import iteration_weight

_BY_WEIGHTING: dict[Weighting, float] = {"uniform": float("inf"), "linear": 1.0, "discounted": 1.5}  # alpha
_AT_ONCE = 1 << 16  # infosets that the network is asked for


def kept_share(t: int, weighting: Weighting) -> float:
    """d_t, the share of earlier advantages that stays when iteration t adds to them: (t-1)^alpha / ((t-1)^alpha + 1)."""
    return Discounting(_BY_WEIGHTING[weighting], 0.0, 0.0).factors(t)[0]


@torch.no_grad()
def bootstrapped(examples: InfosetExamples, network: SplitNetwork, share: float, signed: bool = False) -> torch.Tensor:
    """The targets of `examples` and `share` times the outputs of `network`, float32 [samples, ..., A].

    Only positive outputs count if they are not `signed`.
    """
    parts, many = [], max(1, _AT_ONCE // examples.targets[0, ..., 0].numel())  # a sample may have several decisions
    for first in range(0, len(examples), many):
        infosets = examples.memory[slice(first, first + many)].infosets
        outputs = network(infosets)
        kept = outputs if signed else outputs.clamp(min=0)
        kept = kept * network.scale * examples.objective.legal[infosets.node]
        unit = examples.objective.unit
        parts.append(kept if unit is None else kept * unit[infosets.node][..., None])
    return examples.targets + share * torch.cat(parts)


class FirstRoundTable:
    """Sums over iterations of weight * regret and of weight * reach * strategy, [E, U] each; the settings weight.

    With another `target` than mean, regrets are kept as by networks of sums, which needs values on boards.
    """

    def __init__(self, game: PokerGame, settings: CFRConfig, target: str = "mean") -> None:
        self.tree, self.board = first_board(game)
        self._settings, self._target = settings, target
        self._legal = torch.from_numpy(game.tree.legal[self.tree.nodes])
        shape = (self.tree.num_edges, len(self.board))
        self.regret, self.average = np.zeros(shape), np.zeros(shape)

    def strategy(self) -> FirstRound:
        """sigma^t."""
        advantage = np.zeros((len(self.tree.nodes), len(self.board), self._legal.shape[1]))
        advantage[self.tree.edge_node, :, self.tree.edge_action] = self.regret
        matched = regret_matching(torch.from_numpy(advantage), self._legal[:, None], self._settings.fallback).numpy()
        return self._table(matched[self.tree.edge_node, :, self.tree.edge_action])

    def average_strategy(self) -> FirstRound:
        """The average strategy; uniform where nothing was ever reached."""
        result = np.empty_like(self.average)
        for node in range(len(self.tree.nodes)):
            match_regrets(self.tree.first_edge, node, self.average, result)
        return self._table(result)

    def _table(self, probabilities: npt.NDArray[np.floating]) -> FirstRound:
        return FirstRound(self.tree, self.board.visible_cards, probabilities.astype(np.float32))

    def add(self, player: int, t: int, found: TraversalResult) -> None:
        """Add the results in the first round of one player's traversals of iteration t."""
        if found.first_round is not None:
            self.add_samples(*found.first_round, t)
        if found.first_values is not None:
            self.add_strategy(player, t)
            self.add_values(found.first_values, player, t)

    def add_values(self, values: Doubles, player: int, t: int) -> None:
        """Add the regrets of iteration t from the player's counterfactual values at all nodes, [S, U]."""
        positive, negative, weight = self._factors(t)
        for edge in np.flatnonzero(self.tree.actor[self.tree.edge_node] == player):
            gain = values[self.tree.edge_child[edge]] - values[self.tree.edge_node[edge]]
            self.regret[edge] *= np.where(self.regret[edge] > 0, positive, negative)
            self.regret[edge] += weight * gain

    def _factors(self, t: int) -> tuple[float, float, float]:
        """Factors of earlier positive and negative regrets, and the weight of the new ones, in iteration t."""
        weighting = self._settings.weighting
        if self._target != "mean":
            kept = kept_share(t, weighting)
            return kept, kept if self._target == "sum" else 0.0, 1.0
        positive, negative, _ = DISCOUNTED.factors(t) if weighting == "discounted" else (1.0, 1.0, 1.0)
        return positive, negative, iteration_weight(t, weighting)

    def add_strategy(self, player: int, t: int) -> None:
        """Add the player's current strategy, weighted by its reach, to its average."""
        sigma = self.strategy().probabilities
        weight = iteration_weight(t, self._settings.of_averages)
        reach = np.ones((self.tree.num_nodes, len(self.board)))
        for edge, node in enumerate(self.tree.edge_node):
            mine = self.tree.actor[node] == player
            reach[self.tree.edge_child[edge]] = reach[node] * sigma[edge] if mine else reach[node]
            if mine:
                self.average[edge] += weight * reach[self.tree.edge_child[edge]]

    def add_samples(self, advantages: Samples, strategies: Samples, t: int) -> None:
        """Add samples of external sampling, all at infosets of the first round."""
        regrets = (advantages, self.regret, self._settings.weighting)
        for samples, table, weighting in (regrets, (strategies, self.average, self._settings.of_averages)):
            if not len(samples):
                continue
            node = np.searchsorted(self.tree.nodes, samples.infosets.node.cpu().numpy())
            column = self.strategy().columns(samples.infosets.cards.cpu().numpy())
            sums = np.zeros((len(self.tree.nodes), len(self.board), self._legal.shape[1]))
            np.add.at(sums, (node, column), samples.target.cpu().numpy().astype(np.float64))
            table += iteration_weight(t, weighting) * sums[self.tree.edge_node, :, self.tree.edge_action]

    def arrays(self) -> dict[str, Doubles]:
        """The live state; a checkpoint saves it and restores by copying into it."""
        return {"first-round-regret": self.regret, "first-round-average": self.average}
