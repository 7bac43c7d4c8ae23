"""What to cite for a run: the BibTeX of the algorithms, problems and data that it used.

Registry entries name references in ``cites``: keys of ``references.bib`` beside this module, or, as plugins do, whole
BibTeX entries.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
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
_KEY = re.compile(r"@\w+\s*\{\s*([^,\s]+)\s*,")


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
    uses: tuple[str, ...]


@lru_cache(maxsize=1)
def library() -> Mapping[str, str]:
    """Our own BibTeX entries by key."""
    text = files("coband.simulator.experiments.registry").joinpath("references.bib").read_text(encoding="utf-8")
    return {key_of(entry): entry.strip() for entry in re.split(r"^(?=@)", text, flags=re.MULTILINE) if entry.strip()}


def key_of(entry: str) -> str:
    """The key of a BibTeX entry; empty when it is none."""
    match = _KEY.match(entry.strip())
    return match[1] if match else ""


def uses(run: StoredRun, registry: Registry) -> list[Use]:
    """What a run used: its algorithms, its problem, its data, and coband."""
    document = _document(run.scenario)
    problem, network = document.get("problem") or {}, document.get("network") or {}
    found = [*_algorithms(run, registry), *_problem(problem, registry), *_graph(network)]
    return [*found, Use("simulator", (OURS,))]


def citations(found: list[Use]) -> list[Citation]:
    """Each BibTeX entry once, in the order of use; keys that nobody knows are left out."""
    entries: dict[str, str] = {}
    whats: dict[str, list[str]] = {}
    for use in found:
        for cite in use.cites:
            text = cite.strip() if cite.lstrip().startswith("@") else library().get(cite)
            if text is not None:
                key = key_of(text) or text
                entries.setdefault(key, text)
                whats.setdefault(key, []).append(use.what)
    return [Citation(key, text, tuple(whats[key])) for key, text in entries.items()]


def _algorithms(run: StoredRun, registry: Registry) -> Iterator[Use]:
    labels: dict[str, list[str]] = {}
    for label, name in run.labels.items():
        labels.setdefault(name, []).append(label)
    for name, given in labels.items():
        others = ", ".join(label for label in given if label != name)
        what = f"algorithm {name} ({others})" if others else f"algorithm {name}"
        yield _use(what, registry.algorithms.get(name))


def _problem(problem: Mapping[str, Any], registry: Registry) -> Iterator[Use]:
    kind = str(problem.get("kind"))
    if problem:
        yield _use(f"problem {kind}", registry.problems.get(kind))
    data = problem.get("data")
    name = data.get("name") if isinstance(data, dict) else None
    if isinstance(name, str):
        yield _use(f"dataset {name}", SOURCES.get(name))


def _graph(network: Mapping[str, Any]) -> Iterator[Use]:
    topology = network.get("topology")
    file = topology.get("file") if isinstance(topology, dict) else None
    if isinstance(file, str):
        name = PurePath(file).name
        yield _use(f"graph {name}", source_of(name))


def _use(what: str, found: Algorithm | ProblemEntry | PublicDataset | None) -> Use:
    return Use(what, () if found is None else found.cites, found is not None)


def _document(text: str) -> dict[str, Any]:
    document = plain(read(text, "scenario.yaml")[0]) if text else {}
    return document if isinstance(document, dict) else {}
