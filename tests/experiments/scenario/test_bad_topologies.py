"""What a user of agents on a graph gets to read for each mistake."""

from pathlib import Path

import pytest

from coband.simulator.cli.main import main
from tests.experiments.scenario.cases import cases

SCENARIO = """\
name: friends
agents: {count: 6}
schedule: {kind: rounds, turns: 30}
network:
  topology: {kind: erdos_renyi, p: 0.9}
problem:
  kind: network
  arms: {kind: ball, dimension: 2, count: 3}
  contexts: {kind: sphere, dimension: 2}
  kernel: {kind: linear}
algorithms:
  - {algorithm: eager_kernel_ucb, label: Eager, kernel: {kind: gaussian, gamma: 1}}
"""
KINDS = "erdos_renyi, barabasi_albert, watts_strogatz, grid, ring, line, star, complete, edge_list, given, redrawn"
EITHER = KINDS.replace(", ", " | ")
ONCE, DRAWN = KINDS.removesuffix(", redrawn"), EITHER.removesuffix(" | redrawn")


MISTAKES = """
network.topology={kind: edge_list, file: nowhere.txt}
    network.topology: the graph's file 'nowhere.txt' is missing. Looked for: HERE/nowhere.txt, and nowhere.txt in
        HERE/data and its folders. Set `network.topology.file` to a file of links (on the command line: `--set
        network.topology.file=FILE`).
network.topology={kind: edge_list, file: small.txt}
    network.topology: HERE/small.txt: the largest connected part has 3 nodes, fewer than the 6 agents; set agents.count
        to at most 3
network.topology={kind: edge_list, file: broken.txt}
    network.topology: HERE/broken.txt:3: '7' is not a link; two nodes are expected
network.topology={kind: edge_list, file: empty.txt}
    network.topology: HERE/empty.txt: the file has no links
network.topology={kind: edge_list, file: small.txt, sample: snow}
    --set network.topology={kind: edge_list, file: small.txt, sample: ...: network.topology.sample: 'snow' is not
        allowed: must be one of breadth_first, random_walk
network.topology.p=1.5
    <SET>: network.topology.p: 1.5 is not allowed: must be a number > 0 and <= 1
network.topology.p=0
    <SET>: network.topology.p: 0 is not allowed: must be a number > 0 and <= 1
network.topology.p=1e-9
    network.topology: no connected graph in 1000 draws of erdos_renyi, p = 1e-09 with 6 agents; raise p, or set
        connected: false
network.topology.q=1
    <SET>: network.topology.q: unknown key; allowed: seed, kind, p, connected
network.topology=torus
    <SET>: network.topology: 'torus' is not allowed: must be one of star, grid, ring, line, complete or {kind: <EITHER>,
        ...}
network.topology={kind: torus}
    <SET>: network.topology.kind: 'torus' is not a known kind; known: <KINDS>
network.topology={kind: redrawn, p: 0.5, graph: rign}
    <SET>: network.topology.graph: 'rign' is not allowed: must be one of grid, ring, line, complete or {kind: <DRAWN>,
        ...}; did you mean ring?
network.topology={kind: redrawn, p: 0.5, graph: {kind: redrawn}}
    --set network.topology={kind: redrawn, p: 0.5, graph: {kind: redra...: network.topology.graph.kind: 'redrawn' is not
        a known kind; known: <ONCE>
network.topology.connected=false & problem={kind: k_armed, means: [0.8, 0.7]} & algorithms=[{algorithm: dd_ucb}]
    --set algorithms=[{algorithm: dd_ucb}]: algorithms[0].algorithm: dd_ucb needs a connected graph, and others may be
        drawn; leave out network.topology's connected: false
network.topology={kind: given, edges: [[0, 5]]} & problem={kind: k_armed, means: [0.8, 0.7]}
=> & algorithms=[{algorithm: gossip_se}]
    gossip_se: gossip_se needs a connected graph; add links, so that there is a path between any two agents
network.topology={kind: grid, rows: 4}
    network.topology: grid: rows(=4) must divide 6, the number of agents
network.topology={kind: barabasi_albert, m: 6}
    network.topology: barabasi_albert: m(=6) must be < 6, the number of agents
network.topology=star
    HERE/x.yaml:12:17: algorithms[0].algorithm: eager_kernel_ucb cannot run on network.topology star; it runs on: graph
algorithms.0.hops=0
    <SET>: algorithms[0].hops: 0 is not allowed: must be a whole number >= 1 or one of half_diameter, diameter
algorithms.0.hops=half
    <SET>: algorithms[0].hops: 'half' is not allowed: must be a whole number >= 1 or one of half_diameter, diameter;
        did you mean half_diameter?
algorithms.0.posterior=exakt
    <SET>: algorithms[0].posterior: 'exakt' is not allowed: must be one of exact, nystrom or {kind: exact | nystrom,
        ...}; did you mean exact?
problem.contexts.kind=clusters
    HERE/x.yaml:9:28: problem.contexts.dimension: unknown key; did you mean problem.arms.dimension? allowed: kind,
        hops, around
algorithms.0.posterior={kind: exact, memory: 1e-4}
    <SET>: algorithms[0].posterior.memory: this key is gone: a posterior that is larger than the memory of the machine
        is refused
algorithms.0.algorithm=dist_kernel_ucb
    Eager: dist_kernel_ucb needs one arm set for all turns of all agents; this problem offers fresh arms each turn; give
        problem.arms kind: pool without count, or problem.kind fixed_domain
problem={kind: contextual, arms: {kind: ball, dimension: 2, count: 3}, reward: {kind: cosine}}
=> & algorithms.0.network_kernel={kind: linear}
    Eager: network_kernel needs a problem that tells agents their contexts (problem.kind: network); with others use
        network_kernel: mmd, or null
"""
"""Settings, and what the program says of them, with its name of the last one where <SET> stands."""


@pytest.mark.parametrize(("settings", "messages"), cases(MISTAKES))
def test_a_mistake_has_its_message(
    settings: str,
    messages: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COBAND_DATA", str(tmp_path / "data"))
    (tmp_path / "small.txt").write_text("# links\n0 1\n1 2\n5 6\n")
    (tmp_path / "broken.txt").write_text("# links\n0 1\n7\n")
    (tmp_path / "empty.txt").write_text("# links\n")
    (tmp_path / "x.yaml").write_text(SCENARIO)
    chosen = [part for setting in settings.replace(" => &", " &").split(" & ") for part in ("--set", setting)]
    with pytest.raises(SystemExit) as left:
        main(["run", str(tmp_path / "x.yaml"), "--workers", "1", "--out", str(tmp_path / "run"), *chosen])
    assert left.value.code == 2
    size = "friends: 30 turns × 6 agents × 1 algorithm × 1 replication = 180 pulls\n"
    said = capsys.readouterr().err.rstrip().removeprefix(size)
    (message,) = messages
    kinds = {"<KINDS>": KINDS, "<EITHER>": EITHER, "<ONCE>": ONCE, "<DRAWN>": DRAWN}
    for name, text in {"HERE": tmp_path, "<SET>": f"--set {settings}", **kinds}.items():
        message = message.replace(name, str(text))
    assert said == message


def test_the_scenario_itself_is_good(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "x.yaml").write_text(SCENARIO)
    with pytest.raises(SystemExit) as left:
        main(["run", str(tmp_path / "x.yaml"), "--workers", "1", "--out", str(tmp_path / "run")])
    assert left.value.code == 0
    assert "Eager" in capsys.readouterr().out
