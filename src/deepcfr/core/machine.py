"""Memory of this machine and of processes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

_GROUPS = {  # the files of a control group: its limit, what it uses, and what of that is cache that can be dropped
    "v1": ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
    "v2": ("memory.max", "memory.current", "inactive_file"),
}


def usable_memory(root: Path = Path("/")) -> int | None:
    """Bytes of main memory that this process may still take; None if the system does not say.

    That is what is free or can be made free, and at most what the control groups of the process leave, such as the limit of
    a container; on systems that tell neither it is the main memory. `root` is the folder of `proc` and `sys`. Source:
    proc(5), cgroups(7) and the kernel's pages cgroup-v1/memory and cgroup-v2.
    """
    found = [*_left_in_groups(root)]
    if free := _field(root / "proc/meminfo", "MemAvailable:"):
        found.append(1024 * free)
    elif "SC_PHYS_PAGES" in getattr(os, "sysconf_names", {}):
        found.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    return max(min(found), 0) if found else None


def _left_in_groups(root: Path) -> Iterator[int]:
    for line in (_text(root / "proc/self/cgroup") or "").splitlines():
        _, controllers, name = line.split(":", 2)
        if controllers and "memory" not in controllers.split(","):
            continue
        base = root / "sys/fs/cgroup" / ("memory" if controllers else "")
        limit, used, cache = _GROUPS["v1" if controllers else "v2"]
        group = base / name.lstrip("/")
        for folder in (group, *group.parents):  # a limit holds for all groups below it
            if not folder.is_relative_to(base):
                break
            most, now = _text(folder / limit), _text(folder / used)
            if most and now and most.strip() != "max":
                yield int(most) - int(now) + (_field(folder / "memory.stat", cache) or 0)


def _field(path: Path, name: str) -> int | None:
    """The number after a name in a file of the kernel."""
    lines = (line.split() for line in (_text(path) or "").splitlines())
    return next((int(words[1]) for words in lines if words[:1] == [name]), None)


def _text(path: Path) -> str | None:
    try:
        return path.read_text()
    except OSError:
        return None


def resident_memory() -> int:
    """Resident bytes of this process, including mapped files; 0 without `/proc`.

    Source: the second number of `/proc/self/statm`, in pages (proc_pid_statm(5)).
    """
    try:
        pages = int(Path("/proc/self/statm").read_bytes().split()[1])
    except OSError:
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")
