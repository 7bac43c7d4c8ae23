"""What every registered algorithm must pass, whatever it computes.

Runs on a small world: the same run twice, with work shared or not; random delays, loss and slow agents leave nothing
lost or counted twice; payloads are what the ledger counts; sizes of messages, closed forms and metrics are what the
algorithm declares; after faults everybody goes on; nobody draws random numbers from anything but its own stream.

A case that would say nothing, since nothing is sent or lost, is skipped with the reason.

Random numbers are watched because ``np.random.default_rng(0)`` in an agent passes every comparison of a run with
itself: the run can be repeated. But all replications and agents draw the same numbers, so a mean says nothing about
chance. So nobody may make a generator while a node is at work, or draw from one that was there before the run.
"""

from __future__ import annotations

import gc
import random
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from inspect import getfile
from itertools import compress
from pathlib import Path
from types import FrameType, MappingProxyType
from typing import Any

import numpy as np
from numpy.random import bit_generator

from coband import Algorithm, Node
from coband.extending import Streams, ensured_algorithm, formulas
from coband.extending import trace as tr
from coband.extensions.conformance import graphs, runs
from coband.extensions.conformance.communication import (
    check_closed_forms,
    check_complete,
    check_ledger,
    check_messages,
    check_metrics,
    check_sums,
)
from coband.extensions.conformance.demands import Vacuous, demand
from coband.extensions.conformance.graphs import on_graph, problem_of
from coband.extensions.conformance.liveness import KINDS, check_liveness
from coband.extensions.conformance.runs import Run, Section, algorithm, batches

ADVICE = (
    "other replications, or other agents, draw the same numbers from it, or no run can be repeated. Draw from "
    "self.context.rng, the node's own stream; what wants a RandomState may have "
    "np.random.RandomState(self.context.rng.bit_generator)"
)
LOCK = next((name for name in ("RLock", "Lock") if hasattr(bit_generator, name)), None)
"""What numpy calls for each bit generator that it makes; None: a numpy that does not, whose making is not noticed."""


@contextmanager
def own_coins_only() -> Iterator[None]:
    """Refuse other random numbers than those of the streams in a run that takes place while this is entered.

    Raises:
        NonConformance: a node has made a generator, or drawn from one that was there before.
    """
    made: list[str] = []
    before = [(generator, _state(generator)) for generator in _generators()]
    with _watched(bit_generator, LOCK, made), _watched(random.Random, "__init__", made):
        yield
    demand(not made, f"a random generator of its own is made in {' and in '.join(dict.fromkeys(made))}: {ADVICE}")
    drawn = {type(generator).__name__ for generator, state in before if _state(generator) != state}
    found = " and ".join(sorted(drawn))
    demand(not drawn, f"nodes draw from a generator of the whole program or of a module ({found}): {ADVICE}")


@contextmanager
def _watched(owner: Any, name: str | None, made: list[str]) -> Iterator[None]:
    """Note where nodes are at work when something is called."""
    if name is None:
        yield
        return
    usual: Callable[..., Any] = getattr(owner, name)

    def called(*args: Any, **keywords: Any) -> Any:
        place = _place(sys._getframe(1))
        if place is not None:
            made.append(place)
        return usual(*args, **keywords)

    setattr(owner, name, called)
    try:
        yield
    finally:
        setattr(owner, name, usual)


def _place(frame: FrameType | None) -> str | None:
    """The innermost method of a node that a frame belongs to; None: of none, or it is the streams that are at work."""
    if frame is not None and frame.f_code.co_filename == getfile(Streams):
        return None
    while frame is not None:
        code = frame.f_code
        owner = frame.f_locals.get(code.co_varnames[0]) if code.co_argcount else None
        kind = owner if isinstance(owner, type) else type(owner)
        if issubclass(kind, Node):
            return f"{kind.__name__}.{code.co_name} ({Path(code.co_filename).name}:{frame.f_lineno})"
        frame = frame.f_back
    return None


def _generators() -> list[np.random.BitGenerator | random.Random]:
    """All generators that there are; numpy's Generator and RandomState hold a BitGenerator."""
    kinds = _kinds_of(np.random.BitGenerator) | _kinds_of(random.Random) - _kinds_of(random.SystemRandom)
    set_aside = gc.get_freeze_count() > 0
    if set_aside:  # those that somebody has set aside are not listed
        gc.collect()
        gc.unfreeze()
    things = gc.get_objects()
    if set_aside:
        gc.freeze()
    return list(compress(things, map(kinds.__contains__, map(type, things))))  # of half a million, without a loop


def _kinds_of(kind: type[Any]) -> set[type[Any]]:
    """A class and all that are derived from it."""
    return {kind}.union(*map(_kinds_of, kind.__subclasses__()))


def _state(generator: np.random.BitGenerator | random.Random) -> str:
    return repr(generator.getstate() if isinstance(generator, random.Random) else generator.state)


SCHEDULES: Mapping[str, Section] = {
    "one_at_a_time": {"kind": "one_at_a_time", "turns": 60},
    "rounds": {"kind": "rounds", "turns": 15},
    "renewal": {"kind": "renewal", "turns": 15, "think": {"kind": "exponential", "rate": 1.0}},
}
CUT: Mapping[str, tuple[Section, ...]] = {
    "one_at_a_time": ({"turns": 41},),
    "renewal": tuple({"duration": end} for end in (9.0, 11.0, 13.0)),
}
"""What ends runs when only some agents have done what all of them do."""
PHASES: Mapping[str, Section] = {
    "instant": {"kind": "phases", "pull_time": 0.0},
    "phases": {"kind": "phases", "pull_time": 1e-3},
}
FAULTS: Section = {
    "latency": {"kind": "exponential", "rate": 2.0},
    "loss": {"kind": "gilbert_elliott", "p": 0.1, "r": 0.4, "k": 0.95},
    "duplicate": 0.2,
    "partitions": [{"start": 8.0, "end": 9.0, "groups": [[1]], "one_way": True}],
}
NETWORKS: Mapping[str, Section] = {
    "ideal": {},
    "constant": {"latency": 0.7},
    "random": {"latency": {"kind": "lognormal", "median": 1.5, "sigma": 1.0}},
    "heavy": {"latency": {"kind": "pareto", "minimum": 0.2, "shape": 1.2}, "bandwidth": 60.0},
    "narrow": {"server": {"uplink": 40.0, "downlink": 80.0}, "latency": 0.1},
    "lossy": {"latency": {"kind": "exponential", "rate": 2.0}, "loss": 0.3},
    "faulty": {
        **FAULTS,
        "server": {"uplink": {"scalars": 200.0, "burst": 100.0}},
        "outages": [{"start": 4.0, "end": 8.0, "nodes": ["server", 1]}],
    },
}
GRAPH_NETWORKS: Mapping[str, Section] = {
    "narrow": {"bandwidth": 40.0, "latency": 0.1},
    "lossy": {**NETWORKS["lossy"], "partitions": [{"start": 3.0, "end": 6.0, "groups": [[0]]}]},
    "faulty": {**FAULTS, "outages": [{"start": 4.0, "end": 8.0, "nodes": [1]}]},
}
AGENTS: Mapping[str, Section] = {
    "fast": {},
    "slow": {
        "compute": {"kind": "shifted_exponential", "shift": 0.2, "rate": 2.0},
        "handling": {"kind": "exponential", "rate": 4.0},
        "stragglers": {"fraction": 0.34, "slowdown": 8},
    },
}
EXTRA: Mapping[str, Section] = {
    "churn": {**AGENTS["slow"], "availability": {"kind": "markov_on_off", "mean_up": 6.0, "mean_down": 3.0}}
}


FAULTY = ("lossy", "faulty")
SEEDS = range(3, 13)
SILENT_NETWORKS = ("ideal", "faulty")
"""Where an algorithm that sends nothing may fail: anywhere, and where agents come and go."""


@dataclass(frozen=True)
class Case(ABC):
    """One thing to check of an algorithm with certain parameters."""

    algorithm: str
    config: Mapping[str, Any] = field(hash=False)

    @abstractmethod
    def check(self) -> str | None:
        """Run and compare.

        Returns:
            What was checked, in words, where that depends on the algorithm.

        Raises:
            NonConformance: the algorithm does not keep what it must.
            Vacuous: the case says nothing about this algorithm; for pytest it is skipped.
        """

    def __str__(self) -> str:
        return "-".join([self.algorithm, *map(str, self.config)])


@dataclass(frozen=True)
class NothingLost(Case):
    """On one network and schedule, whoever is slow: nothing is lost or counted twice."""

    network: str
    schedule: str

    def check(self) -> None:
        for agents in AGENTS if self.network != "faulty" else ("churn",):
            self._check(agents)

    def _check(self, agents: str) -> None:
        """Check one run; where faults are rare and spare the few messages, one with another seed."""
        for seed in SEEDS:
            result = simulate(self.algorithm, dict(self.config), self.schedule, self.network, agents, seed=seed)
            check_complete(result, turns_of(self.schedule))
            check_ledger(result)
            check_messages(self.algorithm, result)
            demand_talk(self.algorithm, self.config, result)
            if self.network not in FAULTY or _met_faults(result):
                return
        raise Vacuous(f"with none of {len(SEEDS)} seeds a message is lost or doubled: {len(result.sent)} are too few")

    def __str__(self) -> str:
        return f"{super().__str__()}-{self.schedule}-{self.network}"


@dataclass(frozen=True)
class AsDeclared(Case):
    """Without delays: sizes of messages, closed forms and metrics are what the algorithm declares."""

    schedule: str

    def check(self) -> None:
        result = self._run(self.config)
        check_complete(result, turns_of(self.schedule))
        check_ledger(result)
        demand_talk(self.algorithm, self.config, result)
        check_messages(self.algorithm, result)
        check_sums(result)
        check_closed_forms(self.algorithm, result, self.schedule)
        horizon = {"horizon": 15} if "horizon" in algorithm(self.algorithm).config.model_fields else {}
        for cut in CUT.get(self.schedule, ()):
            check_closed_forms(self.algorithm, self._run({**horizon, **self.config}, cut), self.schedule)
        small = problem_of if on_graph(self.algorithm) else runs.problem_of
        check_metrics(self.algorithm, result, str(small(self.algorithm)["kind"]))

    def _run(self, config: Mapping[str, Any], cut: Section = MappingProxyType({})) -> Run:
        """One run without delays; what is checked after every message is checked in those of ``NothingLost``."""
        return simulate(self.algorithm, dict(config), self.schedule, "ideal", "fast", 3, cut, checks="cheap")

    def __str__(self) -> str:
        return f"{super().__str__()}-{self.schedule}-as_declared"


@dataclass(frozen=True)
class Deterministic(Case):
    """The same scenario and seed give the same run, whether work is shared or not."""

    def check(self) -> None:
        check_deterministic(self.algorithm, dict(self.config))

    def __str__(self) -> str:
        return f"{super().__str__()}-deterministic"


@dataclass(frozen=True)
class GoesOn(Case):
    """After one kind of faults (``coband.extensions.conformance.liveness``) nobody falls silent or waits forever."""

    fault: str

    def check(self) -> str:
        return check_liveness(self.algorithm, self.config, self.fault)

    def __str__(self) -> str:
        return f"{super().__str__()}-goes_on-{self.fault}"


def cases(given: str | Algorithm, *variants: Mapping[str, Any]) -> list[Case]:
    """All cases of an algorithm, for each of some variants of its parameters (its defaults if none).

    Args:
        given: its name, or the object, which need not be installed.
        variants: of its parameters.
    """
    found: list[Case] = []
    name = given if isinstance(given, str) else ensured_algorithm(given).name
    for config in variants or ({},):
        quiet = sends_nothing(name, config)
        networks = SILENT_NETWORKS if quiet else NETWORKS
        found += [
            NothingLost(name, config, network, schedule) for network in networks for schedule in schedules_of(name)
        ]
        found += [AsDeclared(name, config, schedule) for schedule in schedules_of(name)]
        found.append(Deterministic(name, config))
        found += [] if quiet else [GoesOn(name, config, fault) for fault in KINDS]
    return found


def sends_nothing(name: str, config: Mapping[str, Any]) -> bool:
    """Whether an algorithm says that it sends nothing: it has no messages and no server, or the closed form 0 of its
    scalars."""
    entry = algorithm(name)
    values = entry.parameters(entry.config.model_validate(config))
    for form in entry.counts:
        with suppress(formulas.FormulaError):
            if (form.count, form.formula) == ("scalars", "0") and (
                not form.when or formulas.evaluate(form.when, values)
            ):
                return True
    return not entry.messages and entry.server is None


def demand_talk(name: str, config: Mapping[str, Any], result: Run) -> None:
    """Raise Vacuous if an algorithm that sends messages has sent none."""
    if not result.sent and not sends_nothing(name, config):
        turns = result.result.turns
        raise Vacuous(f"{name} sends nothing in {turns} turns: give parameters with which it communicates more often")


def _met_faults(result: Run) -> bool:
    """Whether anything was lost or doubled, or an agent was down."""
    fates = result.result.audit.copies.values()
    lost = any(copies.dropped or copies.duplicates for copies in fates)
    return lost or (not result.sent and bool(result.events(tr.DOWN)))


def simulate(
    name: str,
    config: Section,
    schedule: str,
    network: str,
    agents: str,
    seed: int,
    cut: Section = MappingProxyType({}),
    **more: Any,
) -> Run:
    """One run of the kit; invariants are checked after every message. ``cut`` changes its schedule."""
    networks = {**NETWORKS, **GRAPH_NETWORKS} if on_graph(name) else NETWORKS
    return graphs.run_anywhere(
        name,
        config,
        seed=seed,
        agent={**AGENTS, **EXTRA}[agents],
        schedule={**schedules_of(name)[schedule], **cut},
        network=networks[network],
        **more,
    )


def schedules_of(name: str) -> Mapping[str, Section]:
    """The schedules that an algorithm runs on, as it declares."""
    allowed = algorithm(name).needs.schedules
    return PHASES if batches(name) else {kind: one for kind, one in SCHEDULES.items() if kind in allowed}


def check_deterministic(name: str, config: Section) -> None:
    """The same scenario and seed give the same fingerprint; another seed another one; shared work changes nothing."""
    schedule = next(iter(schedules_of(name)))

    def fingerprint(seed: int, **more: Any) -> str:
        return simulate(name, config, schedule, "random", "slow", seed, checks="cheap", **more).result.fingerprint

    with own_coins_only():
        first = fingerprint(1)
    demand(first == fingerprint(1), "the same run twice has two fingerprints: is something random but the streams?")
    demand(first != fingerprint(2), "two seeds give the same fingerprint: does the algorithm look at its arms?")
    demand(first == fingerprint(1, share=False), "the run changes with `share: off`: shared objects carry knowledge")


def turns_of(schedule: str) -> int | None:
    """Turns of all three agents together; None where nobody knows beforehand."""
    if schedule in PHASES:
        return None
    turns = int(str(SCHEDULES[schedule]["turns"]))
    return turns if schedule == "one_at_a_time" else 3 * turns
