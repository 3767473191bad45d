"""What an exact evaluation finds."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Exploitability:
    """An exact evaluation; values are in thousandths of the game's unit (`milli_unit`)."""

    game: str
    unit: str  # the milli unit, such as mbb/g
    nash_conv: float  # sum over players of best-response value minus profile value
    exploitability: float  # nash_conv / 2
    best_response_values: tuple[float, float]
    value: float  # to player 0, when both follow the policy
    boards: int  # boards enumerated
    boards_used: str  # which ones, in words
    seconds: float
    policy: str
