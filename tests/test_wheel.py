"""The wheel and the source archive: in an empty folder, without a path to anything, the agents in it are there."""

import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MOST_BYTES = 4_000_000  # of the wheel


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with both archives, made as `python -m build` makes them, by what is installed here."""
    folder = tmp_path_factory.mktemp("dist")
    make = (
        "import sys; from setuptools.build_meta import build_sdist, build_wheel; out = sys.argv[1]; "
        "build_sdist(out); build_wheel(out)"
    )
    source = folder / "source"
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=ROOT, check=True, capture_output=True, text=True).stdout.splitlines()
    for name in names:
        if name.startswith(("src/", "models/")) or "/" not in name:
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            (source / name).write_bytes((ROOT / name).read_bytes())
    subprocess.run([sys.executable, "-c", make, str(folder)], cwd=source, check=True, capture_output=True)
    return folder


def test_the_source_archive_has_the_agents(built: Path) -> None:
    (archive,) = built.glob("*.tar.gz")
    with tarfile.open(archive) as files:
        names = {name.partition("/")[2] for name in files.getnames()}
    assert {"models/kuhn/config.toml", "models/fhp/card.md", "setup.py", "src/deepcfr/web/static/app.js"} <= names
    assert not any(name.startswith("models/hulh") for name in names)


def test_the_wheel_plays_in_an_empty_folder(built: Path, tmp_path: Path) -> None:
    (wheel,) = built.glob("*.whl")
    assert wheel.stat().st_size < MOST_BYTES
    site, empty = tmp_path / "site", tmp_path / "empty"
    empty.mkdir()
    with zipfile.ZipFile(wheel) as files:
        files.extractall(site)

    def run(*arguments: str, answers: str = "") -> str:
        done = subprocess.run(
            [sys.executable, "-m", "deepcfr.cli", *arguments],
            cwd=empty, env=os.environ | {"PYTHONPATH": str(site)}, input=answers, capture_output=True, text=True,
            check=True,
        )  # fmt: skip
        return done.stdout

    place = run("models", "--json")
    assert [f'"model": "{name}"' in place for name in ("fhp", "kuhn", "leduc", "hulh")] == [True, True, True, False]
    assert "exact NashConv" in run("exploitability", "kuhn")
    assert "You" in run("play", "leduc", "--hands", "1", answers="c\n" * 9)
    where = subprocess.run(
        [sys.executable, "-c", "import deepcfr; print(deepcfr.__file__)"],
        cwd=empty, env=os.environ | {"PYTHONPATH": str(site)}, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    assert where.startswith(str(site))
