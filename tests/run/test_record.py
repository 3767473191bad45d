"""Locks between processes: one holder at a time, and none after its death."""

import os
from pathlib import Path

import pytest

from deepcfr.core.errors import CheckpointError
from deepcfr.run.record import LOCK, trained_here
from systems import WITHOUT, lock_up, program

HOLD = """
import sys, time
from pathlib import Path
from deepcfr.core.errors import CheckpointError
from deepcfr.run.record import trained_here
try:
    with trained_here(Path(sys.argv[1])):
        print("held", flush=True)
        time.sleep(float(sys.argv[2]))
except CheckpointError as error:
    print(error)
"""


@pytest.mark.parametrize("before", ["", WITHOUT], ids=["locks of the system", "without fcntl"])
def test_a_lock_is_held_by_one_process_and_goes_when_that_is_killed(tmp_path: Path, before: str) -> None:
    first = program(before + HOLD, tmp_path, 300)
    assert first.stdout is not None
    try:
        assert first.stdout.readline() == "held\n"
        assert program(before + HOLD, tmp_path, 0).communicate() == (
            f"'{tmp_path}' is being trained by another process.\n",
            "",
        )
    finally:
        first.kill()
        first.communicate()
    assert program(before + HOLD, tmp_path, 0).communicate() == ("held\n", "")


def test_a_lock_is_given_back(tmp_path: Path) -> None:
    for _ in range(2):
        with trained_here(tmp_path), pytest.raises(CheckpointError, match="by another process"), trained_here(tmp_path):
            pass
    assert not list(tmp_path.iterdir())


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    lock_up(tmp_path)
    said, _ = program(HOLD, tmp_path, 0).communicate()
    assert said == f"'{tmp_path / LOCK}' cannot be written: {os.strerror(13)}.\n"
