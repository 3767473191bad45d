"""A person's seat against an agent: the hand that is on, the results so far, and what may be shown of them.

A hand is known from its seed, its number and its actions, and the seat stays on the server, so a reload or a lost
connection resumes it. An action says for which hand and which decision it is meant; one that comes again, or out of turn,
is refused and changes nothing. Until a hand is over, nothing that leaves the server depends on the agent's cards or on
public cards that have not been dealt.
"""

from __future__ import annotations

import math
import secrets
import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any

from deepcfr.evaluation.intervals import NORMAL_95
from deepcfr.games.cards import card_text
from deepcfr.play_costs import Costs
from deepcfr.play_hand import Cards, Hand, ListedHand, Step, deal_hand
from deepcfr.play_review import Decision, agents_range, decisions, luck_adjusted
from deepcfr.policies.base import Policy
from deepcfr.policies.ladder import LadderPolicy
from deepcfr.policies.query import round_name
from deepcfr.rng import key
from deepcfr.web.site import Refusal

MOST_SEATS = 2_000  # that a server remembers; the ones not used for longest are forgotten
LIKELIEST = 8  # hands of the agent's range that a review lists
_TOKEN_BYTES = 18


@dataclass
class Tally:
    """Mean and spread of numbers that are not kept (Welford 1962)."""

    count: int = 0
    mean: float = 0.0
    squares: float = 0.0  # sum of squared deviations from the mean

    def add(self, value: float) -> None:
        """Take one more number."""
        self.count += 1
        before = value - self.mean
        self.mean += before / self.count
        self.squares += before * (value - self.mean)

    @property
    def half(self) -> float | None:
        """Half the width of the mean's 95 % interval, the normal one; None before two numbers."""
        if self.count < 2:
            return None
        return NORMAL_95 * math.sqrt(self.squares / (self.count - 1) / self.count)

    def facts(self) -> dict[str, float | int | None]:
        """In thousandths of the unit, per hand."""
        half = self.half
        return {
            "hands": self.count,
            "total": self.mean * self.count,
            "mean_milli": 1000 * self.mean if self.count else None,
            "interval_milli": None if half is None else 1000 * half,
        }


@dataclass
class Seat:
    """One person against one agent, hand after hand in alternating positions."""

    agent: str  # the run's name
    policy: Policy | LadderPolicy
    costs: Costs | None  # None where the game has none
    seed: int | None = None  # the person's own, as for `deepcfr play --seed`; else every hand has a seed of its own
    raw: Tally = field(default_factory=Tally)
    adjusted: Tally = field(default_factory=Tally)
    lock: threading.RLock = field(default_factory=threading.RLock)

    def __post_init__(self) -> None:
        self._secret = secrets.randbits(128)
        self._deal(0)

    def _deal(self, number: int) -> None:
        # a seed that has been shown must not give away the hands to come, so each has one of its own
        seed = key(self._secret, "web", number) if self.seed is None else self.seed
        self.hand: Hand = deal_hand(self.policy, seed, number)
        self.result: tuple[float, float] | None = None
        self._review: list[Decision] | None = None
        self._proceed()

    def act(self, number: int, decision: int, token: str) -> None:
        """Take the person's action, and then the agent's as long as it is its turn.

        Raises Refusal with status 409 unless hand `number` waits for its `decision`-th action, and 400 for an action that
        is not legal.
        """
        with self.lock:
            hand = self.hand
            if number != hand.number:
                raise Refusal(409, f"The action is for hand {number + 1}, but hand {hand.number + 1} is on.")
            if hand.over:
                raise Refusal(409, f"Hand {number + 1} is over: ask for the next one.")
            if decision != len(hand.steps):
                raise Refusal(
                    409, f"The action is for decision {decision}, but hand {number + 1} waits for {len(hand.steps)}."
                )
            action = next((choice.action for choice in hand.choices() if choice.token == token), None)
            if action is None:
                legal = ", ".join(choice.token for choice in hand.choices())
                raise Refusal(400, f"That is no action here, where there are {legal}.")
            hand.act(action)
            self._proceed()

    def next_hand(self, number: int) -> None:
        """Deal the hand after hand `number`. Raises Refusal with status 409 unless that one is the last and over."""
        with self.lock:
            if number != self.hand.number:
                raise Refusal(409, f"Hand {self.hand.number + 1} is on, and not hand {number + 1}.")
            if not self.hand.over:
                raise Refusal(409, f"Hand {number + 1} is not over yet.")
            self._deal(number + 1)

    def _proceed(self) -> None:
        hand = self.hand
        while not hand.over and not hand.persons_turn:
            hand.act_for_agent()
        if hand.over:
            self.result = hand.won, luck_adjusted(hand)
            self.raw.add(self.result[0])
            self.adjusted.add(self.result[1])

    def state(self) -> dict[str, Any]:
        """All that the person may know now, as JSON can hold it."""
        with self.lock:
            hand, rules = self.hand, self.hand.rules
            turn = not hand.over
            return {
                "agent": self.agent,
                "game": rules.name,
                "unit": rules.unit,
                "milli_unit": rules.milli_unit,
                "hand": hand.number,
                "decision": len(hand.steps),
                "seat": hand.person,
                "first": hand.person == rules.first_player[0],
                "round": round_name(rules, hand.round),
                "cards": texts(hand, hand.hole(hand.person)),
                "board": texts(hand, hand.board),
                "board_size": sum(rules.board_cards),
                "pot": hand.pot,
                "chips": {"you": hand.chips[hand.person], "agent": hand.chips[1 - hand.person]},
                "to_call": hand.to_call if turn else 0.0,
                "actions": [{"token": choice.token, "name": choice.name} for choice in hand.choices()],
                "steps": [self._step(step) for step in hand.steps],
                "over": hand.over,
                "result": self._result() if hand.over else None,
                "session": {"raw": self.raw.facts(), "adjusted": self.adjusted.facts()},
            }

    def _step(self, step: Step) -> dict[str, Any]:
        hand = self.hand
        return {
            "who": "you" if step.player == hand.person else "agent",
            "round": round_name(hand.rules, step.round),
            "board": texts(hand, hand.board_at(step.round)),
            "name": step.name,
            "token": step.token,
        }

    def _result(self) -> dict[str, Any]:
        hand = self.hand
        assert self.result is not None
        return {
            "won": self.result[0],
            "adjusted": self.result[1],
            "showdown": hand.showdown,
            "agent_cards": texts(hand, hand.hole(1 - hand.person)),
            "seed": str(hand.seed),  # as text: it may not fit into a double
        }

    def review(self, number: int, exact: bool) -> dict[str, Any]:
        """What the agent would have done at each decision of the person in finished hand `number`, as JSON can hold it.

        With `exact` also what each choice cost, where the game allows that. Raises Refusal with status 409 if the hand is
        not the last one or not over.
        """
        with self.lock:
            hand = self.hand
            if number != hand.number or not hand.over:
                raise Refusal(409, f"Hand {number + 1} cannot be reviewed: it is not over, or not the last one.")
            if self._review is None:
                self._review = decisions(hand)
            found = self._review
        # the exact part takes time, so others who ask for this seat's state are not kept waiting
        likely = agents_range(hand, LIKELIEST) if exact else []
        return {
            "hand": number,
            "decisions": [self._decision(hand, decision, exact) for decision in found],
            "range": [{"cards": cards, "probability": share} for cards, share in likely],
            "note": self._note(hand) if exact else None,
        }

    def _decision(self, hand: Hand, decision: Decision, exact: bool) -> dict[str, Any]:
        values = self.costs.at(hand, decision.step) if exact and self.costs and isinstance(hand, ListedHand) else None
        step = hand.steps[decision.step]
        return {
            "round": round_name(hand.rules, step.round),
            "action": step.name,
            "agent": {decision.names[action]: share for action, share in decision.agent.items()},
            "values": None if values is None else {decision.names[action]: value for action, value in values.items()},
            "cost": None if values is None else max(values.values()) - values[decision.action],
        }

    def _note(self, hand: Hand) -> str | None:
        """Why the costs of some decisions are not there, as a sentence."""
        if self.costs is None:
            return "Exact costs are computed in games with a listed tree."
        if self.costs.reason is not None:
            return self.costs.reason
        rounds = {step.round for step in hand.steps if step.player == hand.person}
        if 0 in rounds and self.costs.has_round(0) and hand.rules.num_rounds > 1 and not self.costs.ready:
            done, total = self.costs.progress
            so_far = f" ({done:,} of {total:,} boards)" if total else ""
            return f"The costs of {round_name(hand.rules, 0)} choices are being computed for all boards{so_far}."
        if any(not self.costs.has_round(round_) for round_ in rounds):
            return "Costs are exact in the first and the last round only."
        return None


def texts(hand: Hand, cards: Cards) -> list[str]:
    """Cards as text, one by one."""
    return [card_text(hand.rules, card) for card in cards]


class Seats:
    """The seats of all persons by token and agent; no more than `MOST_SEATS`."""

    def __init__(self, most: int = MOST_SEATS) -> None:
        self._most = most
        self._seats: OrderedDict[tuple[str, str], Seat] = OrderedDict()
        self._lock = threading.Lock()

    def find(self, token: str | None, agent: str) -> Seat | None:
        """The seat of a person against an agent; None if there is none."""
        with self._lock:
            seat = self._seats.get((token or "", agent))
            if seat is not None and token:
                self._seats.move_to_end((token, agent))
            return seat

    def put(self, token: str, seat: Seat) -> None:
        """Keep a seat, in place of the person's earlier one against the same agent."""
        with self._lock:
            self._seats[token, seat.agent] = seat
            self._seats.move_to_end((token, seat.agent))
            while len(self._seats) > self._most:
                self._seats.popitem(last=False)

    def known(self, token: str | None) -> bool:
        """Whether a person has a seat anywhere, so that the token is one that this server gave."""
        with self._lock:
            return any(owner == token for owner, _ in self._seats)

    def __len__(self) -> int:
        return len(self._seats)


def new_token() -> str:
    """What a browser shows to get its seats back."""
    return secrets.token_urlsafe(_TOKEN_BYTES)
