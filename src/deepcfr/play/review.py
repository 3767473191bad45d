"""The review of a finished hand: what an agent would have done at each decision, and what each choice cost."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from deepcfr.games.cards import card_text
from deepcfr.play.costs import DEALS, Costs
from deepcfr.play.hand import Cards, Decision, Hand, decisions, played
from deepcfr.play.history import HistoryHand, round_of
from deepcfr.policies.base import Policy
from deepcfr.policies.query import round_name
from deepcfr.search.spot import NAMES


def review(hand: Hand | HistoryHand, found: Iterable[Decision], costs: Costs | None) -> list[dict[str, Any]]:
    """Decisions of a hand as JSON values, with values of actions in units where `costs` gives and knows them."""
    return [_reviewed(hand, decision, costs) for decision in found]


def _reviewed(hand: Hand | HistoryHand, decision: Decision, costs: Costs | None) -> dict[str, Any]:
    found = costs.at(hand, decision.step) if costs and isinstance(hand, Hand) else None
    step, names = hand.steps[decision.step], decision.names
    return {
        "round": round_of(hand, step.round),
        "action": step.name,
        "agent": {names[action]: share for action, share in decision.agent.items()},
        "values": {names[action]: value for action, value in found.actions.items()} if found else None,
        "cost": found.cost if found else None,
        "exact": found.exact if found else None,
        "intervals": {names[action]: half for action, half in found.halves.items()} if found else None,
        "cost_interval": found.cost_half if found else None,
    }


def note(hand: Hand, reviewed: list[dict[str, Any]], costs: Costs) -> str | None:
    """Sentences that say which values are estimates, and why others are missing; None if all are exact."""
    rules, notes = hand.rules, []
    if any(decision["exact"] is False for decision in reviewed):
        last = round_name(rules, rules.num_rounds - 1)
        notes.append(
            f"Values before the {last} are means over {DEALS:,} random deals if both play on as the agent does, with "
            "95 % intervals."
        )
    missing = {
        step.round
        for step, decision in zip((s for s in hand.steps if s.player == hand.person), reviewed, strict=True)
        if decision["values"] is None
    }
    if any(costs.needs_all_boards(round_) for round_ in missing):
        done, total = costs.progress
        so_far = f" ({done:,} of {total:,} boards)" if total else ""
        notes.append(f"The costs of {round_name(rules, 0)} choices are being computed for all boards{so_far}.")
    elif missing:
        notes.append(
            "A decision has no values where the agent searches, cannot have acted as it did, or has bets too many to "
            "list or of another size."
        )
    if hand.translated:
        notes.append("The size of a bet is none that the agent knows, so it was translated.")
    return " ".join(notes) or None


def review_seats(
    policy: Policy, costs: Costs, place: int, holes: tuple[Cards, Cards], board: Cards, actions: Sequence[int]
) -> list[dict[str, Any]]:
    """The review of a hand that was played elsewhere, for each player whose cards are known, as JSON values.

    `place` addresses the random deals of estimates. Costs are those against a player who plays as `policy` does.
    """
    found = []
    for person, hole in enumerate(holes):
        if not hole:
            continue
        hand = played(policy, person, place, hole, board, actions)
        reviewed = review(hand, decisions(hand), costs)
        seat = {"seat": NAMES[person], "cards": [card_text(hand.rules, card) for card in hole]}
        found.append(seat | {"decisions": reviewed, "note": note(hand, reviewed, costs)})
    return found


def describe(hand: dict[str, Any], unit: str) -> str:
    """A reviewed hand as text: a line for each player and each decision. `names` are of the dealer and the big blind."""
    # a stranger's file may hold codes that a terminal obeys
    names = ["".join(letter if letter.isprintable() else "?" for letter in name) for name in hand["names"]]
    lines = [f"Hand {hand['number']}: {names[0]} ({NAMES[0]}) and {names[1]} ({NAMES[1]})"]
    for player in hand["players"]:
        lines.append(f"  {names[NAMES.index(player['seat'])]} with {' '.join(player['cards'])}")
        lines += [f"    {_line(decision, unit)}" for decision in player["decisions"]] or ["    No decision."]
        lines += [f"    {player['note']}"] if player["note"] else []
    return "\n".join(lines)


def _line(decision: dict[str, Any], unit: str) -> str:
    agent = ", ".join(f"{name} {share:.0%}" for name, share in decision["agent"].items())
    text = f"{decision['round']}: {decision['action']}; the agent: {agent}"
    if decision["cost"] is None:
        return text
    half = ", exactly" if decision["exact"] else f" ± {decision['cost_interval']:.3f}"
    return f"{text}; cost {decision['cost']:.3f} {unit}{half}"
