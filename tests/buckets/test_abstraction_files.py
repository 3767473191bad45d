"""Abstractions on disk: what is read is what was written, and nothing damaged or foreign is read."""

import json
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


def test_another_abstraction_takes_the_place_of_the_first(abstraction: Abstraction, folder: Path) -> None:
    dead = np.iinfo(abstraction.tables[1].dtype).max
    tables = (
        abstraction.tables[0],
        np.where(abstraction.tables[1] == dead, dead, 0).astype(abstraction.tables[1].dtype),
    )
    save_abstraction(folder, Abstraction(LEDUC, (3, 1), tables), {})
    loaded = load_abstraction(folder, LEDUC)
    assert loaded.counts == (3, 1)
    assert set(np.unique(loaded.tables[1])) == {0, dead}


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


def test_the_name_of_the_game_may_differ(folder: Path) -> None:
    renamed = replace(LEDUC, name="my leduc")
    assert load_abstraction(folder, renamed).rules == renamed


def test_an_abstraction_of_another_game_is_refused(folder: Path) -> None:
    with pytest.raises(
        CheckpointError, match=r"abstraction\.json' belongs to leduc, whose rules are not those of kuhn"
    ):
        load_abstraction(folder, PRESETS["kuhn"])
    with pytest.raises(CheckpointError, match="whose rules are not those of leduc"):
        load_abstraction(folder, replace(LEDUC, raise_size=(2, 6)))


@pytest.mark.parametrize("name", ["round-0.npy", "round-1.npy"])
def test_a_changed_byte_in_a_table_is_found(folder: Path, name: str) -> None:
    data = bytearray((folder / name).read_bytes())
    data[-1] ^= 1
    (folder / name).write_bytes(data)
    with pytest.raises(CheckpointError, match=rf"{name}' is damaged: its checksum does not match\."):
        load_abstraction(folder, LEDUC)


@pytest.mark.parametrize("name", ["round-1.npy", "abstraction.json"])
@pytest.mark.parametrize("keep", [0.0, 0.5, 0.99])
def test_a_truncated_file_is_found(folder: Path, name: str, keep: float) -> None:
    data = (folder / name).read_bytes()
    (folder / name).write_bytes(data[: int(keep * len(data))])
    with pytest.raises(CheckpointError, match=rf"{name}' (is damaged|cannot be read)"):
        load_abstraction(folder, LEDUC)


@pytest.mark.parametrize("name", ["round-0.npy", "abstraction.json"])
def test_a_missing_file_is_named(folder: Path, name: str) -> None:
    (folder / name).unlink()
    with pytest.raises(CheckpointError, match=rf"{name}' cannot be read"):
        load_abstraction(folder, LEDUC)


def test_a_changed_description_is_found(folder: Path) -> None:
    description = json.loads((folder / "abstraction.json").read_text())
    (folder / "abstraction.json").write_text(json.dumps(description | {"counts": [3, 14]}))
    with pytest.raises(CheckpointError, match=r"abstraction\.json' is damaged: its contents do not match"):
        load_abstraction(folder, LEDUC)


def test_another_format_is_refused(folder: Path) -> None:
    description = json.loads((folder / "abstraction.json").read_text())
    (folder / "abstraction.json").write_bytes(signed_json(description | {"format": 2}))
    with pytest.raises(CheckpointError, match=r"has format 2, and this version reads 1\."):
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
