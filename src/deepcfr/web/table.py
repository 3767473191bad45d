"""A person's seat against an agent: the current hand, the results so far, and the state that may be shown.

Seed, number and actions determine a hand, and the seat stays on the server, so a reload or a lost connection resumes
it. An action names its hand and its decision; a repeated one, or one out of turn, is refused and changes nothing.
Before a hand has ended, no output of the server depends on the agent's cards or on public cards that have not been
dealt.
"""

from __future__ import annotations

import math
import secrets
import threading
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

from deepcfr.core.errors import CheckpointError
from deepcfr.core.rng import key
from deepcfr.core.types import CardTuple
from deepcfr.game.cards import card_text
from deepcfr.measure.intervals import NORMAL_95
from deepcfr.play.costs import Costs, note, review
from deepcfr.play.hand import (
    Choice,
    Decision,
    Hand,
    HistoryHand,
    Step,
    adjusted_result,
    agents_range,
    begin,
    decisions,
    round_of,
)
from deepcfr.policy.base import Policy
from deepcfr.policy.query import round_name
from deepcfr.web.ranges import seat_name
from deepcfr.web.site import RequestError

LIKELIEST = 8  # hands of the agent's range in a review


@dataclass
class SeatScore:
    """Running mean and variance (Welford 1962)."""

    count: int = 0
    mean: float = 0.0
    squares: float = 0.0  # sum of squared deviations from the mean

    def add(self, value: float) -> None:
        """Add a number."""
        self.count += 1
        before = value - self.mean
        self.mean += before / self.count
        self.squares += before * (value - self.mean)

    @property
    def half(self) -> float | None:
        """The half-width of the mean's normal 95 % interval; None for fewer than two numbers."""
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
class WebSeat:
    """One person against one agent, hand after hand in alternating positions."""

    agent: str  # the run's name
    policy: Policy
    costs: Costs | None  # None if the game has none
    seed: int | None = None  # the person's seed, as for `deepcfr play --seed`; None: a new seed for every hand
    raw: SeatScore = field(default_factory=SeatScore)
    adjusted: SeatScore = field(default_factory=SeatScore)
    lock: threading.RLock = field(default_factory=threading.RLock)
    kept: dict[str, Any] | None = None  # the facts of a seat that goes on
    first: tuple[int, int] | None = None  # seed and number of a hand that is dealt again before the session begins
    changed: Callable[[], None] = lambda: None  # called after every change, within the lock

    def __post_init__(self) -> None:
        self._secret = secrets.randbits(128)
        self.number = -1  # of the session's last hand
        if self.kept is not None:
            self._go_on(self.kept)
        elif self.first is not None:
            self._begin(*self.first, counts=False)
        else:
            self._deal(0)

    def _deal(self, number: int) -> None:
        # seeds are shown after each hand and must not reveal later hands, so every hand has its own
        seed = key(self._secret, "web", number) if self.seed is None else self.seed
        self.number = number
        self._begin(seed, number, counts=True)

    def _begin(self, seed: int, number: int, *, counts: bool) -> None:
        self.hand = begin(self.policy, seed, number)
        self.counts = counts  # whether the hand is one of the session, whose results are added up
        self.result: tuple[float, float] | None = None
        self._review: list[Decision] | None = None
        self._proceed()

    def facts(self) -> dict[str, Any]:
        """All that a seat needs to go on after a restart, as JSON values; whoever has them knows the cards to come."""
        with self.lock:
            hand = self.hand
            return {
                "agent": self.agent,
                "game": hand.rules.name,
                "seed": self.seed,
                "secret": self._secret,
                "number": self.number,
                "counts": self.counts,
                "hand": {"seed": hand.seed, "number": hand.number, "steps": [step.token for step in hand.steps]},
                "over": self.result is not None,
                "raw": asdict(self.raw),
                "adjusted": asdict(self.adjusted),
            }

    def _go_on(self, kept: dict[str, Any]) -> None:
        """Go on where another seat was: with its results, at its hand. Raises CheckpointError if that cannot be."""
        try:
            self.seed, self._secret, self.number, self.counts = (
                kept[k] for k in ("seed", "secret", "number", "counts")
            )
            self.raw, self.adjusted = SeatScore(**kept["raw"]), SeatScore(**kept["adjusted"])
            self.hand = begin(self.policy, kept["hand"]["seed"], kept["hand"]["number"])
            fits = kept["game"] == self.hand.rules.name
            for token in kept["hand"]["steps"] if fits else ():
                action = self.hand.read(token)
                fits = fits and action is not None
                if action is not None:
                    self.hand.act(action)
        except (KeyError, TypeError, ValueError) as error:
            raise CheckpointError(f"A kept seat against {self.agent} is damaged: {error!r}.") from error
        if not fits:
            raise CheckpointError(f"A kept seat against {self.agent} is of another game, so it begins again.")
        self.result = results(self.hand) if kept["over"] else None
        self._review = None

    def act(self, number: int, decision: int, token: str) -> None:
        """Apply the person's action, then the agent's actions up to the person's next turn.

        Raises Refusal with status 409 unless hand `number` waits for its `decision`-th action, and 400 for an action
        that is not legal.
        """
        with self.lock:
            hand = self.hand
            self._proceed()
            if number != hand.number:
                raise RequestError(409, f"'hand' of the action is {number}, but the current one is {hand.number}.")
            if hand.over:
                raise RequestError(409, f"Hand number {number} is over: ask for the next one.")
            if decision != len(hand.steps):
                raise RequestError(
                    409, f"The action is for decision {decision}, but the hand waits for {len(hand.steps)}."
                )
            action = hand.read(token)
            if action is None:
                legal = ", ".join(choice.token for choice in hand.choices())
                sizes = " and r with any size from {:g} to {:g}".format(*hand.sizes) if hand.sizes else ""
                raise RequestError(400, f"That action is not legal here; legal actions are {legal}{sizes}.")
            hand.act(action)
            try:
                self._proceed()
            finally:
                self.changed()

    def again(self, seed: int, number: int) -> None:
        """Deal hand `number` of `seed` outside the session. Raises Refusal with status 409 during another hand."""
        with self.lock:
            if not self.hand.over:
                raise RequestError(
                    409, f"Hand number {self.hand.number} is not over yet: end it before another one is dealt."
                )
            self._proceed()
            self._begin(seed, number, counts=False)
            self.changed()

    def next_hand(self, number: int) -> None:
        """Deal the session's next hand. Raises Refusal with status 409 unless hand `number` is the last one and over."""
        with self.lock:
            self._proceed()
            if number != self.hand.number:
                raise RequestError(409, f"'hand' is {number}, but the current one is {self.hand.number}.")
            if not self.hand.over:
                raise RequestError(409, f"Hand number {number} is not over yet.")
            self._deal(self.number + 1)
            self.changed()

    def _proceed(self) -> None:
        """Play for the agent up to the person's turn, and count the hand once at its end; go on where that failed."""
        if self.result:
            return
        hand = self.hand
        while not hand.over and not hand.persons_turn:
            hand.act_for_agent()
        if hand.over:
            self.result = results(hand)
            if self.counts:
                self.raw.add(self.result[0])
                self.adjusted.add(self.result[1])

    def state(self) -> dict[str, Any]:
        """The table as the person may see it now, as JSON values; amounts are in units.

        `decision` counts the actions so far, `seat` is the person's player number, `known` its infoset if the game is
        not poker, and `sizes` the totals to which the action `r` may lead in this round, null where sizes are not free.
        """
        with self.lock:
            self._proceed()
            hand, rules = self.hand, self.hand.rules
            return {
                "agent": self.agent,
                "game": rules.name,
                "unit": rules.unit,
                "milli_unit": rules.milli_unit,
                "hand": hand.number,
                "counts": self.counts,
                "decision": len(hand.steps),
                "seat": hand.person,
                "actions": [self._action(choice) for choice in hand.choices()],
                "sizes": None
                if hand.sizes is None
                else {"least": hand.sizes[0], "most": hand.sizes[1], "chip": 1 / rules.unit_chips},
                "steps": [self._step(step) for step in hand.steps],
                "over": hand.over,
                "result": self._result() if hand.over else None,
                "session": {"raw": self.raw.facts(), "adjusted": self.adjusted.facts()},
            } | (_shown(hand) if isinstance(hand, Hand) else _told(hand))

    def _action(self, choice: Choice) -> dict[str, Any]:
        hand, share, all_in = self.hand, None, False
        if isinstance(hand, Hand):
            share, stack = hand.pot_share(choice.action), hand.rules.stack
            all_in = bool(stack) and hand.state.after(choice.action).chips[hand.person] == stack
        return {"token": choice.token, "name": choice.name, "pot_share": share, "all_in": all_in}

    def _step(self, step: Step) -> dict[str, Any]:
        hand, own = self.hand, step.player == self.hand.person
        # what the agent did is not known to all players of a game that is no poker
        hidden = isinstance(hand, HistoryHand) and not own and not hand.over
        return {
            "who": "you" if own else "agent",
            "round": round_of(hand, step.round),
            "board": texts(hand, hand.board_at(step.round)) if isinstance(hand, Hand) else [],
            "name": "acts" if hidden else step.name,
            "token": "" if hidden else step.token,
        }

    def _result(self) -> dict[str, Any]:
        hand = self.hand
        assert self.result is not None
        return {
            "won": self.result[0],
            "adjusted": self.result[1],
            "showdown": isinstance(hand, Hand) and hand.state.showdown,
            "agent_cards": texts(hand, hand.hole(1 - hand.person)) if isinstance(hand, Hand) else [],
            "seed": str(hand.seed),  # as text: it may not fit into a double
        }

    def review(self, number: int, exact: bool) -> dict[str, Any]:
        """The agent's strategy at each decision of the person in finished hand `number`, as JSON values.

        With `exact` also the cost of each choice, if the game allows it. Raises Refusal with status 409 if the hand is
        not the last one or has not ended.
        """
        with self.lock:
            hand = self.hand
            if number != hand.number or not hand.over:
                raise RequestError(
                    409, f"Hand number {number} cannot be reviewed: it is not over, or not the last one."
                )
            if self._review is None:
                self._review = decisions(hand) if isinstance(hand, Hand) else hand.decisions()
            found = self._review
        # without a lock: the exact part takes long, and other requests for this seat must not wait
        likely = agents_range(hand, LIKELIEST) if exact and isinstance(hand, Hand) else []
        return {
            "hand": number,
            "decisions": (reviewed := review(hand, found, self.costs if exact else None)),
            "range": [{"cards": cards, "probability": share} for cards, share in likely],
            "note": note(hand, reviewed, self.costs) if exact and self.costs and isinstance(hand, Hand) else None,
        }


def _shown(hand: Hand) -> dict[str, Any]:
    """The part of the state of a table that only poker has."""
    rules, sides = hand.rules, {"you": hand.person, "agent": 1 - hand.person}
    stack = rules.stack / rules.unit_chips
    return {
        "known": None,
        "first": hand.person == rules.first_player[0],
        "round": round_name(rules, hand.state.round),
        "cards": texts(hand, hand.hole(hand.person)),
        "board": texts(hand, hand.board),
        "board_size": sum(rules.board_cards),
        "pot": hand.state.pot,
        "place": seat_name(rules, hand.person),
        "stacks": {side: stack - hand.chips[player] for side, player in sides.items()} if stack else None,
        "chips": {side: hand.chips[player] for side, player in sides.items()},
        "to_call": 0.0 if hand.over else hand.state.to_call,
    }


def _told(hand: HistoryHand) -> dict[str, Any]:
    """The same part for a game without cards, where the person is told its infoset."""
    none: dict[str, Any] = {"round": "", "cards": [], "board": [], "stacks": None, "chips": {"you": 0, "agent": 0}}
    none |= dict.fromkeys(("board_size", "pot", "to_call"), 0)
    return none | {"known": hand.known, "first": not hand.person, "place": f"Player {hand.person}"}


def results(hand: Hand | HistoryHand) -> tuple[float, float]:
    """The person's gain in a finished hand, and its mean over the agent's cards, which only poker has."""
    return hand.won, adjusted_result(hand) if isinstance(hand, Hand) else hand.won


def texts(hand: Hand, cards: CardTuple) -> list[str]:
    """CardTuple as text, one by one."""
    return [card_text(hand.rules, card) for card in cards]
