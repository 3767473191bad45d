"""What tabular solvers share: the variants of CFR as data, and the record of an iteration."""

from __future__ import annotations

from dataclasses import dataclass

from deepcfr.config import TabularConfig
from deepcfr.errors import ConfigError


@dataclass(frozen=True)
class TabularRecord:
    """What one iteration of a tabular solver did."""

    iteration: int
    nodes_touched: int
    iteration_seconds: float


@dataclass(frozen=True)
class Discounting:
    """A variant of CFR as numbers (Brown and Sandholm 2019, "Solving imperfect-information games via discounted regret
    minimization"): how sums of earlier iterations shrink before iteration t adds to them.

    An infinite exponent keeps the sum as it is.
    """

    positive: float  # alpha: positive regrets, by (t-1)^alpha / ((t-1)^alpha + 1)
    negative: float  # beta: negative regrets, by (t-1)^beta / ((t-1)^beta + 1)
    average: float  # gamma: the average strategy, by ((t-1) / t)^gamma
    floor: bool = False  # CFR+: regrets below zero become zero after every update

    def factors(self, t: int) -> tuple[float, float, float]:
        """What positive regrets, negative regrets and averages are multiplied by before iteration t = 1, 2, ... adds."""
        return _regret_factor(t - 1, self.positive), _regret_factor(t - 1, self.negative), ((t - 1) / t) ** self.average


def _regret_factor(t: int, exponent: float) -> float:
    if t == 0 or exponent == float("inf"):
        return 1.0
    power: float = float(t) ** exponent
    return power / (power + 1.0)


_VARIANTS = {
    "cfr": Discounting(float("inf"), float("inf"), 0.0),
    "cfr+": Discounting(float("inf"), float("inf"), 1.0, floor=True),
    "linear-cfr": Discounting(1.0, 1.0, 1.0),
}


def discounting(config: TabularConfig) -> Discounting:
    """The numbers of a full-width algorithm. Raises ConfigError for one that is not full-width."""
    if config.algorithm == "dcfr":
        return Discounting(config.alpha, config.beta, config.gamma)
    if config.algorithm not in _VARIANTS:
        raise ConfigError(f"'{config.algorithm}' is not a full-width algorithm: {', '.join(_VARIANTS)} and dcfr are.")
    return _VARIANTS[config.algorithm]
