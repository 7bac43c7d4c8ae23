"""Every algorithm on a graph at the paper's size: it ends, and its counts have their closed forms."""

from typing import Any

import pytest

from coband.extensions.conformance import graphs

V, D = 200, 10
GAUSSIAN = {"kind": "gaussian", "length_scale": 1.0}
KNOWN = {"kernel": GAUSSIAN, "network_kernel": GAUSSIAN}
LINEAR = {"kind": "linear"}
MMD = {"kind": "mmd", "sigma": 1.0}
APPROXIMATE = {"kind": "nystrom", "size": 256}
FRESH = {"kind": "ball", "dimension": D, "count": 8}
FIXED = {"kind": "pool", "dimension": D, "size": 8}

# (algorithm, parameters, arms, kernel of the problem, trials)
CASES: list[tuple[str, dict[str, Any], dict[str, Any], dict[str, Any], int]] = [
    ("coop_kernel_ucb", KNOWN, FRESH, GAUSSIAN, 100),
    ("coop_kernel_ucb", {"kernel": GAUSSIAN, "network_kernel": MMD}, FRESH, GAUSSIAN, 100),
    ("eager_kernel_ucb", {**KNOWN, "posterior": APPROXIMATE}, FRESH, GAUSSIAN, 100),
    ("eager_kernel_ucb", KNOWN, FIXED, GAUSSIAN, 100),
    ("naive_coop", {"kernel": GAUSSIAN, "posterior": APPROXIMATE}, FRESH, GAUSSIAN, 100),
    ("dist_kernel_ucb", KNOWN, FIXED, GAUSSIAN, 100),
    ("igp_ucb", {"kernel": GAUSSIAN}, FRESH, GAUSSIAN, 100),
    ("kernel_ucb", {"kernel": GAUSSIAN}, FRESH, GAUSSIAN, 100),
    ("lin_ucb", {}, FRESH, LINEAR, 500),
    ("oful", {}, FRESH, LINEAR, 500),
    ("coop_kernel_ucb", {"kernel": LINEAR, "network_kernel": LINEAR}, FRESH, LINEAR, 500),
    ("eager_kernel_ucb", {"kernel": LINEAR, "network_kernel": LINEAR}, FRESH, LINEAR, 500),
    ("naive_coop", {"kernel": LINEAR}, FRESH, LINEAR, 500),
]
TALKS = ("coop_kernel_ucb", "eager_kernel_ucb", "naive_coop", "dist_kernel_ucb")


@pytest.mark.slow
@pytest.mark.parametrize(("name", "config", "arms", "kernel", "trials"), CASES)
def test_at_the_size_of_the_paper(
    name: str, config: dict[str, Any], arms: dict[str, Any], kernel: dict[str, Any], trials: int
) -> None:
    problem = {
        "kind": "network",
        "arms": arms,
        "contexts": {"kind": "sphere", "dimension": 10},
        "kernel": kernel,
        "network_kernel": kernel,
    }
    exploration = {"eta": 0.1} if name in TALKS else {}
    simulated = graphs.run(
        name,
        {**config, **exploration},
        problem,
        topology={"kind": "erdos_renyi", "p": 0.7},
        agents=V,
        schedule={"kind": "rounds", "turns": trials},
        checks="cheap",
        trace="off",
    )
    totals, graph = simulated.result.totals, simulated.engine.graph
    assert graph is not None
    copies = 2 * graph.edges * trials if name in TALKS else 0
    context = D if "network_kernel" in config and config["network_kernel"] != MMD else 0
    assert simulated.result.turns == V * trials
    assert simulated.result.stalled == 0
    assert (totals["deliveries"], totals["transmissions"]) == (copies, copies)
    assert totals["scalars"] == totals["peer_scalars"] == copies * (D + 3 + context)
