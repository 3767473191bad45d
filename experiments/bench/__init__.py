"""Benchmarks of speed, most as ratios against another implementation on the same machine."""

from __future__ import annotations

import sys


def peak_memory() -> int:
    """The most resident bytes of this process so far; 0 on Windows, which has no `getrusage`."""
    if sys.platform == "win32":
        return 0
    import resource

    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else 1024 * most
