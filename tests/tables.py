"""Configurations of tabular solvers, for tests."""

from dataclasses import replace
from typing import Any

from deepcfr.config import RunConfig, RuntimeConfig


def changed(config: RunConfig, **settings: Any) -> RunConfig:
    """The configuration with other settings: whole ones, or of the sections solve, evaluation and runtime."""
    for section in ("solve", "evaluation", "runtime"):
        record = settings.get(section, getattr(config, section))
        own = {name: settings.pop(name) for name in vars(record) if name in settings}
        settings[section] = replace(record, **own)
    return replace(config, **settings)


def tabular(solver: Any = "linear-cfr", iterations: int = 100, **settings: Any) -> RunConfig:
    """A configuration of a tabular solver in one thread, with these settings as of `changed`."""
    return changed(RunConfig(solver=solver, iterations=iterations, runtime=RuntimeConfig(threads=1)), **settings)
