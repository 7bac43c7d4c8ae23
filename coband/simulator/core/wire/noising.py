"""Noise on messages and pulls, and the account of what it leaves."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import cached_property
from weakref import WeakKeyDictionary

import numpy as np

from coband.simulator.arrays import FloatArray
from coband.simulator.core.algorithm import Algorithm
from coband.simulator.core.formulas import evaluate
from coband.simulator.core.nodes.message import Message, Pulls
from coband.simulator.core.nodes.node import SERVER, UnsupportedScenario
from coband.simulator.core.nodes.outbox import Address
from coband.simulator.core.randomness.streams import Streams
from coband.simulator.core.wire.encodings import Fields
from coband.simulator.core.wire.privacy import Privacy, Released, optional

QUARTERS = (0.25, 0.5, 0.75, 1.0)
"""Shares of a run's time of which results say what was spent by then."""


class Noising:
    """The noise of a run, and what it has spent.

    Args:
        privacy: what is asked for.
        algorithm: whose messages it is about.
        streams: of the replication.
        agents: how many there are.
        turns: the most that one agent takes, and all of them; None where nobody knows.
        graph: whether agents send to each other, and there is no server.
        now: the simulated time.

    Attributes:
        clipped: pulls of each agent that were clipped.

    Raises:
        UnsupportedScenario: epsilon cannot be promised; the text says what to do.
    """

    def __init__(
        self,
        privacy: Privacy,
        algorithm: Algorithm,
        streams: Streams,
        agents: int,
        turns: tuple[int | None, int | None],
        graph: bool,
        now: Callable[[], float],
    ) -> None:
        self._privacy, self._mechanism, self._streams, self._now = privacy, privacy.mechanism, streams, now
        self.kind: str = privacy.mechanism.kind  # type: ignore[attr-defined]
        self._name, self._agents, self._turns = algorithm.name, agents, turns
        self._noisy = [SERVER] if privacy.adversary == "others" and not graph else list(range(agents))
        noised = privacy.noised_by(algorithm).items()
        self._fields = {kind: {name: self.bound(kind, name) for name in names} for kind, names in noised}
        if why := privacy.idle(algorithm):
            raise UnsupportedScenario(f"messages.privacy: {why}")
        self.clipped = [0] * agents
        self._pulls = [0] * agents
        self._released: dict[Address, dict[tuple[type[Message], str], Released]] = {node: {} for node in self._noisy}
        self._noise: WeakKeyDictionary[Message, dict[str, FloatArray]] = WeakKeyDictionary()
        self._history: list[tuple[float, Address, float]] = []
        self._final: dict[Address, float] = {}

    def bound(self, kind: type[Message], name: str) -> float:
        """The most that one pull changes in a field."""
        return float(evaluate(kind.declared(name)["bound"], self._privacy.clip.model_dump()))

    # --- how much noise

    def promise(self) -> None:
        """Refuse an epsilon that cannot be promised before anybody acts."""
        _ = self.sigma

    @cached_property
    def sigma(self) -> float:
        """The noise in units of what one pull changes at most."""
        privacy = self._privacy
        if privacy.sigma is not None:
            return privacy.sigma
        assert privacy.epsilon is not None
        return self._mechanism.sigma(privacy.epsilon, self._most, privacy.delta, privacy.accountant)

    @property
    def _most(self) -> float:
        """The largest weight that a run can come to."""
        whole, total = self._privacy.unit == "agent", 0.0
        if self._mechanism.local:
            return self._parts * self._mechanism.weight(self._longest("all", 1), "all", whole)
        for kind, bounds in self._fields.items():
            for name in bounds:
                form: Pulls = kind.declared(name)["pulls"]
                if form == "again":
                    raise UnsupportedScenario(
                        f"messages.privacy: {self._name} sends {kind.kind}.{name} again and again, nobody knows how "
                        "often, so no noise can be calibrated for an epsilon; give sigma"
                    )
                total += self._mechanism.weight(self._longest(form, self._turns[self._noisy == [SERVER]]), form, whole)
        return total

    def _longest(self, form: Pulls, messages: int | None) -> Released:
        own, one = self._turns[0], self._privacy.unit == "pull" and form == "new"
        if (own is None or messages is None) and not (one and self._mechanism.forms == ("new", "all", "again")):
            raise UnsupportedScenario(
                "messages.privacy: nobody knows how many turns there will be, so no noise can be calibrated for an "
                "epsilon; give sigma, or a schedule with turns"
            )
        return Released.at_most(messages or 1, own or 1, form)

    @property
    def _parts(self) -> int:
        """What laplace_local noises of a pull: its point, its reward, or both."""
        return 2 if self._privacy.wholly else 1

    # --- pulls

    def pulled(self, agent: Address, clipped: bool) -> None:
        """An agent has made a pull."""
        self._pulls[agent] += 1
        self.clipped[agent] += clipped
        if self._mechanism.local and (self._privacy.unit == "agent" or self._pulls[agent] == 1):
            self._note(agent)

    def on_pull(self, agent: Address, turn: int, what: str, size: int, bound: float) -> FloatArray:
        """The noise of one part of a pull, (size,); ``bound``: its largest L1 norm."""
        draw = lambda name: self._streams("wire", agent, f"privacy {what} {name}")  # noqa: E731
        return self.sigma * bound * self._mechanism.noise(size, "new", turn, draw)

    # --- messages

    def noised(self, source: Address, message: Message, values: Fields) -> Fields:
        """Fields of a message with noise; the same if it is sent once more or to somebody else.

        Args:
            source: its sender.
            message: as its node has sent it.
            values: what it would carry without noise.

        Raises:
            UnsupportedScenario: it carries something that nobody may see.
        """
        kind = type(message)
        if source not in self._released or kind not in self._fields:
            return {}
        if self._privacy.leak == "refuse" and (which := self._telling(message)):
            raise UnsupportedScenario(
                f"messages.privacy: {self._name} sends {message.kind}.{which}, which says what arm was pulled and gets "
                "no noise; set leak: allow, and the report says so"
            )
        noise = self._noise.get(message)
        if noise is None:
            noise = {
                name: self._drawn(source, kind, name, values[name]) for name in self._fields[kind] if name in values
            }
            self._noise[message] = noise
            if noise:
                self._account(source, message, noise)
        return {name: values[name] + noise[name] for name in noise}

    @staticmethod
    def _telling(message: Message) -> str | None:
        """A field that may be left out, is not, and says which arm was pulled."""
        kind = type(message)
        fields = (name for name in kind.payload_fields() if optional(kind, name) and kind.meaning(name) == "index")
        return next((name for name in fields if getattr(message, name) is not None), None)

    def _drawn(self, source: Address, kind: type[Message], name: str, values: FloatArray) -> FloatArray:
        """Noise of the shape of a field; of a symmetric matrix, one draw for both of two entries.

        The upper triangle has at most the Frobenius norm, so the bound holds for it.
        """
        symmetric = kind.declared(name)["symmetric"] and values.ndim == 2
        upper = np.triu_indices(len(values)) if symmetric else None
        number = 1 + self._released[source].get((kind, name), Released()).messages
        node = source if source != SERVER else self._agents
        draw = lambda which: self._streams("wire", node, f"privacy {kind.__name__}.{name} {which}")  # noqa: E731
        size = values.size if upper is None else len(upper[0])
        drawn = self._mechanism.noise(size, kind.declared(name)["pulls"], number, draw)
        scaled = self.sigma * self._fields[kind][name] * drawn
        if upper is None:
            return scaled.reshape(values.shape)
        whole = np.zeros(values.shape)
        whole[upper] = scaled
        return whole + np.triu(whole, 1).T

    def _account(self, source: Address, message: Message, names: Iterable[str]) -> None:
        for name in names:
            form: Pulls = message.declared(name)["pulls"]
            found = self._released[source].setdefault((type(message), name), Released())
            so_far = max(self._pulls) if source == SERVER else self._pulls[source]
            found.add(message.pulls if form == "new" else so_far, form)
        self._note(source)

    def lost(self, source: Address) -> None:
        """An upload was given up, so that its pulls come once more in another one."""
        for (kind, name), found in self._released.get(source, {}).items():
            if kind.declared(name)["pulls"] == "new":
                found.copies += 1

    # --- what was spent

    def _note(self, source: Address) -> None:
        weight = self.weight(source)
        self._history.append((self._now(), source, weight))

    def weight(self, node: Address) -> float:
        """The weight of what was released, of a sender, or of an agent's pulls (`BaseMechanism.weight`)."""
        if node in self._final:
            return self._final[node]
        whole = self._privacy.unit == "agent"
        if self._mechanism.local:
            released = Released(1, self._pulls[node])
            return self._parts * self._mechanism.weight(released, "all", whole)
        found = self._released[node].items()
        return sum(
            self._mechanism.weight(released, kind.declared(name)["pulls"], whole) for (kind, name), released in found
        )

    def noted(self, agents: Iterable[Address]) -> list[tuple[float, Address, float]]:
        """(time, node, weight) after all that nodes of one process have released, and at the end of time in all."""
        weights = [(math.inf, node, self.weight(node)) for node in self._noisy if node in agents]
        return self._history + weights

    def tell(self, noted: Iterable[tuple[float, Address, float]], clipped: Iterable[int]) -> None:
        """Take over what another process has noted, and how many pulls of each agent it has clipped."""
        for time, node, weight in noted:
            if time < math.inf:
                self._history.append((time, node, weight))
            else:
                self._final[node] = weight
        self.clipped = [one + other for one, other in zip(self.clipped, clipped, strict=True)]

    def epsilon(self, weight: float) -> float:
        privacy = self._privacy
        return self._mechanism.epsilon(self.sigma, weight, privacy.delta, privacy.accountant)

    def spent(self, agent: Address) -> float:
        """The epsilon that an agent has spent so far."""
        return self.epsilon(self.weight(SERVER if self._noisy == [SERVER] else agent))

    def by_quarter(self, agent: Address, end: float) -> dict[str, float]:
        """What an agent had spent after each quarter of a run that ends then, by name of the number."""
        node = SERVER if self._noisy == [SERVER] else agent
        own = [(time, weight) for time, source, weight in self._history if source == node]
        found = {}
        for share in QUARTERS[:-1]:
            weights = [weight for time, weight in own if time <= share * end]
            found[f"epsilon_{share * 100:.0f}"] = self.epsilon(weights[-1] if weights else 0.0)
        return {**found, "epsilon": self.spent(agent)}

    @property
    def too_much(self) -> str:
        """A sentence about agents that have spent more than was asked for; empty if none has."""
        asked, most = self._privacy.epsilon, max(map(self.spent, range(self._agents)), default=0.0)
        if asked is None or most <= asked * (1 + 1e-6) or not math.isfinite(most):
            return ""
        again = any(one.copies > 1 for sent in self._released.values() for one in sent.values())
        why = (
            "some uploads were given up, and their pulls noised once more"
            if again
            else "noise is calibrated for an upload a turn, and agents that are asked by others have sent more"
        )
        return (
            f"messages.privacy: an agent has spent an epsilon of {most:.3g}, more than the {asked:g} asked for: {why}"
        )
