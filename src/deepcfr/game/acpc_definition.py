"""Game-definition files of the Annual Computer Poker Competition (ACPC): two-player games, read and written.

A limit game is played by its definition. A no-limit game, in which players may raise to any amount, is played with one
raise size, the pot, as in the first version of the Deep CFR paper (section 5).
"""

from __future__ import annotations

import re

from deepcfr.core.errors import GameError
from deepcfr.game.rules import MILLI_UNITS, WHOLE_POT, PokerRules, most_chips, most_raises

_MARKERS = {"gamedef": "GAMEDEF", "end gamedef": "END GAMEDEF", "limit": "limit", "nolimit": "nolimit"}

# How many values each key takes; None is one for each round.
_COUNTS: dict[str, int | None] = {
    "numPlayers": 1,
    "numRounds": 1,
    "stack": 2,
    "blind": 2,
    "raiseSize": None,
    "firstPlayer": None,
    "maxRaises": None,
    "numSuits": 1,
    "numRanks": 1,
    "numHoleCards": 1,
    "numBoardCards": None,
}
_KEYS = {key.lower(): key for key in _COUNTS}
_OPTIONAL = {"limit": ("stack", "firstPlayer"), "nolimit": ("firstPlayer", "raiseSize", "maxRaises")}

# The key that sets each field of PokerRules; finds the line of a problem with a field.
_KEY_OF_FIELD = {
    "num_ranks": "numRanks",
    "num_suits": "numSuits",
    "hole_cards": "numHoleCards",
    "board_cards": "numBoardCards",
    "blinds": "blind",
    "first_player": "firstPlayer",
    "raise_size": "raiseSize",
    "max_raises": "maxRaises",
    "stack": "stack",
}

# Eighteen digits fit a 64-bit integer; ASCII excludes the digits of other scripts.
_INTEGER = re.compile(r"[+-]?[0-9]{1,18}")


def parse_game_definition(text: str, name: str) -> PokerRules:
    """Read the text of a game-definition file; the seats are swapped if its second player acts first in round 1.

    Equal blinds are antes and one of them is the unit of payoff; otherwise the unit is the big blind. Without
    `firstPlayer`, player 1 acts first in every round. In limit games a `stack` must be so large that it never cuts a bet
    short. No-limit games are played with pot-sized raises only. If the stacks differ, both players get the shorter one,
    because the rest of the longer one cannot be won or lost. Without `maxRaises` there is no cap.

    Raises GameError with the first problem found, which begins with "line N: " if it belongs to a line.
    Source: the game files of the ACPC server (project_acpc_server).
    """
    lines, words = _read_entries(text)
    betting = _betting(lines)
    values = {"numRounds": _numbers("numRounds", words["numRounds"], lines, 1)}
    (rounds,) = values["numRounds"]
    for key in words:
        values[key] = _numbers(key, words[key], lines, _COUNTS[key] or rounds)
    for key, allowed in (("numPlayers", {2}), ("firstPlayer", {1, 2})):
        if wrong := set(values.get(key, ())) - allowed:
            raise _wrong(lines[key], f"{key} holds {min(wrong)}, but must hold only {' and '.join(map(str, allowed))}.")
    if betting == "limit" and "stack" in values:
        most = most_chips(values["blind"], values["raiseSize"], values["maxRaises"])
        if min(values["stack"]) < most:
            short = (
                f"stack holds {min(values['stack'])}, but must be {most} or more, so that it never cuts a bet short."
            )
            raise _wrong(lines["stack"], short)
    try:
        return _make_rules(values, name, betting)
    except GameError as error:
        raise GameError([_contradiction(lines, problem) for problem in error.problems]) from error


def _read_entries(text: str) -> tuple[dict[str, int], dict[str, list[str]]]:
    """The line of every marker and key, and the words after each key."""
    lines: dict[str, int] = {}
    values: dict[str, list[str]] = {}
    for number, raw in enumerate(text.split("\n"), start=1):
        words = raw.partition("#")[0].replace("=", " ", 1).split()
        if not words:
            continue
        marker = _MARKERS.get(" ".join(words).lower())
        key = marker or _KEYS.get(words[0].lower())
        if "END GAMEDEF" in lines:
            raise _wrong(number, f"{_quote(' '.join(words))} comes after END GAMEDEF, which must be the last entry.")
        if key is None:
            allowed = ", ".join([*_MARKERS.values(), *_COUNTS])
            raise _wrong(number, f"{_quote(' '.join(words))} is not an entry; the entries are {allowed}.")
        if key in lines:
            raise _wrong(number, f"{key} is given a second time; line {lines[key]} has it already.")
        if key == "GAMEDEF" and lines:
            raise _wrong(number, "GAMEDEF must be the first entry.")
        lines[key] = number
        if marker is None:
            values[key] = words[1:]
    return lines, values


def _betting(lines: dict[str, int]) -> str:
    """The kind of betting, `limit` or `nolimit`, of a definition that has all entries for it."""
    kinds = {"limit", "nolimit"} & lines.keys()
    if len(kinds) != 1:
        raise GameError("A line must say limit or nolimit, and no other line the other one.")
    (betting,) = kinds
    needed = ["GAMEDEF", "END GAMEDEF", *(key for key in _COUNTS if key not in _OPTIONAL[betting])]
    for key in needed:
        if key not in lines:
            raise GameError(f"{key} is missing, but every {betting} game needs it.")
    if betting == "nolimit" and "raiseSize" in lines:
        raise _wrong(lines["raiseSize"], "raiseSize is given, but raises of a nolimit game have no fixed size.")
    return betting


def _numbers(key: str, words: list[str], lines: dict[str, int], count: int) -> tuple[int, ...]:
    """The values of a key, of which there must be `count`."""
    if wrong := [_quote(word) for word in words if not _INTEGER.fullmatch(word)]:
        raise _wrong(lines[key], f"{key} holds {', '.join(wrong)}, but takes whole numbers of at most 18 digits.")
    if len(words) != count:
        why = "" if _COUNTS[key] == 1 else ", one for each " + ("player" if _COUNTS[key] else "round")
        raise _wrong(lines[key], f"{key} has {len(words)} values, but must have {count}{why}.")
    return tuple(map(int, words))


def _wrong(line: int, sentence: str) -> GameError:
    return GameError(f"line {line}: {sentence}")


def _quote(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "...")


def _make_rules(values: dict[str, tuple[int, ...]], name: str, betting: str) -> PokerRules:
    first = tuple(player - 1 for player in values.get("firstPlayer", (1,) * len(values["numBoardCards"])))
    small, big = values["blind"]
    if first[:1] == (1,):
        small, big, first = big, small, tuple(1 - player for player in first)
    unit = "antes" if small == big else "big blinds"
    no_limit, rounds = betting == "nolimit", len(values["numBoardCards"])
    stack = min(values["stack"]) if no_limit else 0
    no_cap = (most_raises((small, big), stack),) * rounds
    return PokerRules(
        name=name,
        num_ranks=values["numRanks"][0],
        num_suits=values["numSuits"][0],
        hole_cards=values["numHoleCards"][0],
        board_cards=values["numBoardCards"],
        blinds=(small, big),
        first_player=first,
        raise_size=(WHOLE_POT,) * rounds if no_limit else values["raiseSize"],
        max_raises=values.get("maxRaises", no_cap),
        unit_chips=max(small, big, 1),  # blinds without chips are one problem, not two
        unit=unit,
        milli_unit=MILLI_UNITS[unit],
        betting="pot" if no_limit else "limit",
        stack=stack,
    )


def _contradiction(lines: dict[str, int], problem: str) -> str:
    """A problem of the rules in the words of the definition."""
    subject = _KEY_OF_FIELD.get(problem.split(maxsplit=1)[0], "")
    sentence = re.sub(r"\w+", lambda word: _KEY_OF_FIELD.get(word[0], word[0]), problem)
    return f"line {lines[subject]}: {sentence}" if subject in lines else sentence
