"""What results of claims are of: which changes make them results of other settings."""

from dataclasses import replace
from pathlib import Path

import pytest

from coband.extensions.evidence.claims import pages, reading, results
from coband.extensions.evidence.claims.claim import PlacedClaim
from coband.extensions.evidence.claims.outcome import Outcome
from coband.extensions.evidence.claims.results import is_of_other_settings, settings_digest
from tests.extensions.evidence.claims.test_reproduction import CLAIM, SCENARIO, TRUE


@pytest.fixture
def claim(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PlacedClaim:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(reading, "folder", lambda: tmp_path / "claims")
    (tmp_path / "claims" / "small").mkdir(parents=True)
    Path("small.yaml").write_text(SCENARIO)
    Path("claims/small/true.yaml").write_text(CLAIM + TRUE)
    Path("claims/small/paper.yaml").write_text("title: A small paper\ncites: coband\n")
    (found,) = reading.claims()
    return found


def changed(before: str, after: str) -> None:
    text = Path("small.yaml").read_text()
    assert before in text
    Path("small.yaml").write_text(text.replace(before, after))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("name: small", "# a comment\nname: tiny"),
        ("replications: 1", "replications: 9"),
        ("algorithms:\n", "algorithms:\n  - {algorithm: oful, label: Nobody asks}\n"),
    ],
)
def test_what_no_verdict_depends_on_makes_no_difference(claim: PlacedClaim, before: str, after: str) -> None:
    digest = settings_digest(claim, "full")
    changed(before, after)
    assert settings_digest(claim, "full") == digest


@pytest.mark.parametrize(("before", "after"), [("{count: 2}", "{count: 4}"), ("label: One}", "label: One, lam: 2}")])
def test_what_runs_makes_a_difference(claim: PlacedClaim, before: str, after: str) -> None:
    digest = settings_digest(claim, "full")
    changed(before, after)
    assert settings_digest(claim, "full") != digest


def test_other_conditions_and_seeds_make_a_difference(claim: PlacedClaim) -> None:
    file = Path("claims/small/true.yaml")
    file.write_text(file.read_text().replace("at_least: 1", "at_least: 2"))
    (other,) = reading.claims()
    assert len({settings_digest(one, "full") for one in (claim, other, claim.seeded(11))}) == 3


def test_results_of_other_settings_are_said_to_be(claim: PlacedClaim) -> None:
    known = Outcome(claim.key, "full", [], 3, 0.1, settings=settings_digest(claim, "full"))
    seeded = replace(known, origin={"seed": 11}, settings=settings_digest(claim.seeded(11), "full"))
    for outcome in (known, seeded, replace(known, settings="")):
        assert not is_of_other_settings(outcome, claim)
    changed("{count: 2}", "{count: 4}")
    assert is_of_other_settings(known, claim)
    assert is_of_other_settings(seeded, claim)
    assert not is_of_other_settings(replace(known, settings=""), claim)
    results.write(Path("results"), [known], {})
    assert (
        "*Of other settings:* the claim or its scenario has changed" in dict(pages.texts(Path("results")))["small.md"]
    )
