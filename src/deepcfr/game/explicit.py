"""Games as explicit trees, for solvers and evaluations that visit every history, and their sequence form.

In an explicit tree every history is a row of arrays. The sequence form (von Stengel 1996; Koller, Megiddo and von Stengel
1996) is a shorter form of it.

A sequence of a player is the list of its own actions on the way to a history. With perfect recall one sequence of its
player leads to each infoset. So the probability that a player plays a sequence is a product over its infosets, and
counterfactual values need only the terminal histories, merged where both players' sequences are the same.

Sequences have numbers 0 .. S-1, S = 2 + K*L: the empty sequence of player p is p, and the sequence that ends with action a
at infoset k is 2 + k*L + a.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from deepcfr.core.compiled import nb
from deepcfr.core.errors import GameError
from deepcfr.core.types import TERMINAL, Doubles, Ints

CHANCE = -2  # the actor of a node where chance moves


@dataclass(frozen=True)
class ExplicitTree:
    """Every history of a two-player zero-sum game, breadth-first: the root is node 0, and siblings follow each other.

    Further letters for shapes: N histories, K infosets, L the most legal actions of an infoset. The a-th child of a
    decision node is reached by the a-th legal action, and tables over infosets, [K, L], have a column for each action.
    Infosets are numbered by their first history. So with perfect recall an infoset follows the infosets in which its
    player acted before.
    """

    actor: Ints  # [N]: 0, 1, TERMINAL or CHANCE
    parent: Ints  # [N], -1 at the root
    first_child: Ints  # [N], 0 at terminal nodes
    num_children: Ints  # [N]
    action: Ints  # [N], the source game's number of the action or chance outcome that leads here, -1 at the root
    chance: Doubles  # [N], probability of the chance outcome that leads here, 1 if the parent is no chance node
    infoset: Ints  # [N], 0 .. K-1 at decision nodes, -1 elsewhere
    payoff: Doubles  # [N], to player 0 at terminal nodes, 0 elsewhere
    infoset_actor: Ints  # [K], the player who acts at an infoset
    infoset_actions: Ints  # [K], number of legal actions
    infoset_action_ids: Ints  # [K, L], the source game's numbers of the legal actions, then -1
    infoset_names: tuple[str, ...]  # [K], unique for each player

    @property
    def num_nodes(self) -> int:
        return len(self.actor)

    @property
    def num_infosets(self) -> int:
        return len(self.infoset_actor)

    @property
    def num_actions(self) -> int:
        """L, the most legal actions of an infoset."""
        return int(self.infoset_action_ids.shape[1])

    @cached_property
    def legal(self) -> npt.NDArray[np.bool_]:
        """True for the columns of a table that are legal actions, bool [K, L]."""
        return np.arange(self.num_actions) < self.infoset_actions[:, None]

    @cached_property
    def infoset_index(self) -> dict[tuple[int, str], int]:
        """Infosets by player and name."""
        names = zip(self.infoset_actor.tolist(), self.infoset_names, strict=True)
        return {name: infoset for infoset, name in enumerate(names)}

    def uniform(self) -> Doubles:
        """The uniform strategy as a table [K, L]."""
        return self.legal / self.infoset_actions[:, None]


def breadth_first(
    *,
    actor: npt.NDArray[np.integer],
    parent: Ints,
    first_child: Ints,
    num_children: npt.NDArray[np.integer],
    action: Ints,
    chance: Doubles,
    infoset: npt.NDArray[np.integer],
    payoff: Doubles,
    infoset_actor: Sequence[int],
    infoset_action_ids: Sequence[Sequence[int]],
    infoset_names: Sequence[str],
) -> ExplicitTree:
    """Build a tree from histories in any order with the root first and siblings next to each other.

    Histories and infosets may have any numbers; they are renumbered as `ExplicitTree` requires.
    """
    order = _levels(first_child.astype(np.int64), num_children.astype(np.int64))
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    moved = actor[order].astype(np.int64)
    kept, renumbered = _by_first_history(infoset[order].astype(np.int64))
    legal = [list(infoset_action_ids[k]) for k in kept]
    ids = np.full((len(legal), max(map(len, legal), default=0)), -1, np.int64)
    for row, actions in zip(ids, legal, strict=True):
        row[: len(actions)] = actions
    return ExplicitTree(
        actor=moved,
        parent=np.where(parent[order] < 0, -1, place[parent[order]]),
        first_child=np.where(num_children[order] > 0, place[first_child[order]], 0),
        num_children=num_children[order].astype(np.int64),
        action=action[order],
        chance=chance[order],
        infoset=renumbered,
        payoff=np.where(moved == TERMINAL, payoff[order], 0.0),
        infoset_actor=np.array([infoset_actor[k] for k in kept], np.int64),
        infoset_actions=(ids >= 0).sum(1),
        infoset_action_ids=ids,
        infoset_names=tuple(infoset_names[k] for k in kept),
    )


def _levels(first_child: Ints, num_children: Ints) -> Ints:
    """The nodes in breadth-first order, [N]."""
    level = np.zeros(1, np.int64)
    levels = []
    while len(level):
        levels.append(level)
        sizes = num_children[level]
        starts = np.repeat(first_child[level] - (np.cumsum(sizes) - sizes), sizes)
        level = starts + np.arange(len(starts))
    return np.concatenate(levels)


def _by_first_history(infoset: Ints) -> tuple[list[int], Ints]:
    """The infosets in the order of their first history, and `infoset` [N] renumbered in that order."""
    found, first = np.unique(infoset[infoset >= 0], return_index=True)
    kept = found[np.argsort(first)]
    number = np.full(int(infoset.max(initial=-1)) + 2, -1)  # the last entry is for -1
    number[kept] = np.arange(len(kept))
    return kept.tolist(), number[infoset]


EMPTY = 2  # number of empty sequences, one for each player


@dataclass(frozen=True)
class SequenceForm:
    """A game with perfect recall in sequence form, for full-width solvers and best responses."""

    actor: Ints  # [K], the player who acts at an infoset
    num_actions: Ints  # [K], legal actions
    parent: Ints  # [K], the player's sequence that leads to the infoset; it ends at an infoset of a smaller number
    sequences: tuple[Ints, Ints]  # for each player [Z], the sequence in each pair that ends the game
    payoff: Doubles  # [Z], payoff of player 0 times chance probability, summed over the pair's histories


def sequence_form(tree: ExplicitTree, name: str) -> SequenceForm:
    """The sequence form of `tree`; `name` is for errors. Raises GameError without perfect recall."""
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
    actor: Ints, parent: Ints, first_child: Ints, chance: Doubles, infoset: Ints, num_infosets: int, width: int
) -> tuple[Ints, Ints, Doubles, int]:
    """Parent sequences of infosets [K], sequences [2, N] and chance reach [N] of nodes, an infoset without recall."""
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
def realization(table: Doubles, parent: Ints, num_actions: Ints) -> Doubles:
    """The realization plan [S]: the probability with which `table` [K, L] plays each sequence."""
    infosets, width = table.shape
    plan = np.zeros(EMPTY + infosets * width)
    plan[:EMPTY] = 1.0
    for infoset in range(infosets):
        reach = plan[parent[infoset]]
        for action in range(num_actions[infoset]):
            plan[EMPTY + infoset * width + action] = reach * table[infoset, action]
    return plan


@nb.njit(cache=True, nogil=True)
def terminal_values(first: Ints, second: Ints, payoff: Doubles, plan: Doubles) -> Doubles:
    """A player's value, [S], of the terminal histories right after each of its sequences, against the opponent's `plan`.

    `first`, `second` and `payoff` are a form's `sequences` and `payoff`, [Z].
    """
    values = np.zeros(len(plan))
    for end in range(len(payoff)):
        values[first[end]] += payoff[end] * plan[second[end]]
        values[second[end]] -= payoff[end] * plan[first[end]]
    return values
