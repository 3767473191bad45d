"""The page of many solved spots: means, bars of the frequencies of first actions by flop, and a table that sorts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import Any

from deepcfr.run.chart import series
from deepcfr.run.page import cells, table, value_text, whole_page
from deepcfr.run.spot_table import FIRST, SpotTable, action_title, cell_text
from deepcfr.search.spot import NAMES

_WIDTH, _HEIGHT = 1000.0, 160.0  # of a picture in its own units
_GAP, _MOST_GAP = 0.2, 3.0  # beside a bar: as a part of its width, and in units
_SCRIPT = "sort.js"


def spots_page(spots: SpotTable, title: str) -> str:
    """The page as one self-contained HTML file."""
    solved = f"{len(spots.spots):,} of {spots.wanted:,} spots are solved." if len(spots.spots) < spots.wanted else ""
    parts = [f"<p><strong>{solved}</strong></p>" if solved else "", _tiles(spots)]
    parts += [_bars(spots, line) for line in FIRST if spots.actions(line)]
    return whole_page(title, "\n".join([*parts, _kinds(spots), _rows(spots)]), _SCRIPT)


def _tiles(spots: SpotTable) -> str:
    tiles = [("spots", f"{len(spots.spots):,}"), ("weights", f"{sum(spot.weight for spot in spots.spots):,.6g}")]
    for title, (_, mean) in spots.columns().items():
        if title.startswith(("EV", "equity")):
            tiles.append((title, value_text(mean)))
    pairs = "".join(f"<div><dt>{escape(name)}</dt><dd>{value}</dd></div>" for name, value in tiles)
    return f'<dl class="tiles" aria-label="Means over all deals">{pairs}</dl>'


def _bars(spots: SpotTable, line: str) -> str:
    """A picture of the frequencies of the actions after a line: a bar for each spot, as wide as its share of the deals."""
    actions, means = spots.actions(line), spots.frequencies(line)
    order = sorted(range(len(spots.spots)), key=lambda row: -spots.spots[row].frequencies(line).get(actions[0], 0.0))
    name = f"The {NAMES[0]} after {line}" if line else f"The {NAMES[1]}, first to act"
    key = "".join(
        f'<li><svg class="sample" viewBox="0 0 36 10" aria-hidden="true"><rect class="part {series(look)}" width="36" '
        f'height="10"/></svg> <strong>{escape(action)}</strong> {means.get(action, 0.0):.1%}</li>'
        for look, action in enumerate(actions)
    )
    said = f"{name}: mean frequencies over all deals, {', '.join(f'{key} {share:.1%}' for key, share in means.items())}"
    return (
        f'<figure class="panel"><figcaption>{escape(name)}</figcaption><ul class="key" aria-label="Mean frequencies">{key}'
        f'</ul><svg class="chart bars" viewBox="0 0 {_WIDTH:g} {_HEIGHT:g}" preserveAspectRatio="none" role="img" '
        f'aria-label="{escape(said)}">{"".join(_bar_parts(spots, line, actions, order))}</svg><p class="muted">A bar for '
        f"each spot, as wide as its share of the deals, sorted by {escape(actions[0])}.</p></figure>"
    )


def _bar_parts(spots: SpotTable, line: str, actions: Sequence[str], order: Sequence[int]) -> Iterator[str]:
    left = 0.0
    for row in order:
        spot, width = spots.spots[row], _WIDTH * float(spots.chances[row])
        shares, top, gap = spot.frequencies(line), 0.0, min(_GAP * width, _MOST_GAP)
        text = f"{spot.name}: {', '.join(f'{action} {share:.1%}' for action, share in shares.items())}"
        parts = []
        for look, action in enumerate(actions):
            height = _HEIGHT * shares.get(action, 0.0)
            parts.append(
                f'<rect class="part {series(look)}" x="{left:.2f}" y="{top:.2f}" width="{width - gap:.2f}" '
                f'height="{height:.2f}"/>'
            )
            top += height
        left += width
        yield f"<g><title>{escape(text)}</title>{''.join(parts)}</g>"


def _kinds(spots: SpotTable) -> str:
    """The means over the spots of each kind."""
    titles = [(line, action) for line in FIRST for action in spots.actions(line)]
    head = cells("th", ("kind", "flops"))
    head += cells("th", ("share of deals", *(f"EV of {seat}" for seat in NAMES)), "number")
    head += cells("th", (action_title(*title) for title in titles), "number")
    rows = ""
    for kind, names in spots.by_kind().items():
        for name, members in names.items():
            shares = {line: spots.frequencies(line, members) for line in FIRST}
            values = spots.means("values", members)
            figures = [f"{spots.chances[members].sum():.1%}", *(value_text(values[seat]) for seat in NAMES)]
            figures += [cell_text(action_title(line, action), shares[line].get(action)) for line, action in titles]
            rows += f'<tr><th scope="row">{escape(f"{kind}: {name}")}</th>{cells("td", (f"{len(members):,}",))}'
            rows += f"{cells('td', figures, 'number')}</tr>"
    return f'<section class="panel"><h2>By kind of flop</h2>{table("By kind of flop", head, rows)}</section>'


def _rows(spots: SpotTable) -> str:
    """All spots as a table that is sorted by the buttons of its columns."""
    columns = spots.columns()
    head = "".join(f'<th><button type="button">{escape(title)}</button></th>' for title in columns)
    rows = "".join(
        f"<tr>{''.join(_cell(title, cell) for title, cell in zip(columns, line, strict=True))}</tr>"
        for line in zip(*(values for values, _ in columns.values()), strict=True)
    )
    mean = "".join(_cell(title, value) for title, (_, value) in columns.items())
    shown = table("All spots", head, rows).replace("<table>", '<table class="sortable">')
    shown = shown.replace("</table>", f"<tfoot><tr>{mean}</tr></tfoot></table>")
    return f'<section class="panel"><h2>All spots</h2>{shown}</section>'


def _cell(title: str, value: Any) -> str:
    """A cell of the table, which has a number with all its digits beside the text for reading."""
    if value is None or isinstance(value, str):
        return f"<td>{escape(value or '')}</td>"
    return f'<td class="number" data-value="{value!r}">{cell_text(title, value)}</td>'
