"""The display of a run in the terminal: progress, the time that the rest will take, the curve so far, the result."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable
from types import TracebackType

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)

from deepcfr.config import RunConfig
from deepcfr.game.presets import is_poker
from deepcfr.measure.exploitability import Exploitability
from deepcfr.network.fit import FitResult
from deepcfr.run.folder import RunFolder
from deepcfr.run.listing import duration
from deepcfr.run.train import Summary
from deepcfr.solve.base import Record, Solver

LATEST = 10  # iterations whose mean time the next ones are expected to take
_FIRST, _ALONE = 5.0, 60.0  # seconds before the first estimate, and before one from a single iteration


class Pace:
    """A stopwatch for iterations and evaluations; every new measurement corrects the estimate."""

    def __init__(self, config: RunConfig, iteration: int) -> None:
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
        iterations, limit = self.config.iterations, 60 * self.config.runtime.minutes
        evaluations = self.config.evaluation.number_due(self.at, iterations)
        expected = (iterations - self.at) * self._each + evaluations * (self._evaluation or 0.0)
        return min(expected, max(limit - self._seconds, 0.0)) if limit else expected

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


class LiveObserver:
    """An `Observer` that draws a progress bar and prints a line now and then."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.progress = Progress(
            TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
            TextColumn("{task.fields[left]}"), TextColumn("{task.fields[figures]}"), console=console,
        )  # fmt: skip
        self.training: TaskID | None = None
        self.evaluation: TaskID | None = None
        self.pace: Pace | None = None
        self.latest = ""
        self._told = False  # what the run will take
        self._last_line = 0.0

    def __enter__(self) -> LiveObserver:
        self.progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.progress.stop()

    def warn(self, message: str) -> None:
        self.console.print(f"warning: {message}", style="yellow")

    def start(self, run: RunFolder, solver: Solver, notes: Iterable[str]) -> None:
        self.console.print(f"{solver.describe()}, {run.path}")
        for note in notes:
            self.console.print(f"  {note}")
        if solver.iteration:
            self.console.print(f"  resuming after iteration {solver.iteration}")
        self.training = self.progress.add_task(
            "iterations", total=run.config.iterations, completed=solver.iteration, figures="", left=""
        )
        self.pace, self._told = Pace(run.config, solver.iteration), False

    def iteration(self, record: Record, seconds: float) -> None:
        assert self.training is not None
        assert self.pace is not None
        self.pace.iterated(record.iteration, seconds)
        figures, left = record.figures() + self.latest, self.pace.left()
        self.progress.update(self.training, completed=record.iteration, figures=figures, left=left)
        if left and not self._told:
            self._tell()
        self._print_now_and_then(
            f"iteration {record.iteration} after {seconds:.0f} s{f', {left}' if left else ''}: {figures}"
        )

    def _print_now_and_then(self, line: str) -> None:
        """Print what the bars show where there are none, every ten seconds at most."""
        if not self.console.is_terminal and time.monotonic() - self._last_line > 10:
            self._last_line = time.monotonic()
            self.console.print(line)

    def _tell(self) -> None:
        """Print what the rest of the run will take."""
        assert self.pace is not None
        if self.pace.seconds_left > 0:
            self.console.print(f"  {self.pace.sentence()}")
        self._told = True

    def evaluating(self, iteration: int, done: int, total: int) -> None:
        if self.evaluation is None:
            self.evaluation = self.progress.add_task(
                f"exact evaluation at {iteration}", total=total, figures="", left=""
            )
        self.progress.update(self.evaluation, completed=done, total=total)
        self._print_now_and_then(f"exact evaluation at {iteration}: {done:,} of {total:,}")

    def evaluated(self, iteration: int, fit: FitResult | None, result: Exploitability | None) -> None:
        if self.evaluation is not None:
            self.progress.remove_task(self.evaluation)
            self.evaluation = None
        if self.pace is not None:
            first = not self.pace.has_evaluated
            self.pace.evaluated()
            self._told &= not first  # the sentence said that evaluations were not timed yet
        fitted = f"average fitted in {fit.seconds:.0f} s" if fit else ""
        if result is None:
            if fitted:
                self.console.print(f"iteration {iteration}: {fitted}")
            return
        measured = f"{result.boards:,} boards in {result.seconds:.1f} s" if result.boards else result.boards_used
        self.latest = f", NashConv {result.nash_conv:.1f} {result.unit} at {iteration}"
        self.console.print(
            f"iteration {iteration}: exact NashConv {result.nash_conv:.2f} {result.unit} "
            f"(exploitability {result.exploitability:.2f}); {f'{fitted}, ' if fitted else ''}{measured}"
        )

    def saved(self, iteration: int) -> None:  # noqa: ARG002
        """Print nothing: the progress bar shows it."""
        if self.pace is not None:
            self.pace.saved()

    def conclude(self, run: RunFolder, summary: Summary) -> None:
        """Print how the run ended, after the progress bar has closed."""
        if not summary.finished:
            self.console.print(
                f"Stopped after iteration {summary.iterations} and saved. Go on with: deepcfr resume {run.path}"
            )
            return
        if summary.result:
            show_result(self.console, summary.result, summary.iterations)
        follow = "play" if is_poker(run.source) else "exploitability"
        self.console.print(
            f"{summary.iterations:,} iterations, {summary.nodes_touched:,} nodes touched, {summary.seconds:.0f} s in all. "
            f"Try: deepcfr {follow} {run.path}"
        )


def show_result(console: Console, result: Exploitability, iterations: int | None = None) -> None:
    """Print an exact evaluation, of a policy of one run after so many iterations."""
    first, second = result.best_response_values
    after = "" if iterations is None else f" after {iterations:,} iterations"
    console.print(
        f"{result.game}, {result.policy}{after}: exact NashConv {result.nash_conv:.3f} "
        f"{result.unit} (exploitability = NashConv / 2 = {result.exploitability:.3f} {result.unit})",
        style="bold",
    )
    console.print(
        f"  best responses gain {first - result.value:.3f} as player 0 and {second + result.value:.3f} as player 1; "
        f"the profile is worth {result.value:.3f} to player 0\n"
        f"  {f'{result.boards:,} boards, ' if result.boards else ''}{result.boards_used}, in {result.seconds:.1f} s"
    )
