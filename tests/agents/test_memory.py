"""Memory that algorithms declare, by hand, in bytes."""

from __future__ import annotations

import pytest

from coband.simulator.conformance.graphs import graph_of
from coband.simulator.conformance.runs import algorithm
from coband.simulator.core.memory import RunSize
from coband.simulator.maths.neural.network import Network


@pytest.mark.parametrize("init", ["paper", "normal"])
@pytest.mark.parametrize("layers", [2, 3])
def test_networks_keep_a_matrix_of_all_pairs_of_weights_or_its_diagonal(layers: int, init: str) -> None:
    entry = algorithm("fn_ucb")
    for diagonal, power in ((False, 2), (True, 1)):
        config = entry.config.model_validate({"width": 6, "layers": layers, "init": init, "diagonal": diagonal})
        weights = Network(8 if config.doubles_input else 4, 6, layers, init).size  # type: ignore[arg-type]
        ((_, size),) = entry.memory_of(RunSize(config, agents=5, turns=50, dimension=4, arms=3, fixed=0))
        assert size == 8.0 * 5 * weights**power


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
