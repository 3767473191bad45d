"""The training loop of a run folder: iterate, evaluate, record, save, until done or interrupted."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Protocol

from deepcfr.core.errors import CheckpointError
from deepcfr.core.machine import resident_memory
from deepcfr.core.signals import Interrupt, catch_interrupt
from deepcfr.measure.exploitability import Exploitability, exploitability, why_not_exact
from deepcfr.network.fit import FitResult
from deepcfr.run.folder import RunFolder
from deepcfr.run.metrics import append_metrics, read_metrics, truncate_metrics
from deepcfr.run.record import trained_here
from deepcfr.solve.base import Record, Solver

if TYPE_CHECKING:
    from deepcfr.cluster.ray_cluster import RayCluster  # Ray is optional


class Observer(Protocol):
    """A listener to the progress of a run; the command line prints it, tests collect it."""

    def warn(self, message: str) -> None: ...
    def start(self, run: RunFolder, solver: Solver, notes: Iterable[str]) -> None: ...
    def iteration(self, record: Record, seconds: float) -> None: ...
    def evaluating(self, iteration: int, done: int, total: int) -> None: ...
    def evaluated(self, iteration: int, fit: FitResult | None, result: Exploitability | None) -> None: ...
    def saved(self, iteration: int) -> None: ...


@dataclasses.dataclass(frozen=True)
class Summary:
    """The outcome of a call of `train`."""

    finished: bool  # False after an interrupt; the run can be resumed
    iterations: int
    nodes_touched: int
    seconds: float  # of the whole run, earlier sessions included
    result: Exploitability | None  # of the last evaluation, None where exact evaluation is out of reach or not reached


_PATIENCE = 3.0  # seconds that an evaluation may take to its end after a signal


class _BrokenOff(Exception):
    """Raised in an evaluation when a signal has asked to stop."""


def train(run: RunFolder, observer: Observer, cluster: RayCluster | None = None) -> Summary:
    """Continue a run from its newest checkpoint to its last iteration, or to the end of its time.

    At most one checkpoint interval is lost to a crash, and a resumed run computes what an uninterrupted one would (but
    for Monte Carlo CFR in several threads, whose order of updates is not fixed). Ctrl-C, SIGTERM and SIGHUP let it
    finish the iteration and save. An evaluation that is not done a few seconds later is broken off, and made when the
    run goes on. With a `cluster` the traversals of Deep CFR run there.
    Raises CheckpointError, ConfigError, TrainingError, and ClusterError if the cluster loses machines for good.
    """
    with trained_here(run.path):
        notes = run.cost_notes()
        solver, before = run.load_solver(observer.warn, memories=True, cluster=cluster)
        try:
            run.keep_config()
            return _carry_on(run, solver, before, observer, notes)
        finally:
            solver.close()


def _carry_on(run: RunFolder, solver: Solver, before: float, observer: Observer, notes: Iterable[str]) -> Summary:
    """The loop, after `before` seconds of earlier sessions."""
    reached = truncate_metrics(run.metrics_path, solver.iteration)
    if reached < solver.iteration:  # each is written before its checkpoint, so a disk has lost them
        observer.warn(
            f"'{run.metrics_path}' ends with iteration {reached}, and the checkpoint is of {solver.iteration}: the lines "
            "between them are lost."
        )
    observer.start(run, solver, notes)
    started = time.perf_counter() - before
    saved = time.perf_counter()
    iterations, evaluation = run.config.iterations, run.config.evaluation
    limit = 60 * run.config.runtime.minutes or float("inf")
    if solver.iteration >= iterations or before >= limit:
        return _finish(run, solver, observer, before)
    if solver.iteration:
        run.note_resumption(solver.iteration)
        _catch_up(run, solver, observer)
    result: Exploitability | None = None
    last = False
    with catch_interrupt(observer.warn) as interrupt:
        for record in solver.iterations():
            observer.iteration(record, time.perf_counter() - started)
            line: dict[str, Any] = dataclasses.asdict(record)  # type: ignore[call-overload]
            last = record.iteration == iterations or time.perf_counter() - started >= limit
            if last or evaluation.is_due(record.iteration):
                try:
                    result = _evaluate(run, solver, observer, line, interrupt)
                except _BrokenOff:
                    last = False
            append_metrics(run.metrics_path, line | _so_far(solver, time.perf_counter() - started))
            due = time.perf_counter() - saved >= run.config.runtime.checkpoint_seconds
            if interrupt.pressed or last or due:
                run.save(solver, time.perf_counter() - started)
                observer.saved(record.iteration)
                saved = time.perf_counter()
            if interrupt.pressed or last:
                break
    return Summary(last, solver.iteration, solver.nodes_touched, time.perf_counter() - started, result)


def _finish(run: RunFolder, solver: Solver, observer: Observer, seconds: float) -> Summary:
    """Measure a run without iterations left once more, after fitting its average strategy if that is missing."""
    if solver.average_iteration == solver.iteration:
        result = _catch_up(run, solver, observer) or _measure(run, solver, observer)
    else:
        line: dict[str, Any] = {"iteration": solver.iteration}
        result = _evaluate(run, solver, observer, line)
        append_metrics(run.metrics_path, line | _so_far(solver, seconds))
        run.save(solver, seconds)
    return Summary(True, solver.iteration, solver.nodes_touched, seconds, result)


def _catch_up(run: RunFolder, solver: Solver, observer: Observer) -> Exploitability | None:
    """Make the evaluation that a signal broke off, and add it to its line of the metrics, which is the last."""
    lines = read_metrics(run.metrics_path)
    if not lines or not lines[-1].pop("unmeasured", False):
        return None
    line = lines[-1]
    result = _measure(run, solver, observer)
    assert result is not None
    line["evaluation"] = dataclasses.asdict(result)
    truncate_metrics(run.metrics_path, solver.iteration - 1)
    append_metrics(run.metrics_path, line)
    observer.evaluated(solver.iteration, None, result)
    return result


def _so_far(solver: Solver, seconds: float) -> dict[str, Any]:
    """The end of every line of metrics: the run's totals, and the memory of its process where the system reports it."""
    resident = resident_memory()
    totals = {"total_nodes_touched": solver.nodes_touched, "seconds": seconds}
    return totals | ({"resident_bytes": resident} if resident else {})


def _evaluate(
    run: RunFolder, solver: Solver, observer: Observer, line: dict[str, Any], interrupt: Interrupt | None = None
) -> Exploitability | None:
    """Measure the average strategy, fitted first if it is a network, and add the results to the metrics `line`.

    The line says `unmeasured` if a signal breaks it off, which raises _BrokenOff.
    """
    fitted = solver.fit_average()
    if fitted:
        line |= {
            "average_loss": fitted.loss,
            "average_examples": fitted.examples,
            "average_fit_seconds": fitted.seconds,
            "evaluated_policy": run.config.evaluation.policy,
        }
    try:
        result = _measure(run, solver, observer, interrupt)
    except _BrokenOff:
        line["unmeasured"] = True
        raise
    if result:
        line["evaluation"] = dataclasses.asdict(result)
    else:
        line.pop("evaluated_policy", None)
    observer.evaluated(solver.iteration, fitted, result)
    return result


def _measure(
    run: RunFolder, solver: Solver, observer: Observer, interrupt: Interrupt | None = None
) -> Exploitability | None:
    """The exact exploitability of the strategy that is evaluated; None if the game is too large or there is none yet."""
    if why_not_exact(solver.game):
        return None
    try:
        policy = run.played(solver, run.config.evaluation.policy)
    except CheckpointError as error:  # due before the first snapshot
        observer.warn(str(error))
        return None

    def on_board(done: int, total: int) -> None:
        observer.evaluating(solver.iteration, done, total)
        if interrupt and interrupt.pressed and time.monotonic() - interrupt.pressed_at >= _PATIENCE:
            raise _BrokenOff

    return exploitability(policy, threads=run.config.runtime.threads, on_board=on_board)
