"""The plain Python solver that the compiled one is measured by does the same."""

from __future__ import annotations

import numpy as np
import pytest

from deepcfr.game.openspiel import OpenSpielGame, load_openspiel_game
from deepcfr.game.poker import PokerGame
from deepcfr.game.presets import load_game
from deepcfr.solve.mccfr import MCCFR
from experiments.bench.plain_mccfr import PlainMCCFR
from tables import finished, tabular


@pytest.mark.parametrize("game", [load_game("leduc"), load_openspiel_game("kuhn_poker")], ids=lambda game: game.name)
def test_plain_python_and_the_compiled_solver_find_the_same_regrets(game: PokerGame | OpenSpielGame) -> None:
    config = tabular("mccfr", 4, seed=3, traversals=200, precision="float64")
    compiled, plain = MCCFR(game, config), PlainMCCFR(MCCFR(game, config))
    finished(compiled)
    touched = sum(record.nodes_touched for record in plain.iterations())
    assert touched == compiled.nodes_touched
    for name, rows in (("regret", plain.regrets), ("average", plain.averages)):
        table = np.zeros_like(compiled.arrays()[name])
        for row, entries in rows.items():
            table[row : row + len(entries)] = entries
        assert np.abs(table).max() > 10
        np.testing.assert_allclose(table, compiled.arrays()[name], rtol=1e-9, atol=1e-9)
