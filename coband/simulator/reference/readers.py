"""Which algorithms a key or kind matters to: those that have it as a parameter, or whose needs name it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from coband.simulator.core.algorithm import Algorithm
from coband.simulator.experiments.registry.registry import Registry
from coband.simulator.experiments.scenario.wire_checks import changed_by, defences, hidden_by
from coband.simulator.reference.entries import Entry, Index
from coband.simulator.reference.models import ROOT, Path

Statement = tuple[str, list[str]]
"""What is said, and of which algorithms."""
ALL = "every algorithm"
_LOSES = (("network", "loss"), ("network", "links", "loss"), ("agents", "availability"))
_DOUBLES = (("network", "duplicate"), ("network", "links", "duplicate"))
_REORDERS = (("network", "latency"), ("network", "links", "latency"), ("network", "reorder"))
_REFUSED = f"{ALL}; but refused with transport: datagram, for want of "


def readers(entry: Entry, index: Index, registry: Registry) -> list[Statement]:
    """What is to be said of algorithms about a key or kind; nothing is said where it is the same for all."""
    algorithms = registry.algorithms
    own = [path for path in entry.paths if path[0] == "algorithms"]
    if own and entry.paths[0] != ("algorithms",):
        names = [name for name in algorithms if _has(index, name, entry)]
        return [("a parameter of", names)] if len(names) < len(algorithms) else [(ALL, [])]
    found = [statement for statement in _needs(entry, index, algorithms) if statement[1]]
    return found or [(ALL, [])]


def _has(index: Index, algorithm: str, entry: Entry) -> bool:
    models = index.models
    root = next((name for name in models.at[("algorithms",)] if models.tags(name) == (algorithm,)), ROOT)
    return bool(root != ROOT and models.reached(root) & set(entry.models))


_BUT: tuple[tuple[list[Path], str, Callable[[Algorithm], bool]], ...] = (
    (
        [("messages", "encoding")],
        "some of what is sent must be float64, as arms are looked up by it",
        lambda one: bool(one.needs.exact),
    ),
    (
        [("agents", "reward_delay")],
        "refused, for want of rewards before the next turn",
        lambda one: bool(one.needs_rewards),
    ),
    (
        [("agents", "joins"), ("agents", "leaves")],
        "refused, since they plan for the same agents from the start to the end",
        lambda one: one.needs.ends_together,
    ),
)
"""Parts of the simulator for every algorithm but some: where, what holds for those, and which they are."""


def _needs(entry: Entry, index: Index, algorithms: Mapping[str, Algorithm]) -> Iterator[Statement]:
    """What the needs of algorithms say about a part of the simulator."""
    kinds = _kinds(entry, index)
    for path in entry.paths:
        for parts, but, concerns in _BUT if entry.word != "float64" else ():
            if _under(path, parts):
                yield f"{ALL}; but {but}", _those(algorithms, concerns)
                return
        if _under(path, [("network", "topology")]) and kinds:
            yield f"run on {' or '.join(kinds)}", _those(algorithms, lambda found: _runs_on(found, kinds))
        elif path == ("network", "topology"):
            yield "need the star", _those(algorithms, lambda found: found.needs.topologies == ("star",))
            yield "need a graph", _those(algorithms, lambda found: "star" not in found.needs.topologies)
            yield "run on both", _those(algorithms, lambda found: {"star", "graph"} <= {*found.needs.topologies})
        elif _under(path, [("network", "local")]):
            yield "run on graphs", _those(algorithms, lambda found: found.needs.topologies != ("star",))
        elif path == ("server", "aggregate"):
            taken = _those(algorithms, lambda one: entry.word in defences(one) if entry.is_kind else defences(one))
            yield f"run with {'it' if entry.is_kind else 'a defence'}", taken
        elif _under(path, [("messages", "privacy")]):
            taken = _those(algorithms, lambda one: entry.word in hidden_by(one) if entry.is_kind else hidden_by(one))
            yield f"send something that {'it' if entry.is_kind else 'a mechanism'} can hide", taken
        elif _under(path, [("adversaries",)]):
            taken = _those(algorithms, lambda one: entry.word in changed_by(one) if entry.is_kind else changed_by(one))
            yield f"have something that {'it changes' if entry.is_kind else 'lies change'}", taken
        elif _under(path, [("server",), ("network", "server")]):
            yield "have a server", _those(algorithms, lambda found: found.server is not None)
        elif path == ("schedule", "duration"):
            yield "need the parameter horizon with it", _those(algorithms, lambda found: found.needs.horizon)
        elif path[0] == "schedule" and kinds:
            yield f"run on {' or '.join(kinds)}", _those(algorithms, lambda found: {*kinds} & {*found.needs.schedules})
        elif path[0] == "problem" and kinds:
            yield f"run on {' or '.join(kinds)}", _those(algorithms, lambda found: _solves(found, kinds))
        for places, need, word in (
            (_LOSES, "reliable", "every message"),
            (_DOUBLES, "reliable", "every message once"),
            (_REORDERS, "ordered", "messages in order"),
        ):
            if _under(path, places):
                yield _REFUSED + word, _those(algorithms, lambda found, need=need: getattr(found.needs, need))  # type: ignore[misc]
                return
        if len(entry.paths) > 1:
            return


def _kinds(entry: Entry, index: Index) -> list[str]:
    """The kinds of topology, schedule or problem that an entry is or belongs to."""
    path = entry.paths[0]
    depth = 2 if path[:2] == ("network", "topology") else 1
    if entry.is_kind and len(path) == depth:
        return [entry.word]
    if len(path) <= depth:
        return []
    models = index.models
    if len(path) == depth + 1 and not entry.is_kind:
        return [tag for model in entry.models for tag in models.tags(model)]
    having = [model for model in models.at[path[:depth]] if models.reached(model) & set(entry.models)]
    return [tag for model in having for tag in models.tags(model)]


def _runs_on(algorithm: Algorithm, kinds: Iterable[str]) -> bool:
    topologies = algorithm.needs.topologies
    return "graph" in topologies or any(f"{{kind: {kind}}}" in topologies for kind in kinds)


def _solves(algorithm: Algorithm, kinds: list[str]) -> bool:
    """An algorithm without a list of problems runs on those that offer arms turn by turn."""
    batches = algorithm.needs.schedules == ("phases",) or kinds == ["pure_exploration"]
    return bool({*kinds} & {*algorithm.needs.problems}) or not (algorithm.needs.problems or batches)


def _under(path: Path, places: Iterable[Path]) -> bool:
    return any(path[: len(place)] == place for place in places)


def _those(algorithms: Mapping[str, Algorithm], matters: Callable[[Algorithm], object]) -> list[str]:
    return [name for name, algorithm in algorithms.items() if matters(algorithm)]
