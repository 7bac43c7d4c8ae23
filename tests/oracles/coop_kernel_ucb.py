"""Coop-, Eager-, Naive- and Dist-KernelUCB as plain loops (Dubey and Pentland 2020, "Kernel Methods for Cooperative
Multi-Agent Contextual Bandits", Algorithms 1 to 3): one inverse per agent, grown by Schur complements.

Line 11 prints 1/K + lam for the inverse of the first Gram matrix; 1/(K + lam) is meant. The inverse is that of
K + lam I, as in line 27 and equation 9.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from tests.oracles import Coins, World, best
from tests.oracles.local import Adjacency, Flooding, distances
from tests.oracles.posterior import FloatArray

Pair = Callable[["Observation", "Observation"], float]


@dataclass(frozen=True)
class Observation:
    """One pull: own turn number, agent, arm, reward (nan for a candidate)."""

    trial: int
    agent: int
    x: FloatArray
    y: float = float("nan")


class Learner:
    """(K_vt)^(-1), y_v and kappa_v of one agent."""

    def __init__(self, K: Pair, lam: float) -> None:
        self.K, self.lam = K, lam
        self.seen: list[Observation] = []
        self.inverse = np.zeros((0, 0))

    def kappa(self, at: Observation) -> FloatArray:
        return np.array([self.K(at, other) for other in self.seen])

    def add(self, new: Observation) -> None:
        """Lines 25 to 31."""
        if not self.seen:
            self.inverse = np.array([[1.0 / (self.K(new, new) + self.lam)]])
        else:
            kappa = self.kappa(new)
            solved = self.inverse @ kappa
            K22 = 1.0 / (self.K(new, new) + self.lam - kappa @ solved)
            K11 = self.inverse + K22 * np.outer(solved, solved)
            K12 = -K22 * solved
            self.inverse = np.block([[K11, K12[:, None]], [K12[None, :], np.array([[K22]])]])
        self.seen.append(new)

    def moments(self, at: Observation) -> tuple[float, float]:
        """f_hat and sigma, lines 34 and 35; sigma is not divided by sqrt(lam)."""
        if not self.seen:
            return 0.0, float(np.sqrt(self.K(at, at)))
        kappa = self.kappa(at)
        mean = kappa @ self.inverse @ np.array([item.y for item in self.seen])
        return float(mean), float(np.sqrt(max(0.0, self.K(at, at) - kappa @ self.inverse @ kappa)))

    def log_det(self) -> float:
        """log det(I + K/lam)."""
        if not self.seen:
            return 0.0
        gram = np.array([self.kappa(item) for item in self.seen])
        return float(np.linalg.slogdet(np.eye(len(self.seen)) + gram / self.lam)[1])


def lemma_1(learner: Learner, agents: int, norm: float, noise: float, delta: float) -> float:
    """beta_(v,t) of Lemma 1: B + R sqrt(ln(det(lam I + K_(v,t)) / delta^2) + 2 ln V).

    With lam < 1: B + R / sqrt(lam) sqrt(ln(det(I + K_(v,t) / lam) / delta^2) + 2 ln V).
    """
    n = len(learner.seen)
    gram = np.array([learner.kappa(item) for item in learner.seen]).reshape(n, n)
    if learner.lam < 1:
        root = np.sqrt(learner.log_det() - 2 * np.log(delta) + 2 * np.log(agents))
        return norm + noise / float(np.sqrt(learner.lam)) * float(root)
    determinant = float(np.linalg.slogdet(learner.lam * np.eye(n) + gram)[1]) if n else 0.0
    return norm + noise * float(np.sqrt(determinant - 2 * np.log(delta) + 2 * np.log(agents)))


def igp_ucb(learner: Learner, norm: float, noise: float, delta: float) -> float:
    """beta_t of IGP-UCB (Chowdhury and Gopalan 2017): B + R sqrt(2 (gamma + 1 + ln(1/delta))), gamma = log_det / 2.

    With lam < 1 R is divided by sqrt(lam).
    """
    factor = noise if learner.lam >= 1 else noise / float(np.sqrt(learner.lam))
    return norm + factor * float(np.sqrt(2 * (learner.log_det() / 2 + 1 + np.log(1 / delta))))


@dataclass
class CoopRun:
    """Pulls (agent, trial, arm, reward, regret) in order of time, messages counted, and the learners at the end."""

    pulls: list[tuple[int, int, int, float, float]] = field(default_factory=list)
    deliveries: int = 0
    transmissions: int = 0
    learners: list[Learner] = field(default_factory=list)


def run(
    trials: int,
    adjacency: Adjacency,
    world: World,
    K: Pair,
    config: object,
    coins: Coins,
    accepts: Sequence[set[int]],
    centres: dict[int, int] | None = None,
    similarity: Callable[[int, list[Observation]], Pair] | None = None,
    width: Callable[[Learner], float] | None = None,
) -> CoopRun:
    """Algorithms 1 to 3.

    Args:
        K: kernel of two augmented points.
        config: anything with ``eta``, ``lam``, ``hops``, and ``refresh`` where the kernel is estimated; ``delay`` "d"
            for messages that are received after the pull of a trial (section 3.1), not before it (section 1).
        coins: private stream of an agent, for the first trial: ``integers(number of arms)``.
        accepts: whose messages each agent takes in: its clique (Coop) or anybody's (Eager, Naive).
        centres: Dist only, the centre of every agent; a central agent is its own.
        width: the factor before sigma, from what an agent has learnt; None for eta / sqrt(lam).
        similarity: where the network kernel is estimated: from an agent and all it knows to the kernel from now on.
    """
    V, eta, lam = len(adjacency), config.eta, config.lam  # type: ignore[attr-defined]
    flooding, out = Flooding(adjacency, config.hops), CoopRun()  # type: ignore[attr-defined]
    streams = [coins(v) for v in range(V)]
    out.learners = [Learner(K, lam) for _ in range(V)]
    buffers: list[list[Observation]] = [[] for _ in range(V)]
    waiting: list[list[tuple[int, int]]] = [[] for _ in range(V)]  # (trial, sender) that arrived after the last pull
    late = int(getattr(config, "delay", "d_minus_1") == "d")
    sent: dict[tuple[int, int], Observation] = {}
    last: dict[int, Observation] = {}
    age = [0] * V

    def take_in(v: int) -> None:
        """What has arrived at v can be used from its next trial on."""
        centre = v if centres is None else centres[v]
        for message in waiting[v]:
            if centre == v and message[1] in accepts[v]:
                buffers[v].append(sent[message])
            elif centre == message[1]:
                last[v] = sent[message]
        waiting[v].clear()

    for t in range(1, trials + 1):
        for v in range(V):
            learner, new = out.learners[v], sorted(buffers[v], key=lambda item: (item.trial, item.agent))
            buffers[v] = []
            if similarity is None:
                for item in new:
                    learner.add(item)
            elif t > 1:
                known = {item.agent for item in learner.seen}
                age[v] += 1
                if age[v] >= config.refresh or any(item.agent not in known for item in new):  # type: ignore[attr-defined]
                    everything = sorted([*learner.seen, *new], key=lambda item: (item.trial, item.agent))
                    out.learners[v] = learner = Learner(similarity(v, everything), lam)
                    new, age[v] = everything, 0
                for item in new:
                    learner.add(item)
            arms = world.arms(v, t)
            centre = v if centres is None else centres[v]
            if centre != v and t > distances(adjacency, v)[centre] + late:
                arm = next(k for k, x in enumerate(arms) if np.array_equal(x, last[v].x))
            elif t == 1:
                arm = int(streams[v].integers(len(arms)))
            else:
                scores, beta = [], eta / np.sqrt(lam) if width is None else width(learner)
                for x in arms:
                    mean, sigma = learner.moments(Observation(t, v, x))
                    scores.append(mean + beta * sigma)
                arm = best(world, v, scores)
            y, regret = world.pull(v, t, arm)
            out.pulls.append((v, t, arm, y, regret))
            sent[t, v] = Observation(t, v, arms[arm], y)
            if centre == v or t <= distances(adjacency, v)[centre] + late:
                buffers[v].append(sent[t, v])
            if late:
                take_in(v)
        under_way = config.hops if t == trials else 0  # type: ignore[attr-defined]
        for new_messages in [[(t, v) for v in range(V)], *[[]] * under_way]:  # what is under way still arrives
            for v, message in flooding.trial(new_messages):
                waiting[v].append(message)
        for v in range(0 if late else V):
            take_in(v)
    out.deliveries, out.transmissions = flooding.deliveries, flooding.transmissions
    for v in range(V if similarity is None else 0):
        for item in sorted(buffers[v], key=lambda item: (item.trial, item.agent)):
            out.learners[v].add(item)
    return out


def mmd_squared(kernel: Callable[[FloatArray, FloatArray], FloatArray], first: FloatArray, second: FloatArray) -> float:
    """Equation 12 with the mean over pairs that the text leaves out."""
    total = 0.0
    for A, B, sign in ((first, first, 1.0), (second, second, 1.0), (first, second, -2.0)):
        pairs = kernel(A, B).ravel().tolist()  # of a in A with b in B
        total += sign * sum(pairs) / len(pairs)
    return max(0.0, total)
