"""Graphs from generators and files."""

import pickle
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from coband.simulator.core.network.network import NetworkConfig
from coband.simulator.core.network.topologies import Topology
from coband.simulator.core.nodes.graphs import Graph, GraphError, NoGraphFileError
from coband.simulator.core.randomness.streams import Streams
from coband.simulator.core.reading import read_graph
from tests.data_files import data_file

TOPOLOGY: TypeAdapter[Any] = TypeAdapter(Topology)
METHODS = ("breadth_first", "random_walk")


def build(spec: Any, agents: int, seed: int = 0) -> Any:
    return TOPOLOGY.validate_python(spec).build(agents, Streams(seed))


@pytest.mark.parametrize(
    ("spec", "agents", "edges", "diameter"),
    [
        ("ring", 6, 6, 3),
        ("line", 6, 5, 5),
        ("complete", 5, 10, 1),
        ({"kind": "star"}, 6, 5, 2),
        ("grid", 12, 17, 5),
        ({"kind": "grid", "rows": 2}, 12, 16, 6),
        ("ring", 1, 0, 0),
        ("line", 1, 0, 0),
        ({"kind": "star"}, 1, 0, 0),
    ],
)
def test_plain_graphs(spec: Any, agents: int, edges: int, diameter: int) -> None:
    graph = build(spec, agents)
    assert (graph.nodes, graph.edges, graph.diameter) == (agents, edges, diameter)
    assert graph.connected


def test_a_grid_is_numbered_row_by_row() -> None:
    assert build({"kind": "grid", "rows": 2}, 6).adjacency == ((1, 3), (0, 2, 4), (1, 5), (0, 4), (1, 3, 5), (2, 4))


def test_a_graph_is_drawn_from_its_stream() -> None:
    spec = TOPOLOGY.validate_python({"kind": "erdos_renyi", "p": 0.4})
    streams = Streams(3)
    assert spec.build(12, streams).adjacency == spec.draw(12, streams("network", 0, "graph")).adjacency


def test_where_there_is_no_path_the_distance_is_minus_1() -> None:
    graph = Graph(((1,), (0,), ()))
    assert graph.distances.tolist() == [[0, 1, -1], [1, 0, -1], [-1, -1, 0]]


def test_neighbours_are_mutual_and_sorted() -> None:
    for spec in (
        {"kind": "erdos_renyi", "p": 0.3},
        {"kind": "barabasi_albert", "m": 2},
        {"kind": "watts_strogatz", "k": 4, "p": 0.5},
    ):
        graph = build(spec, 20)
        assert graph.connected
        for node, row in enumerate(graph.adjacency):
            assert list(row) == sorted(set(row) - {node})
            assert all(node in graph.adjacency[other] for other in row)


@pytest.mark.parametrize(
    ("spec", "agents", "message"),
    [
        ({"kind": "erdos_renyi", "p": 0.001}, 20, "no connected graph in 1000 draws of erdos_renyi"),
        ({"kind": "barabasi_albert", "m": 5}, 5, "m(=5) must be < 5"),
        ({"kind": "watts_strogatz", "k": 6, "p": 0.1}, 6, "k(=6) must be < 6"),
        ({"kind": "grid", "rows": 5}, 12, "rows(=5) must divide 12"),
        ({"kind": "edge_list", "file": "/nowhere.txt"}, 12, "'/nowhere.txt' cannot be read"),
    ],
)
def test_graphs_that_cannot_be_made(spec: Any, agents: int, message: str) -> None:
    with pytest.raises(GraphError) as error:
        build(spec, agents)
    assert message in str(error.value)


@pytest.mark.parametrize(
    "spec", ["torus", {"kind": "erdos_renyi"}, {"kind": "erdos_renyi", "p": 1.5}, {"kind": "ring", "p": 1}, 3]
)
def test_topologies_that_are_none(spec: Any) -> None:
    with pytest.raises(ValidationError):
        TOPOLOGY.validate_python(spec)


@pytest.mark.parametrize("server", [{"uplink": 5.0}, {"downlink": 5.0}, {"uplink": 5.0, "downlink": 5.0}])
def test_a_graph_has_no_server_whose_capacity_could_be_limited(server: dict[str, float]) -> None:
    NetworkConfig.model_validate({"server": server})
    with pytest.raises(ValidationError, match="a graph of agents has no server whose capacity they could share"):
        NetworkConfig.model_validate({"topology": "ring", "server": server})


@pytest.mark.parametrize(
    ("text", "edges"),
    [
        ("# a comment\n0 1\n1\t2\n\n2 0 17\n1 1\n1 0\n", 3),
        ("from,to\n3,4\n4,5\n", 2),
        ("#from,to\n3,4\n5,4\n3,5\n", 3),
        ("anna bert\nbert carl\n", 2),
        ("\n0 1\n  \n\t\n1 2\n\n", 2),
        ("from,to,\n0,1,\n1,2,\n2, 0 ,\n", 3),
    ],
)
def test_edge_lists(tmp_path: Path, text: str, edges: int) -> None:
    file = tmp_path / "edges.txt"
    file.write_text(text)
    for method in METHODS:
        assert build({"kind": "edge_list", "file": str(file), "sample": method}, 3).edges == edges


@pytest.mark.parametrize("links", [[("3", "4")], [("3", "4"), ("4", "5")]])
def test_a_header_of_words_names_no_nodes(tmp_path: Path, links: list[tuple[str, str]]) -> None:
    file = tmp_path / "edges.txt"
    file.write_text("from,to\n" + "".join(f"{one},{other}\n" for one, other in links))
    assert list(read_graph(file).edges) == links
    assert set(read_graph(file)) == {name for link in links for name in link}


def test_broken_edge_lists(tmp_path: Path) -> None:
    file = tmp_path / "edges.txt"
    for text, message in (
        ("0 1\n7\n", f"{file}:2: '7' is not a link"),
        ("# none\n", "has no links"),
        ("0 1\n2 3\n", "fewer than the 3 agents"),
    ):
        file.write_text(text)
        with pytest.raises(GraphError) as error:
            build({"kind": "edge_list", "file": str(file)}, 3)
        assert message in str(error.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    file = tmp_path / "nowhere.txt"
    with pytest.raises(NoGraphFileError) as caught:
        build({"kind": "edge_list", "file": str(file)}, 3)
    again = pickle.loads(pickle.dumps(caught.value))  # a worker process may meet it
    assert again.path == caught.value.path == file
    assert str(again) == f"file {str(file)!r} cannot be read: there is none; give that of a list of links"


def test_of_a_large_file_the_beginning_is_looked_at(tmp_path: Path) -> None:
    file = tmp_path / "edges.txt"
    file.write_text("0 1\n7\n")
    graph = TOPOLOGY.validate_python({"kind": "edge_list", "file": str(file)})
    assert graph.peek(1000) is None  # small enough to be read as a whole
    with pytest.raises(GraphError, match=":2: '7' is not a link"):
        graph.peek(3)
    file.write_text("0 1\n1 2\n")
    assert graph.peek(8) is None  # it has 8 bytes
    assert graph.peek(3) == "the first 1,000 lines of edges.txt"


@pytest.mark.parametrize("sample", METHODS)
@pytest.mark.parametrize(
    ("name", "nodes"),
    [
        ("ego-facebook/facebook_combined.txt", 4039),
        ("musae-twitch/musae_ENGB_edges.csv", 7126),
        ("as-733/as20000102.txt", 6474),
    ],
)
def test_connected_parts_of_real_graphs(name: str, nodes: int, sample: str) -> None:
    spec = {"kind": "edge_list", "file": str(data_file(name)), "sample": sample}
    graph = build(spec, 60, 1)
    assert graph.nodes == 60
    assert graph.connected
    assert graph.adjacency == build(spec, 60, 1).adjacency
    assert f"60 of {nodes} nodes, {sample}" in graph.description
    fixed = {**spec, "seed": 4}
    assert build(fixed, 60, 1).adjacency == build(fixed, 60, 2).adjacency
    assert build(fixed, 60).description.endswith("from seed 4")
