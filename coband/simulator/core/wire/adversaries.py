"""Adversaries: agents that send something else than their protocol says.

The node itself is that of an honest agent; what its messages carry is changed on their way out, by a behaviour
(``core.wire.behaviours``).
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Sequence
from typing import Annotated

import numpy as np
from pydantic import Field, model_validator

from coband.simulator.arrays import FloatArray
from coband.simulator.core.config import TIME, Config
from coband.simulator.core.nodes.message import Meaning, Message
from coband.simulator.core.randomness.streams import Streams
from coband.simulator.core.wire.behaviours import ADVERSARIES, BaseBehaviour, Sight
from coband.simulator.core.wire.encodings import Fields, reals

MOST = 1e100
"""The largest number that a dishonest agent sends, so that sums and squares of it are still numbers."""


class Share(Config):
    """Agents drawn once per replication."""

    fraction: float = Field(ge=0, le=1)
    """fraction * count of them, halves rounded up."""


class Adversary(Config):
    """Some agents, and what they do."""

    agents: Share | Annotated[tuple[Annotated[int, Field(ge=0)], ...], Field(min_length=1)]
    """Who: {fraction: 0.2}, or a list of agents."""
    behaviour: Annotated[BaseBehaviour, ADVERSARIES.field()]
    """What they send."""
    messages: tuple[str, ...] | None = None
    """Classes or kinds of the messages that they change; null for all."""
    fields: Annotated[tuple[Meaning, ...], Field(min_length=1)] | None = None
    """What the fields hold that they change; null: as the behaviour says."""
    start: Annotated[float, TIME] = Field(default=0.0, ge=0)
    """From this simulated time on."""
    stop: Annotated[float | None, TIME] = None
    """Until then; null for always."""

    @model_validator(mode="after")
    def _whole_numbers_stay(self) -> Adversary:
        wrong = {"index", "count", "flag", "points"} & set(self.fields or ())
        if wrong:
            raise ValueError(f"fields: {min(wrong)} is not changed; only gram, moment, rewards, weights and number are")
        if self.stop is not None and self.stop < self.start:
            raise ValueError(f"stop(={self.stop}) must be >= start(={self.start})")
        return self

    def drawn(self, number: int, count: int, streams: Streams) -> frozenset[int]:
        """Who they are; ``number``: of this entry in the scenario."""
        if isinstance(self.agents, tuple):
            return frozenset(self.agents)
        order = streams("faults", number, "adversaries").permutation(count)
        return frozenset(int(agent) for agent in order[: math.floor(self.agents.fraction * count + 0.5)])

    def acts(self, now: float) -> bool:
        """Whether they do it now."""
        return self.start <= now and (self.stop is None or now < self.stop)

    @property
    def meant(self) -> tuple[Meaning, ...]:
        """What the fields hold that they change."""
        return self.fields or self.behaviour.fields

    def means(self, kind: type[Message]) -> bool:
        """Whether they change messages of this class."""
        return self.messages is None or kind.__name__ in self.messages or kind.kind in self.messages

    def touches(self, kind: type[Message]) -> bool:
        """Whether there is anything in messages of this class that they change."""
        found = self.behaviour.withholds or any(kind.meaning(name) in self.meant for name in kind.payload_fields())
        return self.means(kind) and found


class Liars:
    """The dishonest agents of a run.

    Args:
        adversaries: who does what; of several that act on one message, the first.
        agents: how many there are in all.
        streams: of the replication.
        now: the simulated time.
    """

    def __init__(
        self, adversaries: Sequence[Adversary], agents: int, streams: Streams, now: Callable[[], float]
    ) -> None:
        self._agents, self._streams, self._now = agents, streams, now
        drawn = [
            (one, one.drawn(number, agents, streams))
            for number, one in enumerate(adversaries)
            if not one.behaviour.poisons
        ]
        self.dishonest = frozenset(agent for _, who in drawn for agent in who)
        self._of = {agent: [one for one, who in drawn if agent in who] for agent in self.dishonest}
        self._collude = any(one.behaviour.colludes for one in adversaries)
        self._remembered = max((one.behaviour.remembers for one in adversaries), default=0)
        self._honest: dict[tuple[type[Message], str], dict[int, FloatArray]] = {}
        self._earlier: dict[tuple[int, type[Message]], deque[Fields]] = {}

    def lie(self, source: int, message: Message) -> Adversary | None:
        """What a node does to a message now; None: it sends it as it is."""
        now = self._now()
        return next((one for one in self._of.get(source, ()) if one.acts(now) and one.means(type(message))), None)

    def told(
        self, source: int, message: Message, lie: Adversary | None, rng: Callable[[], np.random.Generator]
    ) -> Fields:
        """The fields that a message carries in place of its own; what others will need of it is noted."""
        whole = reals(message) if lie is not None or self._collude or source in self.dishonest else {}
        kind = type(message)
        found: Fields = {}
        if lie is not None and whole:
            fields = {name: values for name, values in whole.items() if kind.meaning(name) in lie.meant}
            if fields:
                corrupted = lie.behaviour.corrupt(fields, self._sight(source, message, whole, rng()))
                found = {name: np.clip(np.asarray(corrupted[name]), -MOST, MOST) for name in fields}
        if source in self.dishonest and self._remembered:
            past = self._earlier.setdefault((source, kind), deque(maxlen=self._remembered))
            past.appendleft(whole)
        elif self._collude and source >= 0 and source not in self.dishonest:
            for name, values in whole.items():
                self._honest.setdefault((kind, name), {})[source] = values
        return found

    def _sight(self, source: int, message: Message, whole: Fields, rng: np.random.Generator) -> Sight:
        kind = type(message)
        honest = {
            name: [seen for seen in self._honest.get((kind, name), {}).values() if seen.shape == values.shape]
            for name, values in whole.items()
        }
        return Sight(
            rng=rng,
            secret=self._streams("wire", source, "secret"),
            meanings={name: kind.meaning(name) for name in whole},
            whole=whole,
            honest=honest,
            earlier=tuple(self._earlier.get((source, kind), ())),
            agents=self._agents,
            dishonest=len(self.dishonest),
        )
