"""What pages look like on wide and narrow screens, light and dark: measured in a real browser."""

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from coband.extensions.diagram import packing
from coband.simulator.cli.main import main
from tests.analysis.report.browser import SCREENS, browser, complaints, looks
from tests.extensions.diagram.test_browser import write

QUICKSTART = Path(__file__).parents[3] / "scenarios" / "quickstart.yaml"
SWEEP = """
name: swept
seed: 5
replications: 2
agents: {{count: 3}}
schedule: {{kind: rounds, turns: 5}}
problem: {{kind: contextual, arms: {{kind: ball, dimension: 2, count: 4}}, reward: {{kind: linear}}, noise: 0.1}}
algorithms:
  - {{algorithm: dis_lin_ucb, label: Dis, threshold: 1}}
  - {{algorithm: dis_lin_ucb, label: Kept, threshold: 1, alpha: 0.1}}
grid:
  algorithms.Dis.threshold: {values}
  algorithms.Kept.threshold: {values}
{environments}
"""
ENVIRONMENTS = "  problem.noise: [0.1, 0.5]\n  network.loss: [0, 0.1, 0.3]"
MANY = "[0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.5, 2, 3, 4, 6, 8]"
LIGHTNESS = 7.0
"""Smallest difference of the CIE lightness of two curves of an algorithm whose parameters are neighbours."""
SHADES = """
const part = (v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
return [...document.querySelectorAll("#results figure svg path")].map((one) => {
    const [kind, ...channels] = getComputedStyle(one).stroke.match(/srgb|rgb|[\\d.]+/g) || ["none"];
    const [r, g, b] = channels.map((v) => part(kind === "srgb" ? Number(v) : Number(v) / 255));
    const light = 0.2126 * r + 0.7152 * g + 0.0722 * b;
    return one.getAttribute("style").includes("--series-0") ? 116 * Math.cbrt(light) - 16 : null;
}).filter((one) => one !== null);
"""
"""The lightness of everything in the colour of the first algorithm."""


def made(folder: Path, name: str, verb: str, scenario: Path, *options: str) -> Path:
    with pytest.raises(SystemExit) as exit_:
        main([verb, str(scenario), "--out", str(folder / name), "--workers", "1", *options])
    assert exit_.value.code == 0
    return write(folder / name, folder / f"{name}.html")


def swept(folder: Path, name: str, values: str, environments: str = "") -> Path:
    file = folder / f"{'a_name_without_a_place_to_break_' * 2}{name}.yaml"
    file.write_text(SWEEP.format(values=values, environments=environments))
    return made(folder, name, "sweep", file)


def shown(driver: Any, page: Path) -> dict[str, Any]:
    """What is wrong with a page on any screen, and how high it is on the widest."""
    driver.get(page.as_uri())
    found: dict[str, Any] = {"wrong": [], "height": 0}
    for screen in SCREENS:
        seen = looks(driver, screen)
        found["wrong"] += [f"{screen}: {one}" for one in seen["wrong"]]
        found["height"] = max(found["height"], seen["height"]) if screen[0] == 1440 else found["height"]
    found["wrong"] += complaints(driver)
    return found


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with browser(tmp_path_factory.mktemp("profile")) as found:
        yield found


def test_pages_fit_their_screens(driver: Any, tmp_path: Path) -> None:
    """Nothing is cut, texts have contrast, pages are small, and neighbouring parameters have colours of their own."""
    short = ("--replications", "2", "--set", "schedule.turns=3")
    quick = made(tmp_path, "quick", "run", QUICKSTART, *short)
    six, many = swept(tmp_path, "six", "[0.5, 1, 2]", ENVIRONMENTS), swept(tmp_path, "many", MANY)
    found = {page.stem: shown(driver, page) for page in (quick, six, many)}
    assert {name: one["wrong"] for name, one in found.items()} == {"quick": [], "six": [], "many": []}
    assert found["six"]["height"] <= 5_000
    driver.get(six.as_uri())
    for screen in SCREENS[:2]:
        looks(driver, screen)
        lightness = sorted(driver.execute_script(SHADES))
        steps = [b - a for a, b in itertools.pairwise(lightness) if b - a > 0.01]
        assert len(steps) == 2
        assert min(steps) > LIGHTNESS
    for page, most in ((quick, 0.6e6), (six, 2.5e6), (many, 1.5e6)):
        text = page.read_text(encoding="utf-8")
        events = sum(len(part.partition("</script>")[0]) for part in text.split('class="diagram-data"')[1:])
        assert len(text) - events <= most
        assert len(text) <= 3e6
    assert packing.MAX_BYTES + 1.3e6 <= 3e6, "with events of many replications, quickstart has at most 3 MB"
