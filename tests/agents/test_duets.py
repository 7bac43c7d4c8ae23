"""DUETS: the run is the pseudo-code, no query point travels, counts are closed forms, masks are equal everywhere."""

import json
import math
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from coband.agents.kernel.duets import DuetsConfig
from coband.extensions.conformance.runs import Run, run
from coband.server.kernel.duets import DuetsServer
from coband.simulator.arms import ArmSet
from coband.simulator.core.records import trace as tr
from coband.simulator.experiments.scenario.loading import loads
from coband.simulator.maths.exploration.duets import Epochs, Induced, Regions, most_epochs
from coband.simulator.maths.kernels.library import Gaussian
from coband.simulator.maths.posteriors.finite_domain import Domain
from coband.simulator.scenario_errors import ScenarioError
from tests.agents.beside import assert_equal, beside, schedule_of
from tests.every import every
from tests.oracles import duets as oracle

CONFIGURATIONS = 24
ELIMINATE = tr.CODES["eliminate"]


def epoch_lengths(horizon: int, first: int) -> tuple[int, ...]:
    """Pulls in each epoch while the active points are one region: T_1, T_2, ..., and what is left of T in the last one.

    Args:
        horizon: T >= 0.
        first: T_1 >= 1.
    """
    epochs, lengths, last = Epochs(horizon, first), list[int](), False
    while not last:
        epoch = epochs.begin((np.zeros(1, dtype=np.intp),))
        lengths.append(sum(epoch.counts))
        last = epoch.last
    return tuple(lengths)


def random_case(case: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """A random scenario and random parameters."""
    rng = np.random.default_rng((7, case))
    agents, turns, dimension = int(rng.integers(1, 6)), int(rng.integers(5, 40)), int(rng.integers(1, 5))
    domain = {
        "kind": ["ball", "sphere", "box"][case % 3],
        "dimension": dimension + (case % 3 == 1),
        "points": int(rng.integers(1, 60)),
        "method": ["sobol", "uniform"][case % 2],
    }
    schedule = schedule_of(int(rng.integers(2)), agents, turns)
    kernels: list[dict[str, Any]] = [
        {"kind": "gaussian", "length_scale": float(rng.uniform(0.3, 1.5))},
        {"kind": "matern", "nu": float(rng.choice([0.5, 1.5, 2.5])), "length_scale": float(rng.uniform(0.4, 1.5))},
        {"kind": "linear", "bias": 0.5},
    ]
    config = {
        "kernel": kernels[int(rng.choice(3, p=[0.5, 0.3, 0.2]))],
        "T1": int(rng.integers(1, 6)),
        "p0": float(rng.choice([0.0, 0.3, 2.0, 10.0])),
        "beta": float(rng.choice([0.1, 0.5, 2.0])),
        "lam": float(rng.uniform(0.1, 1.0)),
        "inducing": str(rng.choice(["variance", "variance", "rate"])),
        "elimination": str(rng.choice(["mean", "mean", "ucb"])),
        "regions": "separate" if case % 4 == 2 else "together",
    }
    problem = {
        "kind": "fixed_domain",
        "domain": domain,
        "reward": {"kind": "cosine"},
        "noise": float(rng.uniform(0, 0.3)),
    }
    plan = {"agents": agents, "seed": case, "problem": problem, "schedule": schedule}
    return plan, config


@cache
def solved(case: int) -> tuple[Run, oracle.DuetsRun]:
    plan, config = random_case(case)
    return beside("duets", oracle, config, plan)


@every("case", range(CONFIGURATIONS))
def test_a_run_without_delays_is_the_pseudo_code(case: int) -> None:
    simulated, expected = solved(case)
    assert_equal(simulated, expected)
    server: Any = simulated.engine.server
    assert server.sizes == expected.sizes
    everything = list(range(len(simulated.engine.world.arms(0, 1))))
    left = [everything, *expected.active][-1]
    assert [node.active.tolist() for node in (server, *simulated.engine.agents)] == [left] * (server.context.agents + 1)


def test_the_random_cases_reach_what_they_are_meant_to_test() -> None:
    runs = [solved(case)[0] for case in range(CONFIGURATIONS)]
    assert max(result.result.rounds for result in runs) == 3
    sizes = [size for result in runs for size in result.engine.server.sizes]  # type: ignore[union-attr]
    assert min(sizes) == 0
    assert max(sizes) > 30
    left = [result.result.totals["active_points"] for result in runs]
    assert min(left) == 1
    assert any(1 < n < 20 for n in left)


SMALL: dict[str, Any] = {"kernel": {"kind": "gaussian", "length_scale": 0.6}, "beta": 0.2}
LATENCY = {"latency": {"kind": "lognormal", "median": 1.5, "sigma": 1.0}}
ROUNDS = {"kind": "rounds", "turns": 40}


@every("agents", [1, 10, 100, 10_000, 10**8])
def test_the_number_of_epochs(agents: int) -> None:
    """Lemma 4.4: at most log log max(N, T) + 4 epochs, for every first epoch of at least T/N pulls."""
    for horizon in [1, 2, 3, 10, 50, 51, 99, 1000, 4321, 10**5, 10**6]:
        for first in {1, 2, 3, 7, 50, math.isqrt(horizon), horizon // 2 + 1, horizon, 2 * horizon}:
            lengths = epoch_lengths(horizon, first)
            assert sum(lengths) == horizon
            assert len(lengths) <= most_epochs(horizon, agents)
            assert list(lengths) == oracle.epochs(horizon, first)
            assert all(later >= earlier for earlier, later in pairwise(lengths[:-1]))


def payloads(result: Run) -> Iterator[tuple[str, dict[str, Any]]]:
    """(kind, payload by field) of every message of a full trace."""
    for row in result.events(tr.SEND):
        yield result.names[row.kind], json.loads(row.detail)


def numbers(value: Any) -> Iterator[float]:
    if isinstance(value, list):
        for item in value:
            yield from numbers(item)
    elif value is not None:
        yield float(value)


@pytest.mark.parametrize("elimination", ["mean", "ucb"])
def test_no_query_point_is_ever_told(elimination: str) -> None:
    """No number that an agent sends is a coordinate of the domain; the server's points are those it drew itself."""
    config = {**SMALL, "p0": 0.8, "elimination": elimination}
    result = run("duets", config, agents=4, schedule=ROUNDS, trace="full")
    domain = result.engine.world.arms(0, 1)
    coordinates = set(domain.ravel().tolist())
    kinds = set()
    told: list[list[float]] = []
    for kind, payload in payloads(result):
        kinds.add(kind)
        told += payload.pop("points", []) if kind == "inducing_set" else []
        assert not coordinates & set(numbers(list(payload.values())))
    assert kinds == {"epoch_end", "inducing_set", "projection", "epoch_model"}
    assert {row.node for row in result.events(tr.SEND) if result.names[row.kind] == "inducing_set"} == {-1}
    pulled = {arm for _, _, arm, _ in result.pulls}
    shown = {tuple(point) for point in told}
    assert len(shown) < len({tuple(domain[arm]) for arm in pulled})
    assert len(told) == sum(result.engine.server.sizes)  # type: ignore[union-attr]


def test_trimming_keeps_what_is_within_the_margin() -> None:
    X = np.linspace(0.0, 1.0, 11)[:, None]
    domain, active = Domain(Gaussian(length_scale=0.3), ArmSet.fixed(X)), np.array([1, 3, 4, 8])
    induced = Induced(domain, active, X[[3, 8]])
    vbar = np.array([0.7, -0.4])
    mean = induced.Z @ vbar
    margin = float(mean.max() - np.sort(mean)[-2])
    assert induced.kept_by_mean(vbar, margin * 1.001).tolist() == sorted(active[np.argsort(-mean)[:2]])
    assert induced.kept_by_mean(vbar, margin * 0.999).tolist() == [active[mean.argmax()]]
    assert induced.kept_by_mean(vbar, 0.0).tolist() == [active[mean.argmax()]]


@every("seed", range(8))
def test_regions_are_those_of_the_plain_search(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(int(rng.integers(2, 60)), int(rng.integers(1, 4))))
    active = np.flatnonzero(rng.random(len(X)) < 0.4)
    regions = Regions(X)
    assert regions.reach == pytest.approx(oracle.smallest_connecting_distance(X), rel=1e-15)
    found = [part.tolist() for part in regions.of(active)] if len(active) else []
    assert found == oracle.regions(X, active.tolist(), regions.reach)


SEVERAL = {
    "kind": "fixed_domain",
    "domain": {"kind": "box", "dimension": 1, "points": 60, "method": "sobol"},
    "reward": {"kind": "cosine"},
    "noise": 0.05,
}


@every("seed", range(2))
def test_every_region_is_explored_by_itself(seed: int) -> None:
    """Footnote 3: where the active set has several regions, an epoch draws T_j points of each."""
    kernel = {"kind": "gaussian", "length_scale": 0.05}
    config = {**SMALL, "kernel": kernel, "beta": 0.3, "lam": 0.2, "T1": 3, "p0": 10.0, "regions": "separate"}
    plan = {"agents": 3, "seed": seed, "problem": SEVERAL, "schedule": {"kind": "rounds", "turns": 80}}
    simulated, expected = beside("duets", oracle, config, plan)
    assert_equal(simulated, expected)
    domain = Regions(simulated.engine.world.arms(0, 1))
    numbers = [len(domain.of(np.array(active))) for active in expected.active]
    assert max(numbers) > 1, "some epoch must have several regions"
    together = run("duets", {**config, "regions": "together"}, **plan)
    assert together.pulls != simulated.pulls


def test_p0_of_theory_by_hand() -> None:
    """N = 10, T = 50, |U| = 200, delta = 0.1."""
    failure = 0.1 / (2 * 200 * (math.log(math.log(50)) + 4))
    config = DuetsConfig(p0="theory")
    assert config.rate(200, 10, 50) == pytest.approx(72 * math.log(4 * 10 * 50 / failure))
    assert DuetsConfig(p0=3.0).rate(200, 10, 50) == 3.0


def test_p0_of_theory_is_what_the_server_samples_with() -> None:
    theory = run("duets", {**SMALL, "p0": "theory"}, agents=4, schedule=ROUNDS)
    same = run("duets", {**SMALL, "p0": DuetsConfig(p0="theory").rate(40, 4, 40)}, agents=4, schedule=ROUNDS)
    assert theory.messages == same.messages
    assert theory.pulls == same.pulls


def test_p0_of_theory_where_no_agent_is_sure_of_a_turn() -> None:
    """One turn for two agents, one at a time: T is 0, and counts as 1."""
    assert DuetsConfig(p0="theory").rate(200, 2, 0) == DuetsConfig(p0="theory").rate(200, 2, 1)
    one = {"kind": "one_at_a_time", "turns": 1}
    assert run("duets", {**SMALL, "p0": "theory", "beta": "theory"}, agents=2, schedule=one).result.turns == 1


def test_p0_of_theory_has_no_meaning_for_the_public_codes_rate() -> None:
    with pytest.raises(ValueError, match="p0: theory is a factor of sigma_max"):
        DuetsConfig(p0="theory", inducing="rate")


@every(
    "config, schedule",
    [(SMALL, ROUNDS), ({**SMALL, "inducing": "rate", "elimination": "ucb"}, {"kind": "one_at_a_time", "turns": 120})],
)
def test_a_straggler_delays_the_epoch_and_changes_no_number_but_time(
    config: dict[str, Any], schedule: dict[str, Any]
) -> None:
    fast = run("duets", config, agents=4, schedule=schedule)
    slow = run(
        "duets",
        config,
        agents=4,
        schedule=schedule,
        network=LATENCY,
        agent={"compute": 0.5, "stragglers": {"fraction": 0.25, "slowdown": 20}},
    )
    assert slow.result.simulated_time > 2 * fast.result.simulated_time
    assert sorted(pull for pull in slow.pulls) == sorted(fast.pulls)
    assert slow.result.regret == pytest.approx(fast.result.regret, abs=1e-9)
    totals = [{**result.result.totals} for result in (slow, fast)]
    assert totals[0].pop("regret_per_agent") == pytest.approx(totals[1].pop("regret_per_agent"), abs=1e-9)
    assert totals[0] == totals[1]
    assert slow.engine.server.active.tolist() == fast.engine.server.active.tolist()  # type: ignore[union-attr]
    for round in range(1, fast.result.rounds + 1):
        ends = [row.time for row in slow.events(tr.TRIGGER) if row.round == round]
        resumed = [row.time for row in slow.events(ELIMINATE) if row.round == round]
        assert len(ends) == len(resumed) == 4
        assert min(resumed) >= max(ends) > min(ends)


def test_a_horizon_shortens_the_epochs() -> None:
    for horizon in (10, 40):
        result = run("duets", {**SMALL, "horizon": horizon}, agents=3, schedule=ROUNDS, checks="cheap")
        assert result.result.totals["epochs"] == result.result.rounds + 1 == len(epoch_lengths(horizon, 2))
        assert len(result.pulls) == 120


def test_the_theoretical_width() -> None:
    config = DuetsConfig(beta="theory", B=2.0, R=0.5, lam=0.2, delta=0.05)
    delta = 0.05 / (2 * 2000 * (math.log(math.log(50)) + 4))
    assert config.width(2000, 10, 50) == pytest.approx(2.0 + 0.5 * math.sqrt(2 / 0.2 * math.log(2 / delta)))
    assert DuetsConfig(beta=0.7).width(2000, 10, 50) == 0.7


SCENARIO = """
name: timed
agents: {count: 3}
schedule: {kind: rounds, turns: 9, duration: 5}
problem: {kind: fixed_domain, domain: {kind: box, dimension: 2, points: 20}, reward: {kind: branin}}
algorithms:
  - {algorithm: duets, label: Blind}
  - {algorithm: duets, label: Told, horizon: 5}
"""


def test_a_schedule_that_may_end_early_needs_a_horizon() -> None:
    with pytest.raises(ScenarioError) as caught:
        loads(SCENARIO)
    remedy = "give horizon (turns of each agent), or leave out schedule.duration"
    assert [problem.message for problem in caught.value.problems] == [f"duets must know the number of turns; {remedy}"]
    assert loads(SCENARIO.replace(", duration: 5", "")).name == "timed"
    with pytest.raises(ValueError, match="must know the number of turns; give horizon"):
        run("duets", SMALL, schedule={"kind": "rounds", "turns": 9, "duration": 5})


def test_repeated_points_of_a_domain_enter_the_inducing_set_once() -> None:
    points = [[0.0, 0.1], [0.5, 0.5], [0.0, 0.1], [0.9, 0.2], [0.5, 0.5]]
    result = run(
        "duets",
        {**SMALL, "p0": 1e9},
        agents=3,
        schedule=ROUNDS,
        problem={"kind": "contextual", "arms": {"kind": "pool", "points": points}, "reward": {"kind": "cosine"}},
    )
    assert result.engine.server.sizes[-1] <= 3  # type: ignore[union-attr]
    assert result.result.rounds == 3


def test_server_and_agents_have_the_same_theoretical_width(monkeypatch: pytest.MonkeyPatch) -> None:
    """All of them ask for that of 40 points, 3 agents and 7 turns."""
    asked = set()

    def width(self: DuetsConfig, points: int, agents: int, horizon: int) -> float:
        asked.add((points, agents, horizon))
        return 1.0

    monkeypatch.setattr(DuetsConfig, "width", width)
    run("duets", {**SMALL, "beta": "theory"}, agents=3, schedule={"kind": "rounds", "turns": 7})
    assert asked == {(40, 3, 7)}


def test_inducing_points_beyond_the_dimension_are_counted_as_skipped() -> None:
    """With a linear kernel three points span everything."""
    config = {**SMALL, "kernel": {"kind": "linear"}, "p0": 1e9}
    made = run("duets", config, agents=3, schedule=ROUNDS)
    server, totals = made.engine.server, made.result.totals
    assert isinstance(server, DuetsServer)
    assert totals["skipped_points"] == sum(max(0, size - 3) for size in server.sizes) > 0
