"""Public graphs in their original files: names, origins, and what the files hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatch

from coband.simulator.problems.datasets import PublicDataset, published


@dataclass(frozen=True, kw_only=True)
class GraphDataset(PublicDataset):
    """A public graph: a file with one link of two nodes per line, published in an archive."""

    nodes: int
    links: int
    """Links between different nodes, each counted once; ``rows`` counts the lines."""
    member: str | None = None
    """Path of the file in an archive of several files; None where the archive holds this file alone."""
    alike: tuple[str, ...]
    """Patterns of the names of files that have the same source."""

    @property
    def columns(self) -> str:
        return f"links of {self.nodes:,} nodes"


GRAPH_DATASETS: Mapping[str, GraphDataset] = published(GraphDataset, "graphs")


def graph_of(file: str) -> GraphDataset | None:
    """The known graph whose file has this name."""
    return next((graph for graph in GRAPH_DATASETS.values() if graph.file == file), None)


def source_of(file: str) -> GraphDataset | None:
    """A known graph from the same source as the file of this name."""
    found = (graph for graph in GRAPH_DATASETS.values() if any(fnmatch(file, pattern) for pattern in graph.alike))
    return next(found, None)
