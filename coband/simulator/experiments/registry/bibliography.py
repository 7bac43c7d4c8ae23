"""What to cite for a run: the BibTeX of the algorithms, problems and data that it used.

Registry entries name references in ``cites``: keys of ``references.bib`` beside this module, or, as plugins do, whole
BibTeX entries.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from pathlib import PurePath
from typing import Any

from coband.simulator.core.algorithm import Algorithm
from coband.simulator.experiments.registry.registry import Registry
from coband.simulator.experiments.scenario.yaml_nodes import plain, read
from coband.simulator.experiments.store.store import StoredRun
from coband.simulator.problems.datasets import DATASETS, GRAPH_DATASETS, PublicDataset, source_of
from coband.simulator.problems.ratings import RATINGS
from coband.simulator.problems.world import ProblemEntry

SOURCES: Mapping[str, PublicDataset] = {**DATASETS, **RATINGS, **GRAPH_DATASETS}
"""All public data by name."""
OURS = "coband"
"""The key of coband's own entry."""


@dataclass(frozen=True)
class Use:
    """Something that a run used.

    Attributes:
        what: in words, such as "algorithm duets (labels A, B)".
        cites: its references; empty when it has none.
        known: whether it is installed here, so that its references can be known.
    """

    what: str
    cites: tuple[str, ...]
    known: bool = True


@dataclass(frozen=True)
class Citation:
    """One BibTeX entry and all that it is cited for."""

    key: str
    text: str
    uses: list[str]


@lru_cache(maxsize=1)
def library() -> Mapping[str, str]:
    """Our own BibTeX entries by key."""
    text = files("coband.simulator.experiments.registry").joinpath("references.bib").read_text(encoding="utf-8")
    return {key_of(one): one.strip() for one in re.split(r"^(?=@)", text, flags=re.MULTILINE) if one.strip()}


def key_of(text: str) -> str:
    """The key of a BibTeX entry; empty when it is none."""
    match = re.match(r"@\w+\s*\{\s*([^,\s]+)\s*,", text.strip())
    return match[1] if match else ""


def uses(run: StoredRun, registry: Registry) -> list[Use]:
    """What a run used: its algorithms, its problem, its data, and coband."""
    document: Any = plain(read(run.scenario, "scenario.yaml")[0]) if run.scenario else {}
    problem, topology = document.get("problem") or {}, (document.get("network") or {}).get("topology")
    found: list[tuple[str, Algorithm | ProblemEntry | PublicDataset | None]] = []
    for name in dict.fromkeys(run.labels.values()):
        others = ", ".join(label for label, one in run.labels.items() if one == name != label)
        found.append((f"algorithm {name}" + f" ({others})" * bool(others), registry.algorithms.get(name)))
    if kind := problem.get("kind"):
        found.append((f"problem {kind}", registry.problems.get(kind)))
    if isinstance(data := problem.get("data"), dict) and "name" in data:
        found.append((f"dataset {data['name']}", SOURCES.get(data["name"])))
    if isinstance(topology, dict) and topology.get("file"):
        name = PurePath(topology["file"]).name
        found.append((f"graph {name}", source_of(name)))
    used = [Use(what, () if entry is None else entry.cites, entry is not None) for what, entry in found]
    return [*used, Use("simulator", (OURS,))]


def citations(found: list[Use]) -> list[Citation]:
    """Each BibTeX entry once, in the order of use; keys that nobody knows are left out."""
    listed: dict[str, Citation] = {}
    for use in found:
        for text in filter(None, (entry(cite) for cite in use.cites)):
            key = key_of(text) or text
            listed.setdefault(key, Citation(key, text, [])).uses.append(use.what)
    return list(listed.values())


def entry(cite: str) -> str:
    """The BibTeX entry of a reference; empty when nobody knows it."""
    return cite.strip() if cite.lstrip().startswith("@") else library().get(cite, "")
