"""Checks of settings: their ranges, contradictions, and settings without effect; one sentence for each problem."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from typing import TypeVar

from deepcfr.config.records import (
    AnyConfig,
    FitConfig,
    NetworkSolver,
    PublicChanceSampling,
    RunConfig,
    SolveConfig,
    TabularConfig,
    lists_histories,
)
from deepcfr.errors import ConfigError

# Smallest and largest allowed value of every number, by section (or class) and name.
_LIMITS: dict[str, tuple[float, float]] = {
    "seed": (0, 2**63 - 1),
    "cfr.iterations": (1, 1_000_000),
    "sampling.traversals": (1, 100_000_000),
    "cfr.average_threshold": (0.0, 1.0),
    "cfr.keep_networks": (0, 1_000_000),
    "sampling.actions": (0, 1_000),
    "sampling.boards": (1, 10_000_000),
    "sampling.samples": (1, 1_000_000),
    "sampling.hands": (0, 1_000_000),
    "sampling.decisions": (1, 1_000),
    "memory.advantage_capacity": (1, 10**10),
    "memory.strategy_capacity": (1, 10**10),
    "network.width": (1, 8192),
    "network.layers": (1, 64),
    "network.card_width": (1, 64),
    "fit.steps": (1, 100_000_000),
    "fit.batch_size": (1, 10_000_000),
    "fit.learning_rate": (1e-12, 10.0),
    "values.steps": (1, 100_000_000),
    "values.batch_size": (1, 10_000_000),
    "values.capacity": (1, 10**10),
    "nfsp.iterations": (1, 100_000_000),
    "nfsp.episodes": (1, 100_000_000),
    "nfsp.anticipatory": (0.0, 1.0),
    "nfsp.epsilon_start": (0.0, 1.0),
    "nfsp.exploration": (0.0, 0.5),
    "nfsp.replay_capacity": (1, 10**10),
    "nfsp.reservoir_capacity": (1, 10**10),
    "nfsp.q_steps": (0, 1_000_000),
    "nfsp.policy_steps": (0, 1_000_000),
    "nfsp.batch_size": (1, 10_000_000),
    "nfsp.target_every": (1, 100_000_000),
    "nfsp.q_learning_rate": (1e-12, 10.0),
    "nfsp.policy_learning_rate": (1e-12, 10.0),
    "ppo.iterations": (1, 100_000_000),
    "ppo.episodes": (1, 100_000_000),
    "solve.iterations": (1, 100_000_000),
    "solve.traversals": (1, 1_000_000_000),
    "solve.exploration_start": (0.0, 1.0),
    "solve.threshold": (0.0, 1.0),
    "evaluation.every": (0, 100_000_000),
    "runtime.threads": (1, 1024),
    "runtime.checkpoint_every": (1, 100_000_000),
    "runtime.checkpoint_seconds": (0, 1_000_000),
    "runtime.keep": (1, 1000),
    "runtime.minutes": (0.0, 10_000_000.0),
}


_Config = TypeVar("_Config", bound=AnyConfig)


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
        if config.evaluation.policy != "average":
            yield f"'evaluation.policy' must be average for tabular solvers, but is {config.evaluation.policy}."
        if config.solve.algorithm in ("xfp", "egt") and not lists_histories(config.game):
            yield (
                f"'solve.algorithm' is {config.solve.algorithm}, which is for games of OpenSpiel and classes, such "
                f"as openspiel:leduc_poker, but the game is {config.game}."
            )
        yield from _solve_problems(config.solve, config.game)
    elif config.solver != "deep-cfr":
        if config.evaluation.policy != "average":
            yield f"'evaluation.policy' must be average for {config.method}, but is {config.evaluation.policy}."
    else:
        sampling = config.sampling
        panel = isinstance(sampling, PublicChanceSampling) and sampling.panel
        if config.cfr.weighting == "discounted" and not panel and not config.advantage.bootstrapped:
            yield (
                "'cfr.weighting' is discounted, which needs a panel or sums: set sampling.kind to public-chance and "
                "sampling.panel, advantage.target to bootstrap, or cfr.weighting to linear."
            )
        yield from _family_problems(config)
        if config.memory.files and config.runtime.device != "cpu":
            yield f"'memory.files' needs 'runtime.device' to be cpu, but it is {config.runtime.device}."
        yield from _kept_networks_problems(config)


def _family_problems(config: RunConfig) -> Iterator[str]:
    """One sentence for every setting that history values and bootstrapped targets do not offer."""
    sampling, bootstrapped = config.sampling, config.advantage.bootstrapped
    target = f"'advantage.target' is {config.advantage.target}"
    on_boards = sampling.kind == "public-chance"
    if bootstrapped and config.cfr.first_round == "table" and not on_boards:
        yield (
            f"{target}, which needs 'cfr.first_round' to be network, or 'sampling.kind' to be public-chance; or set "
            "'advantage.target' to mean."
        )
    if bootstrapped and sampling.kind == "outcome" and sampling.estimate == "values":
        yield f"{target}, which needs 'sampling.estimate' to be payoffs or baseline."
    if config.advantage.target == "predict" and config.cfr.first_round == "table":
        yield f"{target}, which needs 'cfr.first_round' to be network: a table predicts nothing."
    if bootstrapped and isinstance(sampling, PublicChanceSampling) and sampling.panel:
        yield f"{target}, which needs boards that are drawn anew: set 'sampling.panel' to false, or the target to mean."
    if config.advantage.target == "sum" and config.cfr.weighting != "uniform":
        yield f"{target}, which needs 'cfr.weighting' to be uniform, but it is {config.cfr.weighting}."


_OF_DEEP_CFR = ("cfr", "sampling", "memory", "advantage", "average", "values")
#: sections that a solver does not read
UNREAD: dict[NetworkSolver, tuple[str, ...]] = {
    "nfsp": (*_OF_DEEP_CFR, "ppo"),
    "ppo": (*_OF_DEEP_CFR, "nfsp"),
    "deep-cfr": ("nfsp", "ppo"),
}


def unread_settings(config: AnyConfig) -> Iterator[str]:
    """One sentence for each group of settings that are changed from their defaults but have no effect.

    They are no error, because a variant is selected by one setting; a run prints these sentences when it starts.
    """
    if isinstance(config, SolveConfig):
        groups = _unread_by_tables(config)
    else:
        names = [
            name
            for section in UNREAD[config.solver]
            for name in _changed(config, section, tuple(vars(getattr(config, section))))
        ]
        groups = {f"'solver' is {config.solver}": names}
        if config.solver == "deep-cfr":
            groups |= _unread_by_networks(config)
    for reason, names in groups.items():
        if names:
            yield f"{', '.join(names)}: ignored, because {reason}"


_SAMPLED = (
    "sampler", "traversals", "weighting", "baseline", "exploration_start", "reward_shape", "reward_on", "initial",
    "threshold",
)  # fmt: skip


def _unread_by_tables(config: SolveConfig) -> dict[str, list[str]]:
    """Changed settings of a tabular solver that have no effect, by reason."""
    own = config.solve
    algorithm, mccfr = own.algorithm, own.algorithm == "mccfr"
    idle = {
        "'solve.reward_shape' is y1": ("reward_on",) if own.reward_shape == "y1" else (),
    }
    by_algorithm = _changed(config, "solve", () if mccfr else _SAMPLED)
    return {f"'solve.algorithm' is {algorithm}": by_algorithm} | {
        reason: _changed(config, "solve", names) for reason, names in idle.items() if mccfr
    }


def _unread_by_networks(config: RunConfig) -> dict[str, list[str]]:
    """Changed settings of Deep CFR that have no effect, by reason."""
    sampling = config.sampling
    panel = sampling.kind == "public-chance" and sampling.panel
    groups = {
        "a panel keeps all its hands": _changed(config, "memory", tuple(vars(config.memory))) if panel else [],
        "a panel plays and records whole hands": _changed(config, "sampling", ("decisions", "hands")) if panel else [],
        "the decisions of a hand have different pots": ["advantage.units"]
        if panel and config.advantage.pot_units
        else [],
        "only a panel has exact mean targets": ["advantage.units"]
        if not panel and config.advantage.units == "log"
        else [],
        "sampled advantages come from payoffs alone": []
        if config.has_values
        else _changed(config, "values", tuple(vars(config.values))),
    }
    if panel:
        for section in ("advantage", "average"):
            reason = f"the examples of '{section}.batch_size' are hands"
            groups[reason] = _changed(config, section, ("draw",))
    return groups


def _changed(config: AnyConfig, section: str, names: tuple[str, ...]) -> list[str]:
    """The settings of a section that differ from their defaults; those of a sampler from its own."""
    own = getattr(config, section)
    plain = type(own)() if section == "sampling" else getattr(type(config)(), section)
    return [f"{section}.{name}" for name in names if getattr(own, name) != getattr(plain, name)]


def _kept_networks_problems(config: RunConfig) -> Iterator[str]:
    """A sentence for each setting that needs snapshots which the run does not keep, or not in time."""
    settings, every = config.evaluation, config.cfr.keep_networks
    if settings.policy == "average":
        return
    due = [config.cfr.iterations, *settings.at, *([settings.every] if settings.every else [])]
    if every == 0:
        yield f"'evaluation.policy' is {settings.policy}, which needs 'cfr.keep_networks' to be above 0."
    elif min(due) < every:
        yield (
            f"'evaluation.policy' is {settings.policy}, and iteration {number(min(due))} is to be evaluated, but "
            f"'cfr.keep_networks' keeps no network before iteration {number(every)}."
        )


def _solve_problems(settings: TabularConfig, game: str) -> Iterator[str]:
    """One sentence for every setting that contradicts the algorithm."""
    if settings.algorithm != "mccfr":
        if settings.abstraction != "lossless":
            yield f"{settings.algorithm} is full-width and takes no abstraction: use mccfr."
        return
    if settings.precision == "int16":
        yield "Monte Carlo CFR keeps its tables in float32 or float64, but 'solve.precision' is int16."
    if settings.baseline == "none":
        return
    baseline = f"'solve.baseline' is {settings.baseline}, which"
    if settings.sampler != "outcome":
        yield f"{baseline} needs 'solve.sampler' to be outcome, but it is {settings.sampler}."
    if settings.reward_shape != "y1" and settings.reward_on == "payoff":
        yield f"{baseline} needs both players to learn from the same payoffs: set 'solve.reward_on' to regret."
    if settings.baseline == "history" and not lists_histories(game):
        yield (
            f"{baseline} is for games of OpenSpiel and classes, whose histories are listed, but the game is {game}: use "
            "infoset."
        )


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
