"""On a fixed domain the algorithms keep their posteriors up to date, and decide as the plain forms do."""

from typing import Any

import numpy as np
import pytest

import coband.agents.alone.n_kernel_ucb
import coband.agents.kernel.approx_dis_kernel_ucb
import coband.agents.kernel.dis_kernel_ucb
import coband.agents.kernel.one_kernel_ucb
from coband.agents.messages.asynchronous import Upload
from coband.extensions.conformance import graphs
from coband.extensions.conformance.communication import check_closed_forms, check_messages
from coband.extensions.conformance.runs import PROBLEM, run
from coband.simulator.core.nodes.node import UnsupportedScenario
from coband.simulator.maths.posteriors import finite_domain as domain_exact
from coband.simulator.maths.posteriors.finite_domain import DomainLogPosterior, DomainPosterior
from tests.agents.beside import assert_equal, beside
from tests.agents.test_equivalence import ORACLES, SAMPLING, random_case
from tests.every import every
from tests.everyday import everyday
from tests.oracles import gp_ucb

CONFIGURATIONS = 24
FORMS = {
    "one_kernel_ucb": DomainLogPosterior,
    "dis_kernel_ucb": DomainLogPosterior,
    "n_kernel_ucb": DomainPosterior,
}
FIXED_AND_PLAIN = (*FORMS, "approx_dis_kernel_ucb")


def fixed_case(name: str, case: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """A random case of the equivalence test on a fixed domain instead."""
    plan, config = random_case(name, case)
    rng = np.random.default_rng((2, case))
    arms = plan["problem"].pop("arms")
    domain = {
        "kind": arms["kind"],
        "dimension": arms["dimension"],
        "points": int(rng.integers(2, 50)),
        "method": ["sobol", "uniform"][case % 2],
    }
    return {**plan, "problem": {**plan["problem"], "kind": "fixed_domain", "domain": domain}}, config


@every("case", everyday(5, range(CONFIGURATIONS)))
@every("name", ORACLES)
def test_a_run_on_a_fixed_domain_is_the_pseudo_code(name: str, case: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(domain_exact, "BLOCK", 8)
    plan, config = fixed_case(name, case)
    simulated, expected = beside(name, ORACLES[name], config, plan)
    assert_equal(simulated, expected)
    if name in FORMS:
        assert all(isinstance(node.posterior, FORMS[name]) for node in simulated.engine.agents)  # type: ignore[attr-defined]


@every("case", everyday(4, range(CONFIGURATIONS)))
@every("name", sorted(SAMPLING))
def test_a_dictionary_without_repeats_is_that_of_the_pseudo_code(name: str, case: int) -> None:
    """Equal points stand once, so the dictionary never has more points than the domain."""
    plan, config = fixed_case(name, case)
    config["repeats"] = "drop"
    simulated, expected = beside(name, ORACLES[name], config, plan)
    assert_equal(simulated, expected)
    size = simulated.result.totals["dictionary_size"]
    assert size == expected.dictionary_size <= plan["problem"]["domain"]["points"]


@every("case", everyday(2, range(6)))
@every("variant", [{}, {"transfer": "delta"}, {"server": {"exchanges": "interleaved"}}])
def test_async_decides_alike_with_and_without_repeats(variant: dict[str, Any], case: int) -> None:
    """Points that stand twice leave the span, and so every mean and deviation, as it is; they only cost scalars."""
    plan, config = fixed_case("async_kernel_ucb", case)
    config |= {"threshold": 0.7, "q": 5.0, **variant}
    plan |= {"schedule": {"kind": "one_at_a_time", "turns": 100}, "checks": "cheap"}
    kept, dropped = (run("async_kernel_ucb", {**config, "repeats": repeats}, **plan) for repeats in ("keep", "drop"))
    assert dropped.pulls == kept.pulls
    assert dropped.result.rounds == kept.result.rounds > 0
    assert dropped.result.totals["scalars"] < kept.result.totals["scalars"]


@every("transfer, seed", [("full", 0), ("delta", 1)])
def test_overlapping_exchanges_that_sample_one_point_add_it_once(transfer: str, seed: int) -> None:
    """With delays two agents sample the same point against the same dictionary; the full audit resums the server's."""
    config = {"threshold": 0.5, "q": 5.0, "repeats": "drop", "transfer": transfer, "alpha": 1.0}
    problem = {
        "kind": "fixed_domain",
        "domain": {"kind": "box", "dimension": 2, "points": 6},
        "reward": {"kind": "cosine"},
    }
    result = run(
        "async_kernel_ucb",
        {**config, "server": {"exchanges": "interleaved"}},
        agents=5,
        seed=seed,
        problem=problem,
        schedule={"kind": "one_at_a_time", "turns": 150},
        network={"latency": {"kind": "uniform", "low": 1.0, "high": 9.0}},
        checks="full",
    )
    sent = sum(message.n for message in result.sent if isinstance(message, Upload))
    assert sent > result.result.totals["dictionary_size"], "two uploads must have had a point in common"
    assert 1 < result.result.totals["dictionary_size"] <= 6


@every("repeats", ["keep", "drop"])
def test_a_round_counts_as_declared_where_two_agents_sample_a_point(repeats: str) -> None:
    domain = {"kind": "box", "dimension": 2, "points": 6}
    config = {"threshold": 0.5, "q": 5.0, "repeats": repeats}
    problem = {"kind": "fixed_domain", "domain": domain, "reward": {"kind": "cosine"}}
    plan: dict[str, Any] = {"agents": 3, "problem": problem, "schedule": {"kind": "rounds", "turns": 12}}
    result = run("approx_dis_kernel_ucb", config, **plan)
    assert result.result.rounds > 1
    check_messages("approx_dis_kernel_ucb", result)
    check_closed_forms("approx_dis_kernel_ucb", result, "rounds")


@every("case", everyday(6, range(CONFIGURATIONS)))
def test_gp_ucb_is_the_pseudo_code(case: int) -> None:
    plan, config = fixed_case("n_kernel_ucb", case) if case % 4 else random_case("n_kernel_ucb", case)
    theory = {"delta": 0.3, "B": 2.5, "R": 0.4}
    config = {
        "kernel": config["kernel"],
        "lam": config["lam"],
        "beta": config["alpha"] if case % 3 else "theory",
        **theory,
    }
    assert_equal(*beside("gp_ucb", gp_ucb, config, plan))


@pytest.mark.parametrize("network", [{}, {"latency": {"kind": "lognormal", "median": 2.0, "sigma": 1.0}}])
@pytest.mark.parametrize("name", FIXED_AND_PLAIN)
def test_the_fixed_form_decides_as_the_plain_form(
    name: str, network: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Longer runs, with delays too: agents then know different prefixes of the log."""
    monkeypatch.setattr(domain_exact, "BLOCK", 16)
    config = {"kernel": {"kind": "gaussian", "gamma": 1.5}, "alpha": 0.5, "lam": 0.3}
    config |= {} if name in ("one_kernel_ucb", "n_kernel_ucb") else {"threshold": 4.0}
    problem = {
        "kind": "fixed_domain",
        "domain": {"kind": "box", "dimension": 2, "points": 30},
        "reward": {"kind": "branin"},
        "noise": 0.2,
    }
    plan: dict[str, Any] = {
        "agents": 6,
        "network": network,
        "problem": problem,
        "checks": "cheap",
        "schedule": {"kind": "one_at_a_time", "turns": 150},
    }
    fixed = [run(name, config, share=share, **plan).result.fingerprint for share in (True, False)]
    for module in (
        coband.agents.kernel.approx_dis_kernel_ucb,
        coband.agents.kernel.dis_kernel_ucb,
        coband.agents.alone.n_kernel_ucb,
        coband.agents.kernel.one_kernel_ucb,
    ):
        monkeypatch.setattr(module, "domain_of", lambda context: None)
    other = run(name, config, **plan)
    assert name not in FORMS or not isinstance(other.engine.agents[0].posterior, FORMS[name])  # type: ignore[attr-defined]
    assert fixed == [other.result.fingerprint] * 2


@every("ties", ["first", "random"])
@every("name", [*FIXED_AND_PLAIN, "gp_ucb", "async_kernel_ucb"])
def test_of_equal_points_the_first_or_any_is_chosen(name: str, ties: str) -> None:
    points = np.random.default_rng(3).random((12, 2))
    points = np.vstack([points, points[::-1], points[4:6]])
    problem = {"kind": "contextual", "reward": {"kind": "cosine"}, "arms": {"kind": "pool", "points": points.tolist()}}
    result = run(
        name,
        {"kernel": {"kind": "gaussian", "gamma": 2.0}},
        problem=problem,
        agents=3,
        schedule={"kind": "rounds", "turns": 60},
        ties=ties,
        checks="cheap",
    )
    arms = [arm for _, _, arm, _ in result.pulls]
    assert ties == "random" or max(arms) < 12
    assert ties == "first" or 0.3 < np.mean([arm < 12 for arm in arms]) < 0.7


@every("name", ["bpe", "delb", "dist_kernel_ucb", "duets", "fed_pe", "rclb"])
def test_arms_that_change_are_refused(name: str) -> None:
    network = {"topology": {"kind": "ring"}} if graphs.on_graph(name) else {}
    with pytest.raises(UnsupportedScenario, match=f"{name} needs (one arm set for all turns|arms that stay the same)"):
        run(name, {}, problem=PROBLEM, network=network, schedule={"kind": "rounds", "turns": 4})
