"""The diagram in a real browser: what it shows, and how it answers."""

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from coband.extensions.diagram import packing
from coband.simulator.analysis.comparison import analysis, data
from coband.simulator.analysis.report.page import page
from coband.simulator.analysis.report.palette import KINDS, SERIES, TIMES
from coband.simulator.experiments.store.store import open_run
from tests.analysis.report.browser import PATIENCE, browser, complaints, requests
from tests.analysis.report.made import run
from tests.experiments.runs.fake_runs import perform

LEFT, RIGHT = 70, 8  # margins of the plot, in pixels
DOWN, UP, RIGHT_KEY, HOME, ESCAPE = "\ue015", "\ue013", "\ue014", "\ue011", "\ue00c"


def write(path: Path, file: Path) -> Path:
    with open_run(path) as opened:
        file.write_text(page(analysis.Analysis(data.load([opened]))), encoding="utf-8")
    return file


def opened(driver: Any, file: Path) -> Any:
    from selenium.webdriver.support.ui import WebDriverWait

    driver.get(file.as_uri())
    WebDriverWait(driver, PATIENCE).until(lambda _: ready(driver))
    driver.execute_script("document.querySelector('#diagram .plot').scrollIntoView({block: 'center'})")
    return driver.find_element("css selector", "#diagram .plot")


def ready(driver: Any) -> str | None:
    return driver.execute_script("return document.getElementById('diagram')?.dataset.ready")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run(tmp_path_factory.mktemp("browser") / "tiny", "--replications", "2")


@pytest.fixture(scope="module")
def file(made: Path) -> Path:
    return write(made, made / "report.html")


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with browser(tmp_path_factory.mktemp("profile")) as found:
        yield found


@pytest.fixture
def plot(driver: Any, file: Path) -> Any:
    return opened(driver, file)


def press(driver: Any, plot: Any, *keys: str) -> None:
    driver.execute_script("arguments[0].focus()", plot)
    plot.send_keys(*keys)


def text(driver: Any, part: str) -> str:
    return driver.find_element("css selector", f"#diagram .{part}").text


def shown(driver: Any) -> tuple[float, float, int]:
    """The view, and the number of copies in it."""
    numbers = re.match(r"Simulated time (\S+) to (\S+) of \S+: (\d+) copies", text(driver, "status"))
    assert numbers
    return float(numbers[1]), float(numbers[2]), int(numbers[3])


def pointed(driver: Any, plot: Any, across: float, down: float) -> Any:
    """Actions with the pointer at a place of the plot."""
    from selenium.webdriver.common.action_chains import ActionChains

    size = plot.size
    place = round(across - size["width"] / 2), round(down - size["height"] / 2)
    return ActionChains(driver, duration=0).move_to_element_with_offset(plot, *place)


def first_upload(made: Path) -> tuple[int, float, float, int]:
    """(event, sent, arrived, agent) of the first message from an agent to the server that arrived after some time."""
    query = """SELECT d.seq, s.time, d.time, d.peer FROM events d JOIN events s ON s.job = d.job AND s.seq = d.cause
        WHERE d.job = 0 AND d.event = (SELECT code FROM event_names WHERE name = 'deliver') AND d.node = -1
        ORDER BY d.seq"""
    with closing(sqlite3.connect(made / "run.sqlite")) as connection:
        seq, sent, arrived, agent = connection.execute(query).fetchone()
    return seq, sent, arrived, agent


def test_it_opens_without_an_error_and_asks_for_nothing(driver: Any, file: Path) -> None:
    requests(driver), complaints(driver)
    opened(driver, file)
    assert complaints(driver) == []
    asked = [one for one in requests(driver) if not one.startswith(("data:", "chrome:"))]  # Chromium's own first page
    assert asked == [file.as_uri()]
    lanes = [one.text for one in driver.find_elements("css selector", "#diagram .plot text")]
    assert lanes == ["server", *(f"agent {number}" for number in range(5))]
    start, _, copies = shown(driver)
    assert start == 0
    assert copies > 20
    for what in ("turn", "wait", "message", "lost", "mark"):
        assert driver.find_elements("css selector", f"#diagram .plot .{what}"), what


def test_it_zooms_and_moves(driver: Any, plot: Any) -> None:
    press(driver, plot, HOME)
    start, end, everything = shown(driver)
    press(driver, plot, "+")
    closer = shown(driver)
    assert closer[1] - closer[0] == pytest.approx((end - start) / 2, rel=1e-4)
    assert closer[2] < everything
    press(driver, plot, RIGHT_KEY)
    later = shown(driver)
    assert later[0] > closer[0]
    pointed(driver, plot, 300, 20).click_and_hold().move_by_offset(100, 0).release().perform()
    assert closer[0] < shown(driver)[0] < later[0]
    press(driver, plot, HOME)
    assert shown(driver) == (start, end, everything)
    driver.execute_script("arguments[0].dispatchEvent(new WheelEvent('wheel', {deltaY: -1, cancelable: true}))", plot)
    assert shown(driver)[1] - shown(driver)[0] == pytest.approx(0.8 * (end - start), rel=1e-4)


def test_a_click_shows_the_event_and_its_causes(driver: Any, plot: Any, made: Path) -> None:
    seq, sent, arrived, agent = first_upload(made)
    start, end, _ = shown(driver)
    lane = plot.size["height"] / 6
    # Half a lane from the agent's lane towards the server's, where no lane is.
    time, level = sent + 0.5 / (agent + 1) * (arrived - sent), lane * (agent + 1)
    across = LEFT + (time - start) / (end - start) * (plot.size["width"] - LEFT - RIGHT)
    pointed(driver, plot, across, level).click().perform()
    details = text(driver, "details")
    assert details.startswith(f"Event {seq}: deliver at server from agent {agent} (")
    assert details.splitlines()[1].startswith("time ")
    assert f"coband trace why RUN {seq} --label " in details
    assert driver.find_element("css selector", "#diagram .chain").get_attribute("d")
    driver.find_element("css selector", "#diagram li button").click()
    assert f": send at agent {agent} to server" in text(driver, "details").splitlines()[0]


def test_events_are_chosen_by_keys_and_zooming_keeps_them_in_view(driver: Any, plot: Any) -> None:
    assert text(driver, "details").startswith("Choose an event")
    press(driver, plot, *DOWN * 5, UP)
    assert text(driver, "details").startswith("Event 3: ")
    for _ in range(8):
        press(driver, plot, "+")
        assert driver.find_element("css selector", "#diagram .chosen").get_attribute("d")
    press(driver, plot, ESCAPE)
    assert text(driver, "details").startswith("Choose an event")


def test_the_replication_chosen_last_is_shown(driver: Any, plot: Any) -> None:
    """Also where the one before takes longer to be read."""
    options = [one.text for one in driver.find_elements("css selector", "#diagram option")]
    assert options[:2] == ["Sync, replication 0", "Sync, replication 1"]
    assert len(options) == 6
    driver.execute_script(
        """const own = Response.prototype.arrayBuffer;
        let slow = true;
        Response.prototype.arrayBuffer = async function () {
            if (slow) { slow = false; await new Promise((done) => setTimeout(done, 300)); }
            return own.call(this);
        };
        const choice = document.querySelector("#diagram select");
        for (const value of ["1", "2"]) { choice.value = value; choice.dispatchEvent(new Event("change")); }"""
    )
    driver.execute_async_script("setTimeout(arguments[0], 600)")
    assert ready(driver) == options[2]


def test_of_a_crowd_a_part_is_drawn_and_it_says_so(driver: Any, tmp_path: Path) -> None:
    perform(tmp_path / "crowd", replications=1, count=20, turns=20, labels=("Often",))
    plot = opened(driver, write(tmp_path / "crowd", tmp_path / "crowd.html"))
    press(driver, plot, HOME)
    assert shown(driver)[2] > 3_000
    assert "About 1000 of them are drawn; zoom in for more." in text(driver, "status")
    while "zoom in" in text(driver, "status"):
        press(driver, plot, "+")
    assert 0 < shown(driver)[2] <= 1_000


def test_where_a_long_run_is_cut_it_says_so(
    driver: Any, made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packing, "MAX_EVENTS", 100)
    opened(driver, write(made, tmp_path / "cut.html"))
    assert "The page holds the first 100 of" in text(driver, "status")


def test_the_list_of_sections_does_not_cover_the_diagram(driver: Any, plot: Any) -> None:
    covered = driver.execute_script(
        "arguments[0].scrollIntoView({block: 'start'}); window.scrollBy(0, 5);"
        "const nav = document.querySelector('nav').getBoundingClientRect(), box = arguments[0].getBoundingClientRect();"
        "return nav.bottom > Math.max(box.top, 0)",
        plot,
    )
    assert covered is False


def test_the_colours_of_algorithms_kinds_and_states_differ() -> None:
    assert not set(SERIES) & set(KINDS)
    assert not set(SERIES + KINDS) & set(TIMES.values())
    assert len(set(SERIES + KINDS + tuple(TIMES.values()))) == len(SERIES) + len(KINDS) + len(TIMES)


def test_it_has_a_dark_form(driver: Any, plot: Any) -> None:
    def colours() -> list[str]:
        return driver.execute_script(
            "return [[document.body, 'backgroundColor'], [document.querySelector('#diagram .mark'), 'stroke']]"
            ".map(([one, name]) => getComputedStyle(one)[name])"
        )

    light = colours()
    dark = {"features": [{"name": "prefers-color-scheme", "value": "dark"}]}
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", dark)
    try:
        assert light == ["rgb(255, 255, 255)", "rgb(28, 28, 30)"]
        assert colours() == ["rgb(22, 23, 26)", "rgb(233, 233, 236)"]
    finally:
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


@pytest.mark.slow
def test_a_hundred_thousand_messages_open_at_once(driver: Any, tmp_path: Path) -> None:
    perform(tmp_path / "large", replications=1, count=50, turns=80, labels=("Often",))
    plot = opened(driver, write(tmp_path / "large", tmp_path / "large.html"))
    milliseconds = driver.execute_script("return performance.now()")
    assert milliseconds < 3_000, f"it took {milliseconds:.0f} ms"
    press(driver, plot, HOME)
    assert shown(driver)[2] > 100_000
