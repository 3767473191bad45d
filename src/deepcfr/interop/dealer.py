"""A dealer of the protocol: it deals, asks two clients for their actions, and counts the chips.

Only the cards are random: hand `h` is dealt from `key(seed, "dealer", "deal")`, whoever plays. The first bot is
player 0 in even hands and the second one in odd hands. In a duplicate match the same cards come once more after the last
hand, with the seats exchanged.

A bot that breaks the protocol or the rules, or does not answer in time, ends the match: the dealer does not fold for it. A
bot that loses its connection may reconnect within the time limit; the dealer then asks it again.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from deepcfr.core.errors import ConfigError, require_least
from deepcfr.core.rng import key
from deepcfr.game.betting import NOT_TERMINAL, SHOWDOWN, BettingState, first_state, next_state
from deepcfr.game.cards import deal_cards
from deepcfr.game.rules import PokerRules
from deepcfr.interop.acpc import (
    MOST_CHARACTERS,
    VERSION,
    MatchState,
    Names,
    PlayedHand,
    ProtocolError,
    action_of,
    betting_of,
    board_by_round,
    card_names,
    gains,
    is_version,
    next_line,
    parse_move,
    position_of,
    quote,
    require_protocol,
    send_line,
)
from deepcfr.measure.intervals import Score, score_of

OnHand = Callable[[PlayedHand], None]
_Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@dataclass(frozen=True)
class Terms:
    """The number of hands and the limits of a match. Raises ConfigError for impossible values."""

    hands: int  # deals
    seed: int = 0
    duplicate: bool = False  # each deal is played in both seats
    seconds: float = 60.0  # to connect, and for every answer

    def __post_init__(self) -> None:
        require_least(1, {"--hands": self.hands})
        require_least(0, {"--seed": self.seed})
        if not self.seconds > 0:
            raise ConfigError(f"--seconds must be more than 0, but is {self.seconds:g}.")

    @property
    def played(self) -> int:
        """All hands, the repeated ones of a duplicate match included."""
        return 2 * self.hands if self.duplicate else self.hands

    def deal(self, number: int) -> tuple[int, int]:
        """The deal of hand `number`, and the bot that is player 0 in it."""
        index = number % self.hands
        return index, (index + number // self.hands) % 2


@dataclass(frozen=True)
class DealtResult:
    """A match from the first bot's side."""

    names: Names  # of the bots
    score: Score
    terms: Terms
    seconds: float

    @property
    def line(self) -> str:
        """The line that ends the dealer's log, `SCORE:chips:names`."""
        return f"SCORE:{self.score.chips:g}|{0.0 - self.score.chips:g}:{self.names[0]}|{self.names[1]}"

    def describe(self) -> str:
        """The match in words."""
        kind = "each deal in both seats, " if self.terms.duplicate else ""
        players = f"{self.names[0]} against {self.names[1]} at {self.score.game}"
        return f"{players}: {self.score.describe()} ({kind}seed {self.terms.seed})."

    def facts(self) -> dict[str, Any]:
        """The match as data for JSON."""
        return self.score.facts() | {
            "players": list(self.names),
            "duplicate": self.terms.duplicate,
            "seed": self.terms.seed,
            "seconds": self.seconds,
        }


class Seat:
    """A bot's seat: a port that the bot connects to, and may reconnect to."""

    def __init__(self, name: str, seconds: float) -> None:
        self.name, self.seconds = name, seconds
        self.port = 0
        self._server: asyncio.Server | None = None
        self._arrivals: asyncio.Queue[_Connection | ProtocolError] = asyncio.Queue()
        self._connection: _Connection | None = None

    async def open(self, host: str, port: int) -> None:
        """Listen, on a free port if `port` is 0. Raises ConfigError if that port cannot be had."""
        try:
            self._server = await asyncio.start_server(self._welcome, host, port, limit=MOST_CHARACTERS)
        except (OSError, OverflowError, UnicodeError) as error:
            raise ConfigError(f"Nobody can listen on {host}:{port} for {self.name}: {error}.") from error
        self.port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        """Hang up and stop listening."""
        if self._connection:
            self._connection[1].close()
        if self._server:
            self._server.close()

    async def _welcome(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Take a connection if its first line is the protocol's; it replaces an earlier one that may be dead."""
        try:
            async with asyncio.timeout(self.seconds):
                greeting = await next_line(reader, self.name)
        except (OSError, TimeoutError):
            greeting = None
        except ProtocolError as error:
            self._arrivals.put_nowait(error)
            return
        if greeting is None:  # somebody who said nothing is no bot yet
            writer.close()
        elif is_version(greeting):
            if self._connection:
                self._connection[1].close()
            self._arrivals.put_nowait((reader, writer))
        else:
            self._arrivals.put_nowait(
                ProtocolError(f"{self.name} began with {quote(greeting)}, but this dealer speaks {VERSION}.")
            )

    async def connect(self) -> _Connection:
        """The bot's connection, waited for if there is none. Raises ProtocolError if none comes in time."""
        if self._connection is None or not self._arrivals.empty():
            try:
                async with asyncio.timeout(self.seconds):
                    arrival = await self._arrivals.get()
            except TimeoutError as error:
                raise ProtocolError(f"{self.name} did not connect within {self.seconds:g} s.") from error
            if isinstance(arrival, ProtocolError):
                raise arrival
            self._connection = arrival
        return self._connection

    async def tell(self, text: str) -> None:
        """Send a state that needs no answer; a broken connection shows when the bot is asked next."""
        with suppress(OSError):
            await send_line((await self.connect())[1], text)

    async def ask(self, text: str) -> str:
        """The bot's answer to a state, asked again on a new connection if this one breaks.

        Raises ProtocolError if it does not come in time.
        """
        while True:
            reader, writer = await self.connect()
            answer: str | None = None
            try:
                async with asyncio.timeout(self.seconds):
                    await send_line(writer, text)
                    answer = await next_line(reader, self.name)
            except TimeoutError as error:
                raise ProtocolError(f"{self.name} did not answer {quote(text)} within {self.seconds:g} s.") from error
            except OSError:
                pass  # the same as an end of the connection: the bot may come back
            if answer is not None:
                return answer
            writer.close()
            if self._connection is not None and self._connection[1] is writer:
                self._connection = None


class Dealer:
    """A match between two bots by name."""

    def __init__(self, rules: PokerRules, names: Names, terms: Terms) -> None:
        require_protocol(rules)
        self.rules, self.names, self.terms = rules, names, terms
        self.seats = (Seat(names[0], terms.seconds), Seat(names[1], terms.seconds))

    async def close(self) -> None:
        """Hang up."""
        for seat in self.seats:
            await seat.close()

    async def play(self, on_hand: OnHand) -> DealtResult:
        """Play the whole match; `on_hand` gets every hand when it is over.

        Raises ProtocolError for a bot that breaks protocol or rules, naming the bot.
        """
        start = time.perf_counter()
        await asyncio.gather(*(seat.connect() for seat in self.seats))
        won = []
        for number in range(self.terms.played):
            hand, first = await self._play_hand(number)
            won.append(gains(self.rules, hand)[first] / self.rules.unit_chips)
            on_hand(hand)
        score = score_of(won, self.rules, self.terms.duplicate)
        return DealtResult(self.names, score, self.terms, time.perf_counter() - start)

    async def _play_hand(self, number: int) -> tuple[PlayedHand, int]:
        """Hand `number`, and which player the first bot is in it."""
        deal, bot = self.terms.deal(number)
        seats = (self.seats[bot], self.seats[1 - bot])
        rules, hole = self.rules, self.rules.hole_cards
        slots = 2 * rules.hole_cards + sum(rules.board_cards)
        stream = np.uint64(key(self.terms.seed, "dealer", "deal"))
        cards = deal_cards(1, stream, deal, rules.num_cards, slots)[0].tolist()
        holes, board = (tuple(cards[:hole]), tuple(cards[hole : 2 * hole])), tuple(cards[2 * hole :])
        state = first_state(rules)
        actions: list[int] = []
        while True:
            texts = list(self._views(number, state, actions, holes, board))
            if state.ended != NOT_TERMINAL:
                break
            await seats[1 - state.actor].tell(texts[1 - state.actor])
            action = await self._ask(seats[state.actor], texts[state.actor], state)
            actions.append(action)
            state = next_state(rules, state, action)
        for seat, text in zip(seats, texts, strict=True):
            await seat.tell(text)
        names = (seats[0].name, seats[1].name)
        dealt = board[: sum(rules.board_cards[: state.round + 1])]
        return PlayedHand(number, names, holes, dealt, tuple(actions)), bot

    def _views(
        self,
        number: int,
        state: BettingState,
        actions: list[int],
        holes: tuple[tuple[int, ...], tuple[int, ...]],
        board: tuple[int, ...],
    ) -> Iterator[str]:
        """The match states of player 0 and player 1, as lines."""
        rules = self.rules
        betting, shown = betting_of(rules, actions), board_by_round(rules, board, state.round)
        for player in (0, 1):
            seen = [
                card_names(rules, holes[other]) if other == player or state.ended == SHOWDOWN else ()
                for other in (position_of(rules, position) for position in (0, 1))
            ]
            yield MatchState(position_of(rules, player), number, betting, (seen[0], seen[1]), shown).text

    async def _ask(self, seat: Seat, text: str, state: BettingState) -> int:
        """The action of the bot to act, which must answer the state that it was sent."""
        answer = await seat.ask(text)
        echo, _, move = answer.rpartition(":")
        if echo != text:
            raise ProtocolError(
                f"{seat.name} answered {quote(answer)}, but an answer to {quote(text)} is that line, a colon and an action."
            )
        try:
            return action_of(self.rules, state, parse_move(move))
        except ProtocolError as error:
            raise ProtocolError(f"{seat.name} answered {quote(answer)}: {error}") from error
