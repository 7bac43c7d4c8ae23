"""Pulls whose rewards have not come."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from coband.simulator.arms import ArmSet
from coband.simulator.core.nodes.node import Agent, Outbox


@dataclass(slots=True)
class Outstanding:
    """A pull whose reward has not come.

    Attributes:
        choice: the event of the choice.
        kept: what the agent knew of the turn (``Agent.kept``).
    """

    arms: ArmSet
    arm: int
    reward: float
    choice: int
    kept: dict[str, Any]


def kept_of(agent: Agent) -> dict[str, Any]:
    """What an agent has to know of its turn when the reward comes."""
    return {name: getattr(agent, name) for name in agent.kept}


def observe_late(agent: Agent, pull: Outstanding) -> Outbox:
    """Have an agent learn from a pull of an earlier turn; what it sends."""
    now = kept_of(agent)
    vars(agent).update(pull.kept)
    outbox = agent.observe(pull.arms, pull.arm, pull.reward)
    vars(agent).update(now)
    return outbox
