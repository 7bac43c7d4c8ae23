"""Which algorithms a key or kind matters to."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from coband.simulator.core.algorithm import Algorithm
from coband.simulator.experiments.scenario.wire_rules import changed_by, defences, hidden_by
from coband.simulator.reference.entries import Entry, Index

ALL = "every algorithm"
_REFUSED = f"{ALL}; but refused with transport: datagram, for want of "
_EXACT = f"{ALL}; but some of what is sent must be float64, as arms are looked up by it"
Concern = Callable[[Algorithm, set[str]], object]
"""Whether something matters to an algorithm; given the kinds that it is or belongs to."""


def _runs_on(one: Algorithm, kinds: set[str]) -> bool:
    taken = one.needs.topologies
    return "graph" in taken or any(f"{{kind: {kind}}}" in taken for kind in kinds)


def _solves(one: Algorithm, kinds: set[str]) -> bool:
    """An algorithm without a list of problems runs on those that offer arms turn by turn."""
    batches = one.needs.schedules == ("phases",) or kinds == {"pure_exploration"}
    return bool(kinds & {*one.needs.problems}) or not (one.needs.problems or batches)


def _under(names: Callable[[Algorithm], list[str]]) -> Concern:
    return lambda one, kinds: kinds & {*names(one)} if kinds else names(one)


def _asks(need: str) -> Concern:
    return lambda one, kinds: getattr(one.needs, need)


_NEEDS: tuple[tuple[str, str, Concern], ...] = (
    ("messages.encoding", _EXACT, lambda one, kinds: one.needs.exact and one.needs.exact_if == "1"),
    (
        "messages.encoding",
        f"{ALL}; but the same, where arms are fixed or `repeats: drop` is asked for",
        lambda one, kinds: one.needs.exact and one.needs.exact_if != "1",
    ),
    (
        "agents.reward_delay",
        f"{ALL}; but refused, for want of rewards before the next turn",
        lambda one, kinds: one.needs_rewards,
    ),
    *(
        (
            place,
            f"{ALL}; but refused, since they plan for the same agents from the start to the end",
            lambda one, kinds: one.needs.ends_together,
        )
        for place in ("agents.joins", "agents.leaves")
    ),
    ("network.topology", "need the star", lambda one, kinds: not kinds and one.needs.topologies == ("star",)),
    ("network.topology", "need a graph", lambda one, kinds: not kinds and "star" not in one.needs.topologies),
    ("network.topology", "run on both", lambda one, kinds: not kinds and {"star", "graph"} <= {*one.needs.topologies}),
    ("network.topology", "run on {}", lambda one, kinds: kinds and _runs_on(one, kinds)),
    ("network.local", "run on graphs", lambda one, kinds: one.needs.topologies != ("star",)),
    ("server.aggregate", "run with {it|a defence}", _under(defences)),
    ("messages.privacy", "send something that {it|a mechanism} can hide", _under(hidden_by)),
    ("adversaries", "have something that {it changes|lies change}", _under(changed_by)),
    ("server", "have a server", lambda one, kinds: one.server is not None),
    ("network.server", "have a server", lambda one, kinds: one.server is not None),
    ("schedule.duration", "need the parameter horizon with it", lambda one, kinds: one.needs.horizon),
    ("schedule", "run on {}", lambda one, kinds: kinds & {*one.needs.schedules}),
    ("problem", "run on {}", lambda one, kinds: kinds and _solves(one, kinds)),
    *(
        (place, f"{_REFUSED}{want}", _asks(need))
        for places, want, need in (
            ("network.loss network.links.loss agents.availability", "every message", "reliable"),
            ("network.duplicate network.links.duplicate", "every message once", "reliable"),
            ("network.latency network.links.latency network.reorder", "messages in order", "ordered"),
        )
        for place in places.split()
    ),
)
"""Place, what is said, and of which algorithms."""
_DEPTHS = {"network": 2, "schedule": 1, "problem": 1}


def concerned(entry: Entry, index: Index, algorithms: Mapping[str, Algorithm]) -> dict[str, list[str]]:
    """What is to be said of algorithms about a key or kind, and of which; no names where it is the same for all."""
    if entry.paths[0] != ("algorithms",) and any(path[0] == "algorithms" for path in entry.paths):
        roots = {tag: root for root in index.at["algorithms",] for tag in index.tags(root)}
        names = [name for name in algorithms if name in roots and index.reached(roots[name]) & {*entry.models}]
        return {"a parameter of": names} if len(names) < len(algorithms) else {ALL: []}
    path, kinds = ".".join((*entry.paths[0], "")), _kinds(entry, index)
    fitting = [place for place, *_ in _NEEDS if path.startswith(f"{place}.")]
    found: dict[str, list[str]] = {}
    for place, words, matters in _NEEDS:
        if place in fitting[:1] and entry.word != "float64":
            said = re.sub(r"{(.+)\|(.+)}", r"\1" if kinds else r"\2", words).replace("{}", " or ".join(kinds))
            names = [name for name, one in algorithms.items() if matters(one, {*kinds})]
            found |= {said: names} if names else {}
    return found or {ALL: []}


def _kinds(entry: Entry, index: Index) -> list[str]:
    """The kinds of topology, schedule or problem that an entry is or belongs to; of other places, the kind itself."""
    path = entry.paths[0]
    depth = _DEPTHS.get(path[0], len(path) + (not entry.is_kind))
    if entry.is_kind and len(path) == depth:
        return [entry.word]
    if len(path) <= depth:
        return []
    having = (
        entry.models
        if len(path) == depth + 1 and not entry.is_kind
        else [model for model in index.at[path[:depth]] if index.reached(model) & {*entry.models}]
    )
    return [tag for model in having for tag in index.tags(model)]
