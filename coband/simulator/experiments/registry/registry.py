"""What is installed: the open lists, from algorithms to metrics, found through entry points.

Built-ins and third-party packages use the same door. A plugin that does not load is named in ``warnings`` and left out.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any, TypeVar

from pydantic import BaseModel

from coband.simulator.core.algorithm import Algorithm, ClosedForm, MessageSize
from coband.simulator.core.classes import AnyAgent, Parameters, algorithm_of, parameters_of
from coband.simulator.core.clock.schedule import SCHEDULES
from coband.simulator.core.formulas import FormulaError, names_in
from coband.simulator.core.hosts.availability import AVAILABILITIES
from coband.simulator.core.hosts.energy import RECHARGES
from coband.simulator.core.hosts.speed import STRAGGLERS
from coband.simulator.core.hosts.stays import MovesAtTimes
from coband.simulator.core.metrics import CORE, CORE_NAMES, METRICS
from coband.simulator.core.network.bandwidth import BANDWIDTHS
from coband.simulator.core.network.links import LATENCIES, LOSSES
from coband.simulator.core.network.partitions import OUTAGES, PARTITIONS
from coband.simulator.core.network.topologies import TOPOLOGIES
from coband.simulator.core.nodes.node import Agent, BatchAgent, Server
from coband.simulator.core.populations.kinds import POPULATIONS
from coband.simulator.core.randomness.distributions import DISTRIBUTIONS
from coband.simulator.core.wire.behaviours import ADVERSARIES
from coband.simulator.core.wire.defences import DEFENCES
from coband.simulator.core.wire.encodings import ENCODINGS
from coband.simulator.core.wire.privacy import MECHANISMS, Privacy
from coband.simulator.maths.kernels.registry import KERNELS
from coband.simulator.metrics import Metric, by_name
from coband.simulator.plugins.entry_points import (
    GROUP,
    PluginError,
    distribution,
    extensions,
    is_subclass,
    kind_of,
    offered,
)
from coband.simulator.plugins.kinds import Kinds, checked_class, kind_name, registrations
from coband.simulator.problems.drift import DRIFTS
from coband.simulator.problems.problem import DataError
from coband.simulator.problems.rewards import NOISES, REWARDS
from coband.simulator.problems.world import Problem, ProblemEntry
from coband.simulator.scenario_errors import did_you_mean

T = TypeVar("T")
RESERVED = ("algorithm", "label", "ties")
"""Keys that scenarios use for every algorithm."""


class UnknownNameError(DataError):
    """Nothing has that name; the text lists the nearest names."""


@dataclass(frozen=True, eq=False)
class Registry:
    """Everything that scenarios can name.

    Attributes:
        algorithms: by name; coband's own are imported when they are asked for, as are its problems.
        broken: entry points that could not be loaded, with the reason.
        warnings: one sentence for each plugin that was left out.
    """

    algorithms: Mapping[str, Algorithm]
    problems: Mapping[str, ProblemEntry]
    broken: Mapping[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    @cached_property
    def metrics(self) -> Mapping[str, Metric]:
        """Every declared metric by name: coband's own, then those of algorithms and problems."""
        entries: tuple[Algorithm | ProblemEntry, ...] = (*self.algorithms.values(), *self.problems.values())
        return by_name(CORE, tuple(METRICS.values()), *[entry.metrics for entry in entries])

    def metrics_of(self, problem: str, algorithms: Iterable[str]) -> Mapping[str, Metric]:
        """The metrics that results of algorithms on a problem can have, by name: coband's own, and what they declare.

        What is not installed here declares nothing.
        """
        declared = [self.problems[problem].metrics] if problem in self.problems else []
        declared += [self.algorithms[name].metrics for name in algorithms if name in self.algorithms]
        return by_name(CORE, tuple(METRICS.values()), *declared)

    def aim_of(self, problem: str) -> str:
        """The metric that algorithms on a problem are compared on first."""
        return self.problems[problem].aim if problem in self.problems else "regret"

    @staticmethod
    def installed() -> Registry:
        """The registry of this Python environment, read once per process."""
        return _installed(registrations())

    def unprotected(self, algorithm: str, privacy: Mapping[str, Any]) -> list[str]:
        """What a section ``messages.privacy`` leaves unprotected; nothing of an algorithm that is not installed."""
        known = self.algorithms.get(algorithm)
        return [] if known is None else Privacy.model_validate(privacy).unprotected(known)

    def takes(self, algorithm: str, parameter: str) -> bool:
        """Whether an algorithm has a parameter; True for algorithms that are not known."""
        known = self.algorithms.get(algorithm)
        return known is None or parameter in known.config.model_fields


@lru_cache(maxsize=1)
def _installed(after: int) -> Registry:
    """The registry after so many registrations."""
    said = [text for one in OPEN_LISTS for text in one.warnings]
    lists = [one.group for one in OPEN_LISTS]
    asked = {point.group: distribution(point) for point in offered() if point.group != GROUP}
    asked |= {f"coband.{kind}": name for name, one in extensions().items() for kind in one.kinds}
    for group, package in asked.items():
        if group not in lists:
            said.append(f"{package} adds to {group}, which is not a list of coband's{did_you_mean(group, lists)}")
    return Registry(ALGORITHMS, PROBLEMS, ChainMap(*[one.broken for one in OPEN_LISTS]), tuple(said))


@lru_cache(maxsize=32)
def only(registry: Registry, algorithms: frozenset[str], problem: str) -> Registry:
    """The registry with only these algorithms and this problem; with all of them where a name is unknown."""
    known = algorithms and all(name in registry.algorithms for name in algorithms)
    found = {name: registry.algorithms[name] for name in sorted(algorithms)} if known else registry.algorithms
    return Registry(found, {problem: registry.problems[problem]} if problem in registry.problems else registry.problems)


def _named(name: str, found: Any, kind: type[T]) -> T:
    """What an entry point of that name gives, which has the name too."""
    if not isinstance(found, kind):
        raise PluginError(f"a coband.{kind.__name__} is expected, not {kind_of(found)}")
    if found.name != name:  # type: ignore[attr-defined]
        own = f"the {'problem' if kind is ProblemEntry else 'algorithm'} {found.name!r}"  # type: ignore[attr-defined]
        raise PluginError(f"the entry point is called {name!r} but {own}; give both one name")
    return found


def checked_algorithm(name: str, given: object) -> Algorithm:
    """The object of an algorithm's entry point.

    Raises:
        PluginError: it is not an `Algorithm` of that name with proper parts.
    """
    found = _named(name, _algorithm(given), Algorithm)
    if not (is_subclass(found.agent, Agent) or is_subclass(found.agent, BatchAgent)):
        raise PluginError("agent must be a subclass of coband.Agent or coband.BatchAgent")
    named = found.server is None or (isinstance(found.server, str) and found.server.count(":") == 1)
    if not named and not is_subclass(found.server, Server):
        raise PluginError(f"server(={found.server!r}) must be None or 'module:Class', or a subclass of coband.Server")
    if not is_subclass(found.config, BaseModel):
        raise PluginError("config must be a pydantic model; derive it from coband.Config")
    if clash := [key for key in RESERVED if key in found.config.model_fields]:
        raise PluginError(f"config must not have a field {clash[0]!r}, which scenarios use for every algorithm")
    own = {} if issubclass(found.config, Parameters) else parameters_of(found.agent)
    if twice := sorted(own.keys() & found.config.model_fields):
        raise PluginError(
            f"{found.agent.__name__} has an attribute {twice[0]!r}, which would hide the parameter of its config: read "
            f"self.context.config.{twice[0]}, and leave it out of the class"
        )
    formulas = [*found.where.values()]
    for part in (*found.messages, *found.counts):
        if not isinstance(part, (MessageSize, ClosedForm)):
            raise PluginError(f"messages and counts hold coband.MessageSize and coband.ClosedForm, not {part!r}")
        formulas += [part.size if isinstance(part, MessageSize) else part.formula, part.when]
    try:  # the conformance kit says whether they are right
        for formula in filter(None, formulas):
            names_in(formula)
    except FormulaError as error:
        raise PluginError(str(error)) from None
    _check_metrics(found.metrics)
    return found


def checked_problem(name: str, given: object) -> ProblemEntry:
    """The object of a problem's entry point.

    Raises:
        PluginError: it is not a `ProblemEntry` of that name with a proper model.
    """
    found = _named(name, _problem(given), ProblemEntry)
    checked_class(name, found.config, Problem)
    _check_metrics(found.metrics)
    return found


def _check_metrics(metrics: Sequence[Metric]) -> None:
    for metric in metrics:
        if not isinstance(metric, Metric):
            raise PluginError(f"metrics hold coband.Metric, not {metric!r}")
        if metric.name in CORE_NAMES and metric not in CORE:
            raise PluginError(f"the metric {metric.name!r} is coband's own; give yours another name")


def _problem(found: Any) -> Any:
    """The entry of a problem; one is made for a class that is given without."""
    if not is_subclass(found, Problem):
        return found
    return ProblemEntry(kind_name(found), found, (found.__doc__ or found.__name__).splitlines()[0].rstrip("."), "none")


def _algorithm(found: Any) -> Any:
    """The entry of an algorithm; one is made for a class of agents that is given without."""
    return algorithm_of(found) if is_subclass(found, AnyAgent) else found


ALGORITHMS = Kinds(
    "algorithms",
    checked_algorithm,
    lambda found: isinstance(found, Algorithm) or is_subclass(found, AnyAgent),
    lambda found: _algorithm(found).name,
)
PROBLEMS = Kinds(
    "problems",
    checked_problem,
    lambda found: isinstance(found, ProblemEntry) or is_subclass(found, Problem),
    lambda found: _problem(found).name,
)
CLASSES: tuple[Kinds[Any], ...] = (
    *(KERNELS, REWARDS, NOISES, TOPOLOGIES, DISTRIBUTIONS, LATENCIES, LOSSES, BANDWIDTHS, SCHEDULES, AVAILABILITIES),
    *(STRAGGLERS, PARTITIONS, OUTAGES, ENCODINGS, ADVERSARIES, DEFENCES, MECHANISMS, POPULATIONS, RECHARGES, DRIFTS),
)
"""The lists whose members are classes, which scenarios name by their ``kind``."""
OPEN_LISTS: tuple[Kinds[Any], ...] = (ALGORITHMS, PROBLEMS, *CLASSES, METRICS)


def has_field(kind: object, field: str) -> bool:
    """Whether a class of that kind has a parameter."""
    known: list[object] = [one.get(str(kind)) for one in CLASSES]
    known += [MovesAtTimes] if kind == "times" else []  # its list is not open
    return any(field in getattr(one, "model_fields", ()) for one in known)


def ensure(found: Any) -> None:
    """Register what is given as an object, an algorithm or the class of a kind, unless it is installed.

    Raises:
        PluginError: as `register` does.
    """
    if isinstance(found, type) and found.__module__.startswith(("coband.", "builtins")):
        return
    for fitting in (one for one in OPEN_LISTS if one.accepts(found)):
        known = fitting.get(fitting.name_of(found))
        if known is not found and getattr(known, "config", None) is not found:
            fitting.register(found)


def ensured_algorithm(given: Any) -> Algorithm:
    """The entry of an algorithm, or of a class of agents that is one, which is registered unless it is installed.

    Raises:
        PluginError: as `register` does.
    """
    entry: Algorithm = _algorithm(given)
    ensure(entry)
    return entry


def register(member: T) -> T:
    """Let scenarios of this Python process, and of its workers, name something that is not installed.

    What is registered under a name that was registered before takes its place, so that a cell of a notebook can be run
    again. It can be written above a class: ``@coband.register``.

    Args:
        member: what the entry point of a plugin gives: an `Algorithm`, a `ProblemEntry`, a `RunMetric`, or a class
            derived from one of the bases, such as `BaseGraph`.

    Returns:
        The same.

    Raises:
        PluginError: no list takes it, it is not what its list asks for, or something installed has its name.
    """
    fitting = next((one for one in OPEN_LISTS if one.accepts(member)), None)
    if fitting is None:
        raise PluginError(
            f"nothing can be done with {kind_of(member)}; give a coband.Algorithm, a ProblemEntry, a RunMetric, or "
            "a class derived from one of coband's bases, such as BaseGraph"
        )
    registered: T = fitting.register(member)
    return registered
