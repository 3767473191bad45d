"""The command line in a process of its own that a signal strikes at a moment which no busy machine can miss."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

KILL = signal.SIGPROF  # its default action ends a process on the spot, as kill -9 does
INTERRUPT = signal.SIGINT
_ENVIRONMENT = os.environ | {"OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}


def struck(blow: signal.Signals, iteration: int, *arguments: object, after: float = 0.0) -> tuple[int, str, str]:
    """Run `deepcfr` with `arguments` until the line of an iteration is in its metrics; then the signal comes.

    KILL comes `after` so many seconds more of the process's own computing, which is a moment anywhere in an iteration or
    a save. Returns the status, standard output and standard error.
    """
    command = [sys.executable, __file__, str(int(blow)), str(iteration), str(after), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, env=_ENVIRONMENT, timeout=240)
    return done.returncode, done.stdout, done.stderr


def _main() -> None:
    blow, iteration, after, sys.argv = (
        int(sys.argv[1]),
        int(sys.argv[2]),
        float(sys.argv[3]),
        ["deepcfr", *sys.argv[4:]],
    )
    from deepcfr import cli
    from deepcfr.run import train

    append = train.append_metrics

    def watched(path: Path, record: dict[str, Any]) -> None:
        append(path, record)
        if record["iteration"] == iteration:
            if blow == KILL:
                signal.setitimer(signal.ITIMER_PROF, max(after, 1e-3))
            else:
                signal.raise_signal(blow)

    train.append_metrics = watched
    cli.main()


if __name__ == "__main__":
    _main()
