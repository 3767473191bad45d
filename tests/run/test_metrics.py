"""Metrics survive a crash in the middle of a line; the environment says with what a run was made."""

import errno
import importlib.metadata
import json
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from deepcfr.core.errors import CheckpointError
from deepcfr.run import metrics
from deepcfr.run.metrics import append_metrics, environment, read_metrics, read_new, read_thinned, truncate_metrics

NUMBERS = st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    NUMBERS | st.text() | st.booleans() | st.none(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
RECORDS = st.lists(st.dictionaries(st.text(), VALUES, max_size=4), max_size=6)
LINES = [{"iteration": t, "loss": [t / 3, 1e-17 * t], "note": "naïve ♠\n\u2028"} for t in range(1, 6)]

ANY_FILE = settings(max_examples=40)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "metrics.jsonl"


def write(path: Path, records: list[dict[str, Any]]) -> None:
    path.unlink(missing_ok=True)
    for record in records:
        append_metrics(path, record)


@given(RECORDS)
@ANY_FILE
def test_what_is_appended_is_read_back_one_object_a_line(path: Path, records: list[dict[str, Any]]) -> None:
    records = [record | {"iteration": number} for number, record in enumerate(records)]
    write(path, records)
    assert read_metrics(path) == records
    if records:
        assert path.read_text().count("\n") == len(records)


def test_no_file_is_no_metrics(path: Path) -> None:
    assert read_metrics(path) == []
    truncate_metrics(path, 3)
    assert read_metrics(path) == []


@pytest.mark.parametrize("iteration", range(7))
def test_truncation_drops_later_iterations_and_keeps_the_bytes_of_earlier_ones(path: Path, iteration: int) -> None:
    write(path, LINES)
    kept = b"".join(path.read_bytes().splitlines(keepends=True)[:iteration])
    truncate_metrics(path, iteration)
    assert path.read_bytes() == kept
    assert [p.name for p in path.parent.iterdir()] == ["metrics.jsonl"]


@given(st.floats(0, 1, exclude_max=True))
@ANY_FILE
def test_a_line_cut_short_anywhere_is_dropped_and_what_follows_starts_afresh(path: Path, place: float) -> None:
    write(path, LINES)
    whole = path.read_bytes()
    cut = int(place * len(whole))
    path.write_bytes(whole[:cut])
    lines = whole[:cut].count(b"\n")
    last_line_is_whole = whole[cut : cut + 1] == b"\n"
    assert read_metrics(path) == LINES[: lines + last_line_is_whole]
    truncate_metrics(path, lines)
    for record in LINES[lines:]:
        append_metrics(path, record)
    assert path.read_bytes() == whole


@pytest.mark.parametrize(
    "tail",
    [
        b"\x00" * 100,  # what some file systems leave after a power cut
        b"{]\n",
        pytest.param(b"[" * 100_000, id="deep"),
        b'{"iteration": 6, "loss": [1.0',
        b"\xff\xfe\x80",
        b"5",
        b"{}",
    ],
)
def test_a_damaged_end_is_dropped(path: Path, tail: bytes) -> None:
    write(path, LINES)
    whole = path.read_bytes()
    path.write_bytes(whole + tail)
    truncate_metrics(path, 9)
    assert path.read_bytes() == whole


@pytest.mark.parametrize("place", ["first", "middle", "newline"])
def test_a_damaged_line_before_a_whole_one_is_refused_and_named_and_no_line_is_dropped(path: Path, place: str) -> None:
    write(path, LINES)
    damaged = bytearray(path.read_bytes())
    ends = [at for at, byte in enumerate(damaged) if byte == ord("\n")]
    at, line = {"first": (0, 1), "middle": (ends[1] + 3, 3), "newline": (ends[1], 2)}[place]
    damaged[at] ^= 1
    path.write_bytes(damaged)
    for read in (read_metrics, lambda file: truncate_metrics(file, 2), lambda file: read_thinned(file, 9)):
        with pytest.raises(CheckpointError, match=rf"Line {line} of '.*metrics.jsonl' is damaged: put back a copy"):
            read(path)
    assert path.read_bytes() == damaged


def test_a_file_that_cannot_be_written_is_an_error_that_names_it(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path.mkdir()
    with pytest.raises(CheckpointError, match=r"metrics.jsonl' cannot be written: Is a directory"):
        append_metrics(path, LINES[0])

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    other = path.with_name("other.jsonl")
    write(other, LINES)
    before = other.read_bytes()
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(CheckpointError, match=r"other.jsonl' cannot be written: No space left on device"):
        truncate_metrics(other, 2)
    assert other.read_bytes() == before


# The environment


def test_the_environment_has_versions_hardware_commit_and_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["/somewhere/deepcfr", "train", "kuhn"])
    facts = environment("cpu", 3)
    assert set(facts) == {
        "command", "commit", "python", "versions", "platform", "processor", "cores", "device", "threads",
    }  # fmt: skip
    assert set(facts["versions"]) == {"deepcfr", "torch", "numpy", "numba", "safetensors"}
    assert facts["versions"] == {name: importlib.metadata.version(name) for name in facts["versions"]}
    assert facts["python"] == ".".join(map(str, sys.version_info[:3]))
    assert (facts["command"], facts["device"], facts["threads"]) == ("deepcfr train kuhn", "cpu", 3)
    assert facts["cores"] == os.cpu_count()
    assert all(facts[name] for name in ("platform", "processor"))
    assert json.loads(json.dumps(facts)) == facts


@pytest.mark.parametrize(
    ("arguments", "command"),
    [
        (["/usr/lib/deepcfr/cli/__main__.py", "train", "kuhn"], "deepcfr train kuhn"),
        (["deepcfr", "train", "a game"], "deepcfr train 'a game'"),
        (["/a/checkout/experiments/grid.py", "--all"], "python -m experiments.grid --all"),
        (["/a/checkout/experiments/__main__.py", "bench", "fhp"], "python -m experiments bench fhp"),
        (["a.py", "--times", "3"], "python a.py --times 3"),
        ([], "python ''"),
    ],
)
def test_the_command_is_one_that_can_be_typed(
    arguments: list[str], command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", arguments)
    assert environment("cpu", 1)["command"] == command


def test_numbers_that_json_has_not_stay_in_the_file_and_are_nothing_on_pages(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_text('{"iteration": 1, "loss": NaN, "least": -Infinity}\n{"iteration": 2}\n')
    (line, _) = read_metrics(path)
    assert math.isnan(line["loss"])
    assert line["least"] == -math.inf
    for lines in (read_thinned(path, 9)[0], read_new(path, 0, 9)[0]):
        assert lines == [{"iteration": 1, "loss": None, "least": None}, {"iteration": 2}]
    truncate_metrics(path, 1)
    assert math.isnan(read_metrics(path)[0]["loss"])


def test_the_commit_is_the_source_trees_with_a_mark_for_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def git(*arguments: str) -> str:
        command = ["git", "-c", "user.name=t", "-c", "user.email=t@t", *arguments]
        return subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True).stdout.strip()

    source = tmp_path / "metrics.py"
    source.write_text("one")
    monkeypatch.setattr(metrics, "__file__", str(source))
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert environment("cpu", 1)["commit"] is None
    git("init", "-q")
    git("add", "metrics.py")
    git("commit", "-q", "-m", "one")
    assert environment("cpu", 1)["commit"] == git("rev-parse", "HEAD")
    source.write_text("two")
    assert environment("cpu", 1)["commit"] == git("rev-parse", "HEAD") + "+changes"


def test_without_git_there_is_no_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert environment("cpu", 1)["commit"] is None
