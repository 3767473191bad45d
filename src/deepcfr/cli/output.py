"""Output of commands: a console, one JSON object, a warning, the facts of a result."""

from __future__ import annotations

import dataclasses
import json
import sys
from typing import TYPE_CHECKING, Any

from rich.console import Console

if TYPE_CHECKING:
    from deepcfr.evaluation.exploitability import Exploitability


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


def result_facts(result: Exploitability) -> dict[str, Any]:
    """The fields of an exact evaluation as JSON values."""
    facts = dataclasses.asdict(result)
    facts["best_response_values"] = list(result.best_response_values)
    return facts
