"""One's own hands: a page takes a text of hands, solves their spots, and ranks the decisions by what they lost."""

from __future__ import annotations

import tempfile
import threading
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.responses import RedirectResponse

from deepcfr.core.errors import ConfigError, DeepCFRError
from deepcfr.defaults import HANDS_EXPLOITABILITY, HANDS_ITERATIONS, HANDS_SIZES
from deepcfr.interop.own_hand_review import (
    SPOTS,
    OwnHandReview,
    ReviewedDecision,
    agent_ranges,
    preset_ranges,
    read_ranges,
)
from deepcfr.interop.own_hands import OwnHand, find_hero, read_own_hands, reasons
from deepcfr.web.play import PROBLEMS, Form
from deepcfr.web.play_view import card_face
from deepcfr.web.schema import HandsState
from deepcfr.web.site import RequestError, Site, render
from deepcfr.web.spot_shelf import read_spot
from deepcfr.web.spot_view import address

THREADS = 2  # of a spot
Hero = Annotated[str, Query(max_length=100, description="the player to review; by default whose cards are known most")]

RangesOf = Annotated[
    str, Query(max_length=100, description="whose ranges before the flop count; empty: those that ship")
]


async def read_text(request: Request) -> str:
    """The body as text."""
    return (await request.body()).decode(errors="replace")


Text = Annotated[str, Depends(read_text)]


class _Stopped(Exception):
    """The person has stopped the review."""


class HandReviews:
    """The newest review of a server: one text at a time, in the background. Solved hands are kept in a folder."""

    def __init__(self, folder: Path | None) -> None:
        self._temporary = None if folder else tempfile.TemporaryDirectory(prefix="deepcfr-hands-")
        self.folder = folder or Path(self._temporary.name if self._temporary else "")
        self._lock = threading.Lock()
        self.state, self.rows = HandsState(), list[ReviewedDecision]()

    def start(self, text: str, hero: str, ranges: str) -> None:
        """Begin to review the hands of a text. Raises ConfigError for one that cannot be, or while another one is."""
        hands, refused = read_own_hands(text)
        review = OwnHandReview(
            self.folder, read_ranges(ranges), HANDS_SIZES, HANDS_EXPLOITABILITY, HANDS_ITERATIONS, THREADS
        )
        hero = find_hero(hands, refused, hero.strip() or None)
        with self._lock:
            if self.state.solving:
                raise ConfigError("Hands are being reviewed: stop that, or wait.")
            self.state = HandsState(hero=hero, solving="hands", refused=refused)
            self.rows = []
        threading.Thread(target=self._review, args=(review, hands, hero), daemon=True).start()

    def stop(self) -> None:
        """Stop before the next spot is solved."""
        self.state.stopping = bool(self.state.solving)

    def _review(self, review: OwnHandReview, hands: list[OwnHand], hero: str) -> None:
        state = self.state

        def on_spot(text: str) -> None:
            state.solving = text
            if state.stopping:
                raise _Stopped

        try:
            for hand in hands:
                rows, refused = review.all([hand], hero, on_spot)
                state.refused |= refused
                self.rows = sorted([*self.rows, *rows], key=lambda row: -row.lost)
        except _Stopped:
            state.refused["others"] = "The review was stopped before."
        finally:  # a mistake of ours must not keep others from reviewing
            state.solving, state.stopping = "", False

    def facts(self) -> HandsState:
        """The state with all decisions so far."""
        return self.state.model_copy(update={"decisions": [asdict(row) for row in self.rows]})


def router(site: Site) -> APIRouter:
    """The page of one's own hands and its API."""
    routes = APIRouter()
    reviews = HandReviews(site.spots.folder and site.spots.folder / "hands")

    def ranges_of(agent: str) -> str:
        return agent_ranges(site.run(agent).agent().policy) if agent else preset_ranges()

    def page(values: dict[str, str], mistake: str = "") -> Response:
        state = reviews.facts()
        rows = [
            (row, [card_face(row.cards[i : i + 2]) for i in (0, 2)], [card_face(text) for text in row.board.split()])
            for row in reviews.rows
        ]
        return render(
            "hands.html", 400 if mistake else 200, page="hands", state=state, rows=rows, values=values, mistake=mistake,
            agents=site.holdem_agents(), reasons=reasons(state.refused), total=sum(row.lost for row in reviews.rows),
        )  # fmt: skip

    @routes.get("/hands", include_in_schema=False)
    def hands() -> Response:
        return page({"text": "", "hero": "", "ranges": preset_ranges(), "agent": ""})

    @routes.post("/hands", include_in_schema=False)
    def new(form: Form) -> Response:
        values = {name: form.get(name, "") for name in ("text", "hero", "ranges")}
        try:
            reviews.start(**values)
        except DeepCFRError as error:
            return page(values | {"agent": ""}, " ".join(error.problems))
        return RedirectResponse("/hands", 303)

    @routes.post("/hands/ranges", include_in_schema=False)
    def fill(form: Form) -> Response:
        """Show the form again, with the ranges of an agent."""
        values = {name: form.get(name, "") for name in ("text", "hero", "agent")}
        return page(values | {"ranges": ranges_of(values["agent"])})

    @routes.post("/hands/stop", include_in_schema=False)
    def stop() -> Response:
        reviews.stop()
        return RedirectResponse("/hands", 303)

    @routes.post("/hands/spot", include_in_schema=False)
    def spot(form: Form) -> Response:
        """Show the solved spot of a decision, which is from then on one of the server's."""
        known = {row.spot for row in reviews.rows}
        name, line = form.get("spot", ""), form.get("line", "")
        if name not in known:
            raise RequestError(404, "There is no such spot among the hands reviewed here.")
        facts = read_spot(reviews.folder / SPOTS / f"{name}.json")
        if site.spots.find(name) != facts:
            name = site.spots.add(name, facts)
        return RedirectResponse(address(name, line), 303)

    @routes.get("/api/hands", tags=["hands"])
    def api() -> HandsState:
        """The decisions of the newest review so far, those that lost most first."""
        return reviews.facts()

    @routes.put("/api/hands", status_code=202, responses=PROBLEMS, tags=["hands"])
    def put(text: Text, hero: Hero = "", agent: RangesOf = "") -> HandsState:
        """Review the hands of the body: a text of PokerStars, PHH, or a log of the ACPC."""
        reviews.start(text, hero, ranges_of(agent))
        return reviews.facts()

    return routes
