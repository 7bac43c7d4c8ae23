"""FedUCB on a graph: "Differentially-Private Federated Linear Bandits" (Dubey and Pentland 2020), section 5, no server.
As printed: `tests/oracles/fed_ucb.py`. Next: `linear/fed_ucb_estimator.py`, `messages/linear.py`.

Sums under differential privacy go gamma links far. An agent has gamma estimators, each of which is used, and learns, at
every gamma-th of its trials; so whatever is sent about one of them is everywhere within
gamma links before it is used again. A pull is in one estimator's sums only, with a tree of its own, so that all of them
together are as private as one.

Ours where the paper leaves it open: an agent whose estimator is due sends its sums and wants those of the others, who
send theirs at their next trial of that estimator, together; what is sent at trial t is used from trial t + gamma on, by
its sender as well. An agent that is behind, as it has joined later or is slow, counts from its own trial on at which it
hears of them. Until an agent is heard its part of S is rho_min I.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from coband.agents.graph.coop_config import Hops, hops_of
from coband.agents.linear.fed_ucb_estimator import Estimator, PrivateConfig, State, TreeNoise
from coband.agents.messages.linear import FloodedSums
from coband.simulator.arms import ArmSet
from coband.simulator.core.algorithm import Algorithm, ClosedForm, MessageSize, Needs
from coband.simulator.core.nodes.decisions import exceeds
from coband.simulator.core.nodes.message import Message
from coband.simulator.core.nodes.node import Address, Agent, Neighbours, NodeContext, Outbox
from coband.simulator.core.nodes.own_noise import OwnNoise
from coband.simulator.metrics import CLIPPED, Metric


class FedUcbGraphConfig(PrivateConfig):
    """Parameters of FedUCB on a graph."""

    hops: Hops = "diameter"
    """gamma: sums go so many links far, and there are as many estimators; half_diameter: half the graph's diameter,
    rounded down, at least 1; diameter: to everybody to whom there is a path."""


def gamma(context: NodeContext) -> int:
    """How far sums go."""
    assert context.graph is not None
    return hops_of(context.config.hops, context.graph.distances)


class Shared:
    """One of an agent's estimators, and what it has been told about it.

    Attributes:
        members: whose sums it adds up, in order.
        newest: sums in use, by sender; ``silent`` stands for those of the others.
        waiting: those that come into use gamma trials after they were sent, with that trial.
        given: own pulls in own sums, by the trial at which they were sent.
        sent: the last of these trials.
        wanted: another agent has wanted its sums since then.
    """

    def __init__(self, estimator: Estimator, members: Sequence[Address], silent: FloodedSums) -> None:
        self.estimator, self.members, self.silent = estimator, members, silent
        self.newest: dict[Address, FloodedSums] = {}
        self.waiting: list[tuple[int, FloodedSums]] = []
        self.given: dict[int, State] = {0: estimator.own}
        self.sent, self.wanted = 0, False

    def take_in(self, until: int) -> None:
        """Use what was sent by that trial."""
        due = [sums for sent, sums in self.waiting if sent <= until]
        if not due:
            return
        self.waiting = [one for one in self.waiting if one[0] > until]
        for sums in due:
            if sums.trial > self.newest.get(sums.agent, self.silent).trial:
                self.newest[sums.agent] = sums
        last = max(trial for trial in self.given if trial <= until)
        self.given = {trial: state for trial, state in self.given.items() if trial >= last}
        known = (self.newest.get(agent, self.silent) for agent in self.members)
        total = [np.column_stack([sums.W, sums.b]) for sums in known]
        self.estimator.follow(np.sum(total, axis=0), self.given[last])


class FedUcbGraph(Agent):
    """An agent among its neighbours."""

    def __init__(self, context: NodeContext) -> None:
        super().__init__(context)
        config: FedUcbGraphConfig = context.config
        self.hops, self.trial = gamma(context), 0
        assert context.graph is not None
        members = sorted(context.graph.ball(context.index, self.hops))
        self._members, self._threshold = frozenset(members), config.threshold
        noise, d = config.calibration(context, self.hops), context.dimension
        silent = FloodedSums(W=noise.shift * np.eye(d), b=np.zeros(d), trial=0, agent=-1, wanted=False)
        made = [Estimator(config, noise, len(members), context.rng) for _ in range(self.hops)]
        self.cells = [Shared(one, members, silent) for one in made]

    @property
    def _cell(self) -> Shared:
        return self.cells[self.trial % self.hops]

    def choose(self, arms: ArmSet) -> int:
        """The arm with the largest x^T theta + beta ||x||_(V^-1), by the estimator of this trial."""
        self.trial += 1
        self._cell.take_in(self.trial - self.hops)
        return self.best(self._cell.estimator.scores(arms.features))

    def observe(self, arms: ArmSet, arm: int, reward: float) -> Outbox:
        """Add the pull; send the sums when the gain reaches D, or when somebody wants them."""
        self.unshared += 1
        cell = self._cell
        gain = cell.estimator.learn(arms.features[arm], reward)
        wants = not exceeds(self._threshold, gain)
        if not (wants or cell.wanted):
            return []
        W, b = cell.estimator.release()
        sums = FloodedSums(W=W, b=b, trial=self.trial, agent=self.context.index, wanted=wants)
        cell.waiting.append((self.trial, sums))
        cell.given[self.trial] = cell.estimator.own
        cell.sent, cell.wanted = self.trial, False
        self.rounds += 1
        self.releases = max(self.releases, cell.estimator.privatiser.released)
        return [(Neighbours(self.hops), sums)]

    def receive(self, message: Message, source: Address) -> Outbox:
        """Another agent's sums."""
        assert isinstance(message, FloodedSums)
        if message.agent in self._members:
            cell = self.cells[message.trial % self.hops]
            cell.waiting.append((min(message.trial, self.trial + 1), message))
            cell.wanted |= message.wanted and message.trial > cell.sent
        return []

    def report(self) -> dict[str, float | int]:
        """Pulls that were clipped, and messages."""
        return {"clipped": sum(cell.estimator.clipped for cell in self.cells), "sums_sent": self.rounds}


def noise_of(context: NodeContext) -> OwnNoise:
    """That of one estimator: a pull is in no other one's sums."""
    return TreeNoise(context.config.calibration(context, gamma(context)))


ALGORITHM = Algorithm(
    name="fed_ucb_graph",
    agent=FedUcbGraph,
    server=None,
    config=FedUcbGraphConfig,
    summary="Linear bandit on a graph; agents flood sums under differential privacy, with an estimator for each hop.",
    reference="Dubey and Pentland 2020, decentralised FedUCB, section 5",
    needs=Needs(prompt_rewards=True, topologies=("graph",), reliable=False, horizon=True),
    messages=(MessageSize(FloodedSums, "peer", "d^2 + d + 3", "to all within gamma hops"),),
    counts=(
        ClosedForm("peer_scalars", "transmissions*(d^2 + d + 3)"),
        ClosedForm("sums_sent", "T", "threshold == 0"),
        ClosedForm("deliveries", "reach", "threshold == 0"),
        ClosedForm("transmissions", "copies", "threshold == 0"),
    ),
    metrics=(CLIPPED, Metric("sums_sent", "messages", "sums that agents have sent, each flooded")),
    cites=("dubey2020differentially", "shariff2018differentially"),
    search={"threshold": "0.1..1000"},
    rate=(
        "none that stands: Zhou and Chowdhury 2024 find the bound of Dubey and Pentland 2020 on regret incorrect, and "
        "the one on communication unfounded"
    ),
    private=noise_of,
)
