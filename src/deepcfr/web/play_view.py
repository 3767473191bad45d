"""Data of the templates of table and review, made only from the API's output."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from deepcfr.search.spot import NAMES

SLIDER_STEPS = 30
SUITS = {"c": "club", "d": "diamond", "h": "heart", "s": "spade"}
RANKS = {"T": "ten", "J": "jack", "Q": "queen", "K": "king", "A": "ace"}


@dataclass(frozen=True)
class CardFace:
    """The face of a card."""

    rank: str
    suit: str  # club, diamond, heart, spade; empty in a deck of one suit
    label: str  # for screen readers


@dataclass(frozen=True)
class Bar:
    """An action's share of a bar."""

    name: str
    kind: str  # fold, call, raise-1 .. raise-4
    share: float
    start: float  # start of the part, from 0 to 1

    @property
    def percent(self) -> str:
        """The share as text."""
        return percent(self.share)


def card_face(text: str) -> CardFace:
    """The face of a card such as `As` or `K`."""
    rank, suit = text[0], SUITS.get(text[1:], "")
    name = RANKS.get(rank, rank)
    return CardFace("10" if rank == "T" else rank, suit, f"{name} of {suit}s" if suit else name)


def percent(share: float) -> str:
    """A probability as text: `37 %`, with tenths near 0 and 1 and `<0.1 %` for tiny positive ones."""
    if 0 < share < 0.001:
        return "<0.1 %"
    if 0.999 < share < 1:
        return ">99.9 %"
    digits = 1 if 0 < share < 0.0995 or 0.9005 < share < 1 else 0
    return f"{100 * share:.{digits}f} %"


def action_kinds(names: Iterable[str]) -> dict[str, str]:
    """The colour class of each action by name: fold, call, and raises in shades, smallest first."""
    kinds, raises = {}, 0
    for name in names:
        first = name.split()[0]
        if first in ("fold", "call", "check"):
            kinds[name] = "fold" if first == "fold" else "call"
        else:
            raises += 1
            kinds[name] = f"raise-{min(raises, 4)}"
    return kinds


def bars(probabilities: dict[str, float]) -> list[Bar]:
    """A bar of all actions, the most aggressive first, as in solvers; shares of 0 are omitted."""
    kinds, start, found = action_kinds(probabilities), 0.0, []
    for name, share in reversed(probabilities.items()):
        found.append(Bar(name, kinds[name], share, start))
        start += share
    return found


def signed(value: float, digits: int = 2) -> str:
    """A gain with its sign; the minus is a typographic one."""
    rounded = round(value, digits) + 0.0
    text = f"{rounded:+.{digits}f}" if digits else f"{rounded:+.0f}"
    return ("0" if rounded == 0 else text).replace("-", "−")


def table_view(state: dict[str, Any]) -> dict[str, Any]:
    """Data of the page of a table."""
    result = state["result"]
    shown = result is not None
    hidden = len(state["cards"])
    kinds = action_kinds(action["name"] for action in state["actions"])
    tokens = [action["token"] for action in state["actions"]]
    names = state["known"] is not None and any(len(token) > 1 for token in tokens)  # that say nothing about keys
    keys = {token: str(place) for place, token in enumerate(tokens, 1)} if names else action_keys(tokens)
    places = {"you": state["place"], "agent": NAMES[1 - NAMES.index(state["place"])]} if state["place"] in NAMES else {}
    sizes = state["sizes"]
    return state | {
        "places": places,
        "size_steps": size_steps(sizes["least"], sizes["most"]) if sizes else [],
        "all_in_from": sizes["most"] - sizes["chip"] / 2 if sizes else None,  # what is rounded to all-in
        "yours": [card_face(text) for text in state["cards"]],
        "theirs": [card_face(text) for text in result["agent_cards"]] if shown else [None] * hidden,
        "public": [card_face(text) for text in state["board"]] + [None] * (state["board_size"] - len(state["board"])),
        "buttons": [
            action
            | {
                "kind": kinds[action["name"]],
                "key": keys[action["token"]],
                "share": ""
                if action["pot_share"] is None or action["token"] == "a"
                else f"{100 * action['pot_share']:.0f} % pot",
            }
            for action in state["actions"]
        ],
        "rounds": _rounds(state["steps"]),
        "outcome": _outcome(state) if shown else None,
        "score": _score(state),
        "last": _last(state["steps"]),
    }


def size_steps(least: float, most: float) -> list[float]:
    """Return round sizes from `least` to `most` for a slider, each larger than the last by about the same factor."""
    found = {least, most}
    for step in range(1, SLIDER_STEPS):
        size = least * (most / least) ** (step / SLIDER_STEPS)
        grain = 0.5 if size < 10 else 1 if size < 40 else 5
        found.add(min(max(round(size / grain) * grain, least), most))
    return sorted(found)


def action_keys(tokens: list[str]) -> dict[str, str]:
    """The key of each action: its letter, or for raises the number of the size, from 1.

    A game has at most ten sizes; the tenth size has the key 0.
    """
    sizes = [token for token in tokens if len(token) > 1]
    return {token: str((sizes.index(token) + 1) % 10) if token in sizes else token for token in tokens}


def _rounds(steps: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The actions so far, round by round, with the board of each."""
    rounds: list[dict[str, Any]] = []
    for step in steps:
        if not rounds or rounds[-1]["name"] != step["round"]:
            rounds.append({"name": step["round"], "board": [card_face(c) for c in step["board"]], "steps": []})
        rounds[-1]["steps"].append(step)
    return rounds


def _last(steps: list[dict[str, Any]]) -> dict[str, str]:
    """The last action of each side."""
    return {step["who"]: step["name"] for step in steps}


def _outcome(state: dict[str, Any]) -> dict[str, str]:
    result, unit = state["result"], state["unit"]
    won = result["won"]
    how = "" if state["known"] is not None else " at showdown" if result["showdown"] else " by a fold"
    if not won:
        text = "The pot is split" if state["known"] is None else "A draw"
    else:
        size = f"{abs(won):g} {unit.removesuffix('s') if abs(won) == 1 else unit}"
        text = f"You {'win' if won > 0 else 'lose'} {size}{how}"
    return {
        "text": text,
        "mood": "good" if won > 0 else "bad" if won < 0 else "even",
        "adjusted": signed(result["adjusted"]),
        "seed": result["seed"],
    }


def _score(state: dict[str, Any]) -> list[dict[str, str]]:
    """The results so far as rows of a small table."""
    rows = []
    titles = {"raw": "As dealt"} | ({"adjusted": "Luck-adjusted"} if state["known"] is None else {})
    for name, title in titles.items():
        tally = state["session"][name]
        mean, half = tally["mean_milli"], tally["interval_milli"]
        rows.append(
            {
                "title": title,
                "total": signed(tally["total"]) if tally["hands"] else "–",
                "mean": "–" if mean is None else signed(mean, 0),
                "half": "" if half is None else f"± {half:,.0f}",
            }
        )
    return rows


def _half(width: float) -> str:
    """The half-width of an interval as text; empty for an exact value."""
    return f" ± {width:.3f}" if width else ""


def review_view(review: dict[str, Any], state: dict[str, Any]) -> dict[str, Any]:
    """Data of the page of a review; `waiting`: its exact part is not ready yet."""
    # a note says why there is no range, which only poker has
    waiting = not review["range"] and review["note"] is None and state["known"] is None
    return review | {
        "waiting": waiting,
        "has_values": waiting or any(decision["values"] for decision in review["decisions"]),
        "unit": state["unit"],
        "agent": state["agent"],
        "decisions": [
            decision
            | {
                "bars": bars(decision["agent"]),
                "cost_text": None
                if decision["cost"] is None
                else f"{decision['cost']:.3f}" + _half(decision["cost_interval"]),
                "value_texts": {
                    name: signed(value, 3) + _half(decision["intervals"][name])
                    for name, value in (decision["values"] or {}).items()
                },
                "best": None if decision["values"] is None else max(decision["values"], key=decision["values"].get),
            }
            for decision in review["decisions"]
        ],
        "range": [entry | {"percent": percent(entry["probability"])} for entry in review["range"]],
    }
