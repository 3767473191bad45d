"""Traversals with bet sizes against a plain recursion that knows no stacks and no bits, and the layout of their tables."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bet_size_games import ONE_ROUND, TWO_ROUNDS, decisions
from deepcfr.buckets.buckets import lossless
from deepcfr.core.rng import key
from deepcfr.game.bet_size_betting import (
    ACTOR,
    BET,
    BETS,
    ENDED,
    OPENED,
    RAISED,
    ROUND,
    START,
    advance,
    first_positions,
    gain,
    legal_actions,
)
from deepcfr.game.bet_size_game import ImplicitPoker
from deepcfr.game.bet_sizes import BET_SIZE_GAMES, MOST_SIZES, BetSizeRules
from deepcfr.game.betting import NOT_TERMINAL
from deepcfr.game.cards import address_of, uniform_at
from deepcfr.sample.bet_size_tables import Run, bet_size_layout, bet_size_traversals, entry_of, row_of
from deepcfr.sample.mccfr import PLAIN, Decay, shaped
from deepcfr.sample.traversal_tree import poker_situations

GAMES = pytest.mark.parametrize("rules", [ONE_ROUND, TWO_ROUNDS], ids=lambda rules: rules.name)
STREAM = key(3, "action")


@GAMES
def test_rows_of_different_names_never_overlap(rules: BetSizeRules) -> None:
    game, counts = ImplicitPoker(rules), (5, 7)[: rules.num_rounds]
    layout = bet_size_layout(game, counts)
    owner: dict[int, tuple[int, ...]] = {}
    for position in decisions(game):
        octave = int(position[START] // max(rules.blinds)).bit_length()
        name = *(int(position[e]) for e in (ROUND, OPENED, BETS, RAISED, RAISED + 1)), octave
        for bucket in range(counts[position[ROUND]]):
            row = row_of(layout, position, bucket)
            for action in np.flatnonzero(legal_actions(game.bets, position[None])[0]):
                at = row + entry_of(position, action)
                assert 0 <= at < layout.size
                assert owner.setdefault(at, (*name, bucket, int(action))) == (*name, bucket, action)
    assert len(owner) > 50


def test_an_octave_of_the_pot_begins_where_the_pot_has_doubled() -> None:
    layout = bet_size_layout(ImplicitPoker(BET_SIZE_GAMES["hunl-ladder"]), (169, 10, 10, 10))
    position = next(each for each in decisions(ImplicitPoker(TWO_ROUNDS)) if each[ROUND] == 1)
    position[[OPENED, BETS, RAISED, RAISED + 1]] = 0
    for start in range(layout.octave, 30 * layout.octave):
        position[START] = start
        octave = (start // layout.octave).bit_length() - 1
        assert row_of(layout, position, 0) == layout.start[1] + octave * layout.block[1] + layout.offset[1, 0]


def test_the_tables_of_the_papers_game_are_of_the_size_that_is_said() -> None:
    layout = bet_size_layout(ImplicitPoker(BET_SIZE_GAMES["hunl-ladder"]), (169, 10, 10, 10))
    # 63 sets of sizes and none, opened or not: 2 + the sizes above the highest one, each
    block = 2 * (8 + sum(2 ** (top - 1) * (2 + 6 - top) for top in range(1, 7)))
    assert layout.block.tolist() == [2 * (6 + sum(2 ** (top - 1) * (2 + 4 - top) for top in range(1, 5))), *[block] * 3]
    assert layout.pots.tolist() == [1, 5, 7, 7]
    assert layout.size == 169 * layout.block[0] + 10 * block * (4 * 5 + 9 * 7 + 16 * 7)


class Plain:
    """External sampling as a recursion (Lanctot et al. 2009, section 4), with the kernel's random numbers."""

    def __init__(self, game: ImplicitPoker, regrets: np.ndarray, counts: tuple[int, ...], decay: Decay) -> None:
        self.game, self.layout, self.decay = game, bet_size_layout(game, counts), decay
        self.regrets, self.averages = regrets.copy(), np.zeros_like(regrets)
        self.touched = 0

    def strategy(self, position: np.ndarray, bucket: int, traversal: int) -> tuple[list[int], list[int], np.ndarray]:
        actions = np.flatnonzero(legal_actions(self.game.bets, position[None])[0]).tolist()
        row = row_of(self.layout, position, bucket)
        entries = [row + entry_of(position, action) for action in actions]
        positive = np.maximum(self.regrets[entries], 0)
        share = positive / positive.sum() if positive.sum() > 0 else np.full(len(actions), 1 / len(actions))
        decay = self.decay
        floor = max(0.0, decay.start + decay.slope * (decay.games + traversal))
        if decay.games + traversal < decay.end and floor > 0:
            least = min(floor, 1 / len(actions))
            share = least + (1 - len(actions) * least) * share
        return actions, entries, share

    def value(
        self, position: np.ndarray, run: Run, traversal: int, buckets: np.ndarray, result: int, path: int
    ) -> float:
        self.touched += 1
        if position[ENDED] != NOT_TERMINAL:
            return float(shaped(gain(position, run.traverser, result) / run.unit, run.shape))
        actor, round_ = position[ACTOR], position[ROUND]
        actions, entries, share = self.strategy(position, buckets[2 * round_ + actor], traversal)

        def after(action: int) -> float:
            child = position.copy()
            advance(self.game.bets, child, action)
            self.touched += int(child[ROUND] - round_)
            if action >= BET:
                step = path + 2 ** (action - BET + 1)
            elif child[ROUND] > round_:
                step = path * 2 ** (MOST_SIZES + 1)
            else:
                step = path + 1  # an opening check or call, or an end
            return self.value(child, run, traversal, buckets, result, step)

        if actor != run.traverser:
            self.averages[entries] += run.weight * share
            uniform = uniform_at(np.uint64(address_of(run.stream, run.first + traversal)), path)
            ends = np.cumsum(share)
            return after(actions[min(int((ends <= uniform).sum()), len(actions) - 1)])
        values = np.array([after(action) for action in actions])
        value = float(share @ values)
        for entry, each in zip(entries, values, strict=True):
            self.regrets[entry] += run.weight * (each - value)
        return value


@pytest.mark.parametrize(
    ("rules", "decay", "shape"),
    [
        (ONE_ROUND, PLAIN, 0),
        (TWO_ROUNDS, PLAIN, 0),
        (TWO_ROUNDS, Decay(0.04, -1e-3, 35, 20), 1),
        (replace(TWO_ROUNDS, name="all-in", all_in=(True, True)), PLAIN, 3),
    ],
)
def test_a_traversal_is_the_plain_recursion(rules: BetSizeRules, decay: Decay, shape: int) -> None:
    game, buckets = ImplicitPoker(rules), lossless(rules.deck)
    layout = bet_size_layout(game, buckets.counts)
    start = np.random.default_rng(4).normal(size=layout.size)
    for traverser in (0, 1):
        plain = Plain(game, start, buckets.counts, decay)
        regrets, averages = start.copy(), np.zeros(layout.size)
        run = Run(traverser, 3.0, np.uint64(STREAM), 0, float(rules.unit_chips), shape)
        situations = poker_situations(buckets, 40, key(1, "deal"), 0)
        touched = bet_size_traversals(game.bets, layout, regrets, averages, situations, run, decay)
        for traversal, (own, result) in enumerate(zip(situations.buckets, situations.results, strict=True)):
            plain.value(first_positions(game.bets, 1)[0], run, traversal, own, int(result), 0)
        np.testing.assert_allclose(regrets, plain.regrets, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(averages, plain.averages, rtol=1e-12)
        assert touched == plain.touched + 40  # the first deal of each
        assert averages.sum() > 0


def test_traversals_do_not_depend_on_chunks() -> None:
    game, buckets = ImplicitPoker(TWO_ROUNDS), lossless(TWO_ROUNDS.deck)
    layout = bet_size_layout(game, buckets.counts)
    tables = []
    for sizes in ((30,), (7, 23)):
        regrets, averages = np.zeros((2, layout.size))
        first = 0
        for size in sizes:
            run = Run(0, 1.0, np.uint64(STREAM), first, 2.0, 0)
            situations = poker_situations(buckets, size, key(1, "deal"), first)
            bet_size_traversals(game.bets, layout, regrets, averages, situations, run, PLAIN)
            first += size
        tables.append((regrets, averages))
    np.testing.assert_array_equal(tables[0], tables[1])
