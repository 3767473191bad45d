"""Fill templates of pages with figures from records: experiments/templates/NAME.md.

A field names a file, then keys: `{tabular[mccfr_leduc_ratio]:down}` is of experiments/results/tabular.json, and
`{models/fhp/metrics[-1][seconds]:up/60}` of the last line of a model's metrics. In a list a key is an index, or
what a row has, such as `[setting=paper,t=20]`. What follows the colon is Python's format of the value, or:

* `up2` or `down2`: rounded up or down to two digits; `/60` behind it divides first;
* `commit`: the first ten digits, with a mark for uncommitted changes;
* `<nash_conv:up2> at <iteration>`: that text for every item of a list, joined by commas; with `lines` by ends of lines.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from math import ceil, floor
from pathlib import Path
from string import Formatter
from typing import Any

from deepcfr.run.metrics import read_metrics

ROOT = Path(__file__).parents[1]


def filled(name: str, records: Mapping[str, Any] | None = None) -> str:
    """The template `name` with figures of `records`, or of recorded files. Raises KeyError or IndexError without them."""
    text = (ROOT / "experiments" / "templates" / f"{name}.md").read_text(encoding="utf-8")
    return Filler().vformat(text, (), RECORDS if records is None else records)


def load(name: str) -> Any:
    """A recorded measurement, or a file of a model."""
    path = ROOT / name if "/" in name else ROOT / "experiments" / "results" / name
    if path.name == "metrics":
        return read_metrics(path.with_suffix(".jsonl"))
    return json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))


def up(value: float, digits: int) -> str:
    """A figure for which less is better, rounded up."""
    return f"{ceil(value * 10**digits) / 10**digits:,.{digits}f}"


def down(value: float, digits: int) -> str:
    """A figure for which more is better, rounded down."""
    return f"{floor(value * 10**digits) / 10**digits:,.{digits}f}"


def short(commit: str) -> str:
    """The first ten digits of a commit, and a mark for uncommitted changes."""
    return commit[:10] + ", changed" * ("+" in commit)


def replaced(page: str, begin: str, end: str, lines: Sequence[str]) -> str:
    """The text of a page with `lines` between the two markers; each marker must occur once."""
    before, rest = page.split(begin)
    _, after = rest.split(end)
    return "\n".join([before + begin, *lines, end + after])


class _Records(dict[str, Any]):
    def __missing__(self, name: str) -> Any:
        self[name] = load(name)
        return self[name]


RECORDS: Mapping[str, Any] = _Records()  # every recorded file by its name, read when it is asked for


class Filler(Formatter):
    """Formats fields as above."""

    def get_field(self, field_name: str, _args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Any, str]:
        value: Any = kwargs
        for key in re.findall(r"[^\[\]]+", field_name):
            value = _item(value, key) if isinstance(value, list | tuple) else value[key]
        return value, field_name

    def format_field(self, value: Any, format_spec: str) -> str:
        if rounding := re.fullmatch(r"(up|down)(\d?)(?:/(.+))?", format_spec):
            way, digits, unit = rounding.groups()
            return {"up": up, "down": down}[way](value / float(unit or 1), int(digits or 0))
        if format_spec == "commit":
            return short(value)
        if isinstance(value, list):
            text = format_spec.removeprefix("lines")
            joiner = ", " if text == format_spec else "\n"
            return joiner.join(self.vformat(text.replace("<", "{").replace(">", "}"), (), item) for item in value)
        return str(super().format_field(value, format_spec))


def _item(rows: Sequence[Any], key: str) -> Any:
    if "=" in key:
        wanted = [part.split("=") for part in key.split(",")]
        return next(row for row in rows if all(str(row[name]).startswith(text) for name, text in wanted))
    return rows[int(key)]
