"""Data of the page of a spot: hands at a decision with what they are worth, the way there, and grids."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any
from urllib.parse import urlencode

import numpy as np

from deepcfr.play.hand import Floats
from deepcfr.search.spot import parse_board
from deepcfr.search.spot_ranges import HOLDEM, hand_rows, parse_range
from deepcfr.web.browse_view import detail, difference, grid, reach_grid
from deepcfr.web.play_view import action_kinds, card_face
from deepcfr.web.ranges import HandTable
from deepcfr.web.schema import Seat, SpotDecision, SpotFacts
from deepcfr.web.site import Refusal, shorten

SEATS: tuple[Seat, Seat] = ("dealer", "big blind")
_range = lru_cache(maxsize=64)(parse_range)


def decision_at(spot: SpotFacts, line: str) -> SpotDecision:
    """The decision after a line. Raises Refusal if there is none."""
    for decision in spot.decisions:
        if decision.line == line:
            return decision
    raise Refusal(404, f"There is no decision after '{shorten(line)}' on this board.")


def path_to(spot: SpotFacts, line: str) -> Iterator[tuple[SpotDecision, str | None]]:
    """The decisions up to the one after `line`, each with the action that was taken, None at the last one."""
    taken = line.split(", ") if line else []
    for place, action in enumerate([*taken, None]):
        decision = decision_at(spot, ", ".join(taken[:place]))
        if action is not None and action not in decision.frequencies:
            raise Refusal(404, f"There is no action '{shorten(action)}' after '{shorten(decision.line)}'.")
        yield decision, action


def table_at(spot: SpotFacts, line: str, player: Seat) -> HandTable:
    """A player's hands at a decision, with how much of each it still holds there, and what it does if it acts.

    If it does not act, there are no actions.
    """
    path = list(path_to(spot, line))
    names = list(spot.hand_values[player])
    holes = np.array([sorted(parse_board(name)) for name in names], np.uint8)
    reach = _range(spot.dealer if player == "dealer" else spot.big_blind)[hand_rows(holes)]
    for decision, action in path[:-1]:
        if decision.player == player:
            place = list(decision.frequencies).index(str(action))
            reach = reach * np.array([decision.hands[name][place] if name in decision.hands else 0 for name in names])
    here, _ = path[-1]
    actions = list(here.frequencies) if here.player == player else []
    # of hands that do not get here nothing is known
    unknown = [1 / len(actions)] * len(actions) if actions else []
    strategy = np.array([here.hands.get(name, unknown) if actions else [] for name in names]).reshape(len(names), -1)
    return HandTable(HOLDEM, actions, holes, reach, strategy)


def worth(spot: SpotFacts, decision: SpotDecision, player: Seat, strategy: Floats) -> dict[str, Floats]:
    """The worth of each hand of a player's range at a decision, [H], in big blinds, by the title of the column.

    Those of the player to act, who plays `strategy` [H, A], are from here on, and nan for hands that do not get here. Of
    the other player's values and of equities those at the start are known only, so there are none later.
    """
    names = spot.hand_values[player]
    columns = {}
    if decision.player == player:
        unknown = [np.nan] * len(decision.frequencies)
        values = np.array([decision.values.get(name, unknown) for name in names])
        columns = {"EV": (strategy * values).sum(1)}
        columns |= {f"EV of {action}": values[:, place] for place, action in enumerate(decision.frequencies)}
    elif not decision.line:
        columns = {"EV": np.array(list(spot.hand_values[player].values()))}
    if not decision.line:
        columns["Equity"] = np.array([spot.hand_equities[player][name] for name in names])
    return columns


def address(name: str, line: str = "", cell: str = "", other: str = "", prefix: str = "/spots") -> str:
    """The address of a decision."""
    query = urlencode({key: value for key, value in (("line", line), ("cell", cell), ("with", other)) if value})
    return f"{prefix}/{name}" + (f"?{query}" if query else "")


def crumbs(name: str, spot: SpotFacts, line: str, other: str) -> list[dict[str, Any]]:
    """The decisions up to here with all their actions, for the template's way."""
    lines, locked = {decision.line for decision in spot.decisions}, {lock.line for lock in spot.locks}
    parts = []
    for decision, taken in path_to(spot, line):
        actions = []
        for action, kind in action_kinds(decision.frequencies).items():
            after = ", ".join(filter(None, [decision.line, action]))
            link = address(name, after, other=other) if after in lines else None
            actions.append({"name": action, "kind": kind, "address": link, "chosen": action == taken})
        parts.append(
            {
                "who": decision.player,
                "round": "locked" if decision.line in locked else "",
                "address": address(name, decision.line, other=other),
                "here": taken is None,
                "actions": actions,
            }
        )
    return parts


def page_of(name: str, spots: Mapping[str, SpotFacts], line: str, cell: str, other: str) -> dict[str, Any]:
    """The values of the template for a decision of the spot `name`, beside the spot `other` if there is one."""
    spot, decision = spots[name], decision_at(spots[name], line)

    def link(label: str) -> str:
        return address(name, line, label, other)

    shown, tables = [], {}
    for title in filter(None, (name, other)):
        for player in sorted(SEATS, key=lambda one: one != decision.player):
            table = table_at(spots[title], line, player)
            columns = worth(spots[title], decision_at(spots[title], line), player, table.strategy)
            acts = player == decision.player
            if acts:
                tables[title] = table
            shown.append(
                {
                    "title": f"{title}: {player}" if other else player,
                    "acts": acts,
                    "grid": (grid if acts else reach_grid)(table, link, cell),
                    "detail": detail(table, cell, columns) if cell else None,
                }
            )
    return {
        "page": "spots",
        "name": name,
        "spot": spot,
        "players": SEATS,
        "board": [card_face(text) for text in spot.board.split()],
        "decision": decision,
        "locked": any(lock.line == line for lock in spot.locks),
        "crumbs": crumbs(name, spot, line, other),
        "shown": shown,
        "apart": difference(tables[name], tables[other], link, cell) if other else None,
        "cell": cell,
        "other": other,
        "others": [
            {"name": one, "address": address(name, line, cell, one)}
            for one, facts in spots.items()
            if one != name and comparable(decision, facts)
        ],
        "as_json": f"/api/spots/{name}",
        "as_csv": address(f"{name}/decision.csv", line, prefix="/api/spots"),
    }


def comparable(decision: SpotDecision, other: SpotFacts) -> bool:
    """Whether another spot has the same decision with the same actions."""
    return any(
        one.line == decision.line and list(one.frequencies) == list(decision.frequencies) for one in other.decisions
    )


def decision_csv(spot: SpotFacts, line: str) -> str:
    """The decision after a line as CSV: a line for each hand of the player to act, named as in the spot's JSON."""
    decision = decision_at(spot, line)
    table = table_at(spot, line, decision.player)
    columns = worth(spot, decision, decision.player, table.strategy)
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(["hand", "kind", "reach", *table.names, *columns])
    for h, kind in enumerate(table.labels):
        worths = ["" if np.isnan(values[h]) else float(values[h]) for values in columns.values()]
        writer.writerow([table.hand(h).replace(" ", ""), kind, table.reach[h], *table.strategy[h].tolist(), *worths])
    return file.getvalue()
