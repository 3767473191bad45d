"""The contents of --help: the options of a command that matter most, and short names for the kinds of their values."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from tyro.conf import DisallowNone, Fixed, PositionalMetavarFromFieldName, Suppress, arg
from tyro.constructors import (
    ConstructorRegistry,
    PrimitiveConstructorSpec,
    PrimitiveTypeInfo,
    StructConstructorSpec,
    StructFieldSpec,
    StructTypeInfo,
)

from deepcfr.config import RunConfig

MARKERS = (DisallowNone, PositionalMetavarFromFieldName)  # of tyro, for all commands
SHORT, LONG = ("-h", "--help"), "--help-all"

#: The options that --help shows of commands with more than ten; required ones are shown in any case.
MAIN_OPTIONS: Mapping[str, tuple[str, ...]] = {
    "train": (
        "config", "solver", "json", "settings.seed", "settings.iterations", "settings.evaluation.every",
        "settings.runtime.threads", "settings.runtime.device", "settings.runtime.minutes",
    ),
    "solve": (
        "config", "solver", "minutes", "json", "settings.seed", "settings.iterations", "settings.solve.abstraction",
        "settings.evaluation.every", "settings.runtime.threads",
    ),
    "spot": ("board", "pot", "stacks", "dealer", "big_blind", "sizes", "exploitability", "out", "threads", "json"),
    "spots": ("file", "out", "flops", "list", "processes", "json"),
    "match": ("boards", "hands", "seed", "policy", "threads", "json"),
    "tournament": ("styles", "against_first", "boards", "hands", "seed", "policy", "threads", "json"),
    "lbr": ("boards", "rounds", "hands", "seed", "policy", "threads", "json"),
    "acpc": ("host", "seed", "policy", "stack", "seconds", "json"),
    "dealer": ("game", "duplicate", "seed", "phh", "log", "host", "port", "seconds", "json"),
}  # fmt: skip
_VALUES: Mapping[type, str] = {int: "N", float: "X", str: "TEXT", Path: "FILE"}


def rules_of_help(command: type, options: tuple[str, ...] | None, start: RunConfig) -> ConstructorRegistry:
    """Rules for tyro: short names for kinds of values, and only these options of a command; None: all of them.

    `start` says whose settings `train` and `solve` offer: those of tabular solvers, or of all others.
    """
    rules = ConstructorRegistry()
    rules.primitive_rule(_plain_value)
    shown = {} if options is None else _shown(command, options)
    asking = False

    @rules.struct_rule
    def options_of(record: StructTypeInfo) -> StructConstructorSpec | None:
        nonlocal asking
        if asking or not dataclasses.is_dataclass(record.type):
            return None
        asking = True  # tyro's own rules, which are asked for after this one
        usual = ConstructorRegistry.get_struct_spec(record)
        asking = False
        if not isinstance(usual, StructConstructorSpec):
            return None
        names = shown.get(record.type)
        fields = [_option(item, names) for item in usual.fields]
        if record.type is RunConfig:
            fields = [_setting(item, start) for item in fields]
        return dataclasses.replace(usual, fields=tuple(fields))

    return rules


def _plain_value(value: PrimitiveTypeInfo) -> PrimitiveConstructorSpec[Any] | None:
    kind: Any = value.type
    if kind not in _VALUES:
        return None

    def read(words: list[str]) -> Any:
        try:
            return kind(words[0])
        except ValueError:
            raise ValueError(f"'{words[0]}' is not a {'whole ' if kind is int else ''}number.") from None

    return PrimitiveConstructorSpec(
        nargs=1,
        metavar=_VALUES[kind],
        instance_from_str=read,
        is_instance=lambda item: isinstance(item, kind) or (kind is float and isinstance(item, int) and "~"),
        str_from_instance=lambda item: [str(item)],
    )


def _shown(command: type, options: tuple[str, ...]) -> dict[type, set[str]]:
    """The names of shown fields, of the command and of each of its sections."""
    shown: dict[type, set[str]] = {command: {item.name for item in dataclasses.fields(command) if _is_required(item)}}
    for option in options:
        record = command
        for name in option.split("."):
            shown.setdefault(record, set()).add(name)
            record = get_type_hints(record)[name]
    return shown


def _is_required(item: dataclasses.Field[Any]) -> bool:
    return item.default is dataclasses.MISSING and item.default_factory is dataclasses.MISSING


def _option(item: StructFieldSpec, shown: set[str] | None) -> StructFieldSpec:
    kind: Any = item.type
    if shown is not None and item.name not in shown:
        kind = Annotated[kind, Suppress]
    elif item.default is None or item.default == ():  # its text says what happens without it
        kind = Annotated[kind, arg(help_behavior_hint="")]
    return dataclasses.replace(item, type=_quickly_checked(kind))


def _quickly_checked(kind: Any) -> Any:
    """A type whose default tyro checks without typeguard, which takes a tenth of a second to load; it is read as `kind`."""
    origin, parts = get_origin(kind), get_args(kind)
    if origin is Annotated:
        # the mark makes it another type, of which early versions of Python 3.11 do not find the equal one in their cache
        return Annotated[(_quickly_checked(parts[0]), *parts[1:], "quickly checked")]
    if origin is tuple:
        return Annotated[tuple, ConstructorRegistry.get_primitive_spec(PrimitiveTypeInfo.make(kind, set(MARKERS)))]
    return Union[tuple(map(_quickly_checked, parts))] if origin is UnionType else kind  # noqa: UP007


def _setting(item: StructFieldSpec, start: RunConfig) -> StructFieldSpec:
    """A setting, fixed if the command has it as an argument or if its solvers do not read it."""
    kind: Any = item.type
    section = dataclasses.is_dataclass(item.default)
    if item.name in ("game", "solver") or (section and not _offered(item.name, start)):
        kind = Annotated[kind, Fixed, Suppress, arg(name=f"run.{item.name}")]  # names of options are unique
    elif item.name == "solve":
        kind = Annotated[kind, arg(name="")]
    return dataclasses.replace(item, type=kind)


def _offered(section: str, start: RunConfig) -> bool:
    return section in start.sections if start.tabular else section != "solve"
