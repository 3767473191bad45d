"""Default settings depend on the size of a game whose name is not known."""

from __future__ import annotations

from dataclasses import replace
from math import comb, inf
from pathlib import Path

import pytest

from deepcfr.config.records import NamedSolver
from deepcfr.core.errors import GameError
from deepcfr.defaults import default_config
from deepcfr.game.explicit import CHANCE
from deepcfr.game.openspiel import load_openspiel_game
from deepcfr.game.presets import count_histories, load_source
from deepcfr.game.rules import PRESETS, PokerRules
from definitions import format_game_definition

KUHN, LEDUC = PRESETS["kuhn"], PRESETS["leduc"]
FIVE_CARDS = replace(KUHN, num_ranks=5, rank_symbols="")  # Kuhn poker with 20 infosets
TWELVE_CARDS = replace(LEDUC, num_ranks=4, num_suits=3, rank_symbols="", suit_symbols="")


def file_of(rules: PokerRules, folder: Path) -> str:
    path = folder / "my.game"
    path.write_text(format_game_definition(rules), encoding="utf-8")
    return str(path)


@pytest.mark.parametrize(("preset", "name"), [("kuhn", "kuhn_poker"), ("leduc", "leduc_poker")])
def test_histories_are_counted_without_listing_them(preset: str, name: str) -> None:
    tree = load_openspiel_game(name).explicit
    assert count_histories(PRESETS[preset], inf) == (tree.actor != CHANCE).sum()
    assert count_histories(load_source(f"openspiel:{name}"), inf) == pytest.approx(tree.num_nodes, rel=0.1)


@pytest.mark.parametrize(
    ("rules", "like"),
    [(FIVE_CARDS, "kuhn"), (TWELVE_CARDS, "openspiel:leduc_poker"), (PRESETS["hulh"], "fhp-mini")],
    ids=["tiny", "small", "large"],
)
@pytest.mark.parametrize("solver", ["deep-cfr", "nfsp", "ppo", "escher"])
def test_a_definition_starts_from_the_settings_of_its_size(
    rules: PokerRules, like: str, solver: NamedSolver, tmp_path: Path
) -> None:
    game = file_of(rules, tmp_path)
    assert default_config(game, solver) == replace(default_config(like, solver), game=game)


def test_a_small_game_of_openspiel_starts_from_the_settings_of_kuhn() -> None:
    game = "openspiel:kuhn_poker"
    assert default_config(game) == replace(default_config("kuhn"), game=game)


def test_regression_cfr_visits_all_boards_and_hands_of_a_small_definition(tmp_path: Path) -> None:
    sampling = default_config(file_of(TWELVE_CARDS, tmp_path), "rcfr").sampling
    assert sampling.kind == "public-chance"
    assert sampling.boards >= comb(12, 1)
    assert sampling.samples == comb(11, 1)


def test_a_game_that_does_not_exist_has_no_settings() -> None:
    with pytest.raises(GameError, match="'bogus' is neither a preset"):
        default_config("bogus")
