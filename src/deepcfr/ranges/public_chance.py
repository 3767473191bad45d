"""Public-chance traversals: boards are sampled, and on each board all hands are played exactly.

One pass over a sampled board gives the advantage of every hand at every decision against the opponent's whole range.
The only noise is the choice of boards; external sampling (Deep CFR, Algorithm 2) has more. The idea is that of public
chance sampling (Johanson, Bard, Lanctot, Gibson and Bowling 2012). docs/public-chance.md derives the estimator.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import comb

import numpy as np
import numpy.typing as npt
import torch

from deepcfr.config import PublicChanceSampling
from deepcfr.games.rules import PokerRules
from deepcfr.parallel import Workers
from deepcfr.ranges.boards import Board, Boards, Deal, count_boards
from deepcfr.ranges.kernels import unblocked_reach
from deepcfr.ranges.rounds import RoundTree
from deepcfr.ranges.sweep import BoardStrategy, RoundPass, Scratch
from deepcfr.rng import key
from deepcfr.types import HandSamples

Floats = npt.NDArray[np.floating]
Ints = npt.NDArray[np.int64]


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

    advantages: list[HandSamples]  # by round
    strategies: list[HandSamples]  # by round, for the same hands: the player's own probabilities and reach
    first_values: npt.NDArray[np.float64]  # [S, U], the player's values at all slots of the first round
    value: float  # of the game to the player
    nodes_touched: int  # decisions and terminals, once for each view of each board
    evaluated: int  # infosets at which a strategy was evaluated
    boards: int  # number of boards of the last round


def traverse_boards(
    boards: Boards,
    strategy: BoardStrategy,
    player: int,
    settings: PublicChanceSampling,
    iteration: int,
    stream: int,
    workers: Workers,
) -> BoardPass:
    """Play both players' strategy on sampled boards, and record hands of `player` on each of them.

    All randomness comes from `stream`, so equal streams visit the same boards and record the same hands in the same
    order. Samples carry `iteration`.
    """
    traversal = _Traversal(boards, strategy, player, settings, iteration, stream)
    value = boards.visit_all(traversal.visit, workers, choose=BoardSampler(boards, settings, stream).choose)
    found = [traversal.found[number] for number in sorted(traversal.found)]
    rounds = range(len(boards.rounds))
    return BoardPass(
        advantages=[_joined([f.advantages for f in found if f.round == round_]) for round_ in rounds],
        strategies=[_joined([f.strategies for f in found if f.round == round_]) for round_ in rounds],
        first_values=traversal.first_values,
        value=float(value[0]),
        nodes_touched=sum(f.nodes_touched for f in found),
        evaluated=sum(f.evaluated for f in found),
        boards=sum(f.round == len(boards.rounds) - 1 for f in found),
    )


@dataclass(frozen=True)
class _Found:
    round: int
    advantages: HandSamples
    strategies: HandSamples
    nodes_touched: int
    evaluated: int


@dataclass(frozen=True)
class BoardSampler:
    """Chooses the boards of a pass. All randomness comes from `stream`, so equal streams visit the same boards."""

    boards: Boards
    settings: PublicChanceSampling
    stream: int

    def choose(self, board: Board, later: list[Board]) -> list[Board]:
        """The boards of the next round to visit, with weights that make sums over them unbiased."""
        if len(later) == 1:
            return [replace(later[0], emphasis=board.emphasis)]
        count = self.settings.later_boards if board.cards else self.settings.boards
        draw = np.random.default_rng(key(self.stream, "boards", *board.cards))
        order = _by_likeness(later, self.boards)
        copies = np.array([later[i].copies for i in order])
        index, chance = systematic(copies, count, draw)
        # a chance in proportion to copies is capped at 1; a capped board records more hands instead
        emphasis = board.emphasis * min(count, len(later)) / copies.sum() * copies[index] / chance
        return [
            replace(later[order[i]], weight=later[order[i]].weight / p, emphasis=float(e))
            for i, p, e in zip(index, chance, emphasis, strict=True)
        ]


@dataclass
class _Traversal:
    """One pass. Boards are identified by the path of choices that led to them, so results do not depend on threads."""

    boards: Boards
    strategy: BoardStrategy
    player: int
    settings: PublicChanceSampling
    iteration: int
    stream: int
    found: dict[tuple[int, ...], _Found] = field(default_factory=dict)
    first_values: npt.NDArray[np.float64] = field(default_factory=lambda: np.empty((0, 0)))

    def __post_init__(self) -> None:
        self._scratch = Scratch()
        self._parts = [RoundPart.of(tree, self.player) for tree in self.boards.rounds]

    def visit(self, board: Board, reach: Floats, deal: Deal) -> Floats:
        """Play one board and record its hands; returns the player's values at the round's entries, [1, X, U]."""
        player, tree = self.player, self.boards.rounds[board.round]
        play = RoundPass(tree, board, reach, self._scratch)
        play.down(self.strategy(tree, board))
        values = play.up([(player, False)], deal)
        if board.round == 0:
            self.first_values = values[0].copy()
        self.found[board.round, *board.cards] = self._record(play, values[0])
        return values[:, tree.entries]

    def _record(self, play: RoundPass, values: Floats) -> _Found:
        """Hands of one board, drawn in proportion to the number of hands in their view."""
        tree, board, rows = play.tree, play.board, play.rows
        part = self._parts[board.round]
        view = self._draw_views(board)
        reach = np.empty((len(part.nodes), len(board)))
        opponent_row = tree.row[1 - self.player, part.nodes]
        unblocked_reach(opponent_row, rows[1 - self.player], board.holes, board.view, board.example, reach)
        advantages = values[tree.edge_slot[part.edges]][:, view] - values[tree.edge_node[part.edges]][:, view]
        rules = self.boards.game.rules
        everyone = comb(rules.num_cards - len(board.cards) - rules.hole_cards, rules.hole_cards)
        own_row = tree.row[self.player, part.nodes]
        return _Found(
            round=board.round,
            advantages=self._samples(board, view, advantages / everyone, reach[:, view] / everyone),
            strategies=self._samples(
                board,
                view,
                rows[self.player][tree.edge_row[part.edges]][:, view],
                rows[self.player][own_row][:, view],
            ),
            nodes_touched=(tree.num_slots - len(tree.exits)) * len(board),
            evaluated=len(tree.nodes) * len(board),
        )

    def _draw_views(self, board: Board) -> Ints:
        hands = np.cumsum(board.size)
        draw = np.random.default_rng(key(self.stream, "hands", board.round, *board.cards))
        count = int(self.settings.samples * board.emphasis + draw.random())
        points = (draw.random() + np.arange(count)) / max(1, count) * hands[-1]
        view: Ints = np.searchsorted(hands, points, side="right").clip(max=len(board) - 1)
        return view

    def _samples(self, board: Board, view: Ints, values: Floats, reach: Floats) -> HandSamples:
        return HandSamples(
            cards=torch.from_numpy(board.view_cards[view]),
            values=torch.from_numpy(values.T.astype(np.float32)),
            reach=torch.from_numpy(reach.T.astype(np.float32)),
            iteration=torch.full((len(view),), self.iteration, dtype=torch.int32),
        )


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
        alike: Ints = np.count_nonzero(kinds[:, :, None] == kinds[:, None, :], axis=(1, 2))
        return alike

    return np.lexsort((*(cards // suits).T[::-1], pairs(cards // suits), pairs(cards % suits)))


def visited_boards(rules: PokerRules, settings: PublicChanceSampling, *, merge: bool) -> list[int]:
    """Upper bound on the number of boards of each round that a traversal visits."""
    visited, most, dealt = [], 1, False
    for new_cards, boards in zip(rules.board_cards, count_boards(rules, merge=merge), strict=True):
        if new_cards:
            most *= settings.later_boards if dealt else settings.boards
            dealt = True
        most = min(most, boards)
        visited.append(most)
    return visited


def _joined(parts: list[HandSamples]) -> HandSamples:
    return HandSamples(
        cards=torch.cat([part.cards for part in parts]),
        values=torch.cat([part.values for part in parts]),
        reach=torch.cat([part.reach for part in parts]),
        iteration=torch.cat([part.iteration for part in parts]),
    )
