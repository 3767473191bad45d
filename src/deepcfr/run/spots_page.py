"""The page of many solved spots: means, bars of the frequencies of first actions by flop, and a table that sorts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from deepcfr.run.chart import series
from deepcfr.run.page import fill, value_text, whole_page
from deepcfr.run.spot_table import FIRST, Numbers, SpotTable, action_title, cell_text
from deepcfr.search.spot import NAMES

_WIDTH, _HEIGHT = 1000, 160  # of a picture in its own units
_GAP, _MOST_GAP = 0.2, 3.0  # beside a bar: as a part of its width, and in units


def spots_page(spots: SpotTable, title: str) -> str:
    """The page as one self-contained HTML file."""
    columns = spots.columns()
    counts = [("spots", f"{len(spots.spots):,}"), ("weights", f"{sum(spot.weight for spot in spots.spots):,.6g}")]
    shares = [(name, value_text(mean)) for name, (_, mean) in columns.items() if name.startswith(("EV", "equity"))]
    titles = [action_title(line, action) for line in FIRST for action in spots.actions(line)]
    body = fill(
        "spots.html",
        spots=spots,
        means=counts + shares,
        pictures=[_picture(spots, line) for line in FIRST if spots.actions(line)],
        width=_WIDTH,
        height=_HEIGHT,
        kind_heads=["share of deals", *(f"EV of {seat}" for seat in NAMES), *titles],
        kinds=_kinds(spots),
        columns=columns,
        lines=list(zip(*(values for values, _ in columns.values()), strict=True)),
        cell_text=cell_text,
    )
    return whole_page(title, body, "sort.js")


def _picture(spots: SpotTable, line: str) -> dict[str, Any]:
    """The frequencies of the actions after a line: a bar for each spot, as wide as its share of the deals."""
    actions, means = spots.actions(line), spots.frequencies(line)
    return {
        "name": f"The {NAMES[0]} after {line}" if line else f"The {NAMES[1]}, first to act",
        "key": [(series(look), action, f"{means.get(action, 0.0):.1%}") for look, action in enumerate(actions)],
        "said": _said(means),
        "first": actions[0],
        "bars": _bars(spots, line, actions),
    }


def _said(shares: Numbers) -> str:
    return ", ".join(f"{action} {share:.1%}" for action, share in shares.items())


def _bars(spots: SpotTable, line: str, actions: Sequence[str]) -> Iterator[tuple[str, list[Any]]]:
    """The text of each bar, and of each part of it the colour, the place and the size."""
    left = 0.0
    for row in sorted(
        range(len(spots.spots)), key=lambda row: -spots.spots[row].frequencies(line).get(actions[0], 0.0)
    ):
        spot, width, top, parts = spots.spots[row], _WIDTH * float(spots.chances[row]), 0.0, []
        shares, wide = spot.frequencies(line), width - min(_GAP * width, _MOST_GAP)
        for look, action in enumerate(actions):
            height = _HEIGHT * shares.get(action, 0.0)
            parts.append((series(look), left, top, wide, height))
            top += height
        left += width
        yield f"{spot.name}: {_said(shares)}", parts


def _kinds(spots: SpotTable) -> Iterator[tuple[str, str, list[str]]]:
    """The name of each kind, the number of its flops, and means over its spots."""
    for kind, names in spots.by_kind().items():
        for name, members in names.items():
            part = spots.of(members)
            values, texts = part.means("values"), [f"{part.chances.sum():.1%}"]
            texts += [value_text(values[seat]) for seat in NAMES]
            for line in FIRST:
                shares = part.frequencies(line)
                texts += [cell_text(action_title(line, action), shares.get(action)) for action in spots.actions(line)]
            yield f"{kind}: {name}", f"{len(members):,}", texts
