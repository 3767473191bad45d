"""A client of the dealer protocol: it connects an agent to a dealer and plays until the dealer closes the connection.

An action depends on the seed and on the match state alone, not on earlier questions: at a node of hand `h` it uses the
uniform addressed by `(h, node)` in `key(seed, "acpc", "action")`. A mixture plays one of its policies through the whole
hand, drawn in `key(seed, "acpc", "draw")`. So a client that reconnects plays on as before.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch

from deepcfr.errors import GameError
from deepcfr.evaluation.intervals import Score, score_of
from deepcfr.games.betting import NOT_TERMINAL
from deepcfr.games.poker import PokerGame
from deepcfr.games.rules import PokerRules
from deepcfr.policies.base import Policy
from deepcfr.policies.mixture import MixturePolicy
from deepcfr.policies.query import hand_strategy
from deepcfr.protocols.acpc import (
    MOST_CHARACTERS,
    VERSION,
    MatchState,
    Move,
    ProtocolError,
    next_line,
    parse_match_state,
    send_line,
)
from deepcfr.protocols.acpc_game import (
    gain_of,
    move_of,
    position_of,
    read_betting,
    require_protocol,
    seen_cards,
)
from deepcfr.rng import addressed_uniforms, key
from deepcfr.sampling.external import sample_actions
from deepcfr.types import Say

FIRST_PAUSE = 0.2  # seconds before connecting again; it doubles with every attempt that fails
LONGEST_PAUSE = 5.0


class Bot(Protocol):
    """A player of match states."""

    rules: PokerRules  # of the dealer's game

    def answer(self, state: MatchState) -> Move | None:
        """The action in `state`; None if it is not this position's turn. Raises ProtocolError for another game's state."""

    def warm_up(self) -> None:
        """Decide once in every round, so that no hand waits for the compiler."""


@dataclass(frozen=True)
class Visit:
    """The client's result of a match; a hand whose end it never saw does not count."""

    score: Score
    slowest: float  # seconds that the slowest answer took
    connections: int


class Client:
    """Plays one match; reports answers that took longer than `seconds`, the dealer's limit."""

    def __init__(self, agent: Bot, host: str, port: int, retries: int, seconds: float, say: Say) -> None:
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


class ProtocolAgent:
    """The player of one seat. Raises GameError for policies of games that the protocol cannot express."""

    def __init__(self, policy: Policy, seed: int) -> None:
        if not isinstance(policy.game, PokerGame):
            raise GameError(f"The dealer protocol is for poker games, and '{policy.game.name}' is not one.")
        require_protocol(policy.game.rules)
        self.game, self.policy, self.seed = policy.game, policy, seed
        self.rules = self.game.rules

    def answer(self, state: MatchState) -> Move | None:
        """The action in `state`; None if it is not this position's turn.

        Raises ProtocolError if `state` is not one of the agent's game.
        """
        rules = self.game.rules
        betting, actions = read_betting(rules, state.betting)
        hole, board = seen_cards(rules, state)
        player = position_of(rules, state.position)
        if betting.ended != NOT_TERMINAL or betting.actor != player:
            return None
        node = 0
        for action in actions:
            node = int(self.game.tree.child[node, action])
        action = self._choose(node, hole, board, state.hand)
        return move_of(rules, betting, action)

    def warm_up(self) -> None:
        """Decide once in every round, so that no hand waits for the compiler."""
        rules, tree = self.game.rules, self.game.tree
        deal = tuple(range(rules.hole_cards + sum(rules.board_cards)))
        rounds = tree.round[: tree.num_decisions]
        for round_ in sorted(set(rounds.tolist())):
            node = int((rounds == round_).argmax())
            board = deal[rules.hole_cards :][: sum(rules.board_cards[: round_ + 1])]
            self._choose(node, deal[: rules.hole_cards], board, hand=0)

    def _choose(self, node: int, hole: Sequence[int], board: Sequence[int], hand: int) -> int:
        policy, number = self.policy, torch.tensor([hand])
        if isinstance(policy, MixturePolicy):
            policy = policy.draw(key(self.seed, "acpc", "draw"), hand)
        row = hand_strategy(policy, self.game.state(node), np.array([hole], np.uint8), board)
        chance = addressed_uniforms(key(self.seed, "acpc", "action"), number, torch.tensor([node]))
        return int(sample_actions(torch.from_numpy(row), chance)[0])
