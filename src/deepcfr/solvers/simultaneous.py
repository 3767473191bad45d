"""Simultaneous updates of Deep CFR: both players' traversals play sigma^t, so fits can run beside traversals."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from deepcfr.solvers.collector import Tally, timed
from deepcfr.solvers.histories import PLAYERS
from deepcfr.solvers.memories import Found

if TYPE_CHECKING:
    from deepcfr.solvers.deep_cfr import DeepCFR


def update_simultaneously(solver: DeepCFR, t: int, tally: Tally, average_due: bool) -> None:
    """Run iteration t of `solver` and count it in `tally`.

    Where fits can run side by side, the second player's traversals run beside the first one's fit. When they have ended,
    the memories are those of iteration t, so the average network is fitted beside the others if that is `average_due`.
    """
    sigma = solver.current()
    traversals = [solver.collector.traverse(t, player, sigma) for player in PLAYERS]
    if not solver.collector.side_by_side:
        for player in PLAYERS:
            _add(solver, t, player, traversals[player], tally)
        tally.fits += [timed(solver.fit_advantages, t, player) for player in PLAYERS]
        return
    pool = ThreadPoolExecutor(solver.collector.side_by_side)
    fits = []
    try:
        for player in PLAYERS:
            _add(solver, t, player, traversals[player], tally)
            fits.append(pool.submit(timed, solver.fit_advantages, t, player))
        average = pool.submit(timed, solver.fit_average_at, t, solver.config.average) if average_due else None
        tally.fits += [fit.result() for fit in fits]
        tally.average_fit = average.result() if average else None
    finally:
        pool.shutdown(cancel_futures=True)  # after an error, waiting fits must not start


def _add(solver: DeepCFR, t: int, player: int, traversals: Iterator[Found], tally: Tally) -> None:
    for found in traversals:
        solver.memories.add(player, found)
        if solver.table:
            solver.table.add(player, t, found)
        tally.add(found)
