"""Coop-, Eager-, Naive- and Dist-KernelUCB against Algorithms 1 to 3 written as plain loops."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import networkx as nx
import numpy as np
import pytest

from coband.extensions.conformance.graphs import POOL, check_conservation, graph_of, run, world
from coband.extensions.conformance.runs import Run
from coband.simulator import arrays
from coband.simulator.arms import ArmSet
from coband.simulator.arrays import TooLarge
from coband.simulator.core.nodes.node import UnsupportedScenario
from coband.simulator.core.randomness.streams import Streams
from coband.simulator.maths.graphs.covers import centres, power_graph
from coband.simulator.maths.posteriors.counts import RepeatsPosterior
from coband.simulator.maths.posteriors.linear_tasks import Solution, TaskwisePosterior
from tests.every import every
from tests.everyday import everyday
from tests.oracles import coop_kernel_ucb as oracle
from tests.oracles import with_ties
from tests.oracles.kernels import plain
from tests.oracles.local import ball

NAMES = ("coop_kernel_ucb", "eager_kernel_ucb", "naive_coop", "dist_kernel_ucb")
TOPOLOGIES: list[Any] = [
    "ring",
    "line",
    "grid",
    "complete",
    {"kind": "star"},
    {"kind": "erdos_renyi", "p": 0.4},
    {"kind": "barabasi_albert", "m": 1},
    {"kind": "erdos_renyi", "p": 0.2, "connected": False},
]
KERNELS: list[dict[str, Any]] = [
    {"kind": "gaussian", "gamma": 1.1},
    {"kind": "matern", "nu": 1.5, "length_scale": 0.8},
    {"kind": "linear", "bias": 0.3},
    {"kind": "linear"},
]
CONTEXTS: list[dict[str, Any]] = [
    {"kind": "ball", "dimension": 2},
    {"kind": "clusters", "hops": 1},
    {"kind": "clusters", "hops": 2, "around": "colours"},
    {"kind": "same"},
]
NETWORK_KERNELS: list[dict[str, Any]] = [
    {"kind": "gaussian", "length_scale": 0.7},
    {"kind": "linear", "bias": 0.1},
    {"kind": "gaussian", "gamma": 0.4},
]


BALL = {"kind": "ball", "dimension": 3, "count": 4}
COVERS: dict[str, Any] = {"dsatur": "saturation_largest_first", "largest_first": "largest_first"}
"""Ours and networkx's names of greedy colourings."""


def random_case(name: str, case: int, estimated: bool = False) -> tuple[dict[str, Any], dict[str, Any]]:
    """Scenario and parameters; every third case has the other reading of the delay."""
    rng = np.random.default_rng((7, case))
    kernel = KERNELS[int(rng.integers(len(KERNELS)))]
    network_kernel = NETWORK_KERNELS[int(rng.integers(len(NETWORK_KERNELS)))]
    composition = str(rng.choice(["product", "sum"], p=[0.7, 0.3]))
    arms = {"kind": "ball", "dimension": 3, "count": int(rng.integers(2, 7))}
    problem = {
        "kind": "network",
        "arms": POOL if name == "dist_kernel_ucb" else arms,
        "kernel": kernel,
        "contexts": CONTEXTS[int(rng.integers(len(CONTEXTS)))],
        "network_kernel": network_kernel,
        "composition": composition,
        "noise": float(rng.uniform(0, 0.3)),
        "centres": 10,
        "shift": float(rng.choice([0.0, 0.5])) if name != "dist_kernel_ucb" else 0.0,
    }
    plan = {
        "topology": TOPOLOGIES[case % len(TOPOLOGIES)],
        "agents": int(rng.integers(2, 9)),
        "seed": case,
        "problem": problem,
        "schedule": {"kind": "rounds", "turns": int(rng.integers(4, 11))},
    }
    config: dict[str, Any] = {
        "kernel": kernel,
        "eta": float(rng.choice([0.1, 1.0, 3.0])),
        "lam": float(rng.uniform(0.2, 2.0)),
        "hops": int(rng.integers(1, 5)),
        "delay": "d" if case % 3 == 1 else "d_minus_1",
    }
    config |= random_width(name, np.random.default_rng((8, case)))
    if name == "coop_kernel_ucb":
        config["cover"] = ("dsatur", "largest_first")[case % 2]
    if name != "naive_coop":
        config["composition"] = composition
        config["network_kernel"] = network_kernel
        if estimated:
            config["network_kernel"] = {
                "kind": "mmd",
                "sigma": float(rng.uniform(0.4, 1.5)),
                "mmd_power": int(rng.integers(1, 3)),
                "refresh": int(rng.integers(1, 5)),
            }
        elif rng.random() < 0.2:
            config["network_kernel"] = None
    return plan, config


def random_width(name: str, rng: np.random.Generator) -> dict[str, Any]:
    """How far bounds lie above estimates, and the quantities that it follows from."""
    width = str(rng.choice(["constant", "lemma_1", *(["paper", "igp_ucb"] if name == "naive_coop" else [])]))
    norm, noise, delta = rng.uniform(0.0, 1.0), rng.uniform(0.01, 1.0), rng.uniform(0.01, 1.0)
    return {"width": width, "norm": float(norm), "sub_gaussian": float(noise), "delta": float(delta)}


def width_of(plan: dict[str, Any], config: dict[str, Any]) -> Callable[[oracle.Learner], float] | None:
    """The factor before sigma; None for a constant one."""
    bounds = config["norm"], config["sub_gaussian"], config["delta"]
    if config["width"] == "lemma_1":
        return lambda learner: oracle.lemma_1(learner, plan["agents"], *bounds)
    linear = config["kernel"]["kind"] == "linear"
    if config["width"] == "igp_ucb" or (config["width"] == "paper" and not linear):
        return lambda learner: oracle.igp_ucb(learner, *bounds)
    return None


def pair_kernel(config: dict[str, Any], network: Any) -> oracle.Pair:
    """K of two observations, with K_z of two agents' numbers."""
    arms = plain(config["kernel"])
    adds_up = network is not None and config.get("composition") == "sum"

    def kernel(one: oracle.Observation, other: oracle.Observation) -> float:
        of_arms = float(arms(one.x[None], other.x[None])[0, 0])
        of_tasks = 1.0 if network is None else network(one.agent, other.agent)
        return of_tasks + of_arms if adds_up else of_tasks * of_arms

    return kernel


def estimates(config: dict[str, Any]) -> Any:
    """From what an agent knows to the kernel of equations 11 and 12."""
    spec = config["network_kernel"]

    def similarity(agent: int, known: list[oracle.Observation]) -> oracle.Pair:
        seen: dict[int, list[Any]] = {}
        for item in known:
            seen.setdefault(item.agent, []).append(item.x)

        def network(one: int, other: int) -> float:
            if one == other:
                return 1.0
            squared = oracle.mmd_squared(plain(config["kernel"]), np.array(seen[one]), np.array(seen[other]))
            distance = squared if spec["mmd_power"] == 2 else np.sqrt(squared)
            return float(np.exp(-distance / (2 * spec["sigma"] ** 2)))

        cache: dict[tuple[int, int], float] = {}

        def cached(one: int, other: int) -> float:
            pair = min(one, other), max(one, other)
            if pair not in cache:
                cache[pair] = network(*pair)
            return cache[pair]

        return pair_kernel(config, cached)

    return similarity


def oracle_of(name: str, plan: dict[str, Any], config: dict[str, Any]) -> oracle.CoopRun:
    graph = graph_of(plan["topology"], plan["agents"], plan["seed"])
    rows, V, hops = graph.adjacency, graph.nodes, config["hops"]
    truth = with_ties(world(plan["problem"], plan["seed"], graph), Streams(plan["seed"]).ties)
    spec, network, similarity = config.get("network_kernel"), None, None
    if spec is not None and spec["kind"] == "mmd":
        similarity = estimates(config)
    elif spec is not None:
        table = plain(spec)(truth.contexts, truth.contexts)
        network = lambda one, other: float(table[one, other])  # noqa: E731
    accepts, central = [ball(rows, v, hops) for v in range(V)], None
    if name == "coop_kernel_ucb":
        accepts = cliques(rows, hops, config["cover"])
    if name == "dist_kernel_ucb":
        central = dict(enumerate(centres(power_graph(graph.distances, hops)).centre_of))
    parameters = SimpleNamespace(
        eta=config["eta"], lam=config["lam"], hops=hops, delay=config["delay"], refresh=(spec or {}).get("refresh")
    )
    return oracle.run(
        plan["schedule"]["turns"],
        rows,
        truth,
        pair_kernel(config, network),
        parameters,
        Streams(plan["seed"]).coin,
        accepts,
        central,
        similarity,
        width_of(plan, config),
    )


def cliques(rows: Any, hops: int, cover: str) -> list[set[int]]:
    """For each agent its clique by networkx's greedy colouring of the complement of G_gamma."""
    complement = nx.Graph()
    complement.add_nodes_from(range(len(rows)))
    complement.add_edges_from((v, u) for v in range(len(rows)) for u in range(v) if u not in ball(rows, v, hops))
    colours = nx.greedy_color(complement, strategy=COVERS[cover])
    return [{u for u in colours if colours[u] == colours[v]} for v in range(len(rows))]


def simulate(name: str, plan: dict[str, Any], config: dict[str, Any], **more: Any) -> Run:
    parts = dict(plan)
    return run(name, config, parts.pop("problem"), **parts, **more)


def check_equal(simulated: Run, expected: oracle.CoopRun) -> None:
    assert simulated.pulls == [pull[:4] for pull in expected.pulls]
    assert simulated.result.regret == pytest.approx(sum(pull[4] for pull in expected.pulls), abs=1e-9)
    totals = simulated.result.totals
    assert (totals["deliveries"], totals["transmissions"]) == (expected.deliveries, expected.transmissions)
    check_conservation(simulated)


@every("case", everyday(9, range(36)))
@every("name", NAMES)
def test_a_run_without_delays_is_the_pseudo_code(name: str, case: int) -> None:
    """Models at the end included. In turn arms are new at each turn, few and fixed, and network kernels estimated; work
    that is not shared, or messages that walk hop by hop, change nothing."""
    few, estimated = case // 3 % 3 == 1, case // 3 % 3 == 2 and name in ("coop_kernel_ucb", "eager_kernel_ucb")
    plan, config = random_case(name, case, estimated)
    if few:
        plan["problem"] |= {"arms": {**POOL, "size": 3}, "shift": 0.0}
        plan["schedule"] = {"kind": "rounds", "turns": 7 + case % 4}
    simulated, expected = simulate(name, plan, config, checks="cheap"), oracle_of(name, plan, config)
    check_equal(simulated, expected)
    nodes: Any = simulated.engine.agents
    if few and config["kernel"]["kind"] != "linear":  # posteriors count how often each arm was seen
        assert all(isinstance(node.knowledge.posterior.posterior, RepeatsPosterior) for node in nodes)
    if case % 2:
        alone = simulate(name, plan, config, share=False, checks="cheap")
        assert alone.result.fingerprint == simulated.result.fingerprint
    else:
        walked = simulate(name, plan, config, network={"local": {"mode": "hop_by_hop"}}, checks="cheap")
        assert walked.pulls == simulated.pulls
        for key in ("deliveries", "transmissions", "scalars"):
            assert walked.result.totals[key] == simulated.result.totals[key]
    if few or estimated or name == "dist_kernel_ucb":
        return
    X = np.random.default_rng(3).uniform(-0.6, 0.6, (5, 3))
    for v, node in enumerate(nodes):
        node._learn()
        mean, variance = node.knowledge.predict(ArmSet(X))
        pairs = [expected.learners[v].moments(oracle.Observation(0, v, x)) for x in X]
        assert mean == pytest.approx([pair[0] for pair in pairs], abs=1e-8)
        assert np.sqrt(config["lam"] * variance) == pytest.approx([pair[1] for pair in pairs], abs=1e-6)


@pytest.mark.parametrize("case", everyday(3, range(24)))
@pytest.mark.parametrize("name", ["coop_kernel_ucb", "eager_kernel_ucb", "dist_kernel_ucb"])
def test_with_linear_kernels_task_by_task_too(name: str, case: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """As with so many tasks that their features are too many."""
    monkeypatch.setattr("coband.simulator.maths.posteriors.choose_multitask.PRIMAL_FEATURES", 0)
    solved: list[Solution] = []
    solve = Solution.weights
    monkeypatch.setattr(Solution, "weights", lambda self, own, out: solved.append(self) or solve(self, own, out))
    plan, config = random_case(name, case, estimated=case % 2 == 0 and name != "dist_kernel_ucb")
    config |= {"kernel": {"kind": "linear", "bias": 0.3 * (case % 3)}, "composition": "product"}
    config["network_kernel"] = config["network_kernel"] or {"kind": "gaussian", "gamma": 0.4}
    simulated = simulate(name, plan, config, checks="cheap")
    check_equal(simulated, oracle_of(name, plan, config))
    nodes: Any = simulated.engine.agents
    assert all(isinstance(node.knowledge.posterior, TaskwisePosterior) for node in nodes)
    assert solved or config["hops"] > 1 or plan["topology"] != "complete"
    alone = simulate(name, plan, config, share=False, checks="cheap")
    assert alone.result.fingerprint == simulated.result.fingerprint
    lossy = {"loss": 0.3, "transport": "datagram", "latency": {"kind": "exponential", "rate": 1.0}}
    unequal = [simulate(name, plan, config, network=lossy, share=share, checks="cheap") for share in (True, False)]
    assert unequal[0].result.fingerprint == unequal[1].result.fingerprint


@every("case", everyday(2, range(12)))
@every("name", NAMES)
def test_at_one_hop_the_later_delay_is_that_of_links_that_take_a_trial_longer(name: str, case: int) -> None:
    """A message of trial t that is under way until t + 1.5 is known at t + 2 too."""
    plan, config = random_case(name, case)
    config["hops"] = 1
    later = simulate(name, plan, {**config, "delay": "d"}, checks="cheap")
    slow = simulate(name, plan, {**config, "delay": "d_minus_1"}, network={"latency": 1.5}, checks="cheap")
    assert later.pulls == slow.pulls
    assert (later.result.totals["extra_delay"], slow.result.totals["extra_delay"]) == (1, 0)


@every(
    ("contexts", "kernel", "rank", "arms"),
    [
        ({"kind": "same"}, {"kind": "linear"}, 1, POOL),
        ({"kind": "sphere", "dimension": 3}, None, 1, BALL),
        ({"kind": "sphere", "dimension": 3}, {"kind": "linear"}, 3, BALL),
        ({"kind": "sphere", "dimension": 3}, {"kind": "linear", "bias": 1.0}, 4, POOL),
        ({"kind": "sphere", "dimension": 3}, {"kind": "gaussian", "gamma": 4.0}, 9, POOL),
        ({"kind": "clusters", "hops": 1}, {"kind": "linear"}, 5, BALL),
    ],
)
def test_heterogeneity_is_the_rank_of_the_network_kernel(contexts: Any, kernel: Any, rank: int, arms: Any) -> None:
    """Nine agents on a grid of 3 x 3, whose heaviest independent set has five members."""
    problem = {
        "kind": "network",
        "arms": arms,
        "contexts": contexts,
        "kernel": {"kind": "linear"},
        "network_kernel": kernel,
    }
    found = run("eager_kernel_ucb", {"kernel": {"kind": "linear"}}, problem, topology={"kind": "grid"}, agents=9)
    truth: Any = found.engine.world
    expected = 1 if kernel is None else np.linalg.matrix_rank(plain(kernel)(truth.contexts, truth.contexts))
    assert found.result.totals["heterogeneity"] == expected == rank


@pytest.mark.parametrize(
    ("topology", "cover", "agents", "sizes"),
    [
        ("complete", "dsatur", 8, (1, 8, 0, 1)),
        ({"kind": "star"}, "dsatur", 8, (7, 2, 1, 0)),
        ("line", "largest_first", 8, (4, 2, 1, 1)),
        ("complete", "dsatur", 1, (1, 1, 1, 1)),
        ({"kind": "star"}, "largest_first", 5, (4, 2, 1, 0)),
    ],
)
def test_the_result_says_what_the_cover_is(topology: Any, cover: str, agents: int, sizes: tuple[int, ...]) -> None:
    problem = {"kind": "network", "arms": POOL, "kernel": {"kind": "linear"}}
    totals = run("coop_kernel_ucb", {"cover": cover}, problem, topology=topology, agents=agents).result.totals
    assert tuple(totals[name] for name in ("cliques", "largest_clique", "cliques_divide", "cliques_join")) == sizes


@every("name", NAMES)
def test_lost_datagrams_are_missing_data_and_no_crash(name: str) -> None:
    plan, config = random_case(name, 8)
    network = {
        "loss": 0.5,
        "transport": "datagram",
        "latency": {"kind": "exponential", "rate": 1.0},
        "partitions": [{"start": 2.0, "end": 4.0, "groups": [[0, 1]]}],
    }
    simulated = simulate(name, plan, config, network=network)
    assert simulated.result.turns == plan["agents"] * plan["schedule"]["turns"]
    assert simulated.result.stalled == 0
    check_conservation(simulated)


def machine_of(gib: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run on a machine of so little memory."""
    monkeypatch.setattr(arrays, "SMALL", 0.0)
    monkeypatch.setattr(arrays, "machine_memory", lambda: gib * arrays.GIB)


FRESH = {
    "kind": "network",
    "arms": {"kind": "ball", "dimension": 3, "count": 2},
    "kernel": {"kind": "gaussian", "gamma": 1.0},
}


@every(
    ("name", "kernel", "refused"),
    [
        ("eager_kernel_ucb", {"kind": "gaussian", "gamma": 1.0}, True),
        ("naive_coop", {"kind": "gaussian", "gamma": 1.0}, True),
        ("coop_kernel_ucb", {"kind": "gaussian", "gamma": 1.0}, False),
        ("naive_coop", {"kind": "linear"}, False),
    ],
)
def test_exact_posteriors_that_do_not_fit_are_refused_with_their_size(
    name: str, kernel: Any, refused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    schedule, topology = {"kind": "rounds", "turns": 5}, {"kind": "erdos_renyi", "p": 0.7}
    plan: Any = {"topology": topology, "agents": 40, "schedule": schedule, "checks": "cheap"}
    machine_of(1e-4 if refused else 5e-3, monkeypatch)
    if refused:
        with pytest.raises(TooLarge, match=r"up to 1\d\d observations: about .* GiB.*use posterior: \{kind: nystrom"):
            run(name, {"kernel": kernel, "posterior": "exact"}, FRESH, **plan)
    posterior = "nystrom" if refused else "exact"
    assert run(name, {"kernel": kernel, "posterior": posterior}, FRESH, **plan).result.turns == 200


def test_an_exact_posterior_of_one_agent_that_does_not_fit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    machine_of(1e-5, monkeypatch)  # room for the curves
    config, schedule = {"kernel": {"kind": "gaussian", "gamma": 1.0}}, {"kind": "rounds", "turns": 100}
    with pytest.raises(TooLarge, match="exact posteriors of 1 groups of agents with up to 100 observations"):
        run("eager_kernel_ucb", config, FRESH, topology="complete", agents=1, schedule=schedule)


@pytest.mark.parametrize(("hops", "kind", "refused"), [(1, "mmd", False), (2, "mmd", True), (2, "gaussian", False)])
def test_agents_with_kernels_of_their_own_share_no_factor(
    hops: int, kind: str, refused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At two hops arms reach agents at different trials, so that they estimate K_z differently: 12 factors for one."""
    machine_of(4.0 * 60**2 * 4 / 2**30, monkeypatch)
    gaussian = {"kind": "gaussian", "gamma": 1.0}
    problem = {**FRESH, "contexts": {"kind": "ball", "dimension": 2}, "network_kernel": gaussian}
    config = {"kernel": gaussian, "network_kernel": gaussian if kind == "gaussian" else "mmd", "hops": hops}
    schedule = {"kind": "rounds", "turns": 5}
    plan: Any = {"topology": "complete", "agents": 12, "schedule": schedule, "checks": "cheap"}  # twins share nothing
    if not refused:
        assert run("coop_kernel_ucb", config, problem, **plan).result.turns == 60
        return
    with pytest.raises(TooLarge, match="12 groups of agents with up to 60 observations"):
        run("coop_kernel_ucb", config, problem, **plan)


@pytest.mark.parametrize(
    ("name", "size", "reported"),
    [
        ("eager_kernel_ucb", 17, 0),
        ("eager_kernel_ucb", 18, 1),
        ("naive_coop", 3, 1),
        ("naive_coop", 2, 0),
        ("coop_kernel_ucb", None, None),
    ],
)
def test_a_dictionary_with_less_than_three_points_a_task_is_reported(
    name: str, size: int | None, reported: int | None
) -> None:
    """Six agents hear of each other; naive cooperation knows one task alone."""
    problem = {"kind": "network", "arms": POOL, "kernel": {"kind": "gaussian", "gamma": 1.0}}
    config: dict[str, Any] = {} if name == "naive_coop" else {"network_kernel": "mmd"}
    if size is not None:
        config["posterior"] = {"kind": "nystrom", "size": size}
    plan: Any = {"topology": "complete", "agents": 6, "schedule": {"kind": "rounds", "turns": 5}}
    assert run(name, config, problem, **plan).result.totals.get("dictionary_suffices") == reported


def test_hops_may_be_the_diameter_or_half_of_it_and_are_one_on_a_complete_graph() -> None:
    problem = {"kind": "network", "arms": POOL, "kernel": {"kind": "gaussian", "gamma": 1.0}}
    for topology, diameter, half in (("line", 8, 4), ("ring", 4, 2), ("complete", 1, 1)):
        for hops, expected in (("diameter", diameter), ("half_diameter", half)):
            plan: dict[str, Any] = {"topology": topology, "agents": 9, "checks": "cheap"}
            assert run("eager_kernel_ucb", {"hops": hops}, problem, **plan).result.totals["hops"] == expected


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"kernel": {"kind": "gaussian", "gamma": 1.0, "columns": [3]}}, "kernel names column 3, but arms have 3"),
        (
            {"network_kernel": {"kind": "gaussian", "gamma": 1.0, "columns": [2]}},
            "network_kernel names column 2, but network contexts have 2",
        ),
    ],
)
def test_kernels_of_coordinates_that_there_are_not_are_refused(config: dict[str, Any], message: str) -> None:
    contexts = {"kind": "ball", "dimension": 2}
    problem = {"kind": "network", "arms": POOL, "kernel": {"kind": "gaussian", "gamma": 1.0}, "contexts": contexts}
    with pytest.raises(UnsupportedScenario, match=message):
        run("coop_kernel_ucb", config, problem)
