"""Async-KernelUCB: "Learning Kernelized Contextual Bandits in a Distributed and Asynchronous Environment" (Li et al.
2023), Algorithm 1.
As printed: `tests/oracles/async_kernel_ucb.py`. Next: `messages/asynchronous.py`, `server/kernel/async_kernel_ucb.py`,
`async_kernel_config.py`, `async_kernel_models.py`.

Deviations from the printed text:

* the embedding uses the Cholesky root of K_SS, with which equation 5 becomes zero padding
  (``maths.posteriors.nystrom``);
* with link delays the agent goes on with its old model while an exchange is under way (``blocking: false``); points
  pulled meanwhile belong to the next data set, and the trigger is not looked at again before the exchange has ended;
* with delays the server answers requests at once (``server.exchanges``): one exchange at a time would make every agent
  wait for the slowest;
* ``repeats: drop`` (ours): a sampled point that the dictionary has already is not added again. The span is the same, so
  means and deviations are those of ``keep``; on a domain of few points messages become much smaller;
* ``alpha: theory`` takes the information gain of the data behind the agent's model, 1/2 log det(I + A/(D beta lambda)),
  for the largest gain that T points could have, as is usual; it changes with every exchange.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np

from coband.agents.common.parameters import SKIPPED_POINTS
from coband.agents.kernel.async_kernel_config import AsyncConfig
from coband.agents.kernel.async_kernel_models import Evaluations, Exchange, server_model
from coband.agents.messages.asynchronous import NewModel, Request, ServerModel, Upload
from coband.simulator.arms import ArmSet
from coband.simulator.core.algorithm import Algorithm, ClosedForm, MessageSize, Needs
from coband.simulator.core.conversations import Talks
from coband.simulator.core.nodes.decisions import exceeds
from coband.simulator.core.nodes.node import SERVER, Agent, NodeContext, Outbox
from coband.simulator.maths.linalg.caches import VersionCache
from coband.simulator.maths.posteriors.dictionary import Dictionary, Statistics
from coband.simulator.maths.posteriors.finite_domain import first_appearances
from coband.simulator.maths.posteriors.nystrom import NystromModel
from coband.simulator.maths.posteriors.observations import GrowingObservations, Observations
from coband.simulator.metrics import DICTIONARY_SIZE

MANY = 1e9
"""More turns than are ever looked ahead."""


class AsyncKernelUCB(Talks, Agent):
    """The client's side of Algorithm 1."""

    noted: ClassVar[Mapping[str, str]] = {"trigger": "variance of the pulls since the last exchange"}
    kept = ("_variance",)
    pulls_in_model = 0
    """Those of the last exchange; pulls since then are not in the model."""

    def __init__(self, context: NodeContext) -> None:
        super().__init__(context)
        self.config: AsyncConfig = context.config
        self._store: VersionCache[NystromModel] = context.sharing.get("posteriors", VersionCache)
        self._due, self._rate = self.config.due(context), self.config.rate(context)
        self._evaluations = Evaluations()
        # Line 2: mu_0 = 0, sigma_0^2 = k(x,x)/lambda, S_0 and D_0 empty.
        self._start = context.sharing.get("start", self._empty)
        self._keep(self._start, 0)
        self._new = GrowingObservations(context.dimension)
        self._new_variance = 0.0
        self._exchanging = False
        self._latest_variance = math.inf

    def choose(self, arms: ArmSet) -> int:
        """Line 5, equation 3: the arm with the largest mu + alpha * sigma of the model of the last communication."""
        found = self._evaluations.evaluate(arms, self.model, self._alpha, self._turns_left)
        self._variance = found.variance
        return self.best(found.scores, found.winner, found.gap)

    def observe(self, arms: ArmSet, arm: int, reward: float) -> Outbox:
        """Lines 5-7: keep the pull; when equation 4 holds, ask for an exchange."""
        self._new.append(arms.features[arm], reward)
        self._latest_variance = float(self._variance[arm])
        self._new_variance += self._latest_variance
        self.unshared += 1
        if self._exchanging or not exceeds(self._new_variance, self._due):
            return []
        return self.begin(self._exchange(), blocking=self.config.blocking)

    async def _exchange(self) -> None:
        """Lines 7-14; data that the server does not get are new again, and exchanged at the next trigger."""
        self.note("trigger", version=self._version, value=self._new_variance)
        self._exchanging = True
        new, variance = self._new.since(0), self._new_variance
        self._new, self._new_variance = GrowingObservations(self.context.dimension), 0.0
        model = await self.ask(SERVER, Request(version=self._version), reply=ServerModel, attempts=0)  # line 8
        if isinstance(model, ServerModel):
            exchange = self._embed(new, model)  # lines 9-10
            upload = self._upload(exchange, model)  # line 11
            result = await self.ask(SERVER, upload, reply=NewModel, undo=lambda _: self._renew(new, variance))
            if isinstance(result, NewModel):
                self._adopt(result, exchange)  # line 14
        else:
            self._renew(new, variance)
        self._exchanging = False

    def _embed(self, new: Observations, message: ServerModel) -> Exchange:
        """Lines 9-10: sample new dictionary points with the server's newest variance, and embed the new data."""
        base = self._store.get(message.version, lambda: server_model(self._held, message, self.config.lam))
        points = new.features
        probability = np.minimum(1.0, self._rate * base.variance(points))
        sampled = self.context.rng.random(len(probability)) < probability
        if self.config.repeats == "drop":
            sampled[sampled] = first_appearances(points[sampled], base.dictionary.points)
        dictionary = base.dictionary.appended(points[sampled])
        return Exchange(new, base, message.version, sampled, dictionary, dictionary.embed(points))

    def _upload(self, exchange: Exchange, message: ServerModel) -> Upload:
        """Line 11: dS_k with its rewards, dA = Z^T Z and db = Z^T y."""
        rewards = exchange.new.rewards
        statistics = Statistics.of(exchange.embedded, rewards)
        return Upload(
            points=exchange.added,
            rewards=rewards[exchange.sampled],
            A=statistics.A,
            b=statistics.b,
            version=message.version,
            round=message.round,
            pulls=len(rewards),
        )

    def _renew(self, data: Observations, variance: float) -> None:
        newer, self._new = self._new, GrowingObservations(self.context.dimension)
        self._new.extend(data)
        self._new.extend(newer.since(0))
        self._new_variance += variance

    def _adopt(self, message: NewModel, exchange: Exchange) -> None:
        """Line 14: the model of S_k with the server's new statistics."""
        model = self._store.get(message.version, lambda: exchange.updated(message, self.config))
        self._keep(model, message.version)
        self.pulls_in_model = message.known
        self.note("model", version=message.version, round=message.round)

    # --- between exchanges

    def _empty(self) -> NystromModel:
        dictionary = Dictionary(self.config.kernel)
        return NystromModel.fit(dictionary, Statistics.zero(0), self.config.lam)

    def _keep(self, model: NystromModel, version: int) -> None:
        """Act on ``model`` from now on; the whole of it is kept only where later messages may refer to it."""
        self.model, self._version = model.predictor, version
        self._evaluations.forget()
        self._held = model if self.config.transfer == "delta" else self._start
        self._alpha = self.config.width(self.context, model.statistics.A)

    def look_ahead(self, arm_sets: Sequence[ArmSet]) -> None:
        """The model stays the same up to the next exchange, so several turns can be evaluated at once."""
        self._evaluations.begin(arm_sets)

    def _turns_left(self) -> int:
        """About how many turns there are up to the next exchange, if all gain as much as the last one; 1: unknown."""
        if self._exchanging or not self._latest_variance > 0.0:
            return 1
        return 1 + int(min(max(0.0, self._due - self._new_variance) / self._latest_variance, MANY))


ALGORITHM = Algorithm(
    name="async_kernel_ucb",
    agent=AsyncKernelUCB,
    server="coband.server.kernel.async_kernel_ucb:AsyncKernelUCBServer",
    config=AsyncConfig,
    summary="Asynchronous kernel bandit: an agent that has learnt enough exchanges statistics with the server.",
    reference="Li et al. 2023 (Learning Kernelized Contextual Bandits, asynchronous), Algorithm 1",
    needs=Needs(waits_for_all="server.exchanges == 'serial'", exact=("points",), exact_if="repeats == 'drop'"),
    knows=("delays", "total_turns", "horizon"),
    messages=(
        MessageSize(Request, "up", "0"),
        MessageSize(ServerModel, "down", "m*(d + 1) + m^2 + m", when="transfer == 'full'", due=True),
        MessageSize(ServerModel, "down", "s*(d + 1) + m^2 + m", when="transfer == 'delta'", due=True),
        MessageSize(Upload, "up", "n*(d + 1) + k^2 + k"),
        MessageSize(NewModel, "down", "k^2 + k", when="transfer == 'full' and server.exchanges == 'serial'", due=True),
        MessageSize(
            NewModel,
            "down",
            "0",
            "(or k^2 + k, defended)",
            "transfer == 'delta' and server.exchanges == 'serial'",
            due=True,
        ),
        MessageSize(NewModel, "down", "j*(d + 1) + k^2 + k", when="server.exchanges != 'serial'", due=True),
    ),
    counts=(
        ClosedForm(
            "uplink_scalars",
            "n*(d + 1) + k^2 + k",
            "transfer == 'full' and server.exchanges != 'interleaved'",
            each="round",
        ),
        ClosedForm(
            "downlink_scalars",
            "m*(d + 1) + m^2 + m + k^2 + k",
            "transfer == 'full' and server.exchanges != 'interleaved'",
            each="round",
        ),
    ),
    metrics=(DICTIONARY_SIZE, SKIPPED_POINTS),
    cites=("li2023asynchronous",),
    search={"threshold": "0.01..100", "q": "0.01..1"},
    rate="regret Õ(√T γ_T + N γ_T) with Õ(N² γ_T³) scalars for D = 1/N² (Li et al. 2023, theorem 4.5)",
    always={"threshold": 0.0},
)
