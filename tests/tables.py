"""Small configurations of all solvers, for tests."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeVar

from deepcfr.config import NamedSolver, RunConfig, RuntimeConfig
from deepcfr.defaults import default_config
from deepcfr.solve.base import Solver

AnySolver = TypeVar("AnySolver", bound=Solver)


def changed(config: RunConfig, **settings: Any) -> RunConfig:
    """The configuration with other settings: whole ones, or of the sections solve, evaluation and runtime.

    A section may be given as a dictionary of the settings that change.
    """
    for section in ("solve", "evaluation", "runtime"):
        record = settings.get(section, getattr(config, section))
        if not isinstance(record, Mapping):
            own = {name: settings.pop(name) for name in vars(record) if name in settings}
            settings[section] = replace(record, **own)
    for name, value in settings.items():
        if isinstance(value, Mapping):
            settings[name] = replace(getattr(config, name), **value)
    return replace(config, **settings)


def tabular(solver: Any = "linear-cfr", iterations: int = 100, **settings: Any) -> RunConfig:
    """A configuration of a tabular solver in one thread, with these settings as of `changed`."""
    return changed(RunConfig(solver=solver, iterations=iterations, runtime=RuntimeConfig(threads=1)), **settings)


def small_config(
    solver: NamedSolver = "deep-cfr", game: str = "kuhn", iterations: int = 3, **settings: Any
) -> RunConfig:
    """The default of a solver that learns, with few traversals and steps, small networks, and settings as of `changed`."""
    config = changed(
        default_config(game, solver),
        iterations=iterations,
        memory={"capacity": 20_000},
        network={"width": 32, "layers": 2},
        advantage={"steps": 20, "batch_size": 64},
        average={"steps": 40, "batch_size": 64},
        values={"steps": 20, "batch_size": 64, "capacity": 2_000},
        nfsp={"episodes": 60, "replay_capacity": 90, "reservoir_capacity": 50, "batch_size": 16},
        ppo={"episodes": 300},
        runtime={"threads": 1},
    )
    if config.sampling.kind != "public-chance":
        config = changed(config, sampling={"traversals": 200})
    return changed(config, **settings)


def finished(solver: AnySolver) -> AnySolver:
    """The solver, after all its iterations."""
    for _ in solver.iterations():
        pass
    return solver
