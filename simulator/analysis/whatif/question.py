"""A question about a stored run: what is to be changed, as users write it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from pydantic import TypeAdapter, ValidationError

from coband.simulator.analysis.traces.reading import TraceReader
from coband.simulator.core.audit import trace as tr
from coband.simulator.core.nodes.node import Address
from coband.simulator.core.randomness.distributions import Distribution
from coband.simulator.core.whatif.changes import AgentChange, MessageChange
from coband.simulator.experiments.runs.counterfactual import EventChange
from coband.simulator.experiments.runs.variant import Parameter
from coband.simulator.experiments.scenario.cross_checks import LARGEST, SMALLEST
from coband.simulator.experiments.scenario.explain import Explainer
from coband.simulator.experiments.scenario.nodes import plain
from coband.simulator.experiments.scenario.wording import Wording
from coband.simulator.experiments.scenario.yaml_nodes import read
from coband.simulator.experiments.store.store import StoreError

AGENT_KEYS = ("speed", "compute", "handling")
MESSAGE_EVENTS = ("send", "deliver")


class QuestionError(StoreError):
    """A question cannot be answered about this run; the text says why, and what can be asked."""


@dataclass(frozen=True)
class Question:
    """What is to be changed.

    Attributes:
        drops: numbers of the events whose messages are lost.
        for_good: whether lost messages are given up, where the transport would repeat them.
        delays: (number of the event, simulated time by which its message arrives later).
        agents: (agent, ``speed=1``, ``compute=...`` or ``handling=...``).
        settings: ``key.path=value``, as given to ``--set``.

    Raises:
        QuestionError: it changes nothing, or nobody can answer it; the text says what is wrong.
    """

    drops: tuple[int, ...] = ()
    for_good: bool = False
    delays: tuple[tuple[int, float], ...] = ()
    agents: tuple[tuple[Address, str], ...] = ()
    settings: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not (self.drops or self.delays or self.agents or self.settings):
            raise QuestionError("nothing is changed; give --drop, --delay, --agent or --set.")
        if self.for_good and not self.drops:
            raise QuestionError("--for-good says what becomes of a message that --drop names; give --drop EVENT.")
        for event, delay in self.delays:
            if not (math.isfinite(delay) and delay >= 0):
                raise QuestionError(f"--delay {event} {delay:g}: give a simulated time >= 0.")
        for setting in self.settings:
            key = setting.partition("=")[0].strip()
            if key == "seed":
                raise QuestionError(
                    "--set seed changes every draw, so that nothing else would be equal; run the scenario with --seed."
                )
            if key.partition(".")[0] in ("replications", "until", "limit", "checks", "expect"):
                raise QuestionError(f"--set {key} changes nothing here: the stored replications run again.")

    @property
    def about_events(self) -> bool:
        """Whether it names events, which are numbered within one job."""
        return bool(self.drops or self.delays)

    def parameters(self) -> tuple[Parameter, ...]:
        """The changes, as the label of the what-if run names them."""
        lost = "lost for good" if self.for_good else "lost"
        changes = [(lost, str(event)) for event in self.drops]
        changes += [(f"delay of {event}", f"{delay:g}") for event, delay in self.delays]
        for agent, change in self.agents:
            key, _, value = change.partition("=")
            changes.append((f"agent {agent} {key.strip()}", value.strip()))
        for setting in self.settings:
            key, _, value = setting.partition("=")
            changes.append((key.strip(), value.strip()))
        return tuple(Parameter(f"{name}={text}", name, text, None) for name, text in changes)

    def changed_agents(self, count: int) -> dict[Address, AgentChange]:
        """What changes about which of so many agents.

        Raises:
            QuestionError: there is no such agent, or no such value.
        """
        changes: dict[Address, AgentChange] = {}
        for agent, text in self.agents:
            if not 0 <= agent < count:
                raise QuestionError(
                    f"--agent {agent}: there is no such agent; they are numbered from 0 to {count - 1}."
                )
            changes[agent] = replace(changes.get(agent, AgentChange()), **_agent_change(agent, text))
        return changes

    def changed_events(self, reader: TraceReader, *, walks_hops: bool) -> tuple[EventChange, ...]:
        """What happens to the messages of which sends.

        Args:
            walks_hops: whether every copy travels by itself.

        Raises:
            QuestionError: an event is no message, or stands for many copies at once.
        """
        lost = MessageChange(lost=True, for_good=self.for_good)
        changes = [(event, lost) for event in self.drops]
        changes += [(event, MessageChange(delay=delay)) for event, delay in self.delays]
        return tuple(_event_change(reader, event, change, walks_hops) for event, change in changes)

    def as_json(self) -> dict[str, object]:
        """As the manifest of the what-if run says it."""
        return {
            "drop": list(self.drops),
            "for_good": self.for_good,
            "delay": [list(delay) for delay in self.delays],
            "agent": [list(agent) for agent in self.agents],
            "set": list(self.settings),
        }


def _agent_change(agent: Address, text: str) -> Mapping[str, Any]:
    """One ``key=value`` of an agent."""
    key, equals, value = text.partition("=")
    key = key.strip()
    if not equals or key not in AGENT_KEYS:
        allowed = "speed=NUMBER, compute=DISTRIBUTION or handling=DISTRIBUTION"
        raise QuestionError(f"--agent {agent} {text!r}: give {allowed}, such as speed=1.")
    root, _ = read(value, "--agent")
    given = plain(root)
    if key == "speed":
        if isinstance(given, bool) or not isinstance(given, (int, float)) or not SMALLEST <= given <= LARGEST:
            raise QuestionError(
                f"--agent {agent} {text!r}: speed is a number > 0, between {SMALLEST:.0e} and {LARGEST:.0e}; times are "
                "divided by it."
            )
        return {key: float(given)}
    distributions: TypeAdapter[Any] = TypeAdapter(Distribution)
    try:
        return {key: distributions.validate_python(given)}
    except ValidationError as error:
        explainer = Explainer(root, Wording(distributions.json_schema()), {})
        reason = "; ".join(found.message for found in explainer.explain(error.errors(include_url=False)))
        example = f"{key}=0.5 or {key}={{kind: exponential, rate: 2}}"
        raise QuestionError(f"--agent {agent} {text!r}: no distribution ({reason}); write {example}.") from error


def _event_change(reader: TraceReader, seq: int, change: MessageChange, walks_hops: bool) -> EventChange:
    event = reader.at(seq)
    if event.event not in MESSAGE_EVENTS or event.message is None:
        raise QuestionError(
            f"event {seq} is no message but a {event.event!r} of {event.node}; give the number of a send or deliver "
            "event, such as `coband trace show RUN --event send` prints."
        )
    if not walks_hops:
        raise QuestionError(
            f"event {seq} stands for all copies of a LOCAL message at once, since links are ideal. Run the scenario "
            "with --set network.local.mode=hop_by_hop, where every copy has an event, and ask about that run."
        )
    (row,) = reader.raw("AND seq = ?", (seq,))
    return EventChange(row.message, row.node if row.event == tr.DELIVER else None, change)
