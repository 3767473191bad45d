"""Translate match states into a game's terms and back: seats, cards, and actions with their chips.

Positions are those of the competition's game definitions. With unequal blinds position 0 posts the larger one and acts last
before the flop (its "reverse blinds"), so it is player 1 of `PokerRules`; with antes position 0 is player 0. Decks of fewer
cards keep the highest ranks and the last suits: Leduc hold'em is played with queens, kings and aces of hearts and spades.
Source: `dealCards` and the game definitions of project_acpc_server.

A finished hand with the gains of its players is a `PlayedHand`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from deepcfr.errors import GameError
from deepcfr.games.betting import (
    ACTION_LETTERS,
    FOLDED,
    NOT_TERMINAL,
    RAISE,
    SHOWDOWN,
    BettingState,
    first_state,
    legal_actions,
    next_state,
    raise_range,
    raise_to,
)
from deepcfr.games.hands import strength
from deepcfr.games.rules import RANK_SYMBOLS, SUIT_SYMBOLS, PokerRules
from deepcfr.protocols.acpc import Betting, MatchState, Move, ProtocolError, betting_text, cards_text, quote


def require_protocol(rules: PokerRules) -> None:
    """Raise GameError for rules that a match state cannot express."""
    if rules.board_cards[0]:
        raise GameError(
            f"{rules.name} deals board cards before its first round, and a match state has no place for them."
        )


def position_of(rules: PokerRules, player: int) -> int:
    """The position of a player; also the player in a position."""
    return player if rules.blinds[0] == rules.blinds[1] else 1 - player


def card_name(rules: PokerRules, card: int) -> str:
    """The protocol's name of a card."""
    rank, suit = divmod(int(card), rules.num_suits)
    return RANK_SYMBOLS[rank - rules.num_ranks] + SUIT_SYMBOLS[suit - rules.num_suits]


def card_number(rules: PokerRules, name: str) -> int:
    """The card with the protocol's name `name`. Raises ProtocolError if the game's deck does not have it."""
    rank = RANK_SYMBOLS.index(name[0]) - len(RANK_SYMBOLS) + rules.num_ranks
    suit = SUIT_SYMBOLS.index(name[1]) - len(SUIT_SYMBOLS) + rules.num_suits
    if rank < 0 or suit < 0:
        raise ProtocolError(f"The card {name} is not in the deck of {rules.name}: the dealer plays another game.")
    return rank * rules.num_suits + suit


def card_names(rules: PokerRules, cards: Iterable[int]) -> tuple[str, ...]:
    """The protocol's names of cards."""
    return tuple(card_name(rules, card) for card in cards)


# Betting ----------------------------------------------------------------------------------------------------------------


def move_of(rules: PokerRules, state: BettingState, action: int) -> Move:
    """The protocol's form of `action` at `state`; a raise has a size unless all raises have the same."""
    if rules.betting == "limit" or action < RAISE:
        return Move(ACTION_LETTERS[action])
    return Move(ACTION_LETTERS[RAISE], action if rules.betting == "no-limit" else raise_to(rules, state))


def action_of(rules: PokerRules, state: BettingState, move: Move) -> int:
    """The action that `move` is at `state`. Raises ProtocolError if the rules do not allow it there."""
    legal = legal_actions(rules, state)
    least, most = raise_range(rules, state) if RAISE in legal else (0, -1)
    if rules.betting == "no-limit" and move.size is not None and least <= move.size <= most:
        return move.size
    simple = [action for action in legal if rules.betting != "no-limit" or action < RAISE]
    allowed = {move_of(rules, state, action): action for action in simple}
    if move not in allowed:
        sizes = [f"r{least} to r{most}"] if len(simple) < len(legal) else []
        choice = " or ".join([*(other.text for other in allowed), *sizes])
        where = f"with {state.chips[0]} and {state.chips[1]} chips in the pot"
        raise ProtocolError(f"The action {move.text} is not one of {rules.name} {where}, where {choice} is allowed.")
    return allowed[move]


def read_betting(rules: PokerRules, betting: Betting) -> tuple[BettingState, tuple[int, ...]]:
    """The state that `betting` leads to from the first decision, and its actions.

    Raises ProtocolError if it is not betting of this game.
    """
    state, actions = first_state(rules), []
    for move in (move for moves in betting for move in moves):
        if state.ended != NOT_TERMINAL:
            raise ProtocolError(f"The betting {quote(betting_text(betting))} goes on after the hand is over.")
        action = action_of(rules, state, move)
        state = next_state(rules, state, action)
        actions.append(action)
    if betting != (played := betting_of(rules, actions)):
        texts = f"{quote(betting_text(betting))} has its rounds at other places than {quote(betting_text(played))}"
        raise ProtocolError(f"The betting {texts}, which is how {rules.name} is played.")
    return state, tuple(actions)


def betting_of(rules: PokerRules, actions: Sequence[int]) -> Betting:
    """The protocol's form of legal actions; after an all-in call it lists the remaining rounds, each empty."""
    state = first_state(rules)
    rounds: list[list[Move]] = [[]]
    for action in actions:
        rounds[state.round].append(move_of(rules, state, action))
        state = next_state(rules, state, action)
        rounds += [[] for _ in range(len(rounds), state.round + 1)]
    return tuple(tuple(moves) for moves in rounds)


def play_actions(rules: PokerRules, actions: Sequence[int]) -> BettingState:
    """The state that legal actions lead to from the first decision."""
    state = first_state(rules)
    for action in actions:
        state = next_state(rules, state, action)
    return state


# Cards in sight ---------------------------------------------------------------------------------------------------------


def board_by_round(rules: PokerRules, board: Sequence[int], round_: int) -> tuple[tuple[str, ...], ...]:
    """The names of the new board cards of the rounds 1 .. `round_`."""
    result, start = [], rules.board_cards[0]
    for size in rules.board_cards[1 : round_ + 1]:
        result.append(card_names(rules, board[start : start + size]))
        start += size
    return tuple(result)


def seen_cards(rules: PokerRules, state: MatchState) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The hole cards of the state's own position, and the board in order.

    Raises ProtocolError for cards that the game does not have, and for more or fewer of them than it deals.
    """
    hole = state.holes[state.position]
    if len(hole) != rules.hole_cards or len(state.holes[1 - state.position]) not in (0, rules.hole_cards):
        raise ProtocolError(
            f"The cards of {quote(state.text)} are not {rules.hole_cards} to a hand, as {rules.name} has them."
        )
    if len(state.board) >= rules.num_rounds:
        raise ProtocolError(
            f"{quote(state.text)} has {len(state.board) + 1} rounds, but {rules.name} has {rules.num_rounds}."
        )
    for round_, cards in enumerate(state.board, start=1):
        if len(cards) != rules.board_cards[round_]:
            dealt = f"deals {len(cards)} board cards in round {round_ + 1}"
            raise ProtocolError(f"{quote(state.text)} {dealt}, but {rules.name} deals {rules.board_cards[round_]}.")
    numbers = tuple(card_number(rules, card) for cards in state.board for card in cards)
    return tuple(card_number(rules, card) for card in hole), numbers


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
