"""Hands of a text in PHH, for tests."""

from deepcfr.game.rules import PokerRules
from deepcfr.interop.acpc import PlayedHand
from deepcfr.interop.hand_history import fields_of, played_hand


def parse_histories(text: str, rules: PokerRules) -> list[PlayedHand]:
    return [played_hand(fields, rules, place) for place, fields in enumerate(fields_of(text))]
