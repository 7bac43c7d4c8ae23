"""A real browser: Debian's chromium, brought by apt where it is missing and that is possible."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--force-prefers-reduced-motion",
    "--window-size=1200,900",
    "about:blank",
)
PACKAGES = ("chromium", "chromium-driver")
PROGRAMS = ("chromium", "chromedriver")
PATIENCE = 120


@contextmanager
def _alone() -> Iterator[None]:
    """One process of the test run after the other: apt-get does not wait for another one."""
    with FileLock(Path(tempfile.gettempdir()) / "coband-apt.lock"):
        yield


def _install() -> str | None:
    """Bring what is missing; what stood in the way, None for nothing."""
    if all(map(shutil.which, PROGRAMS)):
        return None
    with _alone():
        return None if all(map(shutil.which, PROGRAMS)) else _bring()


def _bring() -> str | None:
    if shutil.which("apt-get") is None or os.geteuid() != 0:
        return f"{' and '.join(PROGRAMS)} are not installed, and apt-get needs root to bring them"
    for command in (["apt-get", "update"], ["apt-get", "install", "-y", "--no-install-recommends", *PACKAGES]):
        done = subprocess.run(
            command,
            env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            return f"`{' '.join(command)}` failed: {done.stderr.strip()[-300:]}"
    missing = [program for program in PROGRAMS if shutil.which(program) is None]
    return f"apt-get has not brought {', '.join(missing)}" if missing else None


@contextmanager
def browser(profile: Path) -> Iterator[Any]:
    """A driver of a fresh browser; skips the test when there is none."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed: pip install 'coband[dev]'")
    obstacle = _install()
    if obstacle is not None:
        pytest.skip(f"no browser: {obstacle}")
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    for flag in (*FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    service = webdriver.ChromeService(executable_path=shutil.which("chromedriver"))
    driver = webdriver.Chrome(options=options, service=service)
    try:
        driver.set_page_load_timeout(PATIENCE)
        yield driver
    finally:
        driver.quit()


def requests(driver: Any) -> list[str]:
    """Addresses that the page has asked for since the last call."""
    entries = [json.loads(entry["message"])["message"] for entry in driver.get_log("performance")]
    return [entry["params"]["request"]["url"] for entry in entries if entry["method"] == "Network.requestWillBeSent"]


def complaints(driver: Any) -> list[str]:
    """What the console says since the last call."""
    return [entry["message"] for entry in driver.get_log("browser")]
