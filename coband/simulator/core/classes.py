"""An algorithm that is a class: `coband.Agent` and its server, from which the entry of the registry is made.

A class says with its name and its attributes what an `Algorithm` says with fields. Those who declare more, such as the
sizes of messages or what the algorithm needs, write an `Algorithm`.
"""

from __future__ import annotations

import sys
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache, wraps
from inspect import Parameter, signature
from typing import Any, ClassVar, get_origin

from pydantic import BaseModel, create_model

from coband.simulator.arms import ArmSet
from coband.simulator.core.algorithm import Algorithm, Needs
from coband.simulator.core.config import Config
from coband.simulator.core.conversations import talks
from coband.simulator.core.nodes import node
from coband.simulator.core.nodes.context import FACTS
from coband.simulator.core.nodes.outbox import Outbox
from coband.simulator.plugins.entry_points import PluginError
from coband.simulator.scenario_errors import did_you_mean, quoted


class _Starting(talks.Talks):
    """A node whose class needs no ``__init__``."""

    def start(self) -> None:
        """Make the state that the node begins with; `context` and parameters are there."""


class _Model:
    """The model of a class's parameters, where pickles of it look for it."""

    def __get__(self, agent: object, kind: type[AnyAgent]) -> type[BaseModel]:
        return algorithm_of(kind).config


class AnyAgent(_Starting, node.Client):
    """What both kinds of agents have in common.

    Attributes:
        server: the class of the server; None: agents are alone, or neighbours on a graph.
    """

    server: ClassVar[type[node.Server] | None] = None
    _learning, _parameters = False, _Model()

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        for name in ("observe", "observe_batch"):
            if name in vars(cls):
                setattr(cls, name, _accounted(vars(cls)[name]))

    @classmethod
    def with_(cls, **parameters: Any) -> dict[str, Any]:
        """The algorithm with other values of its parameters, for ``algorithms=[Mine, Mine.with_(period=5)]``.

        Raises:
            PluginError: it has no such parameter.
        """
        known = parameters_of(cls)
        for name in parameters:
            if name not in known:
                near = did_you_mean(name, [*known]) or ";"
                raise PluginError(
                    f"{cls.__name__} has no parameter {quoted(name)}{near} it has {', '.join(known) or 'none'}"
                )
        label = " ".join([cls.__name__, *(f"{name}={value}" for name, value in parameters.items())])
        return {"algorithm": cls, "label": label, **parameters}


def _accounted(method: Callable[..., Any]) -> Callable[..., Any]:
    """A method that learns from pulls, with their account where a class is the algorithm, and with what it told.

    It may return None where it sends nothing, or tells all that it sends.
    """

    @wraps(method)
    def observe(self: AnyAgent, arms: Any, *learned: Any) -> Any:
        if self._learning:  # called by the method that overrides it
            return method(self, arms, *learned)
        by_class, self._learning = isinstance(self.context.config, Parameters), True
        if by_class:
            self.unshared += 1 if isinstance(self, Agent) else int(arms.sum())
            self.talks.busy = True  # what is begun and told is taken at the end
        try:
            outbox = method(self, arms, *learned)
        finally:
            self._learning = False
        told = self.talks.take() if by_class else self.sent()
        return told if outbox is None else outbox + told if told else outbox

    return observe


class Agent(AnyAgent, node.Agent):
    """A device that pulls an arm at each of its turns: ``choose`` an arm, ``observe`` its reward, talk to others::

        class Mine(coband.Agent):
            epsilon = 0.1

            def start(self):
                self.rng, self.d = self.context.rng, self.context.dimension
                self.A, self.b = np.eye(self.d), np.zeros(self.d)

            def choose(self, arms):
                if self.rng.random() < self.epsilon:
                    return int(self.rng.integers(len(arms)))
                return self.best(arms.features @ np.linalg.solve(self.A, self.b))

            def observe(self, arms, arm, reward):
                x = arms.features[arm]
                self.A += np.outer(x, x)
                self.b += reward * x

        coband.run("quickstart", algorithms=[Mine, Mine.with_(epsilon=0.01), "lin_ucb"])

    ``start`` makes the state; class attributes are parameters, which a scenario may set. `tell` sends a message; `ask`
    waits for an answer, in an ``async def`` that is begun by ``self.begin(self.share())``. A method that is
    marked ``@coband.on(Kind)`` handles messages of that kind.

    Attributes:
        context: what the agent may know: ``index``, ``agents``, ``dimension``, ``rng``.
        server: the class of the server; None: agents are alone, or neighbours on a graph.
    """

    @abstractmethod
    def observe(self, arms: ArmSet, arm: int, reward: float) -> Outbox | None:
        """Learn from the pull of an arm of the turn's arm set; return what `begin` has returned, or None."""


class BatchAgent(AnyAgent, node.BatchAgent):
    """A device that pulls in phases: `request` says how often each arm, `observe_batch` is told the means."""


class Server(_Starting, node.Server):
    """The centre of a star: handles what agents send (``@coband.on``), answers and tells."""


class Parameters(Config):
    """Parameters that were read from the attributes of a class; nodes have them as attributes."""


def parameters_of(kind: type) -> Mapping[str, tuple[Any, Any]]:
    """Name -> (type, default) of the attributes of an agent's class and of its server's that are plain values.

    Raises:
        PluginError: both have one of the same name with another value.
    """
    found, server = _plain_values(kind), _plain_values(getattr(kind, "server", None))
    for name in found.keys() & server.keys():
        if found[name][1] != server[name][1]:
            raise PluginError(
                f"{name} is {found[name][1]!r} in {kind.__name__} and {server[name][1]!r} in its server, but both have "
                "the same parameters: give both one value, or one of them another name"
            )
    return {**server, **found}


def _plain_values(owner: Any) -> dict[str, tuple[Any, Any]]:
    found: dict[str, tuple[Any, Any]] = {}
    for one in reversed(getattr(owner, "__mro__", ())):
        for name, value in vars(one).items() if not one.__module__.startswith("coband.") else ():
            reserved = (
                name.startswith("_") or name == "context" or hasattr(node.Client, name) or hasattr(node.Server, name)
            )
            if isinstance(value, (bool, int, float, str)) and not reserved:
                found[name] = _annotation(one, name) or type(value), value
    return found


@cache  # a text that is evaluated twice gives two annotations, which are not equal
def _annotation(owner: type, name: str) -> Any:
    """How a class annotates an attribute; None where it does not, or by a name that only type checkers see."""
    hint = vars(owner).get("__annotations__", {}).get(name)
    if isinstance(hint, str):
        try:
            hint = eval(hint, dict(vars(sys.modules[owner.__module__])))
        except Exception:
            return None
    return None if hint is ClassVar or get_origin(hint) is ClassVar else hint


def algorithm_of(kind: type[AnyAgent], **declared: Any) -> Algorithm:
    """Make the `Algorithm` of a class of agents, which runs in a package as it does in a script::

        ALGORITHM = coband.algorithm_of(Mine, name="mine", messages=(coband.MessageSize(Sums, "up", "2*arms"),))

    Attributes of ``kind`` and of its server are the parameters. It runs in a star, or without a server on graphs too,
    and its nodes may know everything, unless something else is ``declared``, as of an `Algorithm`.

    Raises:
        PluginError: a method is missing, or agents and server disagree about a parameter.
    """
    for owner in (kind, kind.server):
        if missing := sorted(getattr(owner, "__abstractmethods__", ())):
            raise PluginError(f"{getattr(owner, '__name__', owner)} has no method {' and no '.join(missing)}; write it")
    found = _entry(kind, kind.server, tuple(parameters_of(kind).items()))
    return replace(found, **declared) if declared else found


@cache
def _entry(
    kind: type[AnyAgent], server: type[node.Server] | None, parameters: tuple[tuple[str, tuple[Any, Any]], ...]
) -> Algorithm:
    given: Any = dict(parameters)
    batches = issubclass(kind, node.BatchAgent)
    needs = Needs(
        topologies=("star",) if server is not None else ("star", "graph"),
        schedules=("phases",) if batches else Needs.schedules,
    )
    config = create_model(kind.__name__, __base__=Parameters, __module__=kind.__module__, **given)
    config.__qualname__ = f"{kind.__qualname__}._parameters"  # where other processes find it
    return Algorithm(
        name=kind.__name__,
        agent=kind,
        server=server,
        config=config,
        summary=(kind.__doc__ or kind.__name__).strip().splitlines()[0].rstrip("."),
        reference=f"the class {kind.__qualname__}",
        needs=needs,
        knows=FACTS,
    )


def start_node(made: node.Node) -> None:
    """Let a node that was just made begin: its parameters, then its own state."""
    if isinstance(made, _Starting):
        config = made.context.config
        for name in type(config).model_fields if isinstance(config, Parameters) else ():
            setattr(made, name, getattr(config, name))
        made.start()


FORMS = (("select", "update"), ("choice", "getReward"), ("predict", "partial_fit"))
"""Names of the two methods in code of one's own, in SMPyBandits and in MABWiser."""
SEEDS = ("seed", "random_state")


def plain(make: Callable[..., Any], select: str = "", update: str = "", name: str = "") -> type[Agent]:
    """Make a policy for a single agent, from whatever library, a class of agents that learn alone::

        coband.run("quickstart", algorithms=[coband.plain(TheirPolicy), "async_kernel_ucb"])

    Every agent has an object of its own. It is made at the agent's first turn: with the number of arms, if ``make``
    requires an argument, and with a seed, if it takes ``seed`` or ``random_state``.

    Args:
        make: a class, or a function that makes an object.
        select: the method that returns the number of an arm; it is given the arms (n, d) if it requires an argument.
            By default ``select``, ``choice`` (SMPyBandits, with ``startGame``) and ``predict`` (MABWiser).
        update: the method that is given the arm's number and its reward: ``update``, ``getReward``, or ``partial_fit``,
            which takes lists.
        name: of the algorithm; empty for that of ``make``.

    Raises:
        PluginError: it has no such methods.
    """
    known = [(select or one, update or other) for one, other in FORMS]

    def pair_of(policy: Any) -> tuple[str, str]:
        """The names of its two methods."""
        for pair in known:
            if all(hasattr(policy, one) for one in pair):
                return pair
        named = policy.__name__ if isinstance(policy, type) else f"what {label} has made"
        raise PluginError(f"{named} has no method {known[0][0]} or no method {known[0][1]}; give select= and update=")

    label = name or getattr(make, "__name__", "Plain")
    if isinstance(make, type):
        pair_of(make)

    class Plain(Agent):
        policy: Any = None

        def choose(self, arms: ArmSet) -> int:
            if self.policy is None:
                self.policy = self._made(len(arms))
                self.pair = pair_of(self.policy)
            method = getattr(self.policy, self.pair[0])
            return int(method(arms.features) if _required(method) else method())

        def observe(self, arms: ArmSet, arm: int, reward: float) -> None:
            method = getattr(self.policy, self.pair[1])
            method(*(([arm], [reward]) if self.pair[1] == "partial_fit" else (arm, reward)))

        def _made(self, arms: int) -> Any:
            taken = signature(make).parameters
            seeds = {one: int(self.context.rng.integers(2**31)) for one in SEEDS if one in taken}
            made = make(*[arms][: len(_required(make) - seeds.keys())], **seeds)
            if hasattr(made, "startGame"):
                made.startGame()
            return made

    Plain.__name__ = Plain.__qualname__ = label
    Plain.__module__ = getattr(make, "__module__", Plain.__module__)
    Plain.__doc__ = f"{Plain.__name__}, each agent for itself."
    return Plain


def _required(method: Callable[..., Any]) -> set[str]:
    """Names of the parameters that a call has to give."""
    positional = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
    found = signature(method).parameters.values()
    return {one.name for one in found if one.kind in positional and one.default is Parameter.empty}
