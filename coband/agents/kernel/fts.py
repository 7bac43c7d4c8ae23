"""Federated Thompson sampling: FTS (Dai et al. 2020), and FTS-DE, DP-FTS and DP-FTS-DE (Dai et al. 2021).
As printed: `tests/oracles/fts.py`. Next: `messages/federated.py`, `server/kernel/fts.py`.

After every turn an agent sends weights omega of M shared random features, drawn from its posterior. For each of P
regions of the domain the server averages those of all agents, with large weights for agents that explore this region at
first (distributed exploration, DE), and sends the P averages to all. At its turn t after the first ones an agent
maximises, with probability 1 - 1/t, a draw from its own posterior, on features of its own that are drawn again; else
phi(x)^T omega_p, p the region of x. FTS has one region.

Under differential privacy (DP) an agent takes part in an average with probability q, its weights are cut to the length
S / sqrt(P), and omega_p = sum phi_np omega_n / q has Gaussian noise of deviation z S max_n phi_np / q. So all P
averages hide as much of what an agent sends as noise z hides of one number, in each round again: a subsampled Gaussian
mechanism. In a run everybody can open every stream; who is to be hidden from needs a server whose noise is its own.

From the authors' program: phi_np is proportional to exp(a) where n explores p first and to exp(b) elsewhere; a stays
for some rounds and then falls to b. The first points are random ones of the region. Ours: an average of nobody is noise
alone (the program draws uniform weights then, which tells), and under DP phi is over all agents, heard so far or not;
points may repeat; kernels are given, where the program fits those of agents; nobody waits: a round ends when the server
has heard something new of everybody, and until the first has ended an agent goes by its own draws.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Annotated, Self

import numpy as np
from pydantic import Field, model_validator

from coband.agents.messages.federated import DrawnWeights, PrivateRegionWeights, RegionWeights
from coband.simulator.arms import ArmSet
from coband.simulator.arrays import FloatArray, IntArray
from coband.simulator.core.algorithm import Algorithm, ClosedForm, MessageSize
from coband.simulator.core.config import Config
from coband.simulator.core.conversations import Talks, on
from coband.simulator.core.nodes.node import SERVER, Address, Agent, NodeContext, Outbox
from coband.simulator.core.nodes.own_noise import OwnNoise, Spent
from coband.simulator.maths.random_features import RandomFeatures, posterior_draw
from coband.simulator.metrics import Metric


class FtsConfig(Config):
    """Parameters of FTS, which are those of all four."""

    features: int = Field(default=100, ge=1)
    """M, random features."""
    length_scale: float = Field(default=0.1, gt=0)
    """Length scale of the squared exponential kernel."""
    variance: float = Field(default=1.0, gt=0)
    """k(x, x)."""
    noise_variance: float = Field(default=0.01, gt=0)
    """Variance of the noise of rewards, of the model."""
    initial: int = Field(default=10, ge=0)
    """Random points of an agent's region before it sends anything."""
    patience: int = Field(default=3, ge=1)
    """A round also ends when an agent has sent so many draws in it, so that agents that are down hold nobody up."""

    @property
    def regions(self) -> int:
        """Equal parts of each coordinate, whose products are the regions."""
        return 1

    def draw_features(self, rng: np.random.Generator, dimension: int) -> RandomFeatures:
        return RandomFeatures(rng, self.features, dimension, self.length_scale, self.variance)

    def total(self, dimension: int) -> int:
        """P."""
        return int(self.regions**dimension)

    def regions_of(self, X: FloatArray) -> IntArray:
        """The region of each row, (n,)."""
        return np.zeros(len(X), dtype=np.int64)

    def misplaced(self, X: FloatArray) -> str:
        """What to say of points for which the regions are not made; empty where there are none."""
        return ""

    def shares(self, agents: int, dimension: int, round: int) -> FloatArray:
        """phi, (P, agents): how much each agent counts in each region."""
        return np.full((1, agents), 1.0 / agents)


class Regions(FtsConfig):
    """Parameters of FTS-DE."""

    splits: int = Field(default=2, ge=1)
    """Equal parts of each coordinate; their products are the P regions."""
    low: float = 0.0
    """Where the domain begins, in each coordinate."""
    high: float = 1.0
    """Where it ends."""
    a: float = Field(default=16.0, ge=0, le=700)
    """An agent counts exp(a), to begin with, in the region that it explores first."""
    b: float = Field(default=1.0, ge=0, le=700)
    """An agent counts exp(b) in the other regions, and in the end everywhere."""
    constant: int = Field(default=10, ge=0)
    """Rounds in which a stays as it is."""
    decay: int = Field(default=30, ge=2)
    """Rounds after these in which a falls to b."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not self.low < self.high:
            raise ValueError(f"low(={self.low:g}) must be < high(={self.high:g}).")
        return self

    @property
    def regions(self) -> int:
        return self.splits

    def regions_of(self, X: FloatArray) -> IntArray:
        """The region of each row, (n,); the first coordinate counts most."""
        cells = np.floor((X - self.low) / (self.high - self.low) * self.splits).astype(np.int64)
        place: IntArray = self.splits ** np.arange(X.shape[1])[::-1]
        return np.clip(cells, 0, self.splits - 1) @ place

    def misplaced(self, X: FloatArray) -> str:
        if not X.size or (X.min() >= self.low and X.max() <= self.high):
            return ""
        return (
            f"arms lie outside of {self.low:g} to {self.high:g} and count to the regions at its border; "
            "give the low and high of the domain"
        )

    def shares(self, agents: int, dimension: int, round: int) -> FloatArray:
        """phi, (P, agents), of a round from 1: agent n explores region n mod P first."""
        P, since = self.total(dimension), round - 1 - self.constant
        a = self.a + (self.b - self.a) * min(max(since, 0) / (self.decay - 1), 1.0)
        own = np.arange(agents) % P == np.arange(P)[:, None]
        shares = np.exp(np.where(own, a, self.b) - max(a, self.b))
        return np.asarray(shares / shares.sum(axis=1, keepdims=True))


class Private(FtsConfig):
    """Parameters of DP-FTS."""

    q: float = Field(default=0.35, gt=0, le=1)
    """With this probability an agent takes part in a round."""
    S: float = Field(default=22.0, gt=0)
    """Weights are cut to the length S / sqrt(P)."""
    z: float = Field(default=1.0, gt=0)
    """Deviation of the noise over what an agent changes in all regions together."""
    delta: Annotated[float, Field(gt=0, lt=1)] = 1e-3
    """With this probability the promise of epsilon may fail."""

    def release(self, rng: np.random.Generator, shares: FloatArray, weights: FloatArray) -> FloatArray:
        """sum over a random subset of phi_np omega_n / q with noise, (P, M), from phi (P, N) and omega (N, M)."""
        chosen, bound = rng.random(len(weights)) < self.q, self.S / math.sqrt(len(shares))
        cut = weights / np.maximum(1.0, np.linalg.norm(weights, axis=1) / bound)[:, None]
        noise = rng.standard_normal((len(shares), weights.shape[1]))
        deviations = self.z * self.S * shares.max(axis=1, keepdims=True) / self.q
        return np.asarray((shares * chosen) @ cut / self.q + deviations * noise)


class PrivateRegions(Regions, Private):
    """Parameters of DP-FTS-DE."""


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
        if (size := self.config.total(self.context.dimension) * self.config.features) > 1_000_000:
            yield f"every round sends {size:,} scalars to each agent; give fewer splits or features"

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
        """Return what an agent has spent that counts most in every region: sqrt(P) times S / sqrt(P) against z S."""
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
        server=f"coband.server.kernel.fts:{'PrivateFtsServer' if private else 'FtsServer'}",
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
