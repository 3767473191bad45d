"""Memory of this machine and of processes."""

from __future__ import annotations

import os
from pathlib import Path


def physical_memory() -> int:
    """Bytes of main memory; 0 if the system does not report it."""
    names = os.sysconf_names if hasattr(os, "sysconf") else {}
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if "SC_PHYS_PAGES" in names else 0


def resident_memory(process: int | None = None) -> int:
    """Resident bytes of a process (by default this one), including mapped files; 0 without `/proc`.

    Source: the second number of `/proc/PID/statm`, in pages (proc_pid_statm(5)).
    """
    try:
        pages = int(Path(f"/proc/{process or 'self'}/statm").read_bytes().split()[1])
    except OSError:
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")
