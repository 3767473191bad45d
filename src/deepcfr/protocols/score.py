"""The mean gain of a match, with its interval."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from deepcfr.evaluation.intervals import NORMAL_95
from deepcfr.games.rules import PokerRules


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


def score_of(gains: Sequence[float], rules: PokerRules, duplicate: bool = False) -> Score:
    """The score of a player who gained `gains` units in the hands of a match.

    In a duplicate match the hands of the second half have the cards of the first, in order, so that the pairs and not the
    hands are independent.
    """
    hands, half = len(gains), len(gains) // 2
    samples = [(a + b) / 2 for a, b in zip(gains[:half], gains[half:], strict=True)] if duplicate else list(gains)
    mean = 1000 * sum(gains) / hands if hands else None
    interval = None
    if len(samples) > 1:
        interval = 1000 * NORMAL_95 * statistics.stdev(samples) / math.sqrt(len(samples))
    return Score(rules.name, rules.milli_unit, hands, sum(gains) * rules.unit_chips, mean, interval)
