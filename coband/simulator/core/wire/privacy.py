"""Privacy: what a scenario asks for, what noise protects, and what is sent without."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from pydantic import Field, model_validator

from coband.simulator.core.algorithm import Algorithm, MessageSize
from coband.simulator.core.config import Config
from coband.simulator.core.nodes.message import Message
from coband.simulator.core.wire.accounting import Accountant
from coband.simulator.core.wire.mechanisms import Clip, Mechanism

WHEN = "it depends on pulls, as does how many it brings"
PUBLIC = ("turns", "agents")
"""Indices that say nothing of a pull."""


class Privacy(Config):
    """Noise that hides the pulls of agents from others.

    Two runs are neighbours when in one of them a pull is nothing: its point and its reward are zero.
    """

    mechanism: Mechanism
    """Where the noise is, and of which form."""
    clip: Clip = Clip()
    """What bounds the effect of one pull."""
    epsilon: float | None = Field(default=None, gt=0)
    """What is spent at most; the noise is calibrated for it, on the most that can be sent. Give it or sigma."""
    sigma: float | None = Field(default=None, gt=0)
    """Standard deviation of the noise in units of what one pull changes at most (laplace_local: its scale)."""
    delta: float = Field(default=1e-5, gt=0, lt=1)
    """With this probability the promise of epsilon may fail."""
    unit: Literal["pull", "agent"] = "pull"
    """What is hidden: one pull, or all pulls of an agent."""
    adversary: Literal["server", "others"] = "server"
    """From whom: the server, which sees what agents send; or the other agents, which see what the server sends. Agents
    of a graph see what each other send either way."""
    accountant: Accountant = "exact"
    """How epsilon is computed from Gaussian noise: exact, or by one of two upper bounds, a discretised privacy loss
    distribution (pld) or Renyi divergences (rdp)."""
    leak: Literal["refuse", "allow"] = "refuse"
    """What happens where the adversary sees anything that is not protected: the scenario is refused with a list, or
    results say so."""

    @model_validator(mode="after")
    def _is_one_amount(self) -> Privacy:
        if (self.epsilon is None) == (self.sigma is None):
            raise ValueError("give either epsilon or sigma")
        if self.clip.points is None and self.clip.rewards is None:
            raise ValueError("clip: points and rewards cannot both be null; nothing would be private")
        return self

    @property
    def wholly(self) -> bool:
        """Whether points and rewards are both private."""
        return self.clip.points is not None and self.clip.rewards is not None

    def sees(self, size: MessageSize) -> bool:
        """Whether the adversary sees messages of that direction."""
        return size.direction in ("peer", "up" if self.adversary == "server" else "down")

    def noised(self, kind: type[Message]) -> list[str]:
        """The fields of a kind of message that get noise on the wire."""
        return [name for name in kind.payload_fields() if not self.mechanism.local and not self._gap(kind, name)]

    def _gap(self, kind: type[Message], name: str) -> str:
        """Why no noise can be put on a field; empty if it can."""
        declared, holds = kind.declared(name), kind.meaning(name)
        if declared["noised"]:
            return "its node has put noise on it"
        if holds in ("points", "rewards"):
            return "single pulls, not a sum of them"
        if holds == "count":
            return "a count gets no noise"
        if not declared["bound"]:
            return "what one pull changes in it has no declared bound"
        for part in ("points", "rewards"):
            if part in declared["bound"] and getattr(self.clip, part) is None:
                return f"clip.{part} is null"
        if declared["pulls"] not in self.mechanism.forms:
            return f"its form changes, which {self.mechanism.kind} cannot do"  # type: ignore[attr-defined]
        return ""

    def leaks_of(self, kind: type[Message], name: str) -> str:
        """What an adversary learns of pulls from a field; empty if only what noise leaves."""
        holds = kind.meaning(name)
        if kind.declared(name)["noised"]:
            return ""
        if holds == "index":
            return "" if self.mechanism.local and optional(kind, name) else "which arm"
        if self.mechanism.local:
            return "" if self.wholly or (holds == "rewards" and self.clip.rewards is not None) else self._missing
        return self._gap(kind, name)

    @property
    def _missing(self) -> str:
        return f"clip.{'points' if self.clip.points is None else 'rewards'} is null"

    def leaks(self, algorithm: Algorithm) -> Iterator[tuple[str, str]]:
        """(what the adversary sees of an algorithm's messages, why it is not private; empty if it is)."""
        seen = [size for size in algorithm.messages if self.sees(size)]
        for kind in dict.fromkeys(size.message for size in seen):
            names = [name for name in kind.payload_fields() if kind.declared(name)["of"] not in PUBLIC]
            yield from ((f"{kind.kind}.{name}", self.leaks_of(kind, name)) for name in names)
        hidden, public = self.mechanism.local and self.wholly, {size.message for size in seen if size.due}
        for kind in dict.fromkeys(size.message for size in seen):
            yield f"time of {kind.kind}", "" if hidden or kind in public else WHEN

    def noised_by(self, algorithm: Algorithm) -> dict[type[Message], list[str]]:
        """Fields that get noise on the wire, by kind of message that the adversary sees."""
        return {size.message: self.noised(size.message) for size in algorithm.messages if self.sees(size)}

    def idle(self, algorithm: Algorithm) -> str:
        """Why the mechanism would hide nothing of what an algorithm sends; empty if it hides something."""
        noised = self.noised_by(algorithm)
        if self.mechanism.local or not noised or any(noised.values()):
            return ""
        return (
            f"{self.mechanism.kind} finds no sum of pulls with a declared bound in what "  # type: ignore[attr-defined]
            f"{algorithm.name} sends, so it would hide nothing; take laplace_local"
        )

    def unprotected(self, algorithm: Algorithm) -> list[str]:
        """What is not private, with the reasons."""
        return [f"{what} ({why})" for what, why in self.leaks(algorithm) if why]


def optional(kind: type[Message], name: str) -> bool:
    """Whether a field may be left out, so that only a run shows whether it is sent."""
    return "None" in str(kind.__dataclass_fields__[name].type)
