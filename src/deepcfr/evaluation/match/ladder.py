"""Sampled matches of raise-ladder games: real hands, duplicate, thousands of them stepped together.

As in `deepcfr.evaluation.match.hands`, every deal is played twice with the seats exchanged, what a policy gains from a deal
is the mean of its two games, and the interval comes from the standard error over deals.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import torch

from deepcfr.errors import ConfigError
from deepcfr.evaluation.intervals import NORMAL_95
from deepcfr.evaluation.match.record import Match
from deepcfr.games.betting import NOT_TERMINAL
from deepcfr.games.ladder_betting import ACTOR, ENDED, advance_all, first_positions, gains
from deepcfr.parallel import Workers
from deepcfr.policies.ladder import LadderPolicy, require_same_ladder
from deepcfr.rng import addressed_uniforms, key
from deepcfr.sampling.walk_tree import deal_cards, showdowns

CHUNK = 8_192  # deals played together
Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


def ladder_match(
    first: LadderPolicy,
    second: LadderPolicy,
    hands: int,
    seed: int,
    *,
    threads: int = 1,
    on_hands: Callable[[int, int], None] | None = None,
) -> Match:
    """What `first` gains on average against `second` in `hands` deals, each played in both seats.

    Results do not depend on `threads`. `on_hands(done, total)` reports progress.
    Raises GameError for policies of different games, and ConfigError for fewer than two hands.
    """
    start = time.perf_counter()
    require_same_ladder(first.game.rules, second.game.rules)
    if hands < 2:
        raise ConfigError(f"A sampled match needs at least 2 hands for its interval, but {hands} were asked for.")
    workers = Workers(threads)
    won = np.empty((2, hands))
    try:
        for part in workers.map(
            lambda begin: _play(first, second, begin, min(CHUNK, hands - begin), seed), range(0, hands, CHUNK)
        ):
            begin, both = part
            won[:, begin : begin + both.shape[1]] = both
            if on_hands:
                on_hands(begin + both.shape[1], hands)
    finally:
        workers.shutdown()
    seats = 1000 * won.mean(1)
    error = won.mean(0).std(ddof=1) / np.sqrt(hands)
    return Match(
        game=first.game.name,
        unit=first.game.milli_unit,
        value=float(seats.mean()),
        seats=(float(seats[0]), float(seats[1])),
        interval=float(1000 * NORMAL_95 * error),
        hands=hands,
        boards=0,
        exact=False,
        seconds=time.perf_counter() - start,
        policies=(first.kind, second.kind),
    )


def _play(first: LadderPolicy, second: LadderPolicy, begin: int, count: int, seed: int) -> tuple[int, Floats]:
    """`begin`, and what the first policy gains as player 0 and as player 1 in the deals from there on, [2, count]."""
    game = first.game
    deck = game.rules.deck
    cards = deal_cards(count, np.uint64(key(seed, "match", "deal")), begin, deck.num_cards, game.slots)
    results = showdowns(cards, deck.hole_cards, deck.num_suits)
    numbers = np.arange(begin, begin + count)
    # draws of their own, because two mixtures of the same policies must not draw the same ones
    players = (first, second)
    views = [p.look(cards, numbers, key(seed, "match", "draw", i)) for i, p in enumerate(players)]
    both = np.empty((2, count))
    for seat in (0, 1):
        # policy i has the seat of player i in the first game, and the other one in the second
        won = _games(players, views, numbers, results, seat, key(seed, "match", "action"))
        both[seat] = won if seat == 0 else -won
    return begin, both / game.rules.unit_chips


def _games(
    players: tuple[LadderPolicy, LadderPolicy], views: list[Ints], numbers: Ints, results: Ints, swap: int, stream: int
) -> Ints:
    """What player 0 gains in games to the end, chips [B]; policy i is player i, or the other one if `swap`."""
    game = players[0].game
    positions = first_positions(game.ladder, len(numbers))
    live = np.arange(len(numbers))
    step = 0
    while len(live):
        chance = addressed_uniforms(stream, torch.from_numpy(numbers[live]), torch.tensor([step])).numpy()
        actions = np.empty(len(live), np.int64)
        now = positions[live]
        for index, player in enumerate(players):
            rows = np.flatnonzero(now[:, ACTOR] ^ swap == index)
            if len(rows):
                strategy = player.probabilities(now[rows], views[index][live[rows]])
                actions[rows] = _choose(strategy, chance[rows])
        advance_all(game.ladder, now, actions)
        positions[live] = now
        live = live[now[:, ENDED] == NOT_TERMINAL]
        step += 1
    return gains(positions, results)


def _choose(strategy: Floats, chance: npt.NDArray[np.float32]) -> Ints:
    """The action on which each uniform falls under its row; one of probability 0 is never taken."""
    sums = strategy.cumsum(1)
    actions: Ints = (sums <= chance[:, None] * sums[:, -1:]).sum(1)
    return actions
