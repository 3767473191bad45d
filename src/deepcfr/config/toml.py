"""Settings as TOML text: read, checked as a whole, and written."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import tomllib
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from deepcfr.config.checks import config_problems, shown
from deepcfr.config.records import SAMPLINGS, AnyConfig, ExternalSampling, RunConfig, Sampling, SolveConfig
from deepcfr.errors import ConfigError

_Config = TypeVar("_Config", bound=AnyConfig)


RECIPES = Path(__file__).parent / "recipes"


def load_config(path: str | Path) -> RunConfig:
    """Read a TOML file, or the recipe of that name, into a validated `RunConfig`; what it omits has its default.

    Raises ConfigError with every problem in the file: unreadable or malformed text, unknown sections and keys, values of
    the wrong type, numbers out of range.
    """
    config = load_any_config(path)
    if not isinstance(config, RunConfig):
        raise ConfigError(f"In '{path}': the section 'solve' is for a tabular solver, not for Deep CFR.")
    return config


def load_solve_config(path: str | Path) -> SolveConfig:
    """Read a TOML file of a tabular solver; errors as in `load_config`."""
    config = load_any_config(path)
    if not isinstance(config, SolveConfig):
        raise ConfigError(
            f"In '{path}': a section 'solve' is missing, so this is no configuration of a tabular solver."
        )
    return config


def load_any_config(path: str | Path) -> AnyConfig:
    """Read a TOML file, or a recipe; one with a section `solve` is a `SolveConfig`. Errors as in `load_config`."""
    table = read_settings(path)
    try:
        return config_from_table(table) if "solve" not in table else solve_config_from_table(table)
    except ConfigError as error:
        raise ConfigError([f"In '{path}': {problem}" for problem in error.problems]) from None


def read_settings(path: str | Path) -> dict[str, Any]:
    """Read a TOML file, or the recipe of that name that comes with the package, as nested dictionaries; a file wins.

    Raises ConfigError also for a text that does not match the checksum at its end (`signed_toml`), if it has one.
    """
    if not isinstance(path, str | Path):
        raise ConfigError(f"A configuration is a file or the name of a recipe, but {path!r} is neither.")
    recipes = {file.stem: file for file in RECIPES.glob("*.toml")}
    file = Path(path)
    if not file.exists():
        if str(path) not in recipes:
            known = ", ".join(sorted(recipes))
            raise ConfigError(
                f"The configuration '{path}' cannot be read: it is neither a file nor a recipe ({known})."
            )
        file = recipes[str(path)]
    try:
        text = file.read_text(encoding="utf-8-sig")
        if _CHECKSUM in text and signed_toml(text) != text:
            raise ConfigError(
                f"The configuration '{path}' is damaged: it does not match its checksum. If you changed it on purpose, "
                "delete its last line."
            )
        return tomllib.loads(text)
    except (OSError, ValueError, TypeError, RecursionError) as error:
        raise ConfigError(f"The configuration '{path}' cannot be read: {error}.") from error


_CHECKSUM = "# checksum: "


def signed_toml(text: str) -> str:
    """The text of a configuration with its BLAKE2b checksum as a comment on its last line."""
    body = text.partition(_CHECKSUM)[0]
    return f"{body}{_CHECKSUM}{hashlib.blake2b(body.encode(), digest_size=16).hexdigest()}\n"


def config_from_table(table: dict[str, Any]) -> RunConfig:
    """A validated `RunConfig` from nested dictionaries; see `load_config` for the errors."""
    return _from_table(RunConfig, table)


def solve_config_from_table(table: dict[str, Any]) -> SolveConfig:
    """A validated `SolveConfig` from nested dictionaries; see `load_config` for the errors."""
    return _from_table(SolveConfig, table)


def _from_table(record: type[_Config], table: dict[str, Any]) -> _Config:
    problems: list[str] = []
    config: _Config = _build(record, table, "", problems)
    problems += config_problems(config)
    if problems:
        raise ConfigError(problems)
    return config


def _build(record: type, table: dict[str, Any], prefix: str, problems: list[str]) -> Any:
    hints = get_type_hints(record)
    values: dict[str, Any] = {}
    for name, value in table.items():
        if name not in hints:
            problems.append(f"'{prefix}{name}' is not a setting; there are {', '.join(hints)}.")
        elif hints[name] == Sampling and isinstance(value, dict):
            values[name] = _sampling(value, problems)
        elif not dataclasses.is_dataclass(hints[name]) and hints[name] != Sampling:
            known = len(problems)
            converted = _convert(hints[name], value, prefix + name, problems)
            if len(problems) == known:
                values[name] = converted
        elif isinstance(value, dict):
            values[name] = _build(hints[name], value, f"{prefix}{name}.", problems)
        else:
            problems.append(f"'{prefix}{name}' must be a section, but is {shown(value)}.")
    return record(**values)


def _sampling(table: dict[str, Any], problems: list[str]) -> Sampling:
    """The sampling record of the kind in the section; it has only the settings of that kind."""
    kind = table.get("kind", "external")
    if kind not in tuple(SAMPLINGS):
        problems.append(f"'sampling.kind' must be one of {', '.join(SAMPLINGS)}, but is {shown(kind)}.")
        return ExternalSampling()
    sampling: Sampling = _build(SAMPLINGS[kind], table, "sampling.", problems)
    return sampling


def _convert(hint: Any, value: Any, name: str, problems: list[str]) -> Any:
    if get_origin(hint) is Literal:
        if value not in get_args(hint):
            problems.append(f"'{name}' must be one of {', '.join(get_args(hint))}, but is {shown(value)}.")
        return value
    if get_origin(hint) is tuple:
        if not isinstance(value, list) or not all(type(item) is int for item in value):
            problems.append(f"'{name}' must be a list of whole numbers, but is {shown(value)}.")
            return ()
        return tuple(value)
    if hint is float and type(value) is int and abs(value) < 10**30:
        return float(value)
    if type(value) is not hint:
        kinds = {int: "a whole number", float: "a number", bool: "true or false", str: "text"}
        problems.append(f"'{name}' must be {kinds[hint]}, but is {shown(value)}.")
    return value


def settings_by_name(config: AnyConfig) -> dict[str, Any]:
    """Every setting by its name in a configuration file, such as `cfr.iterations`."""
    named: dict[str, Any] = {}
    for section, value in dataclasses.asdict(config).items():
        named |= (
            {f"{section}.{key}": item for key, item in value.items()} if isinstance(value, dict) else {section: value}
        )
    return named


def config_to_toml(config: AnyConfig) -> str:
    """The configuration as TOML text that `load_config` or `load_any_config` reads back to an equal record."""
    names = ("game", "seed", "solver") if isinstance(config, RunConfig) else ("game", "seed")
    lines = [f"{name} = {_toml(getattr(config, name))}" for name in names]
    for section in dataclasses.fields(config):
        record = getattr(config, section.name)
        if dataclasses.is_dataclass(record):
            lines += ["", f"[{section.name}]"]
            lines += [f"{item.name} = {_toml(getattr(record, item.name))}" for item in dataclasses.fields(record)]
    return "\n".join(lines) + "\n"


def _toml(value: object) -> str:
    # the JSON of settings is TOML, but for one character that TOML does not allow
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
