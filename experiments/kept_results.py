"""Results in files, each with the terms of its measurement; a result is valid for the same terms only."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from deepcfr.files import json_bytes, read_json, write_atomically


def write_record(file: Path, terms: dict[str, Any], result: dict[str, Any]) -> None:
    """Write `result` with its terms as JSON."""
    write_atomically(file, json_bytes({"terms": terms, "result": result}))


def read_record(file: Path, terms: dict[str, Any]) -> dict[str, Any] | None:
    """The result in a file; None if there is none, or its terms differ."""
    if not file.is_file():
        return None
    data = read_json(file)
    if data.get("terms") != terms:
        return None
    result: dict[str, Any] = data["result"]
    return result
