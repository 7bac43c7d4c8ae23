"""CLUB and GoB.Lin as plain loops: one program that is told of every user's pulls and chooses for all users.

Sources: "Online Clustering of Bandits" (Gentile, Li and Zappella 2014), figure 1, with the bounds of its experiments;
"A Gang of Bandits" (Cesa-Bianchi, Gentile and Zappella 2013), figure 2.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from tests.oracles import World, best
from tests.oracles.local import Adjacency, Flooding
from tests.oracles.posterior import FloatArray


class Recommender(ABC):
    """What the program knows; ``known`` pulls."""

    def __init__(self) -> None:
        self.known = 0

    @abstractmethod
    def bound(self, user: int, x: FloatArray) -> float:
        """The upper confidence bound of an arm of a user."""

    @abstractmethod
    def learn(self, user: int, x: FloatArray, y: float) -> None:
        """A user's pull."""

    def choose(self, world: World, user: int, arms: FloatArray) -> int:
        """The arm with the largest bound."""
        return best(world, user, [self.bound(user, x) for x in arms])


class Club(Recommender):
    """Figure 1 of the CLUB paper; links are tested after the pull."""

    def __init__(self, users: int, dimension: int, links: set[frozenset[int]], config: dict[str, float]) -> None:
        super().__init__()
        self.users, self.config, self.links = users, config, set(links)
        self.M = [config["lam"] * np.eye(dimension) for _ in range(users)]
        self.b = [np.zeros(dimension) for _ in range(users)]
        self.T = [0] * users

    def cluster(self, user: int) -> set[int]:
        """Users connected with a user."""
        found, todo = {user}, [user]
        while todo:
            one = todo.pop()
            for other in range(self.users):
                if other not in found and frozenset((one, other)) in self.links:
                    found.add(other)
                    todo.append(other)
        return found

    def bound(self, user: int, x: FloatArray) -> float:
        lam, d = self.config["lam"], len(x)
        M, b = lam * np.eye(d), np.zeros(d)
        for other in self.cluster(user):
            M = M + self.M[other] - lam * np.eye(d)
            b = b + self.b[other]
        t = self.known + 1
        width = self.config["alpha"] * np.sqrt(x @ np.linalg.inv(M) @ x * np.log(t + 1))
        return float(np.linalg.inv(M) @ b @ x + width)

    def radius(self, user: int) -> float:
        """CB~ of a user."""
        return float(self.config["alpha_2"] * np.sqrt((1 + np.log(1 + self.T[user])) / (1 + self.T[user])))

    def learn(self, user: int, x: FloatArray, y: float) -> None:
        self.known += 1
        self.T[user] += 1
        self.M[user] = self.M[user] + np.outer(x, x)
        self.b[user] = self.b[user] + y * x
        w = [np.linalg.solve(M, b) for M, b in zip(self.M, self.b, strict=True)]
        for other in range(self.users):
            if other != user and np.linalg.norm(w[user] - w[other]) > self.radius(user) + self.radius(other):
                self.links.discard(frozenset((user, other)))


class Gang(Recommender):
    """Figure 2 of the GoB.Lin paper, in V d coordinates."""

    def __init__(self, adjacency: Adjacency, dimension: int, config: dict[str, float], theory: bool) -> None:
        super().__init__()
        users = len(adjacency)
        A = np.eye(users)
        for user, neighbours in enumerate(adjacency):
            A[user, user] += len(neighbours)
            for other in neighbours:
                A[user, other] -= 1
        values, vectors = np.linalg.eigh(np.kron(A, np.eye(dimension)))
        self.root = vectors @ np.diag(values**-0.5) @ vectors.T
        self.config, self.users, self.theory = config, users, theory
        self.M, self.b = np.eye(users * dimension), np.zeros(users * dimension)

    def phi(self, user: int, x: FloatArray) -> FloatArray:
        """(A kron I)^(-1/2) times the arm in the block of the user."""
        return np.asarray(self.root @ np.kron(np.eye(self.users)[user], x))

    def bound(self, user: int, x: FloatArray) -> float:
        phi = self.phi(user, x)
        deviation = np.sqrt(phi @ np.linalg.solve(self.M, phi))
        factor = self.config["alpha"] * np.sqrt(np.log(self.known + 2))
        if self.theory:
            log_det = np.linalg.slogdet(self.M)[1]
            factor = self.config["sub_gaussian"] * np.sqrt(log_det - np.log(self.config["delta"])) + self.config["norm"]
        return float(np.linalg.solve(self.M, self.b) @ phi + factor * deviation)

    def learn(self, user: int, x: FloatArray, y: float) -> None:
        phi = self.phi(user, x)
        self.known += 1
        self.M = self.M + np.outer(phi, phi)
        self.b = self.b + y * phi


@dataclass
class CentralRun:
    """Pulls (agent, turn, arm, reward, regret) in order of time, messages counted, and what is known at the end."""

    pulls: list[tuple[int, int, int, float, float]] = field(default_factory=list)
    deliveries: int = 0
    transmissions: int = 0
    programs: list[Recommender] = field(default_factory=list)


def centrally(steps: Sequence[Sequence[int]], world: World, program: Recommender) -> CentralRun:
    """The original: one program for all users; users of one step choose by what was known before it."""
    out, turns = CentralRun(programs=[program]), dict[int, int]()
    for step in steps:
        told = []
        for user in step:
            turn = turns[user] = turns.get(user, 0) + 1
            arms = world.arms(user, turn)
            arm = program.choose(world, user, arms)
            y, regret = world.pull(user, turn, arm)
            out.pulls.append((user, turn, arm, y, regret))
            told.append((user, arms[arm], y))
        for user, x, y in told:
            program.learn(user, x, y)
    return out


def on_graph(
    trials: int, adjacency: Adjacency, hops: int, world: World, program: Callable[[], Recommender]
) -> CentralRun:
    """Every agent runs a program of its own on what has reached it, by trial and agent."""
    V = len(adjacency)
    out, flooding = CentralRun(programs=[program() for _ in range(V)]), Flooding(adjacency, hops)
    pulled: dict[tuple[int, int], tuple[FloatArray, float]] = {}
    news: list[list[tuple[int, int]]] = [[] for _ in range(V)]

    def learn(v: int) -> None:
        for trial, user in sorted(news[v]):
            out.programs[v].learn(user, *pulled[trial, user])
        news[v].clear()

    for t in range(1, trials + 1):
        for v in range(V):
            learn(v)
            arms = world.arms(v, t)
            arm = out.programs[v].choose(world, v, arms)
            y, regret = world.pull(v, t, arm)
            out.pulls.append((v, t, arm, y, regret))
            pulled[t, v] = arms[arm], y
            news[v].append((t, v))
        late = hops if t == trials else 0  # what is under way at the end still arrives
        for sent in [[(t, v) for v in range(V)], *[[]] * late]:
            for v, message in flooding.trial(sent):
                news[v].append(message)
    for v in range(V):
        learn(v)
    out.deliveries, out.transmissions = flooding.deliveries, flooding.transmissions
    return out
