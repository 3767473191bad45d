"""Public-chance traversals: boards are sampled, and on each board all hands are played exactly.

One pass over a sampled board gives the advantage of every hand at every decision against the opponent's whole range.
The only noise is the choice of boards; external sampling (Deep CFR, Algorithm 2) has more. The idea is that of public
chance sampling (Johanson, Bard, Lanctot, Gibson and Bowling 2012). docs/public-chance.md derives the estimator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import combinations
from math import comb
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from deepcfr.boards.boards import (
    MOST_ORDERED,
    Board,
    BoardReach,
    Boards,
    Deal,
    SampledBoards,
    by_likeness,
    count_boards,
)
from deepcfr.boards.kernels import draw_decisions, unblocked_reach
from deepcfr.boards.rounds import RoundTree
from deepcfr.boards.sweep import BoardStrategy, RoundPass, Scratch
from deepcfr.config import SamplingConfig
from deepcfr.core.parallel import Workers
from deepcfr.core.rng import key
from deepcfr.core.types import Floats, HandSamples, Infosets, Ints, Samples, joined
from deepcfr.game.rules import PokerRules

_LATER_BOARDS = 1  # boards of every later round, for each board of the previous round
_NONE: npt.NDArray[np.float64] = np.empty(0)


@dataclass(frozen=True)
class RoundPart:
    """One player's decisions in one round: n nodes and E edges, as positions in the round's tree."""

    nodes: Ints  # [n]
    edges: Ints  # [E]
    edge_node: Ints  # [E], positions in `nodes`

    @staticmethod
    def of(tree: RoundTree, player: int) -> RoundPart:
        """The player's part of a round."""
        nodes = np.flatnonzero(tree.actor == player)
        edges = np.flatnonzero(tree.actor[tree.edge_node] == player)
        return RoundPart(nodes, edges, np.searchsorted(nodes, tree.edge_node[edges]))


@dataclass(frozen=True)
class BoardPass:
    """Results of public-chance traversals for one player."""

    advantages: list[HandSamples] | list[Samples]  # by round
    strategies: list[HandSamples] | list[Samples]  # by round; whole hands are the same ones as in `advantages`
    first_values: npt.NDArray[np.float64]  # [S, U], the player's values at all nodes of the first round
    value: float  # of the game to the player
    nodes_touched: int  # decisions and terminals, once for each canonical hand of each board
    evaluated: int  # infosets at which a strategy was evaluated
    boards: int  # number of boards of the last round


def traverse_boards(
    boards: Boards,
    strategy: BoardStrategy,
    player: int,
    settings: SamplingConfig,
    iteration: int,
    stream: int,
    workers: Workers,
    elsewhere: PlayElsewhere | None = None,
) -> BoardPass:
    """Play both players' strategy on sampled boards, and record hands of `player` on each of them.

    On a panel whole hands are recorded, with all of the player's decisions in a round, otherwise single infosets. All
    randomness comes from `stream`, so equal streams visit the same boards and record the same samples in the same
    order. Samples carry `iteration`. With `elsewhere` the first boards of which there are several, and all after them,
    are played by `BoardTraversal.piece` of equal arguments in other processes.
    """
    traversal = BoardTraversal(boards, strategy, player, settings, iteration, stream)
    runs = _Elsewhere(traversal, elsewhere) if elsewhere else workers
    value = boards.visit_all(traversal.visit, runs, choose=traversal.choose)
    found = [traversal.found[number] for number in sorted(traversal.found)]
    rounds = range(len(boards.rounds))
    return BoardPass(
        advantages=[joined([f.advantages for f in found if f.round == round_]) for round_ in rounds],
        strategies=[joined([f.strategies for f in found if f.round == round_]) for round_ in rounds],
        first_values=traversal.first_values,
        value=float(value[0]),
        nodes_touched=sum(f.nodes_touched for f in found),
        evaluated=sum(f.evaluated for f in found),
        boards=sum(f.round == len(boards.rounds) - 1 for f in found),
    )


@dataclass(frozen=True)
class Recorded:
    """The samples of one board, and counts as in `BoardPass`."""

    round: int
    advantages: HandSamples | Samples
    strategies: HandSamples | Samples
    nodes_touched: int
    evaluated: int


@dataclass(frozen=True)
class BoardSampler:
    """Chooses the boards of a pass. All randomness comes from `stream`, so equal streams visit the same boards."""

    boards: Boards
    settings: SamplingConfig
    stream: int

    def choose(self, board: Board) -> list[Board]:
        """The boards of the next round to visit, with weights that make sums over them unbiased."""
        count = _LATER_BOARDS if board.cards else self.settings.boards
        draw = np.random.default_rng(key(self.stream, "boards", *board.cards))
        if isinstance(self.boards, SampledBoards):
            return _drawn(self.boards, board, count, self.settings.hands, draw)
        later = self.boards.children(board)
        if len(later) == 1:
            return [replace(later[0], emphasis=board.emphasis)]
        order = _by_likeness(later, self.boards)
        copies = np.array([later[i].copies for i in order])
        index, chance = systematic(copies, count, draw)
        # a chance in proportion to copies is capped at 1; a capped board records more hands instead
        emphasis = board.emphasis * min(count, len(later)) / copies.sum() * copies[index] / chance
        return [
            replace(later[order[i]], weight=later[order[i]].weight / p, emphasis=float(e))
            for i, p, e in zip(index, chance, emphasis, strict=True)
        ]


def _drawn(boards: SampledBoards, board: Board, count: int, hands: int, draw: np.random.Generator) -> list[Board]:
    """`count` boards of the next round by an even grid over all of them in an order of likeness; all if not more.

    With `hands` the first ones with cards have so many random hands only, and so have those after them.
    """
    rules = boards.game.rules
    new = rules.board_cards[board.round + 1]
    hands = hands if new and not board.cards else 0
    if not board.cards and comb(rules.num_cards, new) <= MOST_ORDERED:
        dealt = by_likeness(rules.num_cards, rules.num_suits, new)
    else:
        rest = [card for card in range(rules.num_cards) if card not in board.cards]
        dealt = np.array(list(combinations(rest, new)), np.uint8)
    count = min(count, len(dealt))
    places = ((draw.random() + np.arange(count)) * (len(dealt) / count)).astype(np.int64)
    later = [boards.after(board, tuple(cards), hands, draw) for cards in dealt[places].tolist()]
    return [replace(child, weight=child.weight / count) for child in later]


Records = dict[tuple[int, ...], Recorded]
"""What was found on boards, by round and cards."""
Piece = tuple[Floats, Records]
"""The values at the round roots of a board, [1, round roots, U], and what was found there and on later boards."""
PlayElsewhere = Callable[[Iterable[BoardReach]], Iterator[Piece]]
"""Plays boards and those after them in other processes; returns in order what `BoardTraversal.piece` does."""


@dataclass
class BoardTraversal:
    """One pass; arguments as in `traverse_boards`.

    Boards are identified by the path of choices that led to them, so results do not depend on threads.
    """

    boards: Boards
    strategy: BoardStrategy
    player: int
    settings: SamplingConfig
    iteration: int
    stream: int
    found: Records = field(default_factory=dict)
    first_values: npt.NDArray[np.float64] = field(default_factory=lambda: np.empty((0, 0)))

    def __post_init__(self) -> None:
        self._scratch = Scratch()
        self._hole = self.boards.game.rules.hole_cards
        self._parts = [RoundPart.of(tree, self.player) for tree in self.boards.rounds]
        self._usual = uniform_reach(self.boards.rounds, self.player)
        self.choose = BoardSampler(self.boards, self.settings, self.stream).choose

    def piece(self, place: BoardReach) -> Piece:
        """Play a board and those after it."""
        self.found = {}
        values = self.boards.play(self.visit, place, choose=self.choose)
        return values, self.found

    def visit(self, board: Board, reach: Floats, deal: Deal) -> Floats:
        """Play one board and record its samples; returns the player's values at the round's roots, [1, X', U]."""
        player, tree = self.player, self.boards.rounds[board.round]
        play = RoundPass(tree, board, reach, self._scratch)
        play.down(self.strategy(tree, board))
        values = play.up([(player, False)], deal)
        if board.round == 0:
            self.first_values = values[0].copy()
        self.found[board.round, *board.cards] = self._record(play, values[0])
        return values[:, tree.roots]

    def _record(self, play: RoundPass, values: Floats) -> Recorded:
        """The board's samples: of whole hands on a panel, else of infosets."""
        tree, board = play.tree, play.board
        part = self._parts[board.round]
        reach = np.empty((len(part.nodes), len(board)))
        opponent_row = tree.row[1 - self.player, part.nodes]
        unblocked_reach(opponent_row, play.rows[1 - self.player], board.holes, board.canonical, board.example, reach)
        record = self._whole_hands if self.settings.on_panel else self._infosets
        advantages, strategies = record(play, values, reach)
        return Recorded(
            round=board.round,
            advantages=advantages,
            strategies=strategies,
            nodes_touched=(tree.num_nodes - len(tree.round_leaves)) * len(board),
            evaluated=len(tree.nodes) * len(board),
        )

    def _whole_hands(self, play: RoundPass, values: Floats, reach: Floats) -> tuple[HandSamples, HandSamples]:
        """Hands drawn in proportion to the number of hands in their canonical hand."""
        tree, board, own = play.tree, play.board, play.rows[self.player]
        part, canonical = self._parts[board.round], self._draw_hands(board)
        advantages = (
            values[tree.edge_child[part.edges]][:, canonical] - values[tree.edge_node[part.edges]][:, canonical]
        )
        rules = self.boards.game.rules
        everyone = comb(rules.num_cards - len(board.cards) - rules.hole_cards, rules.hole_cards)
        own_row = tree.row[self.player, part.nodes]
        return (
            self._hand_samples(board, canonical, advantages / everyone, reach[:, canonical] / everyone),
            self._hand_samples(
                board, canonical, own[tree.edge_row[part.edges]][:, canonical], own[own_row][:, canonical]
            ),
        )

    def _infosets(self, play: RoundPass, values: Floats, reach: Floats) -> tuple[Samples, Samples]:
        """Infosets as external sampling meets them: drawn in proportion to the opponent's reach, or to the player's own."""
        tree, board, count = play.tree, play.board, self.settings.decisions
        draw = np.random.default_rng(key(self.stream, "infosets", board.round, *board.cards))
        own = play.rows[self.player][tree.row[self.player, self._parts[board.round].nodes]] / board.reach_scale
        hands = comb(board.num_cards - len(board.cards) - self._hole, self._hole)  # that the opponent may hold
        unit = board.size.sum() / (self.settings.samples * board.emphasis)
        opponent, usual = self._usual[board.round]
        some = draw_decisions(reach, board.size, count, unit * hands * opponent, (draw.random(), draw.random()))
        advantages = self._infoset_samples(play, some, values, reach)
        some = draw_decisions(own, board.size, count, unit * usual, (draw.random(), draw.random()))
        return advantages, self._infoset_samples(play, some)

    def _infoset_samples(
        self, play: RoundPass, drawn: tuple[Ints, Ints], values: Floats | None = None, reach: Floats = _NONE
    ) -> Samples:
        """The samples of drawn decisions and hands: advantages by `values` and `reach`, or without them strategies."""
        place, canonical = drawn[0], drawn[1][:, None]
        node = self._parts[play.board.round].nodes[place]
        edge = play.tree.edge_of[node]
        if values is None:
            found = play.sigma[edge, canonical[..., None]]
        else:
            gains = values[play.tree.edge_child[edge], canonical[..., None]] - values[node, canonical][..., None]
            found = gains / reach[place, canonical][..., None]
        target = np.zeros((*node.shape, self.boards.game.encoding.num_actions), np.float32)
        target[..., : edge.shape[-1]] = np.where(edge >= 0, found, 0)
        nodes, cards = play.tree.nodes[node], play.board.visible_cards[drawn[1]]
        if self.settings.decisions == 1:
            nodes, target = nodes[:, 0], target[:, 0]
        return Samples(
            Infosets(torch.from_numpy(nodes), torch.from_numpy(cards)),
            torch.from_numpy(target),
            torch.full((len(canonical),), self.iteration, dtype=torch.int32),
        )

    def _draw_hands(self, board: Board) -> Ints:
        hands = np.cumsum(board.size)
        draw = np.random.default_rng(key(self.stream, "hands", board.round, *board.cards))
        count = int(self.settings.samples * board.emphasis + draw.random())
        points = (draw.random() + np.arange(count)) / max(1, count) * hands[-1]
        return np.searchsorted(hands, points, side="right").clip(max=len(board) - 1)

    def _hand_samples(self, board: Board, canonical: Ints, values: Floats, reach: Floats) -> HandSamples:
        return HandSamples(
            cards=torch.from_numpy(board.visible_cards[canonical]),
            values=torch.from_numpy(values.T.astype(np.float32)),
            reach=torch.from_numpy(reach.T.astype(np.float32)),
            iteration=torch.full((len(canonical),), self.iteration, dtype=torch.int32),
        )


@dataclass(frozen=True)
class _Elsewhere:
    """Has boards played elsewhere, and puts their samples with those of `traversal`; a `Mapping`."""

    traversal: BoardTraversal
    run: PlayElsewhere

    def map(self, work: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:  # noqa: ARG002
        """The values at the round roots of every item, a `BoardReach`, in order."""
        for values, found in self.run(items):
            self.traversal.found |= found
            yield values


def uniform_reach(rounds: list[RoundTree], player: int) -> list[tuple[float, float]]:
    """For each round, sums over a player's decisions of the opponent's reach and of its own, if both play uniformly.

    They set the unit of `samples`, so that boards of all rounds record about as many infosets.
    """
    sums, at_roots = [], np.ones((2, 1))
    for tree in rounds:
        share = 1 / np.diff(tree.first_edge)[tree.edge_node]
        reach = [np.empty(rows) for rows in tree.num_rows]
        for p in (0, 1):
            reach[p][: len(tree.roots)] = at_roots[p]
        for edge, node in enumerate(tree.edge_node):  # parents come first
            actor = tree.actor[node]
            reach[actor][tree.edge_row[edge]] = reach[actor][tree.row[actor, node]] * share[edge]
        nodes = np.flatnonzero(tree.actor == player)
        opponent, own = (float(reach[p][tree.row[p, nodes]].sum()) for p in (1 - player, player))
        sums.append((opponent, own))
        at_roots = np.stack([reach[p][tree.row[p, tree.round_leaves]] for p in (0, 1)])
    return sums


def systematic(size: Ints, count: int, draw: np.random.Generator) -> tuple[Ints, npt.NDArray[np.float64]]:
    """`count` of the items 0 .. n - 1, or all if there are fewer, by systematic sampling.

    Returns the items in order and the chance with which each was included: in proportion to `size` [n], capped at 1.
    One random number places an even grid over the items laid end to end, each as long as its chance. So items that are
    sorted by similarity are stratified.
    """
    chance = inclusion_chances(size, count)
    end = np.cumsum(chance)
    grid = np.arange(draw.random(), end[-1], 1.0)
    index = np.unique(np.searchsorted(end, grid, side="right").clip(max=len(size) - 1))
    return index, chance[index]


def inclusion_chances(size: Ints, count: int) -> npt.NDArray[np.float64]:
    """Chances in proportion to `size` [n], capped at 1, that sum to the smaller of `count` and n."""
    certain = np.full(len(size), count >= len(size))
    while not certain.all():
        chance = np.where(certain, 1.0, (count - certain.sum()) / size[~certain].sum() * size)
        if not (chance > 1).any():
            return chance
        certain |= chance > 1
    return np.ones(len(size))


def _by_likeness(later: list[Board], boards: Boards) -> Ints:
    """An order in which neighbouring boards are similar: by the pattern of suits, then of ranks, then by ranks."""
    suits = boards.game.rules.num_suits
    cards = np.array([sorted(board.cards, reverse=True) for board in later])

    def pairs(kinds: Ints) -> Ints:
        return np.count_nonzero(kinds[:, :, None] == kinds[:, None, :], axis=(1, 2))

    return np.lexsort((*(cards // suits).T[::-1], pairs(cards // suits), pairs(cards % suits)))


def visited_boards(rules: PokerRules, settings: SamplingConfig, *, merge: bool) -> list[int]:
    """Upper bound on the number of boards of each round that a traversal visits."""
    visited, most, dealt = [], 1, False
    for new_cards, boards in zip(rules.board_cards, count_boards(rules, merge=merge), strict=True):
        if new_cards:
            most *= _LATER_BOARDS if dealt else settings.boards
            dealt = True
        most = min(most, boards)
        visited.append(most)
    return visited
