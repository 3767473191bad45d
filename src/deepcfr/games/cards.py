"""Cards as integers, and their text forms. Card = rank * num_suits + suit, so that 0 is the lowest rank's first suit."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import numpy.typing as npt

from deepcfr.errors import ConfigError
from deepcfr.games.rules import PokerRules


def card_text(rules: PokerRules, card: int) -> str:
    """The text form of a card, such as `As`; the suit is left out of one-suit decks."""
    rank, suit = divmod(int(card), rules.num_suits)
    return rules.rank_symbols[rank] + (rules.suit_symbols[suit] if rules.num_suits > 1 else "")


def cards_text(rules: PokerRules, cards: npt.ArrayLike) -> str:
    """Several cards as text, separated by spaces."""
    return " ".join(card_text(rules, card) for card in np.asarray(cards).reshape(-1))


def parse_card(rules: PokerRules, text: str) -> int:
    """The card that `text` names, such as `As`, `10s` or, in one-suit decks, `K`.

    Raises ConfigError for anything else.
    """
    name = "T" + text[2:] if text.startswith("10") else text
    suited = rules.num_suits > 1
    if len(name) == (2 if suited else 1):
        rank = max(rules.rank_symbols.find(name[0]), rules.rank_symbols.find(name[0].upper()))
        suit = max(rules.suit_symbols.find(name[1]), rules.suit_symbols.find(name[1].lower())) if suited else 0
        if rank >= 0 and suit >= 0:
            return rank * rules.num_suits + suit
    suits = f" and a suit of {rules.suit_symbols}" if suited else ""
    raise ConfigError(f"'{text}' is not a card of {rules.name}: write a rank of {rules.rank_symbols}{suits}.")


def all_hands(num_cards: int, hole_cards: int) -> npt.NDArray[np.uint8]:
    """Every private hand in lexicographic order, uint8 [H, hole_cards], cards ascending."""
    return np.array(list(combinations(range(num_cards), hole_cards)), np.uint8)


def hand_class(rules: PokerRules, hand: npt.ArrayLike) -> str:
    """The name of a two-card starting hand's class, one of the 13 x 13 cells: `AKs`, `72o`, `TT`."""
    (low, low_suit), (high, high_suit) = (divmod(int(c), rules.num_suits) for c in sorted(np.asarray(hand).tolist()))
    name = rules.rank_symbols[high] + rules.rank_symbols[low]
    return name if high == low else name + ("s" if high_suit == low_suit else "o")
