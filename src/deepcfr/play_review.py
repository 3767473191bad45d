"""What a finished hand says: the result without the luck of the agent's cards, and what the agent would have done."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from deepcfr.games.cards import cards_text
from deepcfr.play_hand import Hand, free_holes


@dataclass(frozen=True)
class Decision:
    """A decision of the person in a finished hand."""

    step: int  # its position in `Hand.steps`
    action: int  # what the person did
    agent: dict[int, float]  # what the agent would have done there with the person's cards, by legal action
    names: dict[int, str]  # of the legal actions


def luck_adjusted(hand: Hand) -> float:
    """The person's mean result over all cards that the agent may have held in a finished hand, in units.

    It is E[result | the person's cards, the public cards, all actions]: the agent's hands count by Bayes' rule with the
    probability of what it did, P(hand | ...) ~ prod P(its action | hand), for every hand is dealt equally often beside the
    known cards, and the person, who does not see the agent's, cannot let its own actions depend on them. The mean of a
    conditional expectation is that of the result, so this is unbiased whatever the person does, and its variance is
    smaller (Rao-Blackwell). It takes the agent to play its policy, which it does; a mixture that draws one of its policies
    for a hand plays its average (Kuhn's theorem). After a fold the result does not depend on the agent's cards.
    """
    if not hand.showdown:
        return hand.won
    holes = free_holes(hand.rules, (*hand.hole(hand.person), *hand.board))
    chances = hand.chances(holes)
    return float(chances @ hand.wins(holes) / chances.sum())


def agents_range(hand: Hand, most: int | None = None) -> list[tuple[str, float]]:
    """The hands that the agent may hold at the hand's present point, likeliest first, with their probabilities.

    They are all of them, whose probabilities sum to 1, or `most` of them.
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
