"""Local best responses by sampled hands (Lisy and Bowling 2017), for poker whose betting may be too large to list.

The rule is that of `deepcfr.measure.local_best_response`. The responder knows the policy, and so the probability of
each private hand of the opponent after the opponent's actions. At every decision it takes the action that is best if
the opponent may fold to its raise now and both players check and call from then on. As in the paper, hands are played
one by one: cards and the opponent's actions are sampled, and the range covers all hands.

A gain is counted without the luck of the cards and of the opponent's actions, as in AIVAT (Burch, Schmid, Moravcik,
Morrill and Bowling 2018). The value of a state is the responder's mean gain over the range if nobody bets any more. Of
a responder's action the change of this value counts, of an opponent's action its mean change over the actions that the
range may take, and of cards nothing, because their mean change is 0; so is the mean of the value at the beginning. So
the mean over deals is that of the payoffs. Where results of hands come from a sample of boards, the payoffs themselves
count.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import comb

import numpy as np
import torch

from deepcfr.boards.sweep import Scratch
from deepcfr.core.errors import GameError
from deepcfr.core.rng import addressed_uniforms, key
from deepcfr.core.types import NO_CARD, Cards, Doubles
from deepcfr.game.betting import CALL, FOLD, FOLDED
from deepcfr.game.cards import all_hands
from deepcfr.game.poker import Poker
from deepcfr.game.public_state import PublicState
from deepcfr.measure.check_down import compare_hands, comparisons, plays_out_all, results_before_cards
from deepcfr.policy.base import Policy
from deepcfr.sample.traversal_tree import showdowns

MOST_HANDS = 5_000  # limit on a game's private hands, of which all pairs are compared


class Responder:
    """Plays single deals against a policy, by the rule in `rounds`; thread-safe.

    Raises GameError for games with too many hands.
    """

    def __init__(self, policy: Policy, rounds: tuple[int, ...], seed: int) -> None:
        game = policy.game
        assert isinstance(game, Poker)
        self.policy, self.game, self.rules, self.rounds = policy, game, game.rules, rounds
        count = comb(self.rules.num_cards, self.rules.hole_cards)
        if count > MOST_HANDS:
            raise GameError(
                f"{game.name} has {count:,} private hands, but a range is tracked over at most {MOST_HANDS:,}."
            )
        self.holes = all_hands(self.rules.num_cards, self.rules.hole_cards)
        self._deals, self._actions = (key(seed, "local best response", purpose) for purpose in ("deal", "action"))
        seen = np.cumsum(self.rules.board_cards).tolist()
        self.takes_luck_out = all(plays_out_all(self.rules, cards) for cards in seen)
        self._scratch = Scratch()

    def gains(self, number: int) -> tuple[float, float]:
        """The responder's gains in a deal as player 0 and as player 1, in the game's unit."""
        cards = self.game.deal_cards(1, self._deals, number)[0]
        result = int(showdowns(cards[None], self.rules.hole_cards, self.rules.num_suits)[0])
        odds: dict[int, Doubles] = {}

        def chance(step: int) -> float:
            return float(addressed_uniforms(self._actions, torch.tensor([number]), torch.tensor([step]))[0])

        first, second = (ResponderHand(self, cards, seat, odds).play(chance, result) for seat in (0, 1))
        return first / self.rules.unit_chips, second / self.rules.unit_chips

    def odds(self, hands: Sequence[int], board: tuple[int, ...]) -> Doubles:
        """The mean results (win 1, loss -1) of hands number `hands` against every hand if nobody bets any more, [n, H].

        They are 0 for hands that share a card.
        """
        if not board:
            return results_before_cards(self.rules)[list(hands)].astype(np.float64)
        total = np.empty((len(hands), len(self.holes)), np.float32)
        compare_hands(self.rules, board, self.holes, np.array(hands), self._scratch, total)
        rows: Doubles = total.astype(np.float64) / comparisons(self.rules, len(board))
        return rows


class ResponderHand:
    """One deal with the responder in one seat, and the opponent's range [H] so far. Amounts are in chips.

    `odds` are those of the hands of both seats against every hand by round, [2, H], filled when they are needed.
    """

    def __init__(self, responder: Responder, cards: Cards, seat: int, odds: dict[int, Doubles]) -> None:
        self.responder, self.game, self.cards, self.seat = responder, responder.game, cards, seat
        self._visible: dict[int, Cards] = {}  # what the opponent sees with each hand that it may hold, by round
        hole, holes = responder.rules.hole_cards, responder.holes
        hands = (np.sort(cards[hole * player : hole * (player + 1)]) for player in (0, 1))
        self.hands = [int((holes == hand).all(1).argmax()) for hand in hands]  # numbers of player 0's and player 1's
        self._odds = odds
        own = cards[hole * seat : hole * (seat + 1)]
        self.range: Doubles = (~(holes[:, :, None] == own).any((1, 2))).astype(np.float64)

    def play(self, chance: Callable[[int], float], result: int) -> float:
        """The responder's gain without luck; that of the cards as dealt if odds are from a sample of boards.

        `chance` tells the uniform that decides the opponent's action after so many actions, `result` is player 0's
        showdown result.
        """
        state, gained, step, counts = self.game.state(), 0.0, 0, self.responder.takes_luck_out
        while not state.over:
            before = self.value(state, state.round, self.live(state.round)) if counts else 0.0
            if state.actor == self.seat:
                now = state.after(self.respond(state))
                after = self.value(now, state.round, self.range) if counts else 0.0
            else:
                strategies = self.strategies(state)
                row = strategies[self.hands[1 - self.seat]].cumsum()
                action = int((row <= chance(step) * row[-1]).sum())
                after = self.mean_value(state, strategies) if counts else 0.0
                self.range *= strategies[:, action]
                now = state.after(action)
            gained += after - before
            state, step = now, step + 1
        return gained if counts else state.gain(self.seat, result) * self.responder.rules.unit_chips

    def value(self, state: PublicState, round_: int, weights: Doubles) -> float:
        """The responder's mean gain on the board of a round if nobody bets any more.

        `weights` [H] are those of the opponent's hands.
        """
        if state.ended == FOLDED:
            return float(min(state.chips) if state.winner == self.seat else -min(state.chips))
        return max(state.chips) * float(weights @ self.odds(round_)) / float(weights.sum())

    def mean_value(self, state: PublicState, strategies: Doubles) -> float:
        """The mean of `value` after an action of the opponent, whose hands play `strategies` [H, A]."""
        total = 0.0
        for action in np.flatnonzero(self.range @ strategies).tolist():
            weights = self.range * strategies[:, action]
            total += float(weights.sum()) * self.value(state.after(action), state.round, weights)
        return total / float(self.range.sum())

    def respond(self, state: PublicState) -> int:
        """The responder's action; ties go to the check or call, then to the smallest raise."""
        legal = state.legal()
        order = sorted(legal, key=lambda action: (action == FOLD, action))
        if state.round not in self.responder.rounds:
            return order[0]
        values = self.values(state)
        choice: int = order[int(values[order].argmax())]
        return choice

    def values(self, state: PublicState) -> Doubles:
        """The responder's gain after each action [A] if both then check and call; -inf where illegal.

        The gains are multiplied by the opponent's reach probability.
        """
        weights, odds = self.live(state.round), self.odds(state.round)
        mine, other = (state.chips[player] for player in (self.seat, 1 - self.seat))
        values = np.full(self.game.encoding.num_actions, -np.inf)
        for action in state.legal():
            if action == FOLD:
                values[FOLD] = -mine * float(weights.sum())
            elif action == CALL:
                values[CALL] = max(mine, other) * float(weights @ odds)
            else:
                after = state.after(action)
                folded = weights * self.strategies(after)[:, FOLD]
                kept = float((weights - folded) @ odds)
                values[action] = other * float(folded.sum()) + after.chips[self.seat] * kept
        return values

    def live(self, round_: int) -> Doubles:
        """The opponent's range [H], with 0 for hands that share a card with the board of a round."""
        board = np.array(self._board(round_), np.uint8)
        dead = (self.responder.holes[:, :, None] == board).any((1, 2))
        self.range[dead] = 0.0
        return self.range

    def strategies(self, state: PublicState) -> Doubles:
        """The opponent's strategy [H, A] with every hand that it may hold; rows of other hands are 0."""
        round_, rows = state.round, np.zeros((len(self.range), self.game.encoding.num_actions))
        alive = np.flatnonzero(self.live(round_))
        if round_ not in self._visible:
            self._visible[round_] = np.full((len(rows), sum(self.game.card_groups)), NO_CARD, np.uint8)
            self._visible[round_][alive] = self.game.visible_cards(self.responder.holes[alive], self._board(round_))
        node = np.array([self.game.node_of(state)])
        rows[alive] = self.responder.policy.on_hands(node, self._visible[round_][alive])[0]
        return rows

    def odds(self, round_: int) -> Doubles:
        """The responder's odds against every hand on the board of a round, [H]."""
        if round_ not in self._odds:
            self._odds[round_] = self.responder.odds(self.hands, self._board(round_))
        row: Doubles = self._odds[round_][self.seat]
        return row

    def _board(self, round_: int) -> tuple[int, ...]:
        rules = self.responder.rules
        begin = 2 * rules.hole_cards
        return tuple(self.cards[begin : begin + sum(rules.board_cards[: round_ + 1])].tolist())
