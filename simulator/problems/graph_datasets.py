"""Public graphs in their original files: names, origins, and what the files hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatch
from types import MappingProxyType

from coband.simulator.problems.datasets import PublicDataset

SNAP = "https://snap.stanford.edu/data"
NO_LICENCE = "none given; cite the source"


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


_EGO_FACEBOOK = GraphDataset(
    name="ego-facebook",
    title="Friends of ten Facebook users (SNAP)",
    file="facebook_combined.txt",
    url=f"{SNAP}/facebook_combined.txt.gz",
    rows=88_234,
    nodes=4_039,
    links=88_234,
    licence=NO_LICENCE,
    citation="J. McAuley and J. Leskovec (2012). Learning to Discover Social Circles in Ego Networks. NIPS 25.",
    cites=("mcauley2012learning",),
    alike=("facebook_combined.txt",),
)

_MUSAE_TWITCH = GraphDataset(
    name="musae-twitch",
    title="Twitch users who stream in English (SNAP)",
    file="musae_ENGB_edges.csv",
    url=f"{SNAP}/twitch.zip",
    member="twitch/ENGB/musae_ENGB_edges.csv",
    rows=35_324,
    nodes=7_126,
    links=35_324,
    licence=NO_LICENCE,
    citation="B. Rozemberczki, C. Allen and R. Sarkar (2019). Multi-scale Attributed Node Embedding. "
    "https://arxiv.org/abs/1909.13021",
    cites=("rozemberczki2019multiscale",),
    alike=("musae_*_edges.csv",),
)

_AS_733 = GraphDataset(
    name="as-733",
    title="Autonomous systems of the Internet on 2 January 2000 (SNAP)",
    file="as20000102.txt",
    url=f"{SNAP}/as20000102.txt.gz",
    rows=13_895,
    nodes=6_474,
    links=12_572,
    licence=NO_LICENCE,
    citation="J. Leskovec, J. Kleinberg and C. Faloutsos (2005). Graphs over Time: Densification Laws, "
    "Shrinking Diameters and Possible Explanations. KDD 2005. https://doi.org/10.1145/1081870.1081893",
    cites=("leskovec2005graphs",),
    alike=("as[0-9]*.txt", "as-skitter.txt"),
)

GRAPH_DATASETS: Mapping[str, GraphDataset] = MappingProxyType(
    {graph.name: graph for graph in (_EGO_FACEBOOK, _MUSAE_TWITCH, _AS_733)}
)
"""All known graphs by name."""


def graph_of(file: str) -> GraphDataset | None:
    """The known graph whose file has this name."""
    return next((graph for graph in GRAPH_DATASETS.values() if graph.file == file), None)


def source_of(file: str) -> GraphDataset | None:
    """A known graph from the same source as the file of this name."""
    found = (graph for graph in GRAPH_DATASETS.values() if any(fnmatch(file, pattern) for pattern in graph.alike))
    return next(found, None)
