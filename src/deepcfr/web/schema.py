"""Requests and responses of the API as records, from which `/api/openapi.json` is made."""

from __future__ import annotations

from math import floor, log10
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StrictInt, model_validator

from deepcfr.defaults import SPOT_EXPLOITABILITY, SPOT_ITERATIONS, SPOT_SIZES

Probabilities = dict[str, float]
Number = Annotated[StrictInt, Field(ge=0, le=2**53)]
MOST_SEED = 2**64 - 1
Hand = Annotated[str, Field(pattern="^([2-9TJQKA][cdhs]){2}$")]
Seat = Literal["dealer", "big blind"]
BySeat = Annotated[dict[Seat, Annotated[dict[Hand, float], Field(min_length=1)]], Field(min_length=2)]
_RANGE = 40_000  # most characters of a range, which may have a weight for every hand


def _digits(value: object) -> object:
    """Read a seed from text, as it is shown: a number of JSON loses the last digits of a large one."""
    return int(value) if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= 20 else value


Seed = Annotated[StrictInt, Field(ge=0, le=MOST_SEED), BeforeValidator(_digits)]


class _Request(BaseModel):
    model_config = ConfigDict(extra="forbid")


class SitDown(_Request):
    """Request for a seat against an agent; it replaces an earlier one against the same agent."""

    seed: Seed | None = Field(
        None, description="for the hands of `deepcfr play --seed`, also as text; without it every hand has its own"
    )
    hand: Number | None = Field(None, description="deal this hand of `seed` again first; its result does not count")

    @model_validator(mode="after")
    def _check(self) -> SitDown:
        if self.hand is not None and self.seed is None:
            raise ValueError("a hand that is dealt again needs its seed")
        return self


class Action(_Request):
    """An action of the person. It names its decision and is refused out of turn, so it can be sent again safely."""

    hand: Number = Field(description="the `hand` of the state that the action answers")
    decision: Number = Field(description="the `decision` of that state")
    action: str = Field(max_length=200, description="the `token` of one of its `actions`, or `r` and a size")


class NextHand(_Request):
    """Request for the next hand after hand `hand` has ended."""

    hand: Number


class Problem(BaseModel):
    """The reason why a request was refused."""

    error: str = Field(description="one sentence")


class AgentFacts(BaseModel):
    """An agent of this server."""

    name: str
    game: str
    title: str = Field(description="the game's name in words")
    about: str = Field(description="its cards and bets")
    strength: str = Field(description="what a perfect opponent wins from the agent, as far as it was measured")
    made: str = Field(description="how it was made")
    method: str
    browsable: bool = Field(description="whether its strategy can be shown")


class ReviewedDecision(BaseModel):
    """A decision of the person, and the agent's strategy with the same cards."""

    round: str
    action: str
    agent: Probabilities
    values: Probabilities | None = Field(
        description="the mean gain after each action against the agent's range: the most that can be won where it is "
        "exact, else an estimate if both play on as the agent does; null if it is not known"
    )
    cost: float | None = Field(description="the best action's value less that of the one chosen")
    exact: bool | None = Field(description="whether values are exact; null without values")
    intervals: dict[str, float] | None = Field(description="half the width of each value's 95 % interval, 0 if exact")
    cost_interval: float | None = Field(description="half the width of the cost's 95 % interval, 0 if it is exact")


class RangeHand(BaseModel):
    """A hand that the agent may have held."""

    cards: str
    probability: float


class Review(BaseModel):
    """The review of a finished hand."""

    hand: int
    decisions: list[ReviewedDecision]
    range: list[RangeHand] = Field(description="the likeliest hands of the agent at the end")
    note: str | None


class StrategyFacts(BaseModel):
    """An agent's strategy in a situation; amounts are in units."""

    game: str
    unit: str
    policy: str
    situation: str
    player: int
    round: str
    pot: float
    to_call: float
    probabilities: Probabilities


class SpotLock(BaseModel):
    """A decision that is played as given: the frequencies of all hands, or the probabilities of each."""

    model_config = ConfigDict(extra="ignore", allow_inf_nan=False)

    line: str = Field(max_length=400)
    player: Seat | None = Field(default=None, description="who acts there; anybody else is refused")
    frequencies: Probabilities | None = None
    hands: dict[Hand, list[float]] | None = None


class SpotWish(_Request):
    """A spot to solve, as for `deepcfr spot`; what is null is as `agent` has it after the betting `line`."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    board: str = Field(max_length=40, description="three to five cards")
    pot: float | None = Field(None, description="in any unit, such as big blinds or chips")
    stacks: float | None = Field(None, description="what each player has left, in the unit of the pot")
    dealer: str | None = Field(None, max_length=_RANGE, description="a range such as 77+,A5s-A2s,KQo:0.5")
    big_blind: str | None = Field(None, max_length=_RANGE, description="a range")
    agent: str | None = Field(None, max_length=100, description="an agent of this server that plays hold'em")
    line: str = Field("", max_length=200, description="the betting before, rounds apart by '/'")
    sizes: str = Field(SPOT_SIZES, max_length=2_000)
    rake: float = Field(0.0, description="percent of the final pot that the house takes from its winner")
    cap: float | None = Field(None, description="most of the rake, in the unit of the pot")
    min_bet: float = Field(0.0, description="the smallest bet that is allowed, in the unit of the pot; 0 for any")
    aggressor: Seat | None = Field(None, description="who bet last on the street before, for donk bets")
    exploitability: float = Field(SPOT_EXPLOITABILITY, ge=0, description="stop there, in percent of the pot")
    iterations: int = Field(SPOT_ITERATIONS, ge=1, le=100_000)
    locks: list[SpotLock] = Field([], description="decisions that are played as given, as in `deepcfr spot --lock`")
    name: str = Field("", max_length=100)


class HandsState(BaseModel):
    """The newest review of one's own hands; amounts are in big blinds."""

    hero: str = ""
    solving: str = ""  # the spot that is being solved; empty when all are
    stopping: bool = False
    decisions: list[dict[str, Any]] = []  # as of `deepcfr hands --json`
    refused: dict[str, str] = {}  # why hands are left out, by their number


class NewName(_Request):
    """The new name of a spot."""

    name: str = Field(min_length=1, max_length=100)


class SpotState(BaseModel):
    """A spot of this server that waits, is being solved, or was."""

    name: str
    solved: bool
    iterations: int
    exploitability_percent: float | None = Field(description="the mean gain of both players' best responses")
    waits: int = Field(default=0, description="its place among the spots that wait; 0 if it is being solved, or was")
    seconds: float = Field(default=0.0, description="how long it has been solved")
    seconds_left: float | None = Field(default=None, description="estimate; null before exploitability was measured")
    stopping: bool = False
    paused: bool = False
    problem: str = ""


class RangeKind(BaseModel):
    """A kind of hands in a range."""

    weight: float = Field(description="the mean weight of its hands")
    text: str = Field(description="its part of the range, such as AKs:0.5 or AsKs")


class SpotDecision(BaseModel):
    """A decision on a spot's board."""

    model_config = ConfigDict(allow_inf_nan=False)

    line: str
    player: Seat
    reached: bool = Field(True, description="false if no pair of hands gets here")
    frequencies: dict[str, Annotated[float, Field(ge=0, le=1)]] = Field(min_length=1)
    hands: dict[Hand, list[Annotated[float, Field(ge=0, le=1)]]] = Field(
        min_length=1,
        description="the probabilities of the actions with each hand that can meet one of the other player's here",
    )
    values: dict[Hand, list[float]] = Field({}, description="what each action wins, where a fold is 0")
    # missing in files of earlier versions, and means where no two hands get here
    pot: float | None = Field(None, ge=0, description="with the bets of the round")
    to_call: float | None = Field(None, ge=0)
    range_values: dict[Seat, float] | None = Field(None, description="what each range wins in the mean from here on")
    range_equities: dict[Seat, float] | None = Field(None, description="share of the pot, 0 to 1, if nobody bets again")
    hand_values: dict[Seat, dict[Hand, float]] = Field({}, description="as range_values, of each hand")
    hand_equities: dict[Seat, dict[Hand, float]] = Field({}, description="as range_equities, of each hand")

    @model_validator(mode="after")
    def _check(self) -> SpotDecision:
        for numbers, kind in ((self.hands, "probabilities"), (self.values, "values")):
            if any(len(each) != len(self.frequencies) for each in numbers.values()):
                raise ValueError(f"a hand after {self.line!r} has too few or too many {kind}")
        return self


class DrillStep(BaseModel):
    """A step of a drill on a spot; amounts are in the unit of its pot."""

    deal: int
    seat: Seat
    cards: Hand
    line: str = Field(description="the actions before the decision, or all actions of the street")
    pot: float | None = None
    to_call: float | None = None
    actions: Annotated[list[str], Field(description="empty if the street is over")] = []
    chosen: str = ""
    losses: Annotated[
        dict[str, float], Field(description="the best value less that of each action, once one is chosen")
    ] = {}
    played: Annotated[
        dict[str, float], Field(description="the solution's probabilities with these cards, likewise")
    ] = {}


class NextCard(BaseModel):
    """A decision of a spot after one of all next cards."""

    frequencies: dict[str, float]
    values: dict[Seat, float] | None = Field(description="what each range wins from there on; null if none gets there")
    equities: dict[Seat, float] | None = Field(description="share of the pot, 0 to 1, if nobody bets again")


class SpotRunouts(BaseModel):
    """One decision of a spot over all next cards."""

    line: str
    player: Seat
    cards: dict[str, NextCard]


class SpotFacts(BaseModel):
    """A solved spot, the file of `deepcfr spot --out`; amounts are in the unit of its pot."""

    model_config = ConfigDict(allow_inf_nan=False)

    board: str
    pot: float = Field(gt=0)
    stacks: float
    dealer: str
    big_blind: str
    sizes: str
    rake: float = 0.0
    cap: float | None = None
    min_bet: float = 0.0
    aggressor: Seat | None = None
    notes: list[str] = Field([], description="sentences on what was solved otherwise than given")
    iterations: int = Field(ge=0)
    goal_percent: float | None = Field(None, ge=0, description="the exploitability to stop at")
    exploitability_percent: float = Field(ge=0, description="the mean gain of both players' best responses")
    seconds: float = Field(ge=0)
    bytes: int = Field(ge=0)
    values: Annotated[dict[Seat, float], Field(min_length=2)] = Field(description="each player's share of the pot")
    equities: Annotated[dict[Seat, float], Field(min_length=2)] = Field(description="the same if both check to the end")
    decisions: list[SpotDecision] = Field(min_length=1)
    locks: list[SpotLock]
    hand_values: BySeat
    hand_equities: BySeat

    @model_validator(mode="after")
    def _check(self) -> SpotFacts:
        if self.decisions[0].line:
            raise ValueError("the first decision is not the one before all actions")
        if any(self.hand_values[seat].keys() != self.hand_equities[seat].keys() for seat in self.hand_values):
            raise ValueError("hands with a value and hands with an equity differ")
        return self

    @property
    def places(self) -> int:
        """The decimal places of values on pages: three in a pot of 10, and one more in one of a tenth of it."""
        return max(0, 4 - floor(log10(self.pot)))
