"""FedLinUCB: asynchronous linear bandit (He et al. 2022; baseline of Li et al. 2023).
As printed: `tests/oracles/fed_lin_ucb.py`. Next: `messages/linear.py`, `server/linear/fed_lin_ucb.py`.

With link delays the agent goes on with its old model while an upload is under way (``blocking: false``); points pulled
meanwhile belong to the next upload, and the trigger is not looked at before the answer has come.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np
from pydantic import Field

from coband.agents.alone.lin_ucb import LinUcbConfig
from coband.agents.messages.linear import LinearModel, LinearUpload
from coband.simulator.arms import ALONE, ArmSet
from coband.simulator.arrays import FloatArray
from coband.simulator.core.algorithm import Algorithm, ClosedForm, MessageSize
from coband.simulator.core.conversations import Talks, late
from coband.simulator.core.nodes.decisions import exceeds, gaps
from coband.simulator.core.nodes.node import SERVER, Address, Agent, Client, NodeContext, Outbox
from coband.simulator.maths.linalg.gram import Gram
from coband.simulator.maths.posteriors.observations import Observations
from coband.simulator.maths.posteriors.ridge import RidgeRegression
from coband.simulator.maths.posteriors.synchronised_ridge import ROUNDING, LocalRidge, RidgeVersion, SynchronisedRidge

NOTHING: FloatArray = np.empty((0, 0, 0))


class Episode:
    """Scores x^T theta + alpha ||x||_(V^-1) of a model, and the news of an agent, which do not enter them.

    Args:
        model: stays as it is until ``begin``.
        alpha: exploration.
    """

    __slots__ = (
        *("_alpha", "_block", "_bound", "_end", "_exact", "_gaps", "_model", "_news", "_of", "_pulls", "_scores"),
        *("_start", "_taken", "_variance", "_winners"),
    )

    def __init__(self, model: SynchronisedRidge, alpha: float) -> None:
        self._model, self._alpha = model, alpha
        self._pulls = array("d")  # x and y of each that is not in the news yet, but for those that were taken last
        self._taken: list[tuple[int, int, float]] = []  # turns of the block, arms and rewards
        self._news: LocalRidge | None = None
        self._bound, self._exact = 0.0, False  # of what all of them add to log det V; whether it is just that
        self._block = NOTHING  # features of the turns to come (turns, n, d)
        self._of, self._start, self._end = NOTHING, 0, 0  # turns that are worked out
        self._winners: list[int | None] = []  # of these turns; None where ``Client.best`` decides

    def look_ahead(self, arm_sets: Sequence[ArmSet]) -> None:
        """The arm sets of the turns to come, the next one first."""
        self._settle()
        self._block = arm_sets[0].block

    def begin(self) -> None:
        """The model is another one."""
        self._of = NOTHING
        if self._news is not None:
            self._news.clear()  # of what was worked out with the model before; none of them is given out
        self._bound = math.inf if self._taken or self._pulls or self._news is not None else 0.0
        self._exact = False

    def choose(self, agent: Client, arms: ArmSet) -> int:
        """The arm with the highest score."""
        place = arms.place
        if arms.block is not self._of or not self._start <= place < self._end:
            self._work_out(arms)
            place = self._start
        place -= self._start
        winner = self._winners[place]
        if winner is None:
            return agent.best(self._scores[place])
        context = agent.context
        if context.closest is not None:
            context.closest.note_gap(context.index, self._gaps[place])
        return winner

    def _work_out(self, arms: ArmSet) -> None:
        """Work out a turn, and with a model those after it, as the first model will soon be another one."""
        self._of, self._start = arms.block, arms.place
        G = arms.features[None]
        if self._model.version and arms.place != ALONE and arms.block is self._block:
            G = arms.block[self._start :]
        mean, self._variance = self._model.ridge.predict(G)
        self._scores = mean + self._alpha * np.sqrt(self._variance)
        self._end = self._start + len(G)
        if len(G) == 1:
            self._winners = [None]
        else:
            self._winners, self._gaps = Client.winners(self._scores), gaps(self._scores).tolist()

    def pull(self, arms: ArmSet, arm: int, reward: float) -> float:
        """V_loc += x x^T, b_loc += y x; a bound of log det(V + V_loc) - log det V."""
        block, place = arms.block, arms.place
        if block is self._of and self._start <= place < self._end:
            self._exact = not self._bound  # of one pull the bound is the gain itself
            self._bound += math.log1p(self._variance.item(place - self._start, arm))
        else:
            self._exact, self._bound = False, math.inf
        if block is self._block and place != ALONE:
            self._taken.append((place, arm, reward))
        else:
            self._settle()
            self._pulls.extend([*arms.features[arm].tolist(), reward])
        return self._bound

    def _settle(self) -> None:
        """Keep the pulls of turns of the block, which there may be no more."""
        if self._taken:
            turns, arms, rewards = zip(*self._taken, strict=True)
            self._pulls.frombytes(np.column_stack([self._block[turns, arms], rewards]).tobytes())
            self._taken = []

    def gain(self, most: float) -> float:
        """log det(V + V_loc) - log det V; where that is certainly not above ``most``, a bound that is not."""
        if self._bound > most and not self._exact:
            self._bound = self.news.gain("full")
        return self._bound

    @property
    def news(self) -> LocalRidge:
        """V_loc and b_loc, to be given out or taken back."""
        self._news = self._news or LocalRidge(self._model)
        self._settle()
        if self._pulls:
            table = np.array(self._pulls).reshape(-1, self._model.ridge.dimension + 1)
            self._news.update(Observations(table[:, :-1], table[:, -1]))
            del self._pulls[:]
        return self._news

    def clear(self) -> None:
        """The news have been given out."""
        self._news, self._bound = None, 0.0

    def restore(self, W: Gram, b: FloatArray) -> None:
        """Take back news that were given out."""
        self.news.restore(0, W, b)
        self._bound, self._exact = math.inf, False


class FedLinConfig(LinUcbConfig):
    """Parameters of FedLinUCB."""

    threshold: float = Field(default=1.0, ge=0)
    """The C of det(V_i + V_loc) > (1 + C) det(V_i), when an upload is due (He et al.: 1/N^2 in theory)."""
    blocking: bool = False
    """True: the agent waits while its upload is under way."""


class FedLinUCB(Talks, Agent):
    """The client's side: acts on (V_i, b_i) of its last download, and keeps its news (V_loc, b_loc) apart."""

    noted: ClassVar[Mapping[str, str]] = {"trigger": "gain since the last upload"}
    pulls_in_model = 0
    """Those of the downloaded model."""

    def __init__(self, context: NodeContext) -> None:
        super().__init__(context)
        self.config: FedLinConfig = context.config
        start = context.sharing.get("start", lambda: RidgeVersion(RidgeRegression(context.dimension, self.config.lam)))
        self.downloaded = SynchronisedRidge(start, alone=True)
        self._episode = Episode(self.downloaded, self.config.alpha)
        self._growth = math.log1p(self.config.threshold) + ROUNDING
        self._uploading = False

    def choose(self, arms: ArmSet) -> int:
        """The arm with the largest x^T theta + alpha ||x||_(V^-1) of the downloaded model alone."""
        return self._episode.choose(self, arms)

    def look_ahead(self, arm_sets: Sequence[ArmSet]) -> None:
        """Let coming turns be worked out together."""
        self._episode.look_ahead(arm_sets)

    def observe(self, arms: ArmSet, arm: int, reward: float) -> Outbox:
        """V_loc += x x^T, b_loc += y x; upload them when det(V_i + V_loc) > (1 + C) det(V_i)."""
        bound = self._episode.pull(arms, arm, reward)
        self.unshared += 1
        if (
            self._uploading
            or bound <= self._growth
            or not exceeds(gain := self._episode.gain(self._growth), self._growth)
        ):
            return []
        return self.begin(self._upload(gain), blocking=self.config.blocking)

    async def _upload(self, gain: float) -> None:
        """Upload: (V_loc, b_loc) up, zero from now on. Download: the server's sums, own upload included."""
        self.note("trigger", version=self.downloaded.version, value=gain)
        self._uploading = True
        W, b = self._episode.news.news(0)
        assert isinstance(W, Gram)
        self._episode.clear()  # so that whatever is taken back is added
        upload = LinearUpload(W=W, b=b, pulls=self.unshared, version=self.downloaded.version)
        model = await self.ask(SERVER, upload, reply=LinearModel, attempts=0, undo=self._take_back)
        self._uploading = False
        if isinstance(model, LinearModel):
            self.adopt(model, SERVER)

    def _take_back(self, upload: LinearUpload) -> None:
        """Pulls that the server does not get are news again, and go with the next upload."""
        self._episode.restore(upload.W, upload.b)

    @late(LinearModel)
    def adopt(self, model: LinearModel, server: Address) -> None:
        """(V_i, b_i) are the server's sums, unless a newer model has come before."""
        if model.version < self.downloaded.version:
            return
        self.downloaded.follow(model.version, model.W, model.b)
        self._episode.begin()
        self.pulls_in_model = model.known
        self.note("model", version=model.version, round=model.round)


ALGORITHM = Algorithm(
    name="fed_lin_ucb",
    agent=FedLinUCB,
    server="coband.server.linear.fed_lin_ucb:FedLinUCBServer",
    config=FedLinConfig,
    summary="Asynchronous linear bandit: an agent whose determinant has grown by a factor exchanges statistics.",
    reference="He et al. 2022, FedLinUCB; baseline of Li et al. 2023",
    messages=(MessageSize(LinearUpload, "up", "d^2 + d"), MessageSize(LinearModel, "down", "d^2 + d", due=True)),
    counts=(ClosedForm("uplink_scalars", "rounds*(d^2 + d)"), ClosedForm("downlink_scalars", "rounds*(d^2 + d)")),
    rate="regret Õ(d √T) in Õ(d N²) communication rounds for C = 1/N² (He et al. 2022, abstract)",
    cites=("he2022simple",),
    search={"threshold": "0.01..100"},
    always={"threshold": 0.0},
)
