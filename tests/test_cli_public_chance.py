"""Public-chance traversals from the command line: a run, its resumption, and refusals in a sentence."""

from pathlib import Path
from typing import Any

import pytest

from command_line import deepcfr, problem

PLAIN = """
game = "leduc"
iterations = 2
[cfr]
first_round = "table"
[sampling]
kind = "public-chance"
boards = 2
samples = 10
panel = true
[memory]
advantage_capacity = 1000
strategy_capacity = 1000
[network]
kind = "mlp"
width = 8
layers = 1
[advantage]
steps = 3
batch_size = 8
[average]
steps = 3
batch_size = 8
[runtime]
threads = 1
"""


def configured(tmp_path: Path, *changes: tuple[str, str]) -> Path:
    text = PLAIN
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    path = tmp_path / "run.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_run_on_a_panel_is_trained_and_measured(tmp_path: Path) -> None:
    run = tmp_path / "run"
    outcome = deepcfr("train", "leduc", "--config", configured(tmp_path), "--out", run, "--json")
    assert outcome.json["iterations"] == 2
    measured: dict[str, Any] = deepcfr("exploitability", run, "--json").json
    assert measured["nash_conv"] == pytest.approx(outcome.json["nash_conv"])


@pytest.mark.parametrize(
    ("game", "changes", "words"),
    [
        ("openspiel:kuhn_poker", [('"leduc"', '"openspiel:kuhn_poker"')], "a poker game"),
        ("hulh", [('"leduc"', '"hulh"')], "hulh has too many boards to keep"),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(
    tmp_path: Path, game: str, changes: list[tuple[str, str]], words: str
) -> None:
    config = configured(tmp_path, *changes)
    assert words in problem(deepcfr("train", game, "--config", config, "--out", tmp_path / "run", "--json"))
