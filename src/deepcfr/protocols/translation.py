"""Agents of games with a few raise sizes over the dealer protocol, where every size of no-limit poker is legal."""

from __future__ import annotations

import numpy as np
import torch

from deepcfr.games.betting import CALL, NOT_TERMINAL, BettingState, first_state, next_state
from deepcfr.games.rules import PokerRules
from deepcfr.policies.base import Policy
from deepcfr.policies.mixture import MixturePolicy
from deepcfr.policies.translation import Shadow, Translation, real_rules
from deepcfr.protocols.acpc import MatchState, Move
from deepcfr.protocols.acpc_game import move_of, position_of, read_betting, require_protocol, seen_cards
from deepcfr.rng import addressed_uniforms, key
from deepcfr.sampling.external import sample_actions


class TranslatingAgent:
    """The player of one seat in no-limit poker. Raises GameError for policies of limit games."""

    def __init__(self, policy: Policy, seed: int, rules: PokerRules | None = None) -> None:
        """`rules` is the real game, by default the no-limit game with the stack of the agent's own."""
        self.policy, self.seed = policy, seed
        self.rules = rules or real_rules(policy)
        require_protocol(self.rules)
        self.translation = Translation(policy, self.rules, seed)
        self.translated: set[int] = set()  # the hands with a raise of a size that the agent's game does not have
        self.lost: set[int] = set()  # the hands in which the agent only checked and called in the end

    def answer(self, state: MatchState) -> Move | None:
        """The action in `state`; None if it is not this position's turn.

        Raises ProtocolError if `state` is not one of the real game.
        """
        betting, actions = read_betting(self.rules, state.betting)
        hole, board = seen_cards(self.rules, state)
        player = position_of(self.rules, state.position)
        if betting.ended != NOT_TERMINAL or betting.actor != player:
            return None
        shadow = self.translation.follow(actions, player, state.hand)
        if shadow.translated:
            self.translated.add(state.hand)
        if shadow.lost:
            self.lost.add(state.hand)
        return move_of(self.rules, betting, self._choose(shadow, betting, hole, board, state.hand))

    def warm_up(self) -> None:
        """Decide once in every round, so that no hand waits for the compiler."""
        deck = range(self.rules.num_cards)
        hole, later = tuple(deck[: self.rules.hole_cards]), tuple(deck[self.rules.hole_cards :])
        real, actions = first_state(self.rules), list[int]()
        while real.ended == NOT_TERMINAL:
            shadow = self.translation.follow(actions, real.actor, 0)
            self._choose(shadow, real, hole, later[: sum(self.rules.board_cards[: real.round + 1])], 0)
            actions.append(CALL)
            real = next_state(self.rules, real, CALL)

    def facts(self) -> dict[str, int]:
        """The numbers of hands with translated bets, and of those in which the agent lost its way, for JSON."""
        return {"translated_hands": len(self.translated), "lost_hands": len(self.lost)}

    def describe(self) -> str:
        """The facts as a sentence."""
        lost = f", and it only checked and called in the end of {len(self.lost):,} hands" if self.lost else ""
        return f"A bet had another size than those of {self.policy.game.name} in {len(self.translated):,} hands{lost}."

    def _choose(
        self, shadow: Shadow, real: BettingState, hole: tuple[int, ...], board: tuple[int, ...], hand: int
    ) -> int:
        policy = self.policy
        if isinstance(policy, MixturePolicy):
            policy = policy.draw(key(self.seed, "translate", "draw"), hand)
        holes = np.array([hole], np.uint8)
        strategy = self.translation.strategy(policy, shadow, real, holes, board)
        place = torch.tensor([sum(map(len, real.actions))])
        chance = addressed_uniforms(key(self.seed, "translate", "action"), torch.tensor([hand]), place)
        row = torch.from_numpy(np.array([[float(share[0]) for share in strategy.values()]]))
        return list(strategy)[int(sample_actions(row, chance)[0])]
