"""The server of Fed-PE (Huang et al. 2021, Algorithm 2): least squares on directions, and designs for all agents."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar

import numpy as np

from coband.agents.messages.phases import ActiveArms, Allotment, PhaseEstimates, PhaseModel
from coband.server.common.ends_together import InStepServer
from coband.simulator.arrays import FloatArray, IntArray
from coband.simulator.core.nodes.message import Message
from coband.simulator.core.nodes.node import ALL_AGENTS, Address, NodeContext
from coband.simulator.maths.exploration.design import check_countable
from coband.simulator.maths.exploration.g_optimal import g_optimal

WHOLE = 1e-9
"""A share of pulls that exceeds a whole number by less is that number."""


class FedPEServer(InStepServer):
    """Sees estimates along directions, never an arm's length or a reward (but in the variant ``collaborative``)."""

    hears = (PhaseEstimates, ActiveArms)
    noted: ClassVar[Mapping[str, str]] = {"apply": "pulls that the model of the phase rests on"}

    def __init__(self, context: NodeContext) -> None:
        super().__init__(context)
        self._features: dict[tuple[Address, int], FloatArray] = {}
        self._arms: list[IntArray] = []  # of each agent: those with dealt pulls
        self._counts: list[IntArray] = []
        self._last: list[FloatArray] = []  # of each agent: the weights of its estimates in the model
        self._total: FloatArray = np.zeros(context.dimension)
        self._active = self._models = 0

    async def step(self) -> bool:
        """One phase: estimates, model, arms that are left, pulls for the next phase."""
        found = await self.gather(None, reply=PhaseEstimates, together=True)
        if found.left:
            return False
        self.tell(ALL_AGENTS, self._model(list(found.values())))
        left = await self.gather(None, reply=ActiveArms, together=True)
        if left.left:
            return False
        self._deal([message.arms for message in left.values()])
        for agent, message in left.items():
            place = np.searchsorted(message.arms, self._arms[agent])
            counts = np.zeros(len(message.arms), dtype=np.int64)
            counts[place] = self._counts[agent]
            self.tell(agent, Allotment(counts=counts, version=self.rounds, round=self.rounds))
        return True

    def _model(self, found: list[PhaseEstimates]) -> PhaseModel:
        """V_a^+ and theta_a of every parameter with dealt pulls."""
        if not self.rounds:
            self._counts = [np.ones(len(message.estimates), dtype=np.int64) for message in found]
            self._arms = [np.arange(len(message.estimates)) for message in found]
            for agent, message in enumerate(found):
                lengths = np.linalg.norm(message.estimates, axis=1)
                scale = (1.0 if message.norms is None else message.norms) / np.maximum(lengths, np.finfo(float).tiny)
                self._features |= {(agent, a): row for a, row in enumerate(message.estimates * scale[:, None])}
        estimates, n = np.concatenate([message.estimates for message in found]), np.concatenate(self._counts)
        squares = [np.ones(len(one.estimates)) if one.norms is None else one.norms**2 for one in found]
        self._last = [own * counts for own, counts in zip(squares, self._counts, strict=True)]
        features, blocks = self._rows(self._arms)
        names, block = np.unique(blocks, return_inverse=True)
        d, b = self.context.dimension, len(names)
        V, moments = np.zeros((b, d, d)), np.zeros((b, d))
        np.add.at(V, block, n[:, None, None] * features[:, :, None] * features[:, None, :])
        np.add.at(moments, block, np.concatenate(self._last)[:, None] * estimates)
        self._total = moments.sum(axis=0)
        inverse = np.asarray(np.linalg.pinv(V, rcond=WHOLE, hermitian=True), dtype=np.float64)
        self.rounds += 1
        self._models += b
        self.note("apply", version=self.rounds, round=self.rounds, value=int(n.sum()))
        theta = np.einsum("bij,bj->bi", inverse, moments)
        arms = None if self.context.config.parameters == "shared" else names
        return PhaseModel(theta=theta, inverse=inverse, arms=arms, version=self.rounds, round=self.rounds)

    def _rows(self, arms: Sequence[IntArray]) -> tuple[FloatArray, IntArray]:
        """Features and parameters of some arms of each agent, one agent's after the other's."""
        features = np.array([self._features[agent, a] for agent, own in enumerate(arms) for a in own.tolist()])
        blocks = np.concatenate(arms)
        return features, blocks * 0 if self.context.config.parameters == "shared" else blocks

    def _deal(self, active: list[IntArray]) -> None:
        """f_(i,a) = ceil(pi_(i,a) f^p) for the multi-client G-optimal design pi of the arms that are left."""
        features, blocks = self._rows(active)
        clients = np.repeat(np.arange(len(active)), [len(arms) for arms in active])
        design = g_optimal(clients, blocks, features, self.context.config.gap)
        check_countable(total := self.context.config.growth**self.rounds)
        pulls = np.ceil(design.weights * total - WHOLE).astype(np.int64)
        of = np.split(pulls, np.cumsum([len(arms) for arms in active])[:-1])
        self._arms = [arms[counts > 0] for arms, counts in zip(active, of, strict=True)]
        self._counts = [counts[counts > 0] for counts in of]
        self._active += len(pulls)

    def discrepancies(self, uploads: Sequence[tuple[Address, Message]]) -> Iterator[str]:
        """The model's moments add up to those of the last phase's estimates."""
        name = "the sum of a phase's moments"
        weighted = lambda agent, one: self._last[agent] @ one.estimates  # noqa: E731
        return self.resummed(name, self._total, uploads, PhaseEstimates, weighted)

    def report(self) -> dict[str, float | int]:
        """What has been sent, in closed form."""
        return {"active_sent": self._active, "models_sent": self._models}
