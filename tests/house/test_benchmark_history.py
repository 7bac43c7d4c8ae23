"""Measurements on file: what counts as a fall or a rise, and what the page shows."""

from pathlib import Path
from unittest.mock import Mock

import pytest

from benchmarks import history, instructions

BEFORE: history.History = [
    {"date": "2026-01-01", "version": "1", "ratios": {"case": ratio, "other": 1.0}} for ratio in (50.0, 9.0, 10.0, 11.0)
]


def test_a_fall_is_measured_again_before_it_counts() -> None:
    assert history.reference(BEFORE, "case") == 10.0
    assert history.held("case", 8.6, lambda: 1 / 0, BEFORE) == (8.6, True)
    tries = iter([8.0, 8.7])
    assert history.held("case", 7.0, lambda: next(tries), BEFORE) == (8.7, True)
    tries = iter([8.0, 8.4, 100.0])
    assert history.held("case", 7.0, lambda: next(tries), BEFORE) == (8.4, False)
    assert history.held("new", 0.1, lambda: 1 / 0, BEFORE) == (0.1, True)


def test_measurements_are_added_and_shown(tmp_path: Path) -> None:
    file = tmp_path / "history.json"
    for ratio in (2.0, 4.0):
        history.record({"case": ratio}, "0.1.0", {"pull": 1e5 / ratio}, file)
    found = history.read(file)
    assert history.of_case(found, "case") == [2.0, 4.0]
    assert history.risen({"pull": 25_700.0, "new": 1e9}, found) == []
    assert history.risen({"pull": 25_800.0}, found) == ["pull"]
    text = history.page(found, {"case": "what it is", "never": "measured"}, {"pull": "a pull"})
    assert "| pull | 25,000 | 50,000 | a pull |" in text
    assert "| case | 4 | 4 | ▅█ | what it is |" in text
    assert "never" not in text


def test_the_page_is_that_of_the_file() -> None:
    from benchmarks.__main__ import page

    assert history.PAGE.read_text(encoding="utf-8") == page()


def test_without_valgrind_a_sentence_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(instructions.shutil, "which", lambda program: None)
    assert instructions.counted(["pull"]) == {}
    assert capsys.readouterr().out == f"{instructions.MISSING}\n"


def test_a_count_is_the_difference_of_two_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    said = "".join(f"==1== Collected : {count}\n" for count in (7_000_000, 1_000_000, 9_000_000))
    monkeypatch.setattr(instructions.shutil, "which", lambda program: program)
    monkeypatch.setattr(instructions.subprocess, "run", lambda *command, **how: Mock(stderr=said))
    assert instructions.counted(["exchange"]) == {"exchange": 6_000_000 / 3000 / 2}
