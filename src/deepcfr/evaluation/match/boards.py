"""Matches over sampled runouts: on each one all hands are played out exactly, in both seats.

A runout is all the public cards of a game. One pass over the betting tree along it, in the manner of `ranges.sweep`, gives
what the first policy gains against the second with every pair of hands that shares no card with each other or with the
runout. So the only chance that is left is the choice of runouts, and, if `lines` says so, of the public action sequences
that are played out in later rounds. `ranges.runouts` derives the weights, docs/matches.md says what that is worth.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import cache
from math import comb

import numpy as np
import numpy.typing as npt

from deepcfr.errors import ConfigError, GameError
from deepcfr.evaluation.intervals import student_t_95
from deepcfr.evaluation.match.profiles import Floats, ProfilePass, common_game, strategy_on
from deepcfr.evaluation.match.record import Match, match_record, require_same_game
from deepcfr.games.poker import PokerGame
from deepcfr.parallel import Workers
from deepcfr.policies.base import Policy
from deepcfr.policies.first_round import WithFirstRound
from deepcfr.ranges.boards import Board, OnBoard, RoundTree
from deepcfr.ranges.kernels import add_up
from deepcfr.ranges.lines import Lines, RoundLines
from deepcfr.ranges.public_chance import systematic
from deepcfr.ranges.runouts import RunoutSampler, SampledBoards
from deepcfr.rng import key

LINES = 256  # public action sequences of a round that are played out on a runout: docs/matches.md has what fewer cost
_TOGETHER = 32  # entries of the last round that are in memory at once: a few megabytes
Ints = npt.NDArray[np.int64]
Doubles = npt.NDArray[np.float64]
OnLines = Callable[[Lines], Floats]
"""Part of a round to the probability of each of its edges with each view of a board, [E, U]."""


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
    """What `first` gains on average against `second` over `boards` sampled runouts, with all hands on each of them.

    The interval comes from the standard error over runouts and Student's t. Of a round that begins after more than `lines`
    public action sequences only so many are played out, drawn in proportion to how often they come about times the pot and
    weighted by the inverse of their chance; None plays all. A mixture is its exact average. The result does not depend on
    `threads`. `on_board(done, total)` reports progress. Torch is set to one thread in this process from then on.
    Raises GameError for policies of different games and of games other than poker, and ConfigError for fewer than two
    boards or less than one line.
    """
    start = time.perf_counter()
    _require_boards(first, second, boards, lines)
    runouts = Runouts(first, second, boards, key(seed, "match", "boards"), lines)
    gains = _gains_on(runouts, boards, threads, on_board)
    seats = gains.mean(1).tolist()
    interval = half_interval(gains.mean(0), runouts.sampler.stratum)
    return match_record(first, second, (seats[0], seats[1]), start, interval=interval, boards=boards)


def dealer_value(
    policy: Policy, boards: int, seed: int, *, threads: int = 1, on_board: OnBoard | None = None
) -> tuple[float, float]:
    """What player 0 gains when `policy` plays against itself, and half its 95 % interval, in thousandths of the unit.

    Over sampled runouts as in `boards_match`, which raises the same.
    """
    _require_boards(policy, policy, boards, LINES)
    runouts = Runouts(policy, policy, boards, key(seed, "match", "boards"), LINES)
    gains = _gains_on(runouts, boards, threads, on_board)[0]
    return 1000 * float(gains.mean()), 1000 * half_interval(gains, runouts.sampler.stratum)


def _gains_on(runouts: Runouts, boards: int, threads: int, on_board: OnBoard | None) -> Doubles:
    """What the first policy gains as player 0 and as player 1 on each of so many runouts, [2, boards], in units."""
    workers = Workers(threads)
    gains = np.empty((2, boards))
    try:
        for number, both in enumerate(workers.map(runouts.gains, range(boards))):
            gains[:, number] = both
            if on_board:
                on_board(number + 1, boards)
    finally:
        workers.shutdown()
    return gains


def _require_boards(first: Policy, second: Policy, boards: int, lines: int | None) -> None:
    require_same_game(first.game, second.game)
    if not isinstance(first.game, PokerGame):
        raise GameError(f"Boards are sampled in poker games, and '{first.game.name}' is not one.")
    if boards < 2:
        raise ConfigError(
            f"A match over boards needs at least 2 of them for its interval, but {boards} were asked for."
        )
    if lines is not None and lines < 1:
        raise ConfigError(f"A match plays out at least 1 line of a round, but {lines} were asked for.")


def half_interval(values: Doubles, stratum: Ints) -> float:
    """Half the 95 % interval of the mean of `values` [n], drawn independently within strata that have their fair share.

    The variance of a mean over strata is the sum of n_k s_k^2 / n^2, with s_k^2 that of the n_k values of stratum k. Its
    degrees of freedom are those of Satterthwaite (1946, "An approximate distribution of estimates of variance components").
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
    """The runouts of one match; `gains` may be asked in several threads.

    `passes` plays a round on a board, by default both policies as they are; `lines` is as in `boards_match`.
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
        self._rounds = [RoundLines(tree) for tree in self._boards.rounds]
        self._whole = [part.only(np.arange(len(part.tree.entries))) for part in self._rounds]
        self._pot = [game.tree.chips[nodes].sum(1) for nodes in _entry_nodes(game, self._boards.rounds)]
        self._policies = (first, second)
        self._strategies = strategy_on(self._boards, first), strategy_on(self._boards, second)
        self._stream, self._lines = stream, lines
        self._passes = passes or ProfilePass()

    def gains(self, number: int) -> tuple[float, float]:
        """What the first policy gains on one runout as player 0 and as player 1, in units."""
        runout = self._boards.runout(self.sampler.cards(number))
        draw = np.random.default_rng(key(self._stream, "lines", number))
        root = self._boards.root
        values = self._deal(runout, 0, np.zeros(1, np.int64), np.ones((2, 2, 1, len(root))), root, draw)
        deals = float(root.size.sum()) * _hands_beside(self._boards.game)
        first, second = (values[:, 0] @ root.size / deals).tolist()
        return first, -second

    def _deal(
        self,
        runout: Sequence[Board],
        round_: int,
        entries: Ints,
        reach: Floats,
        before: Board,
        draw: np.random.Generator,
    ) -> Doubles:
        """Player 0's values [2, X, U] on the board `before` from a round's `entries` [X], with `reach` [2, P, X, U] there.

        The round is played out after some of its entries, and the values of the others are 0.
        """
        board = runout[round_]
        chosen, chance = self._choose(self._pot[round_][entries], reach, before, draw)
        result = np.zeros((2, len(entries), len(before)))
        asked = [self._ask(seat, round_, board) for seat in (0, 1)]
        together = _TOGETHER if round_ == len(runout) - 1 else max(1, len(chosen))
        for start in range(0, len(chosen), together):
            some = slice(start, start + together)
            here = chosen[some]
            lines = self._part(round_, entries[here])
            at_entries = np.ascontiguousarray(reach[:, :, here][..., board.up])

            def later(at_exits: Doubles, lines: Lines = lines) -> Doubles:
                return self._deal(runout, round_ + 1, lines.exits, at_exits, board, draw)

            values = self._passes.values(lines.tree, board, (asked[0](lines), asked[1](lines)), at_entries, later)
            values /= chance[some, None]
            total = np.zeros((2, len(here), len(before)))
            add_up(values, board.up, board.weight, total)
            result[:, here] = total
        return result

    def _part(self, round_: int, entries: Ints) -> Lines:
        whole = self._whole[round_]
        return whole if len(entries) == len(whole.tree.entries) else self._rounds[round_].only(entries)

    def _choose(
        self, pot: Ints, reach: Floats, board: Board, draw: np.random.Generator
    ) -> tuple[Ints, npt.NDArray[np.float64]]:
        """Which entries are played out, as ascending positions, and the chance with which each of them was chosen.

        What is at stake at an entry is the pot times how often both players come there, in either profile; entries that
        nobody comes to are worth 0 and left out.
        """
        stake = pot * (reach @ board.size.astype(np.float64)).prod(1).sum(0)
        come = np.flatnonzero(stake)
        if self._lines is None or len(come) <= self._lines:
            return come, np.ones(len(come))
        index, chance = systematic(stake[come], self._lines, draw)
        return come[index], chance

    def _ask(self, seat: int, round_: int, board: Board) -> OnLines:
        """A policy's strategy on a board, for any part of the round."""
        strategy = self._strategies[seat]
        if _answers_in_part(self._policies[seat]):
            return lambda lines: strategy(lines.tree, board)

        @cache
        def whole() -> Floats:
            return strategy(self._whole[round_].tree, board)

        return lambda lines: whole()[lines.edges]


def _answers_in_part(policy: Policy) -> bool:
    """Whether a policy can be asked for parts of a round; those that have an `on_board` of their own cannot."""
    if isinstance(policy, WithFirstRound):  # whose own round has one entry
        return _answers_in_part(policy.policy)
    return getattr(policy, "on_board", None) is None


def _entry_nodes(game: PokerGame, rounds: Sequence[RoundTree]) -> list[Ints]:
    """The nodes of the public tree with which each round begins, in the order of its entries."""
    entries = [np.zeros(1, np.int64)]
    for tree in rounds[:-1]:
        node = np.empty(tree.num_slots, np.int64)
        node[tree.entries] = entries[-1]
        node[tree.edge_slot] = game.tree.child[tree.nodes[tree.edge_node], tree.edge_action]
        entries.append(node[tree.exits])
    return entries


def _hands_beside(game: PokerGame) -> int:
    """How many hands the opponent of a given hand can have."""
    rules = game.rules
    return comb(rules.num_cards - rules.hole_cards, rules.hole_cards)
