"""How an algorithm introduces itself to the registry."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal

from pydantic import BaseModel

from coband.simulator.core.formulas import Values, evaluate
from coband.simulator.core.nodes.message import Message
from coband.simulator.core.nodes.node import BatchAgent, Client, NodeContext, Server, UnsupportedScenario
from coband.simulator.core.nodes.own_noise import OwnNoise
from coband.simulator.metrics import Metric
from coband.simulator.plugins.entry_points import called_without_words, exception_told
from coband.simulator.scenario_errors import RAISED

Direction = Literal["up", "down", "peer"]
COMMON_QUANTITIES: Mapping[str, str] = {
    "N": "agents",
    "d": "arm dimension",
    "arms": "arms of a fixed arm set, or of each agent's task",
}
"""What every formula may use, beside the parameters of the algorithm."""
RUN_QUANTITIES: Mapping[str, str] = {
    "T": "pulls of all agents",
    "schedule": "the schedule's kind",
    "applied": "pulls that the server has taken in",
    "uploads": "messages that agents have sent to the server",
    "linked": "pulls of agents that have neighbours",
    "reach": "sum over all pulls of the number of other agents within `hops` links of who pulled",
    "copies": "sum over all pulls of the links that a message of who pulled crosses within `hops` links, or one",
}
"""What the closed form of a run may use in addition to every number of the result."""


@dataclass(frozen=True)
class Needs:
    """What an algorithm cannot do without.

    Attributes:
        topologies: network topologies it can run on: star, graph (any of them), or the kinds of single graphs.
        connected: the graph must have a path between any two agents.
        reliable: every message must arrive; a lossy datagram network is refused.
        ordered: the messages of a pair must arrive in order; datagrams with a random latency are refused.
        fixed_arms: the arm set must be the same at every turn of every agent.
        steady_arms: every agent must be offered the same arms at all of its turns; other agents may have others.
        unit_rewards: rewards must be from 0 to 1, as with Bernoulli noise.
        problems: kinds of problem it can run on; empty for any that offers arms turn by turn.
        horizon: the number of turns must be known; a schedule with a duration needs the parameter ``horizon``.
        schedules: kinds of schedule it can run on.
        exact: what must arrive as it was sent, since nodes look arms up by it or conclude the same from it: classes of
            messages, or what fields hold.
        exact_if: condition on the parameters, and on ``fixed_arms`` of the problem, under which ``exact`` matters.
        prompt_rewards: the reward of a pull must come before the agent's next turn.
        ends_together: it ends for all of its agents when one of them is lost, since it cannot do without any.
        waits_for_all: condition on the parameters under which nodes wait, without an end, for an agent that has their
            question and goes down for good, of which no network tells them; ``1`` for always, empty for never.
    """

    topologies: tuple[str, ...] = ("star",)
    connected: bool = False
    reliable: bool = True
    ordered: bool = False
    fixed_arms: bool = False
    steady_arms: bool = False
    unit_rewards: bool = False
    problems: tuple[str, ...] = ()
    horizon: bool = False
    schedules: tuple[str, ...] = ("one_at_a_time", "rounds", "renewal", "trace")
    ends_together: bool = False
    exact: tuple[str, ...] = ()
    exact_if: str = "1"
    prompt_rewards: bool = False
    waits_for_all: str = ""


@dataclass(frozen=True)
class MessageSize:
    """How many scalars a message carries: a formula that is printed, and that the conformance kit evaluates.

    The formula (`coband.simulator.core.formulas`) may use attributes of the message, `COMMON_QUANTITIES`,
    parameters of the algorithm and names in :attr:`Algorithm.where`. A quantity that depends on the state of the run,
    such as the size of the dictionary of that round, is a letter of the message's shapes, or a property of the message
    with a docstring.

    Attributes:
        message: its class.
        direction: up (agent to server), down (server to agent) or peer.
        size: scalars of one copy.
        to: who gets it, or how often, in words.
        when: condition on the parameters under which the size is that; empty for always.
        due: it is sent at times that follow from the schedule, from chance, or from earlier messages that its receivers
            know of, so that when it comes says nothing of anybody's data.
    """

    message: type[Message]
    direction: Direction
    size: str
    to: str = ""
    when: str = ""
    due: bool = False


@dataclass(frozen=True)
class ClosedForm:
    """A count of a whole run, or of every communication round, as a formula that the conformance kit evaluates.

    It holds on a network without delays and loss on which every agent is up.

    Attributes:
        count: a number of the result; with ``each: round`` one of uplink_scalars, downlink_scalars, peer_scalars.
        formula: what it is; may use parameters, names in :attr:`Algorithm.where`, `COMMON_QUANTITIES`, and in a
            run of `RUN_QUANTITIES` and every number of the result, in a round of the attributes on
            which its messages agree.
        when: condition on the same, under which it holds; empty for always.
        each: what it is about.
    """

    count: str
    formula: str
    when: str = ""
    each: Literal["run", "round"] = "run"


SILENT = (ClosedForm("scalars", "0"),)
"""The closed form of an algorithm that sends nothing."""


@dataclass(frozen=True)
class Algorithm:
    """One registered algorithm.

    Attributes:
        name: what users write after ``algorithm:``.
        agent: the class that runs on each client.
        server: the server's class as ``"module:Class"``, or itself, as in a notebook; None for algorithms without a
            server.
        config: its parameters; defaults are the paper's.
        summary: one line.
        reference: paper, algorithm number.
        messages: the size of every message that its nodes send; several for one kind differ in ``when``.
        counts: closed forms of the communication.
        where: formulas that name a quantity of other formulas, such as the number of weights of a network.
        metrics: the numbers that its nodes report (``report``, ``report_own``).
        cites: what ``coband show --bibtex`` prints: keys of ``references.bib``, or whole BibTeX entries.
        search: parameter -> what ``coband frontier`` tries where nothing else is said, such as ``"0.01..100"``: the
            parameters that trade communication against regret.
        rate: what its paper proves of regret and communication, up to what Õ hides, with the theorem; empty: nothing.
        knows: what its nodes read of `FACTS`, not only what ``needs`` implies; ``checks: full`` refuses other facts.
        always: parameters with which its agents communicate whenever they have anything new; empty where none do that.
        private: the noise that its nodes put on what they send, by the context of an agent; None: they put none.
        withstands: what its server does by itself about agents that lie; empty: nothing.
        undefended: why no defence (``server.aggregate``) can take the place of what its server sums, by the condition
            on the parameters under which that is so; ``1`` for always.
    """

    name: str
    agent: type[Client]
    server: str | type[Server] | None
    config: type[BaseModel]
    summary: str
    reference: str
    needs: Needs = field(default_factory=Needs)
    messages: tuple[MessageSize, ...] = ()
    counts: tuple[ClosedForm, ...] = ()
    where: Mapping[str, str] = field(default_factory=dict, hash=False)
    metrics: tuple[Metric, ...] = ()
    cites: tuple[str, ...] = ()
    search: Mapping[str, str] = field(default_factory=dict, hash=False)
    rate: str = ""
    always: Mapping[str, object] = field(default_factory=dict, hash=False)
    knows: tuple[str, ...] = ()
    private: Callable[[NodeContext], OwnNoise] | None = None
    withstands: str = ""
    undefended: Mapping[str, str] = field(default_factory=dict, hash=False)

    @property
    def facts(self) -> frozenset[str]:
        """What its nodes may know of the world: ``knows``, and what follows from ``needs``."""
        needs = self.needs
        implied = {
            "horizon": needs.horizon,
            "graph": needs.topologies != ("star",),
            "network_context": needs.topologies != ("star",),
            "knowledge": issubclass(self.agent, BatchAgent),
        }
        return frozenset(self.knows).union(name for name, needed in implied.items() if needed)

    @property
    def modules(self) -> tuple[str, ...]:
        """The modules of its agents, its parameters and its server."""
        parts = [self.agent.__module__, self.config.__module__]
        if self.server is not None:
            parts.append(self.server.partition(":")[0] if isinstance(self.server, str) else self.server.__module__)
        return tuple(parts)

    @property
    def needs_rewards(self) -> str:
        """Why it cannot take a turn before the reward of the last one has come, in words; empty if it can."""
        if issubclass(self.agent, BatchAgent):
            return "asks for its pulls in batches, which end with their rewards (agents.compute makes them longer)"
        prompt = "counts on the reward of a pull before its next turn"
        return prompt if self.needs.prompt_rewards else ""

    @property
    def server_class(self) -> type[Server] | None:
        """The server's class, imported.

        Raises:
            UnsupportedScenario: there is none of its name.
        """
        if not isinstance(self.server, str):
            return self.server
        module, _, name = self.server.partition(":")
        try:
            with called_without_words(module):
                found: type[Server] = getattr(importlib.import_module(module), name)
        except RAISED as error:
            wanted = 'give Algorithm.server "module:Class", or the class itself'
            raise UnsupportedScenario(
                f"server={self.server!r} cannot be imported: {exception_told(error, place=True)}; {wanted}"
            ) from error
        return found

    @staticmethod
    def parameters(config: BaseModel) -> dict[str, object]:
        """The values of the parameters by name."""
        return {name: getattr(config, name) for name in type(config).model_fields}

    def quantities(self, values: Values, config: BaseModel, about: object = None) -> Values:
        """What formulas may use: the parameters, ``values``, attributes of ``about``, and then ``where``.

        Of two of one name the later counts.

        Raises:
            FormulaError: a formula in ``where`` has no value.
        """
        found = {**self.parameters(config), **values, **attributes(about)}
        for name, formula in self.where.items():
            found[name] = evaluate(formula, found)
        return found


def attributes(about: object) -> dict[str, int | float | str]:
    """The public fields and properties of a message that are numbers or texts."""
    kind: Any = type(about)
    names = [*_public(kind), *vars(about)] if isinstance(about, Message) else []
    values = {name: getattr(about, name) for name in names if not name.startswith("_") and name != "scalars"}
    return {name: value for name, value in values.items() if isinstance(value, (int, float, str))}


@cache
def _public(kind: Any) -> tuple[str, ...]:
    """What messages of a class offer beside their own fields: its properties and defaults, not its methods."""
    return tuple(name for name in dir(kind) if not name.startswith("_") and not callable(getattr(kind, name, None)))
