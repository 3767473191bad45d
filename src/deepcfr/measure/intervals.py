"""Confidence intervals of means, and the score of hands that were played."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import NormalDist, stdev
from typing import Any, Protocol

NORMAL_95 = NormalDist().inv_cdf(0.975)  # standard errors on either side, for the mean of many numbers


def student_t_95(degrees: float) -> float:
    """Half-width, in standard errors, of the 95 % interval of Student's t with `degrees` > 0 of freedom."""
    from scipy.special import stdtrit

    return float(stdtrit(degrees, 0.975))


@dataclass(frozen=True)
class Score:
    """A player's result; means are per hand, in thousandths of the game's unit."""

    game: str
    unit: str  # the milli unit, such as mbb/g
    hands: int
    chips: float  # won in all
    mean: float | None  # None before the first hand
    interval: float | None  # half the width of the mean's 95 % interval; None before two hands that are independent

    def facts(self) -> dict[str, Any]:
        """The score as data for JSON."""
        return asdict(self)

    def describe(self) -> str:
        """The score in words."""
        if self.mean is None:
            return "no hand was finished"
        margin = "" if self.interval is None else f" +- {self.interval:.0f} (95 %)"
        return f"{self.mean:+.0f}{margin} {self.unit} over {self.hands:,} {'hand' if self.hands == 1 else 'hands'}"


class Paid(Protocol):
    """Rules or a game, as far as results need them."""

    @property
    def name(self) -> str: ...

    @property
    def unit(self) -> str: ...

    @property
    def milli_unit(self) -> str: ...

    @property
    def unit_chips(self) -> int: ...


def score_of(gains: Sequence[float], rules: Paid, duplicate: bool = False) -> Score:
    """The score of a player who gained `gains` units in the hands of a match.

    In a duplicate match the hands of the second half have the cards of the first, in order, so that the pairs and not the
    hands are independent.
    """
    hands, half = len(gains), len(gains) // 2
    samples = [(a + b) / 2 for a, b in zip(gains[:half], gains[half:], strict=True)] if duplicate else list(gains)
    mean = 1000 * sum(gains) / hands if hands else None
    interval = None
    if len(samples) > 1:
        interval = 1000 * NORMAL_95 * stdev(samples) / math.sqrt(len(samples))
    return Score(rules.name, rules.milli_unit, hands, sum(gains) * rules.unit_chips, mean, interval)
