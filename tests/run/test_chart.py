"""Pictures of documents: where points, intervals and published numbers lie, and what the legend says."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from deepcfr.run.chart import Chart, Curve, beside, panel

SVG = "{http://www.w3.org/2000/svg}"


def chart(*curves: Curve, note: str = "") -> Chart:
    return Chart("", "nodes", "NashConv", curves, log_x=True, log_y=True, dots=True, note=note)


def test_a_legend_names_each_curve_once_and_published_ones_are_hollow() -> None:
    ours = Curve("ours & more", "", 0, ((1.0, 100.0), (100.0, 1.0)))
    theirs = Curve("the paper", "", 0, ((1.0, 50.0),), hollow=True)
    picture = ElementTree.fromstring(beside("A <title>", [chart(ours, theirs), chart(ours, note="a remark")]))
    words = [text.text for text in picture.iter(f"{SVG}text")]
    assert [words.count(word) for word in ("A <title>", "ours & more", "the paper", "a remark")] == [1, 1, 1, 1]
    kinds = [circle.get("class") for circle in picture.iter(f"{SVG}circle")]
    assert (kinds.count("dot"), kinds.count("hollow")) == (2 * 2 + 1, 1 + 1)  # the last ones in the legend


def test_an_interval_reaches_from_its_low_end_to_its_high_one() -> None:
    points, band = ((1.0, 10.0), (100.0, 10.0)), ((1.0, 100.0), (5.0, 20.0))
    drawn = panel(chart(Curve("a", "", 0, points, band)))
    ends = re.search(r'class="band series-1" d="M([^Z]*)Z"', drawn)
    line = re.search(r'class="curve" d="M([^"]*)"', drawn)
    assert ends is not None
    assert line is not None
    (left, high), (right, less), (_, more), (_, low) = [tuple(map(float, p.split())) for p in ends[1].split("L")]
    (x, middle), (last, _) = [tuple(map(float, p.split())) for p in line[1].split("L")]
    assert (left, right) == (x, last)
    assert high < less < middle < more < low  # SVG counts downwards
    assert high + low == pytest.approx(2 * middle, abs=0.2)  # 10 is midway between 1 and 100 on a logarithmic axis


def test_colours_come_again_with_other_dashes() -> None:
    drawn = [panel(chart(Curve("a", "", look, ((1.0, 1.0), (2.0, 9.0))))) for look in range(12)]
    lines = [re.search(r'<g class="(series-\d)"><path class="curve" d="[^"]*"([^>]*)', text) for text in drawn]
    assert len({line.groups() for line in lines if line}) == 12
