"""The lines of the ACPC dealer protocol, version 2.0.0, as text and as data, and match states in a game's terms.

A match state is `MATCHSTATE:position:hand:betting:cards`, such as `MATCHSTATE:0:31:r300c/cr900:Kd2h|/8c8dJs`: the betting
of every round up to the current one, then the hole cards by position, omitted where they are hidden, and the board. A
client answers with the same text, a colon and its action. Lines end in CR LF; both sides ignore blank lines and those
that begin with `#` or `;`. Source: the protocol of the Annual Computer Poker Competition, 2.0.0 (project_acpc_server).

Positions are those of the competition's game definitions. With unequal blinds position 0 posts the larger one and acts last
before the flop (its "reverse blinds"), so it is player 1 of `PokerRules`; with antes position 0 is player 0. Decks of fewer
cards keep the highest ranks and the last suits: Leduc hold'em is played with queens, kings and aces of hearts and spades.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from deepcfr.core.errors import DeepCFRError, GameError
from deepcfr.game.betting import (
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
from deepcfr.game.hands import strength
from deepcfr.game.rules import RANK_SYMBOLS, SUIT_SYMBOLS, PokerRules

VERSION = "VERSION:2.0.0"
LINE_END = "\r\n"
MOST_CHARACTERS = 4096  # of a line; the longest betting of a listed tree takes some hundreds

_FIELDS = 5
_ACCEPTED_VERSION = re.compile(r"VERSION:2\.0\.[0-9]{1,9}")
# Ten digits hold any 32-bit number; ASCII keeps out the digits of other scripts.
_NUMBER = re.compile(r"[0-9]{1,10}")
_MOVE = re.compile(r"[fc]|r[0-9]{0,10}")
_CARD = re.compile(r"[2-9TJQKA][cdhs]")
Names = tuple[str, str]


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
