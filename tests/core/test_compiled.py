"""Compiled kernels where the package's folder cannot be written: kept elsewhere, or compiled again."""

from pathlib import Path

import pytest

from systems import SRC, program, read_only_code

COUNT = "from deepcfr.game.hands import count_bits\nprint(count_bits(7))\n"
NOBODY = "import os\nos.getuid = lambda: 12_345_678\n"  # a user without a name has no home
SENTENCE = (
    "Compiled code cannot be kept, so every start compiles it: let DEEPCFR_CACHE name a folder that can be written.\n"
)


@pytest.fixture(scope="module")
def read_only(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return read_only_code(tmp_path_factory.mktemp("code"))


def test_kernels_of_read_only_code_are_kept_in_the_librarys_cache(read_only: Path, tmp_path: Path) -> None:
    said = program(COUNT, source=read_only, DEEPCFR_CACHE=str(tmp_path / "cache")).communicate()
    assert said == ("3\n", "")
    assert [path.name.partition(".")[0] for path in (tmp_path / "cache" / "kernels").rglob("*.nbi")] == ["hands"]


@pytest.mark.parametrize("before, home", [("", "locked"), (NOBODY, None)], ids=["no cache", "no home"])
def test_kernels_that_cannot_be_kept_are_compiled_and_it_is_said(
    read_only: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: str, home: str | None
) -> None:
    monkeypatch.chdir(tmp_path)
    home = home and str(read_only)
    said = program(before + COUNT, source=read_only, DEEPCFR_CACHE=None, HOME=home, XDG_CACHE_HOME=None).communicate()
    assert said == ("3\n", SENTENCE)
    assert not list(tmp_path.iterdir())


def test_every_module_takes_numba_from_there() -> None:
    found = {
        path.relative_to(SRC).as_posix()
        for path in SRC.rglob("*.py")
        if any(
            line.startswith(("import numba", "from numba")) for line in path.read_text(encoding="utf-8").splitlines()
        )
    }
    assert found == {"deepcfr/core/compiled.py"}
