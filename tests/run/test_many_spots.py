"""Many spots: their file, the folder that goes on, the means over deals, the table and its page."""

import csv
import io
import json
import re
import signal
import subprocess
import sys
import time
from math import comb
from pathlib import Path
from typing import Any

import pytest

from command_line import deepcfr, problem
from deepcfr.api import solve_spot, solve_spots
from deepcfr.core.errors import CheckpointError, ConfigError
from deepcfr.run import spots as module
from deepcfr.run.spot_table import SolvedSpot, SpotTable
from deepcfr.run.spots import SpotFolder, SpotJob, read_jobs, solve_jobs
from deepcfr.search.spot import parse_board
from deepcfr.search.spot_solver import SpotSolver

SPOT: dict[str, Any] = {
    "pot": 10, "stacks": 20, "dealer": "AA,QQ:0.5", "big_blind": "KK,77,4s3s", "sizes": "river 50 100",
    "exploitability": 0.5,
}  # fmt: skip
BOARDS = ["2c 2d 7h 9s Kc", "Qs 7h 2c 9d 4s", "Ah Kd Tc 7s 2s"]
TOML = """\
pot = 10
stacks = 20
dealer = "AA,QQ:0.5"
big_blind = "KK,77,4s3s"
sizes = "river 50 100"
exploitability = "0.5%"
boards = ["2c 2d 7h 9s Kc", "Qs 7h 2c 9d 4s", "Ah Kd Tc 7s 2s"]
"""


def quiet(note: str) -> None:
    raise AssertionError(note)


def row(board: str, weight: float, matchups: float, value: float, check: float, bets: float) -> SolvedSpot:
    """A spot in which the big blind checks so often, and the dealer then bets so often."""
    decisions = [
        {"line": "", "frequencies": {"check": check, "bet 5": 1 - check}},
        {"line": "check", "frequencies": {"check": 1 - bets, "bet 5": bets}},
    ]
    shares = {"dealer": value, "big blind": 10 - value}
    facts = {"board": board, "pot": 10, "values": shares, "equities": shares, "decisions": decisions}
    return SolvedSpot(board, weight, matchups, facts | {"exploitability_percent": 0.1, "iterations": 9, "seconds": 1})


def test_means_over_all_flops_are_those_over_all_deals() -> None:
    """Sevens flop a set or better with a chance that counting gives; a subset is near it."""
    given = {"pot": 1, "stacks": 1, "dealer": "77", "big_blind": "AA"}
    for flops, error in (("all", 1e-12), (95, 0.03)):
        jobs = read_jobs(given | {"flops": flops}, say=lambda _: None)
        sets = [any(card // 4 == 5 for card in parse_board(job.values["board"])) for job in jobs]
        rows = [
            row(job.values["board"], job.weight, job.matchups, float(hit), 1, 0)
            for job, hit in zip(jobs, sets, strict=True)
        ]
        exact = 1 - comb(46, 3) / comb(48, 3)
        assert SpotTable(tuple(rows), len(rows)).means("values")["dealer"] == pytest.approx(exact, abs=error)
        if flops == "all":
            assert sum(job.weight * job.matchups for job in jobs) == comb(4, 2) ** 2 * comb(48, 3)


def test_means_as_worked_out_by_hand() -> None:
    """The first flop is 3 of 4 deals; play gets to the dealer in 3 x 0.2 of them, and in 1 x 0.6 of the others."""
    table = SpotTable((row("Qs 7h 2c", 2, 3, 4, 0.2, 1.0), row("Ah Ad 2c", 1, 2, 8, 0.6, 0.5)), 2)
    assert table.chances.tolist() == [0.75, 0.25]
    assert table.means("values") == pytest.approx({"dealer": 5, "big blind": 5})
    assert table.frequencies("") == pytest.approx({"check": 0.3, "bet 5": 0.7})
    assert table.frequencies("check") == pytest.approx({"check": 0.25, "bet 5": 0.75})
    paired = table.facts()["kinds"]["pairs"]["paired"]
    assert (paired["values"]["dealer"], paired["chance"], paired["weight"]) == (8, 0.25, 1)
    assert paired["frequencies"]["check"] == {"check": 0.5, "bet 5": 0.5}


def test_spots_are_solved_as_single_ones_and_a_folder_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jobs = read_jobs(SPOT | {"boards": BOARDS}, say=quiet)
    once = solve_jobs(jobs, SpotFolder(None))
    real, begun = module.solve_job, []

    def interrupted(job: SpotJob, **limits: Any) -> Any:
        begun.append(job.name)
        if len(begun) == 3:
            raise KeyboardInterrupt
        return real(job, **limits)

    monkeypatch.setattr(module, "solve_job", interrupted)
    folder, told = tmp_path / "spots", []
    with pytest.raises(KeyboardInterrupt):
        solve_jobs(jobs, SpotFolder(folder), on_solved=lambda *done: told.append(done))
    assert len((folder / "table.csv").read_text().splitlines()) == 1 + 2 + 1
    assert "2 of 3 spots are solved" in (folder / "report.html").read_text()
    again = solve_jobs(jobs, SpotFolder(folder), on_solved=lambda *done: told.append(done))
    assert (begun, told) == ([*(job.name for job in jobs), jobs[2].name], [(0, 3), (1, 3), (2, 3), (2, 3), (3, 3)])
    for solved, same, board in zip(again.spots, once.spots, BOARDS, strict=True):
        alone = solve_spot(board, **SPOT)
        assert solved.shares("values") == same.shares("values")
        assert solved.shares("values") == pytest.approx(dict(zip(("dealer", "big blind"), alone.values, strict=True)))
        assert solved.frequencies("") == pytest.approx(alone.decisions[0].frequencies(), abs=1e-6)
    with pytest.raises(ConfigError, match=r"was solved with other values than '7h2d2c9sKc' has"):
        solve_jobs(read_jobs(SPOT | {"boards": BOARDS, "pot": 11}), SpotFolder(folder))
    damaged = folder / "solved" / "Qs7h2c9d4s.json"
    damaged.write_text(damaged.read_text().replace('"weight"', '"w"').replace("0.5", "0.6"))
    with pytest.raises(CheckpointError, match="damaged"):
        solve_jobs(jobs, SpotFolder(folder))


def test_what_stops_before_its_goal_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The solver keeps what it has at Ctrl-C."""
    real, begun = SpotSolver._percent, []

    def stopped(self: SpotSolver, *values: Any) -> float:
        begun.append(self)
        if len(begun) == 1:
            raise KeyboardInterrupt
        return real(self, *values)

    jobs = read_jobs(SPOT | {"boards": BOARDS[1:2], "exploitability": 0.001}, say=quiet)
    monkeypatch.setattr(SpotSolver, "_percent", stopped)
    with pytest.raises(KeyboardInterrupt):
        solve_jobs(jobs, SpotFolder(tmp_path))
    assert len(begun) == 2
    assert not list((tmp_path / "solved").iterdir())


def test_the_command_writes_the_table_and_processes_change_nothing(tmp_path: Path) -> None:
    file = tmp_path / "spots.toml"
    file.write_text(TOML)
    told = deepcfr("spots", file, "--out", tmp_path / "two", "--processes", 2, "--solutions", "--json").json
    assert deepcfr("spots", file, "--out", tmp_path / "one", "--processes", 1).status == 0
    one, two = (list(csv.DictReader(io.StringIO((tmp_path / f / "table.csv").read_text()))) for f in ("one", "two"))
    for line, other in zip(one, two, strict=True):
        assert {**line, "seconds": ""} == {**other, "seconds": ""}
    assert [line["spot"] for line in one] == ["7h2d2c9sKc", "Qs7h2c9d4s", "AhKdTc7s2s", "mean"]
    for line, facts in zip(one, told["spots"], strict=False):
        assert float(line["EV of dealer"]) == pytest.approx(facts["values"]["dealer"], abs=1e-5)
        assert float(line["big blind: check"]) == pytest.approx(facts["frequencies"][""]["check"])
        assert float(line["equity % of dealer"]) == pytest.approx(10 * facts["equities"]["dealer"])
    assert sum(float(line["chance"]) for line in one[:-1]) == pytest.approx(1, abs=1e-5)
    whole = json.loads((tmp_path / "two" / "solutions" / "Qs7h2c9d4s.json").read_text())
    assert whole["decisions"][0]["hands"].keys() <= whole["hand_values"]["big blind"].keys()
    page = (tmp_path / "one" / "report.html").read_text()
    heights = [
        float(height) for height in re.findall(r'<rect class="part [^>]* height="([\d.]+)"/>', page) if height != "10"
    ]
    assert sum(heights) == pytest.approx(2 * 3 * 160, abs=0.1)


@pytest.mark.long  # starts a command and its processes twice; other tests kill a command, and find what a folder has
def test_processes_end_with_the_command_and_the_same_command_goes_on(tmp_path: Path) -> None:
    """Also if it is killed, so that it can do nothing for them."""
    file, folder = tmp_path / "spots.toml", tmp_path / "spots"
    file.write_text(TOML.replace("river 50 100", "turn 50 100, river 50 100").replace("2c 2d 7h 9s Kc", "2c 2d 7h 9s"))
    command = [sys.executable, "-m", "deepcfr.cli", "spots", file, "--out", folder, "--processes", "2"]
    process = subprocess.Popen([*command, "--flops", "25"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    children: set[int] = set()
    while len(children) < 2:
        time.sleep(0.1)
        assert process.poll() is None
        children = workers_of(process.pid)
    process.send_signal(signal.SIGKILL)
    process.wait()
    while any(Path(f"/proc/{child}").exists() for child in children):
        time.sleep(0.1)
    assert subprocess.run(command, capture_output=True, timeout=200).returncode == 0
    assert len(list((folder / "solved").glob("7h2d2c*"))) == 1


def workers_of(pid: int) -> set[int]:
    """The processes below one that run Python's `spawn_main`."""
    found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return {int(child) for child in found if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes()}


def test_a_table_of_comma_separated_values_is_a_file_of_spots(tmp_path: Path) -> None:
    file = tmp_path / "spots.csv"
    file.write_text(
        "board,weight,pot,stacks,dealer,big_blind,sizes,exploitability,name\n"
        'Qs 7h 2c 9d 4s,3,10,20,"AA,QQ:0.5","KK,77,4s3s",river 50 100,0.5,\n'
        'Qs 7h 2c 9d 4s,1,10,30,"AA,QQ:0.5","KK,77,4s3s",river 50 100,0.5,deep\n'
    )
    first, second = read_jobs(file, say=quiet)
    (same,) = read_jobs(SPOT | {"board": BOARDS[1], "weight": 3}, say=quiet)
    assert (first.name, first.weight, second.name, second.weight) == ("Qs7h2c9d4s", 3, "deep", 1)
    assert first == same
    text = file.read_text().replace('"', "").replace("AA,QQ:0.5", "AA QQ:0.5").replace("KK,77,4s3s", "KK 77 4s3s")
    file.write_text(
        text.replace(",", ";").replace("board;weight", " board ;weight")
    )  # as European spreadsheets write it
    assert [(job.name, job.weight, job.matchups) for job in read_jobs(file, say=quiet)] == [
        (job.name, job.weight, job.matchups) for job in (first, second)
    ]
    table = TOML.replace("boards", "board").replace(str(BOARDS).replace("'", '"'), f'"{BOARDS[1]}"')
    (tmp_path / "spots.toml").write_text(table + '[[spots]]\n[[spots]]\nname = "deep"\nstacks = 30\n')
    assert [job.wish for job in read_jobs(tmp_path / "spots.toml", say=quiet)] == [first.wish, second.wish]


def test_flops_take_the_place_of_boards_and_are_listed(tmp_path: Path) -> None:
    file = tmp_path / "spots.toml"
    file.write_text(TOML)
    listed = list(csv.DictReader(io.StringIO(deepcfr("spots", file, "--flops", 25, "--list").out)))
    subset = list(csv.DictReader(io.StringIO(deepcfr("spots", "--flops", 25, "--list").out)))
    assert [line["board"] for line in listed] == [line["board"] for line in subset]
    assert sum(float(line["weight"]) for line in listed) == pytest.approx(22_100, abs=1e-3)


@pytest.mark.parametrize(
    "change, told",
    [
        ({"stack": 5}, "A file of spots has no 'stack': the names are"),
        ({"pot": None}, "Spots need pot."),
        ({"pot": "10"}, "The pot must be a number, but is '10'."),
        ({"pot": 10**400}, "The pot must be a number, but is 1000"),
        ({"boards": "Qs 7h 2c"}, "'boards' must be a list of texts, but is 'Qs 7h 2c'."),
        ({"boards": []}, "There are no spots: give boards, or flops = 25."),
        ({"boards": None}, "Spots need one of board, boards and flops, but have none."),
        ({"flops": 25}, "Spots need one of board, boards and flops, but have boards and flops."),
        ({"boards": None, "flops": 7}, "A subset has 25 to 1,755 flops, not 7."),
        ({"boards": ["Qs 7h 2c", "7hQs2c"]}, "Two spots are named 'Qs7h2c': give each a name of its own."),
        ({"boards": ["Ah Ad Ac"], "dealer": "AA"}, "The range of the dealer has no hand that is possible on the board"),
        ({"name": "a/b"}, "The name 'a/b-Qs7h2c' must be of letters, digits, points, hyphens and underscores."),
        ({"weight": 0}, "A weight must be a number above 0, but is 0."),
        ({"iterations": 0}, "A spot needs at least 1 iteration, but 0 are given."),
        ({"spots": [3]}, "'spots' must be a list of tables, but is [3]."),
        ({"dealer": 3}, "A range must be text such as 77+,AKs:0.5, but is 3."),
    ],
)
def test_mistakes_are_sentences(change: dict[str, Any], told: str) -> None:
    given = SPOT | {"boards": ["Qs 7h 2c"]} | change
    with pytest.raises(ConfigError, match=re.escape(told)):
        solve_spots({name: value for name, value in given.items() if value is not None})


def test_a_range_in_a_cell_of_csv_may_have_several_lines(tmp_path: Path) -> None:
    file = tmp_path / "spots.csv"
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        solve_spots(str(file))
    file.write_text('board,pot,stacks,dealer,big_blind\nQs 7h 2c 9d 4s,10,40,"AA\nKQs",JJ\n')
    (job,) = read_jobs(file)
    assert job.values["dealer"].split() == ["AA", "KQs"]


def test_the_command_says_what_it_lacks(tmp_path: Path) -> None:
    file = tmp_path / "spots.csv"
    for text, told in {
        "board,pot, pot\nQs 7h 2c,1,2\n": "The first line of .* has 'pot' twice",
        "board,pot\nQs 7h 2c,1,2\n": "has more cells than the first line",
        "board,pot\nQs 7h 2c,much\n": "Line 2 of .* 'much' is no number for pot",
    }.items():
        file.write_text(text)
        assert re.search(told, problem(deepcfr("spots", file, "--out", tmp_path / "out")))
    (tmp_path / "spots.toml").write_text("pot = ")
    assert "is not TOML" in problem(deepcfr("spots", tmp_path / "spots.toml", "--out", tmp_path / "out"))
    (tmp_path / "spots.toml").write_text(TOML)
    assert "Give --out" in problem(deepcfr("spots", tmp_path / "spots.toml"))
    assert "Give a file of spots" in problem(deepcfr("spots", "--flops", 25))
    assert "number of processes" in problem(
        deepcfr("spots", tmp_path / "spots.toml", "--out", tmp_path / "o", "--processes", 0)
    )
    assert "--workers is for" in problem(
        deepcfr("spots", tmp_path / "spots.toml", "--out", tmp_path / "out", "--workers", 2)
    )
