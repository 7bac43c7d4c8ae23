"""A run knows the commit of the repository in which it was started."""

import shutil
import subprocess
from pathlib import Path

import pytest

from coband.simulator.experiments.store.manifest import git_state


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_commit_and_changes(tmp_path: Path) -> None:
    def git(*arguments: str) -> str:
        settings = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main"]
        command = ["git", *settings, "-C", str(tmp_path), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    git("init")
    assert git_state(tmp_path) is None  # no commit yet
    (tmp_path / "study.yaml").write_text("a")
    git("add", ".")
    git("commit", "-m", "first")
    commit = git("rev-parse", "HEAD")
    assert git_state(tmp_path) == {"commit": commit, "dirty": False}
    (tmp_path / "results").write_text("not known to git")
    assert git_state(tmp_path) == {"commit": commit, "dirty": False}
    (tmp_path / "study.yaml").write_text("b")
    assert git_state(tmp_path) == {"commit": commit, "dirty": True}


def test_without_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert git_state(Path.cwd()) is None
