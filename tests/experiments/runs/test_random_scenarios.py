"""Whole scenarios drawn at random: each is refused with a reason, or runs under all checks, and what comes of it hangs
neither on caches, nor on the trace, nor on the checks."""

import json
import signal
import time
from collections.abc import Callable, Iterator
from random import Random
from types import FrameType
from typing import Any

import pytest

from coband.extensions.conformance.runs import algorithm, problem_of, registry
from coband.simulator.core.records.trace import keep
from coband.simulator.experiments.runs.attempt import attempt
from coband.simulator.experiments.runs.job import Job
from coband.simulator.experiments.scenario.loading import BAD_INPUT, loads
from tests.core.wire.test_robustness import BEHAVIOURS, DEFENCES, ENCODINGS, MECHANISMS, SMALL, SMALL_NETWORK

Document = dict[str, Any]
Place = tuple[str | int, ...]

EVERYDAY, MANY = range(60), range(1000, 3000)
CPU_SECONDS = 60.0
"""Of one run; those of all these sizes take less than two."""


def times(mean: float) -> list[Any]:
    """Distributions of times, some with a heavy tail."""
    return [
        mean,
        {"kind": "uniform", "low": 0, "high": 2 * mean},
        {"kind": "exponential", "rate": 1 / mean},
        {"kind": "lognormal", "median": mean, "sigma": 1.0},
        {"kind": "pareto", "minimum": 0.3 * mean, "shape": 1.3},
    ]


NIGHTLY = {"kind": "windows", "power": 3.0, "every": 10, "lasts": 4}
FEATURES: dict[str, tuple[float, Callable[[int], list[Any]]]] = {
    "agents.compute": (0.35, lambda n: times(0.5)),
    "agents.handling": (0.3, lambda n: times(0.2)),
    "agents.speed": (0.2, lambda n: [{"kind": "uniform", "low": 0.2, "high": 2}]),
    "agents.stragglers": (
        0.25,
        lambda n: [
            {"fraction": 0.4, "slowdown": 8},
            {"fraction": 0.4, "slowdown": 8, "groups": n, "episodes": {"mean_slow": 5, "mean_fast": 7}},
        ],
    ),
    "agents.reward_delay": (0.2, lambda n: times(3.0)),
    "agents.availability": (
        0.3,
        lambda n: [{"kind": "markov_on_off", "mean_up": up, "mean_down": down} for up in (2, 20) for down in (1, 9)],
    ),
    "agents.joins": (0.2, lambda n: [{"kind": "poisson", "rate": 0.3}, {"kind": "times", "times": [[n - 1, 2.0]]}]),
    "agents.leaves": (0.2, lambda n: [{"kind": "poisson", "rate": 0.02}, {"kind": "times", "times": [[0, 4.0]]}]),
    "agents.energy": (
        0.25,
        lambda n: [
            {"capacity": 5.0, "idle": 0.1},
            {"capacity": 60.0, "idle": 1.0, "per_bit_up": 0.002, "recharge": {"kind": "rate", "power": 0.7}},
            {"capacity": {"kind": "uniform", "low": 5, "high": 50}, "per_bit_up": 0.002, "recharge": NIGHTLY},
        ],
    ),
    "agents.population": (0.12, lambda n: [{"kind": "preset", "name": one} for one in ("phones", "hospitals", "cars")]),
    "network.latency": (0.6, lambda n: [*times(0.2), *times(1.0), *times(5.0)]),
    "network.bandwidth": (0.2, lambda n: [10, 1000, {"bits": 64}]),
    "network.loss": (0.35, lambda n: [0.1, 0.5, {"kind": "gilbert_elliott", "p": 0.1, "r": 0.4}]),
    "network.duplicate": (0.25, lambda n: [0.3]),
    "network.reorder": (0.2, lambda n: ["fifo"]),
    "network.transport": (0.2, lambda n: ["datagram"]),
    "network.outages": (
        0.25,
        lambda n: [[{"nodes": [node], "start": 1.0, "end": end}] for node in (0, "server") for end in (5.0, 9.0)],
    ),
    "network.partitions": (0.2, lambda n: [[{"start": 2.0, "end": 10.0, "groups": [[0], list(range(1, n))]}]]),
    "network.heals": (0.2, lambda n: [0.0, 10.0, 40.0]),
    "network.retransmission": (0.2, lambda n: [{"timeout": 0.5}, {"timeout": 3.0, "max_attempts": 2}]),
    "network.header_bits": (0.15, lambda n: [32]),
    "network.local": (0.15, lambda n: [{"mode": "hop_by_hop"}, {"mode": "direct"}]),
    "network.server": (0.1, lambda n: [{"uplink": 20}]),
    "messages": (0.25, lambda n: [*ENCODINGS.values(), *({"privacy": one} for one in MECHANISMS.values())]),
    "adversaries": (0.15, lambda n: [[{"agents": {"fraction": 0.3}, **one}] for one in BEHAVIOURS.values()]),
    "server": (0.2, lambda n: [{"handling": 0.3}, *({"aggregate": one} for one in DEFENCES.values())]),
    "schedule.duration": (0.2, lambda n: [3.0, 20.0]),
    "schedule.pace": (0.1, lambda n: [{"kind": "uniform", "low": 0.5, "high": 2}]),
    "problem.drift": (0.2, lambda n: [{"kind": "piecewise", "at": [5]}, {"kind": "walk", "step": 0.1}]),
}
GRAPHS = ["ring", "line", "complete", {"kind": "erdos_renyi", "p": 0.5}, {"kind": "star"}]


def drawn(seed: int) -> Document:
    """A scenario of one algorithm, which may be refused."""
    rng = Random(seed)
    name = rng.choice(sorted(registry().algorithms))
    needs, known = algorithm(name).needs, algorithm(name).config.model_fields
    agents, turns = rng.choice([1, 2, 3, 4, 5, 7]), rng.randint(2, 20)
    schedules: list[Document] = [
        {"kind": "rounds", "turns": turns, "interval": rng.choice([0.5, 1, 3])},
        {"kind": "one_at_a_time", "turns": turns * agents, "order": rng.choice(["uniform", "round_robin"])},
        {"kind": "renewal", "turns": turns, "think": rng.choice([0.0, *times(1.0)])},
        {"kind": "phases", "limit": 5},
    ]
    found: Document = {
        "name": "random",
        "seed": seed,
        "agents": {"count": agents},
        "schedule": rng.choice([one for one in schedules if one["kind"] in needs.schedules]),
        "network": {} if "star" in needs.topologies else {"topology": rng.choice(GRAPHS)},
        "problem": dict(problem_of(name)),
        "algorithms": [{"algorithm": name, **{key: SMALL[key] for key in SMALL if key in known}}],
        "share": rng.random() < 0.8,
    }
    if agents == 1:
        found["problem"].pop("offered", None)  # who is alone is offered all arms
    found["algorithms"][0] |= {"width": 4} if name in ("neural_ucb", "neural_ts") else SMALL_NETWORK.get(name, {})
    for key, (probability, values) in FEATURES.items():
        if rng.random() < probability:
            *outer, last = key.split(".")
            (found[outer[0]] if outer else found)[last] = rng.choice(values(agents))
    return found


def allowed(found: Document) -> Document:
    """The scenario without what is refused in it: of each refusal a feature that it names, or any, is left out."""
    rng = Random(found["seed"])
    while True:
        try:
            loads(json.dumps(found))
        except BAD_INPUT as refusal:
            text = str(refusal).splitlines()[0]
            there = [place for place in _features(found) if place[-1] in _inside(found, place)]
            assert there, f"not even a plain scenario is allowed: {text}"
            *outer, last = rng.choice([place for place in there if str(place[-1]) in text] or there)
            del _inside(found, (*outer, last))[last]
        else:
            return found


def _features(found: Document) -> Iterator[Place]:
    yield from (tuple(key.split(".")) for key in FEATURES)
    yield from (("algorithms", 0, key) for key in found["algorithms"][0] if key != "algorithm")


def _inside(found: Document, place: Place) -> Any:
    for key in place[:-1]:
        found = found[key]  # type: ignore[index]
    return found


def fingerprint(found: Document) -> str | None:
    """Of a run, which must end well; None: it is refused."""
    scenario = loads(json.dumps(found))
    (entry,) = scenario.algorithms
    job = Job(0, entry.label, entry.algorithm.name, 0, scenario.seed, scenario.trace)
    try:
        outcome = attempt(job, scenario, lambda result: None, keep([]))
    except BAD_INPUT:
        return None
    assert outcome.status == "finished", f"{outcome.status}: {outcome.error}\n{json.dumps(found)}"
    return str(outcome.record["fingerprint"])


@pytest.fixture
def hangs(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A run that takes too long fails."""

    def ring(number: int, frame: FrameType | None) -> None:
        raise TimeoutError(f"over {CPU_SECONDS:g} s of CPU")

    before = signal.signal(signal.SIGPROF, ring)
    yield
    signal.setitimer(signal.ITIMER_PROF, 0.0)
    signal.signal(signal.SIGPROF, before)


@pytest.mark.usefixtures("hangs")
@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("seeds", [EVERYDAY, pytest.param(MANY, marks=pytest.mark.slow)], ids=["everyday", "many"])
def test_a_random_scenario_is_refused_or_runs_whatever_else_is_asked_for(seeds: range) -> None:
    failures, refused, started = [], 0, time.process_time()
    for seed in seeds:
        signal.setitimer(signal.ITIMER_PROF, CPU_SECONDS)
        try:
            found = allowed(drawn(seed))
            one = fingerprint({**found, "checks": "full", "trace": "full"})
            other = fingerprint({**found, "share": not found["share"]})
            assert one == other, f"another run with share {not found['share']} and few checks\n{json.dumps(found)}"
            refused += one is None
        except Exception as failure:
            failures.append(f"seed {seed}: {failure}")
    spent = time.process_time() - started
    assert not failures, f"{len(failures)} of {len(seeds)} ({spent:.0f} s):\n" + "\n\n".join(failures[:5])
    assert refused < len(seeds) / 4
