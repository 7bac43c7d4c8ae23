"""What is installed: algorithms and problems, found through entry points (``algorithms``, ``problems``).

Built-ins and third-party packages use the same door. A plugin that does not load is named in ``warnings`` and left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Literal, TypeVar, get_args, get_origin

from pydantic import BaseModel

from coband.simulator.core.algorithm import Algorithm
from coband.simulator.core.node import Agent, BatchAgent
from coband.simulator.problems.world import Problem, ProblemEntry

ALGORITHMS, PROBLEMS = "coband.algorithms", "coband.problems"
OWN_DISTRIBUTION = "coband"
RESERVED = ("algorithm", "label")
T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Registry:
    """Everything that scenarios can name.

    Attributes:
        broken: entry points that could not be loaded, with the reason.
        warnings: one sentence for each plugin that was left out.
    """

    algorithms: Mapping[str, Algorithm]
    problems: Mapping[str, ProblemEntry]
    broken: Mapping[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    @staticmethod
    def installed() -> Registry:
        """The registry of this Python environment, read once per process."""
        return _installed()

    def takes(self, algorithm: str, parameter: str) -> bool:
        """Whether an algorithm has a parameter; True for algorithms that are not known."""
        known = self.algorithms.get(algorithm)
        return known is None or parameter in known.config.model_fields


class PluginError(Exception):
    """An entry point whose object is not what its group asks for."""


@lru_cache(maxsize=1)
def _installed() -> Registry:
    return collect(entry_points(group=ALGORITHMS), entry_points(group=PROBLEMS))


def collect(algorithms: Iterable[EntryPoint], problems: Iterable[EntryPoint]) -> Registry:
    """Load entry points; what does not load becomes a warning."""
    broken: dict[str, str] = {}
    warnings: list[str] = []
    loaded_algorithms = _load(algorithms, checked_algorithm, broken, warnings)
    loaded_problems = _load(problems, checked_problem, broken, warnings)
    return Registry(loaded_algorithms, loaded_problems, broken, tuple(warnings))


def _load(
    points: Iterable[EntryPoint], check: Callable[[str, object], T], broken: dict[str, str], warnings: list[str]
) -> dict[str, T]:
    loaded: dict[str, T] = {}
    taken: dict[str, EntryPoint] = {}
    for point in sorted(points, key=lambda point: (_distribution(point) != OWN_DISTRIBUTION, point.name)):
        first = taken.setdefault(point.name, point)
        if first is not point:
            if first.value != point.value:
                warnings.append(
                    f"{point.group}: {point.name!r} of {_distribution(point)} ({point.value}) is ignored: "
                    f"{_distribution(first)} ({first.value}) has that name"
                )
            continue
        try:
            loaded[point.name] = check(point.name, point.load())
        except (Exception, SystemExit) as error:  # whatever a plugin raises, coband goes on without it
            broken[point.name] = f"{type(error).__name__}: {error}"
            warnings.append(
                f"{point.group}: {point.name!r} of {_distribution(point)} ({point.value}) is left out: "
                f"{broken[point.name]}"
            )
    return dict(sorted(loaded.items()))


def _distribution(point: EntryPoint) -> str:
    return "an unknown package" if point.dist is None else str(point.dist.name)


def checked_algorithm(name: str, found: object) -> Algorithm:
    """The object of an algorithm's entry point.

    Raises:
        PluginError: it is not an `Algorithm` of that name with proper parts.
    """
    if not isinstance(found, Algorithm):
        raise PluginError(f"a coband.Algorithm is expected, not {_kind_of(found)}")
    if found.name != name:
        raise PluginError(f"the entry point is called {name!r} but the algorithm {found.name!r}; give both one name")
    if not (_is_subclass(found.agent, Agent) or _is_subclass(found.agent, BatchAgent)):
        raise PluginError("agent must be a subclass of coband.Agent or coband.BatchAgent")
    if found.server is not None and str(found.server).count(":") != 1:
        raise PluginError(f"server(={found.server!r}) must be None or 'module:Class'")
    if not _is_subclass(found.config, BaseModel):
        raise PluginError("config must be a pydantic model; derive it from coband.Config")
    clash = [key for key in RESERVED if key in found.config.model_fields]
    if clash:
        raise PluginError(f"config must not have a field {clash[0]!r}, which scenarios use for every algorithm")
    return found


def checked_problem(name: str, found: object) -> ProblemEntry:
    """The object of a problem's entry point.

    Raises:
        PluginError: it is not a `ProblemEntry` of that name with a proper model.
    """
    if not isinstance(found, ProblemEntry):
        raise PluginError(f"a coband.ProblemEntry is expected, not {_kind_of(found)}")
    if found.name != name:
        raise PluginError(f"the entry point is called {name!r} but the problem {found.name!r}; give both one name")
    if not _is_subclass(found.config, Problem):
        raise PluginError("config must be a subclass of coband.Problem")
    kind = found.config.model_fields.get("kind")
    if kind is None or get_origin(kind.annotation) is not Literal or get_args(kind.annotation) != (name,):
        raise PluginError(f"config must have the field `kind: Literal[{name!r}]`")
    return found


def _is_subclass(found: Any, base: type) -> bool:
    return isinstance(found, type) and issubclass(found, base)


def _kind_of(found: object) -> str:
    return f"the class {found.__name__}" if isinstance(found, type) else f"an object of type {type(found).__name__}"
