"""The strategy browser: an agent's ranges at any position as a page with grids, as JSON and as CSV."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Set
from typing import Annotated, Any

import numpy as np
import torch
from fastapi import APIRouter, Query, Response
from fastapi.responses import HTMLResponse, JSONResponse, PlainTextResponse, RedirectResponse

from deepcfr.core.errors import GameError
from deepcfr.core.types import Doubles, Infosets
from deepcfr.game.cards import card_text
from deepcfr.game.poker import PokerGame
from deepcfr.game.tree_game import TreeGame
from deepcfr.measure.match.record import require_same_game
from deepcfr.policy.base import Policy
from deepcfr.policy.query import query
from deepcfr.web import schema
from deepcfr.web.play import PROBLEMS
from deepcfr.web.play_view import action_kinds, bars, card_face, percent, signed
from deepcfr.web.ranges import (
    HandTable,
    Position,
    Range,
    address,
    as_spot,
    by_name,
    grid_labels,
    range_at,
    range_csv,
    range_facts,
    read_position,
    seat_name,
)
from deepcfr.web.site import NamedRun, RequestError, Site, cards, choose_agent, render

Betting = Annotated[str, Query(max_length=200, description="letters f, c, r, rounds apart by '/'")]
Board = Annotated[str, Query(max_length=40, description="public cards, such as Qs7h2c")]
Label = Annotated[str, Query(max_length=8, description="a cell, such as AKs")]
Other = Annotated[str, Query(alias="with", max_length=100, description="another agent to compare with")]
Text = Annotated[str, Query(max_length=100, description="a part of the names of infosets")]
MOST_INFOSETS = 200  # on a page
Picked = Annotated[list[str], Query(alias="card", max_length=10)]
Link = Callable[[str], str]
"""The address of a kind of hands."""
LEAST_OPACITY = 0.12  # opacity of cells that are almost never reached, so that they stay visible


def router(site: Site) -> APIRouter:
    """The browser's pages and its API."""
    routes = APIRouter()
    _add_pages(routes, site)
    _add_api(routes, site)
    return routes


def look(site: Site, name: str, position: Position) -> Range:
    """The range of a named agent at a position."""
    run = site.run(name)
    policy, _ = run.listed()
    return range_at(policy, position, run.agent().advantages)


def place(site: Site, name: str, betting: str, board: str) -> Position:
    """Read a position in a named agent's game."""
    return read_position(site.run(name).listed()[1], betting, board)


def _add_pages(routes: APIRouter, site: Site) -> None:
    @routes.get("/strategy", include_in_schema=False)
    def choose() -> Response:
        return choose_agent("strategy", [one for one in cards(site) if one.browsable])

    @routes.get("/strategy/{name}", include_in_schema=False)
    def browse(
        name: str,
        betting: Betting = "",
        board: Board = "",
        cell: Label = "",
        other: Other = "",
        picked: Picked = [],  # noqa: B006
        find: Text = "",
    ) -> Response:
        policy = site.run(name).agent().policy
        if isinstance(policy, Policy) and isinstance(policy.game, TreeGame):
            return _infosets_page(site, name, policy, policy.game, find)
        position = place(site, name, betting, board)
        if other:
            first, second = (site.run(one).listed()[1] for one in (name, other))
            try:
                require_same_game(first, second)
            except GameError as error:
                raise RequestError(
                    409, f"{name} plays {first.name}, but {other} plays {second.name}: only agents of one game compare."
                ) from error
        if picked:
            return RedirectResponse(
                address(name, place(site, name, betting, board + "".join(picked)), other=other), 303
            )
        return _page(site, name, position, cell, other)


def _infosets_page(site: Site, name: str, policy: Policy, game: TreeGame, find: str) -> HTMLResponse:
    """The strategy of a game without hands: the infosets whose names have a text, with what the agent does there."""
    names = game.explicit.infoset_names
    shown = [infoset for infoset, known in enumerate(names) if find in known][:MOST_INFOSETS]
    shares = policy.probabilities(Infosets(torch.tensor(shown), torch.empty((len(shown), 0), dtype=torch.uint8)))
    rows = []
    for infoset, row in zip(shown, shares.tolist(), strict=True):
        legal = game.encoding.legal[infoset].nonzero()[:, 0].tolist()
        found = bars({game.action_name(action): row[action] for action in legal})
        said = ", ".join(f"{each.name} {each.percent}" for each in reversed(found))
        player = int(game.explicit.infoset_actor[infoset])
        rows.append({"name": names[infoset], "player": player, "bars": found, "said": said})
    values: dict[str, Any] = {"name": name, "game": game.name, "find": find, "rows": rows, "count": len(names)}
    values["agents"] = site.menu(name, lambda run: f"/strategy/{run.name}", browsable=True)
    return render("infosets.html", page="strategy", **values)


def _page(site: Site, name: str, position: Position, cell: str, other: str) -> HTMLResponse:
    game, source = position.game, site.run(name).folder.source

    def own_page(run: NamedRun) -> str:
        # links keep the position for agents of the same game
        return address(run.name, position) if run.folder.source == source else f"/strategy/{run.name}"

    values: dict[str, Any] = {
        "page": "strategy",
        "name": name,
        "other": other,
        "game": game.rules,
        "position": position,
        "crumbs": crumbs(name, position, other),
        "who": "" if position.over else seat_name(game.rules, position.state.actor),
        "start": address(name, read_position(game, "", ""), other=other),
        "as_spot": as_spot(name, position),
        "agents": site.menu(name, own_page, browsable=True),
        "others": [
            {"name": run.name, "address": address(name, position, other=run.name)}
            for run in site.runs.values()
            if run.name != name and run.folder.source == source
        ],
        "grids": None,
        "deck": None,
        "any_board": None,
    }
    if not position.over and position.missing:
        values |= {"deck": deck(game, position), "any_board": _any_board(name, position, other)}
    elif not position.over:
        values |= {"grids": _grids(site, name, position, cell, other)}
        values |= {
            as_kind: address(f"{name}/{kind}", position, prefix="/api/agents")
            for as_kind, kind in (("as_json", "range"), ("as_csv", "range.csv"))
        }
    return render("strategy.html", **values)


def _any_board(name: str, position: Position, other: str) -> str:
    """The address of the position with random cards for its board."""
    free = [card for card in range(position.game.rules.num_cards) if card not in position.known]
    drawn = [free.pop(secrets.randbelow(len(free))) for _ in range(position.missing)]
    return address(name, position.with_board((*position.known, *drawn)), other=other)


def _grids(site: Site, name: str, position: Position, cell: str, other: str) -> dict[str, Any]:
    """The grids of the page: of one agent, or of two and their difference."""

    def link(label: str) -> str:
        return address(name, position, cell=label, other=other)

    mine = look(site, name, position)
    tables = {name: mine}
    if other:
        tables[other] = look(site, other, place(site, other, position.betting, position.board_text))
    shown = [
        {"title": title, "grid": grid(found, link, cell), "detail": detail(found, cell) if cell else None}
        for title, found in tables.items()
    ]
    apart = difference(mine, tables[other], link, cell) if other else None
    return {"shown": shown, "apart": apart, "cell": cell, "hands": len(mine.holes), "reached": mine.reached}


def _add_api(routes: APIRouter, site: Site) -> None:
    @routes.get("/api/agents/{name}/strategy", response_model=schema.StrategyFacts, responses=PROBLEMS, tags=["query"])
    def strategy(
        name: str,
        situation: Annotated[str, Query(max_length=300, description="as for `deepcfr strategy`: As Kd / r / Qs 7h 2c")],
    ) -> dict[str, Any]:
        """An agent's strategy with one hand, as printed by `deepcfr strategy`."""
        policy = site.run(name).agent().policy
        return query(policy, situation).facts()

    @routes.get("/api/agents/{name}/range", responses=PROBLEMS, tags=["query"])
    def range_(name: str, betting: Betting = "", board: Board = "") -> JSONResponse:
        """An agent's strategy at a position with all hands."""
        # sent without validation, which would take longer for a thousand hands than computing them
        return JSONResponse(range_facts(name, look(site, name, place(site, name, betting, board))))

    @routes.get("/api/agents/{name}/range.csv", response_class=PlainTextResponse, responses=PROBLEMS, tags=["query"])
    def range_table(name: str, betting: Betting = "", board: Board = "") -> Response:
        """An agent's strategy with all hands as CSV, one line for each hand."""
        text = range_csv(look(site, name, place(site, name, betting, board)))
        return PlainTextResponse(text, headers={"Content-Type": "text/csv; charset=utf-8"})


def crumbs(name: str, position: Position, other: str = "") -> list[dict[str, Any]]:
    """The path to a position: every decision with all its actions, and the cards dealt between them.

    Each part is a decision (`who`, `actions`) or a board (`cards`, and the address to choose other cards).
    """
    parts: list[dict[str, Any]] = []
    round_ = -1
    for at, action in [*position.path(), (position, None)]:
        while round_ < at.round:
            round_ += 1
            parts += _board_part(name, position, round_, other)
        if not at.over and not at.missing:
            parts.append(_decision_part(name, at, action, other))
    return parts


def _board_part(name: str, position: Position, round_: int, other: str) -> list[dict[str, Any]]:
    sizes = position.game.rules.board_cards
    start, end = sum(sizes[:round_]), sum(sizes[: round_ + 1])
    cards = position.known[start:end]
    if start == end or len(cards) < end - start:
        return []
    fewer = position.with_board(position.known[:start])
    faces = [card_face(card_text(position.game.rules, card)) for card in cards]
    return [{"cards": faces, "address": address(name, fewer, other=other)}]


def _decision_part(name: str, at: Position, chosen: int | None, other: str) -> dict[str, Any]:
    names = {action: at.name(action) for action in at.state.legal()}
    kinds = action_kinds(names.values())
    return {
        "who": seat_name(at.game.rules, at.state.actor),
        "round": at.round_name,
        "address": address(name, at, other=other),
        "here": chosen is None,
        "actions": [
            {
                "name": words,
                "kind": kinds[words],
                "address": address(name, at.after(action), other=other),
                "chosen": action == chosen,
                "ends": at.after(action).over,
            }
            for action, words in names.items()
        ],
    }


def grid(found: HandTable, link: Link, selected: str = "") -> dict[str, Any]:
    """The grid of a range: rows of cells with their bars, and the bar of the whole range. `link` is a kind's address."""
    cells = {cell.label: cell for cell in found.cells}

    def shown(label: str) -> dict[str, Any]:
        cell = cells[label]
        shares = bars(by_name(found.names, cell.shares))
        said = f"{label}: {_said(shares)}; reach {percent(cell.reach)}"
        return {"bars": shares, "opacity": f"{opacity(cell.reach):.2f}", "said": said}

    whole = bars(by_name(found.names, found.whole))
    return _rows(found, link, selected, shown) | {"whole": whole, "said": _said(whole)}


def reach_grid(found: HandTable, link: Link, selected: str = "") -> dict[str, Any]:
    """The grid of how much of each kind a player still holds, in percent."""
    cells = {cell.label: cell for cell in found.cells}

    def shown(label: str) -> dict[str, Any]:
        reach = cells[label].reach
        said = f"{label}: reach {percent(reach)}"
        return {"apart": f"{100 * reach:.0f}", "kind": "call", "opacity": f"{reach:.3f}", "said": said}

    return _rows(found, link, selected, shown)


def difference(first: HandTable, second: HandTable, link: Link, selected: str = "") -> dict[str, Any]:
    """The grid of the difference of two tables: the total variation distance of each kind's mean strategies."""
    kinds = list(action_kinds(first.names).values())
    mine, theirs = ({cell.label: cell for cell in found.cells} for found in (first, second))

    def shown(label: str) -> dict[str, Any]:
        shift = mine[label].shares - theirs[label].shares
        apart = float(np.abs(shift).sum()) / 2
        most = int(shift.argmax())  # the action that the first one takes more often
        return {
            "apart": f"{100 * apart:.0f}",
            "kind": kinds[most],
            "opacity": f"{apart:.3f}",
            "said": f"{label}: {100 * apart:.0f} points apart; {first.names[most]} "
            f"{signed(100 * float(shift[most]), 0)} points",
        }

    return _rows(first, link, selected, shown, mine.keys() & theirs.keys())


def value_difference(
    first: tuple[HandTable, Mapping[str, Doubles]],
    second: tuple[HandTable, Mapping[str, Doubles]],
    link: Link,
    selected: str,
    places: int,
) -> dict[str, Any]:
    """The grid of the difference of two tables' "EV": the mean of the first one less that of the second, by kind.

    `places` are the decimal places of EVs; the cells show one less.
    """
    means = []
    for table, columns in (first, second):
        known = ~np.isnan(columns["EV"])
        found = {}
        for cell in table.cells:
            weight = table.weight[cell.members] * known[cell.members]
            if weight.any():
                found[cell.label] = float(weight @ np.nan_to_num(columns["EV"][cell.members]) / weight.sum())
        means.append(found)
    mine, theirs = means
    shifts = {label: mine[label] - theirs[label] for label in mine.keys() & theirs.keys()}
    most = max(map(abs, shifts.values()), default=0.0) or 1.0

    def shown(label: str) -> dict[str, Any]:
        shift = shifts[label]
        return {
            "apart": signed(shift, max(places - 1, 0)),
            "kind": "call" if shift >= 0 else "raise-1",
            "opacity": f"{abs(shift) / most:.3f}",
            "said": f"{label}: EV {mine[label]:.{places}f}, {signed(shift, places)}",
        }

    return _rows(first[0], link, selected, shown, shifts.keys())


def _rows(
    found: HandTable, link: Link, selected: str, shown: Callable[[str], dict[str, Any]], kinds: Set[str] | None = None
) -> dict[str, Any]:
    """The cells of a grid, row by row; `shown` gives what a kind with hands, or one of `kinds`, shows."""
    there = {cell.label for cell in found.cells} if kinds is None else kinds
    rows: list[list[dict[str, Any]]] = []
    for row, labels in enumerate(grid_labels(found.rules)):
        rows.append([])
        for column, label in enumerate(labels):
            place: dict[str, Any] = {"label": label, "row": row, "column": column, "empty": label not in there}
            if label in there:
                place |= {"selected": label == selected, "address": link(label)} | shown(label)
            rows[-1].append(place)
    return {"rows": rows, "columns": len(rows[0])}


def opacity(reach: float) -> float:
    """The opacity of a reach: proportional, but at least LEAST_OPACITY."""
    return LEAST_OPACITY + (1 - LEAST_OPACITY) * min(max(reach, 0.0), 1.0)


def _said(shares: list[Any]) -> str:
    return ", ".join(f"{part.name} {part.percent}" for part in shares if part.share > 0)


def detail(found: HandTable, label: str, columns: Mapping[str, list[str]] | None = None) -> dict[str, Any] | None:
    """The hands of a kind with their strategies, and numbers as text [H] by column title; None without such hands."""
    cell = found.cell(label)
    if cell is None:
        return None
    columns = columns or {}
    small, meaning = (found.advantages, found.meaning) if isinstance(found, Range) else (None, None)
    hands = []
    for index in cell.members.tolist():
        hands.append(
            {
                "cards": [card_face(card_text(found.rules, card)) for card in found.holes[index][::-1]],
                "text": found.hand(index),
                "bars": bars(by_name(found.names, found.strategy[index])),
                "percents": [percent(share) for share in found.strategy[index].tolist()],
                "reach": percent(float(found.reach[index])),
                "numbers": [numbers[index] for numbers in columns.values()],
                "advantages": None if small is None else [signed(x, 3) for x in small[index]],
            }
        )
    return {"label": label, "hands": hands, "names": found.names, "columns": list(columns), "meaning": meaning}


def deck(game: PokerGame, position: Position) -> list[list[dict[str, Any]]]:
    """The cards for choosing a board, a row for each suit, highest rank first; cards already used are marked."""
    rules = game.rules
    return [
        [
            {"text": card_text(rules, card), "face": card_face(card_text(rules, card)), "taken": card in position.known}
            for card in range(rules.num_cards - rules.num_suits + suit, -1, -rules.num_suits)
        ]
        for suit in reversed(range(rules.num_suits))
    ]
