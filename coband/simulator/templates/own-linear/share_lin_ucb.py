"""LinUCB (Li et al. 2010) for agents that share sums: a plugin of coband.

After every ``period`` pulls an agent sends W = sum x x^T and b = sum y x of the pulls x with rewards y that it has not
sent yet; the server adds them to its sums of all agents, and answers with these.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

import numpy as np
from pydantic import Field

from coband import (
    SERVER,
    Address,
    Agent,
    Algorithm,
    ArmSet,
    ClosedForm,
    Config,
    FloatArray,
    Message,
    MessageSize,
    NodeContext,
    Outbox,
    Server,
    on,
    payload,
)


class ShareLinUcbConfig(Config):
    """Parameters of share_lin_ucb."""

    lam: float = Field(default=1.0, gt=0)
    """Ridge parameter lambda."""
    alpha: float = Field(default=1.0, ge=0)
    """Exploration: arms are chosen by x^T theta + alpha ||x||_(V^-1)."""
    period: int = Field(default=10, ge=1)
    """An agent shares its sums after so many pulls."""


class Sums(Message):
    """Up: W = sum x x^T, (d, d), and b = sum y x, (d,), of an agent's new pulls."""

    kind: ClassVar[str] = "sums"
    W: FloatArray = payload("d", "d", kind="gram", symmetric=True, adds="news", bound="points^2")
    b: FloatArray = payload("d", kind="moment", adds="news", bound="points*rewards")


class Totals(Message):
    """Down: the same of all pulls of all agents."""

    kind: ClassVar[str] = "totals"
    W: FloatArray = payload("d", "d", kind="gram", symmetric=True, bound="points^2", pulls="all")
    b: FloatArray = payload("d", kind="moment", bound="points*rewards", pulls="all")


def columns(message: Sums | Totals) -> FloatArray:
    """[W b], (d, d + 1)."""
    return np.column_stack([message.W, message.b])


class ShareLinUcb(Agent):
    """Ridge regression on the server's sums and on its own pulls that are not in them; all sums are [W b]."""

    def __init__(self, context: NodeContext) -> None:
        super().__init__(context)
        self.totals, self.told, self.news = np.zeros((3, context.dimension, context.dimension + 1))
        self.sharing = False

    def choose(self, arms: ArmSet) -> int:
        """The arm with the largest x^T theta + alpha ||x||_(V^-1), where V = lam I + W and theta = V^-1 b."""
        known, X = self.totals + self.told + self.news, arms.features
        V = self.context.config.lam * np.eye(len(known)) + known[:, :-1]
        theta = np.linalg.solve(V, known[:, -1])
        squares = np.maximum(0, (X * np.linalg.solve(V, X.T).T).sum(axis=1))  # noise on W may make them negative
        return self.best(X @ theta + self.context.config.alpha * np.sqrt(squares))

    def observe(self, arms: ArmSet, arm: int, reward: float) -> Outbox:
        """W += x x^T and b += y x; share when it is time and the last answer is here."""
        x = arms.features[arm]
        self.news += np.outer(x, [*x, reward])
        self.unshared += 1
        if self.unshared < self.context.config.period or self.sharing:
            return []
        return self.begin(self.share())

    async def share(self) -> None:
        """Send the news, and wait for the totals, in which they are; without an answer go on."""
        self.sharing = True
        self.told, self.news = self.news, np.zeros_like(self.news)
        sums = Sums(W=self.told[:, :-1], b=self.told[:, -1], pulls=self.unshared)
        totals = await self.ask(SERVER, sums, reply=Totals, undo=self.take_back)
        if isinstance(totals, Totals):
            self.totals = columns(totals)
        self.told = np.zeros_like(self.news)
        self.sharing = False

    def take_back(self, sums: Sums) -> None:
        """What the server will never have is news again."""
        self.news += columns(sums)


class ShareLinUcbServer(Server):
    """Adds up what the agents send."""

    def __init__(self, context: NodeContext) -> None:
        super().__init__(context)
        self.totals = np.zeros((context.dimension, context.dimension + 1))

    @on(Sums)
    def add(self, sums: Sums, agent: Address) -> Totals:
        """Take an agent's sums in and answer with the totals."""
        self.totals = self.totals + columns(sums)
        self.rounds += 1
        return Totals(W=self.totals[:, :-1], b=self.totals[:, -1], round=self.rounds)

    def discrepancies(self, uploads: Sequence[tuple[Address, Message]]) -> Iterator[str]:
        """The totals are the sum over all messages."""
        sent = sum((columns(one) for _, one in uploads if isinstance(one, Sums)), np.zeros_like(self.totals))
        if not np.allclose(self.totals, sent):
            yield f"the totals are not the sum over {len(uploads)} messages"


ALGORITHM = Algorithm(
    name="share_lin_ucb",
    agent=ShareLinUcb,
    server="share_lin_ucb:ShareLinUcbServer",
    config=ShareLinUcbConfig,
    summary="LinUCB on the sums of all agents, which share them every so many pulls.",
    reference="Li et al. 2010, for many agents",
    messages=(
        MessageSize(Sums, "up", "d^2 + d"),
        MessageSize(Totals, "down", "d^2 + d", "to the agent that sent"),
    ),
    counts=(
        ClosedForm("uplink_scalars", "N*floor(T / N / period)*(d^2 + d)", "schedule == 'rounds'"),
        ClosedForm("downlink_scalars", "N*floor(T / N / period)*(d^2 + d)", "schedule == 'rounds'"),
    ),
    search={"period": "1..100"},
    always={"period": 1},
)
