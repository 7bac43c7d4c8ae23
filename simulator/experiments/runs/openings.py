"""What the user's code reads while jobs run, by Python's audit events.

Results depend on the files that the code of plugins and `kind: python` functions reads, and on modules that it imports
by names made at run time. What a process has read once counts for all its later jobs, as the code may have kept it.
Files of coband, of Python and of installed packages are left out: other digests cover them.
"""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Mapping
from functools import lru_cache
from importlib.util import source_from_cache
from pathlib import Path
from types import FrameType
from typing import Any

from coband.simulator.experiments.runs.code_version import file_sha256

MISSING = "missing"
"""In place of the digest of a file that is not there."""
_ROOT = Path(__file__).parents[3]
OURS = tuple(f"{_ROOT / name}{os.sep}" for name in ("agents", "server", "simulator"))
LIBRARIES = tuple({f"{sysconfig.get_path(name)}{os.sep}" for name in ("stdlib", "platstdlib", "purelib", "platlib")})
DEVICES = ("/proc/", "/sys/", "/dev/")
UNKNOWN = {
    "socket.connect": "connects to a network",
    "subprocess.Popen": "starts another program",
    "os.system": "starts another program",
    "os.exec": "starts another program",
    "os.posix_spawn": "starts another program",
    "os.fork": "starts another process",
}
"""Audit events after which nobody knows what a result depends on."""


class Openings:
    """What the user's code has read in this process.

    Attributes:
        unknown: what it did that makes results depend on more than files, in words; empty if nothing.
    """

    def __init__(self) -> None:
        self._files: dict[str, None] = {}
        self.unknown = ""

    def hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event in ("open", "sqlite3.connect"):
            name, flags = arguments[0], arguments[-1] if event == "open" else os.O_RDONLY
            if isinstance(name, str | bytes) and not int(flags or 0) & (os.O_WRONLY | os.O_RDWR):
                file = os.path.abspath(os.fsdecode(name))
                if not file.startswith((*LIBRARIES, *OURS, *DEVICES)) and _is_the_users(sys._getframe(1)):
                    self._files[source_from_cache(file) if file.endswith(".pyc") else file] = None
        elif event in UNKNOWN and _is_the_users(sys._getframe(1)):
            self.unknown = UNKNOWN[event]

    def digests(self) -> dict[str, str]:
        """File -> digest of its content."""
        return {file: digest(file) for file in sorted(self._files)}


def _is_the_users(frame: FrameType | None) -> bool:
    """Whether coband has called other code, which is neither Python's nor an installed package's, and this is it."""
    theirs = False
    while frame is not None:
        file = frame.f_code.co_filename
        if file.startswith(OURS):
            return theirs
        theirs = theirs or not file.startswith(("<", *LIBRARIES))
        frame = frame.f_back
    return False


def digest(file: str) -> str:
    """SHA-256 of a file's content."""
    try:
        state = os.stat(file)
        return _digest(file, state.st_mtime_ns, state.st_size)
    except OSError:
        return MISSING


@lru_cache(maxsize=4096)
def _digest(file: str, changed: int, size: int) -> str:
    return file_sha256(file)


def changed(read: Mapping[str, str]) -> str | None:
    """The first of some files that has another content now; None if all are as they were."""
    return next((file for file, before in read.items() if digest(file) != before), None)


@lru_cache(maxsize=1)
def openings() -> Openings:
    """What the user's code reads in this process, from the first call on."""
    found = Openings()
    sys.addaudithook(found.hear)
    return found
