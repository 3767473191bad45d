"""The figure shows the runs that have something to show, in a fixed order, with the numbers of their metrics."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from deepcfr.cli.records import Report
from deepcfr.cli.reporting import report_command
from deepcfr.config import AnyConfig, SolveConfig, TabularConfig
from deepcfr.defaults import default_config
from deepcfr.errors import CheckpointError, ConfigError
from deepcfr.games.presets import load_rules
from deepcfr.report.fig2 import write_figure
from deepcfr.runs.folder import RunFolder
from deepcfr.runs.metrics import read_metrics
from definitions import format_game_definition

ORDER = ["deep", "bucketed", "lossless", "lossless-again", "full"]


class Table(HTMLParser):
    """The texts of the cells of a page's table, by row; a page that is not well formed fails."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.open: list[str] = []
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: object) -> None:  # noqa: ARG002
        if tag not in ("meta", "br"):
            self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_startendtag(self, tag: str, attrs: object) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if {"td", "th"} & set(self.open):
            self.rows[-1][-1] += data


def refuse(message: str) -> None:
    raise AssertionError(message)


def draw(runs: list[RunFolder], out: Path, warn: Callable[[str], None] = refuse) -> str:
    write_figure([run.path for run in runs], out, warn)
    return (out / "fig2.html").read_text()


def fhp_run(path: Path, values: list[float], game: str = "fhp", seed: int = 0) -> RunFolder:
    """A run of FHP, which nothing here would be quick enough to make."""
    return made_up(path, SolveConfig(game, seed, TabularConfig("linear-cfr")), values)


def made_up(path: Path, config: AnyConfig, values: list[float]) -> RunFolder:
    run = RunFolder.create(path, config)
    lines = [
        {
            "iteration": number,
            "seconds": 10.0 * number,
            "total_nodes_touched": 1000 * number,
            "evaluation": {"nash_conv": value, "seconds": 1.5},
        }
        for number, value in enumerate(values, start=1)
    ]
    run.metrics_path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return run


def test_the_table_has_every_run_in_order_with_the_numbers_of_its_metrics(
    leduc_runs: dict[str, RunFolder], tmp_path: Path
) -> None:
    head, *rows = Table(draw(list(leduc_runs.values()), tmp_path)).rows
    assert [Path(row[0]).name for row in rows] == ORDER
    for row in rows:
        cells = dict(zip(head, row, strict=True))
        lines = read_metrics(leduc_runs[Path(row[0]).name].metrics_path)
        values = {line["iteration"]: line["evaluation"]["nash_conv"] for line in lines if "evaluation" in line}
        assert tuple(values) == (1, 2, 4)
        best = min(values, key=lambda iteration: values[iteration])
        assert cells["first NashConv, mA/g"] == f"{values[1]:,.2f} at 1"
        assert cells["last, mA/g"] == f"{values[4]:,.2f} at 4"
        assert cells["best, mA/g"] == f"{values[best]:,.2f} at {best}"
        assert cells["iterations"] == "4"
        assert cells["nodes touched"] == f"{lines[-1]['total_nodes_touched']:,}"
        assert cells["seconds"] == f"{lines[-1]['seconds']:,.1f}"
        recorded = json.loads((Path(row[0]) / "environment.json").read_text())
        assert cells["command and commit"] == recorded["command"] + (recorded["commit"] or "not recorded")
        assert cells["hardware"].startswith(recorded["processor"] or "processor unknown")
        assert cells["seed"] == ("1" if row[0].endswith("again") else "0")


def test_the_page_holds_the_chart_and_says_what_nodes_are(leduc_runs: dict[str, RunFolder], tmp_path: Path) -> None:
    page = draw(list(leduc_runs.values()), tmp_path)
    svg = (tmp_path / "fig2.svg").read_text()
    assert svg[svg.index("<svg") :] in page
    assert page.count("<svg") == 1
    assert "not comparable between them" in page
    assert "sampled histories and public-chance or full-width passes count different things" in svg
    assert "exact evaluations included" in svg
    # 14 actions at the decisions of a round, five ways into the second one; 15 hands and boards up to suits
    assert f"Linear MCCFR, lossless ({3 * 14 + 15 * 70:,} infoset-actions) (2 runs)" in svg
    assert "http" not in page.replace("http://www.w3.org/", "")


def test_runs_that_count_alike_need_no_caution(leduc_runs: dict[str, RunFolder], tmp_path: Path) -> None:
    page = draw([leduc_runs["deep"], leduc_runs["lossless"]], tmp_path)
    assert "not comparable" not in page
    assert "the deals on the way" in page


def test_the_same_runs_give_the_same_bytes(leduc_runs: dict[str, RunFolder], tmp_path: Path) -> None:
    runs = list(leduc_runs.values())
    draw(runs, tmp_path / "first")
    draw(runs[::-1], tmp_path / "second")
    for name in ("fig2.html", "fig2.svg"):
        assert (tmp_path / "first" / name).read_bytes() == (tmp_path / "second" / name).read_bytes()


def test_runs_of_one_kind_stand_in_the_order_of_their_sizes_and_seeds(tmp_path: Path) -> None:
    base = default_config("kuhn")
    configs = {
        f"{name}-{seed}": replace(base, seed=seed, network=replace(base.network, width=width))
        for seed in (1, 0)
        for name, width in (("a-large", 64), ("b-small", 8))
    }
    runs = [made_up(tmp_path / name, config, [100.0 + i]) for i, (name, config) in enumerate(configs.items())]
    _, *rows = Table(draw(runs, tmp_path / "out")).rows
    assert [Path(row[0]).name for row in rows] == ["b-small-0", "b-small-1", "a-large-0", "a-large-1"]


def test_names_of_runs_are_text_and_not_markup(leduc_runs: dict[str, RunFolder], tmp_path: Path) -> None:
    path = tmp_path / "<b>$x$ & y"
    shutil.copytree(leduc_runs["full"].path, path)
    page = draw([RunFolder.open(path)], tmp_path / "out")
    assert "&lt;b&gt;$x$ &amp; y</td>" in page
    assert "<b>" not in page
    assert Table(page).rows[1][0] == str(path)


def test_openspiel_games_are_drawn_as_they_are(tmp_path: Path) -> None:
    run = RunFolder.create(tmp_path / "run", SolveConfig("openspiel:kuhn_poker", 0, TabularConfig("cfr", 2)))
    line = {"seconds": 0.1, "total_nodes_touched": 116, "evaluation": {"nash_conv": 400.0, "seconds": 0.0}}
    run.metrics_path.write_text(json.dumps({"iteration": 1, **line}))
    page = draw([run], tmp_path / "out")
    assert "Exact NashConv on kuhn_poker" in page
    assert "Deep CFR" not in Table(page).rows[1]
    assert Table(page).rows[1][3] == "1 of 2"
    assert "mpoints/g" in page


def test_without_names_all_runs_of_fhp_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.game").write_text(format_game_definition(load_rules("fhp")))
    first = fhp_run(Path("runs/first"), [300.0, 200.0])
    fhp_run(Path("runs/deep/er"), [250.0], seed=3)
    fhp_run(Path("runs/own"), [260.0], "mine.game", seed=4)
    fhp_run(Path("runs/unmeasured"), [])
    RunFolder.create(Path("runs/leduc"), default_config("leduc"))
    torn = fhp_run(Path("runs/torn"), [280.0, 270.0], seed=2)
    torn.metrics_path.write_text(torn.metrics_path.read_text()[:-30])
    Path("runs/half").mkdir()
    Path("runs/half/config.toml").write_text("game = 'fhp'\n[solve")
    shutil.copytree(first.path, "models/first")
    warnings: list[str] = []
    page = draw([], Path("runs/report"), warnings.append)
    _, *rows = Table(page).rows
    assert [(row[0], row[9]) for row in rows] == [
        ("runs/first", "200.00 at 2"),
        ("runs/torn", "280.00 at 1"),
        ("runs/deep/er", "250.00 at 1"),
        ("runs/own", "260.00 at 1"),
    ]
    assert [row[6] for row in rows] == ["3.0", "1.5", "1.5", "1.5"]
    said = {name: [w for w in warnings if f"runs/{name}" in w.split(":")[0]] for name in ("unmeasured", "half", "torn")}
    assert all(len(lines) == 1 for lines in said.values())
    assert "'models/first' is left out: it has the metrics of 'runs/first'." in warnings
    assert len(warnings) == 4


def test_a_damaged_abstraction_or_a_lost_environment_leaves_the_others(
    leduc_runs: dict[str, RunFolder], tmp_path: Path
) -> None:
    for name in ("bucketed", "lossless"):
        shutil.copytree(leduc_runs[name].path, tmp_path / name)
    (tmp_path / "bucketed" / "abstraction" / "abstraction.json").write_text("{}")
    (tmp_path / "lossless" / "environment.json").unlink()
    warnings: list[str] = []
    runs = [RunFolder.open(tmp_path / name) for name in ("bucketed", "lossless")]
    _, *rows = Table(draw(runs, tmp_path / "out", warnings.append)).rows
    assert [Path(row[0]).name for row in rows] == ["lossless"]
    assert rows[0][-2:] == ["not recordednot recorded", "not recorded"]
    assert len(warnings) == 2


def test_what_cannot_be_drawn_is_an_error(
    leduc_runs: dict[str, RunFolder], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    silent: list[str] = []
    kuhn = fhp_run(tmp_path / "kuhn", [100.0], "kuhn")
    with pytest.raises(ConfigError, match=r"kuhn, leduc\.$"):
        draw([leduc_runs["full"], kuhn], tmp_path / "out")
    empty = RunFolder.create(tmp_path / "empty", replace(default_config("leduc"), seed=5))
    with pytest.raises(ConfigError, match="None of the runs named has"):
        draw([empty], tmp_path / "out", silent.append)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match="No run of FHP"):
        draw([], tmp_path / "out", silent.append)
    with pytest.raises(CheckpointError, match="does not hold a run"):
        write_figure([tmp_path / "nothing"], tmp_path / "out", silent.append)
    assert not (tmp_path / "out").exists()


def test_rules_that_differ_under_one_name_are_not_one_game(leduc_runs: dict[str, RunFolder], tmp_path: Path) -> None:
    shutil.copytree(leduc_runs["full"].path, tmp_path / "other")
    rules = json.loads((tmp_path / "other" / "game.json").read_text())
    (tmp_path / "other" / "game.json").write_text(json.dumps(rules | {"raise_size": [2, 6]}))
    other = RunFolder.open(tmp_path / "other")
    other.metrics_path.write_text(other.metrics_path.read_text() + "\n")
    with pytest.raises(ConfigError, match="rules of leduc"):
        draw([leduc_runs["full"], other], tmp_path / "out", lambda _: None)


def test_the_command_writes_the_files(
    leduc_runs: dict[str, RunFolder], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report_command(Report(what=("fig2", str(leduc_runs["full"].path)), out=tmp_path / "out"))
    assert capsys.readouterr().out.count("Wrote") == 2
    report_command(Report(what=(str(leduc_runs["full"].path),), out=tmp_path / "one.svg"))
    assert b"Linear CFR, full width: full" in (tmp_path / "one.svg").read_bytes()


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        (Report(what=("a",)), "--out must name the picture"),
        (Report(what=("a",), out=Path("a.pdf")), r"a\.pdf"),
        (Report(what=("a",), out=Path("a.png")), r"a\.png"),
    ],
)
def test_the_command_says_what_it_misses(command: Report, sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        report_command(command)
