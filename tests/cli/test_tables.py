"""Tables on terminals of any width: nothing is cut."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coband.simulator.terminal import tables

HEADER = ["label", "n", "regret", "uplink", "simulated time"]
ROWS = [
    ["Approx-Dis", "6", "108 ± 40", "1,638,078 ± 373,485", "509 ± 29"],
    ["A label of many words that is long", "6", "63 ± 20", "12,000", "347 ± 30"],
]


def shown(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    columns: int,
    header: list[str],
    rows: list[list[str]],
    left: int = 1,
    keys: int | None = None,
) -> str:
    with monkeypatch.context() as patch:
        patch.setattr("sys.stdout.isatty", lambda: True)
        patch.setenv("COLUMNS", str(columns))
        tables.show(header, rows, left, keys)
    return re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out)


@pytest.mark.parametrize(("columns", "tables_"), [(120, 1), (92, 1), (91, 2), (80, 2), (70, 3), (45, 0), (20, 0)])
def test_nothing_is_cut(
    columns: int, tables_: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = shown(capsys, monkeypatch, columns, HEADER, ROWS)
    assert text.count("┏") == tables_
    for cell in (cell for row in ROWS for cell in row):
        assert cell in text
    assert "…" not in text
    assert columns < 40 or max(map(len, text.splitlines())) <= columns


def test_each_part_names_its_rows(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    text = shown(capsys, monkeypatch, 80, HEADER, ROWS)
    assert text.count("A label of many words that is long") == 2
    assert [line.split("┃")[1].strip() for line in text.splitlines() if "┃ label" in line] == ["label"] * 2


def test_blocks(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert shown(capsys, monkeypatch, 45, HEADER, ROWS).splitlines()[:6] == [
        "Approx-Dis",
        "  n               6",
        "  regret          108 ± 40",
        "  uplink          1,638,078 ± 373,485",
        "  simulated time  509 ± 29",
        "A label of many words that is long",
    ]


def test_sentences_break_between_words(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    sentence = "Alone has the lowest mean, but is not told apart from Async."
    text = shown(capsys, monkeypatch, 60, ["measure", "in words"], [["simulated time", sentence]], left=2, keys=1)
    assert max(map(len, text.splitlines())) <= 60
    cells = [line.split("│")[2].strip() for line in text.splitlines() if line.startswith("│")]
    assert len(cells) == 2
    assert " ".join(cells) == sentence


@given(
    st.integers(30, 200),
    st.lists(st.lists(st.text("ab c,±-", max_size=30), min_size=4, max_size=4), min_size=1, max_size=4),
    st.integers(1, 3),
)
def test_any_table_on_any_terminal(columns: int, rows: list[list[str]], left: int) -> None:
    from io import StringIO

    from rich.console import Console

    from coband.simulator.terminal.tables import framed

    out = StringIO()
    console = Console(file=out, width=columns, force_terminal=False)
    for part in framed(["first", "second", "third", "fourth"], rows, left, 1, columns):
        console.print(part, soft_wrap=isinstance(part, str), markup=False, highlight=False)
    text = out.getvalue()
    words = [word for row in rows for cell in row for word in cell.split()]
    assert all(word in text for word in words)
    if "┏" in text:
        assert max(map(len, text.splitlines())) <= columns


def test_without_colours_there_are_no_codes(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("NO_COLOR", "1")
    tables.show(HEADER, ROWS)
    assert "\x1b" not in capsys.readouterr().out
