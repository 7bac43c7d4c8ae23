"""What a claim was tried with, as a digest: results of other settings are seen to be of others."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import Any

from coband.simulator.analysis.claims.claim import PlacedClaim, Size
from coband.simulator.analysis.claims.outcome import DIGITS, Outcome
from coband.simulator.analysis.claims.studies import Key, key_of
from coband.simulator.experiments.runs.code_version import sha256
from coband.simulator.experiments.scenario.files import read_scenario
from coband.simulator.experiments.scenario.nodes import plain
from coband.simulator.experiments.scenario.yaml_nodes import read

ENTRIES = "algorithms"
WITHOUT_EFFECT = ("schema_version", "name", "replications", "until", "expect", "trace")
"""Sections of a scenario that verdicts do not depend on; claims have their own replications."""


def settings_digest(placed: PlacedClaim, size: Size) -> str:
    """A digest of the conditions and of what their studies run: the scenarios' sections and entries, and changes.

    Comments, the order of keys, and entries that the claim is not about make no difference.

    Raises:
        ScenarioError: a scenario cannot be read.
    """
    claim, labels = placed.claim, dict[Key, set[str]]()
    for setting in claim.settings():
        for term in claim.terms():
            labels.setdefault(key_of(claim.at(setting).study_of(term), size), set()).add(term.label)
    parts = [_settings(key, wanted) for key, wanted in labels.items()]
    about = {"conditions", "at_equal", "tuning"}
    conditions = claim.model_dump(mode="json", include=about, exclude_defaults=True)
    return sha256(json.dumps([conditions, *parts], sort_keys=True))[:DIGITS]


def is_of_other_settings(outcome: Outcome, placed: PlacedClaim) -> bool:
    """Whether the claim or its scenarios have changed since; False where results do not say what they are of."""
    if not outcome.settings:
        return False
    return outcome.settings != settings_digest(placed.seeded(outcome.origin.get("seed")), outcome.size)


def _settings(key: Key, labels: set[str]) -> list[Any]:
    scenario, changes = key
    document = _document(read_scenario(scenario)[0], scenario)
    entries = [entry for entry in document.get(ENTRIES, []) if entry.get("label", entry["algorithm"]) in labels]
    kept = {key: value for key, value in document.items() if key not in (ENTRIES, *WITHOUT_EFFECT)}
    return [scenario, kept, entries, sorted(changes)]


@cache  # many claims are about one scenario
def _document(text: str, scenario: str) -> Mapping[str, Any]:
    document: Mapping[str, Any] = plain(read(text, scenario)[0])
    return document
