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

from deepcfr.cluster.remote import Hosts
from deepcfr.solvers.sampled import SampledSolver

Pieces = tuple[npt.NDArray[np.floating], ...]  # the same rows of all tables, in the order of their names


class PartHost:
    """Some parts by their `numbers`, each run on a copy of the tables that all parts began the epoch with.

    The tables' rows are cut into `slices` equal pieces; this host merges piece `own`. A part that is
    the only one keeps its tables unchanged, to the last bit.
    """

    def __init__(self, solver: SampledSolver, numbers: Sequence[int], slices: int, own: int) -> None:
        self._solver, self._numbers, self._own = solver, numbers, own
        self._base = _copies(solver)
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
                self._base = _copies(self._solver)
            added[number] = tuple(table - base for table, base in zip(_tables(self._solver), self._base, strict=True))
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

    def __init__(self, solver: SampledSolver) -> None:
        self._solver = solver

    @cached_property
    def _host(self) -> PartHost:
        return PartHost(self._solver, range(self._solver.config.parts), 1, 0)

    def epoch(self, first: int, last: int) -> int:
        """Run all parts of an epoch and merge their tables; returns the nodes touched."""
        self._host.take(tuple(_copies(self._solver)))
        touched, added = self._host.run(first, last)
        _overwrite(self._solver, self._host.merge(added))
        return int(touched)

    def close(self) -> None:
        """Does nothing: there are no other processes."""


class MergedRemotely:
    """Parts in the processes of `hosts`, one `PartHost` in each; they exchange their additions directly."""

    def __init__(self, solver: SampledSolver, hosts: Hosts) -> None:
        self._solver, self._hosts = solver, hosts
        self._has_begun = False

    def epoch(self, first: int, last: int) -> int:
        """Run an epoch in all parts, and copy the merged tables to the solver; returns the nodes touched."""
        count = len(self._hosts.numbers)
        if not self._has_begun:  # the hosts start with the tables of this process
            self._all("take", self._hosts.put(tuple(_copies(self._solver))))
            self._has_begun = True
        found = [self._hosts.begin(host, "run", first, last, results=1 + count) for host in range(count)]
        merged = [self._hosts.begin(host, "merge", *(f[1 + host] for f in found))[0] for host in range(count)]
        self._all("take", *merged)
        pieces = [self._hosts.fetch(piece) for piece in merged]
        for table, columns in zip(_tables(self._solver), zip(*pieces, strict=True), strict=True):
            np.concatenate(columns, out=table)
        return sum(self._hosts.fetch(f[0]) for f in found)

    def close(self) -> None:
        """End the processes that this one started."""
        self._hosts.close()

    def _all(self, method: str, *arguments: Any) -> None:
        for begun in [self._hosts.begin(host, method, *arguments) for host in range(len(self._hosts.numbers))]:
            self._hosts.fetch(begun[0])


def _tables(solver: SampledSolver) -> list[npt.NDArray[np.floating]]:
    """The tables of a solver, in the order of their names."""
    return list(solver.arrays().values())  # type: ignore[arg-type]


def _copies(solver: SampledSolver) -> list[npt.NDArray[np.floating]]:
    """Copies of `_tables`."""
    return [table.copy() for table in _tables(solver)]


def _overwrite(solver: SampledSolver, new_tables: Sequence[npt.NDArray[np.floating]]) -> None:
    for table, new in zip(_tables(solver), new_tables, strict=True):
        np.copyto(table, new)
