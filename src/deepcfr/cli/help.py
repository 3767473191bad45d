"""The contents of --help: the options of a command that matter most, and short names for the kinds of their values.

Output of commands: standard output, a console, one JSON object, a warning.
"""

from __future__ import annotations

import dataclasses
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Annotated, Any, TextIO, cast, get_type_hints

from rich.console import Console
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
from deepcfr.errors import DeepCFRError

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


class StandardOutput:
    """Standard output that says so when it cannot be written.

    When its reader has gone (as `| head` does), a command that saves its work goes on without it.
    """

    def __init__(self, file: TextIO, goes_on: bool) -> None:
        self._file, self._goes_on = file, goes_on

    def write(self, text: str) -> int:
        self._try(lambda: self._file.write(text))
        return len(text)

    def flush(self) -> None:
        self._try(self._file.flush)

    def _try(self, act: Callable[[], object]) -> None:
        try:
            act()
        except OSError as error:
            nowhere = os.open(os.devnull, os.O_WRONLY)  # what is still in the buffer goes there
            os.dup2(nowhere, self._file.fileno())
            os.close(nowhere)
            if not isinstance(error, BrokenPipeError):
                raise DeepCFRError(f"Standard output cannot be written: {error.strerror}.") from error
            if not self._goes_on:
                raise
            warn("standard output is closed; the command goes on without it and saves what it makes.")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


@contextmanager
def standard_output(*, goes_on: bool) -> Iterator[None]:
    """A block whose standard output is a `StandardOutput`, flushed at its end."""
    with redirect_stdout(cast("TextIO", StandardOutput(sys.stdout, goes_on))):
        try:
            yield
        finally:
            sys.stdout.flush()


def open_console(as_json: bool) -> Console:
    """The console for messages: standard error if standard output is for one JSON object."""
    # no markup: names of runs and files may hold square brackets
    return Console(stderr=as_json, highlight=False, soft_wrap=True, markup=False)


def print_json(value: dict[str, Any]) -> None:
    """Print one JSON object on standard output."""
    print(json.dumps(value))


def warn(message: str) -> None:
    """Print a sentence on standard error."""
    print(f"deepcfr: {message}", file=sys.stderr)
