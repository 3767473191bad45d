"""Read hand histories in PHH, the poker hand history format, of two-player hold'em, also with unknown cards and cents.

pokerkit reads histories without checks, so the checks here are ours. Player p1 of a history acts last before the flop, so
it is player 1 of `PokerRules`; the blinds are in the other order, the small one first. Limit games are variant FT, others
NT. PHH has no variant for hold'em with fewer rounds: such hands have the fields of FT or NT, and `_board_cards` has the
number of board cards of each round. Cards have the names of the dealer protocol. Source: Kim, "Recording and Describing
Poker Hands" (2024), and pokerkit.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

from pokerkit import parse_value

from deepcfr.core.errors import ConfigError, DeepCFRError, GameError
from deepcfr.core.files import text_of
from deepcfr.game.betting import (
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
from deepcfr.game.rules import PokerRules, most_chips
from deepcfr.interop.acpc import PlayedHand, ProtocolError, card_name, card_names, card_number, gains

TEXAS = (0, 3, 1, 1)  # board cards by round in the variants of PHH
BOARD_CARDS = "_board_cards"  # the field with the board cards by round of other hold'em games

UNKNOWN = "????"  # a hand that nobody saw
_CARD = re.compile(r"[2-9TJQKA][cdhs]")
_ACTION = re.compile(r"p([12]) (?:(f|cc)|cbr ([0-9]{1,18}(?:\.[0-9]{1,18})?))")
_HOLES = re.compile(r"d dh p([12]) (\S+)")
_BOARD = re.compile(r"d db (\S+)")
_SHOWN = re.compile(r"p([12]) sm(?: (\S+))?")
_REQUIRED = ("variant", "antes", "blinds_or_straddles", "starting_stacks", "actions")
_LISTS = (*_REQUIRED[1:], "finishing_stacks", "players")
_DIGITS = 18  # of an amount
_NO_HISTORY = "The text is not a hand history in PHH"


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


def seat_of(player: int) -> int:
    """The index of a player in a history; the map is its own inverse."""
    return 2 - player


def load_histories(path: Path, rules: PokerRules) -> list[PlayedHand]:
    """The hands in a `.phh` file or in a `.phhs` file of several; errors as in `read_histories` and `played_hand`."""
    return [played_hand(fields, rules, place) for place, fields in enumerate(read_histories(path))]


def read_histories(path: Path) -> list[dict[str, Any]]:
    """The fields of every hand in a file, for `played_hand`. Raises ConfigError for a file that holds no hand."""
    try:
        return fields_of(text_of(path))
    except OSError as error:
        raise ConfigError(f"'{path}' cannot be read: {error.strerror}.") from error


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


def fields_of(text: str) -> list[dict[str, Any]]:
    """The fields of every hand in the text of a history, or of several under headings. Raises ConfigError."""
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
        _check_fields(fields)
        return _parse_history(fields, rules, place)
    except (ValueError, TypeError, KeyError, AttributeError) as error:  # fields of other types than PHH's
        raise ConfigError(f"{_NO_HISTORY}: {error}.") from error


def _check_fields(table: dict[str, Any]) -> None:
    """Raise ValueError or TypeError if a table is no hand; pokerkit checks no fields."""
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


def _parse_history(history: dict[str, Any], rules: PokerRules, index: int) -> PlayedHand:
    where = f"Hand {_plain(history.get('hand', index + 1))}"
    if len(history["starting_stacks"]) > 2:
        raise GameError(f"{where} has {len(history['starting_stacks'])} players, but {rules.name} has 2.")
    unit = _unit(history, rules)
    _require_same_rules(history, rules, unit, where)
    holes: tuple[list[int], list[int]] = ([], [])
    board: list[int] = []
    actions: list[int] = []
    state, base = first_state(rules), 0
    for raw in history["actions"]:
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
    players, number = history.get("players", []), history.get("hand")
    names = players if len(players) == 2 else ["p1", "p2"]
    hand = PlayedHand(
        number if type(number) is int else index,
        (str(names[1]), str(names[0])),
        (tuple(holes[0]), tuple(holes[1])),
        tuple(board),
        tuple(actions),
    )
    _require_whole(hand, state, rules, where)
    _require_chips(hand, history, state, unit, rules, where)
    return hand


def _unit(history: dict[str, Any], rules: PokerRules) -> Fraction:
    """Chips of `rules` in the history's unit: 1 if it has none in which its big blind and its bets are those of `rules`."""
    blinds: Any = history["blinds_or_straddles"]
    if len(blinds) != 2 or not blinds[1]:
        return Fraction(1)
    unit = rules.blinds[1] / _amount(blinds[1])
    fits = rules.betting != "limit" or (
        history.get("small_bet") and unit * _amount(history["small_bet"]) == rules.raise_size[0]
    )
    return unit if fits else Fraction(1)


def _amount(value: object) -> Fraction:
    """An amount of a history, exactly. Raises TypeError for what is no number, or one with too many digits."""
    number = Decimal(value) if isinstance(value, int) else value
    if not isinstance(number, Decimal) or not number.is_finite() or abs(number.adjusted()) >= _DIGITS:
        raise TypeError(f"{_plain(value)} is no amount")
    return Fraction(number)


def _require_same_rules(history: dict[str, Any], rules: PokerRules, unit: Fraction, where: str) -> None:
    for field, value in game_fields(rules).items():
        given: Any = history.get(field)
        there: Any = None
        if isinstance(value, list):
            there = [unit * _amount(amount) for amount in given]
        elif given is not None:
            there = unit * _amount(given) if isinstance(value, int) else given
        if there != value:
            raise GameError(f"{where} has {field} = {_plain(given)}, but {rules.name} has {value!r}.")
    shorter, there = unit * min(map(_amount, history["starting_stacks"])), _plain(history["starting_stacks"])
    if rules.betting != "limit" and shorter != rules.stack:
        here = float(rules.stack / unit)
        raise GameError(f"{where} has starting_stacks = {there}, but in {rules.name} the shorter one is {here:g}.")
    if rules.betting == "limit" and 2 * shorter < stack_of(rules):
        here = float(stack_of(rules) / unit / 2)
        raise GameError(f"{where} has starting_stacks = {there}, but bets of {rules.name} may take {here:g}.")
    rounds = history.get(BOARD_CARDS, list(TEXAS))
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
    hand: PlayedHand, history: dict[str, Any], state: BettingState, unit: Fraction, rules: PokerRules, where: str
) -> None:
    """Raise GameError if the final stacks of a history, where given, do not agree with its actions.

    The house may have taken a part of a pot that a player won or shared. Showdowns with an unknown hand cannot be checked.
    """
    if "finishing_stacks" not in history or (state.ended == SHOWDOWN and not all(hand.holes)):
        return
    stacks = zip(history["starting_stacks"], history["finishing_stacks"], strict=True)
    for seat, ((start, end), right) in enumerate(zip(stacks, reversed(gains(rules, hand)), strict=True), 1):
        gain = unit * (_amount(end) - _amount(start))
        if gain > right or gain < right < 0:
            told = gain if gain.denominator == 1 else float(gain)
            raise GameError(f"{where} ends with p{seat} gaining {told} chips, but its actions and cards bring {right}.")
