"""Checks of settings: their ranges, contradictions, and settings without effect; one sentence for each problem."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator

from deepcfr.config.records import OPENSPIEL, FitConfig, RunConfig, names_class
from deepcfr.core.errors import ConfigError

# Smallest and largest allowed value of every number, by section (or class) and name.
_LIMITS: dict[str, tuple[float, float]] = {
    "seed": (0, 2**63 - 1),
    "iterations": (1, 100_000_000),
    "sampling.traversals": (1, 100_000_000),
    "cfr.keep_networks": (0, 1_000_000),
    "sampling.actions": (0, 1_000),
    "sampling.boards": (1, 10_000_000),
    "sampling.samples": (1, 1_000_000),
    "sampling.hands": (0, 1_000_000),
    "sampling.decisions": (1, 1_000),
    "memory.capacity": (1, 10**10),
    "network.width": (1, 8192),
    "network.layers": (1, 64),
    "network.card_width": (1, 64),
    "fit.steps": (1, 100_000_000),
    "fit.passes": (0.0, 1e9),
    "fit.batch_size": (1, 10_000_000),
    "fit.learning_rate": (1e-12, 10.0),
    "values.steps": (1, 100_000_000),
    "values.batch_size": (1, 10_000_000),
    "values.capacity": (1, 10**10),
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
    "ppo.episodes": (1, 100_000_000),
    "solve.boards": (1, 10_000_000),
    "solve.traversals": (1, 1_000_000_000),
    "solve.exploration_start": (0.0, 1.0),
    "evaluation.every": (0, 100_000_000),
    "evaluation.threshold": (0.0, 1.0),
    "runtime.threads": (1, 1024),
    "runtime.checkpoint_seconds": (0, 1_000_000),
    "runtime.minutes": (0.0, 10_000_000.0),
}


def validate_config(config: RunConfig) -> RunConfig:
    """Return `config`, or raise ConfigError with every number that is out of range."""
    problems = list(config_problems(config))
    if problems:
        raise ConfigError(problems)
    return config


def config_problems(config: RunConfig) -> Iterator[str]:
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
    elif config.tabular and config.runtime.device != "cpu":
        yield f"'runtime.device' must be cpu for tabular solvers, but is '{config.runtime.device}'."
    if config.solver == "deep-cfr":
        yield from _deep_problems(config)
        return
    if config.evaluation.policy != "average":
        solver = "tabular solvers" if config.tabular else config.method
        yield f"'evaluation.policy' must be average for {solver}, but is {config.evaluation.policy}."
    listed = config.game.startswith(OPENSPIEL) or names_class(config.game)
    if config.solver in ("xfp", "egt") and not listed:
        yield (
            f"'solver' is {config.solver}, which is for games of OpenSpiel and classes, such as openspiel:leduc_poker, but "
            f"the game is {config.game}."
        )
    if config.tabular:
        yield from _tabular_problems(config)


def _deep_problems(config: RunConfig) -> Iterator[str]:
    """One sentence for every setting of Deep CFR that contradicts another."""
    if config.cfr.weighting == "discounted" and not config.sampling.on_panel and not config.advantage.bootstrapped:
        yield (
            "'cfr.weighting' is discounted, which needs a panel or sums: set sampling.kind to public-chance and "
            "sampling.panel, advantage.target to bootstrap, or cfr.weighting to linear."
        )
    yield from _family_problems(config)
    yield from _kept_networks_problems(config)


def _family_problems(config: RunConfig) -> Iterator[str]:
    """One sentence for every setting that history values and bootstrapped targets do not offer."""
    sampling, bootstrapped = config.sampling, config.advantage.bootstrapped
    target = f"'advantage.target' is {config.advantage.target}"
    if bootstrapped and config.cfr.first_round == "table" and sampling.kind != "public-chance":
        yield (
            f"{target}, which needs 'cfr.first_round' to be network, or 'sampling.kind' to be public-chance; or set "
            "'advantage.target' to mean."
        )
    if bootstrapped and sampling.kind == "outcome" and sampling.estimate == "values":
        yield f"{target}, which needs 'sampling.estimate' to be payoffs or baseline."
    if config.advantage.target == "predict" and config.cfr.first_round == "table":
        yield f"{target}, which needs 'cfr.first_round' to be network: a table predicts nothing."
    if bootstrapped and sampling.on_panel:
        yield f"{target}, which needs boards drawn in each iteration: set 'sampling.panel' to false, or the target to mean."
    if config.advantage.target == "sum" and config.cfr.weighting != "uniform":
        yield f"{target}, which needs 'cfr.weighting' to be uniform, but it is {config.cfr.weighting}."


def unread_settings(config: RunConfig) -> Iterator[str]:
    """One sentence for each group of settings that are changed from their defaults but have no effect.

    They are no error, because a variant is selected by one setting; a run prints these sentences when it starts.
    """
    groups: dict[str, list[str]] = {}
    for section in dataclasses.fields(config):
        if dataclasses.is_dataclass(getattr(config, section.name)) and section.name not in config.sections:
            plain = section.name == "values" and config.solver == "deep-cfr"
            reason = "sampled advantages come from payoffs alone" if plain else f"'solver' is {config.solver}"
            groups.setdefault(reason, []).extend(_changed(config, section.name))
    if config.solver == "deep-cfr":
        groups |= _unread_by_networks(config)
    if config.tabular:
        groups |= _unread_by_tables(config)
    for reason, names in groups.items():
        if names:
            yield f"{', '.join(names)}: ignored, because {reason}"


def _unread_by_tables(config: RunConfig) -> dict[str, list[str]]:
    """Changed settings of a tabular solver that have no effect, by reason."""
    if config.solver == "mccfr":
        return {"mccfr samples single hands": _changed(config, "solve", "boards")}
    read = ("solve.precision", "solve.abstraction", *(["solve.boards"] if config.solver == "cfr-d" else []))
    return {f"{config.solver} visits all hands": [name for name in _changed(config, "solve") if name not in read]}


def _unread_by_networks(config: RunConfig) -> dict[str, list[str]]:
    """Changed settings of Deep CFR that have no effect, by reason."""
    sampling = config.sampling
    others = [name for name in vars(sampling) if name not in sampling.read]
    groups = {f"'sampling.kind' is {sampling.kind}": _changed(config, "sampling", *others)}
    if not sampling.on_panel:
        log = config.advantage.units == "log"
        return groups | {"only a panel has exact mean targets": ["advantage.units"] if log else []}
    groups |= {
        "a panel keeps all its hands": _changed(config, "memory"),
        "a panel plays and records whole hands": _changed(config, "sampling", "decisions", "hands"),
        "the decisions of a hand have different pots": ["advantage.units"] if config.advantage.units == "pots" else [],
    }
    for section in ("advantage", "average"):
        groups[f"the examples of '{section}.batch_size' are hands"] = _changed(config, section, "draw")
    return groups


def _changed(config: RunConfig, section: str, *names: str) -> list[str]:
    """The settings of a section that differ from their defaults, of all or of those named."""
    own, plain = vars(getattr(config, section)), vars(getattr(RunConfig(), section))
    return [f"{section}.{name}" for name in names or own if own[name] != plain[name]]


def _kept_networks_problems(config: RunConfig) -> Iterator[str]:
    """A sentence for each setting that needs snapshots which the run does not keep, or not in time."""
    settings, every = config.evaluation, config.cfr.keep_networks
    if settings.policy == "average":
        return
    due = [config.iterations, *settings.at, *([settings.every] if settings.every else [])]
    if every == 0:
        yield f"'evaluation.policy' is {settings.policy}, which needs 'cfr.keep_networks' to be above 0."
    elif min(due) < every:
        yield (
            f"'evaluation.policy' is {settings.policy}, and iteration {number(min(due))} is to be evaluated, but "
            f"'cfr.keep_networks' keeps no network before iteration {number(every)}."
        )


def _tabular_problems(config: RunConfig) -> Iterator[str]:
    """One sentence for every setting that contradicts the tabular solver."""
    if config.solver != "mccfr" and config.solve.abstraction != "lossless":
        yield f"{config.solver} is full-width and takes no abstraction: use mccfr."
    if config.solver in ("mccfr", "cfr-d") and config.solve.precision == "int16":
        yield f"{config.method} keeps its tables in float32 or float64, but 'solve.precision' is int16."


def _numbers(config: RunConfig) -> Iterator[tuple[str, str, float]]:
    yield "seed", "seed", config.seed
    yield "iterations", "iterations", config.iterations
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
