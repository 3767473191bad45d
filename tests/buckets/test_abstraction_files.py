"""Abstractions on disk: what is read is what was written, and nothing damaged or foreign is read."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from deepcfr.buckets.buckets import (
    Abstraction,
    load_abstraction,
    lossless,
    read_description,
    rules_of,
    save_abstraction,
)
from deepcfr.core.errors import CheckpointError
from deepcfr.core.files import signed_json
from deepcfr.game.rules import PRESETS

LEDUC = PRESETS["leduc"]


@pytest.fixture
def abstraction() -> Abstraction:
    return lossless(LEDUC)


@pytest.fixture
def folder(abstraction: Abstraction, tmp_path: Path) -> Path:
    save_abstraction(tmp_path / "leduc", abstraction, {"seed": 3, "features": "auto"})
    return tmp_path / "leduc"


def test_round_trip(abstraction: Abstraction, folder: Path) -> None:
    loaded = load_abstraction(folder, LEDUC)
    assert (loaded.rules, loaded.counts) == (LEDUC, abstraction.counts)
    for a, b in zip(loaded.tables, abstraction.tables, strict=True):
        assert a.dtype == b.dtype
        assert np.array_equal(a, b)
    description = read_description(folder)
    assert description["facts"] == {"seed": 3, "features": "auto"}
    assert rules_of(folder, description) == LEDUC
    assert sorted(path.name for path in folder.iterdir()) == ["abstraction.json", "round-0.npy", "round-1.npy"]


@pytest.mark.parametrize("wrong", [3, 255])
def test_a_hand_without_one_of_the_buckets_is_refused(abstraction: Abstraction, folder: Path, wrong: int) -> None:
    table = abstraction.tables[0].copy()
    table[0, 0] = wrong  # there are buckets 0, 1 and 2, and no dead hands before the board
    save_abstraction(folder, Abstraction(LEDUC, abstraction.counts, (table, abstraction.tables[1])), {})
    with pytest.raises(CheckpointError, match=r"round-0\.npy' is damaged: some hands have none of its 3 buckets"):
        load_abstraction(folder, LEDUC)


def test_impossible_hands_are_counted_board_by_board(abstraction: Abstraction, folder: Path) -> None:
    table = abstraction.tables[1].copy()
    dead = np.iinfo(table.dtype).max
    possible, impossible = np.flatnonzero(table[0] != dead)[0], np.flatnonzero(table[1] == dead)[0]
    table[0, possible], table[1, impossible] = dead, 0  # as many in all as there should be
    save_abstraction(folder, Abstraction(LEDUC, abstraction.counts, (abstraction.tables[0], table)), {})
    with pytest.raises(CheckpointError, match=r"round-1\.npy' is damaged: some hands have none of its 15 buckets"):
        load_abstraction(folder, LEDUC)


def test_an_abstraction_of_another_game_is_refused(folder: Path) -> None:
    renamed = replace(LEDUC, name="my leduc")
    assert load_abstraction(folder, renamed).rules == renamed
    with pytest.raises(
        CheckpointError, match=r"abstraction\.json' belongs to leduc, whose rules are not those of kuhn"
    ):
        load_abstraction(folder, PRESETS["kuhn"])
    with pytest.raises(CheckpointError, match="whose rules are not those of leduc"):
        load_abstraction(folder, replace(LEDUC, raise_size=(2, 6)))


def flipped(data: bytes) -> bytes:
    return data[:-1] + bytes([data[-1] ^ 1])


def described(**changes: object) -> Callable[[bytes], bytes]:
    return lambda data: signed_json(json.loads(data) | changes)


DAMAGE: list[tuple[str, Callable[[bytes], bytes | None], str]] = [
    ("round-0.npy", flipped, r"is damaged: its checksum does not match\."),
    ("round-1.npy", flipped, r"is damaged: its checksum does not match\."),
    *((name, lambda data, keep=keep: data[: int(keep * len(data))], "(is damaged|cannot be read)")
      for name in ("round-1.npy", "abstraction.json") for keep in (0.0, 0.5, 0.99)),
    ("round-0.npy", lambda _: None, "cannot be read"),
    ("abstraction.json", lambda _: None, "cannot be read"),
    ("abstraction.json", lambda data: data.replace(b"15", b"14", 1), "is damaged: its contents do not match"),
    ("abstraction.json", described(format=2), r"has format 2, and this version reads 1\."),
]  # fmt: skip


@pytest.mark.parametrize(("name", "damage", "sentence"), DAMAGE)
def test_a_damaged_file_is_named(
    folder: Path, name: str, damage: Callable[[bytes], bytes | None], sentence: str
) -> None:
    data = damage((folder / name).read_bytes())
    (folder / name).unlink() if data is None else (folder / name).write_bytes(data)
    with pytest.raises(CheckpointError, match=f"{name}' {sentence}"):
        load_abstraction(folder, LEDUC)


def test_a_table_of_the_wrong_shape_is_refused(abstraction: Abstraction, tmp_path: Path) -> None:
    tables = (abstraction.tables[0], abstraction.tables[1][:2])
    save_abstraction(tmp_path, Abstraction(LEDUC, (3, 15), tables), {})
    with pytest.raises(
        CheckpointError, match=r"round-1\.npy' is damaged: it holds uint8 \[2, 6\] in place of \[3, 6\]"
    ):
        load_abstraction(tmp_path, LEDUC)


def test_a_place_that_cannot_be_written_is_an_error(abstraction: Abstraction, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CheckpointError, match="cannot be written"):
        save_abstraction(tmp_path / "file", abstraction, {})


def test_a_save_that_stops_halfway_leaves_no_description(
    abstraction: Abstraction, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full_disk(path: Path, data: bytes) -> None:
        raise CheckpointError(f"'{path}' cannot be written: no room ({len(data)} bytes).")

    monkeypatch.setattr("deepcfr.buckets.buckets.write_atomically", full_disk)
    with pytest.raises(CheckpointError, match="no room"):
        save_abstraction(folder, abstraction, {})
    with pytest.raises(CheckpointError, match=r"abstraction\.json' cannot be read"):
        load_abstraction(folder, LEDUC)
