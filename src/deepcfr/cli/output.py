"""Output of commands: a console, one JSON object, a warning."""

from __future__ import annotations

import json
import sys
from typing import Any

from rich.console import Console


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
