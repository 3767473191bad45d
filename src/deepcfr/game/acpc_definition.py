"""Game-definition files of the Annual Computer Poker Competition (ACPC): two-player games, read and written.

A limit game is played by its definition. A no-limit game, in which players may raise to any amount, is played with one
raise size, the pot, as in the first version of the Deep CFR paper (section 5).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

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
_REQUIRED = {
    "limit": set(_COUNTS) - {"stack", "firstPlayer"},
    "nolimit": set(_COUNTS) - {"firstPlayer", "raiseSize", "maxRaises"},
}

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


@dataclass
class _Reading:
    """The values and problems found in a definition; a problem with `line` 0 belongs to no line."""

    lines: dict[str, int] = field(default_factory=dict)  # marker or key -> the first line that has it
    values: dict[str, tuple[int, ...]] = field(default_factory=dict)  # only keys whose values are well formed
    problems: list[tuple[int, str]] = field(default_factory=list)

    @property
    def betting(self) -> str:
        """The kind of betting: `limit` or `nolimit`; limit if the definition does not say."""
        return "nolimit" if "nolimit" in self.lines else "limit"

    def report(self, line: int, sentence: str) -> None:
        self.problems.append((line, sentence))

    def sentences(self) -> list[str]:
        ordered = sorted(self.problems, key=lambda problem: (problem[0] == 0, problem[0]))
        return [f"line {line}: {sentence}" if line else sentence for line, sentence in ordered]


def parse_game_definition(text: str, name: str) -> PokerRules:
    """Read the text of a game-definition file; the seats are swapped if its second player acts first in round 1.

    Equal blinds are antes and one of them is the unit of payoff; otherwise the unit is the big blind. Without
    `firstPlayer`, player 1 acts first in every round. In limit games a `stack` must be so large that it never cuts a bet
    short. No-limit games are played with pot-sized raises only. If the stacks differ, both players get the shorter one,
    because the rest of the longer one cannot be won or lost. Without `maxRaises` there is no cap.

    Raises GameError with every problem found, each beginning with "line N: " if it belongs to a line.
    Source: the game files of the ACPC server (project_acpc_server).
    """
    reading = _Reading()
    for number, raw in enumerate(text.split("\n"), start=1):
        words = raw.partition("#")[0].replace("=", " ", 1).split()
        if words:
            _read_entry(reading, number, words)
    _check_presence(reading)
    _check_counts(reading)
    _check_players(reading)
    _check_stack(reading)
    rules = _build(reading, name)
    if rules is None or reading.problems:
        raise GameError(reading.sentences())
    return rules


def _read_entry(reading: _Reading, number: int, words: list[str]) -> None:
    marker = _MARKERS.get(" ".join(words).lower())
    key = marker or _KEYS.get(words[0].lower())
    if "END GAMEDEF" in reading.lines:
        reading.report(number, f"{_quote(' '.join(words))} comes after END GAMEDEF, which must be the last entry.")
    if key is None:
        allowed = ", ".join([*_MARKERS.values(), *_COUNTS])
        reading.report(number, f"{_quote(' '.join(words))} is not an entry; the entries are {allowed}.")
        return
    if key in reading.lines:
        reading.report(number, f"{key} is given a second time; line {reading.lines[key]} has it already.")
        return
    if key == "GAMEDEF" and reading.lines:
        reading.report(number, "GAMEDEF must be the first entry.")
    reading.lines[key] = number
    if marker is None:
        _read_values(reading, number, key, words[1:])


def _read_values(reading: _Reading, number: int, key: str, words: list[str]) -> None:
    wrong = [_quote(word) for word in words if not _INTEGER.fullmatch(word)]
    if wrong:
        reading.report(number, f"{key} holds {', '.join(wrong)}, but takes whole numbers of at most 18 digits.")
    else:
        reading.values[key] = tuple(int(word) for word in words)


def _quote(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "...")


def _check_presence(reading: _Reading) -> None:
    for marker in ("GAMEDEF", "END GAMEDEF"):
        if marker not in reading.lines:
            reading.report(0, f"{marker} is missing: a definition stands between GAMEDEF and END GAMEDEF.")
    markers = {"limit", "nolimit"} & set(reading.lines)
    if not markers:
        reading.report(0, "limit is missing: a line must say that this is a limit game, or a nolimit one.")
    if len(markers) == 2:
        last = max(reading.lines[marker] for marker in markers)
        reading.report(last, "limit and nolimit are both given, but a game is one or the other.")
    elif "raiseSize" in reading.lines and markers == {"nolimit"}:
        reading.report(
            reading.lines["raiseSize"], "raiseSize is given, but raises of a nolimit game have no fixed size."
        )
    for key in _COUNTS:
        if key in _REQUIRED[reading.betting] - set(reading.lines):
            reading.report(0, f"{key} is missing, but every {reading.betting} game needs it.")


def _check_counts(reading: _Reading) -> None:
    """Report keys with too many or too few values and drop those values."""
    rounds = reading.values.get("numRounds", ())
    if len(rounds) == 1 and rounds[0] < 1:
        reading.report(reading.lines["numRounds"], f"numRounds is {rounds[0]}, but a game has at least one round.")
        rounds = ()
    for key, values in list(reading.values.items()):
        count = _COUNTS[key] or (rounds[0] if len(rounds) == 1 else len(values))
        if len(values) != count:
            why = "" if _COUNTS[key] == 1 else ", one for each " + ("player" if _COUNTS[key] else "round")
            reading.report(reading.lines[key], f"{key} has {len(values)} values, but must have {count}{why}.")
            del reading.values[key]


def _check_players(reading: _Reading) -> None:
    for players in reading.values.get("numPlayers", ()):
        if players != 2:
            reading.report(reading.lines["numPlayers"], f"numPlayers is {players}, but must be 2.")
    for player in reading.values.get("firstPlayer", ()):
        if player not in (1, 2):
            reading.report(reading.lines["firstPlayer"], f"firstPlayer holds {player}, but must hold only 1 and 2.")
            reading.values.pop("firstPlayer", None)


def _check_stack(reading: _Reading) -> None:
    stack, *betting = (reading.values.get(key, ()) for key in ("stack", "blind", "raiseSize", "maxRaises"))
    if reading.betting == "nolimit" or not stack or not all(betting) or len(betting[1]) != len(betting[2]):
        return
    most = most_chips(*betting)
    for chips in stack:
        if chips < most:
            sentence = f"stack holds {chips}, but must be {most} or more, so that it never cuts a bet short."
            reading.report(reading.lines["stack"], sentence)


def _build(reading: _Reading, name: str) -> PokerRules | None:
    """Make the rules, or report why they contradict each other; None if they cannot be made."""
    if not _REQUIRED[reading.betting] & set(_KEY_OF_FIELD.values()) <= set(reading.values):
        return None
    try:
        return _make_rules(reading.values, name, reading.betting)
    except GameError as error:
        for problem in error.problems:
            _report_contradiction(reading, problem)
    return None


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


def _report_contradiction(reading: _Reading, problem: str) -> None:
    subject = _KEY_OF_FIELD.get(problem.split(maxsplit=1)[0], "")
    sentence = re.sub(r"\w+", lambda word: _KEY_OF_FIELD.get(word[0], word[0]), problem)
    reading.report(reading.lines.get(subject, 0), sentence)
