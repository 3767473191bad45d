"""A client of Slumbot's HTTP protocol: heads-up no-limit hold'em with blinds of 50 and 100 and 20,000 chips each hand.

The client asks for a hand (`new_hand`) and then sends one action at a time (`act`), both as JSON. Answers have the whole
betting, such as `b200c/kk/kb300`: `k` checks, `c` calls, `f` folds, and `bX` bets or raises to X chips in the round.
`client_pos` is 0 for the big blind; `winnings` stands in the answer that ends a hand. Source: the sample program that
slumbot.com publishes.
"""

from __future__ import annotations

import json
import re
import urllib.error
import urllib.request
from collections.abc import Callable
from http.client import HTTPException
from threading import TIMEOUT_MAX
from typing import Any

from deepcfr.core.errors import ConfigError, GameError, require_least
from deepcfr.game.betting import NOT_TERMINAL, SHOWDOWN, BettingState, first_state, next_state
from deepcfr.game.rules import PokerRules, no_limit
from deepcfr.interop.acpc import Betting, MatchState, Move, ProtocolError, action_of, gain_of, quote, read_betting
from deepcfr.interop.client import ProtocolAgent
from deepcfr.measure.intervals import Score, score_of
from deepcfr.policy.base import Policy
from deepcfr.policy.translation import real_rules

STACK = 20_000
BLINDS = (50, 100)
MOST_BYTES = 1 << 16  # of an answer
_TEXAS = (0, 3, 1, 1)
_CARD = re.compile(r"[2-9TJQKA][cdhs]")
_MOVES = re.compile(r"b[0-9]{1,9}|[kcf]")


def slumbot_rules(policy: Policy) -> PokerRules:
    """The rules of Slumbot's game for a policy of no-limit hold'em. Raises GameError for policies of other games."""
    rules = real_rules(policy)
    cards = (rules.num_ranks, rules.num_suits, rules.hole_cards, rules.board_cards)
    if cards != (13, 4, 2, _TEXAS) or rules.blinds != BLINDS:
        raise GameError(
            f"Slumbot plays no-limit hold'em with blinds of 50 and 100, and '{policy.game.name}' is not that."
        )
    return no_limit(rules, STACK)


class Slumbot:
    """A session with a server at an address that the user gives. Raises ConfigError for what is no such address."""

    def __init__(self, policy: Policy, address: str, seed: int = 0, seconds: float = 30.0) -> None:
        if not re.fullmatch(r"https?://[^\s/]\S*", address):
            raise ConfigError(f"--address must begin with http:// or https://, but is '{address}'.")
        if not 0 < seconds <= TIMEOUT_MAX:
            raise ConfigError(f"--seconds must be more than 0 and at most {TIMEOUT_MAX:g}, but is {seconds:g}.")
        self.rules = slumbot_rules(policy)
        self.agent = ProtocolAgent(policy, seed, self.rules)
        self.address, self.seconds = address.rstrip("/"), seconds
        self._token: str | None = None

    def play(self, hands: int, on_hand: Callable[[int], None] | None = None) -> Score:
        """Play hands one after another; `on_hand` gets the number of finished ones.

        Raises ProtocolError if the server cannot be reached, breaks its protocol or counts other chips, and ConfigError
        for fewer than one hand.
        """
        require_least(1, {"--hands": hands})
        self.agent.warm_up()
        won: list[float] = []
        for number in range(hands):
            try:
                won.append(self._play_hand(number) / self.rules.unit_chips)
            except ProtocolError as error:
                so_far = f" The {number:,} hands before brought {sum(won):g} {self.rules.unit}." if won else ""
                raise ProtocolError(f"Hand {number + 1}: {error}{so_far}") from error
            if on_hand:
                on_hand(number + 1)
        return score_of(won, self.rules)

    def _play_hand(self, number: int) -> int:
        """The client's gain in chips."""
        answer = self._ask("new_hand", {})
        while answer.get("winnings") is None:
            state = read_answer(self.rules, answer, number)
            move = self.agent.answer(state)
            if move is None:
                raise ProtocolError(f"The server waits after {quote(answer['action'])}, where it is not our turn.")
            betting, _ = read_betting(self.rules, state.betting)
            answer = self._ask("act", {"incr": _increment(betting, move)})
        return self._winnings(answer, number)

    def _winnings(self, answer: dict[str, Any], number: int) -> int:
        won, state = answer["winnings"], read_answer(self.rules, answer, number)
        if isinstance(won, bool) or not isinstance(won, int):
            raise ProtocolError(f"'winnings' is {quote(str(won))}, and must be a whole number.")
        betting, _ = read_betting(self.rules, state.betting)
        if betting.ended == NOT_TERMINAL:
            raise ProtocolError(f"The server ends the hand after {quote(answer['action'])}, where it is not over.")
        hidden = betting.ended == SHOWDOWN and not state.holes[1 - state.position]
        if not hidden and (counted := gain_of(self.rules, state)) != won:
            raise ProtocolError(f"The server counts {won} chips where its cards and actions bring {counted}.")
        return won

    def _ask(self, endpoint: str, body: dict[str, Any]) -> dict[str, Any]:
        """The answer to a request; it may bring a new token."""
        if self._token is not None:
            body = body | {"token": self._token}
        try:
            request = urllib.request.Request(
                f"{self.address}/{endpoint}", json.dumps(body).encode(), {"Content-Type": "application/json"}
            )
            with _OPENER.open(request, timeout=self.seconds) as reply:
                raw = reply.read(MOST_BYTES + 1)
        except urllib.error.HTTPError as error:
            raise ProtocolError(f"{self.address}/{endpoint} answers {error.code} {error.reason}.") from error
        except (OSError, HTTPException, ValueError) as error:  # ValueError: an address that cannot be parsed
            reason = getattr(error, "reason", None) or error
            reason = getattr(reason, "strerror", None) or reason
            raise ProtocolError(f"{self.address} cannot be reached: {reason}.") from error
        if len(raw) > MOST_BYTES:
            raise ProtocolError(f"The server sent more than {MOST_BYTES:,} bytes.")
        try:
            answer = json.loads(raw)
        except (ValueError, RecursionError) as error:
            raise ProtocolError(f"The server sent {raw[:60]!r}, which is not JSON.") from error
        if not isinstance(answer, dict):
            raise ProtocolError(f"The server sent {raw[:60]!r}, which is no JSON object.")
        if "error_msg" in answer:
            raise ProtocolError(f"The server says: {quote(str(answer['error_msg']))}")
        if isinstance(answer.get("token"), str):
            self._token = answer["token"]
        return answer


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Follows no answer to another address."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


_OPENER = urllib.request.build_opener(_NoRedirects)


def read_answer(rules: PokerRules, answer: dict[str, Any], hand: int) -> MatchState:
    """The state in an answer, as the dealer protocol has it. Raises ProtocolError with the first field that is wrong."""
    position, action = answer.get("client_pos"), answer.get("action")
    if isinstance(position, bool) or position not in (0, 1):
        raise ProtocolError(f"'client_pos' is {quote(str(position))}, and must be 0 or 1.")
    if not isinstance(action, str):
        raise ProtocolError(f"'action' is {quote(str(action))}, and must be a text.")
    betting = _read_action(rules, action)
    hole, board = _cards(answer, "hole_cards"), _cards(answer, "board")
    theirs = _cards(answer, "bot_hole_cards") if answer.get("bot_hole_cards") else ()
    sizes = rules.board_cards[1 : len(betting)]
    if len(board) != sum(sizes):
        raise ProtocolError(f"'board' has {len(board)} cards after {quote(action)}, and must have {sum(sizes)}.")
    seen = [*hole, *theirs, *board]
    if len(set(seen)) != len(seen):
        raise ProtocolError(f"A card stands twice in {quote(' '.join(seen))}.")
    shown, rest = [], board
    for size in sizes:
        shown.append(rest[:size])
        rest = rest[size:]
    holes = (hole, theirs) if position == 0 else (theirs, hole)
    return MatchState(int(position), hand, betting, holes, tuple(shown))


def _cards(answer: dict[str, Any], field: str) -> tuple[str, ...]:
    cards = answer.get(field)
    if not isinstance(cards, list) or not all(isinstance(card, str) and _CARD.fullmatch(card) for card in cards):
        raise ProtocolError(f"'{field}' is {quote(str(cards))}, and must be a list of cards such as \"Kd\".")
    return tuple(cards)


def _read_action(rules: PokerRules, text: str) -> Betting:
    """The betting in Slumbot's notation."""
    state, rounds = first_state(rules), list[tuple[Move, ...]]()
    for part in text.split("/"):
        tokens = _MOVES.findall(part)
        if "".join(tokens) != part:
            raise ProtocolError(f"'action' is {quote(text)}, and must be made of k, c, f and b with chips.")
        base, moves = state.before, list[Move]()
        for token in tokens:
            if state.ended != NOT_TERMINAL:
                raise ProtocolError(f"'action' is {quote(text)}, which goes on after the hand is over.")
            if token in "kc" and (token == "k") != (state.to_call == 0):
                raise ProtocolError(f"'action' is {quote(text)}, with {token} where there is no such action.")
            move = Move("r", int(token[1:]) + base) if token[0] == "b" else Move("f" if token == "f" else "c")
            moves.append(move)
            state = next_state(rules, state, action_of(rules, state, move))
        rounds.append(tuple(moves))
    if state.ended == SHOWDOWN:  # after an all-in call the rounds without betting may be left out
        rounds += [()] * (rules.num_rounds - len(rounds))
    read_betting(rules, tuple(rounds))  # its rounds are where they must be
    return tuple(rounds)


def _increment(betting: BettingState, move: Move) -> str:
    """Our action in Slumbot's notation."""
    if move.size is None:
        return "f" if move.letter == "f" else "c" if betting.to_call else "k"
    return f"b{move.size - betting.before}"
