"""The figure of docs/benchmarks.md is drawn from recorded results."""

from __future__ import annotations

from experiments import figure2


def test_the_figure_is_that_of_the_recorded_results() -> None:
    drawn = figure2.drawing()
    assert drawn == figure2.PICTURE.read_bytes()
    assert b"not comparable" in drawn
    assert b"Linear MCCFR, 2,000 buckets (367,549 infoset-actions)" in drawn
