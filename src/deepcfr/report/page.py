"""A chart and its table as one self-contained HTML page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from string import Template

from deepcfr.games.presets import GameSource
from deepcfr.report.table import Row

_PAGE = Template("""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>$title</title>
<style>
body { font-family: system-ui, sans-serif; line-height: 1.45; margin: 2rem auto; max-width: 76rem; padding: 0 1rem;
  color: #222; background: #fff; }
svg { max-width: 100%; height: auto; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: 0.85rem; }
th, td { padding: 0.3rem 0.6rem; border-bottom: 1px solid #ddd; text-align: left; vertical-align: top; }
td.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
code { font-size: 0.8rem; overflow-wrap: anywhere; }
</style>
</head>
<body>
<h1>$title</h1>
$svg
<h2>How to read it</h2>
<p>NashConv is computed exactly, as the sum of what both players gain by best responses to the average strategy, in $unit;
exploitability is half of it. Axes are logarithmic where values differ widely, and say so.
Wall time includes the exact evaluations, whose share
the table tells, and for Deep CFR the fits of average networks that these measure.</p>
<p>&ldquo;Nodes touched&rdquo; counts:</p>
<ul>
$nodes
</ul>
$caution
<h2>Runs</h2>
<div class="wide">
<table>
<thead><tr>$head</tr></thead>
<tbody>
$rows
</tbody>
</table>
</div>
</body>
</html>
""")
_CAUTION = """<p>These are different things, so nodes touched are not comparable between them: compare such runs by wall
time.</p>"""


def page(source: GameSource, svg: str, rows: Sequence[Row]) -> str:
    """The page of a chart and its runs."""
    unit = source.milli_unit
    counted = {row.method.nodes: [other for other in rows if other.method.nodes == row.method.nodes] for row in rows}
    head = (
        "run", "what it is", "seed", "iterations", "nodes touched", "seconds", "of them in evaluations",
        f"first NashConv, {unit}", f"last, {unit}", f"best, {unit}", "command and commit", "hardware",
    )  # fmt: skip
    return _PAGE.substitute(
        title=escape(f"Exact NashConv on {source.name}"),
        svg=svg[svg.index("<svg") :],
        unit=escape(unit),
        nodes="\n".join(_counted(meaning, users) for meaning, users in counted.items()),
        caution=_CAUTION if len(counted) > 1 else "",
        head="".join(f"<th>{escape(title)}</th>" for title in head),
        rows="\n".join(f"<tr>{''.join(_cells(row))}</tr>" for row in rows),
    )


def _counted(meaning: str, users: Sequence[Row]) -> str:
    labels = "; ".join(dict.fromkeys(row.method.label for row in users))
    return f"<li>{escape(meaning)} ({escape(labels)}).</li>"


def _cells(row: Row) -> Iterator[str]:
    yield f"<td>{escape(row.run)}</td>"
    yield f"<td>{escape(row.method.label)}</td>"
    yield _number(str(row.seed))
    yield _number(f"{row.iterations:,}" + ("" if row.iterations >= row.planned else f" of {row.planned:,}"))
    yield _number(f"{row.nodes_touched:,}")
    yield _number(f"{row.seconds:,.1f}")
    yield _number(f"{row.evaluation_seconds:,.1f}")
    for value, iteration in (row.first, row.last, row.best):
        yield _number(f"{value:,.2f} at {iteration:,}")
    yield f"<td><code>{escape(row.command)}</code><br><code>{escape(row.commit)}</code></td>"
    yield f"<td>{escape(row.hardware)}</td>"


def _number(text: str) -> str:
    return f'<td class="number">{text}</td>'
