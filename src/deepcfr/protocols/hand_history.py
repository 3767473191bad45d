"""Hand histories in PHH, the poker hand history format, of two-player hold'em games, written with pokerkit.

Every hand is first replayed in pokerkit, so that an independent program checks its chips. Player p1 of a history acts last
before the flop, so it is player 1 of `PokerRules`; the blinds are in the other order, the small one first. Limit games are
variant FT, others NT. PHH has no variant for hold'em with fewer rounds: such hands have the fields of FT or NT,
and `_board_cards` has the number of board cards of each round. Cards have the names of the dealer protocol.
Source: Kim, "Recording and Describing Poker Hands" (2024), and pokerkit.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pokerkit import (
    Automation,
    BettingStructure,
    Deck,
    HandHistory,
    Mode,
    Opening,
    StandardHighHand,
    State,
    Street,
    parse_action,
)

from deepcfr.errors import GameError
from deepcfr.games.betting import (
    FOLD,
    RAISE,
    SHOWDOWN,
    first_state,
    next_state,
)
from deepcfr.games.rules import PokerRules, most_chips
from deepcfr.protocols.acpc import ProtocolError
from deepcfr.protocols.acpc_game import PlayedHand, card_names, gains

TEXAS = (0, 3, 1, 1)  # board cards by round in the variants of PHH
BOARD_CARDS = "_board_cards"  # the field with the board cards by round of other hold'em games

_AUTOMATIONS = (
    Automation.ANTE_POSTING,
    Automation.BET_COLLECTION,
    Automation.BLIND_OR_STRADDLE_POSTING,
    Automation.RUNOUT_COUNT_SELECTION,
    Automation.HAND_KILLING,
    Automation.CHIPS_PUSHING,
    Automation.CHIPS_PULLING,
)
UNKNOWN = "????"  # a hand that nobody saw


def require_history(rules: PokerRules) -> None:
    """Raise GameError for rules other than two-player hold'em where the small blind acts first before the flop only."""
    later = all(player == 1 for player in rules.first_player[1:])
    cards = rules.hole_cards == 2 and rules.board_cards[0] == 0 and all(rules.board_cards[1:])
    blinds = 0 < rules.blinds[0] < rules.blinds[1]
    if not (cards and blinds and later and _bets(rules)):
        raise GameError(
            f"Hand histories are of two-player hold'em with blinds and one or two bet sizes, not {rules.name}."
        )


def _bets(rules: PokerRules) -> dict[str, int]:
    """The fields for the sizes of bets; none if PHH cannot express them."""
    if rules.betting != "limit":
        return {"min_bet": rules.blinds[1]}
    early, late = set(rules.raise_size[:2]), set(rules.raise_size[2:])
    if len(early) > 1 or len(late) > 1:
        return {}
    (small,) = early
    return {"small_bet": small, "big_bet": late.pop() if late else small}


def game_fields(rules: PokerRules) -> dict[str, Any]:
    """The fields that name the game, apart from its stacks and boards."""
    return {
        "variant": "NT" if rules.betting != "limit" else "FT",
        "antes": [0, 0],
        "blinds_or_straddles": list(rules.blinds),
        **_bets(rules),
    }


def stack_of(rules: PokerRules) -> int:
    """Chips of each player at the start; in limit games, which have no stacks, twice the most that a player can lose."""
    if rules.betting != "limit":
        return rules.stack
    return 2 * most_chips(rules.blinds, rules.raise_size, rules.max_raises)


# Out --------------------------------------------------------------------------------------------------------------------


def format_history(rules: PokerRules, hand: PlayedHand) -> str:
    """The text of a history, without a heading. Raises the errors of `history_of`."""
    text: str = history_of(rules, hand).dumps()
    return text


def history_of(rules: PokerRules, hand: PlayedHand) -> HandHistory:
    """The hand as a history, checked by pokerkit.

    Raises GameError for rules without histories, and ProtocolError if pokerkit refuses an action or counts other chips.
    """
    require_history(rules)
    actions = [f"d dh p{seat_of(player)} {''.join(card_names(rules, hand.holes[player]))}" for player in (1, 0)]
    actions += _betting_lines(rules, hand)
    stacks = referee(rules, hand, actions)
    fields = game_fields(rules) | {
        "starting_stacks": [stack_of(rules)] * 2,
        "finishing_stacks": stacks,
        "actions": actions,
        "hand": hand.number,
        "players": [hand.names[1], hand.names[0]],
        "user_defined_fields": {"_game": rules.name},
    }
    if rules.board_cards != TEXAS:
        fields["user_defined_fields"][BOARD_CARDS] = list(rules.board_cards)
    return HandHistory(**fields)


def seat_of(player: int) -> int:
    """The index of a player in a history; the map is its own inverse."""
    return 2 - player


def _betting_lines(rules: PokerRules, hand: PlayedHand) -> list[str]:
    """Actions, dealt board cards and shown hands, in pokerkit's order."""
    lines, state, dealt = [], first_state(rules), 0
    base = 0  # chips of each player at the start of the round; amounts in a history exclude them
    for action in hand.actions:
        actor, after = state.actor, next_state(rules, state, action)
        amount = f"cbr {max(after.chips) - base}" if action >= RAISE else "f" if action == FOLD else "cc"
        lines.append(f"p{seat_of(actor)} {amount}")
        if after.ended == SHOWDOWN and state.round + 1 == rules.num_rounds:
            lines += _shown(rules, hand)
        elif after.round > state.round:
            if after.ended == SHOWDOWN:  # all-in: hands are shown before the rest of the board is dealt
                lines += _shown(rules, hand)
            base = max(after.chips)
            for size in rules.board_cards[state.round + 1 : after.round + 1]:
                lines.append(f"d db {''.join(card_names(rules, hand.board[dealt : dealt + size]))}")
                dealt += size
        state = after
    return lines


def _shown(rules: PokerRules, hand: PlayedHand) -> list[str]:
    return [f"p{seat_of(player)} sm {''.join(card_names(rules, hand.holes[player]))}" for player in (1, 0)]


# The referee ------------------------------------------------------------------------------------------------------------


def referee(rules: PokerRules, hand: PlayedHand, lines: Iterable[str]) -> list[int]:
    """Replay a history's `lines` in pokerkit; returns both stacks at the end, p1's first.

    Raises ProtocolError if pokerkit refuses a line, if the hand has not ended, or if its gains differ from `gains`.
    """
    table = _table(rules)
    for line in lines:
        try:
            parse_action(table, line)
        except ValueError as error:
            raise ProtocolError(f"pokerkit refuses {line!r} in hand {hand.number} of {rules.name}: {error}") from error
    if table.status:
        raise ProtocolError(f"Hand {hand.number} of {rules.name} has not ended in pokerkit.")
    won = gains(rules, hand)
    if list(table.payoffs) != [won[1], won[0]]:
        counted = f"player 0 gains {won[0]} chips by our count and {table.payoffs[1]} by pokerkit's"
        raise ProtocolError(f"In hand {hand.number} of {rules.name} {counted}.")
    return [int(stack) for stack in table.stacks]


def _table(rules: PokerRules) -> State:
    pot = rules.betting != "limit"
    streets = tuple(
        Street(
            False,
            () if round_ else (False, False),
            cards,
            False,
            Opening.POSITION,
            rules.blinds[1] if pot else rules.raise_size[round_],
            rules.max_raises[round_],
        )
        for round_, cards in enumerate(rules.board_cards)
    )
    structure = BettingStructure.NO_LIMIT if pot else BettingStructure.FIXED_LIMIT
    stacks = (stack_of(rules),) * 2
    return State(
        _AUTOMATIONS, Deck.STANDARD, (StandardHighHand,), streets, structure, False, 0, rules.blinds, 0, stacks, 2,
        mode=Mode.CASH_GAME,
    )  # fmt: skip


# In ---------------------------------------------------------------------------------------------------------------------
