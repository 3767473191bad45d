"""The time that the rest of a run takes, measured on its iterations and evaluations so far."""

from __future__ import annotations

import time
from collections import deque

from deepcfr.config import AnyConfig

LATEST = 10  # iterations whose mean time the next ones are expected to take
_FIRST, _ALONE = 5.0, 60.0  # seconds before the first estimate, and before one from a single iteration


class Pace:
    """A stopwatch for iterations and evaluations; every new measurement corrects the estimate."""

    def __init__(self, config: AnyConfig, iteration: int) -> None:
        """Start it at `iteration`, the last one that the run has done."""
        self.config, self.at = config, iteration
        self._iterations: deque[float] = deque(maxlen=LATEST)
        self._warming = True
        self._evaluation: float | None = None
        self._seconds = 0.0  # of the whole run
        self._started = self._since = time.perf_counter()

    def iterated(self, iteration: int, seconds: float) -> None:
        """Take the time of an iteration; `seconds` is the time of the whole run."""
        if self._warming and self._iterations:  # the first one also loads and compiles, so it is forgotten
            self._warming = False
            self._iterations.clear()
        self.at, self._seconds = iteration, seconds
        self._iterations.append(self._lap())

    def evaluated(self) -> None:
        """Take the time of the evaluation after an iteration."""
        self._evaluation = self._lap()

    def saved(self) -> None:
        """Take the time of a checkpoint, which counts as that of no iteration."""
        self._lap()

    def _lap(self) -> float:
        before, self._since = self._since, time.perf_counter()
        return self._since - before

    @property
    def has_evaluated(self) -> bool:
        """Whether an evaluation has been timed."""
        return self._evaluation is not None

    @property
    def is_known(self) -> bool:
        """Whether enough has been measured for an estimate."""
        return bool(self._iterations) and time.perf_counter() - self._started >= (_ALONE if self._warming else _FIRST)

    @property
    def seconds_left(self) -> float:
        """The estimate in seconds, without evaluations while none has been timed."""
        expected, limit = self._after(self.at), 60 * self.config.runtime.minutes
        return min(expected, max(limit - self._seconds, 0.0)) if limit else expected

    @property
    def seconds_whole(self) -> float:
        """The estimate in seconds for a run like this one from its beginning."""
        return min(self._after(0), 60 * self.config.runtime.minutes or float("inf"))

    def _after(self, iteration: int) -> float:
        """The seconds of all iterations and evaluations after one."""
        evaluations = self.config.evaluation.number_due(iteration, self.config.iterations)
        return (self.config.iterations - iteration) * self._each + evaluations * (self._evaluation or 0.0)

    @property
    def _each(self) -> float:
        return sum(self._iterations) / len(self._iterations)

    def left(self) -> str:
        """The estimate as a short text, and nothing while there is none."""
        return f"{duration(self.seconds_left)} left" if self.is_known else ""

    def sentence(self) -> str:
        """The estimate with what it is made of."""
        count = self.config.evaluation.number_due(self.at, self.config.iterations)
        timed = "not timed yet" if self._evaluation is None else f"{duration(self._evaluation)} each"
        beside = f", and {count} {'evaluation' if count == 1 else 'evaluations'}, {timed}" if count else ""
        return f"about {self.left()}: {self._each:.2g} s an iteration{beside}"


def duration(seconds: float) -> str:
    """A time as a short text, in seconds or minutes."""
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
