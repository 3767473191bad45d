"""Bet sizes: each word of the vocabulary at a decision, texts that are read as they were written, and sentences."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deepcfr.core.errors import ConfigError
from deepcfr.search.spot import Spot, parse_board
from deepcfr.search.spot_ranges import parse_range
from deepcfr.search.spot_sizes import Sizes, amount_text
from deepcfr.search.spot_solver import SpotSolver

BOARD = "Qs 7h 2c 9d 4s"


def actions(sizes: str, cards: int = 5, **more: object) -> dict[str, tuple[str, ...]]:
    """The actions of every decision on the board, by its line; the pot is 100 and stacks are 1,000."""
    which = Spot(
        parse_board(BOARD)[:cards],
        **({"pot": 100, "stacks": 1_000, "ranges": (parse_range("AA"), parse_range("KK"))} | more),  # type: ignore[arg-type]
        sizes=Sizes.parse(sizes),
    )
    return {one.line: one.actions for one in SpotSolver(which, 1e9).solve(1e9, 1).decisions}


@pytest.mark.parametrize(
    "sizes, line, expected",
    [
        ("river 33% 75 %", "", "check, bet 33, bet 75"),
        ("river 33.3", "", "check, bet 33.3"),
        ("river 66.66666666666667", "", "check, bet 66.6667"),
        ("River 50, RAISE 2.5X", "bet 50", "fold, call, raise to 125"),
        ("river 33, 75; raise 100", "", "check, bet 33, bet 75"),
        ("bet 50", "", "check, bet 50"),
        ("river 0.5%", "", "check, bet 0.5"),
        ("river 50, all-in", "", "check, bet 50, all-in"),
        ("river 50, All In", "", "check, bet 50, all-in"),
        ("river 50, a", "bet 50", "fold, call, all-in"),
        ("river 50 a", "bet 50", "fold, call"),  # of this part only
        ("river 40c", "", "check, bet 40"),
        ("river 40c, raise 60c", "bet 40", "fold, call, raise to 100"),
        ("river 50, raise 2.5x", "bet 50, raise to 125", "fold, call, raise to 312.5"),
        ("river 50, raise 100", "bet 50", "fold, call, raise to 250"),
        # geometric: all-in in one bet, in two equal shares of the pot, and with a limit
        ("river e", "", "check, all-in"),
        ("river 2e", "", "check, bet 179.129"),
        ("river 2e150%", "", "check, bet 150"),
        ("river 2e, raise 2e", "bet 179.129", "fold, call, raise to 440.495"),
        ("river 2e, raise 2e", "bet 179.129, raise to 440.495", "fold, call, all-in"),  # the second raise of two
        # by player and street
        ("oop river 50, ip river 70", "", "check, bet 50"),
        ("oop river 50, ip river 70", "check", "check, bet 70"),
        ("river 33, dealer river none", "check", "check"),
        ("river 33, big blind bet 50", "", "check, bet 33"),  # a street says more than a player
        ("river 33, raise 50, river raise 100", "bet 33", "fold, call, raise to 199"),
        ("river 33, raise 50, ip raise 100", "bet 33", "fold, call, raise to 199"),
        # caps and thresholds
        ("river 50, raise 2x, cap 1", "bet 50, raise to 100", "fold, call"),
        ("river 50, raise 2x, cap 0", "bet 50", "fold, call"),
        ("river 50 900, allin 1000", "", "check, bet 50, bet 900, all-in"),
        ("river 50, allin 999%", "", "check, bet 50"),
        # 90 % of stack and half the pot, 1,050, are 945: half the pot and a bet of 895
        ("river 895, threshold 90", "", "check, bet 895"),
        ("river 896, threshold 90", "", "check, all-in"),
        # after a bet of 800 and a call 200 are left of a pot of 1,700
        ("river 800, force 11", "", "check, bet 800"),
        ("river 800, force 12", "", "check, all-in"),
        # (100 + 75) / (100 + 60) < 1.1, but (100 + 75) / (100 + 50) is above it
        ("river 50 60 75, merge 10", "", "check, bet 50, bet 75"),
        ("river 50 60 75", "", "check, bet 50, bet 60, bet 75"),
        ("river 33,75,150", "", "check, bet 33, bet 75, bet 150"),
        ("river 33, 3", "", "check, bet 3, bet 33"),
        ("river 100, raise 10", "bet 100", "fold, call, raise to 200"),  # the legal minimum
    ],
)
def test_a_size_is_the_bet_that_it_says(sizes: str, line: str, expected: str) -> None:
    assert ", ".join(actions(sizes)[line]) == expected


@pytest.mark.parametrize(
    "sizes, aggressor, line, expected",
    [
        ("turn 50, turn donk 25", "dealer", "", "check, bet 25"),
        ("turn 50, oop donk 25", "big blind", "", "check, bet 50"),
        ("turn 50, donk 25", None, "", "check, bet 50"),
        ("turn 50, donk 25", "dealer", "check", "check, bet 50"),
        ("turn 50", "dealer", "", "check, bet 50"),
        ("turn 50, donk none", "dealer", "", "check"),
        ("turn 50, donk none, allin", "dealer", "", "check, all-in"),
    ],
)
def test_a_donk_bet_is_made_into_the_last_aggressor(
    sizes: str, aggressor: str | None, line: str, expected: str
) -> None:
    assert ", ".join(actions(sizes, 4, aggressor=aggressor)[line]) == expected


@pytest.mark.parametrize("line, bet", [("bc", 50), ("cbc", 25), ("cc", 50), ("cbrc", 50), ("brc", 25)])
def test_later_streets_know_who_bet_last(line: str, bet: int) -> None:
    """On the river the big blind has a donk bet if its own call ended the turn."""
    which = Spot(
        parse_board(BOARD)[:4],
        100,
        5_000,
        (parse_range("AA"), parse_range("KK")),
        Sizes.parse("turn 50, river 50, raise 3x, river donk 25"),
    )
    tree, node = which.betting.tree, 0
    for letter in line:
        node = tree.child[node, {"c": 1, "b": 2, "r": 2}[letter]]
    assert (tree.round[node], tree.actor[node]) == (3, 1)
    pot, called = tree.chips[node].sum(), tree.chips[node].max()
    assert tree.chips[tree.child[node, 2], 1] - called == pot * bet / 100


@pytest.mark.parametrize(
    "amount, text",
    [
        (0, "0"),
        (2.5, "2.5"),
        (100, "100"),
        (10 / 3, "3.33333"),
        (1e-10 / 3, "0.0000000000333333"),
        (1e6, "1000000"),
        (12_345_678.0, "12345678"),
    ],
)
def test_amounts_have_six_digits_and_no_exponent(amount: float, text: str) -> None:
    assert amount_text(amount) == text


def test_two_bets_into_a_tiny_pot_have_two_names() -> None:
    ranges = parse_range("AA"), parse_range("KK")
    which = Spot(parse_board(BOARD), 4e-10, 4e-9, ranges, Sizes.parse("river 50 100"))
    assert (which.betting.tree.child[0, 2:] >= 0).sum() == 2


def test_a_geometric_size_ends_all_in_on_the_last_street() -> None:
    """From the flop on three bets of the same share of the pot take the whole stack."""
    which = Spot(
        parse_board(BOARD)[:3], 10, 95, (parse_range("AA"), parse_range("KK")), Sizes.parse("flop e, turn e, river e")
    )
    tree, node, shares = which.betting.tree, 0, []
    for _ in range(3):
        pot, bet = tree.chips[node].sum(), tree.child[node, 2]
        shares.append((tree.chips[bet].sum() - pot) / pot)
        node = tree.child[bet, 1]
    assert tree.chips[node].tolist() == [which.rules.stack] * 2
    assert shares == pytest.approx([(20 ** (1 / 3) - 1) / 2] * 3, rel=1e-6)


@pytest.mark.parametrize(
    "sizes, sentence",
    [
        ("river", "'river' needs percentages of the pot"),
        ("river 0", "'river 0' needs percentages of the pot above 0"),
        ("river 0.0000000000001%", "needs percentages of the pot above 0"),
        ("river 0e", "'0e' in 'river 0e' needs numbers above 0"),
        ("river e0%", "'e0%' in 'river e0%' needs numbers above 0"),
        ("river -5", "'-5' is none, and no other size"),
        ("river nan", "'nan' is none"),
        ("river 1e9", "'1e9' is none"),
        ("50", "'50' is not a size: write flop, turn"),
        ("oop 50", "'oop 50' is not a size"),
        ("Flush 50", "'Flush 50' is not a size"),
        ("river 0.5", "'0.5' in 'river 0.5' is less than one percent of the pot: write 0.5% or 50"),
        ("river 2.5x", "'2.5x' in 'river 2.5x' multiplies the bet that is faced"),
        ("donk 2x", "multiplies the bet that is faced"),
        ("raise 1x", "the multiple must be above 1"),
        ("river 50, River 33", "'River 33' names the river a second time"),
        ("raise 50, raise 100", "'raise 100' names the raise a second time"),
        ("oop turn donk 50, turn oop donk 100", "names the oop turn donk a second time"),
        ("allin, all-in", "gives allin a second time"),
        ("cap 1.5", "'cap 1.5' needs a number up to 98 after cap"),
        ("threshold 150", "'threshold 150' needs a number up to 100 after threshold"),
        ("merge", "'merge' needs one percentage after merge"),
        ("allin 0", "'allin 0' needs"),
        (
            "river 33,3",
            "'33,3' in 'river 33,3' may be the number 33.3 or the sizes 33 and 3: write a point, or a space",
        ),
        ("raise 2,5x", "may be the number 2.5 or"),
        ("river 50, threshold 66,7", "may be the number 66.7 or"),
        ("river 33,75,5%", "may be the number 75.5 or"),
        ("river 66,67", "may be the number 66.67 or"),
        ("river 33,333", "may be the number 33.333 or"),
    ],
)
def test_what_is_no_size_is_a_sentence(sizes: str, sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        Sizes.parse(sizes)


NUMBERS = st.decimals(1, 9_999, places=2).map(lambda number: f"{number.normalize():f}")
BETS = st.one_of(NUMBERS, NUMBERS.map("{}c".format), st.sampled_from(["e", "2e", "3e150%", "allin", "0.25%"]))
RAISES = st.one_of(BETS, st.sampled_from(["2.5x", "3x"]))
PLACES = [
    (words, kind)
    for player in ("", "oop ", "ip ")
    for street in ("", "flop ", "turn ", "river ")
    for kind in ("bet", "raise", "donk")
    for words in [player + street + kind]
]


@st.composite
def written(draw: st.DrawFn) -> str:
    """Sizes in text."""
    places = draw(st.lists(st.sampled_from(PLACES), unique=True, max_size=6))
    parts = []
    for words, kind in places:
        sizes = draw(st.lists(RAISES if kind == "raise" else BETS, max_size=3))
        parts.append(f"{words} {' '.join(sizes) or 'none'}")
    for limit in ("allin 150%", "allin", "cap 3", "threshold 67", "force 12.5", "merge 10"):
        if draw(st.booleans()) and not (limit == "allin" and "allin 150%" in parts):
            parts.append(limit)
    return ", ".join(parts)


@given(written())
def test_sizes_are_written_as_they_are_read(text: str) -> None:
    sizes = Sizes.parse(text)
    assert Sizes.parse(str(sizes)) == sizes
    assert str(Sizes.parse(str(sizes))) == str(sizes)


@given(st.text(alphabet="oopipturnflopriverraisedonkallincapmerge 0123456789.%,;xce-\n", max_size=40))
def test_garbage_is_read_or_refused_with_a_sentence(text: str) -> None:
    sentence = "."
    try:
        Sizes.parse(text)
    except ConfigError as error:
        sentence = str(error)
    assert sentence.endswith(".")
