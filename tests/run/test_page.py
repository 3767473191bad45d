"""Pages of runs say what the folders have: places of points, figures, settings; in training, finished, several, damaged."""

import json
import math
import re
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings, strategies as st
from rich.console import Console

from command_line import deepcfr
from deepcfr.config import EvaluationConfig, NetworkConfig, RunConfig
from deepcfr.core.errors import ConfigError
from deepcfr.core.files import signed_json
from deepcfr.run.chart import (
    Chart,
    Curve,
    draw,
    figure,
    linear_ticks,
    log_ticks,
    short,
    spread,
    tick_labels,
)
from deepcfr.run.curves import charts
from deepcfr.run.folder import RunFolder
from deepcfr.run.metrics import append_metrics, read_metrics, read_new, read_thinned
from deepcfr.run.page import REPORT, STATIC, ReportingObserver, body, report, write_report
from deepcfr.run.record import read_run
from deepcfr.run.train import train
from deepcfr.solve.base import Record
from tables import tabular

VOID = {"meta", "link", "input", "br", "hr", "img"}
CONFIG = RunConfig(game="kuhn", iterations=6, network=NetworkConfig(kind="mlp", width=8, layers=1))
HOSTILE = "<script>alert('1')</script>\"&amp;</title>"


class Page(HTMLParser):
    """A page's elements, each closed where it should be, and its text."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self._open: list[str] = []
        self.feed(html)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len({name for name, _ in attrs}) == len(attrs), (tag, attrs)
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    @property
    def text(self) -> str:
        """All text, with single spaces."""
        return " ".join(" ".join(self.words).split())

    def tags(self, tag: str) -> list[dict[str, str | None]]:
        """The attributes of all elements of a kind."""
        return [attributes for name, attributes in self.elements if name == tag]

    def of_class(self, name: str) -> list[dict[str, str | None]]:
        """The attributes of all elements of a class."""
        return [found for _, found in self.elements if name in (found.get("class") or "").split()]


def deep_line(iteration: int, nash_conv: float | None = None) -> dict[str, Any]:
    """A line of metrics as Deep CFR writes it."""
    line: dict[str, Any] = {
        "iteration": iteration,
        "nodes_touched": 500,
        "traversal_seconds": 0.25,
        "fit_seconds": 1.5,
        "advantage_loss": [2.0 / iteration, 3.0 / iteration],
        "advantage_samples": [100 * iteration, 80 * iteration],
        "strategy_samples": 200 * iteration,
        "total_nodes_touched": 500 * iteration,
        "seconds": 2.0 * iteration,
        "resident_bytes": 300_000_000 + 1_000_000 * iteration,
    }
    if nash_conv is not None:
        line |= {"average_loss": 0.01, "evaluation": evaluation(nash_conv)}
    return line


def evaluation(nash_conv: float) -> dict[str, Any]:
    return {
        "game": "kuhn",
        "unit": "mA/g",
        "nash_conv": nash_conv,
        "exploitability": nash_conv / 2,
        "best_response_values": [nash_conv - 7.0, 7.0],
        "value": -55.5,
        "boards": 1,
        "boards_used": "one of each suit class",
        "seconds": 0.1,
        "policy": "average network",
    }


def tabular_line(iteration: int, nash_conv: float | None = None) -> dict[str, Any]:
    line: dict[str, Any] = {"iteration": iteration, "nodes_touched": 30, "iteration_seconds": 0.001}
    line |= {"total_nodes_touched": 30 * iteration, "seconds": 0.002 * iteration}
    return line if nash_conv is None else line | {"evaluation": evaluation(nash_conv)}


def folder(path: Path, config: RunConfig, lines: list[dict[str, Any]]) -> Path:
    """A run folder with these metrics."""
    run = RunFolder.create(path, config)
    for line in lines:
        append_metrics(run.metrics_path, line)
    return path


@pytest.fixture
def training(tmp_path: Path) -> Path:
    """A run in training, evaluated twice, at 800 and then at 200 mA/g."""
    values = {2: 800.0, 4: 200.0}
    return folder(tmp_path / "training", CONFIG, [deep_line(i, values.get(i)) for i in range(1, 6)])


@pytest.fixture
def solved(tmp_path: Path) -> Path:
    """A finished run of tabular CFR+."""
    config = tabular("cfr+", 4, game="kuhn", seed=3)
    return folder(tmp_path / "solved", config, [tabular_line(i, 90.0 / i if i > 2 else None) for i in range(1, 5)])


def numbers(html: str) -> list[float]:
    return [float(text) for text in re.findall(r"-?[\d.]+", html)]


def test_points_lie_where_the_ticks_of_both_axes_say() -> None:
    points = ((3.0, 7.0), (10.0, 70.0), (21.0, 2100.0), (40.0, 500.0))
    for log in (False, True):
        svg = draw(Chart("t", "x", "y", (Curve("c", "", 0, points),), log_y=log))
        page = Page(svg)
        ticks = [(float(a["x"] or 0), float(a["y"] or 0), a["text-anchor"]) for a in page.of_class("tick")]
        labels = re.findall(r'<text class="tick"[^>]*>([^<]*)', svg)
        values = [float(label.replace("k", "")) * (1000 if "k" in label else 1) for label in labels]
        up = [(value, y - 4) for value, (_, y, anchor) in zip(values, ticks, strict=True) if anchor == "end"]
        across = [(value, x) for value, (x, _, anchor) in zip(values, ticks, strict=True) if anchor == "middle"]
        (curve,) = (a["d"] for a in page.of_class("curve"))
        placed = numbers(curve or "")
        scale = math.log if log else float
        assert len(up) > 2
        for index, (x, y) in enumerate(points):
            assert placed[2 * index] == pytest.approx(_between(across, x, float), abs=0.3)
            assert placed[2 * index + 1] == pytest.approx(_between(up, y, scale), abs=0.3)


def _between(ticks: list[tuple[float, float]], value: float, scale: Any) -> float:
    (a, at_a), (b, at_b) = ticks[0] if ticks[0][0] > 0 else ticks[1], ticks[-1]
    return at_a + (at_b - at_a) * (scale(value) - scale(a)) / (scale(b) - scale(a))


@settings(max_examples=40)
@given(st.floats(-1e9, 1e9), st.floats(1e-7, 1e3))
@example(0.0, 300.0)  # to 0.3, a third of which is rounded to less than a tenth
def test_ticks_of_linear_axes_are_several_even_and_told_apart(low: float, ratio: float) -> None:
    width = ratio * max(abs(low), 1e-3)
    ticks = linear_ticks(low, low + width)
    assert 3 <= len(ticks) <= 8
    assert low - 1e-6 * width <= ticks[0] < ticks[-1] <= low + width * (1 + 1e-6)
    steps = [b - a for a, b in pairwise(ticks)]
    assert max(steps) - min(steps) < 1e-5 * width + 1e-6 * abs(low)
    assert len(set(tick_labels(ticks))) == len(ticks)


@settings(max_examples=40)
@given(st.floats(-9, 9), st.floats(0.7, 12))
def test_ticks_of_logarithmic_axes_are_a_few_round_numbers_in_the_range(low: float, decades: float) -> None:
    ticks = log_ticks(10**low, 10 ** (low + decades))
    assert 2 <= len(ticks) <= 12
    for tick in ticks:
        assert 10**low <= tick <= 10 ** (low + decades)
        assert f"{tick:.0e}"[0] in "125"
    assert len(set(tick_labels(ticks))) == len(ticks)


def test_numbers_on_axes_are_short_and_true() -> None:
    assert [short(v, 1) for v in (0, 20_000, 0.01, 2e-5, 1e12)] == ["0", "20k", "0.01", "2e-5", "1T"]
    assert tick_labels((500_000, 1_000_000, 1_500_000)) == ["500k", "1M", "1.5M"]
    assert tick_labels((1_000_100, 1_000_200)) == ["1.0001M", "1.0002M"]
    assert (figure(17_852_493_540), figure(33.1396), figure(0.00012348)) == ("17,852,493,540", "33.14", "0.0001235")


@settings(max_examples=40)
@given(st.lists(st.floats(0, 200), min_size=1, max_size=6))
def test_labels_at_the_ends_of_lines_never_overlap_and_stay_inside(heights: list[float]) -> None:
    heights = sorted(heights)
    moved = spread(heights, 13, 0, 200)
    assert all(b - a >= 13 - 1e-9 for a, b in pairwise(moved))
    assert all(-1e-9 <= height <= 200 for height in moved)
    if all(b - a >= 13 for a, b in pairwise(heights)):
        assert moved == pytest.approx(heights)


@settings(max_examples=40)
@example(points=[(0.0, 5e-324)], log_x=False, log_y=False)
@given(st.lists(st.tuples(st.floats(), st.floats()), max_size=8), st.booleans(), st.booleans())
def test_whatever_the_numbers_are_a_chart_is_drawn_within_its_frame(
    points: list[tuple[float, float]], log_x: bool, log_y: bool
) -> None:
    chart = Chart("t", "x", "y", (Curve("c", "c", 0, tuple(sorted(points))),), log_x, log_y)
    page = Page(draw(chart))
    for curve in page.of_class("curve"):
        placed = numbers(curve["d"] or "")
        assert all(0 <= x <= 400 for x in placed[::2])
        assert all(20 <= y <= 210 for y in placed[1::2])


def test_strips_cover_the_plot_and_read_out_the_values_of_the_nearest_points() -> None:
    one = tuple((float(x), 2.0 * x) for x in range(1, 301))
    other = tuple((float(x), 5.0) for x in range(1, 151))
    svg = draw(Chart("t", "iteration", "y", (Curve("a", "a", 0, one), Curve("b", "b", 1, other))), focusable=True)
    page = Page(svg)
    strips = [(float(s["x"] or 0), float(s["width"] or 0)) for s in page.of_class("hit")]
    assert 30 <= len(strips) <= 40
    for (x, width), (following, _) in pairwise(strips):
        assert x + width == pytest.approx(following, abs=0.11)
    read = [stop["aria-label"] or "" for stop in page.of_class("stop")]
    assert read[-1] == "iteration 300; a: 600"  # where the other line has ended, only one is read
    for words in read[: len(read) // 3]:
        found = re.fullmatch(r"iteration (\d+)( to \d+)?; a: (\d+); b: 5", words)
        assert found is not None, words
        assert int(found[3]) == pytest.approx(2 * int(found[1]), abs=6)
    assert all(stop["tabindex"] == "0" for stop in page.of_class("stop"))
    assert not any("tabindex" in stop for stop in Page(draw(charts_of_nothing())).of_class("stop"))


def charts_of_nothing() -> Chart:
    return Chart("t", "x", "y", (Curve("a", "a", 0, ((1.0, 2.0), (2.0, 3.0))),))


def test_a_run_in_training_is_shown_as_far_as_it_is(training: Path) -> None:
    run = read_run(training, "training")
    page = Page(body([run]))
    assert not run.finished
    assert "not finished , 5 of 6 iterations" in page.text
    assert "NashConv, mA/g 200" in page.text
    assert "best 200 at 4" in page.text
    assert "nodes touched 2,500" in page.text
    assert "wall time 10 s" in page.text
    live = [a["data-live"] for _, a in page.elements if "data-live" in a]
    assert len(live) == len(set(live))
    assert {"figures", "Exact NashConv over time", "Loss of advantage fits", "Exact evaluations"} <= set(live)
    by_title = {chart.title: chart for chart in charts([run])}
    assert by_title["Exact NashConv over time"].curves[0].points == ((4.0, 800.0), (8.0, 200.0))
    assert by_title["Exact NashConv over nodes"].curves[0].points == ((1000.0, 800.0), (2000.0, 200.0))
    assert by_title["Exact NashConv over time"].x == "wall time, s"
    assert [curve.label for curve in by_title["Loss of advantage fits"].curves] == ["player 0", "player 1"]
    assert by_title["Loss of advantage fits"].curves[1].points[:2] == ((1.0, 3.0), (2.0, 1.5))
    assert by_title["Nodes touched per second of traversals"].curves[0].points[0] == (1.0, 2000.0)
    assert by_title["Samples in memories"].curves[2].points[-1] == (5.0, 1000.0)


def test_a_run_that_has_only_begun_keeps_the_place_of_its_evaluations(tmp_path: Path) -> None:
    path = folder(tmp_path / "new", CONFIG, [])
    page = Page(body([read_run(path, "new")]))
    assert "0 of 6 iterations" in page.text
    assert page.text.count("no exact evaluation yet") == 3
    before = page.tags("figure")
    append_metrics(path / "metrics.jsonl", deep_line(1))
    assert Page(body([read_run(path, "new")])).tags("figure") == before
    append_metrics(path / "metrics.jsonl", deep_line(2, 500.0))
    page = Page(body([read_run(path, "new")]))
    assert page.tags("figure") == before  # nothing moves when curves come
    assert "yet" not in page.text


def test_a_finished_run_says_so(solved: Path) -> None:
    run = read_run(solved, "solved")
    page = Page(body([run]))
    assert run.finished
    assert "CFR+ on kuhn, seed 3 · finished , 4 iterations" in page.text
    titles = [chart.title for chart in charts([run])]
    assert titles[:2] == ["Exact NashConv over time", "Exact NashConv over nodes"]
    assert not any("Loss" in title for title in titles)
    rows = [line for line in run.lines if "evaluation" in line]
    for line in rows:
        assert figure(line["evaluation"]["nash_conv"]) in page.text
        assert figure(line["evaluation"]["best_response_values"][0]) in page.text


def test_settings_that_differ_are_named_and_no_others(training: Path, tmp_path: Path) -> None:
    changed = replace(CONFIG, seed=9, sampling=replace(CONFIG.sampling, traversals=77))
    other = folder(tmp_path / "other", changed, [deep_line(1)])
    html = body([read_run(training, "one"), read_run(other, "two")])
    differing = html[html.index("Settings that differ") : html.index("All settings")]
    assert re.findall(r"<code>([^<]+)</code>", differing) == ["seed", "sampling.traversals"]
    assert "<td>10,000</td><td>77</td>" in differing
    assert "<td>0</td><td>9</td>" in differing
    assert "<code>nfsp.episodes</code>" not in html  # which Deep CFR does not read


def test_runs_that_cannot_share_a_page_are_refused(training: Path, tmp_path: Path) -> None:
    leduc = folder(tmp_path / "leduc", replace(CONFIG, game="leduc"), [])
    with pytest.raises(ConfigError, match=r"Only runs of one game.*kuhn in mA/g, leduc in mA/g"):
        report([read_run(training, "a"), read_run(leduc, "b")])
    with pytest.raises(ConfigError, match=r"At most 6 runs.*but 7"):
        report([read_run(training, f"r{i}") for i in range(7)])


def test_a_report_needs_nothing_but_itself(training: Path, solved: Path) -> None:
    for runs in ([read_run(training, "a")], [read_run(training, "a"), read_run(solved, "b")]):
        html = report(runs)
        page = Page(html)
        assert html.startswith("<!DOCTYPE html>")
        assert not re.search(r"https?:|src=|url\(|@import|<script|<link|<img|<iframe|\son\w+=", html)
        assert not any("href" in found or "style" in found for _, found in page.elements)
        styles = html[html.index("<style>") : html.index("</style>")]
        for look in range(1, 7):
            assert f"--series-{look}:" in styles
        used = {name for _, found in page.elements for name in (found.get("class") or "").split()}
        for name in ("chart", "curve", "stop", "hit", "tip", "charts", "panel", "wide", "tiles", "made"):
            assert name not in used or re.search(rf"\.{name}\b", styles), name
        assert "prefers-color-scheme: dark" in styles


def test_no_style_of_runs_is_one_of_the_other_pages_too() -> None:
    own, others = (re.sub(r"\{[^{}]*\}", ";", (STATIC / name).read_text()) for name in ("run.css", "style.css"))
    leading = set(re.findall(r"(?:^|[;,{}])\s*\.([a-z0-9-]+)", others))  # what a selector begins with
    assert {"panel", "bar"} <= leading
    assert set(re.findall(r"\.([a-z][a-z0-9-]*)", own)) & leading == {"number", "panel", "wide"}


def test_hostile_names_are_words_and_nothing_else(training: Path) -> None:
    made = json.loads((training / "environment.json").read_text())
    made |= {"command": HOSTILE, "versions": {HOSTILE: HOSTILE}, "resumed": [{"iteration": HOSTILE, "commit": HOSTILE}]}
    (training / "environment.json").write_text(json.dumps(made))
    game = json.loads((training / "game.json").read_text())
    (training / "game.json").write_text(signed_json(game | {"name": HOSTILE}).decode())
    bad = deep_line(6)
    bad["evaluation"] = evaluation(100.0) | {"policy": HOSTILE, "unit": HOSTILE}
    append_metrics(training / "metrics.jsonl", bad)
    for runs in ([read_run(training, HOSTILE)], [read_run(training, HOSTILE), read_run(training, "b" + HOSTILE)]):
        page = Page(report(runs))
        assert page.tags("script") == []
        assert len(page.tags("title")) == 1
        assert page.text.count("<script>alert('1')</script>\"&amp;</title>") >= 8


@pytest.mark.parametrize(
    "damage",
    [
        b'{"iteration": 6, "secon',
        b'{"iteration": 6, "seconds": "x", "evaluation": 5, "advantage_loss": 3, "nodes_touched": null}\n',
        b'{"iteration": 6, "seconds": NaN, "evaluation": {"nash_conv": Infinity}, "advantage_loss": [NaN, 1e999]}\n',
        b'{"iteration": 6, "evaluation": {"nash_conv": 50, "best_response_values": [1]}, "advantage_loss": [true]}\n',
        b"\xff\xfe\n[]\n",
    ],
)
def test_damaged_metrics_do_not_take_the_page_away(training: Path, damage: bytes) -> None:
    with open(training / "metrics.jsonl", "ab") as file:
        file.write(damage)
    run = read_run(training, "damaged")
    Page(report([run]))
    losses = next(chart for chart in charts([run]) if chart.title == "Loss of advantage fits")
    assert [len(curve.points) for curve in losses.curves] == [5, 5]


def test_long_metrics_are_thinned_but_for_evaluations_and_the_end(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_text("".join(json.dumps(tabular_line(i, 5.0 if i in (8, 777) else None)) + "\n" for i in range(1, 1001)))
    lines, every = read_thinned(path, 100)
    assert every == 10
    assert len(lines) <= 105
    kept = [line["iteration"] for line in lines]
    assert kept == sorted(set(kept))
    assert {1, 8, 777, 1000} <= set(kept)
    assert read_thinned(path, 1000) == (read_metrics(path), 1)
    assert read_thinned(tmp_path / "none", 10) == ([], 1)


def test_new_lines_are_read_once_and_whole(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    assert read_new(path, 0, 9) == ([], 0)
    for i in range(1, 4):
        append_metrics(path, tabular_line(i))
    first, at = read_new(path, 0, 2)
    assert [line["iteration"] for line in first] == [1, 2]
    rest, end = read_new(path, at, 9)
    assert [line["iteration"] for line in rest] == [3]
    with open(path, "a") as file:
        file.write('{"iteration": 4')
    assert read_new(path, end, 9) == ([], end)  # torn, so it waits
    with open(path, "a") as file:
        file.write("}\n")
    assert read_new(path, end, 9)[0] == [{"iteration": 4}]
    path.write_text(json.dumps({"iteration": 1}) + "\n")  # a resumed run has written it again
    assert read_new(path, end, 9)[0] == [{"iteration": 1}]


class Stopped(Exception):
    """The event that ends the runs of the next tests."""


class StoppingObserver(ReportingObserver):
    """Ends a run at an iteration."""

    def __init__(self, last: int) -> None:
        super().__init__(Console(quiet=True))
        self.last = last
        self.warnings: list[str] = []
        self.seen: list[int] = []  # evaluations in the report at the start of each iteration

    def warn(self, message: str) -> None:
        self.warnings.append(message)

    def iteration(self, record: Record, seconds: float) -> None:
        super().iteration(record, seconds)
        assert self._run is not None
        path = self._run / REPORT
        self.seen.append(
            len(re.findall(r'number">[^<]*</td><td>average</td></tr>', path.read_text())) if path.is_file() else -1
        )
        if record.iteration == self.last:
            raise Stopped


TINY = tabular("linear-cfr", 6, game="kuhn", evaluation=EvaluationConfig(every=2))


def test_a_run_that_breaks_off_leaves_its_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deepcfr.run.page._SHARE", math.inf)  # tiny runs have no time for reports otherwise
    run = RunFolder.create(tmp_path / "run", TINY)
    observer = StoppingObserver(5)
    with pytest.raises(Stopped), observer:
        train(run, observer)
    assert observer.seen == [-1, -1, 1, 1, 2]  # written after each evaluation
    assert "4 of 6 iterations" in Page((run.path / REPORT).read_text()).text


def test_a_report_that_cannot_be_written_does_not_end_the_run(tmp_path: Path) -> None:
    run = RunFolder.create(tmp_path / "run", TINY)
    (run.path / REPORT).mkdir()
    observer = StoppingObserver(99)
    with observer:
        assert train(run, observer).finished
    assert observer.warnings
    assert all("report.html was not written" in warning for warning in observer.warnings)


def test_the_command_writes_reports_again_and_for_several_runs(training: Path, solved: Path, tmp_path: Path) -> None:
    assert deepcfr("report", "--run", training).out == f"Wrote {training / REPORT}.\n"
    first = (training / REPORT).read_bytes()
    write_report(training)
    assert (training / REPORT).read_bytes() == first
    out = tmp_path / "both.html"
    assert deepcfr("report", "--run", training, solved, "--out", out).status == 0
    assert "A training" in Page(out.read_text()).text
