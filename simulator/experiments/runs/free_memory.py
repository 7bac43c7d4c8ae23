"""How much memory this process may still take; without numpy, whose libraries end a process that has none."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

PROC = Path("/proc")
CGROUPS = Path("/sys/fs/cgroup")
NO_LIMIT = 1 << 60
"""Limits from here on are none."""
LEAST = 400 << 20
"""Bytes of address space that Python, numpy and scipy take before the first turn of a small run (measured: 360 MB)."""


@dataclass(frozen=True)
class FreeMemory:
    """Bytes that can still be taken; None where nobody knows.

    Attributes:
        machine: by all processes together: what is free, within the limits of control groups.
        process: by each process: what its limit leaves.
        limit: that limit itself.
    """

    machine: int | None
    process: int | None = None
    limit: int | None = None

    @property
    def one(self) -> int | None:
        """What a single process can take."""
        known = [size for size in (self.machine, self.process) if size is not None]
        return min(known) if known else None


def free_memory() -> FreeMemory:
    """What is free now."""
    sizes = [size for size in (_available(), *_left_in_groups()) if size is not None]
    limit = address_space()
    left = None if limit is None else max(0, limit - _in_use())
    return FreeMemory(min(sizes) if sizes else None, left, limit)


def capacity() -> FreeMemory:
    """What there would be if nothing else ran on this machine; the limit of this process as in `free_memory`."""
    total = _numbers(PROC / "meminfo").get("MemTotal")
    size = _available() if total is None else total << 10
    sizes = [size for size in (size, *_left_in_groups(whole=True)) if size is not None]
    return replace(free_memory(), machine=min(sizes) if sizes else None)


def address_space() -> int | None:
    """The limit of this process's address space (``ulimit -v``); None for none."""
    return _soft_limit("RLIMIT_AS")


def open_files() -> int | None:
    """How many files and pipes this process may have open (``ulimit -n``); None for any number."""
    return _soft_limit("RLIMIT_NOFILE")


def _soft_limit(name: str) -> int | None:
    try:
        resource: Any = importlib.import_module("resource")
        soft: int = resource.getrlimit(getattr(resource, name))[0]
    except (ImportError, AttributeError, OSError):  # Windows has no such limits
        return None
    return None if soft == resource.RLIM_INFINITY or not 0 <= soft < NO_LIMIT else soft


def too_little() -> str | None:
    """Why nothing can be computed here, in a sentence; None if it can.

    OpenBLAS prints and ends the process when it cannot allocate, so this is found out before numpy is imported.
    """
    limit = address_space()
    if limit is None or limit >= LEAST:
        return None
    return (
        f"this process may take {limit / 2**20:,.0f} MiB of memory, and numpy and scipy alone need "
        f"{LEAST / 2**20:,.0f} MiB; raise the limit (ulimit -v), such as ulimit -v unlimited"
    )


def _available() -> int | None:
    """Memory that the machine has free; where only its size is known, that."""
    found = _numbers(PROC / "meminfo").get("MemAvailable")
    if found is not None:
        return found << 10
    if sys.platform == "win32":
        return _windows()
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return None


def _windows() -> int | None:
    """``ullAvailPhys`` of GlobalMemoryStatusEx."""
    ctypes: Any = importlib.import_module("ctypes")
    status = (ctypes.c_ulonglong * 8)()  # two 32-bit numbers, length first, and seven of 64 bits
    ctypes.memmove(status, ctypes.byref(ctypes.c_ulong(ctypes.sizeof(status))), 4)
    if not ctypes.windll.kernel32.GlobalMemoryStatusEx(ctypes.byref(status)):
        return None
    return int(status[2])


def _left_in_groups(*, whole: bool = False) -> Iterator[int]:
    """What each control group above this process leaves, but for caches of files, which give way; ``whole``: allows."""
    for line in _text(PROC / "self" / "cgroup").splitlines():
        _, _, rest = line.partition(":")
        kinds, _, path = rest.partition(":")
        if kinds == "":
            yield from _left(CGROUPS, path, "memory.max", "memory.current", "inactive_file", whole)
        elif "memory" in kinds.split(","):
            names = "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"
            yield from _left(CGROUPS / "memory", path, *names, whole)


def _left(root: Path, path: str, limit: str, used: str, cached: str, whole: bool) -> Iterator[int]:
    group = root / path.lstrip("/")
    for place in (group, *group.parents):
        if not place.is_relative_to(root):
            return
        most, taken = _text(place / limit).strip(), _text(place / used).strip()
        if most.isdecimal() and taken.isdecimal() and int(most) < NO_LIMIT:
            kept = 0 if whole else int(taken) - _numbers(place / "memory.stat").get(cached, 0)
            yield max(0, int(most) - max(0, kept))


def _in_use() -> int:
    """This process's address space."""
    return _numbers(PROC / "self" / "status").get("VmSize", 0) << 10


def _numbers(file: Path) -> dict[str, int]:
    """The whole numbers of a file of lines such as ``name: 12 kB``."""
    rows = (line.replace(":", " ").split() for line in _text(file).splitlines())
    return {row[0]: int(row[1]) for row in rows if len(row) > 1 and row[1].isdecimal()}


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="ascii", errors="replace")
    except OSError:
        return ""
