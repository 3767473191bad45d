"""Read hand histories in PHH, each replayed by pokerkit, also real ones with unknown cards and cents."""

from __future__ import annotations

import dataclasses
import re
import tomllib
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

from pokerkit import (
    HandHistory,
    parse_value,
)

from deepcfr.errors import ConfigError, DeepCFRError, GameError
from deepcfr.games.betting import (
    CALL,
    FOLD,
    NOT_TERMINAL,
    RAISE,
    SHOWDOWN,
    BettingState,
    first_state,
    legal_actions,
    next_state,
    raise_range,
)
from deepcfr.games.rules import PokerRules
from deepcfr.protocols.acpc import ProtocolError
from deepcfr.protocols.acpc_game import PlayedHand, card_name, card_names, card_number, gains
from deepcfr.protocols.hand_history import BOARD_CARDS, TEXAS, UNKNOWN, game_fields, require_history, seat_of, stack_of

_CARD = re.compile(r"[2-9TJQKA][cdhs]")
_ACTION = re.compile(r"p([12]) (?:(f|cc)|cbr ([0-9]{1,18}(?:\.[0-9]{1,18})?))")
_HOLES = re.compile(r"d dh p([12]) (\S+)")
_BOARD = re.compile(r"d db (\S+)")
_SHOWN = re.compile(r"p([12]) sm(?: (\S+))?")
_REQUIRED = ("variant", "antes", "blinds_or_straddles", "starting_stacks", "actions")
_LISTS = (*_REQUIRED[1:], "finishing_stacks", "players")
_DIGITS = 18  # of an amount


_NO_HISTORY = "The text is not a hand history in PHH"


def load_histories(path: Path, rules: PokerRules) -> list[PlayedHand]:
    """The hands in a `.phh` file or in a `.phhs` file of several; errors as in `read_histories` and `played_hand`."""
    require_history(rules)
    return [played_hand(fields, rules, place) for place, fields in enumerate(read_histories(path))]


def parse_histories(text: str, rules: PokerRules) -> list[PlayedHand]:
    """The hands in the text of a history, or of several under headings; errors as in `load_histories`."""
    require_history(rules)
    return [played_hand(fields, rules, place) for place, fields in enumerate(_fields_of(text))]


def read_histories(path: Path) -> list[dict[str, Any]]:
    """The fields of every hand in a file, for `played_hand`. Raises ConfigError for a file that holds no hand."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise ConfigError(f"'{path}' cannot be read: {error.strerror}.") from error
    except ValueError as error:
        raise ConfigError(f"'{path}' cannot be read as text: {error}.") from error
    return _fields_of(text)


def hands_to_review(
    path: Path, rules: PokerRules, number: int | None = None
) -> tuple[dict[int, PlayedHand], dict[int, str]]:
    """The hands of a file that fit `rules` and show somebody's cards, and why others do not, by number in the file from 1.

    With a `number` only that one is read. Raises ConfigError if the file does not have it, or if no hand is left.
    """
    require_history(rules)
    fields = dict(enumerate(read_histories(path), 1))
    if number is not None and number not in fields:
        raise ConfigError(f"Hand {number} is asked for, but '{path}' has hands from 1 to {len(fields)}.")
    hands, refused = {}, {}
    for place in fields if number is None else (number,):
        try:
            hand = played_hand(fields[place], rules, place - 1)
            if not any(hand.holes):
                raise GameError(f"Hand {hand.number} shows nobody's cards.")
            hands[place] = hand
        except DeepCFRError as error:
            refused[place] = str(error)
    if not hands:
        first, *others = refused.values()
        raise ConfigError(f"{first} No other hand of the file fits either." if others else first)
    return hands, refused


def _fields_of(text: str) -> list[dict[str, Any]]:
    try:
        table = tomllib.loads(text, parse_float=parse_value)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{_NO_HISTORY}: {error}.") from error
    # tables with an underscore are the user's own, in a history or beside several
    several = [value for name, value in table.items() if isinstance(value, dict) and not name.startswith("_")]
    return several if "actions" not in table and several else [table]


def played_hand(fields: dict[str, Any], rules: PokerRules, place: int) -> PlayedHand:
    """The hand with the fields of a history, at a `place` of its file from 0.

    A hand that nobody saw, `????`, has no cards. Hands may be in another unit than chips, such as dollars: their big
    blind is that of `rules`. Of two stacks the shorter one counts, which must be that of `rules`. Raises ConfigError
    for fields that are no history, and GameError for hands of another game.
    """
    require_history(rules)
    try:
        return _parse_history(_history(fields), rules, place)
    except (ValueError, TypeError, KeyError, AttributeError) as error:  # fields of other types than PHH's
        raise ConfigError(f"{_NO_HISTORY}: {error}.") from error


def _history(table: dict[str, Any]) -> HandHistory:
    """A history; fields that PHH does not have are the user's own. Raises ValueError if the table holds no hand."""
    if "actions" not in table:
        raise ValueError("it holds no hand, for a hand has 'actions'")
    for name in _REQUIRED:
        if name not in table:
            raise ValueError(f"it has no '{name}'")
    for name in _LISTS:
        if not isinstance(table.get(name, []), list):
            raise TypeError(f"'{name}' is {table[name]!r}, but must be a list")
    if len(table.get("finishing_stacks", table["starting_stacks"])) != len(table["starting_stacks"]):
        raise ValueError("it has not as many 'finishing_stacks' as 'starting_stacks'")
    for line in table["actions"]:
        if not isinstance(line, str):
            raise TypeError(f"actions holds {line!r}, but each must be a text")
    known = {field.name for field in dataclasses.fields(HandHistory)} & table.keys()
    own = {name: value for name, value in table.items() if name not in known}
    return HandHistory(**({"user_defined_fields": own} | {name: table[name] for name in known}))


def _parse_history(history: HandHistory, rules: PokerRules, index: int) -> PlayedHand:
    where = f"Hand {_plain(history.hand) if history.hand is not None else index + 1}"
    if len(history.starting_stacks) > 2:
        raise GameError(f"{where} has {len(history.starting_stacks)} players, but {rules.name} has 2.")
    unit = _unit(history, rules)
    _require_same_rules(history, rules, unit, where)
    holes: tuple[list[int], list[int]] = ([], [])
    board: list[int] = []
    actions: list[int] = []
    state, base = first_state(rules), 0
    for raw in history.actions:
        line = " ".join(raw.partition("#")[0].split())
        if (found := _HOLES.fullmatch(line)) is not None:
            if found[2] != UNKNOWN:
                holes[seat_of(int(found[1]))].extend(_read_cards(found[2], rules, where))
        elif (found := _BOARD.fullmatch(line)) is not None:
            board.extend(_read_cards(found[1], rules, where))
        elif (found := _ACTION.fullmatch(line)) is not None:
            actions.append(_read_action(found, state, base, rules, unit, where))
            after = next_state(rules, state, actions[-1])
            base = max(after.chips) if after.round > state.round else base
            state = after
        elif (found := _SHOWN.fullmatch(line)) is not None:
            hole = holes[seat_of(int(found[1]))]
            shown = _read_cards(found[2], rules, where) if found[2] not in (None, "-", UNKNOWN) else []
            if hole and not {*shown} <= {*hole}:
                raise GameError(f"{where} has {line!r}, but p{found[1]} was dealt {''.join(card_names(rules, hole))}.")
            hole.extend(() if hole else shown)
        elif line:
            raise GameError(f"{where} holds {line!r}, which is not a line of a two-player hold'em hand.")
    names = history.players if history.players and len(history.players) == 2 else ["p1", "p2"]
    hand = PlayedHand(
        history.hand if type(history.hand) is int else index,
        (str(names[1]), str(names[0])),
        (tuple(holes[0]), tuple(holes[1])),
        tuple(board),
        tuple(actions),
    )
    _require_whole(hand, state, rules, where)
    _require_chips(hand, history, state, unit, rules, where)
    return hand


def _unit(history: HandHistory, rules: PokerRules) -> Fraction:
    """Chips of `rules` in the history's unit: 1 if it has none in which its big blind and its bets are those of `rules`."""
    blinds: Any = history.blinds_or_straddles
    if len(blinds) != 2 or not blinds[1]:
        return Fraction(1)
    unit = rules.blinds[1] / _amount(blinds[1])
    fits = rules.betting != "limit" or (history.small_bet and unit * _amount(history.small_bet) == rules.raise_size[0])
    return unit if fits else Fraction(1)


def _amount(value: object) -> Fraction:
    """An amount of a history, exactly. Raises TypeError for what is no number, or one with too many digits."""
    number = Decimal(value) if isinstance(value, int) else value
    if not isinstance(number, Decimal) or not number.is_finite() or abs(number.adjusted()) >= _DIGITS:
        raise TypeError(f"{_plain(value)} is no amount")
    return Fraction(number)


def _require_same_rules(history: HandHistory, rules: PokerRules, unit: Fraction, where: str) -> None:
    for field, value in game_fields(rules).items():
        given = getattr(history, field)
        there: Any = None
        if isinstance(value, list):
            there = [unit * _amount(amount) for amount in given]
        elif given is not None:
            there = unit * _amount(given) if isinstance(value, int) else given
        if there != value:
            raise GameError(f"{where} has {field} = {_plain(given)}, but {rules.name} has {value!r}.")
    shorter, there = unit * min(map(_amount, history.starting_stacks)), _plain(history.starting_stacks)
    if rules.betting != "limit" and shorter != rules.stack:
        here = float(rules.stack / unit)
        raise GameError(f"{where} has starting_stacks = {there}, but in {rules.name} the shorter one is {here:g}.")
    if rules.betting == "limit" and 2 * shorter < stack_of(rules):
        here = float(stack_of(rules) / unit / 2)
        raise GameError(f"{where} has starting_stacks = {there}, but bets of {rules.name} may take {here:g}.")
    rounds = history.user_defined_fields.get(BOARD_CARDS, list(TEXAS))
    if rounds != list(rules.board_cards):
        raise GameError(f"{where} deals {rounds!r} board cards by round, but {rules.name} {list(rules.board_cards)!r}.")


def _plain(value: Any) -> str:
    """A field as a history writes it."""
    if isinstance(value, list):
        return f"[{', '.join(map(str, value))}]"
    return repr(value) if isinstance(value, str) else str(value)


def _read_cards(text: str, rules: PokerRules, where: str) -> list[int]:
    names = _CARD.findall(text)
    if "".join(names) != text:
        raise GameError(
            f"{where} has the cards {text!r}: write ranks 2 to A and suits c, d, h or s, or {UNKNOWN} for a hand."
        )
    try:
        return [card_number(rules, name) for name in names]
    except ProtocolError as error:
        raise GameError(f"{where}: {error}") from error


def _read_action(
    found: re.Match[str], state: BettingState, base: int, rules: PokerRules, unit: Fraction, where: str
) -> int:
    if state.ended != NOT_TERMINAL:
        raise GameError(f"{where} continues with {found[0]!r} after its betting has ended.")
    action = RAISE if found[3] else FOLD if found[2] == "f" else CALL
    allowed = legal_actions(rules, state)
    if state.actor != seat_of(int(found[1])) or action not in allowed:
        raise GameError(f"{where} has {found[0]!r} where {rules.name} does not allow it.")
    if action < RAISE:
        return action
    total, (least, most) = unit * Fraction(found[3]) + base, raise_range(rules, state)
    if rules.stack:
        total = min(total, Fraction(rules.stack))  # what the shorter stack cannot call comes back
    if total.denominator > 1 or not least <= total <= most:
        sizes = " to ".join(f"{float((size - base) / unit):g}" for size in dict.fromkeys((least, most)))
        steps = f", in steps of {float(1 / unit):g}" if total.denominator > 1 else ""
        raise GameError(f"{where} has {found[0]!r}, but a raise of {rules.name} is to {sizes} there{steps}.")
    return int(total) if rules.betting == "no-limit" else RAISE


def _require_whole(hand: PlayedHand, state: BettingState, rules: PokerRules, where: str) -> None:
    if state.ended == NOT_TERMINAL:
        raise GameError(f"{where} ends before the hand has ended.")
    cards = [*hand.holes[0], *hand.holes[1], *hand.board]
    if len(set(cards)) != len(cards):
        twice = next(card for card in cards if cards.count(card) > 1)
        raise GameError(f"{where} deals {card_name(rules, twice)} twice.")
    dealt = sum(rules.board_cards[: state.round + 1])
    counts: Sequence[int] = (len(hand.holes[0]), len(hand.holes[1]), len(hand.board))
    if not {counts[0], counts[1]} <= {0, 2} or counts[2] != dealt:
        found = f"{counts[1]} and {counts[0]} hole cards and {counts[2]} board cards"
        raise GameError(f"{where} deals {found}, but must deal 2, 2 and {dealt}.")


def _require_chips(
    hand: PlayedHand, history: HandHistory, state: BettingState, unit: Fraction, rules: PokerRules, where: str
) -> None:
    """Raise GameError if the final stacks of a history, where given, do not agree with its actions.

    The house may have taken a part of a pot that a player won or shared. Showdowns with an unknown hand cannot be checked.
    """
    if history.finishing_stacks is None or (state.ended == SHOWDOWN and not all(hand.holes)):
        return
    stacks = zip(history.starting_stacks, history.finishing_stacks, strict=True)
    for seat, ((start, end), right) in enumerate(zip(stacks, reversed(gains(rules, hand)), strict=True), 1):
        gain = unit * (_amount(end) - _amount(start))
        if gain > right or gain < right < 0:
            told = gain if gain.denominator == 1 else float(gain)
            raise GameError(f"{where} ends with p{seat} gaining {told} chips, but its actions and cards bring {right}.")
