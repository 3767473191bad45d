"""Cross tables show what tournaments found, and claim no more than their intervals allow."""

import json
from pathlib import Path
from typing import Any

import pytest

from deepcfr.errors import CheckpointError
from deepcfr.web.runs import MatchCell, cross_table, find_tables
from deepcfr.web.site import render

FACTS: dict[str, Any] = {
    "game": "leduc",
    "unit": "mA/g",
    "names": ["weak", "strong", "middle"],
    "policies": ["uniform", "average network", "always call"],
    "mean": [[0.0, -300.0, -10.0], [300.0, 0.0, 40.0], [10.0, -40.0, 0.0]],
    "interval": [[0.0, 30.0, 20.0], [30.0, 0.0, 10.0], [20.0, 10.0, 0.0]],
    "average": [-155.0, 170.0, -15.0],
    "boards": 0,
    "hands": 5000,
    "seconds": 1.5,
}


def test_the_best_player_comes_first_in_rows_and_columns() -> None:
    table = cross_table(FACTS, "file")
    assert [(entry.number, entry.name, entry.kind) for entry in table.entries] == [
        (1, "strong", "average network"),
        (2, "middle", "always call"),
        (3, "weak", "uniform"),
    ]
    for row, entry in enumerate(table.entries):
        assert entry.cells[row] is None
        for column, cell in enumerate(entry.cells):
            mirrored = table.entries[column].cells[row]
            if cell and mirrored:
                assert (cell.mean, cell.interval) == (-mirrored.mean, mirrored.interval)
    assert [entry.average.mean for entry in table.entries] == [170.0, -15.0, -155.0]
    assert table.terms == "5,000 deals for each match, played in both seats"


def test_marks_and_colours_are_for_gains_beyond_their_intervals() -> None:
    table = cross_table(FACTS, "file")
    strong, middle, _ = table.entries
    large, small, open_ = strong.cells[2], strong.cells[1], middle.cells[2]
    assert large
    assert small
    assert open_
    assert (large.sign, large.text, large.margin, table.shade(large)) == ("▲", "+300.0", "± 30.0", "gain-3")
    assert (small.sign, table.shade(small)) == ("▲", "gain-1")
    assert (open_.sign, open_.words, table.shade(open_)) == ("", "no clear winner", "open")
    lost = table.entries[2].cells[0]
    assert lost
    assert (lost.sign, lost.words, table.shade(lost)) == ("▼", "loses", "loss-3")


def test_exact_gains_need_no_interval_and_nothing_is_no_gain() -> None:
    assert (MatchCell(0.2, 0.0).sign, MatchCell(-0.2, 0.0).sign, MatchCell(0.0, 0.0).sign) == ("▲", "▼", "")
    assert (MatchCell(0.2, 0.0).margin, MatchCell(-0.01, 0.0).text) == ("", "0.0")


def test_the_interval_of_an_average_holds_for_matches_on_the_same_deals() -> None:
    # the standard error of a mean is at most the mean of standard errors, whatever the correlation
    strong = cross_table(FACTS, "file").entries[0].average
    assert strong.interval == pytest.approx((30.0 + 10.0) / 2)


def test_pairs_that_did_not_play_count_nothing() -> None:
    """As in `deepcfr tournament --against-first`: the last two have met the first only."""
    mean = [[0.0, 300.0, 40.0], [-300.0, 0.0, None], [-40.0, None, 0.0]]
    interval = [[0.0, 30.0, 10.0], [30.0, 0.0, None], [10.0, None, 0.0]]
    facts = FACTS | {"names": ["strong", "weak", "middle"], "mean": mean, "interval": interval}
    table = cross_table(facts, "file")
    assert [(entry.name, entry.average.mean) for entry in table.entries] == [
        ("strong", 170.0), ("middle", -40.0), ("weak", -300.0),
    ]  # fmt: skip
    assert [entry.average.interval for entry in table.entries] == [20.0, 10.0, 30.0]
    assert [[cell is None for cell in entry.cells] for entry in table.entries] == [
        [True, False, False], [False, True, True], [False, True, True],
    ]  # fmt: skip
    page = render("matches.html", page="matches", tables=[table], problems=[]).body.decode()
    assert (page.count("itself"), page.count("not played")) == (3, 2)


def test_a_match_is_a_table_of_two() -> None:
    facts = {"game": "kuhn", "unit": "mA/g", "value": 8.0, "mean": 8.0, "interval": 3.0, "boards": 7, "hands": 0}
    table = cross_table(facts | {"runs": ["a", "b"], "policies": ["p", "q"]}, "file")
    assert [(entry.name, entry.average.mean) for entry in table.entries] == [("a", 8.0), ("b", -8.0)]
    assert table.terms.startswith("all hands on 7 sampled boards")


@pytest.mark.parametrize(
    "change",
    [
        {"mean": [[0.0]]},
        {"mean": 5},
        {"names": "abc"},
        {"names": ["one"], "policies": ["p"], "mean": [[0.0]], "interval": [[0.0]]},
        {"interval": [[0.0, 1.0, float("nan")]] * 3},
        {"mean": [["x"] * 3] * 3},
        {"mean": [[0.0, None, -10.0], *FACTS["mean"][1:]]},
        {key: [[0.0, None, None], [None, 0.0, 1.0], [None, 1.0, 0.0]] for key in ("mean", "interval")},
        {key: [[None, 1.0, 1.0], [1.0, None, 1.0], [1.0, 1.0, None]] for key in ("mean", "interval")},
        {"hands": None},
        {"boards": float("inf")},
    ],
)
def test_what_is_no_tournament_is_refused_with_its_name(change: dict[str, Any]) -> None:
    with pytest.raises(CheckpointError, match="'file' holds no result of a tournament or a match"):
        cross_table(FACTS | change, "file")


def test_files_that_cannot_be_read_hide_no_others(tmp_path: Path) -> None:
    (tmp_path / "a.json").symlink_to(tmp_path / "nowhere")
    (tmp_path / "b.json").write_text("[" * 100_000)
    (tmp_path / "c.json").write_text(f'{{"mean": {"1" * 5_000}}}')
    assert find_tables([tmp_path]) == ([], [])
    for name in "abc":
        tables, problems = find_tables([tmp_path / f"{name}.json"])
        assert not tables
        assert f"{name}.json' cannot be read" in problems[0]


def test_files_are_complained_about_and_folders_searched(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "good.json").write_text(json.dumps(FACTS))
    (tmp_path / "list.json").write_text("[1, 2]")
    (tmp_path / "torn.json").write_text('{"names": ')
    (tmp_path / "game.json").write_text('{"name": "kuhn"}')
    tables, problems = find_tables([tmp_path])
    assert [table.source for table in tables] == [str(tmp_path / "inner" / "good.json")]
    assert problems == []
    tables, problems = find_tables([tmp_path / "game.json", tmp_path / "torn.json", tmp_path / "none.json"])
    assert tables == []
    for name, sentence in zip(("game.json", "torn.json", "none.json"), problems, strict=True):
        assert str(tmp_path / name) in sentence
