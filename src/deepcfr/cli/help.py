"""The contents of --help: the options of a command that matter most, and short names for the kinds of their values."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, get_type_hints

from tyro.conf import DisallowNone, PositionalMetavarFromFieldName, Suppress, arg
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
        "config", "solver", "seed", "json", "SOLVER.iterations", "evaluation.every", "runtime.threads", "runtime.device",
        "runtime.minutes",
    ),
    "solve": (
        "config", "minutes", "seed", "json", "solve.algorithm", "solve.iterations", "solve.abstraction",
        "evaluation.every", "runtime.threads",
    ),
    "spot": ("board", "pot", "stacks", "dealer", "big_blind", "sizes", "gap", "out", "threads", "json"),
    "match": ("boards", "hands", "seed", "policy", "threads", "json"),
    "tournament": ("styles", "against_first", "boards", "hands", "seed", "policy", "threads", "json"),
    "lbr": ("boards", "rounds", "hands", "seed", "policy", "threads", "json"),
    "acpc": ("host", "seed", "policy", "stack", "seconds", "json"),
    "dealer": ("game", "duplicate", "seed", "phh", "log", "host", "port", "seconds", "json"),
}  # fmt: skip
_VALUES: Mapping[type, str] = {int: "N", float: "X", str: "TEXT", Path: "FILE"}


def main_options(command: str, train: RunConfig) -> tuple[str, ...] | None:
    """The options that --help shows of a command, by their names in its record; None: all. `train` has the solver's."""
    section = "cfr" if train.solver == "deep-cfr" else train.solver
    options = MAIN_OPTIONS.get(command)
    return options and tuple(name.replace("SOLVER", section) for name in options)


def rules_of_help(command: type, options: tuple[str, ...] | None) -> ConstructorRegistry:
    """Rules for tyro: short names for kinds of values, and only these options of a command; None: all of them."""
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
        return dataclasses.replace(usual, fields=tuple(_option(item, names) for item in usual.fields))

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
    hints = get_type_hints(command)
    shown: dict[type, set[str]] = {command: {item.name for item in dataclasses.fields(command) if _is_required(item)}}
    for name in options:
        first, _, setting = name.partition(".")
        shown[command].add(first)
        if setting:
            shown.setdefault(hints[first], set()).add(setting)
    return shown


def _is_required(item: dataclasses.Field[Any]) -> bool:
    return item.default is dataclasses.MISSING and item.default_factory is dataclasses.MISSING


def _option(item: StructFieldSpec, shown: set[str] | None) -> StructFieldSpec:
    kind: Any = item.type
    if shown is not None and item.name not in shown:
        kind = Annotated[kind, Suppress]
    elif item.default is None or item.default == ():  # its text says what happens without it
        kind = Annotated[kind, arg(help_behavior_hint="")]
    return dataclasses.replace(item, type=kind)
