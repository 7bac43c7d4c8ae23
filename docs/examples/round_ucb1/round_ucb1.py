"""UCB1 for agents that share counts in rounds: one asks for a round, and the server gathers the counts of all."""

from dataclasses import replace
from typing import ClassVar

import fed_ucb1

from coband import ALL_AGENTS, SERVER, Address, Message, MessageSize, late, on


class Request(Message):
    """Up: an agent wants to know the totals. Down: all agents are to send their counts."""

    kind: ClassVar[str] = "request"


class RoundUcb1(fed_ucb1.FedUcb1):
    """Asks for a round, and takes part in those that others ask for."""

    async def share(self) -> None:
        self.sharing = True
        await self.ask(SERVER, Request(), reply=fed_ucb1.Counts, public=True)  # an answer that goes to all
        self.sharing = False

    @on(Request)
    async def take_part(self, request: Request, server: Address) -> None:
        counts, sums = self.own.copy()
        told = fed_ucb1.Counts(counts=counts, sums=sums, pulls=self.unshared)
        totals = await self.ask(SERVER, told, reply=fed_ucb1.Counts)
        if isinstance(totals, fed_ucb1.Counts):
            self.others[:] = totals.counts - counts, totals.sums - sums


class RoundUcb1Server(fed_ucb1.FedUcb1Server):
    """Gathers the counts when an agent asks, for ten time units if some are late, and tells all agents the totals."""

    ignores = (Request,)  # while a round is under way, which answers it

    async def main(self) -> None:
        while True:
            await self.hear(Request)
            await self.gather(Request(), reply=fed_ucb1.Counts, quorum=1, timeout=10.0, taking=self.keep)
            self.rounds += 1
            counts, sums = self.of_agents.sum(axis=0)
            self.tell(ALL_AGENTS, fed_ucb1.Counts(counts=counts, sums=sums, round=self.rounds))

    @late(fed_ucb1.Counts)
    def keep(self, message: fed_ucb1.Counts, agent: Address) -> None:
        self.of_agents[agent] = message.counts, message.sums


ALGORITHM = replace(
    fed_ucb1.ALGORITHM,
    name="round_ucb1",
    agent=RoundUcb1,
    server="round_ucb1:RoundUcb1Server",
    messages=(MessageSize(Request, "up", "0"), MessageSize(Request, "down", "0"), *fed_ucb1.ALGORITHM.messages),
    counts=(),
)
