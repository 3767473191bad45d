"""Local best responses by sampled hands (Lisy and Bowling 2017), for poker whose betting may be too large to list.

The rule is that of `deepcfr.measure.local_best_response`. The responder knows the policy, and so the probability of
each private hand of the opponent after the opponent's actions. At every decision it takes the action that is best if
the opponent may fold to its raise now and both players check and call from then on. As in the paper, hands are played
one by one: cards and the opponent's actions are sampled, and the range covers all hands.

With sizes of its own the responder plays no-limit poker, and the opponent takes its bets for those of its own game
(`deepcfr.policy.translation`). It may take a bet for either of two; the responder does not know for which, so its range
keeps both, each with its probability.

A gain is counted without the luck of the cards and of the opponent's actions, as in AIVAT (Burch, Schmid, Moravcik,
Morrill and Bowling 2018). The value of a state is the responder's mean gain over the range if nobody bets any more, and
that of a fold if it is to act and loses less so. Of
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
from deepcfr.core.types import Cards, Doubles, Ints
from deepcfr.game.betting import CALL, FOLD, FOLDED, RAISE
from deepcfr.game.cards import all_hands
from deepcfr.game.poker import Poker
from deepcfr.game.public_state import NoLimitState, PublicState
from deepcfr.measure.check_down import compare_hands, comparisons, plays_out_all, results_before_cards
from deepcfr.policy.base import Policy, RowStrategy
from deepcfr.policy.translation import Shadow, Translation, real_rules
from deepcfr.sample.traversal_tree import showdowns
from deepcfr.search.spot_sizes import Sizes

MOST_HANDS = 5_000  # limit on a game's private hands, of which all pairs are compared
Range = list[tuple[Shadow | None, Doubles]]
"""The reach of the opponent's hands [H] with each betting of its own game that the real one may be to it."""


class Responder:
    """Plays single deals against a policy, by the rule in `rounds`, with its own `sizes` or with the policy's; thread-safe.

    Raises GameError for games with too many hands, and for sizes in limit games.
    """

    def __init__(self, policy: Policy, rounds: tuple[int, ...], seed: int, sizes: Sizes | None = None) -> None:
        game = policy.game
        assert isinstance(game, Poker)
        self.policy, self.game, self.rules, self.rounds = policy, game, game.rules, rounds
        count = comb(self.rules.num_cards, self.rules.hole_cards)
        if count > MOST_HANDS:
            raise GameError(
                f"{game.name} has {count:,} private hands, but a range is tracked over at most {MOST_HANDS:,}."
            )
        self.sizes = sizes
        self.translation = Translation(policy, real_rules(policy), seed) if sizes and not sizes.none else None
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

    def start(self) -> tuple[PublicState, Shadow | None]:
        """The state before the first action, and what it is to the opponent if the responder has sizes of its own."""
        if self.translation:
            return NoLimitState.start(self.translation.rules), self.translation.start()
        return self.game.state(), None

    def choices(self, state: PublicState) -> list[int]:
        """The responder's actions at a decision of its own by its rule, in the order that breaks ties."""
        ordered = sorted(state.legal(), key=lambda action: (action == FOLD, action))
        if self.sizes is None:
            return ordered
        bets = self.sizes.totals(state.rules, state.now) if isinstance(state, NoLimitState) else []
        return [ordered[0], *bets, *(action for action in ordered[1:] if action < RAISE)]

    def odds(self, hands: Sequence[int], board: tuple[int, ...]) -> Doubles:
        """The mean results (win 1, loss -1) of hands number `hands` against every hand if nobody bets any more, [n, H].

        They are 0 for hands that share a card.
        """
        if not board:
            return results_before_cards(self.rules)[list(hands)].astype(np.float64)
        total = np.empty((len(hands), len(self.holes)), np.float32)
        compare_hands(self.rules, board, self.holes, np.array(hands), self._scratch, total)
        return total.astype(np.float64) / comparisons(self.rules, len(board))


class ResponderHand:
    """One deal with the responder in one seat, and the opponent's range [H] so far. Amounts are in chips.

    `odds` are those of the hands of both seats against every hand by round, [2, H], filled when they are needed.
    """

    def __init__(self, responder: Responder, cards: Cards, seat: int, odds: dict[int, Doubles]) -> None:
        self.responder, self.game, self.cards, self.seat = responder, responder.game, cards, seat
        self._ask: dict[int, tuple[Ints, RowStrategy]] = {}  # hands of the opponent in a round, and its strategy there
        self._searched: dict[tuple[int, tuple[int, ...]], dict[int, Doubles]] = {}  # by where search began, and actions
        self._asked: dict[int, Doubles] = {}  # the opponent's strategy [H, A] at nodes of its game
        hole, holes = responder.rules.hole_cards, responder.holes
        hands = (np.sort(cards[hole * player : hole * (player + 1)]) for player in (0, 1))
        self.hands = [int((holes == hand).all(1).argmax()) for hand in hands]  # numbers of player 0's and player 1's
        self._odds = odds
        own = cards[hole * seat : hole * (seat + 1)]
        self.first, shadow = responder.start()
        self.range: Range = [(shadow, (~(holes[:, :, None] == own).any((1, 2))).astype(np.float64))]

    def play(self, chance: Callable[[int], float], result: int) -> float:
        """The responder's gain without luck; that of the cards as dealt if odds are from a sample of boards.

        `chance` tells the uniform that decides the opponent's action after so many actions, `result` is player 0's
        showdown result.
        """
        state, gained, step, counts = self.first, 0.0, 0, self.responder.takes_luck_out
        while not state.over:
            weights = self.live(state.round)
            before = self.value(state, state.round, weights) if counts else 0.0
            if state.actor == self.seat:
                action = self.respond(state)
                now, self.range = state.after(action), self._followed(self.range, state, action, mine=False)
                after = self.value(now, state.round, weights) if counts else 0.0
            else:
                answers = self.answers(state, self.range)
                shares = np.cumsum([total(part)[self.hands[1 - self.seat]] for part in answers.values()])
                action = list(answers)[int((shares <= chance(step) * shares[-1]).sum())]
                after = self.mean_value(state, answers) if counts else 0.0
                now, self.range = state.after(action), self._followed(answers[action], state, action, mine=True)
            gained += after - before
            state, step = now, step + 1
        return gained if counts else state.gain(self.seat, result) * self.responder.rules.unit_chips

    def value(self, state: PublicState, round_: int, weights: Doubles) -> float:
        """The responder's mean gain on the board of a round if nobody bets any more, and it folds or calls by its rule.

        `weights` [H] are those of the opponent's hands.
        """
        if state.ended == FOLDED:
            return float(min(state.chips) if state.winner == self.seat else -min(state.chips))
        called = max(state.chips) * float(weights @ self.odds(round_)) / float(weights.sum())
        if state.over or state.actor != self.seat or round_ not in self.responder.rounds:
            return called
        return max(called, float(-state.chips[self.seat])) if state.to_call > 0 else called

    def mean_value(self, state: PublicState, answers: dict[int, Range]) -> float:
        """The mean of `value` after an action of the opponent, whose range takes each action as in `answers`."""
        parts = {action: total(part) for action, part in answers.items()}
        chances = {action: float(weights.sum()) for action, weights in parts.items()}
        values = sum(
            chance * self.value(state.after(action), state.round, parts[action])
            for action, chance in chances.items()
            if chance > 0
        )
        return values / sum(chances.values())

    def respond(self, state: PublicState) -> int:
        """The responder's action; ties go to the check or call, then to the smallest raise."""
        if state.round not in self.responder.rounds:
            return min(state.legal(), key=lambda action: (action == FOLD, action))
        values = self.values(state)
        return max(values, key=lambda action: values[action])  # the first of equal ones

    def values(self, state: PublicState) -> dict[int, float]:
        """The responder's gain after each of its actions if both then check and call, in the order that breaks ties.

        The gains are multiplied by the opponent's reach probability.
        """
        weights, odds = self.live(state.round), self.odds(state.round)
        mine, other = (state.chips[player] for player in (self.seat, 1 - self.seat))
        values = {}
        for action in self.responder.choices(state):
            if action == FOLD:
                values[FOLD] = -mine * float(weights.sum())
            elif action == CALL:
                values[CALL] = max(mine, other) * float(weights @ odds)
            else:
                after = state.after(action)
                answers = self.answers(after, self._followed(self.range, state, action, mine=False))
                folded = total(answers[FOLD]) if FOLD in answers else np.zeros_like(weights)
                kept = float((weights - folded) @ odds)
                values[action] = other * float(folded.sum()) + after.chips[self.seat] * kept
        return values

    def live(self, round_: int) -> Doubles:
        """The opponent's range [H], with 0 for hands that share a card with the board of a round."""
        board = np.array(self._board(round_), np.uint8)
        dead = (self.responder.holes[:, :, None] == board).any((1, 2))
        for _, weights in self.range:
            weights[dead] = 0.0
        return total(self.range)

    def answers(self, state: PublicState, before: Range) -> dict[int, Range]:
        """The parts of the opponent's range `before` at a state that take each action, ascending, not yet followed."""
        translation = self.responder.translation
        found: dict[int, Range] = {}
        for shadow, weights in before:
            if isinstance(state, NoLimitState) and translation and shadow:
                begin = translation.searched_from(shadow, state.now)
                if begin:
                    shares = self.searched(begin, state, before)
                else:
                    rows = np.ones((len(weights), 1)) if shadow.lost else self.strategies(shadow.own, before)
                    shares = translation.real_strategy(shadow, state.now, rows)
            else:
                rows = self.strategies(state, before)
                shares = {action: rows[:, action] for action in state.legal()}
            for action, share in shares.items():
                found.setdefault(action, []).append((shadow, weights * share))
        return dict(sorted(found.items()))

    def _followed(self, before: Range, state: PublicState, action: int, *, mine: bool) -> Range:
        """A range after an action at a state, with the opponent's own betting in it; `mine` is one of the opponent."""
        translation, found = self.responder.translation, Range()
        for shadow, weights in before:
            if isinstance(state, NoLimitState) and translation and shadow:
                ways = translation.ways(shadow, state.now, action, mine=mine)
                found += [(after, chance * weights) for chance, after in ways if chance > 0]
            else:
                found.append((shadow, weights))
        return found

    def strategies(self, state: PublicState, before: Range) -> Doubles:
        """The opponent's strategy [H, A] at a state of its own game with every hand of a range; rows of others are 0."""
        node, round_ = self.game.node_of(state), state.round
        if round_ not in self._ask:  # with all hands that it may hold in the round
            alive = np.flatnonzero(total(before))
            cards = self.game.visible_cards(self.responder.holes[alive], self._board(round_))
            self._ask[round_] = alive, self.responder.policy.row_strategy(1 - self.seat, round_, cards)
        if node not in self._asked:
            alive, ask = self._ask[round_]
            rows = np.zeros((len(self.responder.holes), self.game.encoding.num_actions))
            rows[alive] = ask(np.full(len(alive), node), np.arange(len(alive)))
            self._asked[node] = rows
        return self._asked[node]

    def searched(self, begin: PublicState, state: NoLimitState, before: Range) -> dict[int, Doubles]:
        """The opponent's strategy at a state of no-limit poker by search, each action's [H]; 0 for hands not in a range.

        `begin` is as in `PlaysRealSizes.strategy`.
        """
        place = self.game.node_of(begin), state.actions
        if place not in self._searched:
            search, alive = self.responder.policy.real_sizes, np.flatnonzero(total(before))
            assert search
            holes, board = self.responder.holes[alive], self._board(state.round)
            found = search.strategy(state.rules, begin, state.now, holes, board)
            every = {action: np.zeros(len(self.responder.holes)) for action in found}
            for action, shares in found.items():
                every[action][alive] = shares
            self._searched[place] = every
        return self._searched[place]

    def odds(self, round_: int) -> Doubles:
        """The responder's odds against every hand on the board of a round, [H]."""
        if round_ not in self._odds:
            self._odds[round_] = self.responder.odds(self.hands, self._board(round_))
        return self._odds[round_][self.seat]

    def _board(self, round_: int) -> tuple[int, ...]:
        rules = self.responder.rules
        begin = 2 * rules.hole_cards
        return tuple(self.cards[begin : begin + sum(rules.board_cards[: round_ + 1])].tolist())


def total(part: Range) -> Doubles:
    """The reach of the opponent's hands, [H], however it understands the betting."""
    return sum((weights for _, weights in part[1:]), part[0][1])
