"""Bet sizes and ranges in text: each word of the vocabulary, texts that are read as they were written, and sentences."""

import json
from itertools import product
from pathlib import Path

import numpy as np
import pokerkit
import pytest
from hypothesis import given, strategies as st

from command_line import deepcfr, problem
from deepcfr.core.errors import ConfigError
from deepcfr.game.cards import all_hands
from deepcfr.search.spot import Spot, parse_board
from deepcfr.search.spot_ranges import HOLDEM, hand_names, parse_range, range_text, read_range
from deepcfr.search.spot_sizes import Sizes, amount_text
from deepcfr.search.spot_solver import SpotSolver

BOARD = "Qs 7h 2c 9d 4s"


def spot_of(sizes: str, cards: int = 5, pot: float = 100, stacks: float = 1_000, **more: str | None) -> Spot:
    """A spot on the first cards of the board."""
    ranges = parse_range("AA"), parse_range("KK")
    return Spot(parse_board(BOARD)[:cards], pot, stacks, ranges, Sizes.parse(sizes), **more)  # type: ignore[arg-type]


def actions(*arguments: object, **more: object) -> dict[str, tuple[str, ...]]:
    """The actions of every decision of such a spot, by its line."""
    solver = SpotSolver(spot_of(*arguments, **more), 1e9)  # type: ignore[arg-type]
    return {one.line: one.actions for one in solver.solve(1e9, 1).decisions}


@pytest.mark.parametrize(
    "sizes, line, expected",
    [
        ("river 33% 75 %", "", "check, bet 33, bet 75"),
        ("river 66.66666666666667", "", "check, bet 66.6667"),
        ("River 50, RAISE 2.5X", "bet 50", "fold, call, raise to 125"),
        ("bet 50", "", "check, bet 50"),
        ("river 50, All In", "", "check, bet 50, all-in"),
        ("river 50, a", "bet 50", "fold, call, all-in"),
        ("river 50 a", "bet 50", "fold, call"),  # of this part only
        ("river 40c, raise 60c", "bet 40", "fold, call, raise to 100"),
        ("river 50, raise 2.5x", "bet 50, raise to 125", "fold, call, raise to 312.5"),
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
        # sizes before any place
        ("33 75, 150, raise 100", "", "check, bet 33, bet 75, bet 150"),
        ("allin, 50", "", "check, bet 50, all-in"),
        ("none", "", "check"),
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
        ("turn 50, donk none, allin", "dealer", "", "check, all-in"),
    ],
)
def test_a_donk_bet_is_made_into_the_last_aggressor(
    sizes: str, aggressor: str | None, line: str, expected: str
) -> None:
    assert ", ".join(actions(sizes, 4, aggressor=aggressor)[line]) == expected


@pytest.mark.parametrize("line, bet", [("bc", 50), ("cbc", 25), ("cc", 50), ("brc", 25)])
def test_later_streets_know_who_bet_last(line: str, bet: int) -> None:
    """On the river the big blind has a donk bet if its own call ended the turn."""
    tree, node = spot_of("turn 50, river 50, raise 3x, river donk 25", 4, stacks=5_000).betting.tree, 0
    for letter in line:
        node = tree.child[node, {"c": 1, "b": 2, "r": 2}[letter]]
    assert (tree.round[node], tree.actor[node]) == (3, 1)
    pot, called = tree.chips[node].sum(), tree.chips[node].max()
    assert tree.chips[tree.child[node, 2], 1] - called == pot * bet / 100


def test_amounts_have_six_digits_and_no_exponent() -> None:
    texts = {0: "0", 10 / 3: "3.33333", 1e-10 / 3: "0.0000000000333333", 1e6: "1000000", 12_345_678.0: "12345678"}
    assert {amount: amount_text(amount) for amount in texts} == texts


def test_two_bets_into_a_tiny_pot_have_two_names() -> None:
    assert (spot_of("river 50 100", pot=4e-10, stacks=4e-9).betting.tree.child[0, 2:] >= 0).sum() == 2


def test_a_geometric_size_ends_all_in_on_the_last_street() -> None:
    """From the flop on three bets of the same share of the pot take the whole stack."""
    which = spot_of("flop e, turn e, river e", 3, 10, 95)
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
        ("river 1e9", "'1e9' is none"),
        ("50, bet 60", "'bet 60' names the bet a second time"),
        ("river 50, none", "'none' is not a size"),
        ("allin, river 50, 50, cap 2, 60", "'60' is not a size: write flop, turn"),
        ("Flush 50", "'Flush 50' is not a size"),
        ("river 0.5", "'0.5' in 'river 0.5' is less than one percent of the pot: write 0.5% or 50"),
        ("river 2.5x", "'2.5x' in 'river 2.5x' multiplies the bet that is faced"),
        ("raise 1x", "the multiple must be above 1"),
        ("river 50, River 33", "'River 33' names the river a second time"),
        ("oop turn donk 50, turn oop donk 100", "names the oop turn donk a second time"),
        ("allin, all-in", "gives allin a second time"),
        ("threshold 150", "'threshold 150' needs a number up to 100 after threshold"),
        ("merge", "'merge' needs one percentage after merge"),
        ("allin 0", "'allin 0' needs"),
        (
            "river 33,3",
            "'33,3' in 'river 33,3' may be the number 33.3 or the sizes 33 and 3: write a point, or a space",
        ),
        ("raise 2,5x", "may be the number 2.5 or"),
    ],
)
def test_what_is_no_size_is_a_sentence(sizes: str, sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        Sizes.parse(sizes)


NUMBERS = st.decimals(1, 9_999, places=2).map(lambda number: f"{number.normalize():f}")
BETS = st.one_of(NUMBERS, NUMBERS.map("{}c".format), st.sampled_from(["e", "2e", "3e150%", "allin", "0.25%"]))
RAISES = st.one_of(BETS, st.sampled_from(["2.5x", "3x"]))
PLACES = list(product(("", "oop ", "ip "), ("", "flop ", "turn ", "river "), ("bet", "raise", "donk")))


@st.composite
def written(draw: st.DrawFn) -> str:
    """Sizes in text."""
    parts = []
    for place in draw(st.lists(st.sampled_from(PLACES), unique=True, max_size=6)):
        sizes = draw(st.lists(RAISES if place[2] == "raise" else BETS, max_size=3))
        parts.append(f"{''.join(place)} {' '.join(sizes) or 'none'}")
    limits = ("cap 3", "threshold 67", "force 12.5", "merge 10")
    parts += draw(st.lists(st.sampled_from(limits), unique=True)) + draw(
        st.sampled_from([[], ["allin 150%"], ["allin"]])
    )
    return ", ".join(parts)


@given(written())
def test_sizes_are_written_as_they_are_read(text: str) -> None:
    sizes = Sizes.parse(text)
    assert Sizes.parse(str(sizes)) == sizes
    assert str(Sizes.parse(str(sizes))) == str(sizes)


# Ranges


@pytest.mark.parametrize(
    "written, plain",
    [
        ("AKs@50", "AKs:0.5"),
        ("AKs:50%", "AKs:0.5"),
        ("AKs : 50 %", "AKs:0.5"),
        ("AA:1e-1", "AA:0.1"),
        ("[50]77[/50]", "77:0.5"),
        ("22,[12.5]77,AKs[/12.5],33", "22,77:0.125,AKs:0.125,33"),
        ("aks,TT,tt,aKo", "AK,TT"),
        ("AHKH", "AhKh"),
        ("A♠K♠", "AsKs"),
        ("A♠\ufe0fK♡", "AsKh"),
        ("A10s,10h9h", "ATs,Th9h"),
        ("QQ–99", "99-QQ"),
        ("QQ — 99 , 22", "QQ-99,22"),
        ("A5-A2s", "A5s,A4s,A3s,A2s"),
        ("A5s-2s", "A5s,A4s,A3s,A2s"),
        ("a5S – 2", "A5s,A4s,A3s,A2s"),
        ("AK-87s", "AKs,KQs,QJs,JTs,T9s,98s,87s"),
        ("AK-QJ", "AK,KQ,QJ"),
        ("random", "22+,A2+,K2+,Q2+,J2+,T2+,92+,82+,72+,62+,52+,42+,32"),
        ("100%", "random"),
        ("Any:0.5", "random:0.5"),
        ("\ufeff# mine\r\nAA, KK // best\r\nQQ\r", "AA,KK,QQ"),
        ("AA:0, 55,KK:1,77,QQ:0,44+", "55,KK,77,44+"),
    ],
)
def test_every_notation_is_the_plain_one(written: str, plain: str) -> None:
    np.testing.assert_array_equal(parse_range(written), parse_range(plain))


def test_classes_have_the_hands_that_pokerkit_reads() -> None:
    ranks, kinds = HOLDEM.rank_symbols, ("", "+", "s", "o", "s+", "o+")
    texts = [a + b + kind for a in ranks for b in ranks[::4] for kind in kinds if a != b or kind in kinds[:2]]
    texts += [f"{a}{b}{kind}-72{kind}" for a, b in zip(ranks[5:], ranks, strict=False) for kind in ("", "s", "o")]
    texts += [f"{a}{b}o-Q{ranks[9]}o" for a, b in zip(ranks[1:], ranks, strict=False)] + [f"77-{a}{a}" for a in ranks]
    for text in texts:
        read = {frozenset((hand[:2], hand[2:])) for hand in np.array(NAMES)[parse_range(text) > 0].tolist()}
        assert read == {frozenset(map(repr, hand)) for hand in pokerkit.parse_range(text)}, text


def test_a_notation_has_as_many_hands_as_counted() -> None:
    counts = {
        "AKs@50": 2, "A♠K♠": 1, "A5-A2s": 16, "AK-87s": 28, "random": 1326, "[50]77[/50]": 3, "QQ–99": 24, "22+": 78,
        "AKs,AKo": 16, "A5s-A2s, KQo:0.25 AsKd:.5;AcKd": 20.5, "KTo-K8o": 36, "Q9-QJ": 48,
    }  # fmt: skip
    assert {text: parse_range(text).sum() for text in counts} == counts


@pytest.mark.parametrize(
    "written, sentence",
    [
        ("AKs:", "The weight of 'AKs:' is missing: write AKs:0.5"),
        ("AKs@,QQ", "The weight of 'AKs@' is missing: write AKs@50"),
        ("AKs:50", "The weight of 'AKs:50' must be a number from 0 to 1, or percent such as :50% or @50"),
        ("AKs:nan", "The weight of 'AKs:nan' must be"),
        ("AKs@0.5", "The weight of 'AKs@0.5' is at most one percent: write :0.5 for a share, or @0.5%"),
        ("AA,KK:1e-20", "The weight of 'KK:1e-20' is below 1e-09: leave the hands out"),
        (r"[50]77", r"'\[50\]77' is not a part of a range: a weight of several hands"),
        (r"[50]77[/40]", r"a weight of several hands is written \[50\]77,AKs\[/50\]"),
        ("[50]77:0.5[/50]", "'77:0.5' has a weight of its own inside of a block"),
        ("KQo:0,55", "'KQo:0,55' may be a weight of 0.55 or a weight of 0 before '55': write a point, or a space"),
        ("AAo", "'AAo' is not a part of a range"),
        ("QQo-99", "'QQo-99' is not a part of a range"),
        ("A5s-A2o", "'A5s-A2o' is not a part of a range"),
        ("QQ–5", "'QQ–5' is not a part of a range"),
        ("AK-86s", "'AK-86s' is not a part of a range"),
        ("AK-AAs", "'AK-AAs' is not a part of a range"),
        ("50%", "'50%' is not a part of a range"),
        ("A♠A♠", "'A♠A♠' is not a part of a range"),
        (["AA"], r"A range must be text such as 77\+,AKs:0.5, but is \['AA'\]"),
    ],
)
def test_what_is_no_range_is_a_sentence_that_quotes_it(written: str, sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        parse_range(written)


def test_of_parts_that_overlap_the_last_one_counts_and_it_is_said() -> None:
    weights, note = read_range("QQ+,AA:0.5,77")
    np.testing.assert_array_equal(weights, parse_range("QQ,KK,AA:0.5,77"))
    assert note == "'QQ+' and 'AA' both have AdAc: of parts of a range that overlap the last one counts."
    assert read_range("QQ,KK,AA:0.5")[1] == ""
    which = Spot.parse("2s 2h 2d 3c 3d", "river 50", pot=1, stacks=1, dealer="AA", big_blind="KK,KsKd:0.5")
    assert which.notes == ["'KK' and 'KsKd' both have KsKd: of parts of a range that overlap the last one counts."]
    assert which.notes[0] in SpotSolver(which, 1e9).describe()


def test_a_comma_after_a_percentage_is_named_if_it_may_be_a_decimal_one() -> None:
    assert read_range("AKs@33,33")[1] == "'AKs@33,33' is read as AKs@33 and 33: a decimal weight has a point."
    assert read_range("AKs@33, 33")[1] == read_range("AKs@33,33@25")[1] == ""


def test_a_range_may_be_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "opening.txt"
    path.write_bytes("\ufeff# in position\r\nAA,\r\nKK:0.5\r\n".encode())
    spot = ("spot", "--board", "2s,2h,2d,3c,3d", "--pot", 1, "--stacks", 1, "--dealer", path, "--threads", 1)
    out = tmp_path / "solved.json"
    deepcfr(*spot, "--big-blind", "QQ", "--iterations", 1, "--out", out)
    assert json.loads(out.read_text())["dealer"] == "AA,KK:0.5"
    path.write_bytes(b"\xff\xfe\x00")
    assert "is not a text in UTF-8" in problem(deepcfr(*spot, "--big-blind", "QQ"))


WEIGHTS = st.integers(1, 1000).map(lambda number: number / 1000)
NAMES = hand_names(all_hands(52, 2))


@given(st.dictionaries(st.sampled_from(NAMES), WEIGHTS, max_size=30), st.sampled_from([":{}", "@{:%}", ":{:%}"]))
def test_ranges_are_read_as_they_are_written(hands: dict[str, float], form: str) -> None:
    signs = form.replace("%", ".3%")
    weights = parse_range(",".join(name + signs.format(weight) for name, weight in hands.items()))
    assert dict(zip(np.array(NAMES)[weights > 0], weights[weights > 0], strict=True)) == pytest.approx(hands)
    np.testing.assert_array_equal(parse_range(range_text(weights)), weights)
