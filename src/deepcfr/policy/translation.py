"""Agents of games with a few raise sizes in no-limit poker, where every size is legal: bets are translated both ways.

The agent's own betting follows the real one action by action. A raise is measured as a share of the pot after a call. One
between two sizes of the agent's game becomes either of them, by the pseudo-harmonic mapping (Ganzfried and Sandholm 2013,
"Action translation in extensive-form games with large action spaces", section 4); one outside becomes the nearest. It never
becomes a check, so that both bettings stay in one round. All-in becomes all-in, and so may a raise of at least half the
stack. Where the agent's game has no room for a raise, it counts as the one before that the same player had to answer, or
else as the largest first bet of the round. If the agent's betting ends early all the same, the agent checks and calls.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from deepcfr.core.errors import GameError
from deepcfr.core.rng import addressed_uniforms, key
from deepcfr.core.types import Cards, Doubles
from deepcfr.game.betting import (
    CALL,
    FOLD,
    NOT_TERMINAL,
    RAISE,
    BettingState,
    first_state,
    legal_actions,
    next_state,
    raise_range,
)
from deepcfr.game.poker import Poker
from deepcfr.game.public_state import NoLimitState, PublicState
from deepcfr.game.rules import PokerRules, no_limit
from deepcfr.policy.base import Policy
from deepcfr.policy.mixture import MixturePolicy
from deepcfr.policy.query import hand_strategy
from deepcfr.sample.external import sample_actions

_EXACT = 1e-3  # shares of the pot that differ by less are one size


def harmonic(share: float, low: float, high: float) -> float:
    """The probability that a bet of `share` between `low` and `high` (all shares of the pot) becomes `low`.

    Source: Ganzfried and Sandholm 2013, section 4, the randomized pseudo-harmonic mapping.
    """
    return (high - share) * (1 + low) / ((high - low) * (1 + share))


@dataclass(frozen=True)
class Shadow:
    """The agent's betting beside the real one."""

    own: PublicState
    begins: tuple[PublicState, ...]  # where each round began, as long as it was not lost
    faced: tuple[PublicState, ...] = ()  # positions of the round at which a bet was answered with a raise
    lost: bool = False  # whether the agent's betting is at another place than the real one
    translated: bool = False  # whether a raise of the hand had a size that the agent does not know
    last: tuple[PublicState, int] | None = None  # where the agent's betting was, and its action for the last real one


class Translation:
    """A policy's game beside a no-limit game. Raises GameError for policies of limit games.

    The mapping of bets depends only on the seed, the hand's number and the place of the bet.
    """

    def __init__(self, policy: Policy, rules: PokerRules, seed: int) -> None:
        game = policy.game
        if not isinstance(game, Poker):
            raise GameError(f"'{game.name}' is not poker.")
        self.game, self.rules = game, rules
        self._stack, self._chance = game.rules.stack, key(seed, "translate")
        self._real_from = policy.real_sizes.first if policy.real_sizes else None

    def start(self) -> Shadow:
        """The agent's betting before the first action."""
        first = self.game.state()
        return Shadow(first, (first,))

    def follow(self, actions: Sequence[int], player: int, hand: int) -> Shadow:
        """The agent's betting after real `actions`, of which `player` made some."""
        shadow, real = self.start(), first_state(self.rules)
        for place, action in enumerate(actions):
            ways = self.ways(shadow, real, action, mine=real.actor == player)
            chance = addressed_uniforms(self._chance, torch.tensor([hand]), torch.tensor([place]))
            shadow = ways[0][1] if float(chance[0]) < ways[0][0] else ways[-1][1]
            real = next_state(self.rules, real, action)
        return shadow

    def ways(self, shadow: Shadow, real: BettingState, action: int, *, mine: bool) -> list[tuple[float, Shadow]]:
        """The bettings that the agent's may become by a real action at `real`, one or two, with their probabilities.

        `mine` are actions that the agent chose itself.
        """
        if self.searched_from(shadow, real):
            return [(1.0, shadow)]
        after = next_state(self.rules, real, action)
        return [(chance, _in_round(found, after)) for chance, found in self._after(shadow, real, action, mine)]

    def searched_from(self, shadow: Shadow, real: BettingState) -> PublicState | None:
        """The agent's betting when its search in the real one began, None if it does not search at `real`.

        The agent's betting ends there.
        """
        first = self._real_from
        return None if first is None or real.round < first or len(shadow.begins) <= first else shadow.begins[first]

    def _after(self, shadow: Shadow, real: BettingState, action: int, mine: bool) -> list[tuple[float, Shadow]]:
        own, shadow = shadow.own, replace(shadow, last=None)
        if shadow.lost or action == FOLD:
            return [(1.0, shadow)]
        if action < RAISE:
            return [(1.0, replace(shadow, own=own.after(check_or_call(own)), last=(own, check_or_call(own))))]
        share = _share(real, action)
        sizes = {choice: _own_share(own, choice) for choice in own.legal() if choice >= RAISE}
        if mine and (same := [choice for choice in sizes if self._real(own, real, choice) == action]):
            return [(1.0, self._raised(shadow, same[0], known=True))]
        ending = [choice for choice in sizes if self._puts_in_all(own, choice)]
        if action == self.rules.stack and ending:
            return [(1.0, self._raised(shadow, ending[-1], known=True))]
        if 2 * action < self.rules.stack:
            sizes = {choice: size for choice, size in sizes.items() if choice not in ending}
        if not sizes:
            return [(1.0, self._without_room(shadow, real.actor))]
        return [
            (chance, self._raised(shadow, chosen, known=abs(sizes[chosen] - share) < _EXACT))
            for chosen, chance in _mapped(sizes, share).items()
        ]

    def _raised(self, shadow: Shadow, choice: int, *, known: bool) -> Shadow:
        """The shadow after a raise of the agent's game."""
        own = shadow.own
        faced = (*shadow.faced, own) if own.to_call > 0 else shadow.faced
        translated = shadow.translated or not known
        return replace(shadow, own=own.after(choice), faced=faced, translated=translated, last=(own, choice))

    def _without_room(self, shadow: Shadow, raiser: int) -> Shadow:
        """The shadow after a raise that the agent's game does not have: where the other player must answer one."""
        before = [place for place, position in enumerate(shadow.faced) if position.actor != raiser]
        if before:
            place = before[-1]
            return replace(shadow, own=shadow.faced[place], faced=shadow.faced[:place], translated=True)
        begin = shadow.begins[-1]
        opening = begin if begin.actor == raiser else begin.after(check_or_call(begin))
        bets = [choice for choice in opening.legal() if choice >= RAISE]
        if opening.over or opening.actor != raiser or not bets:
            return replace(shadow, lost=True, translated=True)
        less = [choice for choice in bets if not self._puts_in_all(opening, choice)]
        return replace(shadow, own=opening.after((less or bets)[-1]), faced=(), translated=True)

    def _puts_in_all(self, own: PublicState, choice: int) -> bool:
        return own.after(choice).chips[own.actor] >= self._stack

    def strategy(
        self, policy: Policy, shadow: Shadow, real: BettingState, holes: Cards, board: Sequence[int]
    ) -> dict[int, Doubles]:
        """The probability of real actions by a policy of the game with each of `holes`, uint8 [H, hole cards], each [H]."""
        if policy.real_sizes and (begin := self.searched_from(shadow, real)):
            return policy.real_sizes.strategy(self.rules, begin, real, holes, board)
        lost = shadow.lost  # then the agent is not asked
        rows = np.ones((len(holes), 1)) if lost else hand_strategy(policy, shadow.own, holes, board)
        return self.real_strategy(shadow, real, rows)

    def real_strategy(self, shadow: Shadow, real: BettingState, rows: Doubles) -> dict[int, Doubles]:
        """The probability of each real action, [H], by the agent's strategy [H, A] in its own betting."""
        if shadow.lost:
            return {CALL: np.ones(len(rows))}
        found: dict[int, Doubles] = {}
        for action, real_action in self.choices(shadow, real).items():
            found[real_action] = found.get(real_action, 0.0) + rows[:, action]
        return dict(sorted(found.items()))

    def choices(self, shadow: Shadow, real: BettingState) -> dict[int, int]:
        """The real action for each legal one of the agent's game."""
        return {action: self._real(shadow.own, real, action) for action in shadow.own.legal()}

    def _real(self, own: PublicState, real: BettingState, action: int) -> int:
        """The real action for one of the policy's game."""
        if action == FOLD and real.to_call > 0:
            return FOLD
        if action < RAISE or RAISE not in legal_actions(self.rules, real):
            return CALL
        called, (least, most) = max(real.chips), raise_range(self.rules, real)
        if self._stack == self.rules.stack and self._puts_in_all(own, action):
            return most
        return int(min(max(called + round(_own_share(own, action) * 2 * called), least), most))


@dataclass(frozen=True)
class TablePlayer:
    """A policy at a real table, in its own game or, with a `translation`, in no-limit poker.

    An action depends on the streams, the hand's number and the state alone: it uses the uniform that number and place
    address in `actions`, and a mixture plays one of its policies through a whole hand, drawn in `draws`. So a player that
    comes back plays on as before.
    """

    policy: Policy
    draws: int
    actions: int
    translation: Translation | None = None

    def start(self) -> PublicState:
        """The state of the real game before the first action."""
        if self.translation:
            return NoLimitState.start(self.translation.rules)
        assert isinstance(self.policy.game, Poker)
        return self.policy.game.state()

    def strategies(
        self, policy: Policy, state: PublicState, number: int, holes: Cards, board: Sequence[int]
    ) -> dict[int, Doubles]:
        """The probability of each real action by a policy of the game with each of `holes` [H, hole cards], each [H]."""
        if self.translation is None:
            rows = hand_strategy(policy, state, holes, board)
            return {action: rows[:, action] for action in state.legal()}
        assert isinstance(state, NoLimitState)
        shadow = self.translation.follow(state.actions, state.actor, number)
        return self.translation.strategy(policy, shadow, state.now, holes, board)

    def choose(self, state: PublicState, number: int, hole: Sequence[int], board: Sequence[int]) -> int:
        """The real action of the player to act in hand `number` with the cards `hole`."""
        policy = self.policy
        if isinstance(policy, MixturePolicy):
            policy = policy.draw(self.draws, number)
        strategy = self.strategies(policy, state, number, np.array([hole], np.uint8), board)
        row = torch.tensor([[float(shares[0]) for shares in strategy.values()]], dtype=torch.float64)
        chance = addressed_uniforms(self.actions, torch.tensor([number]), torch.tensor([state.place]))
        return list(strategy)[int(sample_actions(row, chance)[0])]


def real_rules(policy: Policy) -> PokerRules:
    """The no-limit game that a policy can play. Raises GameError for policies of limit games."""
    game = policy.game
    if isinstance(game, Poker) and game.rules.betting != "limit":
        return no_limit(game.rules, game.rules.stack)
    raise GameError(f"'{game.name}' has no raises that could stand for those of no-limit poker.")


def check_or_call(own: PublicState) -> int:
    """The action that stands for a call or check: the smallest raise where the game has no call."""
    legal = own.legal()
    return CALL if CALL in legal else min(action for action in legal if action != FOLD)


def _in_round(shadow: Shadow, real: BettingState) -> Shadow:
    """The shadow after an action, in the round of the real betting if it can get there by calls."""
    own = shadow.own
    while not shadow.lost and not own.over and own.round < real.round:
        own = own.after(check_or_call(own))
    astray = own.over or (own.round, own.actor) != (real.round, real.actor)
    lost = shadow.lost or (real.ended == NOT_TERMINAL and astray)
    if not real.actions[-1]:
        begins = shadow.begins if lost else (*shadow.begins, own)
        return Shadow(own, begins, lost=lost, translated=shadow.translated, last=shadow.last)
    return replace(shadow, own=own, lost=lost)


def _share(real: BettingState, total: int) -> float:
    """A raise to `total` chips as a share of the pot after a call."""
    called = max(real.chips)
    return (total - called) / (2 * called)


def _own_share(own: PublicState, action: int) -> float:
    called = max(own.chips)
    return (own.after(action).chips[own.actor] - called) / (2 * called)


def _mapped(sizes: dict[int, float], share: float) -> dict[int, float]:
    """The agent's raises that a real one may become, one or two, the smaller first, with their probabilities."""
    ordered = sorted(sizes, key=lambda action: sizes[action])
    above = next((place for place, action in enumerate(ordered) if sizes[action] >= share), len(ordered))
    if above in (0, len(ordered)):
        return {ordered[min(above, len(ordered) - 1)]: 1.0}
    low, high = ordered[above - 1], ordered[above]
    chance = harmonic(share, sizes[low], sizes[high])
    return {low: chance, high: 1 - chance}
