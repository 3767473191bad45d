"""Confidence intervals of means."""

from __future__ import annotations

from math import atan, ceil, cos, floor, pi, sin, sqrt

_NORMAL_95 = 1.959964  # standard errors on either side that hold 95 % of a normal distribution
_NEARLY_NORMAL = 500  # degrees of freedom from which the expansion below is good to 1e-5


def student_t_95(degrees: float) -> float:
    """Standard errors on either side that hold 95 % of Student's t distribution with at least one degree of freedom.

    Exact for whole numbers, and between them linear in 1 / degrees.
    """
    if degrees >= _NEARLY_NORMAL:  # the first term of the Cornish-Fisher expansion
        return _NORMAL_95 + (_NORMAL_95**3 + _NORMAL_95) / (4 * degrees)
    low, high = floor(degrees), ceil(degrees)
    if low == high:
        return _quantile(low)
    share = (1 / low - 1 / degrees) / (1 / low - 1 / high)
    return (1 - share) * _quantile(low) + share * _quantile(high)


def _quantile(degrees: int) -> float:
    low, high = 0.0, 13.0  # with one degree of freedom it is 12.7
    while high - low > 1e-12:
        middle = (low + high) / 2
        low, high = (middle, high) if _within(middle, degrees) < 0.95 else (low, middle)
    return low


def _within(t: float, degrees: int) -> float:
    """The probability that Student's t lies between -t and t (Abramowitz and Stegun 1964, 26.7.3 and 26.7.4)."""
    angle = atan(t / sqrt(degrees))
    odd = degrees % 2
    term = total = (cos(angle) if odd else 1.0) if degrees > 1 else 0.0
    for power in range(2 + odd, degrees - 1, 2):
        term *= (power - 1) / power * cos(angle) ** 2
        total += term
    return 2 / pi * (angle + sin(angle) * total) if odd else sin(angle) * total
