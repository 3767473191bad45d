"""Addresses of runs and matches: what they answer and refuse; cross tables claim no more than their intervals allow."""

import html
import json
import re
import shutil
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

LINES = [
    {"iteration": i, "nodes_touched": 30, "iteration_seconds": 0.01, "total_nodes_touched": 30 * i, "seconds": 0.01 * i}
    for i in range(1, 5)
]


@pytest.fixture(scope="module")
def originals(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs of Kuhn poker, the first one in training, and one of Leduc."""
    tmp_path = tmp_path_factory.mktemp("runs")
    RunFolder.create(tmp_path / "half", tabular("linear-cfr", 4, game="kuhn"))
    RunFolder.create(tmp_path / "whole", tabular("linear-cfr", 4, game="kuhn", seed=5))
    RunFolder.create(tmp_path / "other", RunConfig(game="leduc"))
    for line in LINES:
        append_metrics(tmp_path / "whole" / "metrics.jsonl", line)
        if line["iteration"] < 3:
            append_metrics(tmp_path / "half" / "metrics.jsonl", line)
    return tmp_path


@pytest.fixture
def folders(originals: Path, tmp_path: Path) -> dict[str, Path]:
    """Copies of the runs that may be changed."""
    return {name: Path(shutil.copytree(originals / name, tmp_path / name)) for name in ("half", "whole", "other")}


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
    run = Path(__file__).parents[2] / "models" / "kuhn"
    client = TestClient(
        build_app(open_site([run, f"tight:{run}"], "average", pytest.fail)), base_url="http://127.0.0.1"
    )
    plain, style = re.findall(r"<tr>\n<td><input.*?</tr>", client.get("/runs").text, re.DOTALL)
    note = f"tight:{run} plays another strategy; these figures are those of its run."
    assert re.search(r"[0-9] mA/g", plain)
    assert "mA/g" not in style
    assert note in style
    address = re.findall(r'href="(/runs/[^"]+)"', style)[0]
    assert note in client.get(address).text
    assert note not in client.get("/runs/kuhn").text
    assert "<h1>kuhn</h1>" in client.get(f"{address}/report.html").text


def test_a_run_has_a_page_and_the_same_as_one_file(client: TestClient) -> None:
    page = client.get("/runs/half")
    assert page.status_code == 200
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
    append_metrics(folders["half"] / "metrics.jsonl", LINES[2])
    append_metrics(folders["half"] / "metrics.jsonl", LINES[3])
    answer = client.get(feed["address"], params={"after": feed["next"]}).json()
    assert answer["lines"] == LINES[2:]
    assert answer["finished"]
    assert client.get(feed["address"], params={"after": answer["next"]}).json()["lines"] == []
    config = folders["half"] / "config.toml"
    before = config.read_text()
    edit_settings(folders["half"], r"(?m)^iterations = .*", "iterations = 400")
    assert not client.get(feed["address"], params={"after": feed["next"]}).json()["finished"]  # it has been extended
    config.write_text(before)
    assert 'data-feeds="[]"' in client.get("/runs/half").text


def test_all_lines_are_answered_from_the_start(client: TestClient, folders: dict[str, Path]) -> None:
    assert client.get("/api/runs/whole/metrics").json()["lines"] == LINES
    with open(folders["whole"] / "metrics.jsonl", "a") as file:
        file.write('{"iteration": 5, "seconds": NaN, "loss": Infinity}\n')
    assert client.get("/api/runs/whole/metrics").json()["lines"][-1] == {"iteration": 5, "seconds": None, "loss": None}


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


def test_what_cannot_be_is_refused_with_a_sentence(client: TestClient) -> None:
    mixed = client.get("/runs", params={"with": ["half", "other"]})
    assert mixed.status_code == 400
    assert "Only runs of one game share charts" in mixed.text
    assert client.get("/runs", params={"with": ["half"] * 7}).status_code == 422
    for after in ("-1", "x", str(2**70)):
        refused = client.get("/api/runs/half/metrics", params={"after": after})
        assert refused.status_code == 422
        assert "after" in refused.json()["error"]


def test_a_damaged_run_is_a_sentence_and_not_a_failure(client: TestClient, folders: dict[str, Path]) -> None:
    (folders["half"] / "config.toml").write_text("seed = ")
    answer = client.get("/runs/half")
    assert answer.status_code == 400
    assert "cannot be read" in answer.text
    assert client.get("/runs/whole").status_code == 200
    every = client.get("/runs")
    assert every.status_code == 200
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
