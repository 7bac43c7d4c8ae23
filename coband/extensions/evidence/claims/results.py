"""Results files: what every claim of a paper came to, with its numbers, its origin (versions, commit, machine), a
digest of its settings, and the fingerprints of all jobs.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from coband.extending import RequestError, code_version, dump, files, manifest, now, read_scenario, yaml_nodes
from coband.extensions.evidence.claims.claim import PlacedClaim, Size
from coband.extensions.evidence.claims.outcome import DIGITS, Outcome
from coband.extensions.evidence.claims.studies import Key, key_of


def origin(seed: int | None = None) -> dict[str, object]:
    """What a results file says about the machine and the program that made an outcome.

    Args:
        seed: that of all studies, if it is not their own.
    """
    return {
        **({} if seed is None else {"seed": seed}),
        "date": now()[:10],
        "versions": {
            "python": platform.python_version(),
            **{name: manifest.version(name) for name in manifest.PACKAGES},
        },
        "git": manifest.git_state(Path(__file__).parent),
        "blas": code_version.libraries(),
        "machine": platform.machine(),
        "hardware": code_version.hardware(),
    }


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
    return code_version.sha256(json.dumps([conditions, *parts], sort_keys=True))[:DIGITS]


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
    document: Mapping[str, Any] = yaml_nodes.plain(yaml_nodes.read(text, scenario)[0])
    return document


VERSION = 2
OUTCOME = TypeAdapter(Outcome)


class ResultsError(RequestError):
    """A results file cannot be read."""


def read(where: Path) -> dict[str, Outcome]:
    """The outcomes in all files of a folder, by claim; empty if there is no such folder.

    Raises:
        ResultsError: a file is damaged, or of a later version.
    """
    return {key: outcome for path in sorted(where.glob("*.json")) for key, outcome in _outcomes(path).items()}


def curves(where: Path, paper: str) -> list[dict[str, Any]]:
    """The figures of a paper as numbers; empty if there are none."""
    path = where / f"{paper}.json"
    return list(_content(path).get("figures", [])) if path.is_file() else []


def write(where: Path, outcomes: Iterable[Outcome], figures: Mapping[str, list[dict[str, Any]]]) -> list[Path]:
    """Add outcomes to the files of a folder; those of other claims stay what they are.

    Args:
        where: the folder; made if it is not there.
        outcomes: those of the same claims are replaced.
        figures: paper -> its figures as numbers; those of other papers stay, and lines that are not among them.

    Returns:
        The files written.
    """
    where.mkdir(parents=True, exist_ok=True)
    by_paper: dict[str, dict[str, Outcome]] = {paper: {} for paper in figures}
    for outcome in outcomes:
        by_paper.setdefault(outcome.claim.partition("/")[0], {})[outcome.claim] = outcome
    return [_write(where / f"{paper}.json", found, figures.get(paper)) for paper, found in sorted(by_paper.items())]


def _write(path: Path, found: Mapping[str, Outcome], figures: list[dict[str, Any]] | None) -> Path:
    earlier = _content(path) if path.is_file() else {"claims": {}, "figures": [], "jobs": {}}
    new = {key: {**asdict(one), "fingerprints": sorted(one.fingerprints)} for key, one in found.items()}
    claims = {**earlier["claims"], **new}  # with the names of studies alone, whose fingerprints the file has once
    jobs = {study: dict(variants) for study, variants in earlier["jobs"].items()}
    for outcome in found.values():
        for study, variants in outcome.fingerprints.items():
            stored = jobs.setdefault(study, {})
            for label, prints in variants.items():
                if stored.get(label, [])[: len(prints)] != prints:  # otherwise another claim may have had more of them
                    stored[label] = prints
    used = {study for claim in claims.values() for study in claim["fingerprints"]}
    content = {
        "claims": dict(sorted(claims.items())),
        "jobs": {study: jobs[study] for study in sorted(used)},
        "figures": _joined(earlier["figures"], figures or []),
    }
    files.replace_text(path, _compact(content))
    return path


def _joined(earlier: Sequence[Mapping[str, Any]], new: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Figures, panels or lines by title: the new ones, and the earlier ones of which there are no jobs at hand."""
    found = {one.get("title", one.get("label")): dict(one) for one in earlier}
    for one in new:
        known = found.setdefault(one.get("title", one.get("label")), dict(one))
        parts = {key: _joined(known[key], one[key]) for key in ("panels", "lines") if key in one}
        if "x" not in one or _weight(one) >= _weight(known):
            known.update({**one, **parts})
    return list(found.values())


def _weight(line: Mapping[str, Any]) -> tuple[int, int]:
    return len(line["x"]), line["replications"]


def _compact(content: Mapping[str, Any]) -> str:
    """JSON with one line for each claim, study and figure, so that a change shows where it is."""
    claims = ",\n".join(f"  {json.dumps(key)}: {_line(value)}" for key, value in content["claims"].items())
    figures = ",\n".join(f"  {_line(figure)}" for figure in content["figures"])
    jobs = ",\n".join(f"  {json.dumps(key)}: {_line(value)}" for key, value in content["jobs"].items())
    parts = f'"claims": {{\n{claims}\n}},\n"jobs": {{\n{jobs}\n}},\n"figures": [\n{figures}\n]'
    return f'{{"version": {VERSION},\n{parts}}}\n'


def _line(value: Any) -> str:
    return dump(value, indented=False).strip()


def _outcomes(path: Path) -> dict[str, Outcome]:
    try:
        content = _content(path)
        jobs = content["jobs"]
        return {
            key: OUTCOME.validate_python(
                {**value, "fingerprints": {name: jobs[name] for name in value["fingerprints"]}}
            )
            for key, value in content["claims"].items()
        }
    except (KeyError, TypeError, ValidationError) as error:
        raise ResultsError(f"{path} is not a results file of claims: {error}.") from error


def _content(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ResultsError(f"{path} cannot be read: {error}.") from error
    version = content.get("version") if isinstance(content, dict) else None
    if version != VERSION:
        raise ResultsError(f"{path} is of version {version}; this coband reads version {VERSION}.")
    return dict(content)
