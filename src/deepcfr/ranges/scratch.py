"""Working memory that a thread keeps from one board to the next.

A board needs a few megabytes for a moment. Taking them from the system and giving them back for each of thousands of boards
costs more than the arithmetic, because the system clears every page again.
"""

from __future__ import annotations

import threading
from math import prod

import numpy as np
import numpy.typing as npt


class Scratch(threading.local):
    """Arrays by name, each thread with its own; the contents are what was last left there."""

    def __init__(self) -> None:
        self._buffers: dict[str, npt.NDArray[np.float64]] = {}

    def array(self, name: str, shape: tuple[int, ...]) -> npt.NDArray[np.float64]:
        """An uninitialised array, good until this thread asks for the same name again."""
        size = prod(shape)
        buffer = self._buffers.get(name)
        if buffer is None or len(buffer) < size:
            buffer = self._buffers[name] = np.empty(size)
        return buffer[:size].reshape(shape)
