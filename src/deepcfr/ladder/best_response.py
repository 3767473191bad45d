"""Local best response in raise-ladder games: a lower bound on exploitability by sampled hands (Lisy and Bowling 2017).

The rule is that of `deepcfr.evaluation.local_best_response`. The responder knows the policy, and so the probability of
each private hand of the opponent after the opponent's actions. At every decision it takes the action that is best if
the opponent may fold to its raise now and both players check and call from then on. A ladder game may have no list of
nodes, so hands are played one by one, as in the paper: cards and the opponent's actions are sampled, and the range
covers all hands.

A gain is counted without the luck of the cards and of the opponent's actions, as in AIVAT (Burch, Schmid, Moravcik, Morrill
and Bowling 2018). The value of a position is the responder's mean gain over the range if nobody bets any more. Of a
responder's action the change of this value counts, of an opponent's action its mean change over the actions that the
range may take, and of cards nothing, because their mean change is 0; so is the mean of the value at the beginning. So the
mean over deals is that of the payoffs. Where results of hands come from a sample of boards, the payoffs themselves count.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from math import comb

import numpy as np
import numpy.typing as npt
import torch

from deepcfr.errors import ConfigError, GameError
from deepcfr.evaluation.check_down import compare_hands, comparisons, plays_out_all, results_before_cards
from deepcfr.evaluation.intervals import NORMAL_95
from deepcfr.evaluation.local_best_response import LocalBestResponse, bound, checked_rounds
from deepcfr.evaluation.match.record import in_both_seats
from deepcfr.games.betting import CALL, FOLD, FOLDED, NOT_TERMINAL
from deepcfr.games.cards import all_hands
from deepcfr.games.ladder_betting import (
    ACTOR,
    CHIPS,
    ENDED,
    ROUND,
    RUNG,
    advance,
    first_positions,
    gain,
    is_legal,
    node_at,
    raise_total,
)
from deepcfr.games.ladder_game import LadderGame
from deepcfr.policies.base import Policy
from deepcfr.ranges.sweep import Scratch
from deepcfr.rng import addressed_uniforms, key
from deepcfr.sampling.traversal_tree import showdowns
from deepcfr.types import NO_CARD, Cards, Doubles, Ints

MOST_HANDS = 5_000  # limit on a game's private hands, of which all pairs are compared
DEFAULT_HANDS = 1_000  # default number of deals


def ladder_best_response(
    policy: Policy,
    hands: int,
    seed: int = 0,
    *,
    threads: int = 1,
    rounds: Sequence[int] | None = None,
    on_hands: Callable[[int, int], None] | None = None,
) -> LocalBestResponse:
    """The gain of a local best response against `policy` in `hands` deals, each played in both seats.

    The responder follows its rule in `rounds` (default all) and calls in the others. The result does not depend on
    `threads`. `on_hands(done, total)` reports progress. Raises ConfigError for fewer than two hands and for rounds that
    the game does not have, and GameError for games with too many hands.
    """
    start = time.perf_counter()
    if hands < 2:
        raise ConfigError(f"A local best response needs at least 2 hands for its interval, but {hands} were asked for.")
    game = policy.game
    assert isinstance(game, LadderGame)
    count = comb(game.rules.num_cards, game.rules.hole_cards)
    if count > MOST_HANDS:
        raise GameError(f"{game.name} has {count:,} private hands, but a range is tracked over at most {MOST_HANDS:,}.")
    responder = LadderResponder(policy, checked_rounds(game.name, game.rules.num_rounds, rounds), seed)
    won = in_both_seats(responder.gains, hands, threads, on_hands)
    zero, one, mean = (NORMAL_95 * float(part.std(ddof=1)) / np.sqrt(hands) for part in (*won, won.mean(0)))
    first, second = won.mean(1).tolist()
    return bound(policy, responder.rounds, (first, second), (zero, one, mean), start, hands=hands)


class Odds:
    """Mean results of a hand against every other hand if nobody bets any more; thread-safe."""

    def __init__(self, game: LadderGame) -> None:
        self.deck = game.rules
        self.holes = all_hands(self.deck.num_cards, self.deck.hole_cards)
        self._scratch = Scratch()

    def against_all(self, hands: Sequence[int], board: tuple[int, ...]) -> Doubles:
        """The mean results (win 1, loss -1) of hands number `hands` against every hand, [n, H]; 0 if they share a card."""
        if not board:
            return results_before_cards(self.deck)[list(hands)].astype(np.float64)
        total = np.empty((len(hands), len(self.holes)), np.float32)
        compare_hands(self.deck, board, self.holes, np.array(hands), self._scratch, total)
        rows: Doubles = total.astype(np.float64) / comparisons(self.deck, len(board))
        return rows


class LadderResponder:
    """Plays single deals against a policy, by the rule in `rounds`; thread-safe."""

    def __init__(self, policy: Policy, rounds: tuple[int, ...], seed: int) -> None:
        game = policy.game
        assert isinstance(game, LadderGame)
        self.policy, self.game, self.rounds = policy, game, rounds
        self.odds = Odds(game)
        self._deals, self._actions = (key(seed, "local best response", purpose) for purpose in ("deal", "action"))
        seen = np.cumsum(game.rules.board_cards).tolist()
        self.takes_luck_out = all(plays_out_all(game.rules, cards) for cards in seen)
        # every round has at most an opening check, all rungs and a last call
        self._most_actions = game.rules.num_rounds * (game.num_actions + 2)

    def gains(self, number: int) -> tuple[float, float]:
        """The responder's gains in a deal as player 0 and as player 1, in the game's unit."""
        rules = self.game.rules
        cards = self.game.deal_cards(1, self._deals, number)
        result = int(showdowns(cards, rules.hole_cards, rules.num_suits)[0])
        chance = addressed_uniforms(self._actions, torch.tensor([number]), torch.arange(self._most_actions)).numpy()
        odds: dict[int, Doubles] = {}
        first, second = (ResponderHand(self, cards[0], seat, odds).play(chance, result) for seat in (0, 1))
        return first / self.game.rules.unit_chips, second / self.game.rules.unit_chips


class ResponderHand:
    """One deal with the responder in one seat: the betting so far, and the opponent's range.

    `odds` are those of the hands of both seats against every hand by round, [2, H], filled when they are needed.
    """

    def __init__(self, responder: LadderResponder, cards: Cards, seat: int, odds: dict[int, Doubles]) -> None:
        self.responder, self.game, self.policy = responder, responder.game, responder.policy
        self.cards, self.seat = cards, seat
        self._views: dict[int, Cards] = {}  # what the opponent sees with each hand that it may hold, by round
        hole, holes = self.game.rules.hole_cards, responder.odds.holes
        hands = (np.sort(cards[hole * player : hole * (player + 1)]) for player in (0, 1))
        self.hands = [int((holes == hand).all(1).argmax()) for hand in hands]  # numbers of player 0's and player 1's
        self._odds = odds
        own = cards[hole * seat : hole * (seat + 1)]
        self.range: Doubles = (~(holes[:, :, None] == own).any((1, 2))).astype(np.float64)

    def play(self, chance: npt.NDArray[np.float32], result: int) -> float:
        """The responder's gain in chips without luck; that of the cards as dealt if odds are from a sample of boards.

        `chance` holds the opponent's uniforms, `result` is player 0's showdown result.
        """
        position = first_positions(self.game.ladder, 1)[0]
        gained, step, counts = 0.0, 0, self.responder.takes_luck_out
        while position[ENDED] == NOT_TERMINAL:
            round_ = int(position[ROUND])
            before = self.value(position, round_, self.live(round_)) if counts else 0.0
            if position[ACTOR] == self.seat:
                advance(self.game.ladder, position, self.respond(position))
                after = self.value(position, round_, self.range) if counts else 0.0
            else:
                strategies = self.strategies(position)
                row = strategies[self.hands[1 - self.seat]].cumsum()
                action = int((row <= chance[step] * row[-1]).sum())
                after = self.mean_value(position, strategies) if counts else 0.0
                self.range *= strategies[:, action]
                advance(self.game.ladder, position, action)
            gained += after - before
            step += 1
        return gained if counts else gain(position, self.seat, result)

    def value(self, position: Ints, round_: int, weights: Doubles) -> float:
        """The responder's mean gain in chips on the board of a round if nobody bets any more.

        `weights` [H] are those of the opponent's hands.
        """
        if position[ENDED] == FOLDED:
            return float(gain(position, self.seat, 0))
        chips = int(position[CHIPS : CHIPS + 2].max())
        return chips * float(weights @ self.odds(round_)) / float(weights.sum())

    def mean_value(self, position: Ints, strategies: Doubles) -> float:
        """The mean of `value` after an action of the opponent, whose hands play `strategies` [H, A]."""
        total = 0.0
        for action in np.flatnonzero(self.range @ strategies).tolist():
            after, weights = position.copy(), self.range * strategies[:, action]
            advance(self.game.ladder, after, action)
            total += float(weights.sum()) * self.value(after, int(position[ROUND]), weights)
        return total / float(self.range.sum())

    def respond(self, position: Ints) -> int:
        """The responder's action; ties go to the check or call, then to the smallest raise."""
        if position[ROUND] not in self.responder.rounds:
            return CALL
        values = self.values(position)
        order = [CALL, *range(RUNG, len(values)), FOLD]
        choice: int = order[int(values[order].argmax())]
        return choice

    def values(self, position: Ints) -> Doubles:
        """The responder's gain after each action [A] if both then check and call, in chips; -inf where illegal.

        The gains are multiplied by the opponent's reach probability.
        """
        ladder, weights, odds = self.game.ladder, self.live(int(position[ROUND])), self.odds(int(position[ROUND]))
        mine, other = (int(position[CHIPS + player]) for player in (self.seat, 1 - self.seat))
        values = np.full(self.game.num_actions, -np.inf)
        if is_legal(ladder, position, FOLD):
            values[FOLD] = -mine * float(weights.sum())
        values[CALL] = max(mine, other) * float(weights @ odds)
        for action in range(RUNG, self.game.num_actions):
            if not is_legal(ladder, position, action):
                continue
            total = raise_total(ladder, position, action - RUNG)
            after = position.copy()
            advance(ladder, after, action)
            folded = weights * self.strategies(after)[:, FOLD]
            values[action] = other * float(folded.sum()) + total * float((weights - folded) @ odds)
        return values

    def live(self, round_: int) -> Doubles:
        """The opponent's range [H], with 0 for hands that share a card with the board of a round."""
        board = np.array(self._board(round_), np.uint8)
        dead = (self.responder.odds.holes[:, :, None] == board).any((1, 2))
        self.range[dead] = 0.0
        return self.range

    def strategies(self, position: Ints) -> Doubles:
        """The opponent's strategy [H, A] with every hand that it may hold; rows of other hands are 0."""
        round_, rows = int(position[ROUND]), np.zeros((len(self.range), self.game.num_actions))
        alive = np.flatnonzero(self.live(round_))
        if round_ not in self._views:
            self._views[round_] = np.full((len(rows), sum(self.game.card_groups)), NO_CARD, np.uint8)
            seen = self.game.views_of(self.responder.odds.holes[alive], self._board(round_))
            self._views[round_][alive] = seen
        node = np.array([node_at(position)])
        rows[alive] = self.policy.on_hands(node, self._views[round_][alive])[0]
        return rows

    def odds(self, round_: int) -> Doubles:
        """The responder's odds against every hand on the board of a round, [H]."""
        if round_ not in self._odds:
            self._odds[round_] = self.responder.odds.against_all(self.hands, self._board(round_))
        row: Doubles = self._odds[round_][self.seat]
        return row

    def _board(self, round_: int) -> tuple[int, ...]:
        rules = self.game.rules
        begin = 2 * rules.hole_cards
        return tuple(self.cards[begin : begin + sum(rules.board_cards[: round_ + 1])].tolist())
