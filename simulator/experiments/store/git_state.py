"""The state of the git repository in which a run was started."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import TypedDict

SECONDS = 5.0
"""After this time git is not waited for."""


class GitState(TypedDict):
    """A commit, and whether files differ from it."""

    commit: str
    dirty: bool


def git_state(directory: Path) -> GitState | None:
    """The commit, and whether files that git knows differ from it; None outside a repository or without git."""
    state = _git(directory, "status", "--porcelain=v2", "--branch", "--untracked-files=no")
    commit = None if state is None else re.search(r"^# branch\.oid ([0-9a-f]+)$", state, re.MULTILINE)
    if state is None or commit is None:
        return None
    return {"commit": commit[1], "dirty": any(not line.startswith("#") for line in state.splitlines())}


def _git(directory: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(directory), *arguments], capture_output=True, text=True, check=False, timeout=SECONDS
        )
    except (OSError, subprocess.TimeoutExpired, ValueError):
        return None
    return done.stdout if done.returncode == 0 else None
