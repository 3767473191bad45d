"""Which kind of hand a policy's game has."""

from __future__ import annotations

from deepcfr.errors import GameError
from deepcfr.games.poker import PokerGame
from deepcfr.play_hand.hand import Hand
from deepcfr.play_hand.ladder import LadderHand
from deepcfr.play_hand.listed import ListedHand
from deepcfr.policies.base import Policy
from deepcfr.policies.ladder import LadderPolicy


def deal_hand(policy: Policy | LadderPolicy, seed: int, number: int) -> Hand:
    """Hand number `number` of a session against `policy`. Raises GameError if the policy's game is not poker."""
    if isinstance(policy, LadderPolicy):
        return LadderHand(policy, seed, number)
    if not isinstance(policy.game, PokerGame):
        raise GameError(f"Only poker games are played, and '{policy.game.name}' is not one.")
    return ListedHand(policy.game, policy, seed, number)
