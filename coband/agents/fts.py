"""Federated Thompson sampling: FTS (Dai et al. 2020), and FTS-DE, DP-FTS and DP-FTS-DE (Dai et al. 2021).

After every turn an agent sends weights omega of M shared random features, drawn from its posterior. For each of P
regions of the domain the server averages those of all agents, with large weights for agents that explore this region at
first (distributed exploration, DE), and sends the P averages to all. At its turn t after the first ones an agent
maximises, with probability 1 - 1/t, a draw from its own posterior, on features of its own that are drawn anew; else
phi(x)^T omega_p, p the region of x. FTS has one region.

Under differential privacy (DP) an agent takes part in an average with probability q, its weights are cut to the length
S / sqrt(P), and omega_p = sum phi_np omega_n / q has Gaussian noise of deviation z S max_n phi_np / q. So all P
averages hide as much of what an agent sends as noise z hides of one number, in each round anew: a subsampled Gaussian
mechanism. In a run everybody can open every stream; who is to be hidden from needs a server whose noise is its own.

From the authors' program: phi_np is proportional to exp(a) where n explores p first and to exp(b) elsewhere; a stays
for some rounds and then falls to b. The first points are random ones of the region. Ours: an average of nobody is noise
alone (the program draws uniform weights then, which tells), and under DP phi is over all agents, heard so far or not;
points may repeat; kernels are given, where the program fits those of agents; nobody waits: a round ends when the server
has heard something new of everybody, and until the first has ended an agent goes by its own draws.

Longer than most, with its server: four algorithms with their parameters, and the account of privacy.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from coband.agents.fts_parameters import FtsConfig, Private, PrivateRegions, Regions
from coband.agents.messages.federated import DrawnWeights, PrivateRegionWeights, RegionWeights
from coband.simulator.arms import ArmSet
from coband.simulator.arrays import FloatArray, IntArray
from coband.simulator.core.algorithm import Algorithm, ClosedForm, MessageSize
from coband.simulator.core.nodes.node import SERVER, Address, Agent, NodeContext, Outbox
from coband.simulator.core.nodes.own_noise import OwnNoise, Spent
from coband.simulator.core.talks import Talks, on
from coband.simulator.maths.random_features import RandomFeatures, posterior_draw
from coband.simulator.metrics import Metric


class FederatedSampler(Talks, Agent):
    """The client's side of all four.

    Attributes:
        draws: that it has sent.
    """

    def __init__(self, context: NodeContext) -> None:
        super().__init__(context)
        self.config: FtsConfig = context.config
        d, M = context.dimension, self.config.features
        # everybody draws the shared features from the server's stream, which the server goes on with
        shared = lambda: self.config.draw_features(context.open_coin(SERVER), d)  # noqa: E731
        self.shared: RandomFeatures = context.sharing.get("features", shared)
        self._points: list[FloatArray] = []
        self._rewards: list[float] = []
        self._domain: tuple[FloatArray, IntArray] | None = None
        self._G, self._b = np.zeros((M, M)), np.zeros(M)
        self._federated: RegionWeights | None = None
        self.draws = 0

    def _of_domain(self, domain: ArmSet) -> tuple[FloatArray, IntArray]:
        """Shared features and regions of the arms of a domain, computed once."""
        if self._domain is None:
            made = lambda: (self.shared(domain.features), self.config.regions_of(domain.features))  # noqa: E731
            self._domain = self.context.sharing.get("domain", made)
        return self._domain

    def _seen(self, arms: ArmSet) -> tuple[FloatArray, IntArray]:
        """Shared features and regions of arms."""
        if (domain := arms.domain) is None:
            return self.shared(arms.features), self.config.regions_of(arms.features)
        features, regions = self._of_domain(domain)
        return (features, regions) if arms is domain else (features[arms.ids], regions[arms.ids])

    def choose(self, arms: ArmSet) -> int:
        """A random point of the own region at first; then the best by a draw of one's own, or by those of all."""
        rng, turn = self.context.rng, len(self._points) - self.config.initial + 1
        if turn < 1:
            regions = self.config.total(arms.features.shape[1])
            own = np.flatnonzero(self._seen(arms)[1] == self.context.index % regions)
            return int(rng.choice(own if len(own) else len(arms)))
        if rng.random() < 1.0 - 1.0 / turn or self._federated is None:
            return self.best(self._own_draw(arms))
        features, places = self._seen(arms)
        return self.best(np.vecdot(features, self._federated.weights[places]))

    def _own_draw(self, arms: ArmSet) -> FloatArray:
        """A function drawn from the own posterior, at arms."""
        X = arms.features
        phi = self.config.draw_features(self.context.rng, X.shape[1])
        pulled = phi(np.array(self._points).reshape(-1, X.shape[1]))
        G, b = pulled.T @ pulled, pulled.T @ np.array(self._rewards)
        weights = posterior_draw(G, b, self.config.noise_variance, self.context.rng.standard_normal(len(b)))
        return phi.leading(X, weights)

    def warnings(self) -> Iterator[str]:
        if sentence := self.config.misplaced(np.array(self._points)):
            yield sentence

    def observe(self, arms: ArmSet, arm: int, reward: float) -> Outbox:
        """Learn; once the first points are known, send a draw of weights."""
        x, domain = arms.features[arm], arms.domain
        self.unshared += 1
        self._points.append(x)
        self._rewards.append(reward)
        phi = self.shared(x[None])[0] if domain is None else self._of_domain(domain)[0][arms.ids[arm]]
        self._G += phi[:, None] * phi
        self._b += reward * phi
        if len(self._points) < self.config.initial:
            return []
        self.draws += 1
        weights = posterior_draw(
            self._G, self._b, self.config.noise_variance, self.context.rng.standard_normal(len(phi))
        )
        self.tell(SERVER, DrawnWeights(weights=weights, pulls=self.unshared, round=self.draws))
        return self.sent()

    @on(RegionWeights)
    @on(PrivateRegionWeights)
    def follow(self, message: RegionWeights, server: Address) -> None:
        """The newest averages count."""
        if self._federated is None or message.round > self._federated.round:
            self._federated = message

    def report(self) -> dict[str, float | int]:
        return {"draws": self.draws}


class ServerNoise(OwnNoise):
    """What the server's averages tell others of one agent, by all that it sends: its weights, or zeros instead."""

    unit, adversary = "agent", "others"

    def __init__(self, context: NodeContext) -> None:
        self._config: Private = context.config
        self._agents, self._dimension, self.delta = context.agents, context.dimension, self._config.delta

    def spent(self, releases: int) -> Spent:
        """Of an agent that counts most in every region: sqrt(P) times S / sqrt(P) against z S."""
        return Spent(self._config.z, self._config.q, releases)

    def see(self, rng: np.random.Generator, releases: int, canary: bool) -> list[float]:
        """For each round the sum over regions along the first feature, where agent 0 sends all that it may."""
        seen, N = [], self._agents
        for round in range(1, releases + 1):
            shares = self._config.shares(N, self._dimension, round)
            weights = np.zeros((N, self._config.features))
            weights[0, 0] = canary * self._config.S
            most = shares.max(axis=1)
            shares[:, 0] = most
            seen.append(float(np.mean(self._config.release(rng, shares, weights)[:, 0] / most)))
        return seen


def federated(config: type[FtsConfig], source: str, summary: str) -> Algorithm:
    """One of the four; ``source``: year, name and what else is to be said of where it is from."""
    private = issubclass(config, Private)
    down = PrivateRegionWeights if private else RegionWeights
    splits = "splits" in config.model_fields
    return Algorithm(
        name=source.split(", ")[1].lower().replace("-", "_"),
        agent=FederatedSampler,
        server=f"coband.server.fts:{'PrivateFtsServer' if private else 'FtsServer'}",
        config=config,
        summary=summary,
        reference=f"Dai et al. {source}",
        messages=(
            MessageSize(DrawnWeights, "up", "features", "from each agent", due=True),
            MessageSize(down, "down", "regions*features", "to all", due=True),
        ),
        counts=(
            ClosedForm("draws", "max(0, T - N*max(0, initial - 1))", "schedule == 'rounds'"),
            ClosedForm("rounds", "draws/N", "schedule == 'rounds' and patience > 1"),
            ClosedForm("uplink_scalars", "draws*features"),
            ClosedForm("downlink_scalars", "rounds*N*regions*features"),
        ),
        where={"regions": "splits^d" if splits else "1"},
        metrics=(Metric("draws", "messages", "draws of weights that agents have sent"),),
        cites=(*(["dai2020federated"] if source.startswith("2020") else []), "dai2021differentially"),
        undefended={"1": "its agents send weights that each has drawn, which it mixes by region"},
        search={"features": "20..500", "length_scale": "0.05..5"},
        private=ServerNoise if private else None,
    )


FTS, FTS_DE, DP_FTS, DP_FTS_DE = map(
    federated,
    (FtsConfig, Regions, Private, PrivateRegions),
    ("2020, FTS, as in Dai et al. 2021", "2021, FTS-DE", "2021, DP-FTS", "2021, DP-FTS-DE, algorithms 1 and 2"),
    (
        "Federated Thompson sampling: agents maximise draws of their own, or an average of everybody's.",
        "FTS with distributed exploration: an average for each region of the domain, mostly of those that began there.",
        "FTS whose server averages a random subset of the agents with noise: what one sends is hidden from others.",
        "FTS with distributed exploration whose server averages a random subset of the agents with noise.",
    ),
)
