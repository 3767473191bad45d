"""Files that several processes write."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from deepcfr.files import write_atomically


def write_often(path: Path, content: bytes) -> int:
    for _ in range(100):
        write_atomically(path, content)
        assert path.read_bytes() in (b"a" * 1000, b"b" * 2000)
    return 100


def test_two_processes_may_write_one_file(tmp_path: Path) -> None:
    path = tmp_path / "match.json"
    contents = [b"a" * 1000, b"b" * 2000]
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        assert list(pool.map(write_often, [path, path], contents)) == [100, 100]
    assert path.read_bytes() in contents
    assert list(tmp_path.iterdir()) == [path]
