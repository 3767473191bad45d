"""Write hands as histories in PHH; each is replayed in pokerkit before, so an independent program checks its chips."""

from __future__ import annotations

from collections.abc import Iterable

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

from deepcfr.game.betting import FOLD, RAISE, SHOWDOWN, first_state, next_state
from deepcfr.game.rules import PokerRules
from deepcfr.interop.acpc import PlayedHand, ProtocolError, card_names, gains
from deepcfr.interop.hand_history import BOARD_CARDS, TEXAS, game_fields, require_history, seat_of, stack_of

_AUTOMATIONS = (
    Automation.ANTE_POSTING,
    Automation.BET_COLLECTION,
    Automation.BLIND_OR_STRADDLE_POSTING,
    Automation.RUNOUT_COUNT_SELECTION,
    Automation.HAND_KILLING,
    Automation.CHIPS_PUSHING,
    Automation.CHIPS_PULLING,
)


def format_history(rules: PokerRules, hand: PlayedHand) -> str:
    """The text of a history, without a heading. Raises the errors of `history_of`."""
    return history_of(rules, hand).dumps()


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
