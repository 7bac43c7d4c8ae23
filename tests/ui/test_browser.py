"""The pages in a real browser, with 200 runs and one that goes on."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.analysis.report.browser import PATIENCE, SCREENS, browser, complaints, looks, requests
from tests.experiments.runs.fake_runs import perform, started, wait_until
from tests.ui.made import Visitor, changed, copies, serving

BAD = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("runs")
    for run in copies(found, 199)[:3]:
        changed(run, scenario=BAD)
    return found


@pytest.fixture(scope="module")
def visitor(root: Path) -> Iterator[Visitor]:
    with serving(root) as found:
        yield found


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with browser(tmp_path_factory.mktemp("profile")) as found:
        yield found


@pytest.fixture
def opened(driver: Any, visitor: Visitor) -> Any:
    """The list of runs, in a window of 1440 x 900."""
    size(driver, 1440, 900)
    driver.get(visitor.gate.address)
    waits(driver, lambda: rows(driver))
    return driver


def waits(driver: Any, condition: Any) -> Any:
    from selenium.webdriver.support.ui import WebDriverWait

    return WebDriverWait(driver, PATIENCE, 0.1).until(lambda _: condition())


def size(driver: Any, width: int, height: int) -> None:
    mobile = width < 500
    metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": mobile}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)


def rows(driver: Any) -> list[str]:
    found: list[str] = driver.execute_script(
        "return [...document.querySelectorAll('#list tbody tr')].map(r => r.innerText)"
    )
    return found


def one(driver: Any, selector: str) -> Any:
    return driver.find_element("css selector", selector)


def test_the_token_leaves_the_address(opened: Any, visitor: Visitor) -> None:
    assert opened.current_url == f"http://127.0.0.1:{visitor.gate.port}/"
    assert len(rows(opened)) == 199
    assert opened.execute_script("return document.cookie") == "", "no script sees the cookie"
    asked = [address for address in requests(opened) if address.startswith("http")]
    assert len(asked) >= 5
    assert all(address.startswith(opened.current_url) for address in asked), "nothing comes from elsewhere"
    assert complaints(opened) == []


def test_it_says_when_the_server_has_gone(driver: Any, tmp_path: Path) -> None:
    changed(copies(tmp_path, 1)[0], status="running")
    with serving(tmp_path) as visitor:
        driver.get(visitor.gate.address)
        waits(driver, lambda: rows(driver))
        note = one(driver, "#gone")
        assert not note.is_displayed()
    waits(driver, note.is_displayed)
    assert note.text.startswith("No answer: coband ui has ended")
    complaints(driver)  # that of the browser, that nobody answers


def test_what_is_open_stays_open_while_a_run_grows_and_a_deleted_run_is_missed(driver: Any, tmp_path: Path) -> None:
    perform(tmp_path / "on", replications=2, mischief=((1, "error"),), labels=("Often",))
    changed(tmp_path / "on", status="running")
    with serving(tmp_path) as visitor:
        driver.get(visitor.gate.address)
        waits(driver, lambda: rows(driver))
        driver.get(f"{driver.current_url}run?id={visitor.id('on')}")
        one(driver, "summary").click()
        assert looks(driver, SCREENS[2])["wrong"] == []
        changed(tmp_path / "on", status="running", jobs=9)
        waits(driver, lambda: "1 of 9 jobs" in one(driver, "#list").text)
        assert one(driver, "details pre").is_displayed()
        assert driver.switch_to.active_element == one(driver, "summary")
        assert looks(driver, SCREENS[2])["wrong"] == [], "tables still say that they scroll"
        shutil.rmtree(tmp_path / "on")
        waits(driver, one(driver, "#gone").is_displayed)
        assert one(driver, "#gone").text.startswith("There is no such run any more")
        driver.get("about:blank")
    complaints(driver)  # that of the browser, that the page is not there


def test_names_are_texts(opened: Any) -> None:
    assert any(BAD in row for row in rows(opened))
    assert opened.find_elements("css selector", "#list img") == []


def test_it_filters_while_one_types(opened: Any) -> None:
    from selenium.webdriver.common.keys import Keys

    one(opened, "body").send_keys("/")
    field = opened.switch_to.active_element
    assert field.get_attribute("name") == "words"
    field.send_keys("run-0123")
    waits(opened, lambda: len(rows(opened)) == 1)
    assert one(opened, "#count").text == "1 of 199 runs"
    assert opened.current_url.endswith("/?words=run-0123")
    assert opened.switch_to.active_element == field
    field.send_keys(Keys.CONTROL, "a")
    field.send_keys(Keys.DELETE)
    waits(opened, lambda: len(rows(opened)) == 199)
    one(opened, "select[name=scenario] option[value=study4]").click()
    waits(opened, lambda: len(rows(opened)) == 39)
    opened.refresh()
    waits(opened, lambda: len(rows(opened)) == 39)


def test_runs_chosen_by_two_searches_are_compared(opened: Any) -> None:
    from selenium.webdriver.common.keys import Keys

    assert not one(opened, "button[formaction='/compare']").is_enabled()
    for number in ("0100", "0150"):
        field = one(opened, "input[name=words]")
        field.clear()
        field.send_keys(f"run-{number}")
        waits(opened, lambda number=number: [f"run-{number}" in row for row in rows(opened)] == [True])
        one(opened, "#list input[type=checkbox]").send_keys(Keys.SPACE)
    assert one(opened, "#picked").text == "Chosen runs: 2"
    assert one(opened, "button[formaction='/diff']").is_enabled()
    one(opened, "button[formaction='/compare']").send_keys(Keys.ENTER)
    waits(opened, lambda: one(opened, "h1").text == "Comparison")
    text = one(opened, "main").text
    assert "study0/run-0100" in text
    assert "study0/run-0150" in text
    assert "run-0100: Often" in text
    assert complaints(opened) == []


def test_a_report_opens_in_its_sandbox(opened: Any, visitor: Visitor) -> None:
    opened.get(f"{opened.current_url}report?id={visitor.id('study0/run-0100')}")
    waits(opened, lambda: one(opened, "h1").text == "study0" or one(opened, "h1").text)
    assert opened.execute_script("return window.origin") == "null"
    assert opened.find_elements("css selector", "figure svg")
    one(opened, "nav a[href='#communication']").click()
    assert opened.current_url.endswith("#communication")
    assert [one for one in complaints(opened) if "favicon" not in one] == []


def test_pages_fit_wide_and_narrow_screens_light_and_dark(opened: Any, visitor: Visitor) -> None:
    here, id, other = opened.current_url, visitor.id("study0/run-0100"), visitor.id("study1/run-0101")
    papers = set()
    for path in ("", f"run?id={id}", f"compare?id={id}&id={other}", f"diff?id={id}&id={other}", f"scenario?id={id}"):
        opened.get(f"{here}{path}")
        for screen in SCREENS:
            assert looks(opened, screen)["wrong"] == [], (path, screen)
            papers.add(opened.execute_script("return getComputedStyle(document.body).backgroundColor"))
    assert len(papers) == 2
    looks(opened, SCREENS[0])
    assert complaints(opened) == []


def test_the_list_is_used_with_the_keyboard(opened: Any) -> None:
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys

    names = []
    for _ in range(24):
        ActionChains(opened).send_keys(Keys.TAB).perform()
        element = opened.switch_to.active_element
        names.append(element.get_attribute("name") or element.text or element.get_attribute("href"))
        outline = opened.execute_script("return getComputedStyle(arguments[0]).outlineStyle", element)
        assert outline != "none", names[-1]
    for name in ("Skip to the content", "words", "status", "algorithm", "scenario", "since", "until", "id"):
        assert name in names


def test_a_run_that_goes_on_is_followed(opened: Any, root: Path) -> None:
    box = one(opened, "#list input[type=checkbox]")
    box.click()
    with started(root / "on", workers=1, mischief=((1, "endless"),), turns=5000, count=1, labels=("Often",)) as process:
        wait_until(lambda: (root / "on" / "results.json").is_file(), process)
        opened.refresh()
        row = waits(opened, lambda: next((row for row in rows(opened) if row.split()[0] == "on"), None))
        assert len(rows(opened)) == 200
        one(opened, "#list tbody tr:nth-child(3) input").click()
        waits(opened, lambda: "1 of 2" in next(row for row in rows(opened) if row.split()[0] == "on"))
        row = next(row for row in rows(opened) if row.split()[0] == "on")
        assert "running" in row
    waits(opened, lambda: "killed" in next(row for row in rows(opened) if row.split()[0] == "on"))
    assert one(opened, "#list tbody tr:nth-child(3) input").is_selected(), "what is chosen stays"
    assert complaints(opened) == []
