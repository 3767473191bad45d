"""Ranges in the notations that people have: each against the plain notation, and one sentence for every mistake."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from command_line import deepcfr, problem
from deepcfr.core.errors import ConfigError
from deepcfr.game.cards import all_hands
from deepcfr.search.spot import Spot
from deepcfr.search.spot_ranges import hand_names, parse_range, range_text, read_range
from deepcfr.search.spot_solver import SpotSolver


@pytest.mark.parametrize(
    "written, plain",
    [
        ("AKs@50", "AKs:0.5"),
        ("AKs@50%", "AKs:0.5"),
        ("AKs:50%", "AKs:0.5"),
        ("AKs : 50 %", "AKs:0.5"),
        ("AA:1e-1", "AA:0.1"),
        ("[50]77[/50]", "77:0.5"),
        ("22,[12.5]77,AKs[/12.5],33", "22,77:0.125,AKs:0.125,33"),
        ("[50%]77[/50%] 22", "77:0.5,22"),
        ("aks,TT,tt,aKo", "AK,TT"),
        ("AHKH", "AhKh"),
        ("ahkh", "AhKh"),
        ("A♠K♠", "AsKs"),
        ("A♠\ufe0fK♡", "AsKh"),
        ("A10s,10h9h", "ATs,Th9h"),
        ("QQ–99", "99-QQ"),
        ("QQ - 99", "QQ-99"),
        ("QQ — 99 , 22", "QQ-99,22"),
        ("A5-A2s", "A5s,A4s,A3s,A2s"),
        ("A5s-A2", "A5s,A4s,A3s,A2s"),
        ("A5s-2s", "A5s,A4s,A3s,A2s"),
        ("a5S – 2", "A5s,A4s,A3s,A2s"),
        ("AK-87s", "AKs,KQs,QJs,JTs,T9s,98s,87s"),
        ("AK-QJ", "AK,KQ,QJ"),
        ("random", "22+,A2+,K2+,Q2+,J2+,T2+,92+,82+,72+,62+,52+,42+,32"),
        ("100%", "random"),
        ("Any:0.5", "random:0.5"),
        ("\ufeff# mine\r\nAA, KK // best\r\nQQ\r", "AA,KK,QQ"),
        ("AA;KK\tQQ\n", "AA,KK,QQ"),
        ("AA:0, 55,KK:1,77,QQ:0,44+", "55,KK,77,44+"),
    ],
)
def test_every_notation_is_the_plain_one(written: str, plain: str) -> None:
    np.testing.assert_array_equal(parse_range(written), parse_range(plain))


@pytest.mark.parametrize(
    "written, hands",
    [("AKs@50", 2), ("A♠K♠", 1), ("A5-A2s", 16), ("AK-87s", 28), ("random", 1326), ("[50]77[/50]", 3), ("QQ–99", 24)],
)
def test_a_notation_has_as_many_hands_as_counted(written: str, hands: float) -> None:
    assert parse_range(written).sum() == hands


@pytest.mark.parametrize(
    "written, sentence",
    [
        ("AKs:", "The weight of 'AKs:' is missing: write AKs:0.5"),
        ("AKs: QQ", "The weight of 'AKs:' is missing"),
        ("AKs@,QQ", "The weight of 'AKs@' is missing: write AKs@50"),
        ("AKs:50", "The weight of 'AKs:50' must be a number from 0 to 1, or percent such as :50% or @50"),
        ("AKs@150", "The weight of 'AKs@150' must be"),
        ("AKs:nan", "The weight of 'AKs:nan' must be"),
        ("AKs@0.5", "The weight of 'AKs@0.5' is at most one percent: write :0.5 for a share, or @0.5%"),
        ("AA,KK:1e-20", "The weight of 'KK:1e-20' is below 1e-09: leave the hands out"),
        (r"[50]77", r"'\[50\]77' is not a part of a range: a weight of several hands"),
        (r"[50]77[/40]", r"a weight of several hands is written \[50\]77,AKs\[/50\]"),
        ("[50]77:0.5[/50]", "'77:0.5' has a weight of its own inside of a block"),
        ("KQo:0,55", "'KQo:0,55' may be a weight of 0.55 or a weight of 0 before '55': write a point, or a space"),
        ("77, AA:0,5", "'AA:0,5' may be a weight of 0.5"),
        ("AAo", "'AAo' is not a part of a range"),
        ("AAs", "'AAs' is not a part of a range"),
        ("QQo-99", "'QQo-99' is not a part of a range"),
        ("QQ-99o", "'QQ-99o' is not a part of a range"),
        ("A5s-A2o", "'A5s-A2o' is not a part of a range"),
        ("QQ–5", "'QQ–5' is not a part of a range"),
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


@given(st.text(alphabet="AKQJT92akhdcs♠♥10soxX+-–:@%[]/#., \n", max_size=24))
def test_garbage_is_read_or_refused_with_a_sentence(text: str) -> None:
    sentence = "."
    try:
        parse_range(text)
    except ConfigError as error:
        sentence = str(error)
    assert sentence.endswith(".")
