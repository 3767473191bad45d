"""A finished hand and the gains of its players."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from deepcfr.errors import GameError
from deepcfr.games.betting import FOLDED, NOT_TERMINAL, SHOWDOWN, BettingState
from deepcfr.games.hands import strength
from deepcfr.games.rules import PokerRules
from deepcfr.protocols.acpc import MatchState, ProtocolError, betting_text, cards_text, quote
from deepcfr.protocols.acpc_game import (
    betting_of,
    board_by_round,
    card_names,
    card_number,
    play_actions,
    position_of,
    read_betting,
    seen_cards,
)

Names = tuple[str, str]


@dataclass(frozen=True)
class PlayedHand:
    """A finished hand with everything that its dealer knows; pairs are of player 0 and player 1."""

    number: int
    names: Names  # who they are
    holes: tuple[tuple[int, ...], tuple[int, ...]]
    board: tuple[int, ...]  # as far as it was dealt
    actions: tuple[int, ...]


def gains(rules: PokerRules, hand: PlayedHand) -> tuple[int, int]:
    """The chips that player 0 and player 1 gain; their sum is 0.

    Raises GameError if the hand is not over.
    """
    return gains_at(rules, play_actions(rules, hand.actions), hand.holes, hand.board)


def gains_at(
    rules: PokerRules, state: BettingState, holes: tuple[tuple[int, ...], tuple[int, ...]], board: tuple[int, ...]
) -> tuple[int, int]:
    """Both players' gains at the end `state` of a hand; a folded pot needs no cards.

    Raises GameError before the end, and for a showdown with a hand that is unknown, ().
    """
    if state.ended == NOT_TERMINAL:
        raise GameError(f"A hand of {rules.name} has no result before it is over.")
    if state.ended == FOLDED:
        won = state.chips[1 - state.actor]
        return (won, -won) if state.actor == 0 else (-won, won)
    if not all(holes):
        raise GameError(f"A showdown of {rules.name} has no result without both hands.")
    first, second = (strength(np.array([*hole, *board], np.uint8), rules.num_suits) for hole in holes)
    won = state.chips[0] * ((first > second) - (first < second))
    return won, -won


def gain_of(rules: PokerRules, state: MatchState) -> int | None:
    """The chips that the position of a match state gained; None before the hand ends.

    Raises ProtocolError if `state` is not one of the game, or is a showdown without the other player's cards.
    """
    betting, _ = read_betting(rules, state.betting)
    hole, board = seen_cards(rules, state)
    if betting.ended == NOT_TERMINAL:
        return None
    if betting.ended == SHOWDOWN and not state.holes[1 - state.position]:
        raise ProtocolError(f"{quote(state.text)} is a showdown, but does not show the other player's cards.")
    player = position_of(rules, state.position)
    other = tuple(card_number(rules, card) for card in state.holes[1 - state.position])
    return gains_at(rules, betting, (hole, other) if player == 0 else (other, hole), board)[player]


def log_line(rules: PokerRules, hand: PlayedHand) -> str:
    """The hand as a line of the dealer's log, `STATE:hand:betting:cards:chips:names`, by position."""
    betting, state = betting_of(rules, hand.actions), play_actions(rules, hand.actions)
    order = [position_of(rules, position) for position in (0, 1)]
    holes = tuple(card_names(rules, hand.holes[player]) for player in order)
    cards = cards_text(holes, board_by_round(rules, hand.board, state.round))
    won = gains(rules, hand)
    chips = "|".join(str(won[player]) for player in order)
    names = "|".join(hand.names[player] for player in order)
    return f"STATE:{hand.number}:{betting_text(betting)}:{cards}:{chips}:{names}"
