"""Threads that each work on one core.

The matrix products here are small. Spreading each of them over cores costs more than it gains, and collapses when another
program wants a core, because the library's threads wait for each other at every operation. So torch runs single-threaded,
and whole pieces of work (a share of a mini-batch, a chunk of traversals, a board) go to threads of ours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from itertools import islice
from typing import TypeVar

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")
_DENORMAL = 5e-324


def _one_core() -> None:
    import torch

    torch.set_num_threads(1)


def _new_thread() -> None:
    import torch

    _one_core()
    torch.set_flush_denormal(False)  # a thread starts as the one that made it


@contextmanager
def flushed_denormals() -> Iterator[None]:
    """Within it, the calling thread takes numbers below 1.2e-38 (float32) as 0; arithmetic with them is very slow.

    Adam's averages of the gradients of dead units end there. Only fits use it, so all else has the numbers of IEEE 754.
    """
    import torch

    before = _DENORMAL == 0.0  # which only a thread that flushes finds true
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(before)


class Workers:
    """`count` threads; with one, everything runs in the calling thread. Sets torch to one thread for this process."""

    def __init__(self, count: int) -> None:
        self.count = count
        _one_core()
        self._pool = ThreadPoolExecutor(count, initializer=_new_thread) if count > 1 else None

    def map(self, work: Callable[[_Item], _Result], items: Iterable[_Item]) -> Iterator[_Result]:
        """Results in the order of `items`, however the threads finish; at most a few wait to be taken."""
        if self._pool is None:
            yield from map(work, items)
            return
        source = iter(items)
        waiting: list[Future[_Result]] = [self._pool.submit(work, item) for item in islice(source, 4 * self.count)]
        while waiting:
            yield waiting.pop(0).result()
            waiting.extend(self._pool.submit(work, item) for item in islice(source, 1))

    def shutdown(self) -> None:
        """Stop the threads."""
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
