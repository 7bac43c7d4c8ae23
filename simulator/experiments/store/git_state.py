"""The state of the git repository in which a run was started."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

SECONDS = 5.0
"""After this time git is not waited for."""


def git_state(directory: Path) -> dict[str, Any] | None:
    """The commit, and whether files that git knows differ from it; None outside a repository or without git."""
    commit = _git(directory, "rev-parse", "HEAD")
    changes = _git(directory, "status", "--porcelain", "--untracked-files=no")
    if commit is None or changes is None:
        return None
    return {"commit": commit.strip(), "dirty": bool(changes.strip())}


def _git(directory: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(directory), *arguments], capture_output=True, text=True, check=False, timeout=SECONDS
        )
    except (OSError, subprocess.TimeoutExpired, ValueError):
        return None
    return done.stdout if done.returncode == 0 else None
