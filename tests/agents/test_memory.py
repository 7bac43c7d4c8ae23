"""Memory that algorithms declare, by hand, in bytes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from coband.simulator.arms import ArmSet
from coband.simulator.conformance.graphs import graph_of
from coband.simulator.conformance.runs import algorithm
from coband.simulator.core.memory import RunSize
from coband.simulator.core.nodes.graphs import Graph
from coband.simulator.maths.kernels.library import Gaussian
from coband.simulator.maths.neural.network import Network
from coband.simulator.maths.posteriors.domain import Domain
from coband.simulator.maths.posteriors.finite_domain import DomainLog
from tests.every import every


@pytest.mark.parametrize("init", ["paper", "normal"])
@pytest.mark.parametrize("layers", [2, 3])
def test_networks_keep_a_matrix_of_all_pairs_of_weights_or_its_diagonal(layers: int, init: str) -> None:
    entry = algorithm("fn_ucb")
    for diagonal, power in ((False, 2), (True, 1)):
        config = entry.config.model_validate({"width": 6, "layers": layers, "init": init, "diagonal": diagonal})
        weights = Network(8 if config.doubles_input else 4, 6, layers, init).size  # type: ignore[arg-type]
        ((_, size),) = entry.memory_of(RunSize(config, agents=5, turns=5 * 64, dimension=4, arms=3, fixed=0))
        assert size == 8.0 * 5 * weights**power
        ((_, size),) = entry.memory_of(RunSize(config, agents=5, turns=5 * 63, dimension=4, arms=3, fixed=0))
        assert size == 8.0 * 5 * weights * (1 if diagonal else 2 * 63)


def test_few_pulls_of_an_agent_are_kept_as_rows_instead_of_a_matrix() -> None:
    entry = algorithm("lin_ucb")
    sizes = {}
    for turns in (None, 7 * 64, 7 * 63, 7 * 3 + 1):
        run = RunSize(entry.config(), agents=7, turns=turns, dimension=200, arms=3, fixed=0)
        ((_, sizes[turns]),) = entry.memory_of(run)
    assert list(sizes.values()) == [8.0 * 7 * 200 * each for each in (200, 200, 2 * 63, 2 * 4)]


@pytest.mark.parametrize(("turns", "rows"), [(20, 3 * 4), (4000, 100)])
def test_a_dictionary_of_cooperating_agents_has_a_square_matrix_each(turns: int, rows: int) -> None:
    entry = algorithm("eager_kernel_ucb")
    config = entry.config.model_validate({"posterior": {"kind": "nystrom", "size": 100}, "hops": 1})
    run = RunSize(config, agents=5, turns=turns, dimension=3, arms=5, fixed=0, graph=graph_of("ring", 5, 0))
    ((_, size),) = entry.memory_of(run)
    assert size == 8.0 * 5 * rows**2


@pytest.mark.parametrize("name", ["eager_kernel_ucb", "naive_coop"])
def test_a_single_agent_on_a_graph_has_the_triangular_factor_of_its_own_pulls(name: str) -> None:
    entry = algorithm(name)
    config = entry.config.model_validate({"kernel": {"kind": "gaussian", "gamma": 1.0}})
    run = RunSize(config, agents=1, turns=50, dimension=3, arms=5, fixed=0, graph=graph_of("complete", 1, 0))
    ((_, size),) = entry.memory_of(run)
    assert size == 8.0 * 50**2 / 2


def test_agents_that_know_the_same_keep_it_once_unless_they_share_nothing() -> None:
    entry = algorithm("eager_kernel_ucb")
    config = entry.config.model_validate({"kernel": {"kind": "gaussian", "gamma": 1.0}, "hops": 1})
    run = RunSize(config, agents=5, turns=50, dimension=3, arms=5, fixed=0, graph=graph_of("complete", 5, 0))
    ((_, size),), ((_, alone),) = entry.memory_of(run), entry.memory_of(replace(run, share=False))
    assert alone == 5 * size > 0
    assert size == dict(entry.memory_of(replace(run, share=True)))[entry.memory[0]]


@every("points", [10, 100, 1000, 8192, 8193, 20_000])
@every("name", ["n_kernel_ucb", "one_kernel_ucb"])
def test_posteriors_on_a_fixed_domain_have_a_row_for_each_pull_and_then_a_matrix(name: str, points: int) -> None:
    entry, domain = algorithm(name), ArmSet.fixed(np.linspace(0.0, 1.0, points)[:, None])
    rows = int(DomainLog(Domain(Gaussian(gamma=1.0), domain), 1.0)._without_base)

    def numbers(pulls: int) -> float:
        run = RunSize(entry.config(), agents=1, turns=pulls, dimension=1, arms=points, fixed=points)
        ((_, size),) = entry.memory_of(run)
        return size / 8.0

    assert numbers(rows) == rows * points
    assert numbers(rows + 1) == (1.25 * points**2 if name == "n_kernel_ucb" else (rows + 1 + points) * points)


@pytest.mark.parametrize(("share", "pulls"), [("rewards", 5 * 20), ("nothing", 20)])
def test_batched_exploration_has_a_row_for_each_pull_of_its_first_batch(share: str, pulls: int) -> None:
    entry = algorithm("bpe")
    config = entry.config.model_validate({"share": share})
    for points, rows in ((4000, pulls), (30, min(pulls, 30))):
        run = RunSize(config, agents=5, turns=5 * 400, dimension=2, arms=points, fixed=points)
        ((_, size),) = entry.memory_of(run)
        assert size == 8.0 * rows * points
    assert entry.memory_of(RunSize(config, agents=5, turns=2000, dimension=2, arms=4, fixed=None)) == []


@pytest.mark.parametrize("name", ["eager_kernel_ucb", "naive_coop"])
def test_nobody_says_how_large_posteriors_get_without_a_number_of_turns_or_a_dimension(name: str) -> None:
    entry = algorithm(name)
    run = RunSize(entry.config(), agents=5, turns=50, dimension=3, arms=5, fixed=0, graph=graph_of("ring", 5, 0))
    assert len(entry.memory_of(run)) == 1
    assert entry.memory_of(replace(run, turns=None)) == entry.memory_of(replace(run, dimension=None)) == []


@pytest.mark.parametrize("middle", [0, 4])
def test_the_dictionary_of_each_agent_grows_with_what_that_agent_hears_of(middle: int) -> None:
    """The middle of a star hears of all five agents, the others of two."""
    entry = algorithm("eager_kernel_ucb")
    config = entry.config.model_validate({"posterior": {"kind": "nystrom", "size": 1000}, "hops": 1})
    others = tuple(agent for agent in range(5) if agent != middle)
    graph = Graph(tuple(others if agent == middle else (middle,) for agent in range(5)))
    run = RunSize(config, agents=5, turns=100, dimension=3, arms=5, fixed=0, graph=graph)
    ((_, size),) = entry.memory_of(run)
    assert size == 8.0 * (100**2 + 4 * 40**2)


def test_contexts_of_unknown_size_have_one_coordinate_at_least() -> None:
    """Linear kernels of contexts and of arms in 100 dimensions have 302 features then, which need a dictionary."""
    entry = algorithm("eager_kernel_ucb")
    linear = {"kernel": {"kind": "linear"}, "network_kernel": {"kind": "linear"}}
    config = entry.config.model_validate({**linear, "posterior": {"kind": "nystrom", "size": 10}, "hops": 1})
    run = RunSize(config, agents=5, turns=100, dimension=100, arms=5, fixed=0, graph=graph_of("complete", 5, 0))
    assert entry.memory_of(run) == [(entry.memory[0], 8.0 * 5 * 10**2)]


@pytest.mark.parametrize(("hops", "shared"), [(1, True), (2, False)])
def test_agents_that_estimate_similarities_share_what_they_know_with_one_hop_alone(hops: int, shared: bool) -> None:
    entry = algorithm("eager_kernel_ucb")
    config = entry.config.model_validate({"network_kernel": "mmd", "hops": hops})
    run = RunSize(config, agents=5, turns=50, dimension=3, arms=5, fixed=0, graph=graph_of("complete", 5, 0))
    ((_, size),), ((_, alone),) = entry.memory_of(run), entry.memory_of(replace(run, share=False))
    assert alone == (5 * size if shared else size) > 0
