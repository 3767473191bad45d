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

from deepcfr.config import RunConfig
from deepcfr.evaluation.result import Exploitability
from deepcfr.games.ladder import LadderRules
from deepcfr.games.rules import PokerRules
from deepcfr.runs.folder import RunFolder
from deepcfr.runs.train import Summary
from deepcfr.solvers.build import Record, Solver
from deepcfr.solvers.deep_cfr import DeepCFR
from deepcfr.solvers.nfsp import NFSP, NFSPRecord
from deepcfr.solvers.tabular import TabularRecord
from deepcfr.solvers.tree_cfr import TreeCFR
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

    def start(self, run: RunFolder, solver: Solver, notes: list[str]) -> None:
        self.console.print(f"{_what(run, solver)}, {run.path}")
        for note in notes:
            self.console.print(f"  {note}")
        if solver.iteration:
            self.console.print(f"  resuming after iteration {solver.iteration}")
        self.training = self.progress.add_task(
            "iterations", total=run.config.iterations, completed=solver.iteration, figures=""
        )

    def iteration(self, record: Record, seconds: float) -> None:
        assert self.training is not None
        figures = _figures(record) + self.latest
        self.progress.update(self.training, completed=record.iteration, figures=figures)
        if not self.console.is_terminal and time.monotonic() - self._last_line > 10:
            self._last_line = time.monotonic()
            self.console.print(f"iteration {record.iteration} after {seconds:.0f} s: {figures}")

    def evaluating(self, iteration: int, done: int, total: int) -> None:
        if self.boards is None:
            self.boards = self.progress.add_task(f"exact evaluation at {iteration}", total=total, figures="boards")
        self.progress.update(self.boards, completed=done, total=total)

    def evaluated(self, iteration: int, fit: FitResult | None, result: Exploitability | None) -> None:
        if self.boards is not None:
            self.progress.remove_task(self.boards)
            self.boards = None
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
        follow = "play" if isinstance(run.source, PokerRules | LadderRules) else "exploitability"
        self.console.print(
            f"{summary.iterations} iterations, {summary.nodes_touched:,} nodes touched, {summary.seconds:.0f} s in all. "
            f"Try: deepcfr {follow} {run.path}"
        )


def _what(run: RunFolder, solver: Solver) -> str:
    config = run.config
    if isinstance(config, RunConfig) and isinstance(solver, NFSP):
        parameters = count_parameters(solver.averages[0].network)
        return (
            f"NFSP on {run.source.name}: {config.iterations} iterations of {config.nfsp.episodes:,} episodes, "
            f"networks of {parameters:,} parameters, seed {config.seed}"
        )
    if isinstance(config, RunConfig):
        assert isinstance(solver, DeepCFR)
        parameters = count_parameters(solver.advantage_networks[0])
        return (
            f"Deep CFR on {run.source.name}: {config.iterations} iterations of {_sampled(config)}, "
            f"networks of {parameters:,} parameters, seed {config.seed}"
        )
    settings = config.solve
    if settings.algorithm != "mccfr":
        precision = "float64" if isinstance(solver, TreeCFR) else settings.precision
        return f"{settings.algorithm} on {run.source.name}: {config.iterations} iterations, {precision}"
    return (
        f"Monte Carlo CFR on {run.source.name}: {config.iterations} iterations of {2 * settings.traversals:,} traversals, "
        f"{settings.sampler} sampling, abstraction {settings.abstraction}, seed {config.seed}"
    )


def _sampled(config: RunConfig) -> str:
    if config.cfr.sampler != "public-chance":
        return f"{config.cfr.traversals:,} traversals, {config.cfr.sampler} sampling"
    return f"about {config.public_chance.boards:,} boards"


def _figures(record: Record) -> str:
    if isinstance(record, NFSPRecord):
        return (
            f"{record.episodes / max(record.play_seconds + record.fit_seconds, 1e-9):,.0f} episodes/s, "
            f"loss {record.q_loss[0]:.2f} {record.q_loss[1]:.2f}"
        )
    if isinstance(record, TabularRecord):
        return f"{record.nodes_touched / max(record.iteration_seconds, 1e-9):,.0f} nodes/s"
    return (
        f"{record.nodes_touched / max(record.traversal_seconds, 1e-9):,.0f} nodes/s, "
        f"loss {record.advantage_loss[0]:.2f} {record.advantage_loss[1]:.2f}"
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
        f"  {f'{result.boards:,} boards, ' if result.boards else ''}{result.boards_used}, in {result.seconds:.1f} s"
    )
