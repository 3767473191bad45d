"""The form of a spot: its fields, the spot that they ask for, every mistake at its field, and the locks of a decision."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf, nan
from typing import Any

import numpy as np
from pydantic import ValidationError

from deepcfr.core.errors import DeepCFRError
from deepcfr.defaults import SPOT_ITERATIONS, SPOT_SIZES
from deepcfr.search.spot import SPOT_TEXTS, Spot, parse_board
from deepcfr.search.spot_ranges import hand_rows, parse_range
from deepcfr.search.spot_sizes import amount_text
from deepcfr.search.spot_solver import SpotSolver, memory_for_spots
from deepcfr.web import schema
from deepcfr.web.site import Site, shorten
from deepcfr.web.spot_view import SHARE

THREADS = 2  # of a solution
EXPLOITABILITY = "0.1"  # percent of the pot at which a spot of the form is solved
#: what the form shows at first, which is solved within a second; a field that is not here is empty
EXAMPLE = {
    "board": "Qs 7h 2c 9d 4s",
    "pot": "10",
    "stacks": "40",
    "dealer": "22+,A2s+,K9s+,QTs+,JTs,ATo+,KJo+",
    "big_blind": "22+,A2s+,KTs+,QTs+,AJo+,KQo:0.5",
    "sizes": SPOT_SIZES,
    "rake": "0",
    "exploitability": EXPLOITABILITY,
    "iterations": str(SPOT_ITERATIONS),
}
_SOUND = EXAMPLE | {"rake": "5"}  # no field has a mistake because of another one of these
_FIELDS = set(schema.SpotWish.model_fields)
#: fields in the order in which they are tried; the board is last, since a range that does not fit it is the range's
#: mistake
_BLAMED = ("line", "agent", "cap", "min_bet", "aggressor", *(name for name in EXAMPLE if name != "board"), "board")
_NUMBERS = {"float_parsing": "a number", "int_parsing": "a whole number", "int_from_float": "a whole number"}


def kept_of(facts: schema.SpotFacts) -> dict[str, Any]:
    """Give the fields of a wish that a solved spot has, without locks."""
    return facts.model_dump(include=_FIELDS - {"iterations", "locks"}, exclude_none=True)


def values_like(facts: schema.SpotFacts) -> dict[str, str]:
    """The fields of a form for a spot like a solved one."""
    kept = kept_of(facts).items()
    return EXAMPLE | {name: amount_text(value, 12) if isinstance(value, float) else value for name, value in kept}


def wish_of(values: Mapping[str, Any]) -> schema.SpotWish:
    """The spot that fields ask for; empty ones are left out, but empty sizes are no bets.

    Raises ValidationError for what is no number.
    """
    known = {name: value for name, value in values.items() if name in _FIELDS}
    given = {name: value for name, value in known.items() if name == "sizes" or str(value).strip()}
    return schema.SpotWish.model_validate(given)


def solver_of(site: Site, wish: schema.SpotWish, most: float | None = None) -> SpotSolver:
    """Prepare the solver for the spot of a wish, with at most so many bytes; None: what this machine has for spots.

    Raises what its parts raise for mistakes.
    """
    spot = spot_of(site, wish)
    locks = [lock.model_dump(exclude_none=True) for lock in wish.locks]
    return SpotSolver(spot, memory_for_spots() if most is None else most, THREADS, locks)


def spot_of(site: Site, wish: schema.SpotWish) -> Spot:
    """The spot of a wish. Raises what its parts raise for mistakes."""
    policy = site.run(wish.agent).agent().policy if wish.agent else None
    return Spot.parse(policy=policy, **wish.model_dump(include=set(SPOT_TEXTS)))


def mistakes(site: Site, values: Mapping[str, Any]) -> dict[str, str]:
    """A sentence for every field of a form that is wrong, by its name.

    A field is to blame for an error if the example's value in its place changes the error. An error that no field is to
    blame for is under an empty name.
    """
    values, found = dict(values), dict[str, str]()

    def wrong(fields: Mapping[str, Any]) -> dict[str, str]:
        try:
            spot_of(site, wish_of(fields))
        except ValidationError as error:
            return {str(each["loc"][0]): _sentence(each["msg"], each["type"], each["input"]) for each in error.errors()}
        except DeepCFRError as error:
            return {"": " ".join(error.problems)}
        return {}

    while now := wrong(values):
        if "" in now:
            others = (name for name in _BLAMED if values.get(name, "") != _SOUND.get(name, ""))
            blamed = next((name for name in others if wrong(values | {name: _SOUND.get(name, "")}) != now), "")
            now = {blamed: now[""]}
        found |= now
        if "" in now:
            break
        betting = ("agent", "line") if now.keys() & {"agent", "line"} else ()  # neither goes without the other
        values |= {name: _SOUND.get(name, "") for name in (*now, *betting)}
    return found


def _sentence(message: str, kind: str, value: object) -> str:
    if kind in _NUMBERS:
        return f"'{shorten(str(value))}' is not {_NUMBERS[kind]}."
    if kind == "missing":
        return "This field is needed."
    return f"{message}, but is '{shorten(str(value))}'."


def locked_by(
    facts: schema.SpotFacts, decision: schema.SpotDecision, form: Mapping[str, str]
) -> tuple[list[schema.SpotLock], dict[str, str]]:
    """The locks of a spot with those of a form for one of its decisions, and a sentence for each field that is wrong.

    The form has a share for each action, divided by their sum, and hands that play so as a range; without them all do.
    """
    shares, found = [], dict[str, str]()
    for action in decision.frequencies:
        text = form.get(SHARE + action, "")
        try:
            shares.append(float(text))
        except ValueError:
            shares.append(nan)
        if not 0 <= shares[-1] < inf:
            found[SHARE + action] = f"'{shorten(text)}' is not a share: write a number, 0 or more."
    if not found and not any(shares):
        found[SHARE + action] = "All shares are 0: one of the actions must be played."
    names: list[str] = []
    if hands := form.get("hands", "").strip():
        try:
            chosen = parse_range(hands)
        except DeepCFRError as error:
            found["hands"] = " ".join(error.problems)
        else:
            held = list(facts.hand_values[decision.player])
            rows = hand_rows(np.array([sorted(parse_board(name)) for name in held], np.uint8))
            names = [name for name, weight in zip(held, chosen[rows], strict=True) if weight]
            if not names:
                found["hands"] = f"The range of the {decision.player} has no hand of '{shorten(hands)}'."
    if found:
        return [], found
    played = [share / sum(shares) for share in shares]
    lock = schema.SpotLock(line=decision.line, frequencies=dict(zip(decision.frequencies, played, strict=True)))
    if names:
        before = next((each for each in facts.locks if each.line == decision.line), schema.SpotLock(line=decision.line))
        lock = before.model_copy(update={"hands": (before.hands or {}) | dict.fromkeys(names, played)})
    return [*(each for each in facts.locks if each.line != decision.line), lock], {}
