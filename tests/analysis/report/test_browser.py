"""The report in a real browser."""

import io
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import coband
from coband.simulator.analysis.comparison import analysis, data
from coband.simulator.analysis.diagram import packing
from coband.simulator.analysis.report.page import page
from coband.simulator.analysis.report.palette import KINDS, SERIES, TIMES
from coband.simulator.experiments.store.store import open_run
from tests.analysis.report.browser import PATIENCE, browser, complaints, requests
from tests.analysis.report.made import run
from tests.experiments.runs.fake_runs import perform

LEFT, RIGHT, TOP, BOTTOM = 76, 8, 54, 36  # margins of the diagram, in pixels


def write(path: Path, file: Path) -> Path:
    with open_run(path) as opened:
        file.write_text(page(analysis.Analysis(data.load([opened]))), encoding="utf-8")
    return file


def opened(driver: Any, file: Path) -> Any:
    from selenium.webdriver.support.ui import WebDriverWait

    driver.get(file.as_uri())
    WebDriverWait(driver, PATIENCE).until(lambda _: ready(driver))
    return driver.find_element("css selector", "canvas")


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
def canvas(driver: Any, file: Path) -> Any:
    return opened(driver, file)


def press(driver: Any, *keys: str) -> None:
    from selenium.webdriver.common.action_chains import ActionChains

    ActionChains(driver).send_keys(*keys).perform()
    settle(driver)


def settle(driver: Any) -> None:
    driver.execute_async_script("const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(done));")


def focus(driver: Any, canvas: Any) -> None:
    driver.execute_script("arguments[0].focus()", canvas)


def view(canvas: Any) -> tuple[float, float]:
    start, end = map(float, canvas.get_attribute("data-view").split())
    return start, end


def words(driver: Any) -> str:
    return driver.find_element("id", "diagram-details").text


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
    canvas = opened(driver, file)
    assert complaints(driver) == []
    asked = [one for one in requests(driver) if not one.startswith(("data:", "chrome:"))]  # Chromium's own first page
    assert asked == [file.as_uri()]
    assert int(canvas.get_attribute("data-messages")) > 20
    assert view(canvas)[0] == 0


def test_a_screenshot_is_not_blank(driver: Any, canvas: Any) -> None:
    from PIL import Image

    for element in (canvas, driver.find_element("css selector", "figure svg")):
        pixels = np.asarray(Image.open(io.BytesIO(element.screenshot_as_png)).convert("RGB"))
        assert len(np.unique(pixels.reshape(-1, 3), axis=0)) > 20
        assert pixels.std() > 5


def test_the_diagram_zooms_and_moves_by_keyboard(driver: Any, canvas: Any) -> None:
    focus(driver, canvas)
    whole = view(canvas)
    press(driver, "+")
    closer = view(canvas)
    assert closer[1] - closer[0] == pytest.approx((whole[1] - whole[0]) / 2)
    press(driver, "\ue014")  # right
    assert view(canvas)[0] > closer[0]
    press(driver, "\ue011")  # home
    assert view(canvas) == whole


def test_the_diagram_answers_keys(driver: Any, canvas: Any) -> None:
    focus(driver, canvas)
    assert "Choose an event in the diagram" in words(driver)
    press(driver, "\ue015")  # down: the first message
    first = words(driver)
    assert "deliver at" in first
    assert "Because of" in first
    press(driver, "c")
    assert "send at" in words(driver).splitlines()[0]
    press(driver, "\ue015")
    press(driver, "\ue00c")  # escape
    assert "Choose an event" in words(driver)


def test_a_click_shows_the_event_and_its_cause(driver: Any, canvas: Any, made: Path) -> None:
    from selenium.webdriver.common.action_chains import ActionChains

    seq, sent, arrived, agent = first_upload(made)
    focus(driver, canvas)
    start, end = view(canvas)
    size = canvas.size
    agents = 5
    row = (size["height"] - TOP - BOTTOM) / (agents + 1)
    # A quarter of the way from the agent's row to the server's.
    time, level = sent + 0.25 * (arrived - sent), TOP + row * (0.5 + 0.75 * (agent + 1))
    across = LEFT + (time - start) / (end - start) * (size["width"] - LEFT - RIGHT)
    ActionChains(driver).move_to_element_with_offset(
        canvas, round(across - size["width"] / 2), round(level - size["height"] / 2)
    ).click().perform()
    settle(driver)
    heading = words(driver).splitlines()[0]
    assert heading.startswith(f"Event {seq}: deliver at server")
    assert "Because of" in words(driver)
    driver.find_element("css selector", "#diagram-details li button").click()
    settle(driver)
    assert words(driver).splitlines()[0] != heading


def test_filters_and_the_table(driver: Any, canvas: Any) -> None:
    everything = int(canvas.get_attribute("data-messages"))
    driver.find_element("id", "diagram-nodes").send_keys("3")
    settle(driver)
    of_agent = int(canvas.get_attribute("data-messages"))
    assert 0 < of_agent < everything
    driver.find_element("css selector", "#diagram-table summary").click()
    settle(driver)
    rows = driver.find_elements("css selector", "#diagram-table tbody tr")
    assert len(rows) == min(of_agent, 100)
    assert all("agent 3" in row.text for row in rows[:10])
    driver.find_element("css selector", "#diagram-kinds input").click()
    settle(driver)
    assert int(canvas.get_attribute("data-messages")) < of_agent


def test_words_that_name_no_node_are_said(driver: Any, canvas: Any) -> None:
    everything, nodes = canvas.get_attribute("data-messages"), driver.find_element("id", "diagram-nodes")
    nodes.send_keys("agent 999, foo")
    settle(driver)
    status = driver.find_element("id", "diagram-status").text
    assert status.startswith(f"{everything} copies of messages, arrived or lost, from time 0 to ")
    assert "No nodes of this run: 999, foo." in status
    nodes.send_keys(", 3")
    settle(driver)
    assert 0 < int(canvas.get_attribute("data-messages")) < int(everything)


def test_the_replication_chosen_last_is_shown(driver: Any, canvas: Any) -> None:
    """Also where the one before takes longer to be read."""
    driver.execute_script(
        """const own = Response.prototype.arrayBuffer;
        let slow = true;
        Response.prototype.arrayBuffer = async function () {
            if (slow) { slow = false; await new Promise((done) => setTimeout(done, 500)); }
            return own.call(this);
        };
        const choice = document.getElementById("diagram-label");
        for (const value of ["1", "2"]) { choice.value = value; choice.dispatchEvent(new Event("change")); }"""
    )
    driver.execute_async_script("setTimeout(arguments[0], 1500)")
    shown = driver.find_element("css selector", "#diagram-label option:nth-child(3)").text
    assert ready(driver) == shown.replace(", replication", " /")


def test_zooming_keeps_the_chosen_event_in_view(driver: Any, canvas: Any, made: Path) -> None:
    _, _, arrived, _ = first_upload(made)
    focus(driver, canvas)
    press(driver, "\ue015")  # down: the first message
    for _ in range(8):
        press(driver, "+")
        start, end = view(canvas)
        assert start <= arrived <= end or start <= float(chosen_time(driver)) <= end
    driver.find_element("css selector", "button[data-do=in]").click()
    settle(driver)
    start, end = view(canvas)
    assert start <= float(chosen_time(driver)) <= end
    assert end - start < 0.01 * arrived + 0.5


def chosen_time(driver: Any) -> str:
    found: str = driver.find_element("css selector", "#diagram-details dd").text
    return found.replace(",", "")


def test_any_replication_can_be_chosen(driver: Any, canvas: Any) -> None:
    options = [one.text for one in driver.find_elements("css selector", "#diagram-label option")]
    assert options[:2] == ["Sync, replication 0", "Sync, replication 1"]
    assert len(options) == 6
    first, second = canvas.get_attribute("data-view"), "#diagram-label option:nth-child(2)"
    driver.find_element("css selector", second).click()
    driver.execute_async_script("setTimeout(arguments[0], 200)")
    settle(driver)
    assert canvas.get_attribute("data-view") != first
    assert ready(driver) == "Sync / 1"


def test_nothing_is_cut_on_a_narrow_screen(driver: Any, file: Path) -> None:
    narrow = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", narrow)
    try:
        opened(driver, file)
        wide = driver.execute_script("return document.documentElement.scrollWidth")
        rights = driver.execute_script(
            "return [...document.querySelectorAll('figcaption, caption span, h1, h2, p, dd')]"
            ".filter((one) => one.offsetParent).map((one) => one.getBoundingClientRect().right)"
        )
    finally:
        driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    assert wide <= 390
    assert max(rights) <= 390


def test_the_list_of_sections_does_not_cover_the_diagram(driver: Any, canvas: Any) -> None:
    covered = driver.execute_script(
        "arguments[0].scrollIntoView({block: 'start'}); window.scrollBy(0, 5);"
        "const nav = document.querySelector('nav').getBoundingClientRect(), box = arguments[0].getBoundingClientRect();"
        "return nav.bottom > Math.max(box.top, 0)",
        canvas,
    )
    assert covered is False


def test_the_colours_of_algorithms_kinds_and_states_differ() -> None:
    assert not set(SERIES) & set(KINDS)
    assert not set(SERIES + KINDS) & set(TIMES.values())
    assert len(set(SERIES + KINDS + tuple(TIMES.values()))) == len(SERIES) + len(KINDS) + len(TIMES)


def test_it_has_a_dark_form(driver: Any, canvas: Any) -> None:
    def background() -> str:
        return driver.execute_script("return getComputedStyle(document.body).backgroundColor")

    light = background()
    dark = {"features": [{"name": "prefers-color-scheme", "value": "dark"}]}
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", dark)
    try:
        assert (light, background()) == ("rgb(255, 255, 255)", "rgb(22, 23, 26)")
    finally:
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def test_a_crowd_is_shades_and_a_few_are_lines(driver: Any, tmp_path: Path) -> None:
    perform(tmp_path / "crowd", replications=1, count=20, turns=20, labels=("Often",))
    canvas = opened(driver, write(tmp_path / "crowd", tmp_path / "crowd.html"))
    assert int(canvas.get_attribute("data-messages")) > 3_000
    assert canvas.get_attribute("data-detail") == "shades"
    assert view(canvas)[0] == 0
    focus(driver, canvas)
    while canvas.get_attribute("data-detail") == "shades":
        before = int(canvas.get_attribute("data-messages"))
        press(driver, "+")
        assert int(canvas.get_attribute("data-messages")) <= before
    assert 0 < int(canvas.get_attribute("data-messages")) <= 3_000


def test_where_a_long_run_is_cut_the_picture_says_so(
    driver: Any, made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packing, "MAX_EVENTS", 100)
    canvas = opened(driver, write(made, tmp_path / "cut.html"))
    status = driver.find_element("id", "diagram-status").text
    assert "The page holds the first 100 of" in status
    end = view(canvas)[1]
    last = driver.execute_script("return Number(document.querySelector('canvas').dataset.known)")
    assert 0 < last < end, "the axis runs to the end of the run, and what is not known is hatched"


def test_copies_that_come_after_the_end_of_the_run_are_explained(driver: Any, tmp_path: Path) -> None:
    late = {"network.latency": {"kind": "exponential", "rate": 0.0005}, "network.duplicate": 0.9, "agents.count": 5}
    few = {"schedule.interval": 1_000, "schedule.turns": 10, "replications": 1}
    coband.run("quickstart", set=late | few, only="Async", out=tmp_path / "late", workers=1, progress=False)
    with open_run(tmp_path / "late") as stored:
        end = stored.results()["results"][0]["mean"]["simulated_time"]
    canvas = opened(driver, write(tmp_path / "late", tmp_path / "late.html"))
    status = driver.find_element("id", "diagram-status").text
    assert view(canvas)[1] > end
    last, over = (f"{float(f'{time:.4e}'):,g}" for time in (view(canvas)[1], end))
    assert f" to {last}. The last turn or first arrival is at time {over}, the run's simulated time; later" in status
    assert "," in over


@pytest.mark.slow
def test_a_hundred_thousand_messages_open_at_once(driver: Any, tmp_path: Path) -> None:
    perform(tmp_path / "large", replications=1, count=50, turns=80, labels=("Often",))
    file = write(tmp_path / "large", tmp_path / "large.html")
    canvas = opened(driver, file)
    assert int(canvas.get_attribute("data-messages")) > 100_000
    milliseconds = driver.execute_script("return performance.now()")
    assert milliseconds < 3_000, f"it took {milliseconds:.0f} ms"
