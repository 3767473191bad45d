"""This project's version of figure 2 of the Deep CFR paper: exact NashConv of Deep CFR and of tabular solvers on one chart.

The figure compares Deep CFR with MCCFR, with card abstractions and without, against nodes touched. This version adds wall
time and full-width CFR. All data come from run folders.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from deepcfr.errors import ConfigError, DeepCFRError
from deepcfr.files import write_atomically
from deepcfr.games.rules import PRESETS, PokerRules
from deepcfr.report.charts import Line, curve, picture, several_games
from deepcfr.report.methods import FAMILIES, Method, method_of, methods_of
from deepcfr.report.page import page
from deepcfr.report.table import Row, row
from deepcfr.runs.folder import RunFolder
from deepcfr.runs.metrics import read_metrics

Warn = Callable[[str], None]
_ROOTS = (Path("runs"), Path("models"))


def write_figure(paths: Sequence[Path], folder: Path, warn: Warn) -> list[Path]:
    """Write `fig2.html` and `fig2.svg` into `folder`, from the runs of one game at `paths`.

    Without paths it uses all runs of FHP under `runs` and `models`. Runs without an exact evaluation are omitted with a
    message to `warn`. Raises ConfigError if no run is left, or if they are of several games, and the errors of
    `RunFolder.open` for a path without a run.
    """
    runs = _with_curves([RunFolder.open(path) for path in paths] if paths else _find_runs(warn), warn)
    problems = several_games(runs)
    if not runs:
        found = "None of the runs named has" if paths else "No run of FHP under runs/ or models/ has"
        problems = [f"{found} an exact evaluation to draw."]
    if problems:
        raise ConfigError(problems)
    shown = _in_order(runs, methods_of(runs))
    lines = [Line(method.label, method, curve(run)) for run, method in shown]
    rows: list[Row] = [row(run, method, warn) for run, method in shown]
    svg = picture(lines, runs[0])
    files = {"fig2.html": page(runs[0].source, svg.decode(), rows).encode(), "fig2.svg": svg}
    for name, data in files.items():
        write_atomically(folder / name, data)
    return [folder / name for name in files]


def _find_runs(warn: Warn) -> list[RunFolder]:
    """All runs of FHP that can be opened."""
    runs = []
    for path in [config.parent for root in _ROOTS for config in sorted(root.rglob("config.toml"))]:
        try:
            run = RunFolder.open(path)
        except DeepCFRError as error:
            warn(f"'{path}' is left out: {' '.join(error.problems)}")
            continue
        if isinstance(run.source, PokerRules) and dataclasses.replace(run.source, name="fhp") == PRESETS["fhp"]:
            run.source = PRESETS["fhp"]  # the same game, even if its file has another name
            runs.append(run)
    return runs


def _with_curves(runs: Sequence[RunFolder], warn: Warn) -> list[RunFolder]:
    """The runs with curves, each once: a shipped model repeats the run from which it was exported."""
    kept: dict[bytes, RunFolder] = {}
    for run in runs:
        reason = _reason_against(run, kept)
        if reason:
            warn(f"'{run.path}' is left out: {reason}")
            continue
        metrics = run.metrics_path.read_bytes()
        kept[metrics] = run
        if len(metrics.splitlines()) > len(read_metrics(run.metrics_path)):
            warn(f"'{run.metrics_path}' is damaged or being written: what follows its last whole line is left out.")
    return list(kept.values())


def _reason_against(run: RunFolder, kept: Mapping[bytes, RunFolder]) -> str | None:
    """A sentence that says why a run is not drawn with those before it; None if it is drawn."""
    if not curve(run):
        return "it has no exact evaluation."
    twin = kept.get(run.metrics_path.read_bytes())
    if twin:
        return f"it has the metrics of '{twin.path}'."
    try:
        method_of(run)
    except DeepCFRError as error:  # for example a damaged copy of its abstraction
        return " ".join(error.problems)
    return None


def _in_order(runs: Sequence[RunFolder], methods: Sequence[Method]) -> list[tuple[RunFolder, Method]]:
    """Sort by family, size, label, seed and path, for the same order on every machine."""

    def place(item: tuple[RunFolder, Method]) -> tuple[int, int, str, int, str]:
        run, method = item
        return FAMILIES.index(method.family), method.size, method.label, run.config.seed, str(run.path)

    return sorted(zip(runs, methods, strict=True), key=place)
