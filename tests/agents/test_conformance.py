"""Every registered algorithm passes the conformance kit."""

from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from itertools import starmap
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from coband.extensions.conformance import Vacuous, graphs, kit
from coband.extensions.conformance.runs import batches, registry, run
from tests.every import every
from tests.everyday import slow

VARIANTS: dict[str, list[dict[str, Any]]] = {
    "async_kernel_ucb": [
        {},
        {"server": {"exchanges": "interleaved"}},
        {"transfer": "delta", "blocking": True},
        {"transfer": "delta", "server": {"exchanges": "interleaved"}},
        {"alpha": "theory", "q": "theory", "threshold": "theory", "horizon": 60},
        {"repeats": "drop", "transfer": "delta", "server": {"exchanges": "interleaved"}},
    ],
    "approx_dis_kernel_ucb": [{}, {"repeats": "drop"}],
    "duets": [
        {},
        {"inducing": "rate", "elimination": "ucb", "beta": "theory"},
        {"p0": "theory", "regions": "separate"},
    ],
    "bpe": [{}, {"share": "nothing", "beta": "theory"}],
    "delb": [{"C": 0.002}],
    "rclb": [{"C": 0.02}],
    "pls": [{"C": 0.002}],
    "fed_pe": [{"parameters": "shared"}, {"variant": "collaborative"}, {"variant": "enhanced", "alpha": 1.0}],
    "coop_kernel_ucb": [{}, {"network_kernel": {"kind": "gaussian", "gamma": 0.5}}, {"network_kernel": "mmd"}],
    "eager_kernel_ucb": [
        {},
        {"network_kernel": {"kind": "gaussian", "gamma": 0.5}, "composition": "sum"},
        {"posterior": {"kind": "nystrom", "size": 10}, "network_kernel": "mmd"},
    ],
    "naive_coop": [{}, {"width": "lemma_1", "hops": "diameter"}],
    "club": [{}, {"alpha_2": 0.3, "start": "links", "hops": 1}],
    "gob_lin": [{}, {"width": "theory", "hops": "half_diameter"}],
    "fn_ucb": [
        {"width": 4, "steps": 2},
        {"width": 4, "steps": 2, "diagonal": True, "less_comm": False, "threshold": 2.0, "alpha": "theory"},
        {"width": 4, "steps": 2, "init": "normal", "threshold": 1.0, "trigger": "full"},
        {"width": 4, "steps": 2, "average": "best", "train_from": "averaged"},
    ],
    "fed_lin_ucb": [{}, {"threshold": 0.2, "blocking": True}],
    "async_lin_ucb": [{"gamma_u": 1.5, "gamma_d": 1.5}, {"refresh": "at_next_pull", "gamma_u": 2, "gamma_d": 1}],
    "async_lin_ucb_am": [{"gamma_u": 1.5, "gamma_d": 1.5}, {"refresh": "at_next_pull", "shared": 1, "gamma_u": 2}],
    **{name: [{"features": 8, "initial": 2}] for name in ("fts", "fts_de")},
    **{name: [{"features": 8, "initial": 2, "z": 4.0}] for name in ("dp_fts", "dp_fts_de")},  # cheap to account for
    "fed_ucb": [{}, {"threshold": 30.0, "noise": "exact", "alpha": 0.5}],
    "fed_ucb_graph": [{}, {"threshold": 30.0, "noise": "exact", "hops": 2}],
    "fed_glb_ucb": [{}, {"threshold": 0.3, "smoothness": "data", "max_rounds": 3}],
    "sw_lin_ucb": [{"window": 5}],
    "discounted_dis_lin_ucb": [{}, {"gamma": 0.8, "threshold": 0.3}],
    "neural_ucb": [{"width": 4, "steps": 2}],
    "neural_ts": [{"width": 4, "steps": 2, "diagonal": True}],
    "co_kernel_fc": [{}, {"via": "server"}, {"allocation": "individual"}],
    "co_kernel_fb": [{"budget": 200}, {"budget": 200, "via": "server", "allocation": "individual"}],
    "ind_peace_fb": [{"budget": 200}],
    "ind_uniform_fb": [{"budget": 200}],
}
CASES = [(name, variant) for name in sorted(registry().algorithms) for variant in VARIANTS.get(name, [{}])]


def kit_of(name: str) -> Iterator[Any]:
    """The kit's cases for all variants of an algorithm that run every day.

    Its first variant meets the faulty network on each schedule, and those that only delay or lose messages on one,
    another one for the next algorithm and network; without delays agents are slow, as ``AsDeclared`` has fast ones. A
    further variant meets every second network on one schedule, the next schedule on the next of them, and what it
    declares on one; that it is the same again is tried on slow days.
    """
    networks, schedules = list(kit.NETWORKS), list(kit.schedules_of(name))
    place = sorted(registry().algorithms).index(name)
    for number, variant in enumerate(VARIANTS.get(name, [{}])):
        for case in kit.cases(name, variant):
            if isinstance(case, kit.AsDeclared):
                chosen = number == 0 or schedules.index(case.schedule) == (place + number) % len(schedules)
            elif isinstance(case, kit.NothingLost):
                network, schedule = networks.index(case.network), schedules.index(case.schedule)
                if number:
                    chosen = (network + number) % 2 == 0 and schedule == (network + number) // 2 % len(schedules)
                elif case.network == "ideal":
                    chosen = schedule % 2 == 1 or len(schedules) == 1
                else:
                    turn = (place + network + schedule) % 3
                    chosen = case.network == "faulty" or len(schedules) < 3 or turn == 0
            else:
                chosen = number == 0 and not isinstance(case, kit.GoesOn)
            if chosen:
                yield case


@pytest.fixture(scope="module", autouse=True)
def _one_look_at_memory() -> Iterator[None]:
    """Whoever looks for generators that nodes draw from goes through all objects once, not for each case."""
    for entry in registry().algorithms.values():
        import_module((entry.server or __name__).partition(":")[0])
    generators = kit._generators()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kit, "_generators", lambda: generators)
        yield


@pytest.mark.parametrize("case", [case for name in sorted(registry().algorithms) for case in kit_of(name)], ids=str)
def test_algorithms_conform(case: kit.Case) -> None:
    """With or without slow agents by turns, so that every network and every schedule meets both."""
    schedules = [*kit.schedules_of(case.algorithm)]
    if not isinstance(case, kit.NothingLost) or case.network == "faulty" or len(schedules) == 1:
        case.check()
        return
    place = [*kit.NETWORKS].index(case.network) + schedules.index(case.schedule)
    case._check([*kit.AGENTS][place % 2])


@pytest.mark.slow
@every("case", [case for cases in starmap(kit.cases, CASES) for case in cases if not isinstance(case, kit.GoesOn)], str)
def test_nothing_is_lost_anywhere_whoever_is_slow(case: kit.Case) -> None:
    with suppress(Vacuous):
        case.check()


QUORUM = {"wait": {"quorum": 0.5, "timeout": 1.5}}
LIVELY: dict[str, list[dict[str, Any]]] = {
    **{name: VARIANTS.get(name, [{}]) for name in sorted(registry().algorithms) if not kit.sends_nothing(name, {})},
    "approx_dis_kernel_ucb": [{}, QUORUM],
    "async_kernel_ucb": [*VARIANTS["async_kernel_ucb"], {"server": {"exchanges": "serial"}}],
    "async_lin_ucb": [{"gamma_u": 1.1, "gamma_d": 1.1}, *VARIANTS["async_lin_ucb"]],
    "async_lin_ucb_am": [
        {"gamma_u": 1.1, "gamma_d": 1.1},
        {"refresh": "at_next_pull", "shared": 1, "gamma_u": 1.2},
        VARIANTS["async_lin_ucb_am"][0],
    ],
    "bpe": [{}],
    "co_kernel_fb": [{"budget": 200, "leftover": "spend"}, {"budget": 200, "leftover": "spend", "via": "server"}],
    "dis_kernel_ucb": [{}, QUORUM],
    "dis_lin_ucb": [QUORUM, {}],
    "discounted_dis_lin_ucb": [{"gamma": 0.9, **QUORUM}, {}],
    "fed_ucb": [QUORUM, {}],
    "fn_ucb": [*VARIANTS["fn_ucb"], {"width": 4, "steps": 2, **QUORUM}],
}
"""Parameters with which messages are many enough that silence means something."""


@every(
    "case",
    [
        case if place == 0 and (number + fault) % 4 == 0 else slow(case)
        for number, (name, configs) in enumerate(LIVELY.items())
        for place, config in enumerate(configs)
        for fault, case in enumerate(one for one in kit.cases(name, config) if isinstance(one, kit.GoesOn))
    ],
)
def test_algorithms_go_on_after_faults(case: kit.GoesOn) -> None:
    """One of four kinds of faults for each algorithm, and for each kind every fourth algorithm; the others are slow."""
    assert case.check()


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_any_order_of_deliveries_keeps_the_invariants(data: st.DataObject) -> None:
    name, variant = data.draw(st.sampled_from(CASES))
    latency = data.draw(
        st.sampled_from([0.0, {"kind": "uniform", "high": 5.0}, {"kind": "pareto", "minimum": 0.1, "shape": 1.1}])
    )
    network = {"latency": latency, "loss": data.draw(st.sampled_from([0.0, 0.0, 0.2, 0.5]))}
    agents = data.draw(st.integers(1, 5))
    turns = data.draw(st.integers(1, 40))
    kind = "one_at_a_time" if "one_at_a_time" in kit.schedules_of(name) else "rounds"
    plan: dict[str, Any] = {
        "agents": agents,
        "seed": data.draw(st.integers(0, 1000)),
        "network": network,
        "schedule": {"kind": "phases"} if batches(name) else {"kind": kind, "turns": turns},
    }
    if kit.on_graph(name):
        topology = data.draw(st.sampled_from(["line", "ring", "complete", {"kind": "erdos_renyi", "p": 0.5}]))
        result = graphs.run(name, variant, kit.problem_of(name), topology=topology, **plan)
    else:
        result = run(name, variant, **plan)
    kit.check_complete(result, None if batches(name) else turns * (1 if kind == "one_at_a_time" else agents))
    kit.check_ledger(result)
