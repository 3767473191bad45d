"""The boards of a game with their live hands in order of strength, the recursion over them, and sampled runouts.

The boards of a runout carry weights, so that a pass over them is an unbiased estimate of a pass over all boards. The
value of two hands is the mean over the boards that share no card with either, each with chance 1 / C(cards left to the
dealer, new cards). A runout is drawn from the deck without regard to hands, so a board has chance 1 / C(cards not on
the board, new cards). Its values have the weight (first chance) / (second chance), which compensates for the runouts on
which one of the two hands is dead. `SampledBoards.after` applies the weights round by round.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import combinations, pairwise
from math import comb

import numpy as np
import numpy.typing as npt

from deepcfr.boards.kernels import add_up
from deepcfr.boards.rounds import RoundTree, round_trees
from deepcfr.core.errors import GameError
from deepcfr.core.parallel import Mapping
from deepcfr.core.rng import key
from deepcfr.core.types import Cards, Ints
from deepcfr.game.board_index import count_classes, hand_images
from deepcfr.game.cards import all_hands, extend_board, pack_cards, suit_permutations
from deepcfr.game.hands import board_strengths
from deepcfr.game.poker import PokerGame
from deepcfr.game.rules import PokerRules

_BYTES_OF_HAND = 80  # upper bound for a `Board`, per hand


@dataclass(frozen=True)
class Board:
    """The public cards of one round and the private hands that are possible with them.

    A *canonical hand* is a set of hands that are equal in canonical suits (or one hand, in raw suits). Quantities that
    are symmetric in the suits are stored once for each of the U canonical hands. The H live hands are in ascending
    order of strength.
    """

    round: int  # -1 before the first round
    cards: tuple[int, ...]  # dealt so far, in order
    groups: tuple[int, ...]  # number of cards from each round that deals any
    index: int  # among all boards of its round, if those are stored
    visible_cards: Cards  # [U, C] in the game's encoding
    size: Ints  # [U] hands in the canonical hand
    up: Ints  # [U] the canonical hand of the same hands on the previous round's board
    weight: npt.NDArray[np.float64]  # [U] weight of a value in the value of canonical hand `up`
    holes: Cards  # [H, hole cards]
    canonical: Ints  # [H]
    group: Ints  # [G + 1] starts of the groups of equal strength
    example: Ints  # [U] a hand of the canonical hand, as a position in `holes`
    canonical_of: Ints  # [all hands] the canonical hand, -1 if the hand is dead
    num_cards: int  # of the deck
    copies: int  # number of boards in the suit class that this board represents
    emphasis: float = 1.0  # factor on the hands to record, relative to a board drawn in proportion to its copies
    reach_scale: float = 1.0  # factor on reach where boards have a part of their hands only

    def __len__(self) -> int:
        return len(self.size)


Deal = Callable[[npt.NDArray[np.floating]], npt.NDArray[np.float64]]
"""Reach at a round's leaves, [P, X, U], to the values there, [M, X, U]: the mean over the next round's boards."""
Visit = Callable[[Board, npt.NDArray[np.floating], Deal], npt.NDArray[np.floating]]
"""(board, reach [P, round roots, U], deal) to values [M, round roots, U]."""
BoardReach = tuple[Board, npt.NDArray[np.floating], float]
"""A board, the reach at the round leaves of the round before it, [P, X, U], and the scale of that reach."""
OnBoard = Callable[[int, int], None]
Choose = Callable[[Board], list[Board]]
"""A board to the boards of the next round to visit, with corrected weights."""


def count_boards(rules: PokerRules, *, merge: bool) -> list[int]:
    """Number of boards in each round, computed without building them; with `merge`, up to a renaming of suits."""
    if not merge:
        return rules.count_boards()
    dealt = (tuple(filter(None, rules.board_cards[: round_ + 1])) for round_ in range(rules.num_rounds))
    return [count_classes(rules.num_ranks, rules.num_suits, groups) for groups in dealt]


def count_hands(board: Board, rules: PokerRules, *, merge: bool) -> list[int]:
    """The canonical hands of `board`, and of all boards of each later round, without building them.

    They are those that `Boards` from this root has: a set of hands is one up to the renamings of suits that do not change
    the board, and by Burnside's lemma their number is the mean, over these renamings, of the hands that each one fixes.
    """
    ranks, suits = rules.num_ranks, rules.num_suits
    renamings, images = suit_permutations(ranks, suits), hand_images(ranks, suits, rules.hole_cards)
    if not merge:
        renamings, images = renamings[:1], images[:1]
    holes, live = all_hands(rules.num_cards, rules.hole_cards).astype(np.int64), board.canonical_of >= 0
    fixed, of_hands = (images == np.arange(len(holes))).astype(np.float32), (1 << holes).sum(1)
    counts, boards, groups = [len(board)], [board.cards], board.groups
    for new in rules.board_cards[board.round + 1 :]:
        boards = [
            (*cards, *more)
            for cards in boards
            for more in extend_board(cards, groups, new, ranks, suits, merge=merge).cards.tolist()
        ]
        groups = (*groups, new) if new else groups
        dealt = np.array(boards, np.uint8)
        left = live & ((1 << dealt.astype(np.int64)).sum(1)[:, None] & of_hands == 0)  # [boards, hands]
        same = np.ones((len(renamings), len(dealt)), np.bool_)
        for start, end in pairwise(np.cumsum([0, *groups])):
            part = np.sort(dealt[:, start:end], 1)
            same &= (np.sort(renamings[:, part], -1) == part).all(-1)
        counts.append(round(((fixed @ left.T.astype(np.float32) * same).sum(0) / same.sum(0)).sum()))
    return counts


_MOST_KEPT = 8e9  # bytes


def keeps_all(rules: PokerRules, *, merge: bool) -> bool:
    """True if sampled traversals of the game keep all its boards; False if they draw and build them one at a time."""
    return kept_bytes(rules, merge=merge) <= _MOST_KEPT


def kept_bytes(rules: PokerRules, *, merge: bool) -> int:
    """Upper bound on the bytes of a `Boards` that stores all boards of a game."""
    return sum(count_boards(rules, merge=merge)) * comb(rules.num_cards, rules.hole_cards) * _BYTES_OF_HAND


class Boards:
    """The boards of a game, and the recursion over them that every full-width method uses.

    With `merge`, boards that differ by a renaming of suits are visited once and weighted by their number. With `keep`,
    all boards are built at once and stay in memory. The boards begin at `root`, by default the empty board before the
    first round; `rounds` may be parts of the game's betting rounds.
    """

    def __init__(
        self,
        game: PokerGame,
        merge: bool,
        keep: bool = False,
        *,
        root: Board | None = None,
        rounds: list[RoundTree] | None = None,
    ) -> None:
        rules = game.rules
        if rules.hole_cards > 2:
            raise GameError(f"Exact evaluation needs one or two hole cards, but {rules.name} deals {rules.hole_cards}.")
        self.game, self.merge, self.keep = game, merge, keep
        self.rounds = rounds or round_trees(game)
        self.holes = all_hands(rules.num_cards, rules.hole_cards)
        self.root = root or self._board(None, ())
        self.kept: list[list[Board]] = []  # by round, with `keep`
        self._children: dict[tuple[int, tuple[int, ...]], list[Board]] = {}
        if keep:
            self._keep_all()

    def _keep_all(self) -> None:
        parents = [self.root]
        self.kept = [[] for _ in range(self.root.round)] + [[self.root]] * (self.root.round >= 0)
        for round_ in range(self.root.round + 1, len(self.rounds)):
            boards: list[Board] = []
            for parent in parents:
                later = self._make_children(parent, len(boards))
                self._children[round_, parent.cards] = later
                boards += later
            self.kept.append(boards)
            parents = boards

    def children(self, board: Board) -> list[Board]:
        """The boards of the next round, one of each suit class with `merge`."""
        if self.keep:
            return self._children[board.round + 1, board.cards]
        return self._make_children(board)

    def visit_all(
        self, visit: Visit, workers: Mapping, on_board: OnBoard | None = None, choose: Choose | None = None
    ) -> npt.NDArray[np.float64]:
        """The visit's M values for the whole game, float64 [M]; `workers` process the boards.

        `on_board(done, total)` reports progress over the boards of the first round that has several. With `choose` only
        the boards that it returns are visited.
        """
        reach = np.ones((2, 1, len(self.root)))
        rules = self.game.rules
        deals = comb(rules.num_cards, rules.hole_cards) * comb(rules.num_cards - rules.hole_cards, rules.hole_cards)
        return self.deal(visit, self.root, reach, workers, on_board, choose)[:, 0] @ self.root.size / deals

    def deal(
        self,
        visit: Visit,
        board: Board,
        reach: npt.NDArray[np.floating],
        workers: Mapping | None = None,
        on_board: OnBoard | None = None,
        choose: Choose | None = None,
    ) -> npt.NDArray[np.float64]:
        """The visit's values at the next round's roots, averaged over all deals of that round's cards, [M, X, U].

        `reach` [P, X, U] is the reach at the round leaves of the round of `board`. Other arguments are as in
        `visit_all`.
        """
        later = choose(board) if choose else self.children(board)
        several = len(later) > 1

        def play(place: BoardReach) -> npt.NDArray[np.floating]:
            return self.play(visit, place, None if several else workers, on_board, choose)

        places = ((child, reach, board.reach_scale) for child in later)
        results = workers.map(play, places) if workers and several else map(play, places)
        total = np.empty(0)
        for done, (child, values) in enumerate(zip(later, results, strict=True)):
            if done == 0:
                total = np.zeros((*values.shape[:2], len(board)))
            add_up(values, child.up, child.weight, total)
            if on_board and workers and several:
                on_board(done + 1, len(later))
        return total

    def play(
        self,
        visit: Visit,
        place: BoardReach,
        workers: Mapping | None = None,
        on_board: OnBoard | None = None,
        choose: Choose | None = None,
    ) -> npt.NDArray[np.floating]:
        """The visit's values at the roots of a board's round, [M, roots, U]; other arguments as in `visit_all`."""
        board, before, scale = place
        reach = np.ascontiguousarray(before[:, :, board.up]) * (board.reach_scale / scale)
        return visit(board, reach, lambda at_leaves: self.deal(visit, board, at_leaves, workers, on_board, choose))

    def _make_children(self, board: Board, first_index: int = 0) -> list[Board]:
        rules = self.game.rules
        count = rules.board_cards[board.round + 1]
        found = extend_board(board.cards, board.groups, count, rules.num_ranks, rules.num_suits, merge=self.merge)
        boards: list[Board] = []
        for new, copies in zip(found.cards.tolist(), found.multiplicity.tolist(), strict=True):
            later = self._board(board, tuple(new), first_index + len(boards), copies)
            if len(later):  # of few hands none may be left
                boards.append(later)
        return boards

    def _board(
        self,
        before: Board | None,
        new: tuple[int, ...],
        index: int = 0,
        copies: int = 1,
        pick: Callable[[int], Ints] | None = None,
    ) -> Board:
        """The board after `before` with the cards `new`; without one before it, the empty board before the first round.

        It has the hands of `before` that are still possible; `pick` chooses some of them, given their number.
        """
        rules = self.game.rules
        round_, dealt, groups = (-1, (), ()) if before is None else (before.round + 1, before.cards, before.groups)
        cards = (*dealt, *new)
        chance = 1.0 / comb(rules.num_cards - 2 * rules.hole_cards - len(dealt), len(new))
        hands = np.arange(len(self.holes)) if before is None else np.flatnonzero(before.canonical_of >= 0)
        strength = board_strengths(self.holes[hands], np.array(cards, np.uint8), rules.num_suits)
        order = np.argsort(strength, kind="stable")
        order = order[strength[order] >= 0]
        whole = len(order)
        if pick:
            order = order[np.sort(pick(whole))]
        strength, order = strength[order], hands[order]
        holes = self.holes[order]
        rows = self.game.visible_cards(holes, cards)
        _, example, canonical = np.unique(pack_cards(rows), return_index=True, return_inverse=True)
        size = np.bincount(canonical)
        canonical_of = np.full(len(self.holes), -1)
        canonical_of[order] = canonical
        up = (canonical_of if before is None else before.canonical_of)[order[example]]
        share = size / (size if before is None else before.size)[up]
        return Board(
            round=round_,
            cards=cards,
            groups=(*groups, len(new)) if new else groups,
            index=index,
            visible_cards=rows[example],
            size=size,
            up=up,
            weight=copies * chance * share * (whole / max(len(order), 1)),
            holes=holes,
            canonical=canonical,
            group=np.flatnonzero(np.diff(strength, prepend=-2, append=-2)),
            example=example,
            canonical_of=canonical_of,
            num_cards=rules.num_cards,
            copies=copies,
            reach_scale=(before.reach_scale if before else 1.0) * ((whole - 1) / (len(order) - 1) if pick else 1.0),
        )


MOST_ORDERED = 100_000  # sort at most so many boards of the first dealt round into strata
_LEAST_BOARDS, _LEAST_RUNOUTS = 32, 4  # minimum per stratum


class SampledBoards(Boards):
    """The boards of a game, built one at a time and never merged."""

    def __init__(self, game: PokerGame, rounds: list[RoundTree] | None = None) -> None:
        super().__init__(game, merge=False, rounds=rounds)

    def after(
        self, board: Board, cards: tuple[int, ...], hands: int = 0, draw: np.random.Generator | None = None
    ) -> Board:
        """The board of the next round with the new `cards`, which were drawn uniformly from those not on `board`.

        With `hands` and `draw` it and the boards after it have so many random hands only. Weights of values and the
        scale of reach make up for the others, so that values are unbiased.
        """
        copies = comb(self.game.rules.num_cards - len(board.cards), len(cards))

        def pick(live: int) -> Ints:
            assert draw is not None
            return draw.choice(live, hands, replace=False)

        some = 0 < hands < comb(self.game.rules.num_cards - len(board.cards) - len(cards), self.game.rules.hole_cards)
        return self._board(board, cards, copies=copies, pick=pick if some else None)

    def runout(self, cards: tuple[int, ...]) -> list[Board]:
        """The boards of all rounds, in order, for the dealt `cards`."""
        boards, before, start = [], self.root, 0
        for new in self.game.rules.board_cards:
            before = self.after(before, cards[start : start + new])
            boards.append(before)
            start += new
        return boards


class RunoutSampler:
    """Draws `count` runouts in strata of at least four runouts where possible; each runout is uniform over all runouts.

    A stratum is an interval of all boards sorted by similarity, with a length in proportion to its number of runouts.
    The first public cards of its runouts are drawn from it independently. So the mean over runouts is unbiased, and so
    is its variance from the spread within strata. All later cards are drawn from the rest of the deck. A stratum has
    many boards and several runouts, because intervals from the spread of a few nearly equal boards are too short too
    often.
    """

    def __init__(self, rules: PokerRules, count: int, stream: int) -> None:
        self._rules, self._stream = rules, stream
        first = next((n for n in rules.board_cards if n), 0)
        several = first and comb(rules.num_cards, first) <= MOST_ORDERED
        self._ordered = by_likeness(rules.num_cards, rules.num_suits, first) if several else np.zeros((1, 0), np.uint8)
        strata = max(1, min(count // _LEAST_RUNOUTS, len(self._ordered) // _LEAST_BOARDS))
        self._start = np.arange(strata + 1) * count // strata  # the first runout of each stratum
        self.stratum = np.repeat(np.arange(strata), np.diff(self._start))  # [count], the stratum of each runout

    def cards(self, number: int) -> tuple[int, ...]:
        """The public cards of runout `number`, in the order of rounds."""
        rules = self._rules
        draw = np.random.default_rng(key(self._stream, "runout", number))
        start, end = self._start[self.stratum[number] :][:2]
        place = int((start + (end - start) * draw.random()) / self._start[-1] * len(self._ordered))
        first = self._ordered[min(place, len(self._ordered) - 1)].tolist()
        rest = np.setdiff1d(np.arange(rules.num_cards), first)
        later = draw.choice(rest, sum(rules.board_cards) - len(first), replace=False)
        return (*first, *(int(card) for card in later))


@cache
def by_likeness(num_cards: int, num_suits: int, size: int) -> Cards:
    """All sets of `size` cards, [n, size], sorted by similarity: by pairs, by ranks from the highest, by suits."""
    boards = np.array(list(combinations(range(num_cards)[::-1], size)), np.uint8)
    ranks, suits = boards // num_suits, boards % num_suits
    alike = [np.count_nonzero(kind[:, :, None] == kind[:, None, :], axis=(1, 2)) for kind in (suits, ranks)]
    ordered = boards[np.lexsort((alike[0], *ranks.T[::-1], alike[1]))]
    ordered.flags.writeable = False  # shared by all samplers
    return ordered
