"""Matches over sampled hands in duplicate.

Every deal is played twice with exchanged seats, and a policy's gain from a deal is the mean of the two games. This
removes most of the variance from the cards, and policies that act alike draw exactly. In poker games a control variate
for the board reduces the remaining variance (`deepcfr.sample.control_variate`).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeGuard

import numpy as np
import torch

from deepcfr.core.errors import ConfigError
from deepcfr.core.parallel import Workers
from deepcfr.core.rng import key
from deepcfr.core.types import Doubles, Infosets
from deepcfr.game.base import Deals, Game, infosets_at
from deepcfr.game.poker import Poker, PokerGame
from deepcfr.measure.intervals import NORMAL_95
from deepcfr.measure.match.record import Match, match_record, require_same_game
from deepcfr.policy.base import Policy
from deepcfr.policy.mixture import MixturePolicy
from deepcfr.sample.control_variate import BoardControlVariate
from deepcfr.sample.external import Strategy, last_nodes

CHUNK = 16_384  # deals played together


def sampled_match(
    first: Policy,
    second: Policy,
    hands: int,
    seed: int,
    *,
    threads: int = 1,
    chunk: int = CHUNK,
    control: bool = True,
    on_hands: Callable[[int, int], None] | None = None,
) -> Match:
    """The mean gain of `first` against `second` in `hands` deals of any game, each played in both seats.

    The interval uses the standard error over deals, because the two games of a deal share its cards and the uniforms
    that choose actions. A mixture draws one of its policies for each deal and plays it in both seats, so the expected
    value is that of its exact average. `control` subtracts a control variate of mean zero for the board in poker games.
    Results depend neither on `threads` nor on `chunk`, the most deals in a batch. `on_hands(done, total)` reports
    progress. Sets torch to one thread in this process. Raises GameError for policies of different games, and
    ConfigError for fewer than two hands.
    """
    start = time.perf_counter()
    require_same_game(first.game, second.game)
    if hands < 2:
        raise ConfigError(f"A sampled match needs at least 2 hands for its interval, but {hands} were asked for.")
    chunk = min(chunk, *(player.most_deals or chunk for player in (first, second)))
    game = first.game
    control_variate = BoardControlVariate(game, key(seed, "match", "luck")) if control and _has_control(game) else None

    def play(begin: int) -> Doubles:
        count = min(chunk, hands - begin)
        game, dealt = first.game, key(seed, "match", "deal")
        deals = game.deal(count, dealt, begin)
        # the same cards in the other policy's encoding
        others = deals if second.game is game else second.game.deal(count, dealt, begin)
        # draws of their own, because two mixtures of the same policies must not draw the same ones
        mine = _sampled_strategy(first, deals, key(seed, "match", "draw", 0))
        theirs = _sampled_strategy(second, others, key(seed, "match", "draw", 1))
        actions = key(seed, "match", "action")
        place = game.place if isinstance(game, Poker) else None
        seats = ((mine, theirs), (theirs, mine))
        ends = [last_nodes(game, deals, strategies, actions, place=place) for strategies in seats]
        row = torch.arange(count, device=ends[0].device)
        paid = torch.stack([game.payoff(node, row, deals) for node in ends]).double().cpu().numpy()
        if isinstance(game, Poker):  # whole chips are seldom exact shares of a unit in float32
            paid = (paid * game.rules.unit_chips).round() / game.rules.unit_chips
        if control_variate and isinstance(game, PokerGame):
            nodes = torch.stack(ends).cpu().numpy()
            paid -= control_variate(game.deal_cards(count, dealt, begin), np.arange(begin, begin + count), nodes)
        paid[1] *= -1  # to player 0, who is the second policy there
        return paid

    gains = np.empty((2, hands))
    with Workers(threads) as workers:
        for index, part in enumerate(workers.map(play, range(0, hands, chunk))):
            done = index * chunk + part.shape[1]
            gains[:, index * chunk : done] = part
            if on_hands:
                on_hands(done, hands)
    seats = gains.mean(1).tolist()
    error = gains.mean(0).std(ddof=1) / np.sqrt(hands)
    return match_record(first, second, (seats[0], seats[1]), start, interval=float(NORMAL_95 * error), hands=hands)


def _has_control(game: Game) -> TypeGuard[PokerGame]:
    """Whether there is a control variate for the board: with a few bet sizes there is none."""
    return isinstance(game, PokerGame) and game.rules.betting != "no-limit"


def _sampled_strategy(policy: Policy, deals: Deals, stream: int) -> Strategy:
    """The policy at histories of `deals`, which are in its own game's encoding; nodes may be on another device.

    A mixture draws a policy for each deal in `stream`.
    """
    game = policy.game
    if isinstance(policy, MixturePolicy):
        drawn = policy.draw_for(stream, deals.traversal)

    def ask(node: torch.Tensor, row: torch.Tensor) -> torch.Tensor:
        here = row.to(game.device)
        infosets: Infosets = infosets_at(game, node.to(game.device), here, deals)
        if not isinstance(policy, MixturePolicy):
            return policy.probabilities(infosets).to(node.device)
        result = torch.empty(len(infosets), game.encoding.num_actions, dtype=torch.float64, device=game.device)
        mine = drawn[row.cpu().numpy()]
        for index in np.unique(mine):
            same = torch.from_numpy(np.flatnonzero(mine == index)).to(game.device)
            result[same] = policy.policies[index].probabilities(infosets[same]).double()
        return result.to(node.device)

    return ask
