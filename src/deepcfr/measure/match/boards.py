"""Matches over sampled runouts: on each runout all hands are played exactly, in both seats.

A runout is all the public cards of a game. One pass over the betting tree along a runout, as in `boards.sweep`, gives
the first policy's gain against the second for every pair of hands that share no card with each other or with the
runout. The only randomness is the choice of runouts and, with `lines`, of public action sequences in later rounds.
`boards.boards` derives the weights, and docs/matches.md measures the variance.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import cache
from math import comb

import numpy as np

from deepcfr.boards.boards import Board, OnBoard, RunoutSampler, SampledBoards
from deepcfr.boards.kernels import add_up
from deepcfr.boards.public_chance import systematic
from deepcfr.boards.rounds import PartialRound
from deepcfr.core.errors import ConfigError
from deepcfr.core.rng import key
from deepcfr.core.types import Doubles, Floats, Ints
from deepcfr.game.poker import poker_game
from deepcfr.measure.intervals import student_t_95
from deepcfr.measure.match.exact import ProfilePass, common_game, strategy_on
from deepcfr.measure.match.record import Match, in_both_seats, match_record, require_same_game
from deepcfr.policy.base import Policy

LINES = 256  # public action sequences of a round that are played on a runout; docs/matches.md has the cost of fewer
_TOGETHER = 32  # round roots of the last round in memory at once: a few megabytes
PartStrategy = Callable[[PartialRound], Floats]
"""Part of a round to the probability of each of its edges with each canonical hand of a board, [E, U]."""


def boards_match(
    first: Policy,
    second: Policy,
    boards: int,
    seed: int,
    *,
    threads: int = 1,
    lines: int | None = LINES,
    on_board: OnBoard | None = None,
) -> Match:
    """The mean gain of `first` against `second` over `boards` sampled runouts, with all hands on each of them.

    The interval uses the standard error over runouts and Student's t. If a round begins after more than `lines` public
    action sequences, only `lines` of them are played, drawn in proportion to their probability times the pot and
    weighted by the inverse of their chance; None plays all. A mixture plays its exact average. The result does not
    depend on `threads`. `on_board(done, total)` reports progress. Sets torch to one thread in this process. Raises
    GameError for policies of different games and of games other than poker, and ConfigError for fewer than two boards
    or less than one line.
    """
    start = time.perf_counter()
    gains, stratum = _gains(first, second, boards, seed, threads, lines, on_board)
    seats = gains.mean(1).tolist()
    interval = half_interval(gains.mean(0), stratum)
    return match_record(first, second, (seats[0], seats[1]), start, interval=interval, boards=boards)


def dealer_value(policy: Policy, boards: int, seed: int, *, threads: int = 1) -> tuple[float, float]:
    """Player 0's gain when `policy` plays against itself, and half its 95 % interval, in thousandths of the unit.

    Runouts are sampled and errors raised as in `boards_match`.
    """
    (gains, _), stratum = _gains(policy, policy, boards, seed, threads, LINES, None)
    return 1000 * float(gains.mean()), 1000 * half_interval(gains, stratum)


def _gains(
    first: Policy, second: Policy, boards: int, seed: int, threads: int, lines: int | None, on_board: OnBoard | None
) -> tuple[Doubles, Ints]:
    """The first policy's gains in both seats on each runout, [2, boards], in units, and the runouts' strata [boards]."""
    require_same_game(first.game, second.game)
    poker_game(first.game, "Boards are sampled in poker games only")
    require_boards("A match over boards", boards, lines)
    runouts = Runouts(first, second, boards, key(seed, "match", "boards"), lines)
    return in_both_seats(runouts.gains, boards, threads, on_board), runouts.sampler.stratum


def require_boards(what: str, boards: int, lines: int | None) -> None:
    """Raise ConfigError for fewer than two boards and for less than one line; `what` is to be played on them."""
    if boards < 2:
        raise ConfigError(f"{what} needs at least 2 boards for its interval, but {boards} were asked for.")
    if lines is not None and lines < 1:
        raise ConfigError(f"{what} plays at least 1 line of a round, but {lines} were asked for.")


def half_interval(values: Doubles, stratum: Ints) -> float:
    """Half the 95 % interval of the mean of `values` [n], drawn independently within strata of proportional size.

    The variance of the mean is the sum of n_k s_k^2 / n^2, where s_k^2 is the variance of the n_k values of stratum k.
    The degrees of freedom are Satterthwaite's (1946, "An approximate distribution of estimates of variance
    components").
    """
    size = np.bincount(stratum)
    away = values - (np.bincount(stratum, values) / size)[stratum]
    parts = size * np.bincount(stratum, away**2) / (size - 1) / len(values) ** 2
    variance = parts.sum()
    if variance == 0:
        return 0.0
    degrees = variance**2 / (parts**2 / (size - 1)).sum()
    return float(student_t_95(degrees) * np.sqrt(variance))


class Runouts:
    """The runouts of one match; `gains` is thread-safe.

    `passes` plays a round on a board, by default with both policies unchanged; `lines` is as in `boards_match`.
    """

    def __init__(
        self,
        first: Policy,
        second: Policy,
        count: int,
        stream: int,
        lines: int | None,
        passes: ProfilePass | None = None,
    ) -> None:
        game = common_game(first, second)
        self.sampler = RunoutSampler(game.rules, count, stream)
        self._boards = SampledBoards(game)
        self._whole = [tree.only(np.arange(len(tree.roots))) for tree in self._boards.rounds]
        self._pot = [game.tree.chips[tree.root_nodes].sum(1) for tree in self._boards.rounds]
        self._policies = (first, second)
        self._strategies = strategy_on(self._boards, first), strategy_on(self._boards, second)
        self._stream, self._lines = stream, lines
        self._passes = passes or ProfilePass()

    def gains(self, number: int) -> tuple[float, float]:
        """The first policy's gains on one runout as player 0 and as player 1, in units."""
        runout = self._boards.runout(self.sampler.cards(number))
        draw = np.random.default_rng(key(self._stream, "lines", number))
        root = self._boards.root
        values = self._deal(runout, 0, np.zeros(1, np.int64), np.ones((2, 2, 1, len(root))), root, draw)
        rules = self._boards.game.rules
        deals = float(root.size.sum()) * comb(rules.num_cards - rules.hole_cards, rules.hole_cards)
        first, second = (values[:, 0] @ root.size / deals).tolist()
        return first, -second

    def _deal(
        self,
        runout: Sequence[Board],
        round_: int,
        roots: Ints,
        reach: Floats,
        before: Board,
        draw: np.random.Generator,
    ) -> Doubles:
        """Player 0's values [2, X, U] on the board `before` from a round's `roots` [X], with `reach` [2, P, X, U]
        there.

        The round is played from some of its round roots only; the values at the others are 0.
        """
        board = runout[round_]
        chosen, chance = self._choose(self._pot[round_][roots], reach, before, draw)
        result = np.zeros((2, len(roots), len(before)))
        asked = [self._ask(seat, round_, board) for seat in (0, 1)]
        together = _TOGETHER if round_ == len(runout) - 1 else max(1, len(chosen))
        for start in range(0, len(chosen), together):
            some = slice(start, start + together)
            here = chosen[some]
            part = self._part(round_, roots[here])
            at_roots = np.ascontiguousarray(reach[:, :, here][..., board.up])

            def later(at_leaves: Doubles, part: PartialRound = part) -> Doubles:
                return self._deal(runout, round_ + 1, part.round_leaves, at_leaves, board, draw)

            values = self._passes.values(part.tree, board, (asked[0](part), asked[1](part)), at_roots, later)
            values /= chance[some, None]
            total = np.zeros((2, len(here), len(before)))
            add_up(values, board.up, board.weight, total)
            result[:, here] = total
        return result

    def _part(self, round_: int, roots: Ints) -> PartialRound:
        whole = self._whole[round_]
        return whole if len(roots) == len(whole.tree.roots) else self._boards.rounds[round_].only(roots)

    def _choose(self, pot: Ints, reach: Floats, board: Board, draw: np.random.Generator) -> tuple[Ints, Doubles]:
        """The round roots to play, as ascending positions, and the probability with which each was chosen.

        a round root is chosen in proportion to the pot times both players' reach, in either profile. Round roots with
        reach 0 have value 0 and are left out.
        """
        stake = pot * (reach @ board.size.astype(np.float64)).prod(1).sum(0)
        come = np.flatnonzero(stake)
        if self._lines is None or len(come) <= self._lines:
            return come, np.ones(len(come))
        index, chance = systematic(stake[come], self._lines, draw)
        return come[index], chance

    def _ask(self, seat: int, round_: int, board: Board) -> PartStrategy:
        """A policy's strategy on a board, for any part of the round."""
        strategy = self._strategies[seat]
        if not self._policies[seat].whole_rounds:
            return lambda part: strategy(part.tree, board)

        @cache
        def whole() -> Floats:
            return strategy(self._whole[round_].tree, board)

        return lambda part: whole()[part.edges]
