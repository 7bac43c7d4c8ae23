"""What a claim was tried with, as a digest: results of other settings are seen to be of others."""

from __future__ import annotations

import json
from typing import Any

from coband.simulator.experiments.claims.claim import ClaimedStudy, PlacedClaim, Size
from coband.simulator.experiments.claims.outcome import DIGITS, Outcome
from coband.simulator.experiments.runs.code_version import sha256
from coband.simulator.experiments.scenario.files import read_scenario
from coband.simulator.experiments.scenario.nodes import plain
from coband.simulator.experiments.scenario.yaml_nodes import read

WITHOUT_EFFECT = ("schema_version", "name", "replications", "until", "expect", "trace")
"""Sections of a scenario that verdicts do not depend on; claims have their own replications."""


def settings_digest(placed: PlacedClaim, size: Size) -> str:
    """A digest of the conditions and of what their studies run: the scenarios' sections and entries, and changes.

    Comments, the order of keys, and entries that the claim is not about make no difference.

    Raises:
        ScenarioError: a scenario cannot be read.
    """
    claim = placed.claim
    studies: list[tuple[ClaimedStudy, set[str]]] = []
    for term in claim.terms():
        study = claim.study_of(term)
        labels = next((labels for known, labels in studies if known is study), None)
        if labels is None:
            studies.append((study, {term.label}))
        else:
            labels.add(term.label)
    parts = [_settings(study, labels, size) for study, labels in studies]
    conditions = claim.model_dump(mode="json", include={"conditions"})
    return sha256(json.dumps([conditions, *parts], sort_keys=True))[:DIGITS]


def is_of_other_settings(outcome: Outcome, placed: PlacedClaim) -> bool:
    """Whether the claim or its scenarios have changed since; False where results do not say what they are of."""
    size: Size = "quick" if outcome.size == "quick" else "full"
    return bool(outcome.settings) and outcome.settings != settings_digest(
        placed.seeded(outcome.origin.get("seed")), size
    )


def _settings(study: ClaimedStudy, labels: set[str], size: Size) -> list[Any]:
    root, _ = read(read_scenario(study.scenario)[0], study.scenario)
    document: dict[str, Any] = plain(root)
    entries = [entry for entry in document.pop("algorithms", []) if entry.get("label", entry["algorithm"]) in labels]
    kept = {key: value for key, value in document.items() if key not in WITHOUT_EFFECT}
    return [study.scenario, kept, entries, sorted(study.settings(size))]
