"""How a run was made."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from coband.simulator.analysis.report import tables
from coband.simulator.analysis.report.data import as_given, name_of
from coband.simulator.experiments.runs.expectations import ROUNDING
from coband.simulator.experiments.store.store import StoredRun

ELSEWISE = {"live", "not_installed"}
"""Keys that only manifests of runs have which the scenario alone does not repeat."""


@dataclass(frozen=True)
class Provenance:
    """How a run was made: its command, its scenario, versions, and fingerprints.

    Attributes:
        given: whether the scenario is the file as it was given, and not the resolved one.
        repeats: whether ``coband run`` with the scenario gives the same fingerprints.
    """

    name: str
    scenario: str
    given: bool
    repeats: bool
    command: str
    facts: tuple[tuple[str, str], ...]
    fingerprints: tables.ReportTable


def of(run: StoredRun) -> Provenance:
    """How a run was made."""
    manifest = run.manifest
    versions = manifest.get("versions") or {}
    platform = manifest.get("platform") or {}
    command = shlex.join(["coband", *map(str, (manifest.get("command") or ["coband", "run"])[1:])])
    facts = [
        ("seed", str(manifest.get("seed", ""))),
        ("started", str(manifest.get("started", ""))),
        ("finished", str(manifest.get("finished") or "not finished")),
        ("versions", ", ".join(f"{name} {version}" for name, version in versions.items() if version)),
        ("platform", str(platform.get("system", ""))),
        ("BLAS", ", ".join(dict.fromkeys(_blas(one) for one in manifest.get("blas") or []))),
    ]
    hardware = manifest.get("hardware") or {}
    facts += [
        (part, str(hardware[part])) for part in ("processor", "numpy's SIMD features", "C library") if part in hardware
    ]
    rows = tuple(
        (job.label, str(job.replication), str(job.record["fingerprint"]), _gap(job.record.get("closest_decision")))
        for job in run.jobs
        if job.record is not None
    )
    header = ("label", "replication", "fingerprint", "closest decision")
    table = tables.ReportTable(
        "SHA-256 over every event of a job, and the smallest gap between the best arm's score and the next one at any "
        f"turn, as a share of the larger one: below {ROUNDING:.0e} rounding may have decided, so that another kind "
        "of processor may come to other results.",
        header,
        rows,
        texts=3,
    )
    return Provenance(
        name_of(run),
        run.scenario,
        as_given(run),
        not as_given(run) and not ELSEWISE & manifest.keys(),
        command,
        tuple(fact for fact in facts if fact[1]),
        table,
    )


def _gap(value: Any) -> str:
    return f"{value:.1e}" if isinstance(value, float) else "-"


def _blas(library: Mapping[str, Any]) -> str:
    return " ".join(str(library[key]) for key in ("internal_api", "version", "architecture") if library.get(key))
