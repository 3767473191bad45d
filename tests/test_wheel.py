"""The wheel and the source archive: in an empty folder, without a path to anything, the agents in it are there."""

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import urllib.request
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MOST_BYTES = 4_000_000  # of the wheel
COMMANDS = """
import sys
from deepcfr.cli import main
for line in sys.argv[1:]:
    sys.argv = ["deepcfr", *line.split()]
    try:
        main()
    except SystemExit as end:
        assert not end.code, line
"""


def build(source: Path, *kinds: str) -> None:
    """Make archives beside `source` as `python -m build` does, by what is installed here."""
    calls = "; ".join(f"build_{kind}(out)" for kind in kinds)  # they change sys.argv
    make = f"import sys; from setuptools.build_meta import build_sdist, build_wheel; out = sys.argv[1]; {calls}"
    subprocess.run([sys.executable, "-c", make, str(source.parent)], cwd=source, check=True, capture_output=True)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with both archives of the package."""
    folder = tmp_path_factory.mktemp("dist")
    source = folder / "source"
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=ROOT, check=True, capture_output=True, text=True).stdout.splitlines()
    for name in names:
        if name.startswith(("src/", "models/")) or "/" not in name:
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            (source / name).write_bytes((ROOT / name).read_bytes())
    build(source, "sdist", "wheel")
    return folder


@pytest.fixture(scope="module")
def larger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel of the package of larger agents."""
    root = tmp_path_factory.mktemp("larger")
    shutil.copytree(ROOT / "packages/agents", root / "packages/agents")
    (root / "models").symlink_to(ROOT / "models")
    build(root / "packages/agents", "wheel")
    return root / "packages"


def test_a_package_of_larger_agents_is_found(built: Path, larger: Path, tmp_path: Path) -> None:
    site, empty = tmp_path / "site", tmp_path / "empty"
    empty.mkdir()
    for wheel in (*built.glob("*.whl"), *larger.glob("*.whl")):
        with zipfile.ZipFile(wheel) as files:
            files.extractall(site)
    show = "import json, deepcfr.run.record as m; print(json.dumps({k: str(v) for k, v in m.shipped_agents().items()}))"
    done = subprocess.run(
        [sys.executable, "-c", show],
        cwd=empty, env=os.environ | {"PYTHONPATH": str(site)}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    found = json.loads(done.stdout)
    assert sorted(found) == ["fhp", "hulh", "hunl-200", "kuhn", "leduc"]
    assert {name for name, path in found.items() if path.startswith(str(site / "deepcfr_agents"))} == {
        "hulh",
        "hunl-200",
    }
    assert Path(found["fhp"]) == site / "deepcfr/agents/fhp"


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
    there = os.environ | {"PYTHONPATH": str(site), "NUMBA_DISABLE_JIT": "1"}  # kuhn is small, and compiling takes long
    lines = (
        "train kuhn --config kuhn --iterations 1 --advantage.steps 9 --average.steps 9 --out runs/kuhn",
        "models --json",
        "serve kuhn --port 0",
    )
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    command = [sys.executable, "-c", COMMANDS, *lines]
    with subprocess.Popen(command, cwd=empty, env=there, text=True, **pipes) as server:
        try:
            assert server.stderr
            assert server.stdout
            address = next(found[0] for line in server.stderr if (found := re.search(r"http://[\w.:]+", line)))
            with urllib.request.urlopen(address, timeout=60) as page:
                text = page.read().decode()
        finally:
            server.terminate()
        said = server.stdout.read()
    assert (empty / "runs/kuhn/config.toml").is_file()
    assert str(site) in said
    assert [f'"model": "{name}"' in said for name in ("fhp", "kuhn", "leduc", "hulh")] == [True, True, True, False]
    assert "kuhn" in text
