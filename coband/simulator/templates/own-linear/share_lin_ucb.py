"""LinUCB (Li et al. 2010) for agents that share sums: a plugin of coband.

After every ``period`` pulls an agent sends W = sum x x^T and b = sum y x of the pulls x with rewards y that it has not
sent yet; the server adds them to its sums of all agents, and answers with these.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated

import numpy as np
from pydantic import Field

from coband import (
    SERVER,
    Address,
    Agent,
    ArmSet,
    ClosedForm,
    FloatArray,
    Message,
    MessageSize,
    Server,
    algorithm_of,
    on,
    payload,
)


class Sums(Message):
    """Up: W = sum x x^T, (d, d), and b = sum y x, (d,), of an agent's new pulls."""

    W: FloatArray = payload("d", "d", kind="gram", symmetric=True, adds="news", bound="points^2")
    b: FloatArray = payload("d", kind="moment", adds="news", bound="points*rewards")


class Totals(Message):
    """Down: the same of all pulls of all agents."""

    W: FloatArray = payload("d", "d", kind="gram", symmetric=True, bound="points^2", pulls="all")
    b: FloatArray = payload("d", kind="moment", bound="points*rewards", pulls="all")


def columns(message: Sums | Totals) -> FloatArray:
    """[W b], (d, d + 1)."""
    return np.column_stack([message.W, message.b])


class ShareLinUcbServer(Server):
    """Adds up what the agents send."""

    def start(self) -> None:
        self.totals = np.zeros((self.context.dimension, self.context.dimension + 1))

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


class ShareLinUcb(Agent):
    """LinUCB on the sums of all agents, which share them every so many pulls.

    It is ridge regression on the server's sums and on its own pulls that are not in them; all sums are [W b].
    """

    server = ShareLinUcbServer
    lam: Annotated[float, Field(gt=0, description="Ridge parameter lambda.")] = 1.0
    alpha: Annotated[float, Field(ge=0, description="Arms are chosen by x^T theta + alpha ||x||_(V^-1).")] = 1.0
    period: Annotated[int, Field(ge=1, description="An agent shares its sums after so many pulls.")] = 10

    def start(self) -> None:
        self.totals, self.told, self.news = np.zeros((3, self.context.dimension, self.context.dimension + 1))
        self.sharing = False

    def choose(self, arms: ArmSet) -> int:
        """The arm with the largest x^T theta + alpha ||x||_(V^-1), where V = lam I + W and theta = V^-1 b."""
        known, X = self.totals + self.told + self.news, arms.features
        V = self.lam * np.eye(len(known)) + known[:, :-1]
        theta = np.linalg.solve(V, known[:, -1])
        squares = np.maximum(0, (X * np.linalg.solve(V, X.T).T).sum(axis=1))  # noise on W may make them negative
        return self.best(X @ theta + self.alpha * np.sqrt(squares))

    def observe(self, arms: ArmSet, arm: int, reward: float) -> None:
        """W += x x^T and b += y x; share when it is time and the last answer is here."""
        x = arms.features[arm]
        self.news += np.outer(x, [*x, reward])
        if self.unshared >= self.period and not self.sharing:
            self.begin(self.share())

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


ALGORITHM = algorithm_of(
    ShareLinUcb,
    name="share_lin_ucb",
    reference="Li et al. 2010, for many agents",
    knows=(),
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
