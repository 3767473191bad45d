"""What every setting may be, and which ones contradict each other: one sentence for each problem."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from typing import TypeVar

from deepcfr.config.records import AnyConfig, FitConfig, RunConfig, SolveConfig, TabularConfig
from deepcfr.errors import ConfigError

# Smallest and largest allowed value of every number, by section (or class) and name.
_LIMITS: dict[str, tuple[float, float]] = {
    "seed": (0, 2**63 - 1),
    "cfr.iterations": (1, 1_000_000),
    "cfr.traversals": (1, 100_000_000),
    "cfr.chunk": (1, 10_000_000),
    "cfr.keep_networks": (0, 1_000_000),
    "public_chance.boards": (1, 10_000_000),
    "public_chance.later_boards": (1, 10_000),
    "public_chance.hands": (0, 10_000),
    "public_chance.samples": (1, 1_000_000),
    "memory.advantage_capacity": (1, 10**10),
    "memory.strategy_capacity": (1, 10**10),
    "network.width": (1, 8192),
    "network.layers": (1, 64),
    "network.card_width": (1, 64),
    "network.outputs": (1, 1024),
    "fit.steps": (1, 100_000_000),
    "fit.steps_per_million": (0, 100_000_000),
    "fit.batch_size": (1, 10_000_000),
    "fit.decisions": (0, 1_000_000),
    "fit.batch_growth": (1.0, 64.0),
    "fit.learning_rate": (1e-12, 10.0),
    "fit.averaging": (0.0, 0.999999),
    "fit.compress": (0.0, 1e6),
    "fit.clip": (1e-9, 1e9),
    "fit.held_out": (0.0, 0.5),
    "fit.check_every": (1, 100_000_000),
    "fit.patience": (1, 100_000_000),
    "solve.iterations": (1, 100_000_000),
    "solve.alpha": (-30.0, 30.0),
    "solve.beta": (-30.0, 30.0),
    "solve.gamma": (0.0, 30.0),
    "solve.traversals": (1, 1_000_000_000),
    "solve.exploration": (0.0, 1.0),
    "evaluation.every": (0, 100_000_000),
    "runtime.threads": (1, 1024),
    "runtime.checkpoint_every": (1, 100_000_000),
    "runtime.checkpoint_seconds": (0, 1_000_000),
    "runtime.keep": (1, 1000),
}


_Config = TypeVar("_Config", RunConfig, SolveConfig)


def validate_config(config: _Config) -> _Config:
    """Return `config`, or raise ConfigError with every number that is out of range."""
    problems = list(config_problems(config))
    if problems:
        raise ConfigError(problems)
    return config


def config_problems(config: AnyConfig) -> Iterator[str]:
    """One sentence for every setting that is out of range."""
    for name, limit_name, value in _numbers(config):
        low, high = _LIMITS[limit_name]
        if not low <= value <= high:  # also true of NaN
            yield f"'{name}' must be between {number(low)} and {number(high)}, but is {number(value)}."
    for iteration in config.evaluation.at:
        if iteration < 1:
            yield f"'evaluation.at' must name iterations from 1, but names {iteration}."
    if not re.fullmatch(r"cpu|cuda(:\d{1,3})?", str(config.runtime.device)):
        yield f"'runtime.device' must be cpu or cuda (or cuda:N), but is '{config.runtime.device}'."
    elif isinstance(config, SolveConfig) and config.runtime.device != "cpu":
        yield f"'runtime.device' must be cpu for tabular solvers, but is '{config.runtime.device}'."
    if isinstance(config, SolveConfig):
        yield from _solve_problems(config.solve)
    else:
        yield from _public_chance_problems(config)
        yield from _fit_problems("advantage", config.advantage)
        yield from _fit_problems("average", config.average)


def _public_chance_problems(config: RunConfig) -> Iterator[str]:
    """One sentence for every setting that contradicts how boards are sampled and what is recorded on them."""
    sampled, settings = config.cfr.sampler == "public-chance", config.public_chance
    if settings.panel and not sampled:
        yield f"'public_chance.panel' needs 'cfr.sampler' to be public-chance, but it is {config.cfr.sampler}."
    if 0 < config.advantage.compress <= _LIMITS["fit.compress"][1] and not settings.panel:
        # targets of single iterations scatter around the mean, and a curved scale would move it
        yield f"'advantage.compress' is {config.advantage.compress}, which needs 'public_chance.panel'."
    if settings.panel and settings.record != "hands":
        yield f"'public_chance.panel' needs 'public_chance.record' to be hands, but it is {settings.record}."
    if settings.panel and config.memory.kind != "reservoir":
        # there is nothing to choose: every hand of the panel is kept
        yield f"'public_chance.panel' needs 'memory.kind' to be reservoir, but it is {config.memory.kind}."
    if not sampled or settings.record != "hands":
        return
    for section in ("advantage", "average"):
        if getattr(config, section).merge_infosets:
            yield f"'{section}.merge_infosets' merges samples of infosets, and 'public_chance.record' is hands."
    if config.average.held_out > 0 and not settings.panel:
        yield (
            f"'average.held_out' is {config.average.held_out}, but hands of both players are drawn together, and they are "
            "the same hands only with 'public_chance.panel'."
        )


def _fit_problems(section: str, settings: FitConfig) -> Iterator[str]:
    if settings.held_out > 0 and settings.refit == "fine-tune":
        # every fit holds out other hands, so the network has been trained on them before
        yield f"'{section}.held_out' is {settings.held_out}, which needs '{section}.refit' to be scratch."


def _solve_problems(settings: TabularConfig) -> Iterator[str]:
    """One sentence for every setting that contradicts the algorithm; those that only other algorithms read are ignored."""
    if settings.algorithm != "mccfr":
        if settings.abstraction != "lossless":
            yield f"{settings.algorithm} is full-width and takes no abstraction: mccfr does."
        return
    if settings.precision == "int16":
        yield "Monte Carlo CFR keeps its tables in float32 or float64, and 'int16' was asked for."
    if settings.sampler == "outcome" and settings.exploration == 0:
        yield "'exploration' must be above 0 with outcome sampling, but is 0.0."


def _numbers(config: AnyConfig) -> Iterator[tuple[str, str, float]]:
    yield "seed", "seed", config.seed
    for section in dataclasses.fields(config):
        record = getattr(config, section.name)
        if dataclasses.is_dataclass(record):
            owner = "fit" if isinstance(record, FitConfig) else section.name
            for item in dataclasses.fields(record):
                value = getattr(record, item.name)
                if isinstance(value, int | float) and not isinstance(value, bool):
                    yield f"{section.name}.{item.name}", f"{owner}.{item.name}", value


def shown(value: object) -> str:
    return number(value) if isinstance(value, int) and not isinstance(value, bool) else repr(value)


def number(value: float) -> str:
    if isinstance(value, int):
        return f"{value:,}" if abs(value) < 10**30 else f"a number of {value.bit_length()} bits"
    return f"{value:,.0f}" if value == value // 1 and abs(value) < 1e15 else repr(value)
