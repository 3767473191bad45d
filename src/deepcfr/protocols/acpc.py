"""The lines of the ACPC dealer protocol, version 2.0.0, as text and as data; the rules of the game play no part here.

A match state is `MATCHSTATE:position:hand:betting:cards`, such as `MATCHSTATE:0:31:r300c/cr900:Kd2h|/8c8dJs`: the betting
of every round up to the current one, then the hole cards by position, omitted where they are hidden, and the board. A
client answers with the same text, a colon and its action. Lines end in CR LF; both sides ignore blank lines and those
that begin with `#` or `;`. Source: the protocol of the Annual Computer Poker Competition, 2.0.0 (project_acpc_server).
"""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass

from deepcfr.errors import DeepCFRError

VERSION = "VERSION:2.0.0"
LINE_END = "\r\n"
MOST_CHARACTERS = 4096  # of a line; the longest betting of a listed tree takes some hundreds

_FIELDS = 5
_ACCEPTED_VERSION = re.compile(r"VERSION:2\.0\.[0-9]{1,9}")
# Ten digits hold any 32-bit number; ASCII keeps out the digits of other scripts.
_NUMBER = re.compile(r"[0-9]{1,10}")
_MOVE = re.compile(r"[fc]|r[0-9]{0,10}")
_CARD = re.compile(r"[2-9TJQKA][cdhs]")


class ProtocolError(DeepCFRError):
    """A peer breaks the protocol or the game's rules, or does not answer in time."""


@dataclass(frozen=True)
class Move:
    """One action: `f` fold, `c` call or check, `r` raise or bet."""

    letter: str
    size: int | None = None  # of a no-limit raise: what its player has put in after it, in the whole hand; else None

    @property
    def text(self) -> str:
        """The action as the protocol writes it, such as `c` or `r1200`."""
        return self.letter if self.size is None else f"{self.letter}{self.size}"


Betting = tuple[tuple[Move, ...], ...]
"""Actions by round, up to the current one."""


@dataclass(frozen=True)
class MatchState:
    """A hand of a two-player match as one position sees it; cards are texts such as `Kd`."""

    position: int  # 0 or 1
    hand: int  # its number
    betting: Betting
    holes: tuple[tuple[str, ...], tuple[str, ...]]  # by position, () where not shown
    board: tuple[tuple[str, ...], ...]  # new cards of every round from the second on, up to the current one

    @property
    def text(self) -> str:
        """The line that the dealer sends, without its end."""
        return (
            f"MATCHSTATE:{self.position}:{self.hand}:{betting_text(self.betting)}:{cards_text(self.holes, self.board)}"
        )


def betting_text(betting: Betting) -> str:
    """The betting as the protocol writes it, such as `r300c/cr900`."""
    return "/".join("".join(move.text for move in moves) for moves in betting)


def cards_text(holes: tuple[tuple[str, ...], ...], board: tuple[tuple[str, ...], ...]) -> str:
    """Hole cards by position and the board as the protocol writes them, such as `Kd2h|/8c8dJs`."""
    return "/".join(["|".join("".join(hole) for hole in holes), *("".join(cards) for cards in board)])


def parse_match_state(text: str) -> MatchState:
    """The match state in a line without its end.

    Raises ProtocolError with one sentence about the first thing wrong.
    """
    fields = text.split(":")
    if len(fields) != _FIELDS or fields[0] != "MATCHSTATE":
        raise ProtocolError(f"{quote(text)} is no match state: write MATCHSTATE:position:hand:betting:cards.")
    _, position, hand, betting, cards = fields
    if position not in ("0", "1"):
        raise ProtocolError(f"The position in {quote(text)} is {quote(position)}, but must be 0 or 1.")
    if not _NUMBER.fullmatch(hand):
        raise ProtocolError(f"The hand number in {quote(text)} is {quote(hand)}, but must be a whole number.")
    moves = tuple(_parse_moves(part, text) for part in betting.split("/"))
    holes, board = _parse_cards(cards, text)
    if len(moves) != len(board) + 1:
        raise ProtocolError(f"{quote(text)} has betting of {len(moves)} rounds, but cards of {len(board) + 1}.")
    return MatchState(int(position), int(hand), moves, holes, board)


def parse_move(text: str) -> Move:
    """The action `f`, `c`, `r`, or `r` with a number. Raises ProtocolError for anything else."""
    if not _MOVE.fullmatch(text):
        raise ProtocolError(f"{quote(text)} is no action: write f, c, r, or r and a number of chips in no-limit games.")
    return Move(text[0], int(text[1:]) if len(text) > 1 else None)


def is_version(text: str) -> bool:
    """Whether a client's first line is one of this protocol."""
    return _ACCEPTED_VERSION.fullmatch(text) is not None


def is_comment(text: str) -> bool:
    """Whether both sides ignore the line."""
    return not text.strip() or text[0] in "#;"


async def next_line(reader: asyncio.StreamReader, peer: str) -> str | None:
    """The next line that says something, without its end; None if the connection ended instead.

    The reader's limit must be MOST_CHARACTERS. Raises ProtocolError for a line that is longer, or is not ASCII text, and
    OSError if the connection breaks.
    """
    while True:
        try:
            raw = await reader.readline()
        except ValueError as error:
            raise ProtocolError(f"{peer} sent a line of more than {MOST_CHARACTERS:,} characters.") from error
        if not raw.endswith(b"\n"):
            return None
        try:
            line = raw.decode("ascii").rstrip("\r\n")
        except UnicodeDecodeError as error:
            raise ProtocolError(f"{peer} sent {raw[:60]!r}, which is not ASCII text.") from error
        if not is_comment(line):
            return line


async def send_line(writer: asyncio.StreamWriter, text: str) -> None:
    """Send a line. Raises OSError if the connection is broken."""
    writer.write((text + LINE_END).encode("ascii"))
    await writer.drain()


def quote(text: str) -> str:
    """Quote `text` in a sentence, shortened if it is long."""
    return repr(text if len(text) <= 120 else text[:117] + "...")


def _parse_moves(part: str, text: str) -> tuple[Move, ...]:
    found = _MOVE.findall(part)
    if "".join(found) != part:
        raise ProtocolError(f"The betting {quote(part)} in {quote(text)} is not made of f, c and r with whole numbers.")
    return tuple(parse_move(move) for move in found)


def _parse_cards(cards: str, text: str) -> tuple[tuple[tuple[str, ...], tuple[str, ...]], tuple[tuple[str, ...], ...]]:
    first, *later = cards.split("/")
    holes = first.split("|")
    if len(holes) != 2:
        raise ProtocolError(f"{quote(text)} has hole cards of {len(holes)} players, but a match has 2, parted by '|'.")
    board = tuple(_cards(part, text) for part in later)
    shown = (_cards(holes[0], text), _cards(holes[1], text))
    seen = [card for part in (*shown, *board) for card in part]
    if len(set(seen)) != len(seen):
        twice = next(card for card in seen if seen.count(card) > 1)
        raise ProtocolError(f"The card {twice} stands twice in {quote(text)}.")
    return shown, board


def _cards(part: str, text: str) -> tuple[str, ...]:
    found = _CARD.findall(part)
    if "".join(found) != part:
        raise ProtocolError(f"The cards {quote(part)} in {quote(text)} are not ranks 2 to A with suits c, d, h or s.")
    return tuple(found)
