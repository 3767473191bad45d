"""Game-definition files: known files give the known rules, and the first mistake in a file is named with its line."""

from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from deepcfr.core.errors import GameError
from deepcfr.game.acpc_definition import parse_game_definition
from deepcfr.game.rules import MILLI_UNITS, PRESETS, PokerRules
from definitions import format_game_definition

REVERSE_BLINDS = """\
GAMEDEF
limit
numPlayers = 2
numRounds = 4
blind = 10 5
raiseSize = 10 10 20 20
firstPlayer = 2 1 1 1
maxRaises = 3 4 4 4
numSuits = 4
numRanks = 13
numHoleCards = 2
numBoardCards = 0 3 1 1
END GAMEDEF
"""

# The no-limit game of the competition: 200 big blinds, and no word on how large or how many raises are.
NO_LIMIT = """\
GAMEDEF
nolimit
numPlayers = 2
numRounds = 4
stack = 20000 20000
blind = 100 50
firstPlayer = 2 1 1 1
numSuits = 4
numRanks = 13
numHoleCards = 2
numBoardCards = 0 3 1 1
END GAMEDEF
"""


def problems_of(text: str) -> tuple[str, ...]:
    with pytest.raises(GameError) as caught:
        parse_game_definition(text, "test")
    return caught.value.problems


def test_limit_holdem_with_reverse_blinds_is_the_preset_at_a_tenth() -> None:
    expected = replace(PRESETS["hulh"], name="holdem", blinds=(5, 10), raise_size=(10, 10, 20, 20), unit_chips=10)
    assert parse_game_definition(REVERSE_BLINDS, "holdem") == expected
    assert format_game_definition(expected) == REVERSE_BLINDS
    swapped = REVERSE_BLINDS.replace("blind = 10 5", "blind = 5 10").replace("2 1 1 1", "1 2 2 2")  # the seats
    assert parse_game_definition(swapped, "holdem") == expected


def test_without_first_player_the_first_seat_acts_first_in_every_round() -> None:
    rules = parse_game_definition(REVERSE_BLINDS.replace("firstPlayer = 2 1 1 1\n", ""), "x")
    assert (rules.first_player, rules.blinds) == ((0, 0, 0, 0), (10, 5))


def test_case_comments_blank_lines_and_spacing_do_not_matter() -> None:
    loose = "# a comment\r\n\r\n" + REVERSE_BLINDS.upper().replace(" = ", "=").replace("\n", "  # why\r\n \r\n")
    assert parse_game_definition(loose, "x") == parse_game_definition(REVERSE_BLINDS, "x")


@st.composite
def valid_rules(draw: st.DrawFn) -> PokerRules:
    """Rules that a definition can express: default symbols, and the unit that follows from the blinds."""
    rounds = draw(st.integers(1, 4))
    num_ranks, num_suits = draw(st.integers(2, 13)), draw(st.integers(1, 4))
    hole_cards = draw(st.integers(1, num_ranks * num_suits // 2))
    board, left = [], num_ranks * num_suits - 2 * hole_cards
    for _ in range(rounds):
        board.append(draw(st.integers(0, left)))
        left -= board[-1]
    blinds = draw(st.tuples(st.integers(0, 500), st.integers(0, 500)).filter(any))
    pot = draw(st.booleans())
    unit = "antes" if blinds[0] == blinds[1] else "big blinds"
    return PokerRules(
        name=draw(st.text("ab 1", min_size=1).filter(str.strip)),
        num_ranks=num_ranks,
        num_suits=num_suits,
        hole_cards=hole_cards,
        board_cards=tuple(board),
        blinds=blinds,
        first_player=(0, *draw(st.tuples(*[st.integers(0, 1)] * (rounds - 1)))),
        raise_size=(100,) * rounds if pot else draw(st.tuples(*[st.integers(1, 1000)] * rounds)),
        max_raises=draw(st.tuples(*[st.integers(0, 255)] * rounds)),
        unit_chips=max(blinds),
        unit=unit,
        milli_unit=MILLI_UNITS[unit],
        betting="pot" if pot else "limit",
        stack=draw(st.integers(max(blinds) + 1, 100_000)) if pot else 0,
    )


@given(valid_rules())
def test_written_rules_read_back_as_the_same_rules(rules: PokerRules) -> None:
    assert parse_game_definition(format_game_definition(rules), rules.name) == rules


MUST = "must have 4, one for each round."
PROBLEMS: list[tuple[str, str, tuple[str, ...]]] = [
    # what is replaced in REVERSE_BLINDS, by what, and the problems
    ("GAMEDEF\nlimit", "limit\nGAMEDEF", ("line 2: GAMEDEF must be the first entry.",)),
    (
        "END GAMEDEF\n",
        "END GAMEDEF\nstack = 900 900",
        ("line 14: 'stack 900 900' comes after END GAMEDEF, which must be the last entry.",),
    ),
    ("limit\n", "\n", ("A line must say limit or nolimit, and no other line the other one.",)),
    (
        "limit\n",
        "nolimit\n",
        ("stack is missing, but every nolimit game needs it.",),
    ),
    (
        "limit\n",
        "nolimit\nstack = 900 900\n",
        ("line 7: raiseSize is given, but raises of a nolimit game have no fixed size.",),
    ),
    (
        "limit\n",
        "limit\nnolimit\nstack = 900 900\n",
        ("A line must say limit or nolimit, and no other line the other one.",),
    ),
    (
        "numRanks = 13",
        "numRanks = 1_3",
        ("line 10: numRanks holds '1_3', but takes whole numbers of at most 18 digits.",),
    ),
    ("blind = 10 5", "blind = 10", ("line 5: blind has 1 values, but must have 2, one for each player.",)),
    ("numRounds = 4", "numRounds = 0", ("line 6: raiseSize has 4 values, but must have 0, one for each round.",)),
    ("numBoardCards = 0 3 1 1", "numBoardCards = 0 3", (f"line 12: numBoardCards has 2 values, but {MUST}",)),
    (
        "firstPlayer = 2 1 1 1",
        "firstPlayer = 2 0 1 3",
        ("line 7: firstPlayer holds 0, but must hold only 1 and 2.",),
    ),
    (
        "numRounds = 4",
        "numRounds = 4\nstack = 240 239",
        ("line 5: stack holds 239, but must be 240 or more, so that it never cuts a bet short.",),
    ),
    ("numPlayers = 2", "numPlayers = 3", ("line 3: numPlayers holds 3, but must hold only 2.",)),
    (
        "blind = 10 5",
        "blind = 0 0",
        ("line 5: blind holds only zeros, but at least one player must put in chips before the first card.",),
    ),
    ("END GAMEDEF\n", "", ("END GAMEDEF is missing, but every limit game needs it.",)),
    (
        "numRanks = 13",
        "numRanks = 3\nnumRanks = 4",
        ("line 11: numRanks is given a second time; line 10 has it already.",),
    ),
    (
        "limit\n",
        "limit\ncolour = red\n",
        (
            "line 3: 'colour red' is not an entry; the entries are GAMEDEF, END GAMEDEF, limit, nolimit, numPlayers, "
            "numRounds, stack, blind, raiseSize, firstPlayer, maxRaises, numSuits, numRanks, numHoleCards, numBoardCards.",
        ),
    ),
    # contradictions that the rules themselves find
    ("numRanks = 13", "numRanks = 14", ("line 10: numRanks is 14, but must be a whole number from 2 to 13.",)),
    (
        "numHoleCards = 2",
        "numHoleCards = 24",
        ("line 11: numHoleCards and numBoardCards together deal 53 cards, but the deck has only 52.",),
    ),
    (
        "maxRaises = 3 4 4 4",
        "maxRaises = 3 -4 4 4",
        ("line 8: maxRaises holds -4 in round 2, but every entry must be a whole number of 0 or more.",),
    ),
]
NO_LIMIT_PROBLEMS: list[tuple[str, str, tuple[str, ...]]] = [
    ("stack = 20000 20000\n", "", ("stack is missing, but every nolimit game needs it.",)),
    ("000 20000", "000 90", ("line 5: stack is 90, but must be more than the larger blind, which is 100.",)),
    ("stack = 20000 20000", "stack = 20000", ("line 5: stack has 1 values, but must have 2, one for each player.",)),
    (
        "stack = 20000 20000",
        f"stack = {2**31} {2**31}",
        ("line 5: stack is 2147483648, but must be a whole number from 0 to 2147483647.",),
    ),
    (
        "firstPlayer = 2 1 1 1",
        "firstPlayer = 2 1 1 1\nmaxRaises = 3 4",
        (f"line 8: maxRaises has 2 values, but {MUST}",),
    ),
]


@pytest.mark.parametrize(
    ("whole", "old", "new", "expected"),
    [*((REVERSE_BLINDS, *row) for row in PROBLEMS), *((NO_LIMIT, *row) for row in NO_LIMIT_PROBLEMS)],
    ids=[repr(row[1]) for row in PROBLEMS + NO_LIMIT_PROBLEMS],
)
def test_each_mistake_is_named_with_its_line(whole: str, old: str, new: str, expected: tuple[str, ...]) -> None:
    assert old in whole
    assert problems_of(whole.replace(old, new, 1)) == expected


def test_a_no_limit_game_is_played_with_pot_bets() -> None:
    assert parse_game_definition(NO_LIMIT, "hunl-pot") == PRESETS["hunl-pot"]
    for stacks in ("20000 300", "300 20000"):  # the shorter one counts
        rules = parse_game_definition(NO_LIMIT.replace("20000 20000", stacks), "x")
        assert (rules.stack, rules.max_raises) == (300, (1, 1, 1, 1))
    capped = NO_LIMIT.replace("numSuits", "maxRaises = 1 2 3 4\nnumSuits")
    assert parse_game_definition(capped, "x").max_raises == (1, 2, 3, 4)


def test_a_stack_that_covers_every_bet_is_accepted() -> None:
    # 10 and three raises of 10, four of 10, twice four of 20: 240 chips, one more than the stack refused above.
    text = REVERSE_BLINDS.replace("numRounds = 4", "numRounds = 4\nstack = 240 240")
    assert parse_game_definition(text, "x") == parse_game_definition(REVERSE_BLINDS, "x")


def test_huge_numbers_are_refused_at_once() -> None:
    text = REVERSE_BLINDS.replace("numRounds = 4", f"numRounds = {10**17}").replace("firstPlayer = 2 1 1 1\n", "")
    assert "must have 100000000000000000" in problems_of(text)[0]
    # Python itself refuses to convert more than 4,300 digits, with a ValueError
    (problem,) = problems_of(REVERSE_BLINDS.replace("numRanks = 13", "numRanks = " + "1" * 5000))
    assert problem.startswith("line 10: numRanks holds '111")
    assert len(problem) < 150
