"""What ``network.topology`` can say: how the graph of the agents is drawn or read.

Generators are those of networkx; what they draw comes from the stream (network, 0, graph) of the replication, or of
``seed`` where a scenario fixes one graph for all replications.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field
from pydantic.json_schema import JsonSchemaValue

from coband.simulator.core.config import TIME, Config
from coband.simulator.core.network.parts import sample_nodes
from coband.simulator.core.nodes.graphs import Graph, GraphError, NoGraphFileError
from coband.simulator.core.randomness.streams import Streams
from coband.simulator.core.reading import read_graph
from coband.simulator.plugins.kinds import Kinds
from coband.simulator.plugins.promises import returns

if TYPE_CHECKING:
    import networkx as nx

ATTEMPTS = 1000
"""Draws of a random graph before one that is not connected is an error."""


def _graph(found: nx.Graph[Any], description: str) -> Graph:
    """A networkx graph, its nodes numbered in their order, without loops."""
    number = {node: index for index, node in enumerate(found.nodes)}
    rows = [sorted({number[other] for other in found[node]} - {number[node]}) for node in found.nodes]
    return Graph(tuple(map(tuple, rows)), description)


FIRST_LINKS = 1_000
"""Looked at in a file that is too large for a check."""


class BaseGraph(Config):
    """Base of graphs, which say who is whose neighbour."""

    @abstractmethod
    @returns(
        "a Graph of {agents} nodes that lists each link with both of its ends, neighbours in ascending order",
        lambda found, agents, rng: found.is_of(agents),
    )
    def draw(self, agents: int, rng: np.random.Generator) -> Graph:
        """The graph of so many agents.

        Raises:
            GraphError: there is none of this kind.
        """

    def peek(self, most: int) -> str | None:
        """Look at the beginning of a file of more than ``most`` bytes; None when there is no such file.

        Raises:
            GraphError: it cannot be read, or its beginning is malformed.
        """
        return None

    def build(self, agents: int, streams: Streams) -> Graph:
        return self.draw(agents, streams("network", 0, "graph"))


class RandomGraph(BaseGraph):
    """A graph that is drawn."""

    seed: int | None = Field(default=None, ge=0)
    """Seed of the graph, the same in all replications; null: each replication draws its own."""

    def build(self, agents: int, streams: Streams) -> Graph:
        """The graph of a replication, or the one of ``seed``."""
        return super().build(agents, streams) if self.seed is None else _fixed(self, agents, self.seed)


@lru_cache(maxsize=8)
def _fixed(spec: RandomGraph, agents: int, seed: int) -> Graph:
    return spec.draw(agents, np.random.default_rng(seed))


class ErdosRenyi(RandomGraph):
    """Every pair of agents is linked with probability p; drawn again until it is connected."""

    kind: Literal["erdos_renyi"]
    p: float = Field(gt=0, le=1)
    """Probability of each link."""
    connected: bool = True
    """Draw again until there is a path between any two agents."""

    def draw(self, agents: int, rng: np.random.Generator) -> Graph:
        description = f"erdos_renyi, p = {self.p:g}"
        for attempt in range(ATTEMPTS):
            above = np.triu(rng.random((agents, agents)) < self.p, 1)
            rows = above | above.T
            graph = Graph(
                tuple(tuple(np.flatnonzero(row).tolist()) for row in rows), f"{description}, {attempt + 1} draws"
            )
            if not self.connected or graph.connected:
                return graph
        raise GraphError(
            f"no connected graph in {ATTEMPTS} draws of {description} with {agents} agents; raise p, or set "
            "connected: false"
        )


class BarabasiAlbert(RandomGraph):
    """Preferential attachment: every new agent links to m others."""

    kind: Literal["barabasi_albert"]
    m: int = Field(ge=1)
    """Links of a new agent."""

    def draw(self, agents: int, rng: np.random.Generator) -> Graph:
        if self.m >= agents:
            raise GraphError(f"barabasi_albert: m(={self.m}) must be < {agents}, the number of agents")
        import networkx as nx  # slow to import, and most scenarios have no such graph

        return _graph(nx.barabasi_albert_graph(agents, self.m, seed=rng), f"barabasi_albert, m = {self.m}")


class WattsStrogatz(RandomGraph):
    """A ring whose agents link to their k nearest, each link moved elsewhere with probability p; connected."""

    kind: Literal["watts_strogatz"]
    k: int = Field(ge=2)
    """Nearest agents on the ring that each one is linked to (rounded down to an even number)."""
    p: float = Field(ge=0, le=1)
    """Probability of moving a link."""

    def draw(self, agents: int, rng: np.random.Generator) -> Graph:
        if self.k >= agents:
            raise GraphError(f"watts_strogatz: k(={self.k}) must be < {agents}, the number of agents")
        import networkx as nx

        try:
            found = nx.connected_watts_strogatz_graph(agents, self.k, self.p, tries=ATTEMPTS, seed=rng)
        except nx.NetworkXError as error:
            raise GraphError(f"no connected graph in {ATTEMPTS} draws of watts_strogatz: {error}") from None
        return _graph(found, f"watts_strogatz, k = {self.k}, p = {self.p:g}")


class Grid(BaseGraph):
    """Agents on a rectangle, row by row, linked to those beside, above and below."""

    kind: Literal["grid"]
    rows: int | None = Field(default=None, ge=1)
    """Number of rows, a divisor of the number of agents; null: as square as possible."""

    def draw(self, agents: int, rng: np.random.Generator) -> Graph:
        rows = self.rows or max(n for n in range(1, int(agents**0.5) + 1) if agents % n == 0)
        if agents % rows:
            raise GraphError(f"grid: rows(={rows}) must divide {agents}, the number of agents")
        import networkx as nx

        return _graph(nx.grid_2d_graph(rows, agents // rows), f"grid, {rows} x {agents // rows}")


class _Shape(BaseGraph):
    """A graph of a fixed shape, which networkx makes of the numbers of its agents."""

    shape: ClassVar[str]

    def draw(self, agents: int, rng: np.random.Generator) -> Graph:
        import networkx as nx

        return _graph(getattr(nx, f"{self.shape}_graph")(range(agents)), self.kind)  # type: ignore[attr-defined]


class Ring(_Shape):
    """Agent v is linked to v - 1 and v + 1, the last one to the first."""

    kind: Literal["ring"]
    shape = "cycle"


class Line(_Shape):
    """Agent v is linked to v - 1 and v + 1."""

    kind: Literal["line"]
    shape = "path"


class StarGraph(_Shape):
    """Agent 0 is linked to all others; there is no server."""

    kind: Literal["star"]
    shape = "star"


class Complete(_Shape):
    """All agents are linked to each other."""

    kind: Literal["complete"]
    shape = "complete"


class EdgeList(RandomGraph):
    """A graph from a file; where the file has more nodes than there are agents, a connected part of it is drawn."""

    kind: Literal["edge_list"]
    file: str
    """One link per line, two node names apart by blanks, a tab, a comma or a semicolon; comments (#, %) and a header
    are skipped. Or a symmetric adjacency matrix (a link is where a number is not 0, whatever it is), also of Matrix
    Market (.mtx), or GraphML (.graphml). Any of them may be compressed."""
    sample: Literal["breadth_first", "random_walk"] = "random_walk"
    """random_walk: the first nodes that a random walk meets; breadth_first: the nodes nearest to a random one, which in
    a graph with hubs are the neighbours of one hub, a part of diameter 2."""

    def peek(self, most: int) -> str | None:
        """Look at the first links of a file of more than ``most`` bytes; None when it is smaller."""
        path = Path(self.file).expanduser()
        if _changed(path)[1] <= most:
            return None
        try:
            read_graph(path, FIRST_LINKS)
        except ValueError as error:
            raise GraphError(str(error)) from None
        return f"the first {FIRST_LINKS:,} lines of {path.name}"

    def draw(self, agents: int, rng: np.random.Generator) -> Graph:
        path = Path(self.file).expanduser()
        whole = _read(path, *_changed(path))
        try:
            nodes, how = sample_nodes(whole, agents, self.sample, rng)
        except ValueError as error:
            raise GraphError(f"{path}: {error}") from None
        import networkx as nx

        part: nx.Graph[str] = nx.Graph()
        part.add_nodes_from(nodes)
        part.add_edges_from(whole.subgraph(nodes).edges)
        seed = "the replication's stream" if self.seed is None else f"seed {self.seed}"
        return _graph(part, f"{path.name}, {agents} of {whole.number_of_nodes()} nodes, {how}, from {seed}")


def _changed(path: Path) -> tuple[int, int]:
    try:
        status = path.stat()
    except FileNotFoundError:
        raise NoGraphFileError(path) from None
    except OSError as error:
        raise GraphError(f"file {str(path)!r} cannot be read: {error.strerror}; give that of a list of links") from None
    return status.st_mtime_ns, status.st_size


@lru_cache(maxsize=2)
def _read(path: Path, changed: int, size: int) -> nx.Graph[str]:
    try:
        return read_graph(path)
    except ValueError as error:
        raise GraphError(str(error)) from None


class Given(BaseGraph):
    """The links themselves, as a networkx graph is written when it is given in Python."""

    kind: Literal["given"]
    edges: tuple[tuple[Annotated[int, Field(ge=0)], Annotated[int, Field(ge=0)]], ...]
    """Pairs of agents that are linked, by their numbers from 0."""
    nodes: int | None = Field(default=None, ge=1)
    """Number of agents that it is the graph of; null: as many as there are."""

    def draw(self, agents: int, rng: np.random.Generator) -> Graph:
        if self.nodes not in (None, agents):
            raise GraphError(f"given: the graph has {self.nodes} nodes: must have {agents}, the number of agents")
        largest = max((agent for edge in self.edges for agent in edge), default=-1)
        if largest >= agents:
            raise GraphError(f"given: edges name agent {largest}: must be < {agents}, the number of agents")
        rows: list[set[int]] = [set() for _ in range(agents)]
        for one, other in self.edges:
            rows[one].add(other)
            rows[other].add(one)
        return Graph(tuple(tuple(sorted(row - {agent})) for agent, row in enumerate(rows)), "given")


class Redrawn(BaseGraph):
    """A graph whose links come and go: in each interval each of them is there with probability p.

    A link is there for both directions or for none. Losses with probability 1 - p are another thing: they are drawn for
    each copy, so that averages that go over links are not kept. From `network.heals` on all links are there.
    """

    kind: Literal["redrawn"]
    graph: Annotated[BaseGraph, TOPOLOGIES.field(words=_words, without="redrawn"), _Words()]
    """The graph whose links come and go, of another kind."""
    p: float = Field(gt=0, le=1)
    """Probability that a link is there."""
    interval: Annotated[float, TIME] = Field(default=1.0, gt=0)
    """Links are drawn again after so long."""
    absent: Literal["unsent", "lost"] = "unsent"
    """A copy to a neighbour whose link is not there is neither sent nor counted, or it is sent and lost."""

    def peek(self, most: int) -> str | None:
        return self.graph.peek(most)

    def build(self, agents: int, streams: Streams) -> Graph:
        return self._named(self.graph.build(agents, streams))

    def draw(self, agents: int, rng: np.random.Generator) -> Graph:
        return self._named(self.graph.draw(agents, rng))

    def _named(self, drawn: Graph) -> Graph:
        return Graph(drawn.adjacency, f"{drawn.description}, links redrawn with p = {self.p:g}", self.p)


TOPOLOGIES: Kinds[type[BaseGraph]] = Kinds.of(
    "topologies",
    BaseGraph,
    (ErdosRenyi, BarabasiAlbert, WattsStrogatz, Grid, Ring, Line, StarGraph, Complete, EdgeList, Given, Redrawn),
)
"""The graphs that scenarios can name."""


def _words() -> list[str]:
    """The kinds that need no parameters, so that their name says everything; star alone is the one with a server."""
    known = TOPOLOGIES
    return [kind for kind in known if kind != "star" and not any(_asked(known[kind]))]


def _asked(found: type[BaseGraph]) -> Iterator[str]:
    return (name for name, info in found.model_fields.items() if name != "kind" and info.is_required())


class _Words:
    """Tells the JSON Schema which words stand for a graph, or for a star with a server."""

    def __init__(self, *star: str) -> None:
        self._star = star

    def __get_pydantic_json_schema__(self, core_schema: Any, handler: Any) -> JsonSchemaValue:
        schema: JsonSchemaValue = handler(core_schema)
        words = {"enum": [*self._star, *_words()], "type": "string"}
        return {"anyOf": [words, schema["anyOf"][1] if self._star else schema]}


Topology = Annotated[Literal["star"] | Annotated[BaseGraph, TOPOLOGIES.field(words=_words)], _Words("star")]
"""A star with a server, or a graph of agents; ``ring`` stands for ``{kind: ring}``."""
