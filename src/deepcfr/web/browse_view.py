"""Data of the strategy browser's template: crumbs, grids, hands of a cell, and cards to choose from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from typing import Any

import numpy as np

from deepcfr.games.cards import card_text
from deepcfr.games.poker import PokerGame
from deepcfr.types import Doubles
from deepcfr.web.play_view import action_kinds, bars, card_face, percent, signed
from deepcfr.web.position import Position, address, seat_name
from deepcfr.web.ranges import HandTable, Range, by_name, grid_labels

Link = Callable[[str], str]
"""The address of a kind of hands."""
LEAST_OPACITY = 0.12  # opacity of cells that are almost never reached, so that they stay visible


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
