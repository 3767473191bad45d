"""The commands that need the folder experiments/ find it in a checkout and say so where it is not."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import deepcfr as package
from command_line import NOTE, deepcfr, problems
from experiments.commands import NAMES


@pytest.mark.parametrize(
    "command", [("reproduce", "fig2"), ("bench", "fhp"), ("report", "--out", "pages")], ids=" ".join
)
def test_an_installed_package_says_that_it_lacks_the_experiments(command: tuple[str, ...], tmp_path: Path) -> None:
    shutil.copytree(
        Path(package.__file__).parent, tmp_path / "site" / "deepcfr", ignore=shutil.ignore_patterns("__pycache__")
    )
    result = subprocess.run(
        [sys.executable, "-m", "deepcfr.cli", *command],
        cwd=tmp_path, env={"PYTHONPATH": str(tmp_path / "site")}, capture_output=True, text=True,
    )  # fmt: skip
    sentence = "This command needs the folder experiments/ of a checkout; an installed package lacks it."
    assert (result.returncode, result.stdout, result.stderr) == (2, "", f"{NOTE}deepcfr: {sentence}\n")
    assert [path.name for path in tmp_path.iterdir()] == ["site"]


def test_the_commands_find_the_experiments_from_any_folder(tmp_path: Path) -> None:
    code = "import sys; from deepcfr import cli; sys.argv = ['deepcfr', 'reproduce', 'fig99']; cli.main()"
    environment = {"PYTHONPATH": str(Path(package.__file__).parents[1])}
    result = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert result.returncode == 2
    assert result.stderr.startswith(f"{NOTE}deepcfr: There is no experiment 'fig99'; there are fig2, ")


def test_an_unknown_experiment_is_refused_and_help_names_all_that_there_are() -> None:
    (problem,) = problems(deepcfr("reproduce", "fig99"))
    assert problem.endswith(f"there are {', '.join(NAMES)}.")
    listed = re.findall(r"[a-z0-9-]+", deepcfr("reproduce", "--help").out)
    assert {name.removesuffix("-plain") for name in NAMES} | {"-plain"} <= set(listed)


@pytest.mark.parametrize("finished, words", [(True, "deepcfr report --studies here"), (False, "resumes from here")])
def test_the_end_of_an_experiment_names_the_command_that_goes_on(
    finished: bool, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("experiments.commands.reproduce", lambda *_: {"finished": finished})
    assert words in deepcfr("reproduce", "fig2", "--out", "here").out
