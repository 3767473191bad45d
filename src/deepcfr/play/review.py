"""Review of a finished hand: its result averaged over the agent's possible cards, and the agent's choices in each spot."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from deepcfr.games.cards import cards_text
from deepcfr.play.hand import Hand, free_holes


@dataclass(frozen=True)
class Decision:
    """A decision of the person in a finished hand."""

    step: int  # position in `Hand.steps`
    action: int  # the person's action
    agent: dict[int, float]  # the agent's strategy there with the person's cards, by legal action
    names: dict[int, str]  # names of the legal actions


def adjusted_result(hand: Hand) -> float:
    """The person's mean result over all cards that the agent may have held in a finished hand, in units.

    This is E[result | the person's cards, the public cards, all actions]. By Bayes' rule each hand of the agent has the
    weight P(hand | ...) ~ prod P(its action | hand): all hands are equally likely given the known cards, and the
    person's actions cannot depend on the agent's cards. A conditional expectation has the mean of the result and a
    smaller variance (Rao-Blackwell), so the estimate is unbiased whatever the person does. It assumes that the agent
    plays its policy. A mixture that draws one policy for each hand plays its average (Kuhn's theorem). After a fold the
    result does not depend on the agent's cards.
    """
    if not hand.showdown:
        return hand.won
    holes = free_holes(hand.rules, (*hand.hole(hand.person), *hand.board))
    chances = hand.chances(holes)
    return float(chances @ hand.wins(holes) / chances.sum())


def agents_range(hand: Hand, most: int | None = None) -> list[tuple[str, float]]:
    """The hands that the agent may hold now, likeliest first, with their probabilities.

    The probabilities of all hands sum to 1. `most` limits the number of hands returned.
    """
    holes = free_holes(hand.rules, (*hand.hole(hand.person), *hand.board))
    chances = hand.chances(holes)
    order = np.argsort(-chances, kind="stable")[:most]
    shares = chances / chances.sum()
    return [(cards_text(hand.rules, holes[place]), float(shares[place])) for place in order]


def decisions(hand: Hand) -> list[Decision]:
    """Every decision of the person in `hand`, in order."""
    replay, found = hand.again(), []
    for place, step in enumerate(hand.steps):
        if step.player == hand.person:
            names = {choice.action: choice.name for choice in replay.choices()}
            found.append(Decision(place, step.action, replay.probabilities(), names))
        replay.act(step.action)
    return found
