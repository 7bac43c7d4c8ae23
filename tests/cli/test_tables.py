"""Tables on terminals of any width: nothing is cut."""

import re

import pytest

from coband.simulator.terminal import tables

HEADER = ["label", "n", "regret", "uplink", "simulated time"]
ROWS = [
    ["Approx-Dis", "6", "108 ± 40", "1,638,078 ± 373,485", "509 ± 29"],
    ["A label of many words that is long", "6", "63 ± 20", "12,000", "347 ± 30"],
]


@pytest.mark.parametrize(("columns", "framed"), [(120, True), (92, True), (91, False), (45, False), (20, False)])
def test_nothing_is_cut(
    columns: int, framed: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", str(columns))
    tables.show(HEADER, ROWS)
    text = re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out)
    assert ("┏" in text) == framed
    for cell in (cell for row in ROWS for cell in row):
        assert cell in text
    assert "…" not in text
    assert framed == (max(map(len, text.splitlines())) <= columns and framed)


def test_without_colours_there_are_no_codes(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("NO_COLOR", "1")
    tables.show(HEADER, ROWS)
    assert "\x1b" not in capsys.readouterr().out
