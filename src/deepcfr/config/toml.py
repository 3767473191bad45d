"""Settings as TOML text: read, checked as a whole, and written."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import tomllib
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

from deepcfr.config.checks import config_problems, shown
from deepcfr.config.records import RunConfig
from deepcfr.core.errors import ConfigError

RECIPES = Path(__file__).parent / "recipes"


def load_config(path: str | Path) -> RunConfig:
    """Read a TOML file, or the recipe of that name, into a validated `RunConfig`; what it omits has its default.

    Raises ConfigError with every problem in the file: unreadable or malformed text, unknown sections and keys, values of
    the wrong type, numbers out of range.
    """
    table = read_settings(path)
    try:
        return config_from_table(table)
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
    problems: list[str] = []
    config: RunConfig = _build(RunConfig, table, "", problems)
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
        elif not dataclasses.is_dataclass(hints[name]):
            known = len(problems)
            converted = _convert(hints[name], value, prefix + name, problems)
            if len(problems) == known:
                values[name] = converted
        elif isinstance(value, dict):
            values[name] = _build(hints[name], value, f"{prefix}{name}.", problems)
        else:
            problems.append(f"'{prefix}{name}' must be a section, but is {shown(value)}.")
    return record(**values)


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


def settings_by_name(config: RunConfig) -> dict[str, Any]:
    """Every setting that the solver reads, by its name in a configuration file, such as `cfr.weighting`."""
    named: dict[str, Any] = {}
    for section, value in dataclasses.asdict(config).items():
        if not isinstance(value, dict):
            named[section] = value
        elif section in config.sections:
            read = config.sampling.read if section == "sampling" else value
            named |= {f"{section}.{key}": value[key] for key in read}
    return named


def config_to_toml(config: RunConfig) -> str:
    """The configuration as TOML text that `load_config` reads back to an equal record.

    Settings that the solver does not read are left out if they have their defaults.
    """
    lines, plain, read = [], dataclasses.asdict(RunConfig()), settings_by_name(config)
    for section, value in dataclasses.asdict(config).items():
        if not isinstance(value, dict):
            lines.append(f"{section} = {_toml(value)}")
            continue
        kept = {key: x for key, x in value.items() if f"{section}.{key}" in read or x != plain[section][key]}
        if kept:
            lines += ["", f"[{section}]", *(f"{key} = {_toml(x)}" for key, x in kept.items())]
    return "\n".join(lines) + "\n"


def _toml(value: object) -> str:
    # the JSON of settings is TOML, but for one character that TOML does not allow
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
