"""Monte Carlo CFR in parts that run in other processes."""

from __future__ import annotations

from typing import Any

import numpy as np

from deepcfr.cluster.remote import Hosts
from deepcfr.solvers.parts import copies, tables
from deepcfr.solvers.sampled import SampledSolver


class MergedRemotely:
    """Parts in the processes of `hosts`, one `PartHost` in each; they exchange their additions directly."""

    def __init__(self, solver: SampledSolver, hosts: Hosts) -> None:
        self._solver, self._hosts = solver, hosts
        self._has_begun = False

    def epoch(self, first: int, last: int) -> int:
        """Run an epoch in all parts, and copy the merged tables to the solver; returns the nodes touched."""
        count = len(self._hosts.numbers)
        if not self._has_begun:  # the hosts start with the tables of this process
            self._all("take", self._hosts.put(tuple(copies(self._solver))))
            self._has_begun = True
        found = [self._hosts.begin(host, "run", first, last, results=1 + count) for host in range(count)]
        merged = [self._hosts.begin(host, "merge", *(f[1 + host] for f in found))[0] for host in range(count)]
        self._all("take", *merged)
        pieces = [self._hosts.fetch(piece) for piece in merged]
        for table, columns in zip(tables(self._solver), zip(*pieces, strict=True), strict=True):
            np.concatenate(columns, out=table)
        return sum(self._hosts.fetch(f[0]) for f in found)

    def close(self) -> None:
        """End the processes that this one started."""
        self._hosts.close()

    def _all(self, method: str, *arguments: Any) -> None:
        for begun in [self._hosts.begin(host, method, *arguments) for host in range(len(self._hosts.numbers))]:
            self._hosts.fetch(begun[0])
