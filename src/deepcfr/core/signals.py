"""Signals that ask a process to stop: Ctrl-C, SIGTERM (`kill`, containers) and SIGHUP (a terminal that closes)."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Thread, current_thread, main_thread
from types import FrameType

Handler = Callable[[int, FrameType | None], None]
HANGUP: int | None = getattr(signal, "SIGHUP", None)  # None on Windows
_STOPPING = "Stopping after this iteration, which is then saved. Ctrl-C once more stops at once and loses it."

received: list[int] = []
"""The signals other than Ctrl-C that have come since `as_ctrl_c` began, in order."""
_TERMINALS = [file.fileno() for file in (sys.__stdout__, sys.__stderr__) if file and file.isatty()]


@contextmanager
def as_ctrl_c() -> Iterator[None]:
    """Let SIGTERM and SIGHUP raise KeyboardInterrupt while the body runs, as Ctrl-C does, and keep them in `received`.

    A SIGHUP that is ignored, as under nohup, stays so. What goes to a terminal that has closed is dropped.
    """
    received.clear()
    with handled(_stop, [signal.SIGTERM, HANGUP]):
        yield


class Interrupt:
    """Whether a signal asked to stop: the first one lets the loop finish its iteration, Ctrl-C after it stops at once."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self.pressed, self._say = False, say
        self.pressed_at = 0.0  # by time.monotonic

    def __call__(self, number: int, _frame: FrameType | None) -> None:
        if number != signal.SIGINT:
            _receive(number)
        elif self.pressed:
            raise KeyboardInterrupt
        if not self.pressed:
            self.pressed, self.pressed_at = True, time.monotonic()
            # by a thread of its own: the signal may come in the middle of another print, which must not be entered again
            Thread(target=self._say, args=(_STOPPING,)).start()


@contextmanager
def catch_interrupt(say: Callable[[str], None]) -> Iterator[Interrupt]:
    """Collect Ctrl-C, SIGTERM and SIGHUP while the body runs, and say what they do."""
    interrupt = Interrupt(say)
    with handled(interrupt, [signal.SIGINT, signal.SIGTERM, HANGUP]):
        yield interrupt


def _stop(number: int, _frame: FrameType | None) -> None:
    again = bool(received)
    _receive(number)
    if number != HANGUP or not again:  # a shell and the system both send it
        raise KeyboardInterrupt


def _receive(number: int) -> None:
    received.append(number)
    if number == HANGUP:
        for terminal in _TERMINALS:  # writing there would fail
            os.dup2(os.open(os.devnull, os.O_WRONLY), terminal)


@contextmanager
def handled(handler: Handler, numbers: list[int | None]) -> Iterator[None]:
    """Let a handler have some signals while the body runs, in the main thread, which alone may set handlers.

    A SIGHUP that is ignored stays so.
    """
    if current_thread() is not main_thread():
        yield
        return
    before = {
        number: signal.signal(number, handler)
        for number in numbers
        if number is not None and not (number == HANGUP and signal.getsignal(number) is signal.SIG_IGN)
    }
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)
