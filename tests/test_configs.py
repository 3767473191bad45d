"""The recipes of the package load, say their command, and are the defaults or the paper's values that they claim to be."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from deepcfr.config import load_config
from deepcfr.config.toml import RECIPES
from deepcfr.core.errors import ConfigError
from deepcfr.defaults import default_config


def test_configurations_say_their_command_and_load() -> None:
    paths = sorted(RECIPES.glob("*.toml"))
    assert {path.stem for path in paths} >= {"fhp-paper", "fhp-quick", "kuhn", "leduc"}
    for path in paths:
        first = path.read_text(encoding="utf-8").splitlines()[0]
        assert f"--config {path.stem} " in f"{first} "
        assert load_config(path.stem).game == first.split()[3]


@pytest.mark.parametrize(
    ("name", "game"),
    [
        ("kuhn", "kuhn"),
        ("leduc", "leduc"),
        ("fhp-quick", "fhp"),
        ("fhp-pot", "fhp-pot"),
        ("four-rounds", "hulh"),
        ("four-rounds", "hunl-pot"),
        ("four-rounds", "hunl-200"),
    ],
)
def test_default_configurations_are_the_files(name: str, game: str) -> None:
    assert replace(load_config(name), game=game) == default_config(game)


@pytest.mark.parametrize(("name", "steps", "batch_size"), [("fhp-pot", 4_000, 10_000), ("hunl-pot", 32_000, 20_000)])
def test_the_first_versions_configurations_have_its_values(name: str, steps: int, batch_size: int) -> None:
    config = load_config(f"{name}-paper")
    assert (config.game, config.cfr.first_round, config.sampling.traversals) == (name, "table", 30_000)
    for fit in (config.advantage, config.average):
        assert (fit.steps, fit.batch_size, fit.optimizer, fit.learning_rate) == (steps, batch_size, "adam", 1e-3)
    assert config.advantage.refit == "scratch"
    assert config.network.suits == "raw"
    assert config.network.card_embedding
    assert config.memory.capacity == 40_000_000


def test_the_paper_configuration_has_the_papers_values() -> None:
    config = load_config("fhp-paper")
    assert (config.iterations, config.sampling.traversals, config.cfr.weighting) == (450, 10_000, "linear")
    assert (config.advantage.steps, config.advantage.batch_size, config.advantage.learning_rate) == (
        4_000,
        10_000,
        1e-3,
    )
    assert (config.advantage.refit, config.advantage.schedule) == ("scratch", "constant")
    assert config.advantage.draw == "uniform"
    assert config.memory.capacity == 40_000_000
    assert (config.network.suits, config.network.width, config.network.card_width) == ("raw", 64, 3)


def test_a_file_of_the_name_of_a_recipe_wins_and_an_unknown_name_is_refused_with_those_that_there_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "kuhn").write_text("seed = 7\n", encoding="utf-8")
    assert load_config("kuhn").seed == 7
    assert load_config("leduc") == default_config("leduc")
    names = ", ".join(sorted(path.stem for path in RECIPES.glob("*.toml")))
    for name in ("ledduc", "recipes/leduc", "leduc.toml"):
        with pytest.raises(ConfigError) as refused:
            load_config(name)
        reason = f"it is neither a file nor a recipe ({names})."
        assert str(refused.value) == f"The configuration '{name}' cannot be read: {reason}"
