"""The numba kernels of counterfactual regrets in one betting round on one board: matching, one descent, sums,
discounts.

Shapes are those of `boards.kernels`."""

from __future__ import annotations

import numpy as np

from deepcfr.boards.kernels import ABSENT, push_reach
from deepcfr.boards.rounds import RoundArrays
from deepcfr.core.compiled import nb
from deepcfr.core.types import Floats, Ints


@nb.njit(cache=True, nogil=True, error_model="numpy")
def match_regrets(first_edge: Ints, node: int, regret: Floats, strategy: Floats) -> None:
    """Regret matching at one node: `strategy` [E, U] from `regret` [E, U]; uniform where no regret is positive."""
    first, last = first_edge[node], first_edge[node + 1]
    number = strategy.dtype.type
    zero, even = number(0), number(1) / number(last - first)
    total = np.zeros(regret.shape[1], strategy.dtype)
    for edge in range(first, last):
        source, target = regret[edge], strategy[edge]
        for u in range(len(total)):
            positive = max(number(source[u]), zero)
            target[u] = positive
            total[u] += positive
    for edge in range(first, last):
        target = strategy[edge]
        for u in range(len(total)):
            target[u] = target[u] / total[u] if total[u] > zero else even


@nb.njit(cache=True, nogil=True, error_model="numpy")
def match_outputs(
    first_edge: Ints, edge_action: Ints, nodes: Ints, outputs: Floats, highest: bool, strategy: Floats
) -> None:
    """Regret matching at `nodes` [m]: `strategy` [E, U] from the advantages `outputs` [m, A, U].

    Where no advantage is positive, `highest` plays the highest one, ties shared, and otherwise all legal actions alike.
    """
    hands = outputs.shape[2]
    total, best, ties = np.empty(hands, np.float32), np.empty(hands, np.float32), np.empty(hands, np.float32)
    for i in range(len(nodes)):
        first, last = first_edge[nodes[i]], first_edge[nodes[i] + 1]
        total[:] = 0
        best[:] = outputs[i, edge_action[first]]
        for edge in range(first, last):
            output = outputs[i, edge_action[edge]]
            for u in range(hands):
                total[u] += max(output[u], np.float32(0))
                best[u] = max(best[u], output[u])
        ties[:] = 0
        for edge in range(first, last):
            output = outputs[i, edge_action[edge]]
            for u in range(hands):
                ties[u] += np.float32(1) if not highest or output[u] == best[u] else np.float32(0)
        for edge in range(first, last):
            output, target = outputs[i, edge_action[edge]], strategy[edge]
            for u in range(hands):
                other = np.float32(1) / ties[u] if not highest or output[u] == best[u] else np.float32(0)
                target[u] = max(output[u], np.float32(0)) / total[u] if total[u] > 0 else other


@nb.njit(cache=True, nogil=True)
def drop_rare(first_edge: Ints, least: float, strategy: Floats) -> None:
    """Set probabilities below `least` / actions in `strategy` [E, U] to 0, and scale the others up to a sum of 1."""
    for node in range(len(first_edge) - 1):
        first, last = first_edge[node], first_edge[node + 1]
        total = np.zeros(strategy.shape[1])
        for edge in range(first, last):
            shares = strategy[edge]
            for u in range(len(total)):
                shares[u] = shares[u] if shares[u] * (last - first) >= least else 0
                total[u] += shares[u]
        for edge in range(first, last):
            shares = strategy[edge]
            for u in range(len(total)):
                shares[u] /= total[u]


@nb.njit(cache=True, nogil=True, error_model="numpy")
def descend(
    tree: RoundArrays,
    player: int,
    regret: Floats,
    average: Floats,
    keep: float,
    strategy: Floats,
    own: Floats,
    other: Floats,
    tremble: float,
    known: bool = False,
) -> None:
    """The forward pass of a CFR update: regret matching, reach, and the player's average strategy.

    If the player's `strategy` [E, U] is `known`, only the opponent's is matched.
    `own` and `other` [rows, U] are the reach of the player and of the opponent, filled in at the round roots, with
    `tremble` as in `push_reach`. `average` [E, U] of the player's edges is multiplied by `keep`, and reach times
    strategy is added.
    """
    kept = own.dtype.type(keep)
    for node in range(len(tree.actor)):
        if not known or tree.actor[node] != player:
            match_regrets(tree.first_edge, node, regret, strategy)
        if tree.actor[node] != player:
            push_reach(tree, node, strategy, other, tremble)
            continue
        push_reach(tree, node, strategy, own, tremble)
        before = own[tree.row[player, node]]
        for edge in range(tree.first_edge[node], tree.first_edge[node + 1]):
            total, probability = average[edge], strategy[edge]
            for u in range(len(total)):
                total[u] = total[u] * kept + before[u] * probability[u]


@nb.njit(cache=True, nogil=True)
def add_regrets(
    tree: RoundArrays,
    player: int,
    keep_positive: float,
    keep_negative: float,
    least: float,
    values: Floats,
    regret: Floats,
) -> None:
    """The last step of a CFR update: from the `values` [S, U] of all nodes to the player's `regret` [E, U].

    Regrets are multiplied by `keep_positive` or `keep_negative` according to their sign, then (action value - node
    value) is added, and the sum is raised to `least` if it is lower.
    """
    number = values.dtype.type
    positive, negative, lowest = number(keep_positive), number(keep_negative), number(least)
    for node in range(len(tree.actor)):
        if tree.actor[node] == player:
            value = values[node]
            for edge in range(tree.first_edge[node], tree.first_edge[node + 1]):
                action_value, total = values[tree.edge_child[edge]], regret[edge]
                for u in range(len(total)):
                    kept = total[u] * (positive if total[u] > 0 else negative)
                    total[u] = max(kept + (action_value[u] - value[u]), lowest)


@nb.njit(cache=True, nogil=True)
def fade(tree: RoundArrays, factor: float, reach0: Floats, reach1: Floats, regret: Floats, average: Floats) -> None:
    """Multiply by `factor` what was learnt of situations that the players' reach [rows, U] no longer comes to.

    That is the `regret` [E, U] of nodes to which no hand of the opponent comes, and the `average` strategy [E, U] of
    hands that do not come by their own actions. The strategies stay the same, but what is learnt next outweighs them.
    """
    scale = regret.dtype.type(factor)
    for node in range(len(tree.actor)):
        player = tree.actor[node]
        own, other = (reach0, reach1) if player == 0 else (reach1, reach0)
        come, met = own[tree.row[player, node]], other[tree.row[1 - player, node]].max() >= ABSENT
        for edge in range(tree.first_edge[node], tree.first_edge[node + 1]):
            old, mean = regret[edge], average[edge]
            for u in range(len(come)):
                if not met:
                    old[u] *= scale
                if come[u] < ABSENT:
                    mean[u] *= scale


@nb.njit(cache=True, nogil=True)
def predict_regrets(tree: RoundArrays, player: int, values: Floats, regret: Floats, matched: Floats) -> None:
    """Set the player's `matched` [E, U] to `regret` [E, U] plus the regrets of the iteration with `values` [S, U].

    The newest regrets stand for those to come: predictive regret matching (Farina, Kroer and Sandholm 2021).
    """
    for node in range(len(tree.actor)):
        if tree.actor[node] == player:
            value = values[node]
            for edge in range(tree.first_edge[node], tree.first_edge[node + 1]):
                action_value = values[tree.edge_child[edge]]
                for u in range(len(value)):
                    matched[edge, u] = regret[edge, u] + (action_value[u] - value[u])
