"""The sequence form of an explicit tree (von Stengel 1996; Koller, Megiddo and von Stengel 1996).

A sequence of a player is the list of its own actions on the way to a history. In a game of perfect recall every infoset is
reached by one sequence of its player, so the probability with which a player plays a sequence is a product over its
infosets, and counterfactual values need only the terminal histories, merged where both players' sequences are the same.

Sequences have numbers 0 .. S-1, S = 2 + K*L: p for the empty one of player p, and 2 + k*L + a for the one that ends with
action a at infoset k.
"""

from __future__ import annotations

from dataclasses import dataclass

import numba as nb
import numpy as np
import numpy.typing as npt

from deepcfr.errors import GameError
from deepcfr.games.explicit import ExplicitTree
from deepcfr.types import TERMINAL

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

EMPTY = 2  # sequences that end with no action, one for each player


@dataclass(frozen=True)
class SequenceForm:
    """What full-width solvers and best responses need of a game with perfect recall."""

    actor: Ints  # [K], the player to whom an infoset belongs
    num_actions: Ints  # [K], legal actions
    parent: Ints  # [K], the sequence by which its player reaches an infoset; its infoset is a smaller number
    sequences: tuple[Ints, Ints]  # [Z] for each player, of the pairs of sequences that end the game
    payoff: Floats  # [Z], to player 0, times the probability of chance, summed over the histories of the pair


def sequence_form(tree: ExplicitTree, name: str) -> SequenceForm:
    """The sequence form of `tree`; `name` is for errors. Raises GameError if a player forgets what it knew or did."""
    parent, last, reach, forgetful = _sequences(
        tree.actor, tree.parent, tree.first_child, tree.chance, tree.infoset, tree.num_infosets, tree.num_actions
    )
    if forgetful >= 0:
        raise GameError(
            f"'{name}' has imperfect recall: histories with different own actions of player "
            f"{tree.infoset_actor[forgetful]} share the infoset {tree.infoset_names[forgetful]!r}."
        )
    over = tree.actor == TERMINAL
    pair = last[0, over] * (EMPTY + tree.num_infosets * tree.num_actions) + last[1, over]
    _, first, group = np.unique(pair, return_index=True, return_inverse=True)
    payoff = np.zeros(len(first))
    np.add.at(payoff, group, (reach * tree.payoff)[over])
    return SequenceForm(
        actor=tree.infoset_actor,
        num_actions=tree.infoset_actions,
        parent=parent,
        sequences=(last[0, over][first], last[1, over][first]),
        payoff=payoff,
    )


@nb.njit(cache=True, nogil=True)
def _sequences(
    actor: Ints, parent: Ints, first_child: Ints, chance: Floats, infoset: Ints, num_infosets: int, width: int
) -> tuple[Ints, Ints, Floats, int]:
    """Each infoset's parent sequence [K], each node's sequences [2, N] and chance reach [N], an infoset without recall."""
    nodes = len(actor)
    reached_by = np.full(num_infosets, -1, np.int64)
    last = np.empty((2, nodes), np.int64)
    reach = np.ones(nodes)
    forgetful = -1
    for node in range(nodes):
        above = parent[node]
        if above < 0:
            last[0, node], last[1, node] = 0, 1
        else:
            last[0, node], last[1, node] = last[0, above], last[1, above]
            reach[node] = reach[above] * chance[node]
            if actor[above] >= 0:
                last[actor[above], node] = EMPTY + infoset[above] * width + node - first_child[above]
        if actor[node] >= 0:
            own, place = last[actor[node], node], infoset[node]
            if reached_by[place] < 0:
                reached_by[place] = own
            elif reached_by[place] != own and forgetful < 0:
                forgetful = place
    return reached_by, last, reach, forgetful


@nb.njit(cache=True, nogil=True)
def realization(table: Floats, parent: Ints, num_actions: Ints) -> Floats:
    """The probability with which its player plays each sequence under `table` [K, L]: the realization plan, [S]."""
    infosets, width = table.shape
    plan = np.zeros(EMPTY + infosets * width)
    plan[:EMPTY] = 1.0
    for infoset in range(infosets):
        reach = plan[parent[infoset]]
        for action in range(num_actions[infoset]):
            plan[EMPTY + infoset * width + action] = reach * table[infoset, action]
    return plan


@nb.njit(cache=True, nogil=True)
def terminal_values(first: Ints, second: Ints, payoff: Floats, plan: Floats) -> Floats:
    """What its player gains where the game ends right after each sequence, against the opponent's part of `plan`, [S].

    `first`, `second` and `payoff` are a form's `sequences` and `payoff`, [Z].
    """
    values = np.zeros(len(plan))
    for end in range(len(payoff)):
        values[first[end]] += payoff[end] * plan[second[end]]
        values[second[end]] -= payoff[end] * plan[first[end]]
    return values
