"""The table of many solved spots: values, equities and the frequencies of first actions, and their means over all spots.

Means are over deals. A board counts by its weight, and by the pairs of hands that are possible together on it, since a deal
has the hands before the board. Frequencies of a decision also count by the chance that play gets there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Column, Table

from deepcfr.core.files import csv_text
from deepcfr.core.types import Doubles
from deepcfr.run.chart import figure
from deepcfr.search.flops import FLOP_CARDS, KINDS, kinds_of
from deepcfr.search.spot import NAMES, parse_board

FIRST = ("", "check")  # the lines to the first decision of each player
_PLACES = 6
_SHOWN = 100  # spots that are printed
Numbers = dict[str, float]


@dataclass(frozen=True)
class SolvedSpot:
    """One of many spots with its solution."""

    name: str
    weight: float  # how many deals of its board it stands for
    matchups: float  # pairs of hands that are possible together on its board, by their weights
    solution: Mapping[str, Any]  # as `Solution.facts` without single hands

    @cached_property
    def kinds(self) -> dict[str, str]:
        """The name of each kind of its flop."""
        flop = np.sort(np.array([parse_board(self.solution["board"])[:FLOP_CARDS]], np.uint8))
        return {kind: KINDS[kind][int(place[0])] for kind, place in kinds_of(flop).items()}

    def frequencies(self, line: str) -> Numbers:
        """The frequencies of the actions after a line; none if nobody acts there."""
        return next((dict(row["frequencies"]) for row in self.solution["decisions"] if row["line"] == line), {})

    def chance(self, line: str) -> float:
        """The chance that play gets to the decision after a line, of one or no action."""
        return self.frequencies("").get(line, 0.0) if line else 1.0

    def shares(self, kind: str) -> Numbers:
        """The `values` or `equities` of both players."""
        return {seat: float(self.solution[kind][seat]) for seat in NAMES}


@dataclass(frozen=True)
class SpotTable:
    """Solved spots beside each other, in the order of their file."""

    spots: tuple[SolvedSpot, ...]
    wanted: int  # spots of the file, of which some may be missing
    deals: float = 0.0  # those of a whole table of which this is a part; 0: this one is whole

    @cached_property
    def chances(self) -> Doubles:
        """The share of each spot in all deals, [R]."""
        parts = np.array([spot.weight * spot.matchups for spot in self.spots])
        return parts / (self.deals or parts.sum())

    def of(self, rows: Sequence[int]) -> SpotTable:
        """The part with the spots in some rows."""
        deals = self.deals or sum(spot.weight * spot.matchups for spot in self.spots)
        return SpotTable(tuple(self.spots[row] for row in rows), self.wanted, deals)

    def means(self, kind: str) -> Numbers:
        """The means of `values` or `equities` over the spots."""
        return _mean([spot.shares(kind) for spot in self.spots], self.chances)

    def frequencies(self, line: str) -> Numbers:
        """The frequencies of actions after a line over all spots, of the deals that get there."""
        reached = self.chances * [spot.chance(line) for spot in self.spots]
        return _mean([spot.frequencies(line) for spot in self.spots], reached) if reached.any() else {}

    def by_kind(self) -> dict[str, dict[str, list[int]]]:
        """The rows of the spots of each name of each of KINDS that there is."""
        found: dict[str, dict[str, list[int]]] = {kind: {name: [] for name in names} for kind, names in KINDS.items()}
        for row, spot in enumerate(self.spots):
            for kind, name in spot.kinds.items():
                found[kind][name].append(row)
        return {kind: {name: rows for name, rows in names.items() if rows} for kind, names in found.items()}

    def actions(self, line: str) -> list[str]:
        """The names of all actions after a line, in the order in which spots have them."""
        return list(dict.fromkeys(name for spot in self.spots for name in spot.frequencies(line)))

    def facts(self) -> dict[str, Any]:
        """The table as a dictionary for JSON (docs/spots.md)."""
        rows = [
            {
                "name": spot.name,
                "board": spot.solution["board"],
                "weight": spot.weight,
                "chance": chance,
                "kinds": spot.kinds,
                "values": spot.shares("values"),
                "equities": spot.shares("equities"),
                "frequencies": {line: spot.frequencies(line) for line in FIRST},
                "exploitability_percent": spot.solution["exploitability_percent"],
                "iterations": spot.solution["iterations"],
                "seconds": spot.solution["seconds"],
            }
            for spot, chance in zip(self.spots, self.chances.tolist(), strict=True)
        ]
        kinds = {
            kind: {name: self.of(members)._summary() for name, members in names.items()}
            for kind, names in self.by_kind().items()
        }
        return {"spots": rows, "wanted": self.wanted, "mean": self._summary(), "kinds": kinds}

    def _summary(self) -> dict[str, Any]:
        return {
            "weight": sum(spot.weight for spot in self.spots),
            "chance": float(self.chances.sum()),
            "values": self.means("values"),
            "equities": self.means("equities"),
            "frequencies": {line: self.frequencies(line) for line in FIRST},
        }

    def columns(self) -> dict[str, tuple[list[Any], Any]]:
        """The columns of the table by title, each with the mean over all spots, None where there is none."""
        spots = self.spots
        columns: dict[str, tuple[list[Any], Any]] = {
            "spot": ([spot.name for spot in spots], "mean"),
            "board": ([spot.solution["board"] for spot in spots], None),
            "weight": ([spot.weight for spot in spots], sum(spot.weight for spot in spots)),
            "chance": (self.chances.tolist(), 1.0),
        }
        columns |= {kind: ([spot.kinds[kind] for spot in spots], None) for kind in KINDS}
        for title, kind, unit in (("EV of", "values", 0.0), ("equity % of", "equities", 100.0)):
            for seat in NAMES:
                cells = [spot.shares(kind)[seat] * (unit / spot.solution["pot"] if unit else 1) for spot in spots]
                columns[f"{title} {seat}"] = cells, float(self.chances @ cells)
        for line in FIRST:
            mean = self.frequencies(line)
            for action in self.actions(line):
                shares = [spot.frequencies(line).get(action) for spot in spots]
                columns[action_title(line, action)] = (shares, mean.get(action))
        for title in ("exploitability_percent", "iterations", "seconds"):
            columns[title.replace("_percent", " %")] = [spot.solution[title] for spot in spots], None
        return columns

    def csv(self) -> str:
        """The table as CSV, with a last line of means over all spots."""
        columns = self.columns()
        lines = [*zip(*(cells for cells, _ in columns.values()), strict=True), [mean for _, mean in columns.values()]]
        texts = ([round(cell, _PLACES) if isinstance(cell, float) else cell for cell in line] for line in lines)
        return csv_text([list(columns), *texts])


def listed(boards: Iterable[tuple[str, str, float]]) -> str:
    """Names, boards and weights as CSV."""
    rows = ([name, board, round(weight, _PLACES)] for name, board, weight in boards)
    return csv_text([["name", "board", "weight"], *rows])


def show_spots(spots: SpotTable, console: Console) -> None:
    """The first spots of the table with the first decision, and the means over all."""
    columns, first = spots.columns(), action_title("", "")
    wanted = [
        "spot",
        "chance",
        *(f"EV of {seat}" for seat in NAMES),
        *(name for name in columns if name.startswith(first)),
    ]
    table = Table(*(Column(name.removeprefix(first), justify="left" if name == "spot" else "right") for name in wanted))
    for row in range(min(len(spots.spots), _SHOWN)):
        table.add_row(*(cell_text(name, columns[name][0][row]) for name in wanted))
    table.add_section()
    table.add_row(*(cell_text(name, columns[name][1]) for name in wanted))
    console.print(table)
    if (more := len(spots.spots) - _SHOWN) > 0:
        console.print(f"{more:,} more spots are in the files.")
    for line in FIRST:
        if means := spots.frequencies(line):
            shares = ", ".join(f"{action} {share:.1%}" for action, share in means.items())
            console.print(f"{action_title(line, '')}{shares}")


def cell_text(title: str, value: Any) -> str:
    """A cell of the table for reading: shares in percent."""
    if value is None or isinstance(value, str):
        return value or ""
    return f"{value:.1%}" if title == "chance" or ": " in title else figure(value)


def action_title(line: str, action: str) -> str:
    """The title of a column of frequencies: the player, what is done before, and the action."""
    return f"{NAMES[0]} after {line}: {action}" if line else f"{NAMES[1]}: {action}"


def _mean(parts: Sequence[Numbers], weights: Doubles) -> Numbers:
    """The weighted mean of each number; one that a part does not have is 0 there."""
    names = dict.fromkeys(name for part in parts for name in part)
    return {name: float(np.average([part.get(name, 0.0) for part in parts], weights=weights)) for name in names}
