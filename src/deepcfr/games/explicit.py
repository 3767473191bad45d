"""Games as explicit trees: every history is a row of arrays, for solvers and evaluations that visit all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from deepcfr.types import TERMINAL

CHANCE = -2  # the actor of a node where chance moves

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class ExplicitTree:
    """Every history of a two-player zero-sum game, breadth-first: the root is node 0, and siblings follow each other.

    Further letters for shapes: N histories, K infosets, L the most legal actions of an infoset. The a-th child of a
    decision node is reached by the a-th legal action, and tables over infosets, [K, L], have a column for each of them.
    Infosets are numbered by their first history, so that in a game of perfect recall an infoset comes after those in
    which its player acted before.
    """

    actor: Ints  # [N]: 0, 1, TERMINAL or CHANCE
    parent: Ints  # [N], -1 at the root
    first_child: Ints  # [N], 0 at terminal nodes
    num_children: Ints  # [N]
    action: Ints  # [N], the source game's number of the action or chance outcome that leads here, -1 at the root
    chance: Floats  # [N], probability of the chance outcome that leads here, 1 if the parent is no chance node
    infoset: Ints  # [N], 0 .. K-1 at decision nodes, -1 elsewhere
    payoff: Floats  # [N], to player 0 at terminal nodes, 0 elsewhere
    infoset_actor: Ints  # [K], the player to whom an infoset belongs
    infoset_actions: Ints  # [K], number of legal actions
    infoset_action_ids: Ints  # [K, L], the source game's numbers of the legal actions, -1 beyond them
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
        """Which columns of a table are actions, bool [K, L]."""
        return np.arange(self.num_actions) < self.infoset_actions[:, None]

    @cached_property
    def infoset_index(self) -> dict[tuple[int, str], int]:
        """Infosets by player and name."""
        names = zip(self.infoset_actor.tolist(), self.infoset_names, strict=True)
        return {name: infoset for infoset, name in enumerate(names)}

    def uniform(self) -> Floats:
        """The table [K, L] that plays all legal actions alike."""
        return self.legal / self.infoset_actions[:, None]


def breadth_first(
    *,
    actor: npt.NDArray[np.integer],
    parent: Ints,
    first_child: Ints,
    num_children: npt.NDArray[np.integer],
    action: Ints,
    chance: Floats,
    infoset: npt.NDArray[np.integer],
    payoff: Floats,
    infoset_actor: Sequence[int],
    infoset_action_ids: Sequence[Sequence[int]],
    infoset_names: Sequence[str],
) -> ExplicitTree:
    """The tree of histories listed in any order that puts the root first and siblings next to each other.

    Histories and infosets, which may be numbered at will, are renumbered as `ExplicitTree` promises.
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
    """The infosets in the order of their first history, and `infoset` [N] renumbered like that."""
    found, first = np.unique(infoset[infoset >= 0], return_index=True)
    kept = found[np.argsort(first)]
    number = np.full(int(infoset.max(initial=-1)) + 2, -1)  # the last entry is for -1
    number[kept] = np.arange(len(kept))
    return kept.tolist(), number[infoset]
