"""Data of the strategy browser's template: crumbs, grids, hands of a cell, and cards to choose from."""

from __future__ import annotations

from typing import Any

import numpy as np

from deepcfr.games.cards import card_text
from deepcfr.games.poker import PokerGame
from deepcfr.web.play_view import bars, card_face, percent, signed
from deepcfr.web.position import Position, address, kind_of, seat_name
from deepcfr.web.ranges import Cell, Range, by_name, grid_labels

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
    return {
        "who": seat_name(at.game, at.state.actor),
        "round": at.round_name,
        "address": address(name, at, other=other),
        "here": chosen is None,
        "actions": [
            {
                "name": at.name(action),
                "kind": kind_of(action),
                "address": address(name, at.after(action), other=other),
                "chosen": action == chosen,
                "ends": at.after(action).over,
            }
            for action in at.state.legal()
        ],
    }


def grid(name: str, found: Range, selected: str = "", other: str = "") -> dict[str, Any]:
    """The grid of a range: rows of cells with their bars, and the bar of the whole range."""
    cells = {cell.label: cell for cell in found.cells}
    rows = [
        [
            _grid_cell(name, found, cells.get(label), label, row, column, selected, other)
            for column, label in enumerate(labels)
        ]
        for row, labels in enumerate(grid_labels(found.position.game.rules))
    ]
    whole = bars(by_name(found.names, found.whole))
    return {"rows": rows, "columns": len(rows[0]), "whole": whole, "said": _said(whole)}


def _grid_cell(
    name: str, found: Range, cell: Cell | None, label: str, row: int, column: int, selected: str, other: str
) -> dict[str, Any]:
    if cell is None:
        return {"label": label, "row": row, "column": column, "empty": True}
    shares = bars(by_name(found.names, cell.shares))
    return {
        "label": label,
        "row": row,
        "column": column,
        "empty": False,
        "bars": shares,
        "opacity": f"{opacity(cell.reach):.2f}",
        "said": f"{label}: {_said(shares)}; reach {percent(cell.reach)}",
        "selected": label == selected,
        "address": address(name, found.position, cell=label, other=other),
    }


def opacity(reach: float) -> float:
    """The opacity of a reach: proportional, but at least LEAST_OPACITY."""
    return LEAST_OPACITY + (1 - LEAST_OPACITY) * min(max(reach, 0.0), 1.0)


def _said(shares: list[Any]) -> str:
    return ", ".join(f"{part.name} {part.percent}" for part in shares if part.share > 0)


def difference(name: str, first: Range, second: Range, selected: str = "", other: str = "") -> dict[str, Any]:
    """The grid of the difference of two agents: the total variation distance of each cell's mean strategies."""
    kinds = [kind_of(action) for action in first.position.state.legal()]
    theirs = {cell.label: cell for cell in second.cells}
    mine = {cell.label: cell for cell in first.cells}
    rows: list[list[dict[str, Any]]] = []
    for row, labels in enumerate(grid_labels(first.position.game.rules)):
        rows.append([])
        for column, label in enumerate(labels):
            place: dict[str, Any] = {"label": label, "row": row, "column": column, "empty": label not in mine}
            if label in mine:
                shift = mine[label].shares - theirs[label].shares
                apart = float(np.abs(shift).sum()) / 2
                most = int(shift.argmax())  # the action that the first agent takes more often
                place |= {
                    "apart": f"{100 * apart:.0f}",
                    "kind": kinds[most],
                    "opacity": f"{apart:.3f}",
                    "said": f"{label}: {100 * apart:.0f} points apart; {first.names[most]} "
                    f"{signed(100 * float(shift[most]), 0)} points",
                    "selected": label == selected,
                    "address": address(name, first.position, cell=label, other=other),
                }
            rows[-1].append(place)
    return {"rows": rows, "columns": len(rows[0])}


def detail(found: Range, label: str) -> dict[str, Any] | None:
    """The hands of a cell with their strategies; None if the board excludes all of them."""
    cell = found.cell(label)
    if cell is None:
        return None
    rules = found.position.game.rules
    hands = []
    for index in cell.members.tolist():
        advantages = None if found.advantages is None else [signed(x, 3) for x in found.advantages[index]]
        hands.append(
            {
                "cards": [card_face(card_text(rules, card)) for card in found.holes[index][::-1]],
                "text": found.hand(index),
                "bars": bars(by_name(found.names, found.strategy[index])),
                "percents": [percent(share) for share in found.strategy[index].tolist()],
                "reach": percent(float(found.reach[index])),
                "advantages": advantages,
            }
        )
    return {"label": label, "hands": hands, "names": found.names, "meaning": found.meaning}


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
