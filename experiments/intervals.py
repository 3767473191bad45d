"""Confidence intervals of means of independent numbers, and of sums of such means."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean, stdev

from deepcfr.measure.intervals import student_t_95


@dataclass(frozen=True)
class Interval:
    """A mean and half the width of its 95 % interval, infinite for a single number."""

    mean: float
    half: float
    count: int

    @property
    def error(self) -> float:
        """The standard error of the mean, infinite for a single number."""
        return self.half / student_t_95(self.count - 1) if self.count > 1 else math.inf

    def meets(self, other: Interval) -> bool:
        """Whether the two intervals have a number in common."""
        return abs(self.mean - other.mean) <= self.half + other.half

    def __str__(self) -> str:
        return f"{self.mean:,.1f}" + (f" ± {self.half:,.1f}" if math.isfinite(self.half) else " (one seed)")


def interval_of(values: Sequence[float]) -> Interval:
    """The mean of independent numbers with Student's 95 % interval."""
    count = len(values)
    if count < 2:
        return Interval(values[0], math.inf, count)
    return Interval(mean(values), student_t_95(count - 1) * stdev(values) / math.sqrt(count), count)


def contrast(*terms: tuple[float, Interval]) -> Interval:
    """The sum of independent means, each times a factor, with Welch's 95 % interval and Satterthwaite's degrees of freedom.

    The count of the result is the smallest count of the terms.
    """
    value = sum(factor * one.mean for factor, one in terms)
    count = min(one.count for _, one in terms)
    if count < 2:
        return Interval(value, math.inf, count)
    variances = [(factor * one.error) ** 2 for factor, one in terms]
    whole = sum(variances)
    if whole == 0:
        return Interval(value, 0.0, count)
    degrees = whole**2 / sum(part**2 / (one.count - 1) for part, (_, one) in zip(variances, terms, strict=True))
    return Interval(value, student_t_95(degrees) * math.sqrt(whole), count)
