"""The results of coband's own algorithms: the page is that of the file, and a sample of it runs again as before."""

from __future__ import annotations

from pathlib import Path

from coband.simulator.analysis.suite import verification
from coband.simulator.analysis.suite.page import page
from coband.simulator.analysis.suite.submission import read
from coband.simulator.analysis.suite.suites import suite
from coband.simulator.experiments.runs.workers import InProcess
from tests.versions import at_least

FOLDER = Path(__file__).parents[2] / "docs" / "suite"
FILE = FOLDER / "core-1-quick.json"


def test_the_page_is_that_of_the_results() -> None:
    assert (FOLDER / "core-1.html").read_text(encoding="utf-8") == page(suite("core-1"), [read(FILE)])


def test_a_sample_of_the_results_runs_again(tmp_path: Path) -> None:
    found, submission = suite("core-1"), read(FILE)
    assert list(verification.contradictions(found, submission)) == []
    checked = verification.verify(found, submission, 6, tmp_path, InProcess(), seed=1)
    differing = [one for one in checked if not one.same]
    assert len(checked) == 6
    assert not differing or not at_least("numpy", "2.4"), "other libraries have other last bits"
