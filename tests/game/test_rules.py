"""The rules of poker games: the shipped games are as published, and impossible rules are refused with all reasons."""

from dataclasses import FrozenInstanceError, asdict, replace
from typing import Any

import pytest
from hypothesis import given, strategies as st

from deepcfr.boards.boards import count_boards
from deepcfr.buckets.buckets import round_classes
from deepcfr.core.errors import GameError
from deepcfr.game.betting import build_tree
from deepcfr.game.rules import PRESETS, most_chips, most_raises
from deepcfr.measure.limits import too_many_boards

FHP = PRESETS["fhp"]


def problems_of(**changes: Any) -> tuple[str, ...]:
    with pytest.raises(GameError) as caught:
        replace(FHP, **changes)
    return caught.value.problems


HOLDEM_UNIT = (100, "big blinds", "mbb/g", "23456789TJQKA", "cdhs")
LIMIT = ("limit", 0, True)
EXPECTED: dict[str, tuple[object, ...]] = {
    # ranks, suits, private cards, board, blinds, who acts first, raises, caps, unit, symbols, betting
    "kuhn": (3, 1, 1, (0,), (1, 1), (0,), (1,), (1,), 1, "antes", "mA/g", "JQK", "c", *LIMIT),
    "leduc": (3, 2, 1, (0, 1), (1, 1), (0, 0), (2, 4), (2, 2), 1, "antes", "mA/g", "JQK", "cd", *LIMIT),
    "fhp": (13, 4, 2, (0, 3), (50, 100), (0, 1), (100, 100), (3, 4), *HOLDEM_UNIT, *LIMIT),
    "fhp-mini": (5, 4, 2, (0, 3), (50, 100), (0, 1), (100, 100), (3, 4), *HOLDEM_UNIT[:3], "23456", "cdhs", *LIMIT),
    "hulh": (13, 4, 2, (0, 3, 1, 1), (50, 100), (0, 1, 1, 1), (100, 100, 200, 200), (3, 4, 4, 4), *HOLDEM_UNIT, *LIMIT),
    "fhp-pot": (13, 4, 2, (0, 3), (50, 100), (0, 1), (100, 100), (1, 2), *HOLDEM_UNIT, "pot", 20_000, False),
    "hunl-pot": (
        *(13, 4, 2, (0, 3, 1, 1), (50, 100), (0, 1, 1, 1), (100,) * 4, (5,) * 4),
        *(*HOLDEM_UNIT, "pot", 20_000, True),
    ),
}


def test_presets_hold_the_published_rules() -> None:
    assert {name: tuple(asdict(rules).values()) for name, rules in PRESETS.items()} == {
        name: (name, *values) for name, values in EXPECTED.items()
    }


@pytest.mark.parametrize(("name", "chips"), [("kuhn", 2), ("leduc", 13), ("fhp", 800), ("hulh", 2400)])
def test_the_most_chips_are_every_bet_of_every_round(name: str, chips: int) -> None:
    # Hold'em: four bets of 100 before the flop and on it, then four of 200 on the turn and on the river.
    rules = PRESETS[name]
    assert most_chips(rules.blinds, rules.raise_size, rules.max_raises) == chips


def test_the_small_cousin_differs_from_flop_holdem_by_its_deck_only() -> None:
    mini = PRESETS["fhp-mini"]
    assert replace(mini, name="fhp", num_ranks=13, rank_symbols="") == FHP
    # 25 first hands at 8 nodes; 7,760 hands with a flop, up to suits, at 10 nodes of each of 7 ways there
    assert [round_classes(mini, round_) for round_ in range(2)] == [25, 7_760]
    tree = build_tree(mini)
    nodes = [int((tree.round[: tree.num_decisions] == round_).sum()) for round_ in range(2)]
    assert nodes == [8, 70]
    assert 25 * nodes[0] + 7_760 * nodes[1] == 543_400
    assert count_boards(mini, merge=False)[-1] == 1_140
    assert too_many_boards(mini) is None


def test_symbols_default_to_the_lowest_cards() -> None:
    rules = replace(FHP, num_ranks=5, num_suits=3, rank_symbols="", suit_symbols="")
    assert (rules.rank_symbols, rules.suit_symbols) == ("23456", "cdh")


def test_rules_cannot_be_changed_and_can_be_keys() -> None:
    with pytest.raises(FrozenInstanceError):
        FHP.num_ranks = 5  # type: ignore[misc]
    assert {replace(FHP): 1}[FHP] == 1


WHOLE = "must be a whole number"
PROBLEMS: list[tuple[dict[str, Any], str]] = [
    ({"name": " "}, "name is ' ', but must be a text that is not blank."),
    ({"name": 7}, "name is 7, but must be a text that is not blank."),
    ({"num_ranks": 14}, f"num_ranks is 14, but {WHOLE} from 2 to 13."),
    ({"num_ranks": 1}, f"num_ranks is 1, but {WHOLE} from 2 to 13."),
    ({"num_ranks": 13.0}, f"num_ranks is 13.0, but {WHOLE} from 2 to 13."),
    ({"num_suits": 0}, f"num_suits is 0, but {WHOLE} from 1 to 4."),
    ({"num_suits": True}, f"num_suits is True, but {WHOLE} from 1 to 4."),
    ({"hole_cards": 0}, f"hole_cards is 0, but {WHOLE} of 1 or more."),
    ({"hole_cards": 25}, "hole_cards and board_cards together deal 53 cards, but the deck has only 52."),
    ({"board_cards": [0, 3]}, "board_cards is [0, 3], but must be a tuple of whole numbers."),
    ({"board_cards": (0, -1)}, f"board_cards holds -1 in round 2, but every entry {WHOLE} of 0 or more."),
    ({"blinds": (-50, 100)}, f"blinds holds -50, but every entry {WHOLE} of 0 or more."),
    ({"blinds": (0, 0)}, "blinds holds only zeros, but at least one player must put in chips before the first card."),
    ({"blinds": (50, 100, 0)}, "blinds has 3 entries, but must have 2, one for each player."),
    ({"first_player": (0, False)}, f"first_player holds False in round 2, but every entry {WHOLE} from 0 to 1."),
    ({"first_player": (1, 0)}, "first_player holds 1 in round 1, but player 0 must act first in that round."),
    ({"first_player": (0,)}, "first_player has 1 entries, but board_cards has 2, one for each round."),
    ({"raise_size": ("x", 100)}, f"raise_size holds 'x' in round 1, but every entry {WHOLE} of 1 or more."),
    (
        {"raise_size": (1, 2**30)},
        "raise_size and max_raises let a player put in 4294967399 chips, but 2147483647 are the most allowed.",
    ),
    ({"max_raises": (-1, 4)}, f"max_raises holds -1 in round 1, but every entry {WHOLE} of 0 or more."),
    ({"max_raises": (3,)}, "max_raises has 1 entries, but board_cards has 2, one for each round."),
    ({"unit_chips": 0}, f"unit_chips is 0, but {WHOLE} of 1 or more."),
    ({"unit": ["antes"]}, "unit is ['antes'], but must be one of 'big blinds', 'antes'."),
    ({"milli_unit": "mA/g"}, "milli_unit is 'mA/g', but must be 'mbb/g' if unit is 'big blinds'."),
    ({"betting": "spread"}, "betting is 'spread', but must be one of 'limit', 'pot', 'no-limit'."),
    ({"stack": 500}, "stack is 500, but must be 0 in limit betting, where nobody runs out of chips."),
    ({"stack": -1}, f"stack is -1, but {WHOLE} from 0 to 2147483647."),
    ({"limp": 0}, "limp is 0, but must be True or False."),
    ({"betting": "pot", "stack": 100}, "stack is 100, but must be more than the larger blind, which is 100."),
    ({"betting": "pot", "stack": 2**31}, f"stack is 2147483648, but {WHOLE} from 0 to 2147483647."),
    (
        {"limp": False, "blinds": (100, 100)},
        "limp is False, but the blinds 100 and 100 leave the first player no call.",
    ),
    (
        {"limp": False, "max_raises": (0, 1)},
        "limp is False, but max_raises holds 0 in round 1, so that the first player could only fold.",
    ),
    (
        {"limp": False, "betting": "pot", "stack": 300},
        "stack is 300, but without limping must be more than the 300 chips of the first raise, or nobody acts after "
        "round 1.",
    ),
    ({"rank_symbols": "AK"}, "rank_symbols is 'AK' with 2 symbols, but must have 13."),
    ({"rank_symbols": 13}, "rank_symbols is 13, but must be a text of 13 symbols."),
    ({"suit_symbols": "cdhh"}, "suit_symbols is 'cdhh', but must not repeat a symbol."),
]


@pytest.mark.parametrize(("changes", "sentence"), PROBLEMS, ids=lambda value: str(value)[:40])
def test_each_problem_is_one_sentence_and_the_only_one(changes: dict[str, Any], sentence: str) -> None:
    assert problems_of(**changes) == (sentence,)


def test_a_game_without_rounds_is_refused() -> None:
    empty: dict[str, Any] = {"board_cards": (), "first_player": (), "raise_size": (), "max_raises": ()}
    assert problems_of(**empty) == ("board_cards has no entries, but a game has at least one round.",)


def test_all_problems_are_reported_together() -> None:
    found = problems_of(num_suits=9, raise_size=(0, -2), unit_chips=-1)
    assert {problem.partition(",")[0] for problem in found} == {
        "num_suits is 9", "raise_size holds 0 in round 1", "raise_size holds -2 in round 2", "unit_chips is -1",
    }  # fmt: skip


def test_the_whole_deck_may_be_dealt_and_not_one_card_more() -> None:
    assert replace(FHP, board_cards=(0, 48)).num_cards == 52
    assert problems_of(board_cards=(0, 49)) == (
        "hole_cards and board_cards together deal 53 cards, but the deck has only 52.",
    )


values = st.none() | st.booleans() | st.integers(-3, 60) | st.floats() | st.text("AKcd ", max_size=4)
anything = values | st.lists(values, max_size=3) | st.lists(values, max_size=5).map(tuple)


@given(st.sampled_from(["fhp", "fhp-pot"]), st.dictionaries(st.sampled_from(list(asdict(FHP))), anything, max_size=4))
def test_values_of_any_type_give_rules_or_a_game_error(game: str, changes: dict[str, Any]) -> None:
    rules, problems = None, ()
    try:
        rules = replace(PRESETS[game], **changes)
    except GameError as error:
        problems = error.problems
    assert bool(problems) == (rules is None)
    assert all(problem.endswith(".") and problem.split()[0] in asdict(FHP) for problem in problems)
    if rules is not None:
        assert 2 * rules.hole_cards + sum(rules.board_cards) <= rules.num_cards == rules.num_ranks * rules.num_suits
        assert len(rules.first_player) == len(rules.raise_size) == len(rules.max_raises) == rules.num_rounds
        assert (len(rules.rank_symbols), len(rules.suit_symbols)) == (rules.num_ranks, rules.num_suits)
    if rules is not None and rules.betting == "pot":
        assert rules.stack > max(rules.blinds)


def test_the_most_raises_of_the_pot_are_counted_by_tripling() -> None:
    assert [most_raises((50, 100), stack) for stack in (100, 101, 300, 301, 900, 20_000)] == [0, 1, 1, 2, 2, 5]
