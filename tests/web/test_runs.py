"""Addresses of runs and matches: what they answer and refuse; cross tables claim no more than their intervals allow."""

import html
import json
import re
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from command_line import edit_settings
from deepcfr.config import RunConfig
from deepcfr.core.errors import CheckpointError
from deepcfr.run.folder import RunFolder
from deepcfr.run.metrics import append_metrics
from deepcfr.web.app import build_app
from deepcfr.web.runs import MatchCell, cross_table, find_tables
from deepcfr.web.site import open_site, render
from tables import tabular
from web_site import MODELS

LINES = [
    {"iteration": i, "nodes_touched": 30, "iteration_seconds": 0.01, "total_nodes_touched": 30 * i, "seconds": 0.01 * i}
    for i in range(1, 5)
]


@pytest.fixture
def folders(tmp_path: Path) -> dict[str, Path]:
    """Two runs of Kuhn poker, the first one in training, and one of Leduc."""
    RunFolder.create(tmp_path / "half", tabular("linear-cfr", 4, game="kuhn"))
    RunFolder.create(tmp_path / "whole", tabular("linear-cfr", 4, game="kuhn", seed=5))
    RunFolder.create(tmp_path / "other", RunConfig(game="leduc"))
    for name, lines in (("half", LINES[:2]), ("whole", LINES)):
        for line in lines:
            append_metrics(tmp_path / name / "metrics.jsonl", line)
    return {name: tmp_path / name for name in ("half", "whole", "other")}


@pytest.fixture
def client(folders: dict[str, Path], tmp_path: Path) -> TestClient:
    (tmp_path / "results").mkdir()
    site = open_site(list(folders.values()), "average", pytest.fail, [tmp_path / "results"])
    return TestClient(build_app(site), base_url="http://127.0.0.1")


def test_the_list_links_every_run_and_several_are_drawn_over_each_other(client: TestClient) -> None:
    listed = client.get("/runs").text
    assert re.findall(r'href="/runs/(\w+)"', listed) == ["half", "whole", "other"]
    assert "2 of 4" in listed
    both = client.get("/runs", params={"with": ["half", "whole", "half"]})
    assert both.status_code == 200
    assert "<strong>A</strong> half" in both.text
    assert "<strong>B</strong> whole" in both.text
    assert "<strong>C</strong>" not in both.text


def test_figures_of_a_run_are_not_those_of_a_style_of_it() -> None:
    run = MODELS / "kuhn"
    styled = open_site([run, f"tight:{run}"], "average", pytest.fail)
    client = TestClient(build_app(styled), base_url="http://127.0.0.1")
    plain, style = re.findall(r"<tr>\n<td><input.*?</tr>", client.get("/runs").text, re.DOTALL)
    note = f"tight:{run} plays another strategy; these figures are those of its run."
    assert re.search(r"[0-9] mA/g", plain)
    assert "mA/g" not in style
    address = re.findall(r'href="(/runs/[^"]+)"', style)[0]
    assert [note in text for text in (style, client.get(address).text, client.get("/runs/kuhn").text)] == [1, 1, 0]
    assert "<h1>kuhn</h1>" in client.get(f"{address}/report.html").text


def test_a_run_has_a_page_and_the_same_as_one_file(client: TestClient) -> None:
    page = client.get("/runs/half")
    assert "not finished" in page.text
    assert "<option>whole</option>" in page.text  # of the same game
    assert "<option>other</option>" not in page.text
    # the policy of the site forbids both
    assert not re.search(r"<style|\sstyle=|\son\w+=|<script>", page.text)
    file = client.get("/runs/half/report.html")
    assert file.headers["content-disposition"] == 'attachment; filename="half.html"'
    assert page.text.count('class="chart"') == file.text.count('class="chart"') > 2


def test_a_page_asks_for_what_is_new_as_long_as_its_runs_go_on(client: TestClient, folders: dict[str, Path]) -> None:
    (feed,) = json.loads(html.unescape(re.findall(r'data-feeds="([^"]*)"', client.get("/runs/half").text)[0]))
    assert feed["address"] == "/api/runs/half/metrics"
    answer = client.get(feed["address"], params={"after": feed["next"]}).json()
    assert answer == {"lines": [], "next": feed["next"], "finished": False}
    for line in LINES[2:]:
        append_metrics(folders["half"] / "metrics.jsonl", line)
    answer = client.get(feed["address"], params={"after": feed["next"]}).json()
    assert (answer["lines"], answer["finished"]) == (LINES[2:], True)
    assert client.get(feed["address"], params={"after": answer["next"]}).json()["lines"] == []
    assert client.get(feed["address"]).json()["lines"] == LINES
    assert 'data-feeds="[]"' in client.get("/runs/half").text
    edit_settings(folders["half"], r"(?m)^iterations = .*", "iterations = 400")
    assert not client.get(feed["address"], params={"after": feed["next"]}).json()["finished"]  # it has been extended
    with open(folders["half"] / "metrics.jsonl", "a") as file:
        file.write('{"iteration": 5, "seconds": NaN, "loss": Infinity}\n')
    assert client.get(feed["address"]).json()["lines"][-1] == {"iteration": 5, "seconds": None, "loss": None}


@pytest.mark.parametrize(
    "address",
    ["/runs/nobody", "/runs/..%2f..%2fetc", "/runs/%2e%2e", "/runs?with=nobody", "/runs/nobody/report.html",
     "/api/runs/nobody/metrics", "/api/runs/..%2fhalf/metrics", "/runs/half/config.toml"],
)  # fmt: skip
def test_what_is_not_there_is_not_found(client: TestClient, address: str) -> None:
    answer = client.get(address)
    assert answer.status_code == 404
    assert "root:" not in answer.text
    assert re.search(r"There is no (run named|such page)", html.unescape(answer.text))


def test_what_cannot_be_is_refused_with_a_sentence(client: TestClient, folders: dict[str, Path]) -> None:
    mixed = client.get("/runs", params={"with": ["half", "other"]})
    assert mixed.status_code == 400
    assert "Only runs of one game share charts" in mixed.text
    assert client.get("/runs", params={"with": ["half"] * 7}).status_code == 422
    for after in ("-1", "x", str(2**70)):
        refused = client.get("/api/runs/half/metrics", params={"after": after})
        assert (refused.status_code, "after" in refused.json()["error"]) == (422, True)
    (folders["half"] / "config.toml").write_text("seed = ")
    damaged, every = client.get("/runs/half"), client.get("/runs")
    assert (damaged.status_code, every.status_code, client.get("/runs/whole").status_code) == (400, 200, 200)
    assert "cannot be read" in damaged.text
    assert "cannot be read" in every.text
    assert 'href="/runs/whole"' in every.text


def test_matches_are_found_in_the_folder_that_the_site_names(client: TestClient, tmp_path: Path) -> None:
    assert "No results are here yet" in client.get("/matches").text
    facts = {"game": "kuhn", "unit": "mA/g", "mean": 5.0, "interval": 1.0, "boards": 0, "hands": 100}
    facts |= {"runs": ["<b>one", "two"], "policies": ["p", "q"]}
    (tmp_path / "results" / "match.json").write_text(json.dumps(facts))
    page = client.get("/matches").text
    assert "&lt;b&gt;one" in page
    assert "<b>one" not in page
    assert "+5.0" in page


FACTS: dict[str, Any] = {
    "game": "leduc", "unit": "mA/g", "names": ["weak", "strong", "middle"],
    "policies": ["uniform", "average network", "always call"],
    "mean": [[0.0, -300.0, -10.0], [300.0, 0.0, 40.0], [10.0, -40.0, 0.0]],
    "interval": [[0.0, 30.0, 20.0], [30.0, 0.0, 10.0], [20.0, 10.0, 0.0]],
    "average": [-155.0, 170.0, -15.0], "boards": 0, "hands": 5000, "seconds": 1.5,
}  # fmt: skip


def test_the_best_player_comes_first_in_rows_and_columns() -> None:
    table = cross_table(FACTS, "file")
    assert [(entry.number, entry.name, entry.kind, entry.average.mean) for entry in table.entries] == [
        (1, "strong", "average network", 170.0), (2, "middle", "always call", -15.0), (3, "weak", "uniform", -155.0),
    ]  # fmt: skip
    cells = [[cell and (cell.mean, cell.interval) for cell in entry.cells] for entry in table.entries]
    assert cells == [
        [None, (40.0, 10.0), (300.0, 30.0)], [(-40.0, 10.0), None, (10.0, 20.0)], [(-300.0, 30.0), (-10.0, 20.0), None],
    ]  # fmt: skip
    # the standard error of a mean is at most the mean of standard errors, whatever the correlation
    assert table.entries[0].average.interval == pytest.approx((30.0 + 10.0) / 2)
    assert table.terms == "5,000 deals for each match, played in both seats"
    two = {"runs": ["a", "b"], "policies": ["p", "q"], "mean": 8.0, "interval": 3.0, "boards": 7, "hands": 0}
    match = cross_table(FACTS | two, "file")
    assert [(entry.name, entry.average.mean) for entry in match.entries] == [("a", 8.0), ("b", -8.0)]
    assert match.terms.startswith("all hands on 7 sampled boards")


def test_marks_and_colours_are_for_gains_beyond_their_intervals() -> None:
    table = cross_table(FACTS, "file")
    marks = [
        (*cell.sign, cell.text, cell.margin, table.shade(cell))
        for cell in (table.entries[0].cells[2], table.entries[0].cells[1], table.entries[1].cells[2],
                     table.entries[2].cells[0], MatchCell(0.2, 0.0), MatchCell(-0.01, 0.0), MatchCell(0.0, 0.0))
        if cell
    ]  # fmt: skip
    assert marks == [
        ("▲", "gains", "+300.0", "± 30.0", "gain-3"),
        ("▲", "gains", "+40.0", "± 10.0", "gain-1"),
        ("", "no clear winner", "+10.0", "± 20.0", "open"),
        ("▼", "loses", "-300.0", "± 30.0", "loss-3"),
        ("▲", "gains", "+0.2", "", "gain-1"),  # exact gains need no interval
        ("▼", "loses", "0.0", "", "loss-1"),
        ("", "no clear winner", "0.0", "", "open"),
    ]


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


@pytest.mark.parametrize(
    "change",
    [
        {"mean": [[0.0]]},
        {"mean": 5},
        {"names": ["one"], "policies": ["p"], "mean": [[0.0]], "interval": [[0.0]]},
        {"interval": [[0.0, 1.0, float("nan")]] * 3},
        {"mean": [[0.0, None, -10.0], *FACTS["mean"][1:]]},
        {key: [[0.0, None, None], [None, 0.0, 1.0], [None, 1.0, 0.0]] for key in ("mean", "interval")},
        {key: [[None, 1.0, 1.0], [1.0, None, 1.0], [1.0, 1.0, None]] for key in ("mean", "interval")},
        {"hands": None},
    ],
)
def test_what_is_no_tournament_is_refused_with_its_name(change: dict[str, Any]) -> None:
    with pytest.raises(CheckpointError, match="'file' holds no result of a tournament or a match"):
        cross_table(FACTS | change, "file")


def test_files_are_complained_about_and_folders_searched(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "good.json").write_text(json.dumps(FACTS))
    (tmp_path / "link.json").symlink_to(tmp_path / "nowhere")
    texts = {
        "deep": "[" * 100_000,
        "digits": f'{{"mean": {"1" * 5_000}}}',
        "torn": '{"names": ',
        "game": '{"name": "k"}',
    }
    for name, text in texts.items():
        (tmp_path / f"{name}.json").write_text(text)
    tables, problems = find_tables([tmp_path])
    assert ([table.source for table in tables], problems) == ([str(tmp_path / "inner" / "good.json")], [])
    for name in (*texts, "link", "none"):
        tables, (sentence,) = find_tables([tmp_path / f"{name}.json"])
        assert not tables
        assert f"'{tmp_path / name}.json'" in sentence
