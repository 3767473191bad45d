"""Monte Carlo CFR in parts: the same tables wherever the parts run, and as good a strategy as without them."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from deepcfr.cluster.parts import MergedHere, MergedRemotely, PartHost
from deepcfr.config import RuntimeConfig, SolveConfig, TabularConfig
from deepcfr.evaluation.exploitability import exploitability
from deepcfr.games.presets import load_game
from deepcfr.policies.base import UniformPolicy
from deepcfr.runs.checkpoint import newest_checkpoint, restore, save_checkpoint
from deepcfr.runs.folder import make_solver
from deepcfr.solvers.mccfr import MCCFR
from hosts_here import HostsHere

LEDUC = load_game("leduc")
SETTINGS = TabularConfig("mccfr", iterations=10, traversals=50, parts=3, epoch=4)


def solver(count: int | None, settings: TabularConfig = SETTINGS) -> MCCFR:
    """With its parts in so many hosts, or run by itself."""
    result = MCCFR(LEDUC, settings)
    if count is None:
        result.merging = MergedHere(result)
        return result
    result.merging = MergedRemotely(
        result, HostsHere(settings.parts, count, lambda some, own: PartHost(MCCFR(LEDUC, settings), some, count, own))
    )
    return result


def assert_same(one: MCCFR, other: MCCFR) -> None:
    assert (one.iteration, one.nodes_touched) == (other.iteration, other.nodes_touched)
    for name, table in one.arrays().items():
        assert np.abs(table).sum() > 0  # type: ignore[operator]
        assert np.array_equal(table, other.arrays()[name]), name


@pytest.mark.parametrize("count", [1, 2, 3])
def test_tables_do_not_depend_on_where_parts_run(count: int) -> None:
    alone, elsewhere = solver(None), solver(count)
    assert [record.iteration for record in alone.iterations()] == [4, 8, 10]
    assert sum(record.nodes_touched for record in elsewhere.iterations()) == alone.nodes_touched
    assert_same(alone, elsewhere)


def test_parts_run_every_traversal_once() -> None:
    """In the first iteration the opponent plays what empty tables say, so player 0's regrets are those of one part."""
    whole, parts = (MCCFR(LEDUC, replace(SETTINGS, parts=count, precision="float64")) for count in (1, 3))
    for traverser in (0,):
        whole._traverse(1, traverser, range(50))
        for part in range(3):
            parts._traverse(1, traverser, range(50 * part // 3, 50 * (part + 1) // 3))
    for name, table in whole.arrays().items():
        np.testing.assert_allclose(table, parts.arrays()[name], rtol=1e-12)


def test_old_strategies_within_an_epoch_cost_little() -> None:
    settings = replace(SETTINGS, iterations=600, traversals=60, epoch=1)
    found = []
    for parts, epoch in ((1, 1), (3, 1), (3, 10), (3, 100)):
        one = MCCFR(LEDUC, replace(settings, parts=parts, epoch=epoch))
        one.merging = MergedHere(one) if parts > 1 else None
        for _ in one.iterations():
            pass
        found.append(exploitability(one.average_policy()).nash_conv)
    assert max(found) < 0.1 * exploitability(UniformPolicy(LEDUC)).nash_conv
    assert found[1:] == pytest.approx([found[0]] * 3, rel=0.5)


def test_a_run_in_parts_goes_on_where_it_was(tmp_path: Path) -> None:
    config = SolveConfig(game="leduc", solve=SETTINGS, runtime=RuntimeConfig(threads=1))
    whole, begun = make_solver(LEDUC, config), make_solver(LEDUC, config)
    for _ in whole.iterations():
        pass
    next(begun.iterations())
    save_checkpoint(tmp_path, begun, "fingerprint", 1.0, keep=1)
    found = newest_checkpoint(tmp_path, "fingerprint", pytest.fail)
    assert found
    for again in (make_solver(LEDUC, config), solver(2)):
        restore(again, found)
        for _ in again.iterations():
            pass
        assert_same(whole, again)  # type: ignore[arg-type]
