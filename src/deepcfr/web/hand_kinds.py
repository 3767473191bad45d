"""Kinds of hands on a board, as players name them: what a range holds, and what it does with each kind."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from markupsafe import Markup

from deepcfr.buckets.texture import TextureBuckets
from deepcfr.core.types import Cards, CardTuple, Doubles
from deepcfr.run.chart import Chart, Curve, draw, thinned
from deepcfr.search.spot_ranges import HOLDEM
from deepcfr.web.play_view import bars, percent
from deepcfr.web.ranges import HandTable, by_name
from deepcfr.web.schema import Seat

#: the made hands of `deepcfr.buckets.texture` in each kind; what the board makes alone counts from a straight on
MADE = {
    "straight flush": (35, 36),
    "quads": (33, 34),
    "full house": (30, 31, 32),
    "flush": (26, 27, 28, 29),
    "straight": (23, 24, 25),
    "set": (22,),
    "trips": (20, 21),
    "two pair": (16, 17),
    "overpair": (8, 15),
    "top pair": (11, 12, 14),
    "second pair": (10,),
    "lower pair": (6, 7, 9, 13),
    "ace high": (3, 5, 19),
    "two overcards": (2,),
    "no pair": (0, 1, 4, 18),
}
#: the draws of `deepcfr.buckets.texture` in each kind; a hand may have two
DRAWS = {"flush draw": (1, 3, 5), "open-ended": (4, 5), "gutshot": (2, 3)}
_CURVE_POINTS = 100


def hand_kinds(holes: Cards, board: CardTuple) -> dict[str, npt.NDArray[np.intp]]:
    """The rows of each kind of hands in `holes`, uint8 [H, 2], on a board of three to five cards; only kinds with hands."""
    boards = np.tile(np.array(board, np.uint8), (len(holes), 1))
    made, drawn = TextureBuckets(HOLDEM).made_hands(len(board) - 2, holes, boards)
    rows = {kind: np.flatnonzero(np.isin(made, classes)) for kind, classes in MADE.items()}
    rows |= {kind: np.flatnonzero(np.isin(drawn, classes)) for kind, classes in DRAWS.items()}
    return {kind: members for kind, members in rows.items() if len(members)}


def words(kinds: Mapping[str, npt.NDArray[np.intp]], hands: int) -> Iterator[str]:
    """The kinds of each of so many hands, joined by commas."""
    return (", ".join(kind for kind, members in kinds.items() if hand in members) for hand in range(hands))


def kinds_detail(
    table: HandTable, columns: Mapping[str, Doubles], places: Mapping[str, int], link: Callable[[str], str], chosen: str
) -> dict[str, Any]:
    """The kinds of a range for the template's table of hands: their share of it, actions, and means of the columns.

    Means are by the weight of the hands; a kind that never gets here has none.
    """
    total, rows = float(table.weight.sum()), []
    for kind, members in table.kinds.items():
        weight = table.weight[members]
        shares = table.mean(members)
        rows.append(
            {
                "text": kind,
                "address": link("" if kind == chosen else kind),
                "here": kind == chosen,
                "bars": bars(by_name(table.names, shares)),
                "percents": [percent(share) for share in shares.tolist()],
                "reach": percent(weight.sum() / total) if total else "–",
                "numbers": [_mean(numbers[members], weight, places[title]) for title, numbers in columns.items()],
            }
        )
    return {"hands": rows, "names": table.names, "columns": list(columns)}


def _mean(numbers: Doubles, weight: Doubles, places: int) -> str:
    held = weight > 0
    if not held.any() or np.isnan(numbers[held]).any():
        return "–"
    return f"{np.average(numbers[held], weights=weight[held]):z.{places}f}"


def ranked(values: Doubles, weight: Doubles) -> list[tuple[float, float]]:
    """Points of hands from the least value to the largest: percent of the weight up to a hand's middle, and its value.

    `values` and `weight` are [H]; hands without weight, and those whose value is nan, are left out.
    """
    held = np.flatnonzero((weight > 0) & ~np.isnan(values))
    order = held[np.argsort(values[held], kind="stable")]
    upto = np.cumsum(weight[order])
    places = 100 * (upto - weight[order] / 2) / upto[-1:]
    return list(zip(places.tolist(), values[order].tolist(), strict=True))


def distribution(tables: Mapping[Seat, tuple[HandTable, dict[str, Doubles]]], column: str, unit: str) -> Markup:
    """A column's values over both ranges as a chart, from the weakest hand to the strongest; "" if they are unknown."""
    curves = []
    for look, (player, (table, columns)) in enumerate(tables.items()):
        if points := thinned(ranked(columns[column], table.weight), _CURVE_POINTS):
            curves.append(Curve(player, player, look, points))
    chart = Chart(f"{unit} over both ranges", "% of the range, from the weakest hand on", unit, tuple(curves))
    return Markup(draw(chart, focusable=True) if curves else "")  # `draw` has escaped its words
