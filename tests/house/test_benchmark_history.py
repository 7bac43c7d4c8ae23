"""Ratios on file: what counts as a fall, and what the page shows."""

from pathlib import Path

from benchmarks import history

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
        history.record({"case": ratio}, "0.1.0", file)
    found = history.read(file)
    assert history.of_case(found, "case") == [2.0, 4.0]
    text = history.page(found, {"case": "what it is", "never": "measured"})
    assert "| case | 4 | 4 | ▅█ | what it is |" in text
    assert "never" not in text


def test_the_page_is_that_of_the_file() -> None:
    from benchmarks.__main__ import CASES

    what = {name: text for name, (_, text) in CASES.items()}
    assert history.PAGE.read_text(encoding="utf-8") == history.page(history.read(), what)
