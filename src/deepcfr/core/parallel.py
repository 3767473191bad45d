"""Worker threads, each on one core.

The matrix products here are small. Dividing each of them among cores costs more than it gains, and becomes very slow when
another program uses a core, because torch's threads wait for each other at every operation. So torch runs single-threaded,
and whole tasks (a share of a mini-batch, a chunk of traversals, a board) run in threads of this module.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from itertools import islice
from typing import Protocol, TypeVar

from deepcfr.core.errors import require_least

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")
_DENORMAL = 5e-324


def _one_core() -> None:
    if "torch" in sys.modules:  # solvers that do not need it do not wait for it
        import torch

        torch.set_num_threads(1)


def _new_thread() -> None:
    _one_core()
    if "torch" in sys.modules:
        import torch

        torch.set_flush_denormal(False)  # a thread inherits the mode of its creator


@contextmanager
def flushed_denormals() -> Iterator[None]:
    """Within this context, the calling thread treats numbers below 1.2e-38 (float32) as 0; arithmetic with them is slow.

    Adam's averages of the gradients of dead units become so small. Only fits use it; other code follows IEEE 754.
    """
    import torch

    before = _DENORMAL == 0.0  # true only in a thread that flushes
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(before)


class Mapping(Protocol):
    """Runs a list of pieces of work: `Workers` in threads of this process, others elsewhere."""

    def map(self, work: Callable[[_Item], _Result], items: Iterable[_Item]) -> Iterator[_Result]:
        """Results of `work` in the order of `items`."""


class Workers:
    """`count` threads; with one, everything runs in the calling thread. Sets torch, if it is loaded, to one thread.

    Raises ConfigError for a count below 1.
    """

    def __init__(self, count: int) -> None:
        require_least(1, {"The number of threads": count})
        self.count = count
        _one_core()
        self._pool = ThreadPoolExecutor(count, initializer=_new_thread) if count > 1 else None

    def map(self, work: Callable[[_Item], _Result], items: Iterable[_Item]) -> Iterator[_Result]:
        """Results in the order of `items`; only a few finished results are buffered."""
        if self._pool is None:
            yield from map(work, items)
            return
        source = iter(items)
        waiting: list[Future[_Result]] = [self._pool.submit(work, item) for item in islice(source, 4 * self.count)]
        try:
            while waiting:
                yield waiting.pop(0).result()
                waiting.extend(self._pool.submit(work, item) for item in islice(source, 1))
        finally:  # after an error or an interrupt, what has not begun does not begin
            for left in waiting:
                left.cancel()

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()

    def shutdown(self) -> None:
        """Stop the threads; leaving the context of a `with` statement does so, too."""
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
