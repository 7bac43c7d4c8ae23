"""A real browser: Debian's chromium, brought by apt where it is missing and that is possible."""

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
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --force-prefers-reduced-motion --window-size=1200,900 about:blank"
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
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
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
    for flag in (*FLAGS.split(), f"--user-data-dir={profile}"):
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


SCREENS = ((1440, "light"), (1440, "dark"), (390, "light"), (390, "dark"))
"""Widths in pixels, with colour schemes."""
LOOKS = r"""
const narrow = innerWidth < 500, wrong = new Set();
const part = (v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
const numbers = (text) => (text.match(/[\d.]+/g) || []).map(Number);
const light = (text) => {
    const scale = text.includes("srgb") ? 1 : 255, [r, g, b] = numbers(text).map((v) => part(v / scale));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const paper = (element) => {
    for (let one = element; one; one = one.parentElement) {
        const colour = getComputedStyle(one).backgroundColor;
        if (numbers(colour).length === 3 || numbers(colour)[3] > 0) return colour;
    }
    return "rgb(255, 255, 255)";
};
for (const one of document.querySelectorAll("body *")) {
    if (!one.checkVisibility() || one.matches("script, style, option, .hidden, .skip")) continue;
    const svg = one.closest("svg"), style = getComputedStyle(one), box = one.getBoundingClientRect();
    const name = `${one.tagName}.${one.getAttribute("class") || ""} ${one.textContent.trim().slice(0, 30)}`;
    const texts = [...one.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
    const onCell = svg && !(one.getAttribute("style") || "").includes("fill: var(");  // a number in a heat map
    if (texts && !onCell) {
        const [high, low] = [light(paper(one)), light(svg ? style.fill : style.color)].sort((a, b) => b - a);
        const contrast = (high + 0.05) / (low + 0.05);
        if (contrast < 4.5) wrong.add(`contrast ${contrast.toFixed(2)}: ${name}`);
    }
    if (one.matches(".scroll")) {
        const over = one.scrollWidth > one.clientWidth + 1;
        if (over && !narrow) wrong.add(`does not fit: ${name}`);
        if (over !== one.matches(".wide")) wrong.add(`a cue is missing, or superfluous: ${name}`);
    } else if (!one.closest(".scroll, pre") && (box.right > innerWidth + 1)) wrong.add(`beyond the screen: ${name}`);
}
for (const tools of document.querySelectorAll(".tools, #filter, form.line")) {
    const sizes = [...tools.querySelectorAll("select, input:not([type=checkbox]):not([type=hidden]), button")]
        .map((one) => Math.round(one.getBoundingClientRect().height));
    if (new Set(sizes).size > 1) wrong.add(`controls of ${[...new Set(sizes)].join(" and ")} px`);
}
return { wrong: [...wrong].slice(0, 20), height: document.documentElement.scrollHeight };
"""
"""What is wrong with the look of a page, and its height; contrasts are those of WCAG."""


def looks(driver: Any, screen: tuple[int, str]) -> dict[str, Any]:
    """The page on a screen: what is wrong with it, in words, and its height in pixels."""
    width, scheme = screen
    metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    driver.execute_async_script("const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(done));")
    return driver.execute_script(LOOKS)
