"""Async-KernelUCB: "Learning Kernelized Contextual Bandits in a Distributed and Asynchronous Environment" (paper
000), Algorithm 1.

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
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import ClassVar

import numpy as np

from coband.agents import theorems
from coband.agents.async_parameters import AsyncConfig
from coband.agents.messages.asynchronous import Declined, NewModel, Request, ServerModel, Upload
from coband.agents.metrics import SKIPPED_POINTS
from coband.simulator.arms import ArmSet
from coband.simulator.arrays import FloatArray
from coband.simulator.core.algorithm import Algorithm, ClosedForm, MessageSize
from coband.simulator.core.message import Message
from coband.simulator.core.node import SERVER, Address, Agent, NodeContext, Outbox, OutOfPatience
from coband.simulator.maths.linalg.caches import VersionCache
from coband.simulator.maths.posteriors.dictionary import Dictionary
from coband.simulator.maths.posteriors.domain import first_appearances
from coband.simulator.maths.posteriors.nystrom import NystromModel
from coband.simulator.maths.posteriors.observations import GrowingObservations, Observations
from coband.simulator.maths.posteriors.statistics import Statistics
from coband.simulator.metrics import DICTIONARY_SIZE


@dataclass(slots=True)
class Exchange:
    """What an agent remembers of the exchange under way: the new data, and what the server's model was.

    ``number``: of its request; ``round``: the server's number of it, once there is an upload.
    """

    new: Observations
    variance: float
    number: int
    round: int = -1
    base: NystromModel | None = None
    base_version: int = -1
    dictionary: Dictionary | None = None
    embedded: FloatArray | None = None
    added: FloatArray | None = None


@dataclass(slots=True)
class Evaluated:
    """What the model says of the arms of a turn.

    Attributes:
        scores: mu + alpha * sigma, or -inf for arms that are certainly not the best.
        variance: sigma^2 of the others.
        winner: the best arm, where no other has exactly the same score.
    """

    scores: FloatArray
    variance: FloatArray
    winner: int | None = None


class AsyncKernelUCB(Agent):
    """The client's side of Algorithm 1."""

    noted: ClassVar[Mapping[str, str]] = {
        "trigger": "variance of the pulls since the last exchange, above the threshold"
    }

    def __init__(self, context: NodeContext) -> None:
        super().__init__(context)
        self.config: AsyncConfig = context.config
        self._store: VersionCache[NystromModel] = context.sharing.get("posteriors", VersionCache)
        self._due, self._rate = self.config.due(context), self.config.rate(context)
        # Line 2: mu_0 = 0, sigma_0^2 = k(x,x)/lambda, S_0 and D_0 empty.
        self._start = context.sharing.get("start", self._empty)
        self._keep(self._start, 0)
        self._behind = 0  # pulls in the model
        self._new = GrowingObservations(context.dimension)
        self._new_variance = 0.0
        self._exchange: Exchange | None = None
        self._requests = 0
        self._unsettled: dict[int, Exchange] = {}  # given up while their uploads were under way, by round
        self._ahead: deque[ArmSet] = deque()
        self._evaluated: dict[ArmSet, Evaluated] = {}
        self._latest_variance = math.inf

    def _empty(self) -> NystromModel:
        dictionary = Dictionary(self.config.kernel)
        return NystromModel.fit(dictionary, Statistics.zero(0), self.config.lam)

    def _keep(self, model: NystromModel, version: int) -> None:
        """Act on ``model`` from now on; the whole of it is kept only where later messages may refer to it."""
        self.model, self._version, self._evaluated = model.predictor, version, {}
        self._held = model if self.config.transfer == "delta" else self._start
        self._alpha = self.config.width(self.context, model.statistics.A)

    @property
    def pulls_in_model(self) -> int:
        """Those of the last exchange; pulls since then are not in the model."""
        return self._behind

    def choose(self, arms: ArmSet) -> int:
        """Line 5, equation 3: the arm with the largest mu + alpha * sigma of the model of the last communication."""
        found = self._evaluated.pop(arms, None) or self._evaluate(arms)
        self._variance = found.variance
        return self.best(found.scores, found.winner)

    def look_ahead(self, arm_sets: Sequence[ArmSet]) -> None:
        """The model stays the same up to the next exchange, so several turns can be evaluated at once."""
        self._ahead = deque(arm_sets)

    def _evaluate(self, arms: ArmSet) -> Evaluated:
        """The arms of a turn; also those of the turns after it for which the model is likely to last."""
        ahead = self._ahead
        while ahead and ahead[0] is not arms:
            ahead.popleft()
        together = list(islice(ahead, self._turns_left()))
        if len(together) < 2 or len(set(map(len, together))) > 1:
            mean, variance = self.model.predict(arms)
            return Evaluated(mean + self._alpha * np.sqrt(variance), variance)
        scores, variances = self.model.scores_stack(np.array([other.features for other in together]), self._alpha)
        rows = map(Evaluated, scores, variances, self.winners(scores))
        self._evaluated = dict(zip(together, rows, strict=True))
        return self._evaluated.pop(arms)

    def _turns_left(self) -> int:
        """About how many turns there are up to the next exchange, if all gain as much as the last one; 1: unknown."""
        if self._exchange is not None or not self._latest_variance > 0.0:
            return 1
        return 1 + int(max(0.0, self._due - self._new_variance) / self._latest_variance)

    def observe(self, arms: ArmSet, arm: int, reward: float) -> Outbox:
        """Lines 5-7: keep the pull; when equation 4 holds, ask for an exchange."""
        self._new.append(arms.features[arm], reward)
        self._latest_variance = float(self._variance[arm])
        self._new_variance += self._latest_variance
        self.unshared += 1
        if self._exchange is not None or not self._new_variance > self._due:
            return []
        self.note("trigger", version=self._version, value=self._new_variance)
        self._requests += 1
        self._exchange = Exchange(self._new.since(0), self._new_variance, self._requests)
        self._new, self._new_variance = GrowingObservations(self.context.dimension), 0.0
        self.waiting = self.config.blocking
        return [(SERVER, Request(version=self._version, number=self._requests))]

    def receive(self, message: Message, source: Address) -> Outbox:
        """Messages 2 and 4 of an exchange."""
        self.heard_from(source)
        exchange = self._exchange
        if isinstance(message, ServerModel):
            if exchange is None or message.reply_to != exchange.number or exchange.base is not None:
                return [(SERVER, Declined(round=message.round))]
            return self._upload(message, exchange)
        assert isinstance(message, NewModel)
        self._unsettled.pop(message.round, None)
        if exchange is not None and message.round == exchange.round:
            self._adopt(message, exchange)
        return []

    def _upload(self, message: ServerModel, exchange: Exchange) -> Outbox:
        """Lines 9-11: sample new dictionary points with the server's newest variance, send them and the statistics."""
        base = self._store.get(message.version, lambda: self._server_model(message))
        points, rewards = exchange.new.features, exchange.new.rewards
        probability = np.minimum(1.0, self._rate * base.variance(points))
        sampled = self.context.rng.random(len(probability)) < probability
        if self.config.repeats == "drop":
            sampled[sampled] = first_appearances(points[sampled], base.dictionary.points)
        exchange.base, exchange.base_version, exchange.round = base, message.version, message.round
        exchange.added = points[sampled]
        exchange.dictionary = base.dictionary.appended(exchange.added)
        exchange.embedded = exchange.dictionary.embed(points)
        statistics = Statistics.of(exchange.embedded, rewards)
        pulls = len(rewards)
        self.unshared -= pulls
        upload = Upload(
            points=exchange.added,
            rewards=rewards[sampled],
            A=statistics.A,
            b=statistics.b,
            version=message.version,
            round=message.round,
            pulls=pulls,
        )
        return [(SERVER, upload)]

    def undelivered(self, message: Message, recipient: Address) -> Outbox:
        """An upload is sent again, as others wait for its end; the data of a request are new again."""
        exchange = self._exchange
        if isinstance(message, Upload):
            if exchange is not None and exchange.round == message.round:
                return self.again(message, recipient)
            self.unshared += message.pulls
            self._renew(self._unsettled.pop(message.round))
        elif isinstance(message, Request) and exchange is not None and exchange.number == message.number:
            self._close(exchange)
        return []

    def is_wanted(self, message: Message, recipient: Address) -> bool:
        """An upload is wanted as long as its exchange is under way."""
        return self._exchange is not None and self._exchange.round == message.round

    def resend(self, message: Message, recipient: Address) -> Outbox:
        """Upload once more."""
        self._unsettled.pop(message.round)
        return super().resend(message, recipient)

    def again(self, message: Message, recipient: Address) -> Outbox:
        """Until it is sent once more, the upload is with this agent."""
        assert self._exchange is not None
        self._unsettled[message.round] = self._exchange
        return super().again(message, recipient)

    def unreachable(self, message: Message, recipient: Address) -> Outbox:
        """The data of an upload that does not get through are new again, exchanged at the next trigger."""
        assert self._exchange is not None
        self._close(self._unsettled.pop(message.round))
        return []

    def missed(self, source: Address) -> Outbox | None:
        """Something from the server does not come: wait for it a while."""
        return None if self._exchange is None else self.be_patient(source)

    def go_on(self, timer: OutOfPatience, source: Address) -> Outbox | None:
        """Give the exchange up; the data are new again, unless the upload is under way or has come through."""
        exchange = self._exchange
        if exchange is None:
            return None
        if exchange.base is None or self._unsettled.pop(exchange.round, None) is not None:
            self._close(exchange)
        else:
            self._unsettled[exchange.round] = exchange
            self._exchange, self.waiting = None, False
        return []

    def _close(self, exchange: Exchange) -> None:
        """End the exchange under way, whose data are new again."""
        self._renew(exchange)
        self._exchange, self.waiting = None, False

    def _renew(self, exchange: Exchange) -> None:
        newer, self._new = self._new, GrowingObservations(self.context.dimension)
        self._new.extend(exchange.new)
        self._new.extend(newer.since(0))
        self._new_variance += exchange.variance

    def _server_model(self, message: ServerModel) -> NystromModel:
        """The server's model as message 2 describes it."""
        if message.A is None or message.b is None:
            return self._held
        dictionary = self._held.dictionary.appended(message.points)
        return NystromModel.fit(dictionary, Statistics(message.A, message.b), self.config.lam)

    def _adopt(self, message: NewModel, exchange: Exchange) -> None:
        """Line 14: the model of S_k with the server's new statistics."""
        self._keep(self._store.get(message.version, lambda: self._updated(message, exchange)), message.version)
        self._exchange, self.waiting, self._behind = None, False, message.known
        self.note("model", version=message.version, round=message.round)

    def _updated(self, message: NewModel, exchange: Exchange) -> NystromModel:
        assert exchange.base is not None
        assert exchange.added is not None
        if message.version == exchange.base_version + 1:
            assert exchange.dictionary is not None
            assert exchange.embedded is not None
            total = None if message.A is None or message.b is None else Statistics(message.A, message.b)
            return exchange.base.updated(exchange.dictionary, exchange.embedded, exchange.new.rewards, total)
        assert message.A is not None
        assert message.b is not None
        added = exchange.added
        if self.config.repeats == "drop":
            added = added[first_appearances(added, message.points)]
        dictionary = exchange.base.dictionary.appended(message.points).appended(added)
        return NystromModel.fit(dictionary, Statistics(message.A, message.b), self.config.lam)


ALGORITHM = Algorithm(
    name="async_kernel_ucb",
    agent=AsyncKernelUCB,
    server="coband.server.async_kernel_ucb:AsyncKernelUCBServer",
    config=AsyncConfig,
    summary="Asynchronous kernel bandit: an agent that has learnt enough exchanges statistics with the server.",
    reference="paper 000 (Learning Kernelized Contextual Bandits, asynchronous), Algorithm 1",
    messages=(
        MessageSize(Request, "up", "0"),
        MessageSize(ServerModel, "down", "m*(d + 1) + m^2 + m", when="transfer == 'full'"),
        MessageSize(ServerModel, "down", "s*(d + 1) + m^2 + m", when="transfer == 'delta'"),
        MessageSize(Upload, "up", "n*(d + 1) + k^2 + k"),
        MessageSize(NewModel, "down", "k^2 + k", when="transfer == 'full' and server.exchanges == 'serial'"),
        MessageSize(NewModel, "down", "0", when="transfer == 'delta' and server.exchanges == 'serial'"),
        MessageSize(NewModel, "down", "j*(d + 1) + k^2 + k", when="server.exchanges != 'serial'"),
        MessageSize(Declined, "up", "0", "of an exchange that the agent has given up"),
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
    bounds=theorems.ASYNC_KERNEL_UCB,
    always={"threshold": 0.0},
)
