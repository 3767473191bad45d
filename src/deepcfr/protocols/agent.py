"""A policy that answers match states.

An action depends on the seed and on the state alone, not on earlier questions: at a node of hand `h` it uses the uniform
addressed by `(h, node)` in `key(seed, "acpc", "action")`. A mixture plays one of its policies through the whole hand,
drawn in `key(seed, "acpc", "draw")`. So a client that reconnects plays on as before.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from deepcfr.errors import GameError
from deepcfr.games.betting import NOT_TERMINAL
from deepcfr.games.poker import PokerGame
from deepcfr.policies.base import Policy
from deepcfr.policies.mixture import MixturePolicy
from deepcfr.policies.query import hand_strategy
from deepcfr.protocols.acpc import MatchState, Move
from deepcfr.protocols.acpc_game import (
    move_of,
    position_of,
    read_betting,
    require_protocol,
    seen_cards,
)
from deepcfr.rng import addressed_uniforms, key
from deepcfr.sampling.external import sample_actions


class ProtocolAgent:
    """The player of one seat. Raises GameError for policies of games that the protocol cannot express."""

    def __init__(self, policy: Policy, seed: int) -> None:
        if not isinstance(policy.game, PokerGame):
            raise GameError(f"The dealer protocol is for poker games, and '{policy.game.name}' is not one.")
        require_protocol(policy.game.rules)
        self.game, self.policy, self.seed = policy.game, policy, seed
        self.rules = self.game.rules

    def answer(self, state: MatchState) -> Move | None:
        """The action in `state`; None if it is not this position's turn.

        Raises ProtocolError if `state` is not one of the agent's game.
        """
        rules = self.game.rules
        betting, actions = read_betting(rules, state.betting)
        hole, board = seen_cards(rules, state)
        player = position_of(rules, state.position)
        if betting.ended != NOT_TERMINAL or betting.actor != player:
            return None
        node = 0
        for action in actions:
            node = int(self.game.tree.child[node, action])
        action = self._choose(node, hole, board, state.hand)
        return move_of(rules, betting, action)

    def warm_up(self) -> None:
        """Decide once in every round, so that no hand waits for the compiler."""
        rules, tree = self.game.rules, self.game.tree
        deal = tuple(range(rules.hole_cards + sum(rules.board_cards)))
        rounds = tree.round[: tree.num_decisions]
        for round_ in sorted(set(rounds.tolist())):
            node = int((rounds == round_).argmax())
            board = deal[rules.hole_cards :][: sum(rules.board_cards[: round_ + 1])]
            self._choose(node, deal[: rules.hole_cards], board, hand=0)

    def _choose(self, node: int, hole: Sequence[int], board: Sequence[int], hand: int) -> int:
        policy, number = self.policy, torch.tensor([hand])
        if isinstance(policy, MixturePolicy):
            policy = policy.draw(key(self.seed, "acpc", "draw"), hand)
        row = hand_strategy(policy, self.game.state(node), np.array([hole], np.uint8), board)
        chance = addressed_uniforms(key(self.seed, "acpc", "action"), number, torch.tensor([node]))
        return int(sample_actions(torch.from_numpy(row), chance)[0])
