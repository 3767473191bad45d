"""One hand between a person and an agent as a state machine, which the terminal and the web share.

Everything random comes from the seed: hand `h` is dealt from `key(seed, "play", h)`, and the agent's actions use uniforms
addressed by the hand and the decision in `key(seed, "play", "agent")`. An agent that is a mixture draws one of its policies
for every hand, by the hand's number in `key(seed, "play", "draw")`. So the same answers give the same session, and a hand
is known from its seed, its number and the person's actions.
"""

from deepcfr.play_hand.deal import deal_hand
from deepcfr.play_hand.hand import Cards, Choice, Floats, Hand, Step, free_holes
from deepcfr.play_hand.listed import ListedHand, hand_strategy

__all__ = [
    "Cards",
    "Choice",
    "Floats",
    "Hand",
    "ListedHand",
    "Step",
    "deal_hand",
    "free_holes",
    "hand_strategy",
]
