"""Later streets of solved spots: the way there, a street as a spot of its own, and one decision over all next cards."""

from __future__ import annotations

from typing import Any

from deepcfr.core.errors import CheckpointError, ConfigError
from deepcfr.game.cards import card_text, cards_text
from deepcfr.search.spot import parse_board
from deepcfr.search.spot_ranges import HOLDEM
from deepcfr.search.spot_solution import ANY, Path, Solution, read_path
from deepcfr.search.spot_tree import Runouts, line_of
from deepcfr.web.play_view import action_kinds, bars, card_face
from deepcfr.web.schema import SpotFacts
from deepcfr.web.site import RequestError, answering, shorten
from deepcfr.web.spot_shelf import SpotShelf
from deepcfr.web.spot_view import SEATS, address, crumbs, joined

_QUICK = 2  # the round of a board after which every next card is computed at once


def whole_of(shelf: SpotShelf, name: str) -> Solution:
    """A solved spot with all its streets. Raises RequestError if it has none."""
    with answering(409, CheckpointError):
        found = shelf.whole(name)
    if found is None:
        raise RequestError(
            404, f"There are no later streets of '{shorten(name)}' here: solve it here, or keep it as .npz."
        )
    return found


def path_of(line: str) -> tuple[Path, str]:
    """The path and the actions of a line. Raises RequestError for one that is none."""
    with answering(404, ConfigError):
        return read_path(line)


def street_of(shelf: SpotShelf, name: str, path: Path) -> SpotFacts:
    """The street after a path as a spot of its own. Raises RequestError if there is none."""
    with answering(404, CheckpointError, ConfigError):
        return SpotFacts.model_validate(whole_of(shelf, name).at(line_of(path)).facts())


def runouts_of(shelf: SpotShelf, name: str, line: str) -> Runouts:
    """One decision over all next cards. Raises RequestError if there is none."""
    with answering(404, CheckpointError, ConfigError):
        return whole_of(shelf, name).runouts(line)


def ends_of(shelf: SpotShelf, name: str, path: Path) -> list[str]:
    """The actions that end the street after a path, if the spot has later streets."""
    return list(whole_of(shelf, name).tree.ends(path)) if shelf.has_streets(name) else []


def way_to(shelf: SpotShelf, name: str, path: Path) -> list[dict[str, Any]]:
    """The way to the street after a path, for the template."""
    parts: list[dict[str, Any]] = []
    for place in range(0, len(path), 2):
        before, (actions, card) = path[:place], path[place : place + 2]
        facts = street_of(shelf, name, before)
        parts += crumbs(name, facts, actions, "", line_of(before), ends_of(shelf, name, before), here=False)
        if card != ANY:
            parts.append({"cards": [card_face(card)], "address": address(name, line_of((*before, actions, ANY)))})
    return parts


def runouts_page(shelf: SpotShelf, name: str, line: str, computed: bool) -> dict[str, Any]:
    """The values of the template on which a next card is chosen; with what it brings if that is quick or `computed`."""
    path, actions = path_of(line)
    solution, before = whole_of(shelf, name), path[:-2]
    if path[-2] not in ends_of(shelf, name, before):
        raise RequestError(404, f"No decision comes after '{shorten(path[-2])}' and a card.")
    board = street_of(shelf, name, before).board
    cards = parse_board(board)
    known = solution.spot.round == _QUICK or len(path) > 2 or computed
    report = runouts_of(shelf, name, line) if known else None
    found = {each.card: each for each in report.cards} if report else {}
    ranks, suits = HOLDEM.num_ranks, HOLDEM.num_suits
    rows = []
    for suit in range(suits):
        row = []
        for rank in reversed(range(ranks)):
            card = card_text(HOLDEM, rank * suits + suit)
            there = found.get(card)
            cell: dict[str, Any] = {"face": card_face(card), "free": rank * suits + suit not in cards}
            cell["address"] = address(name, joined(line_of((*path[:-1], card)), actions))
            if there:
                shares = there.frequencies
                cell["bars"] = bars(shares)
                cell["said"] = ", ".join(f"{action} {share:.1%}" for action, share in shares.items())
                cell["value"] = there.values[SEATS.index("big blind")]
                cell["equity"] = there.equities[SEATS.index("big blind")]
            row.append(cell)
        rows.append(row)
    some = next(card_text(HOLDEM, card) for card in range(HOLDEM.num_cards) if card not in cards)
    lines = [each.line for each in solution.tree.street((*path[:-1], some)).decisions] if known else []
    kinds = action_kinds(report.cards[0].frequencies) if report else {}
    return {
        "page": "spots",
        "name": name,
        "board": [card_face(text) for text in cards_text(HOLDEM, cards).split()],
        "crumbs": way_to(shelf, name, path),
        "player": SEATS[report.player] if report else "",
        "legend": [{"name": action, "kind": kind} for action, kind in kinds.items()],
        "rows": rows,
        "places": max(0, 4 - len(f"{solution.spot.pot:.0f}")),
        "decisions": [
            {"line": each or "first", "address": address(name, joined(line_of(path), each)), "here": each == actions}
            for each in lines
        ],
        "compute": None if report else address(name, line) + "&report=yes",
        "as_json": address(f"{name}/runouts", line, prefix="/api/spots"),
    }
