"""A drill on a solved spot: hands are dealt from the ranges, the player acts, and the solution says what each action lost.

Nothing is kept on the server: the address has the deal, the line so far and the score. So a link restores everything.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any
from urllib.parse import urlencode

import numpy as np
from fastapi import APIRouter, Query, Response

from deepcfr.core.rng import key
from deepcfr.game.cards import free_holes
from deepcfr.search.spot import parse_board
from deepcfr.search.spot_ranges import HOLDEM, hand_names, hand_rows, parse_range
from deepcfr.web.play import PROBLEMS
from deepcfr.web.play_view import action_kinds, card_face
from deepcfr.web.schema import DrillStep, Seat, SpotDecision, SpotFacts
from deepcfr.web.site import RequestError, render, shorten
from deepcfr.web.spot_view import decision_at

_REPEAT = 3  # of so many deals one is that with which most was lost
_KEPT = 40  # deals of a score
_SCORE = re.compile(r"(\d{1,6})_(\d{1,15})")
_UNIT = 10_000  # losses in an address are whole numbers of this part of the pot's unit
_DEALS = 10**6
Deal = Annotated[
    int, Query(ge=0, lt=_DEALS, description="the number of a deal; equal numbers are equal hands and replies")
]
Line = Annotated[str, Query(max_length=400, description="the actions before")]
Chosen = Annotated[str, Query(max_length=40, description="the action that was chosen at the decision")]


def deal_hands(spot: SpotFacts, deal: int) -> tuple[str, str]:
    """The hands of the dealer and of the big blind in a deal, drawn from both ranges as they meet."""
    holes = free_holes(HOLDEM, parse_board(spot.board))
    weights = [parse_range(text)[hand_rows(holes)] for text in (spot.dealer, spot.big_blind)]
    cards = (1 << holes.astype(np.int64)).sum(1)
    held = [np.flatnonzero(each) for each in weights]
    pairs = np.outer(*(each[rows] for each, rows in zip(weights, held, strict=True)))
    pairs *= cards[held[0], None] & cards[held[1]] == 0
    number = np.random.default_rng(key(deal, "deal")).choice(pairs.size, p=(pairs / pairs.sum()).ravel())
    first, second = divmod(int(number), len(held[1]))
    dealer, big_blind = hand_names(holes[[held[0][first], held[1][second]]])
    return dealer, big_blind


def reply(spot: SpotFacts, deal: int, seat: Seat, line: str) -> SpotDecision | str:
    """The next decision of `seat` from a line on, or the line at whose end the street is over.

    The other player acts as the solution does with the hand that it has in this deal.
    """
    hands = dict(zip(("dealer", "big blind"), deal_hands(spot, deal), strict=True))
    decisions = {decision.line: decision for decision in spot.decisions}
    while (decision := decisions.get(line)) and decision.player != seat:
        shares = np.array(decision.hands[hands[decision.player]])
        draw = np.random.default_rng(key(deal, "reply", line))
        line = _after(line, list(decision.frequencies)[draw.choice(len(shares), p=shares / shares.sum())])
    return decision or line


def step_of(spot: SpotFacts, deal: int, seat: Seat, line: str, action: str) -> DrillStep:
    """Where a drill is, and what each action loses once one is chosen. Raises RequestError for an action that is none."""
    before, _, last = line.rpartition(", ")
    if line and last not in decision_at(spot, before).frequencies:
        raise RequestError(404, f"There is no line '{shorten(line)}' on this board.")
    here = reply(spot, deal, seat, line)
    cards = deal_hands(spot, deal)[seat == "big blind"]
    if isinstance(here, str):
        return DrillStep(deal=deal, seat=seat, cards=cards, line=here)
    step = DrillStep(
        deal=deal,
        seat=seat,
        cards=cards,
        line=here.line,
        pot=here.pot,
        to_call=here.to_call,
        actions=[*here.frequencies],
    )
    if not action:
        return step
    if action not in step.actions:
        raise RequestError(404, f"There is no action '{shorten(action)}' after '{shorten(here.line)}'.")
    if cards not in here.values:  # of a file of an earlier version
        raise RequestError(409, "This spot has no values of actions: solve it again.")
    values = dict(zip(step.actions, here.values[cards], strict=True))
    best = max(values.values())
    played = dict(zip(step.actions, here.hands[cards], strict=True))
    losses = {name: round(best - value, spot.places) + 0.0 for name, value in values.items()}
    return step.model_copy(update={"chosen": action, "losses": losses, "played": played})


def _after(line: str, action: str) -> str:
    return f"{line}, {action}".removeprefix(", ")


def losses_of(score: str) -> dict[int, float]:
    """The losses of a score by deal, oldest first."""
    return {int(number): int(loss) / _UNIT for number, loss in _SCORE.findall(score)}


def scored(score: str, deal: int, lost: float) -> dict[int, float]:
    """The losses of a score with what was lost now."""
    found = losses_of(score)
    total = found.pop(deal, 0.0) + lost
    return dict([*found.items(), (deal, total)][-_KEPT:])


def next_deal(found: Mapping[int, float], deal: int) -> int:
    """The number of the next deal: a new one, or from time to time that with which most was lost."""
    worst = max(found, key=lambda number: found[number], default=deal)
    if len(found) >= _REPEAT and found[worst] and worst != deal and (deal + len(found)) % _REPEAT == 0:
        return worst
    return (max([*found, deal]) + 1) % _DEALS


def page_values(name: str, spot: SpotFacts, step: DrillStep, score: str) -> dict[str, Any]:
    """The values of the template."""
    lost = step.losses[step.chosen] if step.chosen else 0.0
    found = scored(score, step.deal, lost) if step.chosen else losses_of(score)

    def link(
        line: str, kept: Mapping[int, float], deal: int = step.deal, seat: str = step.seat, action: str = ""
    ) -> str:
        text = "-".join(f"{number}_{round(_UNIT * loss)}" for number, loss in kept.items())
        fields = {"seat": seat, "deal": deal, "line": line, "action": action, "score": text}
        return f"/spots/{name}/drill?{urlencode({key: value for key, value in fields.items() if value != ''})}"

    after = _after(step.line, step.chosen)
    over = not step.actions or bool(step.chosen and isinstance(reply(spot, step.deal, step.seat, after), str))
    coming = next_deal(found, step.deal)
    others = {number: loss for number, loss in found.items() if number != coming}  # a repeated deal begins anew
    return {
        "page": "spots",
        "name": name,
        "spot": spot,
        "step": step,
        "board": [card_face(text) for text in spot.board.split()],
        "hand": [card_face(step.cards[:2]), card_face(step.cards[2:])],
        "lost": lost,
        "over": over,
        "buttons": [
            {"name": action, "kind": kind, "key": number, "address": link(step.line, found, action=action)}
            for number, (action, kind) in enumerate(action_kinds(step.actions).items(), 1)
        ],
        "goes_on": link("", others, coming) if over else link(after, found),
        "hands": len(found),
        "total": sum(found.values()),
        "seats": [(seat, link("", {}, 0, seat)) for seat in ("dealer", "big blind")],
        "solution": f"/spots/{name}?{urlencode({'line': step.line})}",
    }


def add_drill(routes: APIRouter, solved: Any) -> None:
    """The page of a drill and its API; `solved` finds a spot by its name."""

    @routes.get("/spots/{name}/drill", include_in_schema=False)
    def page(
        name: str, deal: Deal = 0, seat: Seat = "dealer", line: Line = "", action: Chosen = "", score: str = ""
    ) -> Response:
        spot = solved(name)
        return render("drill.html", **page_values(name, spot, step_of(spot, deal, seat, line, action), score[:2_000]))

    @routes.get("/api/spots/{name}/drill", responses=PROBLEMS, tags=["spots"])
    def api(name: str, deal: Deal = 0, seat: Seat = "dealer", line: Line = "", action: Chosen = "") -> DrillStep:
        """A deal of a drill: the hand and the decision, and with an action what each one loses."""
        return step_of(solved(name), deal, seat, line, action)
