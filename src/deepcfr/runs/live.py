"""A run as the terminal shows it: progress with rate and ETA, the curve so far, the result."""

from __future__ import annotations

import time
from types import TracebackType

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from deepcfr.evaluation.exploitability import Exploitability
from deepcfr.runs.folder import RunFolder
from deepcfr.runs.train import Summary
from deepcfr.solvers.deep_cfr import DeepCFR, IterationRecord
from deepcfr.training.fit import FitResult
from deepcfr.training.networks import count_parameters


class LiveObserver:
    """An `Observer` that draws a progress bar and prints a line now and then."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.progress = Progress(
            TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
            TextColumn("ETA"), TimeRemainingColumn(), TextColumn("{task.fields[figures]}"), console=console,
        )  # fmt: skip
        self.training: TaskID | None = None
        self.boards: TaskID | None = None
        self.latest = ""
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

    def start(self, run: RunFolder, solver: DeepCFR, notes: list[str]) -> None:
        config = run.config
        parameters = count_parameters(solver.advantage_networks[0])
        self.console.print(
            f"Deep CFR on {run.rules.name}: {config.cfr.iterations} iterations of {config.cfr.traversals:,} traversals, "
            f"networks of {parameters:,} parameters, seed {config.seed}, {run.path}"
        )
        for note in notes:
            self.console.print(f"  {note}")
        if solver.iteration:
            self.console.print(f"  resuming after iteration {solver.iteration}")
        self.training = self.progress.add_task(
            "training", total=config.cfr.iterations, completed=solver.iteration, figures=""
        )

    def iteration(self, record: IterationRecord, seconds: float) -> None:
        assert self.training is not None
        figures = (
            f"{record.traversals / record.traversal_seconds:,.0f} traversals/s, "
            f"loss {record.advantage_loss[0]:.2f} {record.advantage_loss[1]:.2f}{self.latest}"
        )
        self.progress.update(self.training, completed=record.iteration, figures=figures)
        if not self.console.is_terminal and time.monotonic() - self._last_line > 10:
            self._last_line = time.monotonic()
            self.console.print(f"iteration {record.iteration} after {seconds:.0f} s: {figures}")

    def evaluating(self, iteration: int, done: int, total: int) -> None:
        if self.boards is None:
            self.boards = self.progress.add_task(f"exact evaluation at {iteration}", total=total, figures="boards")
        self.progress.update(self.boards, completed=done, total=total)

    def evaluated(self, iteration: int, fit: FitResult, result: Exploitability | None) -> None:
        if self.boards is not None:
            self.progress.remove_task(self.boards)
            self.boards = None
        if result is None:
            self.console.print(f"iteration {iteration}: average strategy fitted in {fit.seconds:.0f} s")
            return
        self.latest = f", NashConv {result.nash_conv:.1f} {result.unit} at {iteration}"
        self.console.print(
            f"iteration {iteration}: exact NashConv {result.nash_conv:.2f} {result.unit} "
            f"(exploitability {result.exploitability:.2f}); average fitted in {fit.seconds:.0f} s, "
            f"{result.boards:,} boards in {result.seconds:.1f} s"
        )

    def saved(self, iteration: int) -> None:
        """The progress bar says enough."""

    def conclude(self, run: RunFolder, summary: Summary) -> None:
        """Say how the run ended, after the progress bar is gone."""
        if not summary.finished:
            self.console.print(
                f"Stopped after iteration {summary.iterations} and saved. Go on with: deepcfr resume {run.path}"
            )
            return
        if summary.result:
            show_result(self.console, summary.result, summary.iterations)
        self.console.print(
            f"{summary.iterations} iterations, {summary.nodes_touched:,} nodes touched, {summary.seconds:.0f} s in all. "
            f"Try: deepcfr play {run.path}"
        )


def show_result(console: Console, result: Exploitability, iterations: int) -> None:
    """Print an exact evaluation."""
    first, second = result.best_response_values
    console.print(
        f"{result.game}, {result.policy} after {iterations} iterations: exact NashConv {result.nash_conv:.3f} "
        f"{result.unit} (exploitability = NashConv / 2 = {result.exploitability:.3f} {result.unit})",
        style="bold",
    )
    console.print(
        f"  best responses gain {first:.3f} as player 0 and {second:.3f} as player 1; "
        f"the profile is worth {result.value:.3f} to player 0\n"
        f"  {result.boards:,} boards, {result.boards_used}, in {result.seconds:.1f} s"
    )
