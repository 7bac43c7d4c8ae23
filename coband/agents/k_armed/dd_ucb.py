"""DDUCB: the pulls of one stage are mixed with those of all agents during the next one.
As printed: `tests/oracles/k_armed/dd_ucb.py`. Next: `averaging.py`, `messages/k_armed.py`.

"Decentralized Cooperative Stochastic Bandits" (Martínez-Rubio, Kanade and Rebeschini 2019, Algorithm 1). Tables of (sum
of rewards, pulls) per arm: gamma collects this stage, beta is the last one while it is mixed, alpha is what has been
mixed, and is used. N agents, averaging matrix W, lambda2 the second largest modulus of its eigenvalues.

1. Each arm once, into beta; alpha = beta / N, s = K. No messages.
2. A stage has C rounds. In each the agent pulls the arm with the largest
   alpha_r/alpha_p + sqrt(2 eta sd^2 ln(s) / (N alpha_p)) and adds the pull to gamma; beta makes one step of mixing: it
   is sent to all neighbours, and averaged with theirs.
   Accelerated steps are those of Chebyshev: y_1 = W y_0, and
   y_(r+1) = (2 / lambda2) (c_r / c_(r+1)) W y_r - (c_(r-1) / c_(r+1)) y_(r-1), c_r = T_r(1 / lambda2).
   Here y_0 is beta as the stage begins, and T_r is Chebyshev's polynomial.
3. At its end, accelerated: alpha += beta (alpha = beta after the first stage), beta = gamma.
   Not accelerated: alpha = beta, beta += gamma. Then gamma = 0, and s is N times the turns before the ended stage.

C = ceil(ln(2 N / eps) / sqrt(2 ln(1 / lambda2))) accelerated, else ceil(ln(N / eps) / ln(1 / lambda2)).

The paper is synchronous. Here a step of mixing waits until all neighbours' values of that step have come, and pulls go
on meanwhile with the old alpha; a value that was given up is sent again. A neighbour that is not there is not waited
for: an agent's own values stand for its.
"""

from __future__ import annotations

import math

import numpy as np
from pydantic import Field

from coband.agents.k_armed.agent import KArmed
from coband.agents.messages.k_armed import MixedMass
from coband.simulator.arms import ArmSet
from coband.simulator.arrays import FloatArray
from coband.simulator.core.algorithm import Algorithm, ClosedForm, MessageSize, Needs
from coband.simulator.core.config import Config
from coband.simulator.core.nodes.message import Message
from coband.simulator.core.nodes.node import Address, NodeContext, Outbox
from coband.simulator.maths.graphs.averaging import Weights, averaging_matrix


class DdUcbConfig(Config):
    """Parameters of DDUCB."""

    weights: Weights = Field(default="max_degree")
    """What a link weighs: max_degree 1 / (1 + the largest degree), metropolis 1 / (1 + max(d_v, d_u)), n 1 / N, or
    neighbours 1 / (1 + d_v), whose averages are biased."""
    accelerated: bool = True
    """Whether mixing is accelerated."""
    eta: float = Field(default=2.0, ge=0)
    """Exploration; of eta and sd only eta sd^2 matters."""
    eps: float = Field(default=1 / 22, gt=0, lt=1)
    """By what share of the values as a stage begins mixing may miss their averages."""
    sd: float = Field(default=0.5, ge=0)
    """Sub-Gaussian standard deviation of the rewards."""
    fresh: bool = False
    """Whether own pulls of the stage are used at once, with weight 1 / N, as in published code."""


class Mixing:
    """The mixing of one graph: C, and the factors of accelerated steps."""

    def __init__(self, adjacency: tuple[tuple[int, ...], ...], config: DdUcbConfig) -> None:
        self.W = averaging_matrix(adjacency, config.weights)
        agents = len(adjacency)
        moduli = np.sort(np.abs(np.linalg.eigvals(self.W)))
        second = float(moduli[-2]) if agents > 1 and moduli[-2] > 1e-9 else 0.0
        self.steps = 1
        self.factors = [(1.0, 0.0)]
        if second == 0.0:
            return
        rate = math.log(1.0 / second)
        if not config.accelerated:
            self.steps = math.ceil(math.log(agents / config.eps) / rate)
            self.factors *= self.steps
            return
        self.steps = math.ceil(math.log(2.0 * agents / config.eps) / math.sqrt(2.0 * rate))
        before, now = 1.0, 1.0 / second
        for _ in range(self.steps - 1):
            before, now, last = now, 2.0 / second * now - before, before
            self.factors.append((2.0 / second * before / now, last / now))


class DdUcb(KArmed):
    """Upper confidence bounds of what has been mixed."""

    def __init__(self, context: NodeContext) -> None:
        super().__init__(context)
        assert context.graph is not None
        adjacency = context.graph.adjacency
        self.mixing = context.sharing.get("mixing", lambda: Mixing(adjacency, self.config))
        self.alpha, self.beta, self.gamma, self.last = np.zeros((4, 2, len(self.counts)))
        self.stage, self.step, self.stage_began = 0, 0, 0
        self.s = float(len(self.counts))
        self._heard: dict[tuple[int, int], dict[Address, FloatArray]] = {}  # by stage and step
        self._sent = -1, -1

    @property
    def pulls_in_model(self) -> int | None:
        """None: what is averaged has pulls in part."""
        return None

    def decide(self) -> int:
        """Step 1, and the choice of step 2."""
        self.mix()
        return self.turns if self.turns < len(self.counts) else self.best(self.scores())

    def scores(self) -> FloatArray:
        config, agents = self.config, self.context.agents
        sums, pulls = self.alpha + self.gamma / agents if config.fresh else self.alpha
        width = 2.0 * config.eta * config.sd**2 * math.log(self.s) / agents
        scores: FloatArray = sums / pulls + np.sqrt(width / pulls)
        return scores

    def mix(self) -> None:
        """A step of mixing, if all that it needs has come; at the end of a stage step 3."""
        heard = self._heard.get((self.stage, self.step), {})
        if self._sent != (self.stage, self.step) or any(
            u not in heard for u in self.neighbours if self.context.is_there(u)
        ):
            return
        weights = self.mixing.W[self.context.index]
        average = self.beta.copy()
        for u, values in heard.items():
            average += weights[u] * (values - self.beta)
        self._heard.pop((self.stage, self.step), None)
        one, other = self.mixing.factors[self.step]
        self.last, self.beta = self.beta, one * average - other * self.last
        self.step += 1
        if self.step == self.mixing.steps:
            if self.config.accelerated:
                self.alpha, self.beta = self.beta + (self.alpha if self.stage else 0.0), self.gamma
            else:
                self.alpha, self.beta = self.beta, self.beta + self.gamma
            self.gamma = np.zeros_like(self.gamma)
            self.s = float(self.context.agents * self.stage_began)
            self.stage, self.step, self.stage_began = self.stage + 1, 0, self.turns

    def observe(self, arms: ArmSet, arm: int, reward: float) -> Outbox:
        super().observe(arms, arm, reward)
        first = self.turns <= len(self.counts)
        (self.beta if first else self.gamma)[:, arm] += reward, 1.0
        if first:
            self.alpha, self.stage_began = self.beta / self.context.agents, self.turns
        if first or self._sent == (self.stage, self.step):
            return []
        self._sent = self.stage, self.step
        message = MixedMass(values=self.beta.copy(), stage=self.stage, step=self.step)
        return [(u, message) for u in self.neighbours]

    def undelivered(self, message: Message, recipient: Address) -> Outbox:
        """Send it again, as the neighbour waits for it."""
        return [(recipient, message)] if self.context.is_there(recipient) else []

    def receive(self, message: Message, source: Address) -> Outbox:
        assert isinstance(message, MixedMass)
        self._heard.setdefault((message.stage, message.step), {})[source] = message.values
        return []


ALGORITHM = Algorithm(
    name="dd_ucb",
    agent=DdUcb,
    server=None,
    config=DdUcbConfig,
    summary="K arms on a graph: pulls of a stage are mixed among all agents during the next stage.",
    reference="Martínez-Rubio et al. 2019, Algorithm 1",
    needs=Needs(topologies=("graph",), connected=True, fixed_arms=True, prompt_rewards=True),
    messages=(MessageSize(MixedMass, "peer", "2 * k + 2", "to each neighbour, once in a step of mixing", due=True),),
    counts=(ClosedForm("peer_scalars", "(2 * arms + 2) * transmissions"),),
    cites=("martinez2019decentralized",),
    search={"eta": "0.05..4"},
)
