"""Data of the page of a spot: hands at a decision with what they are worth, the way there, and grids."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any
from urllib.parse import urlencode

import numpy as np
import numpy.typing as npt

from deepcfr.boards.kernels import ABSENT, TREMBLE, pair_weights
from deepcfr.core.files import csv_text
from deepcfr.core.types import Doubles
from deepcfr.game.cards import all_hands
from deepcfr.search.spot import parse_board
from deepcfr.search.spot_ranges import HOLDEM, hand_rows, parse_range, range_text
from deepcfr.search.spot_solution import ANY, BETWEEN
from deepcfr.web.browse import detail, difference, grid, reach_grid, value_difference
from deepcfr.web.hand_kinds import distribution, hand_kinds, kinds_detail, words
from deepcfr.web.play_view import action_kinds, card_face
from deepcfr.web.ranges import HandTable, by_name
from deepcfr.web.schema import Seat, SpotDecision, SpotFacts
from deepcfr.web.site import RequestError, shorten

SEATS: tuple[Seat, Seat] = ("dealer", "big blind")
SHARE = "share "  # of the fields with the shares of a locked decision; the action follows
EQUITY = "Equity %"  # a column of percents; all others are amounts
_HOLES = all_hands(HOLDEM.num_cards, HOLDEM.hole_cards)
_range = lru_cache(maxsize=64)(parse_range)


def decision_at(spot: SpotFacts, line: str) -> SpotDecision:
    """The decision after a line. Raises Refusal if there is none."""
    for decision in spot.decisions:
        if decision.line == line:
            return decision
    raise RequestError(404, f"There is no decision after '{shorten(line)}' on this board.")


def joined(before: str, *parts: str) -> str:
    """A line of the line to a street and parts after it."""
    return BETWEEN.join(filter(None, (before, *parts)))


def path_to(spot: SpotFacts, line: str) -> Iterator[tuple[SpotDecision, str | None]]:
    """The decisions up to the one after `line`, each with the action that was taken, None at the last one."""
    taken = line.split(", ") if line else []
    for place, action in enumerate([*taken, None]):
        decision = decision_at(spot, ", ".join(taken[:place]))
        if action is not None and action not in decision.frequencies:
            raise RequestError(404, f"There is no action '{shorten(action)}' after '{shorten(decision.line)}'.")
        yield decision, action


def table_at(spot: SpotFacts, line: str, player: Seat) -> HandTable:
    """A player's hands at a decision, with how much of each it still holds there, and what it does if it acts.

    If it does not act, there are no actions.
    """
    path = list(path_to(spot, line))
    here, _ = path[-1]
    acts = here.player == player
    board = parse_board(spot.board)
    possible = ~np.isin(_HOLES, board).any(1)  # a text may name cards of the board
    reach = np.stack([_range(text) * possible for text in (spot.dealer, spot.big_blind)])
    for decision, action in path[:-1]:
        place = list(decision.frequencies).index(str(action))
        played = np.zeros(len(_HOLES))
        played[_rows(decision.hands)] = [max(shares[place], TREMBLE) for shares in decision.hands.values()]
        reach[SEATS.index(decision.player)] *= played
    weight = pair_weights(_HOLES, reach, SEATS.index(player))[0]
    names = list(here.hands if acts else spot.hand_values[player])
    rows = _rows(names)
    own = reach[SEATS.index(player), rows]
    strategy = np.array([here.hands[name] if acts else [] for name in names]).reshape(len(names), -1)
    actions = list(here.frequencies) if acts else []
    holes, own = _HOLES[rows], np.where(own < ABSENT, 0, own)
    return HandTable(HOLDEM, actions, holes, own, weight[rows], strategy, kinds=hand_kinds(holes, board))


def _rows(names: Iterable[str]) -> npt.NDArray[np.intp]:
    """The places of named hands in a range."""
    return np.array([_place(name) for name in names], np.intp)


@lru_cache(maxsize=2 * 1326)
def _place(name: str) -> int:
    return int(hand_rows(np.array([sorted(parse_board(name))], np.uint8))[0])


def worth(decision: SpotDecision, player: Seat, names: list[str], strategy: Doubles) -> dict[str, Doubles]:
    """The worth of the hands `names` of a player at a decision, [H], by the title of the column; nan where it is
    unknown.

    EVs are from here on, of the player to act by its `strategy` [H, A]; equities are in percent of the pot.
    """
    if decision.player == player:
        unknown = [np.nan] * len(decision.frequencies)
        values = np.array([decision.values.get(name, unknown) for name in names])
        columns = {"EV": (strategy * values).sum(1)}
        columns |= {f"EV of {action}": values[:, place] for place, action in enumerate(decision.frequencies)}
    else:
        columns = {"EV": _numbers(decision.hand_values, player, names)}
    return columns | {EQUITY: 100 * _numbers(decision.hand_equities, player, names)}


def _numbers(of: Mapping[Seat, Mapping[str, float]], player: Seat, names: list[str]) -> Doubles:
    return np.array([of.get(player, {}).get(name, np.nan) for name in names])


def address(name: str, line: str = "", cell: str = "", other: str = "", prefix: str = "/spots") -> str:
    """The address of a decision."""
    query = urlencode({key: value for key, value in (("line", line), ("cell", cell), ("with", other)) if value})
    return f"{prefix}/{name}" + (f"?{query}" if query else "")


def crumbs(
    name: str, spot: SpotFacts, line: str, other: str, before: str = "", ends: Collection[str] = (), here: bool = True
) -> list[dict[str, Any]]:
    """The decisions up to here with all their actions, for the template's way.

    `before` is the line to this street, and `ends` has the actions after which a card is chosen, of which `line` is one
    unless it leads to a decision `here`.
    """
    lines, locked = {decision.line for decision in spot.decisions}, {lock.line for lock in spot.locks}
    parts = []
    way = list(path_to(spot, line)) if here else [*path_to(spot, line.rpartition(", ")[0])]
    if not here:
        way[-1] = way[-1][0], line.rpartition(", ")[2]
    for decision, taken in way:
        actions = []
        for action, kind in action_kinds(decision.frequencies).items():
            after = ", ".join(filter(None, [decision.line, action]))
            link = address(name, joined(before, after), other=other) if after in lines else None
            if after in ends:
                link = address(name, joined(before, after, ANY))
            actions.append({"name": action, "kind": kind, "address": link, "chosen": action == taken})
        parts.append(
            {
                "who": decision.player,
                "round": "locked" if decision.line in locked else "",
                "address": address(name, joined(before, decision.line), other=other),
                "here": taken is None,
                "actions": actions,
            }
        )
    return parts


def page_of(
    name: str,
    spots: Mapping[str, SpotFacts],
    line: str,
    cell: str,
    other: str,
    form: Mapping[str, str] | None = None,
    mistakes: Mapping[str, str] | None = None,
    before: str = "",
    way: Sequence[dict[str, Any]] = (),
    ends: Collection[str] = (),
) -> dict[str, Any]:
    """The values of the template for a decision of the spot `name`, beside the spot `other` if there is one.

    On a later street `before` is the line to it, and `way` the way there; `ends` is as in `crumbs`.

    `form` has the fields of its lock, if they were sent, and `mistakes` a sentence for each that is wrong.
    """
    spot, decision = spots[name], decision_at(spots[name], line)

    def link(label: str) -> str:
        return address(name, joined(before, line), label, other)

    seats = sorted(SEATS, key=lambda one: one != decision.player)
    titles = [title for title in (name, other) if title]
    tables = {(title, player): _valued(spots[title], line, player) for title in titles for player in seats}
    shown = []
    for (title, player), (table, columns) in tables.items():
        acts = player == decision.player
        if other and title == name:
            columns[f"EV more than {other}"] = _more(*tables[name, player], *tables[other, player])
        held, places = table.kinds.get(cell), spots[title].places
        shown.append(
            {
                "title": f"{title}: {player}" if other else player,
                "acts": acts,
                "grid": (grid if acts else reach_grid)(table if held is None else table.only(held), link, cell),
                "detail": detail(table, cell, _texts(columns, places)) if cell else None,
                "kinds": kinds_detail(table, columns, _digits(columns, places), link, cell),
            }
        )
    mine = tables[name, decision.player][0]
    apart = []
    if other:
        apart = [("played otherwise", difference(mine, tables[other, decision.player][0], link, cell))]
        pairs = [(player, [tables[title, player] for title in (name, other)]) for player in seats]
        apart += [
            (f"EV of the {player}", value_difference(two[0], two[1], link, cell, spot.places)) for player, two in pairs
        ]
    chosen = mine.cell(cell)
    hands = ",".join(_names(mine.only(mine.kinds[cell]))) if cell in mine.kinds else cell
    own = {player: tables[name, player] for player in seats}
    shares = by_name(mine.names, chosen.shares if chosen else mine.whole)
    return {
        "page": "spots",
        "name": name,
        "spot": spot,
        "board": [card_face(text) for text in spot.board.split()],
        "decision": decision,
        "locked": any(lock.line == line for lock in spot.locks),
        "before": before,
        "crumbs": [*way, *crumbs(name, spot, line, other, before, ends)],
        "shown": shown,
        "apart": apart,
        "graphs": [
            (title, distribution(own, column, unit))
            for title, column, unit in (("Equity", EQUITY, "equity, %"), ("EV", "EV", "EV, unit of the pot"))
        ],
        "ranges": [
            _range_row(player, decision, decision_at(spots[other], line) if other else None) for player in seats
        ],
        "cell": cell,
        "other": other,
        "others": [
            {"name": one, "address": address(name, line, cell, one)}
            for one, facts in spots.items()
            if one != name and not before and comparable(decision, facts)
        ],
        "as_json": address(f"{name}/street", before, prefix="/api/spots") if before else f"/api/spots/{name}",
        "as_csv": address(f"{name}/decision.csv", joined(before, line), prefix="/api/spots"),
        "lock": form
        or {"hands": hands if chosen else ""} | {SHARE + key: f"{100 * x:.2f}" for key, x in shares.items()},
        "mistakes": mistakes or {},
        "share": SHARE,
    }


def _valued(spot: SpotFacts, line: str, player: Seat) -> tuple[HandTable, dict[str, Doubles]]:
    """A player's hands at a decision, and what they are worth."""
    table = table_at(spot, line, player)
    return table, worth(decision_at(spot, line), player, _names(table), table.strategy)


def _texts(columns: Mapping[str, Doubles], places: int) -> dict[str, list[str]]:
    """Columns of numbers [H] as text, with `places` decimal places but for equities, which are in percent."""
    digits = _digits(columns, places)
    return {
        title: ["–" if np.isnan(value) else f"{value:z.{digits[title]}f}" for value in values.tolist()]
        for title, values in columns.items()
    }


def _digits(columns: Iterable[str], places: int) -> dict[str, int]:
    """The decimal places of each column."""
    return {title: 3 if title == EQUITY else places for title in columns}


def _names(table: HandTable) -> list[str]:
    """The hands of a table, named as in the spot's JSON."""
    return [table.hand(h).replace(" ", "") for h in range(len(table.holes))]


def _more(table: HandTable, columns: Mapping[str, Doubles], other: HandTable, others: Mapping[str, Doubles]) -> Doubles:
    """The EV of each hand of a table less its EV in another one, [H]."""
    there = dict(zip(_names(other), others["EV"].tolist(), strict=True))
    return columns["EV"] - np.array([there.get(name, np.nan) for name in _names(table)])


def _range_row(player: Seat, here: SpotDecision, there: SpotDecision | None) -> dict[str, Any]:
    """Give the worth of a player's range at a decision, and how much more than in another spot; None where unknown."""
    value, equity = ((of or {}).get(player) for of in (here.range_values, here.range_equities))
    before = ((there.range_values if there else None) or {}).get(player)
    percent = None if value is None or not here.pot else 100 * value / here.pot
    more = None if value is None or before is None else value - before
    position = "IP" if player == "dealer" else "OOP"
    return {"player": player, "position": position, "value": value, "percent": percent, "equity": equity, "more": more}


def comparable(decision: SpotDecision, other: SpotFacts) -> bool:
    """Whether another spot has the same decision with the same actions."""
    return any(
        one.line == decision.line and list(one.frequencies) == list(decision.frequencies) for one in other.decisions
    )


def decision_csv(spot: SpotFacts, line: str) -> str:
    """The decision after a line as CSV: a line for each hand of the player to act, named as in the spot's JSON."""
    decision = decision_at(spot, line)
    table, columns = _valued(spot, line, decision.player)
    worths = zip(*(["" if np.isnan(x) else x for x in values.tolist()] for values in columns.values()), strict=True)
    kinds = words(table.kinds, len(table.holes))
    hands = zip(_names(table), table.labels, kinds, table.reach, table.weight, strict=True)
    rows = ([*hand, *shares, *more] for hand, shares, more in zip(hands, table.strategy.tolist(), worths, strict=True))
    return csv_text([["hand", "kind", "made hand and draws", "reach", "weight", *table.names, *columns], *rows])


def decision_ranges(spot: SpotFacts, line: str) -> str:
    """Both ranges at the decision after a line, and that of each action, as text; a comment before each says whose."""
    found = []
    for player in SEATS:
        table = table_at(spot, line, player)
        parts = [("", 1.0), *zip((f": {name}" for name in table.names), table.strategy.T, strict=True)]
        for name, share in parts:
            weights = np.zeros(len(_HOLES))
            weights[hand_rows(table.holes)] = table.reach * share
            found += [f"# {player}{name}", range_text(weights, parse_board(spot.board))]
    return "\n".join([*found, ""])
