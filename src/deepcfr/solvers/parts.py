"""Monte Carlo CFR in parts: each runs its share of an epoch of iterations on a copy of the tables, and these are merged.

Within an epoch a part does not see the results of the others, so its strategies are as old as the epoch. Every part adds
its strategies to the average. Regrets are merged by the mean of the parts' additions: regret matching ignores the scale of
regrets, but each part alone moves them far enough to answer the opponent's strategy, and the sum would move them too far
by a factor of the number of parts. Results depend on the number of parts and on the length of an epoch, which
are settings, and not on which process runs a part.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from deepcfr.solvers.sampled import SampledSolver

Pieces = tuple[npt.NDArray[np.floating], ...]  # the same rows of all tables, in the order of their names


class PartHost:
    """Some parts by their `numbers`, each run on a copy of the tables that all parts began the epoch with.

    The tables' rows are cut into `slices` equal pieces; this host merges piece `own`. A part that is
    the only one keeps its tables unchanged, to the last bit.
    """

    def __init__(self, solver: SampledSolver, numbers: Sequence[int], slices: int, own: int) -> None:
        self._solver, self._numbers, self._own = solver, numbers, own
        self._base = copies(solver)
        cuts = np.linspace(0, len(self._base[0]), slices + 1).astype(int)
        self._slices = [slice(a, b) for a, b in pairwise(cuts)]

    def run(self, first: int, last: int) -> list[Any]:
        """Run an epoch; returns the nodes touched, and then for every slice the additions by part."""
        added: dict[int, Pieces] = {}
        touched = 0
        for number in self._numbers:
            _overwrite(self._solver, self._base)
            touched += self._solver.run_part(first, last, number)
            if self._solver.config.parts == 1:
                self._base = copies(self._solver)
            added[number] = tuple(table - base for table, base in zip(tables(self._solver), self._base, strict=True))
        by_slice = [
            {number: tuple(table[rows] for table in pieces) for number, pieces in added.items()}
            for rows in self._slices
        ]
        return [touched, *by_slice]

    def merge(self, *added: dict[int, Pieces]) -> Pieces:
        """This host's piece of the tables after an epoch: plus all parts' additions, of regrets their mean."""
        parts = {number: pieces for found in added for number, pieces in found.items()}
        merged = tuple(base[self._slices[self._own]].copy() for base in self._base)
        regret = list(self._solver.arrays()).index("regret")
        for number in sorted(parts):
            for place, (table, more) in enumerate(zip(merged, parts[number], strict=True)):
                table += more / self._solver.config.parts if place == regret else more
        return merged

    def take(self, *pieces: Pieces) -> None:
        """Copy the tables for the next epoch, one piece of the rows after the other."""
        for base, columns in zip(self._base, zip(*pieces, strict=True), strict=True):
            np.concatenate(columns, out=base)


class MergedHere:
    """All parts in this process, one after the other."""

    def __init__(self, solver: SampledSolver, parts: int) -> None:
        self._solver, self._parts = solver, parts

    @cached_property
    def _host(self) -> PartHost:
        return PartHost(self._solver, range(self._parts), 1, 0)

    def epoch(self, first: int, last: int) -> int:
        """Run all parts of an epoch and merge their tables; returns the nodes touched."""
        self._host.take(tuple(copies(self._solver)))
        touched, added = self._host.run(first, last)
        _overwrite(self._solver, self._host.merge(added))
        return int(touched)

    def close(self) -> None:
        """Does nothing: there are no other processes."""


def tables(solver: SampledSolver) -> list[npt.NDArray[np.floating]]:
    """The tables of a solver, in the order of their names."""
    return list(solver.arrays().values())  # type: ignore[arg-type]


def copies(solver: SampledSolver) -> list[npt.NDArray[np.floating]]:
    """Copies of `tables`."""
    return [table.copy() for table in tables(solver)]


def _overwrite(solver: SampledSolver, new_tables: Sequence[npt.NDArray[np.floating]]) -> None:
    for table, new in zip(tables(solver), new_tables, strict=True):
        np.copyto(table, new)
