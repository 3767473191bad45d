"""Results of hands against ranges if nobody bets any more: the remaining cards are dealt, and the better hand wins.

On the last board this takes one sweep in order of strength. Before it, all pairs of hands are compared on all possible
runouts if there are at most `MOST_RUNOUTS` (in hold'em C(49, 2) = 1,176 after the flop). Before any board card all
runouts count: one of each class under renaming of suits, as often as the class has boards. Otherwise they are compared
on a sample of `SAMPLED_RUNOUTS`, fixed for each board.
"""

from __future__ import annotations

import os
import threading
from functools import cache
from itertools import combinations
from math import comb, prod

import numpy as np
import numpy.typing as npt
import torch

from deepcfr.boards.boards import Board
from deepcfr.boards.kernels import against_range
from deepcfr.boards.sweep import Scratch
from deepcfr.core.compiled import nb
from deepcfr.core.files import kept_arrays
from deepcfr.core.parallel import Workers
from deepcfr.core.rng import key
from deepcfr.core.types import Cards, Floats, Ints
from deepcfr.game.board_index import board_index, count_classes, hand_images
from deepcfr.game.cards import all_hands, pack_cards
from deepcfr.game.hands import board_strengths
from deepcfr.game.rules import PokerRules

MOST_RUNOUTS = 25_000  # limit of the enumeration
SAMPLED_RUNOUTS = 10_000  # sample size above the limit: equities are accurate to about 1 %
_TOGETHER = 256  # runouts in one array of strengths: a megabyte
_BLOCK = 16  # hands compared together, so that their rows stay in the cache
_FORM = 1  # of files of results before the board; what changes their contents needs another number
_KEPT_COMPARISONS = 1e10  # results before the board are kept in a file if they take more comparisons, which are seconds


class CheckDown:
    """Check-down results on the boards of one game; thread-safe. Each call overwrites the arrays of the thread's last."""

    def __init__(self, rules: PokerRules) -> None:
        self.rules = rules
        self._scratch = Scratch()
        self._before_cards: npt.NDArray[np.float32] | None = None

    def against(self, board: Board, reach: Floats) -> tuple[Floats, Floats]:
        """Two arrays [K, U]: each canonical hand of a board against the ranges `reach` [K, U], summed over all disjoint
        hands.

        The first is the hands' reach, the second their reach times the mean result of checking down: win 1, loss -1.
        """
        count, columns = len(board), len(reach)
        turned, anyone, ahead = (self._scratch.array(name, (count, columns)) for name in ("turned", "anyone", "ahead"))
        turned[:] = reach.T
        by_card = self._scratch.array("by card", (board.num_cards + 2, columns))
        against_range(turned, board.holes, board.canonical, board.group, board.example, by_card, anyone, ahead)
        if len(board.cards) < sum(self.rules.board_cards):
            pairs, scale = self.pairs(board)
            _sum_pairs(pairs, turned, board.canonical, scale, ahead)
        result = self._scratch.array("result", (2, columns, count))
        result[0], result[1] = anyone.T, ahead.T
        return result[0], result[1]

    def pairs(self, board: Board) -> tuple[npt.NDArray[np.float32], float]:
        """Results of a hand of each canonical hand against every hand, [U, H], 0 if they share a card; the scale makes
        them means.
        """
        rules = self.rules
        if board.cards:
            total = _float32(self._scratch, "pairs", (len(board), len(board.holes)))
            compare_hands(rules, board.cards, board.holes, board.example, self._scratch, total)
            return total, 1.0 / comparisons(rules, len(board.cards))
        if self._before_cards is None:  # there is one board without cards
            number = np.searchsorted(pack_cards(all_hands(rules.num_cards, rules.hole_cards)), pack_cards(board.holes))
            self._before_cards = results_before_cards(rules)[np.ix_(number[board.example], number)]
        return self._before_cards, 1.0


def _float32(scratch: Scratch, name: str, shape: tuple[int, ...]) -> npt.NDArray[np.float32]:
    size = prod(shape)
    return scratch.array(name, ((size + 1) // 2,)).view(np.float32)[:size].reshape(shape)


def results_before_cards(rules: PokerRules) -> npt.NDArray[np.float32]:
    """The mean result (win 1, loss -1) of each hand against each other one before any board card, [H, H]; thread-safe.

    All boards count. It is 0 for hands that share a card. In hold'em this takes some ten seconds of all cores, and is
    then kept in a file.
    """
    with _lock:
        return _results_before_cards(rules.num_ranks, rules.num_suits, rules.hole_cards, sum(rules.board_cards))


_lock = threading.Lock()  # threads that need the results at the same time wait for one of them to make them


@cache
def _results_before_cards(ranks: int, suits: int, hole_cards: int, board_cards: int) -> npt.NDArray[np.float32]:
    holes = all_hands(ranks * suits, hole_cards)

    def make() -> dict[str, torch.Tensor]:
        total, mean = np.zeros((2, len(holes), len(holes)))
        index = board_index(ranks, suits, board_cards)
        with Workers(os.cpu_count() or 1) as workers:
            for copies in np.unique(index.copies):
                parts = np.array_split(index.boards[index.copies == copies], workers.count)
                for won in workers.map(lambda part: _compare_above(part, holes, suits), parts):
                    total += copies * won
        total -= total.T
        images = hand_images(ranks, suits, hole_cards)
        for image in images:
            mean += total[np.ix_(image, image)]
        mean /= len(images) * comb(ranks * suits - 2 * hole_cards, board_cards)
        results = mean.astype(np.float32)
        _drop_shared(holes, np.arange(len(holes)), results)
        return {"results": torch.from_numpy(results)}

    if count_classes(ranks, suits, (board_cards,)) * len(holes) ** 2 < _KEPT_COMPARISONS:
        made = make()
    else:
        name = f"results-{_FORM}-{hole_cards}-{board_cards}-{ranks}-{suits}"
        made = kept_arrays(name, "The table of results before the board", make)
    results = made["results"].numpy()
    results.flags.writeable = False  # shared by all threads
    return results


def _compare_above(boards: Cards, holes: Cards, num_suits: int) -> npt.NDArray[np.int32]:
    """On how many of `boards` [M, n] a hand is stronger than a later one minus on how many it is weaker, [H, H].

    A hand that shares a card with a board counts as weaker than all that share none. Over all boards these comparisons
    cancel out, because every hand shares a card with equally many.
    """
    total = np.zeros((len(holes), len(holes)), np.int32)
    strength = np.empty((_TOGETHER, len(holes)), np.int32)
    for start in range(0, len(boards), _TOGETHER):
        some = boards[start : start + _TOGETHER]
        _fill_strengths(np.zeros(0, np.uint8), some, holes, num_suits, strength)
        _compare_later(strength[: len(some)], total)
    return total


def plays_out_all(rules: PokerRules, seen: int) -> bool:
    """Whether hands are compared on all possible runouts after `seen` board cards, not on a sample."""
    return not seen or comb(rules.num_cards - seen, sum(rules.board_cards) - seen) <= MOST_RUNOUTS


def comparisons(rules: PokerRules, seen: int) -> float:
    """The number of runouts that two disjoint hands leave after `seen` cards, at least one, or its mean in a sample."""
    to_come, left = sum(rules.board_cards) - seen, rules.num_cards - seen
    meet = comb(left - 2 * rules.hole_cards, to_come)
    return float(meet) if plays_out_all(rules, seen) else SAMPLED_RUNOUTS * meet / comb(left, to_come)


def compare_hands(
    rules: PokerRules,
    board: tuple[int, ...],
    holes: Cards,
    hands: Ints,
    scratch: Scratch,
    total: npt.NDArray[np.float32],
) -> None:
    """Fill `total` [n, H]: runouts won minus runouts lost by each of `hands` [n] against each of `holes` [H].

    The board has a card at least.
    It is 0 for hands that share a card. `hands` are positions in `holes`.
    """
    assert board
    runouts = runouts_after(rules, board, sum(rules.board_cards) - len(board))
    strength = _float32(scratch, "strength", (_TOGETHER, len(holes))).view(np.int32)
    total[:] = 0
    for start in range(0, len(runouts), _TOGETHER):
        some = runouts[start : start + _TOGETHER]
        _fill_strengths(np.array(board, np.uint8), some, holes, rules.num_suits, strength)
        _compare_pairs(strength[: len(some)], hands, total)
    _drop_shared(holes, hands, total)


def runouts_after(rules: PokerRules, board: tuple[int, ...], to_come: int) -> Cards:
    """The possible remaining board cards, uint8 [M, to_come]: all sets, or a sample that depends on `board` only."""
    left = np.setdiff1d(np.arange(rules.num_cards, dtype=np.uint8), np.array(board, np.uint8))
    if (count := comb(len(left), to_come)) <= MOST_RUNOUTS:
        return np.array(list(combinations(left.tolist(), to_come)), np.uint8).reshape(count, to_come)
    draw = np.random.default_rng(key(0, "check down", *board))
    picks = draw.random((SAMPLED_RUNOUTS, len(left)), np.float32).argpartition(to_come, axis=1)
    return left[picks[:, :to_come]]


@nb.njit(cache=True, nogil=True)
def _fill_strengths(
    board: Cards, runouts: Cards, holes: Cards, num_suits: int, strength: npt.NDArray[np.int32]
) -> None:
    """The strength of every hand (uint8 [H, hole cards]) on `board` with each runout, [M, H]; -1 if it shares a card."""
    cards = np.empty(len(board) + runouts.shape[1], np.uint8)
    cards[: len(board)] = board
    for m in range(len(runouts)):
        cards[len(board) :] = runouts[m]
        strength[m] = board_strengths(holes, cards, num_suits)


@nb.njit(cache=True, nogil=True)
def _compare_pairs(strength: npt.NDArray[np.int32], example: Ints, total: npt.NDArray[np.float32]) -> None:
    """Add to `total` [U, H] how often hand `example[u]` is stronger than each hand minus how often it is weaker."""
    for start in range(0, len(example), _BLOCK):
        for m in range(len(strength)):
            others = strength[m]
            for u in range(start, min(start + _BLOCK, len(example))):
                mine, row = others[example[u]], total[u]
                if mine >= 0:
                    for h in range(len(others)):
                        beats = np.int32(mine > others[h]) & np.int32(others[h] >= 0)
                        row[h] += np.float32(beats - np.int32(mine < others[h]))


@nb.njit(cache=True, nogil=True)
def _compare_later(strength: npt.NDArray[np.int32], total: npt.NDArray[np.int32]) -> None:
    """Add to `total` [H, H] how often each hand is stronger than each later one minus how often it is weaker."""
    one, zero = np.int32(1), np.int32(0)
    for start in range(0, strength.shape[1], _BLOCK):
        for m in range(len(strength)):
            for a in range(start, min(start + _BLOCK, strength.shape[1])):
                mine, others, row = strength[m, a], strength[m, a:], total[a, a:]
                for h in range(len(others)):
                    row[h] += (one if mine > others[h] else zero) - (one if mine < others[h] else zero)


@nb.njit(cache=True, nogil=True)
def _drop_shared(holes: Cards, example: Ints, total: npt.NDArray[np.float32]) -> None:
    """Set `total` [U, H] to 0 for pairs of hands that share a card."""
    for u in range(len(example)):
        for h in range(len(holes)):
            for mine in holes[example[u]]:
                for other in holes[h]:
                    if mine == other:
                        total[u, h] = 0


@nb.njit(cache=True, nogil=True)
def _sum_pairs(total: npt.NDArray[np.float32], reach: Floats, canonical: Ints, scale: float, out: Floats) -> None:
    """`out` [U, K] = `scale` times the sum over hands h of `total` [U, H] times the `reach` [U, K] of their hands."""
    out[:] = 0
    for u in range(len(total)):
        sums = out[u]
        for h in range(len(canonical)):
            pair, weight = float(total[u, h]), reach[canonical[h]]
            if pair != 0.0:
                for k in range(len(sums)):
                    sums[k] += pair * weight[k]
        for k in range(len(sums)):
            sums[k] *= scale
