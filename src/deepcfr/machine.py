"""What this machine has."""

from __future__ import annotations

import os


def physical_memory() -> int:
    """Bytes of main memory, 0 where the system does not say."""
    names = os.sysconf_names if hasattr(os, "sysconf") else {}
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if "SC_PHYS_PAGES" in names else 0
