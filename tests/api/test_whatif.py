"""`Run.whatif` and `Run.split`."""

from __future__ import annotations

from pathlib import Path

import pytest

import coband


def test_what_a_value_has_cost(done: coband.Run, tmp_path: Path) -> None:
    found = done.whatif(set={"network.latency": 0}, label="Async", workers=1, out=tmp_path / "out", progress=False)
    (regret,) = [row for row in found.changes if row["number"] == "regret"]
    rows = [row for row in done.results if row["label"] == "Async"]
    assert regret["stored"] == pytest.approx(sum(row["regret"] for row in rows) / 2)
    assert regret["difference"] == pytest.approx(regret["changed"] - regret["stored"])
    assert (found.same, coband.load(found.path).labels) == (False, ["Async [network.latency=0]"])
    assert set(found.first_differences["side"]) <= {"stored", "changed"}
    assert "regret" in repr(found)
    assert "<table" in found._repr_html_()


def test_nothing_changes(done: coband.Run, tmp_path: Path) -> None:
    found = done.whatif(agents={1: {"speed": 1}}, workers=1, out=tmp_path / "out", progress=False)
    assert (found.same, len(found.first_differences)) == (True, 0)
    assert not found.changes["difference"].any()


def test_a_lost_message(done: coband.Run, tmp_path: Path) -> None:
    (event, *_) = [row["seq"] for row in done.events(event="send", label="Async", replication=1)]
    lost = done.whatif(drop=event, label="Async", replication=1, workers=1, out=tmp_path / "out", progress=False)
    late = done.whatif(
        delay={event: 2.0}, label="Async", replication=1, workers=1, out=tmp_path / "late", progress=False
    )
    assert {row["number"]: row["difference"] for row in lost.changes}["dropped"] == 1
    assert {row["number"]: row["difference"] for row in late.changes}["dropped"] == 0


def test_split(done: coband.Run, tmp_path: Path) -> None:
    found = done.split(label="Async", workers=1, out=tmp_path / "out", progress=False)
    assert [row["owed_to"] for row in found.shares][::4] == ["lost messages", "the rest"]
    owed = found.shares["owed"]
    regret = [row["regret"] for row in done.results if row["label"] == "Async"]
    assert owed.sum() == pytest.approx(sum(regret) / 2)
    assert "late messages" in repr(found)
    assert "<table" in found._repr_html_()


def test_a_bad_question(done: coband.Run) -> None:
    with pytest.raises(coband.RunError, match="give drop="):
        done.whatif()
    with pytest.raises(coband.RunError, match="choose label="):
        done.whatif(drop=5)
