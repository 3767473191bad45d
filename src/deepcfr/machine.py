"""What this machine has, and what this process takes of it."""

from __future__ import annotations

import os
from pathlib import Path


def physical_memory() -> int:
    """Bytes of main memory, 0 where the system does not say."""
    names = os.sysconf_names if hasattr(os, "sysconf") else {}
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if "SC_PHYS_PAGES" in names else 0


def resident_memory(process: int | None = None) -> int:
    """Bytes of main memory that a process (this one) holds now, mapped files among them; 0 where `/proc` does not tell.

    Source: the second number of `/proc/PID/statm`, in pages (proc_pid_statm(5)).
    """
    try:
        pages = int(Path(f"/proc/{process or 'self'}/statm").read_bytes().split()[1])
    except OSError:
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")
