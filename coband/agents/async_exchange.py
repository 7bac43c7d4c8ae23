"""The models that the messages of an exchange of Async-KernelUCB describe, with ``transfer: full`` and ``delta``."""

from __future__ import annotations

from dataclasses import dataclass

from coband.agents.async_parameters import AsyncConfig
from coband.agents.messages.asynchronous import NewModel, ServerModel
from coband.simulator.arrays import BoolArray, FloatArray
from coband.simulator.maths.posteriors.dictionary import Dictionary
from coband.simulator.maths.posteriors.domain import first_appearances
from coband.simulator.maths.posteriors.nystrom import NystromModel
from coband.simulator.maths.posteriors.observations import Observations
from coband.simulator.maths.posteriors.statistics import Statistics


def server_model(held: NystromModel, message: ServerModel, lam: float) -> NystromModel:
    """The server's model as message 2 describes it, to an agent that has the model ``held``."""
    if message.A is None or message.b is None:
        return held
    dictionary = held.dictionary.appended(message.points)
    return NystromModel.fit(dictionary, Statistics(message.A, message.b), lam)


@dataclass(slots=True)
class Exchange:
    """The new data, and the dictionary and the server's model in terms of which they are sent.

    Attributes:
        new: data since the last exchange.
        base: the server's model, of ``version``.
        sampled: which of the new points enter the dictionary.
        dictionary: S_k, as this agent knows it.
        embedded: Z, the new points embedded by it.
    """

    new: Observations
    base: NystromModel
    version: int
    sampled: BoolArray
    dictionary: Dictionary
    embedded: FloatArray

    @property
    def added(self) -> FloatArray:
        """dS_k."""
        return self.new.features[self.sampled]

    def updated(self, message: NewModel, config: AsyncConfig) -> NystromModel:
        """The model of line 14; points that others have added meanwhile come before this agent's."""
        given = None if message.A is None or message.b is None else Statistics(message.A, message.b)
        if message.version == self.version + 1:
            return self.base.updated(self.dictionary, self.embedded, self.new.rewards, given)
        assert given is not None
        added = self.added
        if config.repeats == "drop":
            added = added[first_appearances(added, message.points)]
        dictionary = self.base.dictionary.appended(message.points).appended(added)
        return NystromModel.fit(dictionary, given, config.lam)
