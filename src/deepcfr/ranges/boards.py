"""A betting round as slots, and a board with its live hands in order of strength: what the kernels work on."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from deepcfr.errors import GameError
from deepcfr.games.betting import PublicTree
from deepcfr.games.cards import all_hands
from deepcfr.games.hands import board_strengths
from deepcfr.games.isomorphism import suit_permutations
from deepcfr.games.poker import PokerGame, payoff_table

NEXT_ROUND = 3  # leaf kind beside FOLDED and SHOWDOWN


@dataclass(frozen=True)
class RoundTree:
    """One round of a public tree: its decision nodes, then its leaves, as slots."""

    nodes: npt.NDArray[np.int64]  # [n] decision nodes of the public tree
    actor: npt.NDArray[np.int64]  # [n]
    child: npt.NDArray[np.int64]  # [n, A] slot, or -1
    entries: npt.NDArray[np.int64]  # [E] slots where the round begins, in the order of the previous round's exits
    leaf_kind: npt.NDArray[np.int64]  # [L] FOLDED, SHOWDOWN or NEXT_ROUND
    leaf_payoff: npt.NDArray[np.float64]  # [P, L] gain after a fold, or of a showdown's winner; in units
    exits: npt.NDArray[np.int64]  # [X] slots of the leaves that lead to the next round

    @property
    def num_slots(self) -> int:
        return len(self.nodes) + len(self.leaf_kind)


def round_trees(game: PokerGame) -> list[RoundTree]:
    """The rounds of a game's public tree; exit x of a round is entry x of the next."""
    payoffs = payoff_table(game.rules, game.tree)
    trees: list[RoundTree] = []
    entry_nodes = np.array([0])
    for round_ in range(game.rules.num_rounds):
        tree, entry_nodes = _round_tree(game.tree, payoffs, round_, entry_nodes)
        trees.append(tree)
    return trees


def _round_tree(
    tree: PublicTree, payoffs: npt.NDArray[np.float64], round_: int, entry_nodes: npt.NDArray[np.int64]
) -> tuple[RoundTree, npt.NDArray[np.int64]]:
    nodes = np.flatnonzero((tree.round == round_) & (tree.ended == 0))
    slot_of = np.full(tree.num_nodes, -1)
    slot_of[nodes] = np.arange(len(nodes))
    children = tree.child[nodes]
    leaves = np.array([c for c in children[children >= 0] if slot_of[c] < 0], np.int64)
    slot_of[leaves] = len(nodes) + np.arange(len(leaves))
    kind = np.where(tree.ended[leaves] > 0, tree.ended[leaves], NEXT_ROUND)
    # A fold pays player 0 the same in all columns; at a showdown column 2 is player 0's win and 0 its loss.
    leaf_payoff = np.stack([payoffs[leaves, 2], -payoffs[leaves, 0]])
    exits = leaves[kind == NEXT_ROUND]
    return (
        RoundTree(
            nodes=nodes,
            actor=tree.actor[nodes],
            child=np.where(children >= 0, slot_of[children], -1),
            entries=slot_of[entry_nodes],
            leaf_kind=kind,
            leaf_payoff=leaf_payoff,
            exits=slot_of[exits],
        ),
        exits,
    )


@dataclass(frozen=True)
class BoardHands:
    """The private hands that a board leaves possible."""

    index: npt.NDArray[np.int64]  # [H] positions in the list of all hands
    holes: npt.NDArray[np.uint8]  # [H, hole cards]
    strength: npt.NDArray[np.int32]  # [H]
    order: npt.NDArray[np.int64]  # [H], ascending strength


class HandSpace:
    """All private hands of a deck, and how renaming suits moves them."""

    def __init__(self, game: PokerGame) -> None:
        rules = game.rules
        if rules.hole_cards > 2:
            raise GameError(f"Exact evaluation needs one or two hole cards, but {rules.name} deals {rules.hole_cards}.")
        self.num_cards, self.num_suits, self.num_ranks = rules.num_cards, rules.num_suits, rules.num_ranks
        self.holes = all_hands(rules.num_cards, rules.hole_cards)

    def __len__(self) -> int:
        return len(self.holes)

    def on_board(self, board: npt.NDArray[np.uint8]) -> BoardHands:
        """The live hands on `board` (uint8 [n], may be empty)."""
        strength = board_strengths(self.holes, board, self.num_suits)
        index = np.flatnonzero(strength >= 0)
        strength = strength[index]
        return BoardHands(index, self.holes[index], strength, np.argsort(strength, kind="stable"))

    @cached_property
    def permutations(self) -> npt.NDArray[np.uint8]:
        return suit_permutations(self.num_ranks, self.num_suits)

    def images(self, permutation: npt.NDArray[np.uint8]) -> npt.NDArray[np.int64]:
        """The position of every hand after renaming cards by `permutation`, int64 [H]."""
        base = self.num_cards ** np.arange(self.holes.shape[1])[::-1]
        lookup = {int(code): position for position, code in enumerate(self.holes.astype(np.int64) @ base)}
        moved = np.sort(permutation[self.holes].astype(np.int64), axis=1) @ base
        return np.array([lookup[int(code)] for code in moved])

    def symmetrise(
        self, values: npt.NDArray[np.float64], prefix: tuple[int, ...], groups: tuple[int, ...]
    ) -> npt.NDArray[np.float64]:
        """Mean of `values` [..., H] over the suit renamings that map each group of `prefix` to itself."""
        bounds = np.cumsum((0, *groups))
        sets = [frozenset(prefix[a:b]) for a, b in pairwise(bounds)]
        fixing = [p for p in self.permutations if all({int(p[c]) for c in group} == group for group in sets)]
        mean: npt.NDArray[np.float64] = np.mean([values[..., self.images(p)] for p in fixing], axis=0)
        return mean
