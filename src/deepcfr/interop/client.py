"""A client of the dealer protocol: it connects an agent to a dealer and plays until the dealer closes the connection.

An action depends on the seed and on the match state alone, not on earlier questions (`policy.translation.TablePlayer`).
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass

from deepcfr.core.errors import GameError
from deepcfr.core.rng import key
from deepcfr.core.types import Say
from deepcfr.game.betting import NOT_TERMINAL
from deepcfr.game.poker import Poker
from deepcfr.game.rules import PokerRules
from deepcfr.interop.acpc import (
    MOST_CHARACTERS,
    VERSION,
    MatchState,
    Move,
    ProtocolError,
    gain_of,
    move_of,
    next_line,
    parse_match_state,
    position_of,
    read_betting,
    require_protocol,
    seen_cards,
    send_line,
)
from deepcfr.measure.intervals import Score, score_of
from deepcfr.policy.base import Policy
from deepcfr.policy.translation import TablePlayer, Translation, check_or_call, real_rules

FIRST_PAUSE = 0.2  # seconds before connecting again; it doubles with every attempt that fails
LONGEST_PAUSE = 5.0


class ProtocolAgent:
    """The player of one seat; in no-limit poker it translates bets.

    Raises GameError for policies of games that the protocol cannot express, and of limit games in no-limit poker.
    """

    def __init__(self, policy: Policy, seed: int, rules: PokerRules | None = None) -> None:
        """`rules` is the dealer's game, by default the policy's, with bets of any size if that is a game with bet sizes."""
        game = policy.game
        if not isinstance(game, Poker):
            raise GameError(f"The dealer protocol is for poker games, and '{game.name}' is not one.")
        free = game.rules.betting == "no-limit"
        self.rules = rules or (real_rules(policy) if free else game.rules)
        require_protocol(self.rules)
        translated = self.rules.betting == "no-limit"
        stream = "translate" if translated else "acpc"
        draws, actions = (key(seed, stream, purpose) for purpose in ("draw", "action"))
        translation = Translation(policy, self.rules, seed) if translated else None
        self.player = TablePlayer(policy, draws, actions, translation)
        self.translated: set[int] = set()  # the hands with a raise of a size that the agent's game does not have
        self.lost: set[int] = set()  # the hands in which the agent only checked and called in the end

    def answer(self, state: MatchState) -> Move | None:
        """The action in `state`; None if it is not this position's turn.

        Raises ProtocolError if `state` is not one of the dealer's game.
        """
        betting, actions = read_betting(self.rules, state.betting)
        hole, board = seen_cards(self.rules, state)
        player = position_of(self.rules, state.position)
        if betting.ended != NOT_TERMINAL or betting.actor != player:
            return None
        here = self.player.start()
        for action in actions:
            here = here.after(action)
        if self.player.translation:
            shadow = self.player.translation.follow(actions, player, state.hand)
            self.translated |= {state.hand} if shadow.translated else set()
            self.lost |= {state.hand} if shadow.lost else set()
        return move_of(self.rules, betting, self.player.choose(here, state.hand, hole, board))

    def warm_up(self) -> None:
        """Decide once in every round, so that no hand waits for the compiler."""
        rules, deck, state = self.rules, range(self.rules.num_cards), self.player.start()
        while not state.over:
            later = deck[rules.hole_cards :][: sum(rules.board_cards[: state.round + 1])]
            self.player.choose(state, 0, deck[: rules.hole_cards], later)
            state = state.after(check_or_call(state))

    def facts(self) -> dict[str, int]:
        """The numbers of hands with translated bets, and of those in which the agent lost its way, for JSON."""
        return {"translated_hands": len(self.translated), "lost_hands": len(self.lost)}

    def describe(self) -> str:
        """The facts as a sentence."""
        lost = f", and it only checked and called in the end of {len(self.lost):,} hands" if self.lost else ""
        name = self.player.policy.game.name
        return f"A bet had another size than those of {name} in {len(self.translated):,} hands{lost}."


@dataclass(frozen=True)
class Visit:
    """The client's result of a match; a hand whose end it never saw does not count."""

    score: Score
    slowest: float  # seconds that the slowest answer took
    connections: int


class Client:
    """Plays one match; reports answers that took longer than `seconds`, the dealer's limit."""

    def __init__(self, agent: ProtocolAgent, host: str, port: int, retries: int, seconds: float, say: Say) -> None:
        self.agent, self.host, self.port = agent, host, port
        self.retries, self.seconds, self.say = retries, seconds, say
        self._gains: dict[int, float] = {}  # units by hand; a dealer that sends an end again does not count it twice
        self._between_hands = False  # whether the last state seen was a hand's end
        self._heard = False  # whether this connection has said anything
        self._slowest = 0.0
        self._connections = 0

    async def play(self) -> Visit:
        """Play until the dealer hangs up after a hand.

        A connection that cannot be made, or breaks during a hand, is tried again `retries` times, with pauses that double.
        Raises ProtocolError if all of them fail, or the dealer plays another game.
        """
        self.agent.warm_up()
        failures = 0
        while True:
            self._heard = False
            try:
                await self._visit()
                if self._between_hands:
                    break
                problem = "the dealer hung up during a hand" if self._heard else "the dealer hung up at once"
            except UnicodeError as error:
                raise ProtocolError(f"'{self._peer}' is no address: {error}.") from error
            except OSError as error:
                problem = str(error.strerror or error)
            failures = 1 if self._heard else failures + 1
            if failures > self.retries:
                if self._between_hands:  # nothing is missing but the dealer's farewell
                    self.say(f"The connection to {self._peer} broke after a hand, and there is nobody any more.")
                    break
                raise ProtocolError(f"There is no match with {self._peer} after {failures} attempts: {problem}.")
            await asyncio.sleep(min(FIRST_PAUSE * 2.0 ** min(failures - 1, 100), LONGEST_PAUSE))
        score = score_of([self._gains[hand] for hand in sorted(self._gains)], self.agent.rules)
        return Visit(score, self._slowest, self._connections)

    @property
    def _peer(self) -> str:
        return f"{self.host}:{self.port}"

    async def _visit(self) -> None:
        """One connection, from the greeting to its end."""
        reader, writer = await asyncio.open_connection(self.host, self.port, limit=MOST_CHARACTERS)
        self._connections += 1
        try:
            await send_line(writer, VERSION)
            while (line := await next_line(reader, f"The dealer at {self._peer}")) is not None:
                self._heard = True
                if (answer := self._answer(parse_match_state(line))) is not None:
                    await send_line(writer, f"{line}:{answer}")
        finally:
            writer.close()

    def _answer(self, state: MatchState) -> str | None:
        """The action to send, if it is this client's turn; at a hand's end, records its gain."""
        start = time.perf_counter()
        move = self.agent.answer(state)
        taken = time.perf_counter() - start
        self._slowest = max(self._slowest, taken)
        if taken > self.seconds:
            self.say(f"The answer to hand {state.hand} took {taken:.1f} s, but the limit is {self.seconds:g} s.")
        gain = None if move else gain_of(self.agent.rules, state)
        self._between_hands = gain is not None
        if gain is not None:
            self._gains[state.hand] = gain / self.agent.rules.unit_chips
        return move.text if move else None
