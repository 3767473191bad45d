"""Read one's own hands: texts of PokerStars, PHH and logs of the ACPC, which pokerkit replays, as what two players did."""

from __future__ import annotations

import io
import re
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import redirect_stderr
from dataclasses import dataclass
from typing import Any

from pokerkit import ACPCProtocolParser, HandHistory, NoLimitTexasHoldem, PokerStarsParser

from deepcfr.core.errors import ConfigError
from deepcfr.interop.hand_history import BOARD_CARDS, TEXAS, fields_of

_UTG, _LATE = ("UTG", "UTG+1", "UTG+2", "UTG+3"), ("LJ", "HJ", "CO")  # before the button, the last at small tables
POSITIONS = (*_UTG, *_LATE, "BTN", "SB", "BB")
ROLES = (("check", "limp"), ("call", "raise"), ("call 3-bet", "3-bet"), ("call 4-bet", "4-bet"))
"""What two players did before the flop, by the number of raises; the second of each pair raised last, or limped."""
_ACPC = ACPCProtocolParser(NoLimitTexasHoldem((), True, 0, (50, 100), 100), 20_000)  # its heads-up no-limit game
_LIMIT = "It is limit hold'em: spots have the bets of no-limit."
_OTHER = re.compile(r"(?:6\+|Split|Showtime|Swap|Unfold|Tempest|Deep Water) Hold'em| Cap ")  # games of PokerStars
FOLDS, CALLS, RAISES = "f", "cc", "cbr"


@dataclass(frozen=True)
class OwnAction:
    """An action after the flop: `kind` is f, cc or cbr as in PHH, and `to` the big blinds put in on this street."""

    player: int  # 0 in position, 1 out of position, as the dealer and the big blind of a spot
    kind: str
    to: float


@dataclass(frozen=True)
class OwnHand:
    """A hand that two players saw the flop of; amounts are in big blinds."""

    number: str
    names: tuple[str, str]  # of the player in position, and of the other one
    positions: tuple[str, str]
    roles: tuple[str, str]  # what each did before the flop
    holes: tuple[str, str]  # such as AsQd; empty if nobody saw them
    pot: float  # on the flop
    stacks: float  # what the smaller stack has behind there
    board: str
    streets: tuple[tuple[OwnAction, ...], ...]  # flop, turn, river, as far as anybody acted


def read_own_hands(text: str) -> tuple[list[OwnHand], dict[str, str]]:
    """The hands that two players saw the flop of, and why others are left out, by number.

    The text is of PokerStars, PHH, or a log of the ACPC's no-limit game, whose blinds and stacks a log does not name.
    Raises ConfigError for a text that is none of them.
    """
    plain = re.sub(r"[ \t]+\n", "\n", text.replace("\ufeff", "").replace("\r\n", "\n")).strip()
    hands: dict[str, OwnHand] = {}
    refused = {}
    for place, part in enumerate(_parts(plain), 1):
        found = (
            re.search(r"(?:#|^STATE:)(\d+)", part)
            if isinstance(part, str)
            else re.search(r"(.*)", str(part.get("hand", place)))
        )
        named = found[1] if found else ""
        number = named if re.fullmatch(r"\w[\w-]{0,40}", named) else str(place)  # it names files
        if number in hands or number in refused:
            refused[f"{number} again"] = "It is there twice."
            continue
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of pokerkit: fields that its own parser adds, unusual folds
                hands[number] = _own_hand(_of_site(part) if isinstance(part, str) else _of_fields(part), number)
        except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError):  # of pokerkit
            refused[number] = "It is no hand of hold'em that pokerkit can read."
        except ConfigError as error:
            refused[number] = str(error)
    return list(hands.values()), refused


def _parts(text: str) -> Sequence[str | dict[str, Any]]:
    """The texts of hands of PokerStars or the ACPC, or the fields of those of PHH. Raises ConfigError for anything else."""
    if log := re.findall(r"^STATE:.*", text, re.MULTILINE):
        return log
    if (hands := re.split(r"^(?=PokerStars .*#\d+:)", text, flags=re.MULTILINE))[1:]:
        return hands[1:]  # a text that was sent by mail has a heading before each
    try:
        return fields_of(text)
    except ConfigError as error:
        raise ConfigError("The hands are neither a text of PokerStars, nor PHH, nor a log of the ACPC.") from error


def _of_site(text: str) -> HandHistory:
    """A hand of PokerStars or of a log. Raises ConfigError for what pokerkit would leave out, ValueError for what it
    cannot read.
    """
    if text.startswith("STATE:"):
        if re.match(r"STATE:\d+:[^:]*r(?!\d)", text):
            raise ConfigError(_LIMIT)
        (found,) = _ACPC(text, error_status=True)
        return found
    if other := _OTHER.search(text.partition("\n")[0]):
        raise ConfigError(f"'{other[0].strip()}' is not the hold'em of spots.")
    text = re.sub(r'^.* said, ".*\n', "", text, flags=re.MULTILINE)
    text = text.partition("\n*** FIRST ")[0]  # nothing is decided after a board is run twice
    posted = sorted(re.findall(r"^.+: posts (.+?) \D?[\d.]+(?: and is all-in)?$", text, re.MULTILINE))
    if posted != ["big blind", "small blind"]:
        raise ConfigError("Only hands with one small and one big blind, and without antes, are read.")
    seats = re.findall(r"^Seat (\d+): (.+) \(\D?[\d.]+ in chips", text, re.MULTILINE)
    names = {name: f"p{seat}" for seat, name in seats}  # pokerkit takes some names, such as callsalot, for actions
    known = "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
    plain = re.sub(
        rf"^(Seat \d+: |Dealt to |)({known})(?=[: ])", lambda m: m[1] + names[m[2]], text, flags=re.MULTILINE
    )
    with redirect_stderr(io.StringIO()):
        (found,) = PokerStarsParser()(plain + "\n\n\n", error_status=True)
    own = {plain: name for name, plain in names.items()}
    found.players = [own[plain] for plain in found.players or ()]
    return found


def _of_fields(fields: dict[str, Any]) -> HandHistory:
    """A hand of PHH, without the user's own fields. Raises as `_of_site` does."""
    if fields.get(BOARD_CARDS, [*TEXAS]) != [*TEXAS]:
        raise ConfigError(f"Board cards by round are {fields[BOARD_CARDS]}, which is not hold'em.")
    return HandHistory(**{name: value for name, value in fields.items() if not name.startswith("_")})


def _own_hand(history: HandHistory, number: str) -> OwnHand:
    """A hand in big blinds. Raises ConfigError if it is no hold'em or if not two players see the flop."""
    if history.variant == "FT":
        raise ConfigError(_LIMIT)
    if history.variant != "NT":
        raise ConfigError(f"Variant {history.variant} is not hold'em.")
    if sum(map(bool, history.blinds_or_straddles or ())) != 2:
        raise ConfigError("Only hands with one small and one big blind are read.")
    count, unit = len(history.starting_stacks), float(max(list(history.blinds_or_straddles or ())[:2]))
    raised: list[int] = []
    streets: list[list[OwnAction]] = []
    seen: tuple[int, ...] = ()
    pot = stacks = 0.0
    for state, action in history.state_actions:
        words = (action or "").split()
        if words[:2] == ["d", "db"]:
            if not streets:
                seen = tuple(player for player, active in enumerate(state.statuses) if active)
                if len(seen) != 2:
                    raise ConfigError(f"{len(seen)} players see the flop.")
                pot = float(sum(pot.amount for pot in state.pots)) / unit
                stacks = min(float(state.stacks[player]) for player in seen) / unit
            streets.append([])
        elif len(words) > 1 and words[1] in (FOLDS, CALLS, RAISES):
            player = int(words[0][1:]) - 1
            if not streets and words[1] == RAISES:
                raised.append(player)
            elif streets:
                to = float(words[2]) / unit if words[1] == RAISES else 0.0
                streets[-1].append(OwnAction(int(player == seen[0]), words[1], to))
    if not seen:
        raise ConfigError("The hand ends before the flop.")
    last, first = seen[1], seen[0]  # seats are in the order in which they act after the flop
    dealt = [a.split() for a in history.actions if a.startswith(("d dh", "d db"))]
    holes = {int(words[2][1:]) - 1: words[3] for words in dealt if words[1] == "dh"}
    names = history.players or [f"p{player + 1}" for player in range(count)]
    level = min(len(raised), len(ROLES) - 1)
    cards = "".join(words[2] for words in dealt if words[1] == "db")
    known = re.findall("[^?]{2}", "".join([*holes.values(), cards]))
    if twice := [card for card, number in Counter(known).items() if number > 1]:
        raise ConfigError(f"The card {twice[0]} is dealt twice.")
    return OwnHand(
        number=number,
        names=(str(names[last]), str(names[first])),
        positions=(_position(last, count), _position(first, count)),
        roles=(_role(last, raised, level, count), _role(first, raised, level, count)),
        holes=tuple("" if "?" in holes.get(player, "?") else holes[player] for player in (last, first)),  # type: ignore[arg-type]
        pot=pot,
        stacks=stacks,
        board=" ".join(cards[i : i + 2] for i in range(0, len(cards), 2)),
        streets=tuple(map(tuple, streets)),
    )


def _position(seat: int, count: int) -> str:
    """The name of a seat, counted in the order after the flop."""
    if count == 2:
        return ("BB", "BTN")[seat]
    early = max(count - 6, 0)  # of six players the first is the lojack
    return ("SB", "BB", *_UTG[:early], *_LATE[len(_LATE) - (count - 3 - early) :], "BTN")[seat]


def _role(seat: int, raised: Sequence[int], level: int, count: int) -> str:
    if not raised:
        return "check" if _position(seat, count) == "BB" else "limp"
    return ROLES[level][seat == raised[-1]]


def find_hero(hands: Sequence[OwnHand], refused: Mapping[str, str], wanted: str | None = None) -> str:
    """The player to review: `wanted`, or the one whose cards are known most often.

    Raises ConfigError if there is no hand of such a player, with the reasons why hands are left out.
    """
    known = Counter(name for hand in hands for name, cards in zip(hand.names, hand.holes, strict=True) if cards)
    if not known or (wanted and wanted not in known):
        seen = f"{wanted} shows cards on no flop; {', '.join(known)} do." if known else "There is no hand to review."
        raise ConfigError(" ".join([seen, *reasons(refused)]))
    return wanted or known.most_common(1)[0][0]


def reasons(refused: Mapping[str, str]) -> list[str]:
    """A sentence for each reason why hands are left out, with their number."""
    return [f"Hands left out: {count}. {reason}" for reason, count in Counter(refused.values()).most_common()]
