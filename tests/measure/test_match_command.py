"""`deepcfr match` and `deepcfr tournament`: what they print, and how they refuse."""

from pathlib import Path

import pytest

from command_line import deepcfr, problem


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Two solved runs of Leduc and one of Kuhn."""
    folder = tmp_path_factory.mktemp("runs")
    paths = {"early": folder / "early", "late": folder / "late", "kuhn": folder / "kuhn"}
    for name, game, iterations in (("early", "leduc", 3), ("late", "leduc", 30), ("kuhn", "kuhn", 3)):
        assert deepcfr("solve", game, "--out", paths[name], "--iterations", iterations).status == 0
    return paths


def test_the_three_ways_of_a_match_agree(runs: dict[str, Path]) -> None:
    pair = (runs["late"], "scripted:uniform")
    exact = deepcfr("match", *pair, "--json").json
    boards = deepcfr("match", *pair, "--boards", 60, "--json").json
    hands = deepcfr("match", *pair, "--hands", 4000, "--json").json
    everything = deepcfr("match", *pair, "--boards", "all", "--json").json
    assert everything["mean"] == exact["mean"] == exact["value"] > 500
    assert exact["mean"] == pytest.approx(sum(exact["seats"]) / 2)
    assert everything["exact"] is exact["exact"] is True
    assert (boards["boards"], boards["hands"], boards["exact"], boards["unit"]) == (60, 0, False, "mA/g")
    assert (hands["boards"], hands["hands"], hands["exact"]) == (0, 4000, False)
    assert 0 < boards["interval"] < hands["interval"]
    for sampled in (boards, hands):
        assert abs(sampled["mean"] - exact["mean"]) <= 1.7 * sampled["interval"]
    assert boards["runs"] == [str(runs["late"]), "scripted:uniform"]
    text = deepcfr("match", *pair, "--boards", 60).out.replace("\n", " ")
    assert f"gains {boards['mean']:+.3f} +- {boards['interval']:.3f} (95 %) mA/g against scripted:uniform" in text
    assert "all hands on 60 sampled boards" in text


def test_a_tournament_is_the_table_of_its_matches(runs: dict[str, Path]) -> None:
    players = (runs["early"], runs["late"], "scripted:call")
    table = deepcfr("tournament", *players, "--boards", 20, "--json").json
    assert table["names"] == [str(player) for player in players]
    for i, first in enumerate(players):
        assert table["mean"][i][i] == table["interval"][i][i] == 0
        for j, second in enumerate(players):
            assert table["mean"][i][j] == -table["mean"][j][i]
            if i < j:
                match = deepcfr("match", first, second, "--boards", 20, "--json").json
                assert (table["mean"][i][j], table["interval"][i][j]) == (match["mean"], match["interval"])
    assert table["average"] == pytest.approx([sum(row) / 2 for row in table["mean"]])
    text = deepcfr("tournament", *players, "--boards", 20).out
    assert f"{table['mean'][1][2]:+.1f} +- {table['interval'][1][2]:.1f}" in text
    assert "3 scripted:call" in text


def test_the_first_alone_meets_the_others(runs: dict[str, Path]) -> None:
    players, ways = (runs["late"], "scripted:call", runs["early"]), ("--boards", 20)
    whole = deepcfr("tournament", *players, *ways, "--json").json
    table = deepcfr("tournament", *players, *ways, "--against-first", "--json").json
    assert table["mean"] == [whole["mean"][0], [whole["mean"][1][0], 0, None], [whole["mean"][2][0], None, 0]]
    assert table["interval"][0] == whole["interval"][0]
    assert table["interval"][1:] == [[whole["interval"][1][0], 0, None], [whole["interval"][2][0], None, 0]]
    assert table["average"] == [whole["average"][0], table["mean"][1][0], table["mean"][2][0]]
    shown = deepcfr("tournament", *players, *ways, "--against-first")
    lines = [line for line in shown.out.splitlines() if "scripted:call" in line or str(runs["early"]) in line]
    for j, line in enumerate(lines, start=1):
        assert f"{table['mean'][0][j]:+.1f} +- {table['interval'][0][j]:.1f}" in line
    assert len(lines) == 2
    assert f"{runs['late']} against" in shown.out
    assert f"{table['average'][0]:+.1f}" in shown.out
    styles = deepcfr("tournament", runs["late"], "--styles", "tight", "random", "--against-first", "--json").json
    assert [gain is None for gain in styles["mean"][1]] == [False, False, True]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("match", "LATE", "LATE", "--boards", 0), "at least 2 boards"),
        (("match", "LATE", "LATE", "--hands", 0), "at least 2 hands for its interval, but 0"),
        (("match", "LATE", "KUHN", "--boards", 4), "'leduc' and 'kuhn' differ in"),
        (("tournament", "KUHN", "scripted:call", "LATE"), "'kuhn' and 'leduc' differ in"),
        (("match", "LATE", "LATE", "--hands", 4, "--boards", 4), "but not of both"),
        (("match", "LATE", "LATE", "--lines", 4), "lines is for matches over sampled boards"),
        (("match", "LATE", "LATE", "--boards", 4, "--lines", 0), "at least 1 line of a round, but 0"),
        (("match", "LATE", "scripted:bluff"), "'bluff' is not a scripted style"),
        (("match", "scripted:call", "scripted:raise"), "none is among scripted:call, scripted:raise"),
        (("tournament", "LATE"), "A tournament needs at least 2 policies, but 1 were given"),
        (("match", "LATE", "LATE/nothing"), "does not hold a run"),
        (("match", "LATE", "LATE", "--seed", -1), "The seed must be at least 0"),
        (("tournament", "LATE", "LATE", "--threads", 0), "threads must be at least 1"),
    ],
)
def test_what_cannot_be_played_is_refused_in_a_sentence(
    runs: dict[str, Path], words: tuple[object, ...], sentence: str
) -> None:
    where = {"LATE": runs["late"], "KUHN": runs["kuhn"], "LATE/nothing": runs["late"] / "nothing"}
    assert sentence in problem(deepcfr(*(where.get(str(word), word) for word in words)))
