"""The figures of hunts add up, and a hunt goes on where the last one ended."""

import json
from pathlib import Path

import pytest

from tests.extensions.conformance.hunt import __main__ as program
from tests.extensions.conformance.hunt.hunted import HUNTED


def test_a_hunt_goes_on_after_the_last_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two families of which one has been hunted; the file has what is done, and no gap."""
    monkeypatch.setattr(program, "FIGURES", tmp_path / "hunts.json")
    monkeypatch.setattr(program, "FOUND", tmp_path / "found")
    monkeypatch.setattr(program, "HUNTED", {name: HUNTED[name] for name in ("graph", "exploration")})
    last = {"code": "a", "date": "2026-11-23", "families": {"graph": {"first": 0, "last": 2, "schedules": 2}}}
    assert program.hunt([last], 3, 60.0, 1) == 0
    first, second = json.loads((tmp_path / "hunts.json").read_text())
    assert first == last
    spans = {name: (one["first"], one["last"], one["schedules"]) for name, one in second["families"].items()}
    assert spans == {"graph": (2, 3, 1), "exploration": (0, 3, 3)}
    assert second["families"]["exploration"]["runs"] == 3 * len(HUNTED["exploration"]["algorithms"])
    assert second["families"]["exploration"]["impatient"] == 1


def test_the_page_has_the_figures_of_the_file() -> None:
    entries = json.loads(program.FIGURES.read_text(encoding="utf-8"))
    assert "\n".join(program.table(entries)) in program.PAGE.read_text(encoding="utf-8")
    for name in HUNTED:
        parts = [entry["families"][name] for entry in entries if name in entry["families"]]
        assert sum(one["schedules"] for one in parts) == sum(one["last"] - one["first"] for one in parts)
