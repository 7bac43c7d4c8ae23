"""Defences of agents on a graph, where each pull is passed on by itself: how much an agent takes of what another says.

An agent compares those that it hears of, itself among them, by the mean of y (1, x) over the pulls (x, y) that each has
told: what an agent says that plays as the others do is close to theirs. A defence says how much of a pull is taken: its
reward is shortened to that share, and with none of it the pull is not heard.
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from coband.simulator.arrays import FloatArray
from coband.simulator.core.nodes.message import Message, Passage
from coband.simulator.core.nodes.outbox import SERVER, Address
from coband.simulator.core.wire.defences import BaseDefence
from coband.simulator.core.wire.values import of_the_form, replaced

Pull = tuple[str, FloatArray, float]
"""The field of the reward, the point, and the reward."""


def single_pull(kind: type[Message]) -> tuple[str, str] | None:
    """The fields of the point and the reward of messages that carry one pull; None for others."""
    meanings = {kind.meaning(name): name for name in reversed(kind.payload_fields())}
    return (meanings["points"], meanings["rewards"]) if {"points", "rewards"} <= meanings.keys() else None


class Listening:
    """What the agents of a run take of each other's pulls."""

    def __init__(self, defence: BaseDefence) -> None:
        self._defence = defence
        self._sums: dict[Address, dict[Address, FloatArray]] = defaultdict(dict)  # count, sum of y and of y x

    def note(self, agent: Address, origin: Address, message: Message) -> str | None:
        """An agent learns of a pull, or has made it itself; returns the field of its reward, if it is one."""
        names = single_pull(type(message))
        if names is None:
            return None
        point, reward = np.asarray(getattr(message, names[0])), float(getattr(message, names[1]))
        known = self._sums[agent]
        known[origin] = known.get(origin, 0.0) + np.concatenate([[1.0, reward], reward * point])
        return names[1]

    def heard(self, agent: Address, origin: Address, message: Message) -> Message | None:
        """What an agent is handed in place of a message; None: nothing."""
        reward = self.note(agent, origin, message)
        if reward is None:
            return message
        known = self._sums[agent]
        rows = np.stack([known[other][1:] / known[other][0] for other in sorted(known)])
        share = self._defence.share(rows, sorted(known).index(origin))
        if share in (0.0, 1.0):
            return message if share else None
        value = getattr(message, reward)
        found = replaced(message, {reward: of_the_form(value, np.asarray(share * value))})
        passage = Passage(message.original, {}, 0, SERVER, 0, {})
        found.__dict__.update(field_bits=message.field_bits, passage=passage)
        return found
