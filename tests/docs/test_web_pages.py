"""The documentation as web pages: Sphinx builds it without a warning, and browsers read it without a server."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.test_pages import DOCS, PAGES

SPHINX = "import gc, sys; from sphinx.cmd.build import main; gc.disable(); sys.exit(main(sys.argv[1:]))"
"""Python looks for cycles a sixth of the time; all objects of a build fit into less than a gigabyte."""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip(
        "furo", reason="the documentation is built with Sphinx, furo and myst: pip install -e '.[docs]'"
    )
    html = tmp_path_factory.mktemp("docs") / "html"
    words = ["-q", "-W", "--keep-going", "-t", "one_navigation", "-b", "html", str(DOCS), str(html)]
    done = subprocess.run([sys.executable, "-c", SPHINX, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return html


def test_every_page_is_in_the_table_of_contents_and_every_link_leads_somewhere(built: Path) -> None:
    assert "fed_ucb1" in (built / "tutorial.html").read_text(encoding="utf-8")


def test_the_reference_has_sections_of_commands_keys_kinds_and_algorithms(built: Path) -> None:
    assert 'id="coband-run"' in (built / "commands.html").read_text(encoding="utf-8")
    for page, name in (("keys/network", "network-topology"), ("kinds/agents", "pareto")):
        text = (built / "reference" / f"{page}.html").read_text(encoding="utf-8")
        assert f'id="{name}"' in text


LOADED = re.compile(
    r"<(?:script|img|iframe)[^>]*\ssrc=\"([^\"]+)\"|<link[^>]*rel=\"(?:stylesheet|icon|preload)\"[^>]*href=\"([^\"]+)\""
)


def test_pages_load_nothing_from_elsewhere(built: Path) -> None:
    pages = sorted(built.rglob("*.html"))
    assert len(pages) > 100
    loaded = {one or other for page in pages for one, other in LOADED.findall(page.read_text(encoding="utf-8"))}
    styles = "".join(style.read_text(encoding="utf-8") for style in built.rglob("*.css"))
    assert loaded
    assert [address for address in loaded if "//" in address] == []
    assert re.findall(r"(?:@import|url\()\s*[\"']?(?:https?:)?//[^)]*", styles) == []


def test_the_search_finds_keys_without_a_server(built: Path, tmp_path: Path) -> None:
    """In a real browser, from files: a key that no written page names is found in its own section."""
    from tests.analysis.report.browser import PATIENCE, browser, complaints

    written = " ".join(page.read_text(encoding="utf-8") for page in PAGES)
    assert "train_until" not in written
    with browser(tmp_path) as driver:
        from selenium.webdriver.support.ui import WebDriverWait

        for query, page in (("train_until", "keys/algorithms"), ("erdos_renyi", "kinds/network")):
            driver.get(f"{(built / 'search.html').as_uri()}?q={query}")
            WebDriverWait(driver, PATIENCE).until(
                lambda _: driver.execute_script("return document.querySelectorAll('#search-results li a').length")
            )
            found = driver.execute_script(
                "return [...document.querySelectorAll('#search-results li a')].map(a => a.href)"
            )
            assert any(re.split("[?#]", address)[0].endswith(f"/{page}.html") for address in found), found
        assert complaints(driver) == []
