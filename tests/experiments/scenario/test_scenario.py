"""Scenario files that are good: what is read, filled in, overridden and written back."""

import json
import pickle
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coband.simulator.core.algorithm import Needs
from coband.simulator.core.randomness.distributions import Constant, Empirical, Exponential
from coband.simulator.experiments.registry.registry import Registry
from coband.simulator.experiments.scenario.document import json_schema
from coband.simulator.experiments.scenario.loading import load, loads
from coband.simulator.experiments.scenario.overrides import to_yaml
from coband.simulator.experiments.scenario.rules import broken_rules
from coband.simulator.experiments.scenario.scenario import Scenario
from coband.simulator.experiments.scenario.yaml_nodes import read
from coband.simulator.maths.kernels.library import Gaussian, Matern
from coband.simulator.problems.contextual import ContextualProblem
from coband.simulator.scenario_errors import ScenarioError
from tests.experiments.registry.plugins import ASYNC, LOCAL, PROBLEMS, REGISTRY, SCENARIO, AsyncConfig

CLUSTERS = SCENARIO.replace(
    "kind: contextual\n  arms: {kind: ball, dimension: 4, count: 3}\n  reward: {kind: cosine}",
    "kind: clusters\n  data: {name: magic, path: files/magic}",
)

ON_A_GRAPH = """
name: graph
agents: {count: 2}
schedule: {kind: rounds, turns: 3}
network: {topology: {kind: edge_list, file: a.txt}}
problem: {kind: network, arms: {kind: ball, dimension: 2, count: 4}, kernel: {kind: linear}}
algorithms: [{algorithm: naive_coop}]
"""


def good(text: str = SCENARIO, *overrides: str, base: Path | None = None) -> Scenario:
    return loads(text, "quick.yaml", overrides, base=base, registry=REGISTRY)


def test_values_and_defaults() -> None:
    scenario = good()
    assert (scenario.name, scenario.description, scenario.seed, scenario.replications) == ("quick", None, 7, 3)
    assert (scenario.trace, scenario.checks, scenario.share) == ("protocol", "cheap", True)
    assert scenario.agents.compute == Exponential(rate=2.0)
    assert scenario.network.latency == Constant(value=0.05)
    assert scenario.schedule.turns == 1000
    assert isinstance(scenario.problem, ContextualProblem)
    assert scenario.expect[0].at_most == 20_000_000


def test_entries_hold_the_algorithms_own_config() -> None:
    first, second = good().algorithms
    assert first.algorithm is ASYNC
    assert (first.label, second.label) == ("Async", "Bold")
    assert type(first.config) is AsyncConfig
    assert first.config == AsyncConfig(kernel=Gaussian(gamma=0.1), alpha=0.1)
    assert second.config == AsyncConfig(alpha=4.0)


def test_labels_default_to_the_algorithm() -> None:
    entries = good(SCENARIO.replace("label: Bold, ", "")).algorithms
    assert [entry.label for entry in entries] == ["Async", "async_kernel_ucb"]


@pytest.mark.parametrize("text", [SCENARIO, CLUSTERS])
def test_round_trip(text: str) -> None:
    scenario = good(text, "algorithms.Bold.kernel={kind: product, factors: [{kind: linear}, {kind: matern}]}")
    assert loads(scenario.to_yaml(), registry=REGISTRY) == scenario
    assert loads(json.dumps(scenario.resolved()), registry=REGISTRY) == scenario


def test_a_scenario_with_expectations_can_be_pickled() -> None:
    scenario = loads(SCENARIO, registry=REGISTRY)
    assert scenario.expect
    assert pickle.loads(pickle.dumps(scenario)).expect == scenario.expect


def test_resolved_has_every_default() -> None:
    resolved = good().resolved()
    assert json.loads(json.dumps(resolved)) == resolved
    again = resolved["network"]["retransmission"]
    assert again == {"timeout": None, "backoff": 2.0, "max_timeout": None, "max_attempts": 1000}
    kernel = {"gamma": 1.0, "length_scale": None, "columns": None, "kind": "gaussian"}
    named = {"algorithm": "async_kernel_ucb", "label": "Bold", "ties": "random", "kernel": kernel}
    others = {"alpha": 4.0, "transfer": "full", "steps": 30, "blocking": False, "dims": []}
    assert resolved["algorithms"][1] == named | others


def test_a_list_may_be_given_through_a_bare_number_union() -> None:
    assert good(SCENARIO, "network.latency={kind: empirical, values: [1, 2.5e-1]}").network.latency == Empirical(
        values=(1.0, 0.25)
    )


def test_one_value_per_replication_and_spare_ones() -> None:
    text = SCENARIO.replace("at_most: 2e7", "equals: [1, 2, 3]")
    assert good(text).expect[0].equals == (1, 2, 3)
    assert good(text, "replications=1").expect[0].equals == (1, 2, 3)


def test_a_registry_of_one_needs_no_union() -> None:
    registry = Registry({"async_kernel_ucb": ASYNC}, {"contextual": PROBLEMS["contextual"]})
    assert loads(SCENARIO, registry=registry).algorithms[0].algorithm is ASYNC
    with pytest.raises(ScenarioError, match="'contextul' is not a known kind; did you mean contextual"):
        loads(SCENARIO.replace("kind: contextual", "kind: contextul"), registry=registry)
    with pytest.raises(ScenarioError, match="'duets' is not a known algorithm; known: async_kernel_ucb"):
        loads(SCENARIO.replace("async_kernel_ucb", "duets"), registry=registry)


@pytest.mark.parametrize(
    ("written", "value"),
    [("1e3", 1000), ("1.5e3", 1500), ("1000.0", 1000), ("010", 10), ("0x10", 16), ("0o17", 15), ("+7", 7)],
)
def test_whole_numbers(written: str, value: int) -> None:
    assert good(SCENARIO.replace("turns: 1e3", f"turns: {written}")).schedule.turns == value


@pytest.mark.parametrize(("written", "value"), [("1e-3", 0.001), (".5", 0.5), ("5.", 5.0), ("1E2", 100.0), ("3", 3.0)])
def test_numbers(written: str, value: float) -> None:
    assert good(SCENARIO.replace("latency: 5e-2", f"latency: {written}")).network.latency == Constant(value=value)


@pytest.mark.parametrize(
    "text", ["no", "yes", "on", "off", "y", "2024-01-01", "1_000", "'10'", "'1e-3'", "!!str 10", "0b1"]
)
def test_text(text: str) -> None:
    scenario = good(SCENARIO.replace("name: quick", f"name: quick\ndescription: {text}"))
    assert scenario.description == text.removeprefix("!!str ").strip("'")
    assert loads(scenario.to_yaml(), registry=REGISTRY) == scenario


@pytest.mark.parametrize("text", ["null", "~", "Null", ""])
def test_null(text: str) -> None:
    assert good(SCENARIO.replace("name: quick", f"name: quick\ndescription: {text}")).description is None


@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers(-(2**52), 2**52)
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(st.characters(exclude_categories=("Cs", "Cc")) | st.sampled_from("\n\t"), max_size=12)
        | st.sampled_from(["1e-3", "010", "no", "0x1F", ".5", "1_0", "=", "<<", "null", "2024-01-01", "1:30"]),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from("abcde"), inner, max_size=4),
        max_leaves=10,
    )
)
def test_written_yaml_reads_back_by_both_versions_of_yaml(value: Any) -> None:
    import yaml

    from coband.simulator.experiments.scenario.yaml_nodes import plain

    document = {"x": value}
    node, problems = read(to_yaml(document), "x")
    assert problems == []
    assert plain(node) == document
    assert yaml.safe_load(to_yaml(document)) == document


def test_an_override_changes_one_use_of_an_alias() -> None:
    aliased = "latency: &delay {kind: exponential, rate: 4}\n  links: [{latency: *delay}]"
    text = SCENARIO.replace("latency: 5e-2", aliased)
    assert good(text).network.links[0].latency == Exponential(rate=4.0)
    network = good(text, "network.links.0.latency.rate=1").network
    assert network.latency == Exponential(rate=4.0)
    assert network.links[0].latency == Exponential(rate=1.0)


@pytest.mark.parametrize(
    "override",
    ["algorithms.1.alpha=9", "algorithms.Bold.alpha=9.0", "algorithms . Bold . alpha = 9", "algorithms.*.alpha=9"],
)
def test_override_an_entry(override: str) -> None:
    alphas = [entry.config.alpha for entry in good(SCENARIO, override).algorithms]  # type: ignore[attr-defined]
    assert alphas == [9.0 if "*" in override else 0.1, 9.0]


def test_a_star_means_the_entries_that_have_the_parameter() -> None:
    text = CLUSTERS.replace("{algorithm: async_kernel_ucb, label: Bold, alpha: 4}", "{algorithm: local_ucb, beta: 1}")
    changed = good(text, "algorithms.*.alpha=9", "algorithms.*.beta=2").algorithms
    assert [changed[0].config.alpha, changed[1].config.beta] == [9.0, 2.0]  # type: ignore[attr-defined]
    with pytest.raises(ScenarioError, match="unknown key; did you mean"):
        good(text, "algorithms.*.alpa=9")


def test_override_by_algorithm_where_it_is_unique() -> None:
    text = CLUSTERS.replace("{algorithm: async_kernel_ucb, label: Bold, alpha: 4}", "{algorithm: local_ucb, beta: 1}")
    assert good(text, "algorithms.local_ucb.beta=2").algorithms[1].config.beta == 2.0  # type: ignore[attr-defined]


def test_overrides_make_mappings_and_later_ones_win() -> None:
    scenario = good(
        SCENARIO,
        "network.retransmission.timeout=1e-3",
        "agents.stragglers={fraction: 0.1, slowdown: 10}",
        "agents.stragglers.slowdown=5",
        "algorithms.Bold.kernel.kind=matern",
        "network.bandwidth=null",
    )
    assert scenario.network.retransmission.timeout == 0.001
    assert scenario.agents.stragglers.slowdown == 5.0
    assert scenario.algorithms[1].config.kernel == Matern()  # type: ignore[attr-defined]


def test_an_override_mends_the_file() -> None:
    assert good(SCENARIO.replace("count: 5", "count: -5"), "agents.count=5") == good()


def test_data_paths_are_relative_to_the_scenario(tmp_path: Path) -> None:
    (tmp_path / "clusters.yaml").write_text(CLUSTERS)
    scenario = load(tmp_path / "clusters.yaml", registry=REGISTRY)
    assert (scenario.base, scenario.problem.data.path) == (tmp_path, Path("files/magic"))


def test_overridden_data_paths_start_at_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    scenario = good(CLUSTERS, "problem.data.path=here", base=tmp_path / "elsewhere")
    assert scenario.problem.data.path == tmp_path / "here"


def test_measured_delays_are_relative_to_the_scenario(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "delays.txt").write_text("1\n2\n")
    (tmp_path / "quick.yaml").write_text(SCENARIO.replace("5e-2", "{kind: empirical, file: delays.txt}"))
    monkeypatch.chdir("/")
    latency = load(tmp_path / "quick.yaml", registry=REGISTRY).network.latency
    assert latency.sample == (1.0, 2.0)


def test_a_graph_that_is_not_beside_the_scenario_comes_from_the_directory_of_downloads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COBAND_DATA", str(tmp_path / "data"))
    (tmp_path / "here").mkdir()
    (tmp_path / "data" / "graphs").mkdir(parents=True)

    def chosen() -> str:
        topology = loads(ON_A_GRAPH, base=tmp_path / "here").network.topology
        return topology.file

    assert chosen() == str(tmp_path / "here" / "a.txt")
    for place in ("data/graphs", "data", "here"):
        (tmp_path / place / "a.txt").write_text("0 1\n")
        assert chosen() == str(tmp_path / place / "a.txt")


def test_turns_from_a_file_are_relative_to_the_scenario(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "turns.csv").write_text("agent,time\n0,1\n4,2\n")
    turns = SCENARIO.replace("{kind: one_at_a_time, turns: 1e3}", "{kind: trace, file: turns.csv}")
    (tmp_path / "quick.yaml").write_text(turns)
    monkeypatch.chdir("/")
    scenario = load(tmp_path / "quick.yaml", registry=REGISTRY)
    assert scenario.schedule.total_turns(scenario.agents.count) == 2
    assert load(tmp_path / "quick.yaml", ["agents.count=5"], registry=REGISTRY).agents.count == 5
    with pytest.raises(ScenarioError, match="schedule.file: names agent 4: must be < 4, the agents.count; agents"):
        load(tmp_path / "quick.yaml", ["agents.count=4"], registry=REGISTRY)


def test_byte_order_mark(tmp_path: Path) -> None:
    (tmp_path / "quick.yaml").write_bytes(b"\xef\xbb\xbf" + SCENARIO.encode())
    assert load(tmp_path / "quick.yaml", registry=REGISTRY) == good()


def test_order_is_needed_only_where_datagrams_overtake() -> None:
    text = CLUSTERS.replace("{algorithm: async_kernel_ucb, label: Bold, alpha: 4}", "{algorithm: local_ucb, beta: 1}")
    first = "algorithm: async_kernel_ucb, label: Async, kernel: {kind: gaussian, gamma: 0.1}, alpha: 0.1"
    text = text.replace(first, "algorithm: local_ucb, label: Async, beta: 2").replace(
        "loss: 0.1", "transport: datagram"
    )
    assert good(text).algorithms[0].algorithm is LOCAL
    with pytest.raises(ScenarioError, match="local_ucb needs messages in order, but datagrams overtake each other"):
        good(text, "network.latency={kind: exponential, rate: 1}")


def test_topologies() -> None:
    ring = Registry({"async_kernel_ucb": _with_needs(Needs(topologies=("ring",)))}, PROBLEMS)
    with pytest.raises(ScenarioError, match=r"async_kernel_ucb cannot run on network.topology star; it runs on: ring"):
        loads(SCENARIO, registry=ring)
    graph = loads(SCENARIO.replace("network:\n", "network:\n  topology: {kind: ring}\n"), registry=ring)
    assert graph.network.graph is not None
    both = Registry({"async_kernel_ucb": _with_needs(Needs(topologies=("ring",))), "stars": ASYNC}, PROBLEMS)
    with pytest.raises(ScenarioError, match=r"it runs on: ring\n"):
        loads(SCENARIO, registry=both)


def _with_needs(needs: Needs) -> Any:
    from dataclasses import replace

    return replace(ASYNC, needs=needs)


def test_rules_say_nothing_about_sections_that_are_wrong_already() -> None:
    root, _ = read("agents: 3\nexpect: [{label: x}]\nalgorithms: 7", "x")
    assert list(broken_rules(root, {}, REGISTRY.algorithms)) == []


def test_schema_is_made_of_the_models() -> None:
    schema = json_schema(REGISTRY)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema["required"] == ["name", "agents", "schedule", "problem", "algorithms"]
    entries = schema["properties"]["algorithms"]["items"]["discriminator"]["mapping"]
    assert entries == {"async_kernel_ucb": "#/$defs/async_kernel_ucb", "local_ucb": "#/$defs/local_ucb"}
    local = schema["$defs"]["local_ucb"]
    assert list(local["properties"]) == ["algorithm", "label", "ties", "beta"]
    assert local["required"] == ["algorithm", "beta"]
    assert local["description"] == "Is silent.\n\nours"
    assert schema["$defs"]["Expectation"]["properties"]["count"]["enum"] == list(REGISTRY.metrics)


def test_schema_asks_for_the_tag_of_a_union() -> None:
    definitions = json_schema(REGISTRY)["$defs"]
    for name in ("Exponential", "Gaussian", "Product", "BallArms", "Rounds"):
        assert "kind" in definitions[name]["required"]


def test_every_top_level_key_has_a_description() -> None:
    schema = json_schema(REGISTRY)
    assert [key for key, value in schema["properties"].items() if not {"description", "$ref"} & set(value)] == []
