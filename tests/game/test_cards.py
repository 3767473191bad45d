"""Cards as text: every card of every preset reads back, and everything else is refused by name."""

import re
from math import comb

import numpy as np
import pytest
from hypothesis import example, given, settings, strategies as st

from deepcfr.core.errors import ConfigError
from deepcfr.game.cards import all_hands, card_text, cards_text, hand_class, parse_card, split_cards
from deepcfr.game.rules import PRESETS, PokerRules

FHP = PRESETS["fhp"]
# What a card may look like, written down independently of the parser.
CARD_PATTERNS = {
    "kuhn": "[JQKjqk]",
    "leduc": "[JQKjqk][cdCD♣♧♦♢]",
    "fhp": "([2-9TJQKAtjqka]|10)[cdhsCDHS♣♧♦♢♥♡♠♤]",
}
SIGNS = {"♣": "c", "♧": "c", "♦": "d", "♢": "d", "♥": "h", "♡": "h", "♠": "s", "♤": "s"}


@pytest.mark.parametrize("rules", PRESETS.values(), ids=PRESETS)
def test_the_text_of_every_card_reads_back(rules: PokerRules) -> None:
    texts = [card_text(rules, card) for card in range(rules.num_cards)]
    assert len(set(texts)) == rules.num_cards
    assert [parse_card(rules, text) for text in texts] == list(range(rules.num_cards))
    assert [parse_card(rules, text.lower()) for text in texts] == list(range(rules.num_cards))
    assert [parse_card(rules, text.upper()) for text in texts] == list(range(rules.num_cards))


def test_cards_are_numbered_by_rank_and_then_suit() -> None:
    assert cards_text(FHP, range(6)) == "2c 2d 2h 2s 3c 3d"
    assert cards_text(FHP, np.array([[51], [32]], np.uint8)) == "As Tc"
    assert cards_text(PRESETS["leduc"], range(6)) == "Jc Jd Qc Qd Kc Kd"
    assert cards_text(PRESETS["kuhn"], range(3)) == "J Q K"
    assert cards_text(FHP, []) == ""


@pytest.mark.parametrize("game", list(CARD_PATTERNS))
@settings(max_examples=60)
@given(text=st.text(max_size=4) | st.text("0123456789TJQKAtjqkacdhsCDHS♠♡ Kſ", max_size=4))
@example(text="")
@example(text="1s")
@example(text="10")
@example(text="As ")
@example(text="sA")
@example(text="K")
@example(text="Ks")
@example(text="Kd")
@example(text="K♦")
@example(text="10♤")
def test_only_cards_of_the_game_are_read_and_anything_else_is_named(game: str, text: str) -> None:
    rules = PRESETS[game]
    if re.fullmatch(CARD_PATTERNS[game], text):
        written = card_text(rules, parse_card(rules, text))
        plain = "".join(SIGNS.get(sign, sign) for sign in text)
        assert written.lower() == plain.lower().replace("10", "t")
        return
    with pytest.raises(ConfigError) as caught:
        parse_card(rules, text)
    (problem,) = caught.value.problems
    assert problem.startswith(f"'{text}' is not a card of {game}: ")
    assert problem.endswith(".")


@pytest.mark.parametrize(
    "text",
    [
        "Qs Th 2h",
        "Qs,Th,2h",
        "[Qs Th 2h]",
        "Q♠ T♥ 2♥",
        "Q♠\ufe0f10♥\ufe0f2♥\ufe0f",
        "qsth2h",
        "QSTH2H",
        "Qs, 10h; 2h",
        "\ufeff(Qs Th) 2h",
    ],
)
def test_several_cards_are_read_as_people_write_them(text: str) -> None:
    assert cards_text(FHP, [parse_card(FHP, piece) for piece in split_cards(FHP, text)]) == "Qs Th 2h"
    with pytest.raises(ConfigError, match=r"Cards must be in one text, such as 'Qs 7h 2c', but are \['Qs'\]"):
        split_cards(FHP, ["Qs"])  # type: ignore[arg-type]


def test_starting_hands_have_169_names_with_the_known_counts() -> None:
    names, counts = np.unique([hand_class(FHP, hand) for hand in all_hands(52, 2)], return_counts=True)
    kinds = {6: 13, 4: comb(13, 2), 12: comb(13, 2)}  # pairs, suited, offsuit
    assert {size: int((counts == size).sum()) for size in kinds} == kinds
    assert len(names) == 169
    for hand, name in (("Ks As", "AKs"), ("2h 7d", "72o"), ("Td Tc", "TT")):
        assert hand_class(FHP, [parse_card(FHP, card) for card in hand.split()]) == name
    assert {int(count) for name, count in zip(names, counts, strict=True) if name.endswith("s")} == {4}
    assert {int(count) for name, count in zip(names, counts, strict=True) if name.endswith("o")} == {12}


@pytest.mark.parametrize(("num_cards", "hole_cards"), [(3, 1), (6, 1), (12, 2), (52, 2)])
def test_all_hands_are_distinct_ascending_and_in_order(num_cards: int, hole_cards: int) -> None:
    hands = all_hands(num_cards, hole_cards)
    assert (hands.dtype, hands.shape) == (np.uint8, (comb(num_cards, hole_cards), hole_cards))
    assert (np.diff(hands.astype(int), axis=1) > 0).all()
    assert hands.tolist() == sorted(hands.tolist())
    assert hands.max() == num_cards - 1
