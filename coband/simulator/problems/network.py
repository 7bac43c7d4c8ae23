"""Agents with different tasks; the more alike their network contexts, the more alike their tasks.

Dubey and Pentland 2020 ("Kernel Methods for Cooperative Multi-Agent Contextual Bandits"), sections 3 and 5: f_v(x) =
F(z_v, x) with F from the RKHS of K.

    K((z, x), (z', x')) = K_z(z, z') K_x(x, x')     or K_z + K_x

The paper does not say how F is drawn. Here F = sum_j a_j K((z_j, x_j), .), scaled to a given norm, where a_j is
standard normal, z_j is the context of a random agent, and x_j is a point of the arms' domain. An algorithm that
estimates K_z from arms needs arms whose distribution depends on the task; the paper does not say how it does. With
``shift`` the arms of agent v lie around a centre that is a linear function of z_v.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import numpy.typing as npt
from pydantic import Field

from coband.simulator.arrays import FloatArray
from coband.simulator.core.config import Config, JsonObject
from coband.simulator.core.world import World
from coband.simulator.maths.graphs.covers import centres, classes_of, greedy_colouring, half_diameter, power_graph
from coband.simulator.maths.kernels.base import KernelSpec
from coband.simulator.maths.kernels.multitask import Augmented, augmented
from coband.simulator.maths.kernels.registry import AnyKernel
from coband.simulator.metrics import Metric
from coband.simulator.problems.arms import ArmSource, ArmSpec, uniform_ball, uniform_sphere
from coband.simulator.problems.contextual import ContextualWorld
from coband.simulator.problems.problem import DataError, Problem, ProblemEntry, Streams, check_columns
from coband.simulator.problems.rewards import NoiseSpec, RewardFunction, as_noise, means_of
from coband.simulator.problems.rkhs import RkhsFunction
from coband.simulator.problems.world import FixedArmsWorld, Noise, read_only

Distances = npt.NDArray[np.int64]
MOST_CONTEXTS = 2_000
"""With more agents the rank of K_z takes too long for a number beside the result."""


def heterogeneity(kernel: KernelSpec | None, contexts: FloatArray) -> int:
    """Upsilon_z = rank(K_z), K_z = (K_z(z_v, z_u)) over all agents (Dubey and Pentland 2020, Definition 2): 1 if tasks
    are the same.

    Args:
        kernel: K_z; None for 1.
        contexts: z_v, (agents, d_z).
    """
    if kernel is None:
        return 1
    distinct = np.unique(contexts, axis=0)
    return int(np.linalg.matrix_rank(kernel(distinct, distinct), hermitian=True))


class Measured:
    """Numbers about an instance of agents with different tasks."""

    contexts: FloatArray
    network_kernel: KernelSpec | None

    @property
    def measures(self) -> dict[str, int]:
        """The heterogeneity of the tasks; nothing with too many agents."""
        if len(self.contexts) > MOST_CONTEXTS:
            return {}
        return {"heterogeneity": heterogeneity(self.network_kernel, self.contexts)}


class SameContext(Config):
    """z_v = 1 for all agents: they have the same task."""

    kind: Literal["same"]

    def draw(self, rng: np.random.Generator, agents: int, distances: Distances | None) -> FloatArray:
        return np.ones((agents, 1))


class RandomContext(Config):
    """Independent and uniform contexts."""

    kind: Literal["ball", "sphere"]
    """ball: uniform in the l2 unit ball; sphere: on it."""
    dimension: int = Field(ge=1)
    """Coordinates of a context."""

    def draw(self, rng: np.random.Generator, agents: int, distances: Distances | None) -> FloatArray:
        draw = uniform_ball if self.kind == "ball" else uniform_sphere
        return draw(rng, (agents,), self.dimension)


class ClusterContext(Config):
    """One of several tasks, chosen by the agent's position in the graph; contexts are unit vectors."""

    kind: Literal["clusters"]
    hops: Annotated[int, Field(ge=1)] | Literal["half_diameter"] = "half_diameter"
    """gamma of the power graph G_gamma, which joins all agents at most gamma links apart."""
    around: Literal["centres", "colours"] = "centres"
    """centres: every agent has the task of a centre at most gamma links away (the centres are an independent set of
    G_gamma), so neighbours tend to have the same task; colours: tasks are the colours of a colouring of G_gamma, so
    agents within gamma links never have the same task."""

    def draw(self, rng: np.random.Generator, agents: int, distances: Distances | None) -> FloatArray:
        if distances is None:
            raise DataError("problem.contexts: kind clusters needs a graph of agents; give network.topology one")
        hops = half_diameter(distances) if self.hops == "half_diameter" else self.hops
        graph = power_graph(distances, hops)
        groups = greedy_colouring(graph) if self.around == "colours" else list(centres(graph).centre_of)
        contexts = np.zeros((agents, len(set(groups))))
        for number, members in enumerate(classes_of(groups)):
            contexts[list(members), number] = 1.0
        return contexts


ContextSpec = Annotated[SameContext | RandomContext | ClusterContext, Field(discriminator="kind")]


class TaskFunction:
    """f_v(x) = F(z_v, x) of one agent."""

    def __init__(self, kernel: Augmented, function: RkhsFunction, context: FloatArray) -> None:
        self._kernel, self._function, self._context = kernel, function, context

    def __call__(self, arms: FloatArray) -> FloatArray:
        turns, count, dimension = arms.shape
        tasks = np.broadcast_to(self._context, (turns * count, len(self._context)))
        points = self._kernel.points(tasks, arms.reshape(-1, dimension))
        return self._function(points.reshape(turns, count, -1))

    def describe(self) -> JsonObject:
        return {"context": self._context.tolist(), **self._function.describe()}


class NetworkWorld(Measured, ContextualWorld):
    """Fresh arms at each turn; every agent has its own reward function and its own centre of arms."""

    def __init__(
        self, source: ArmSource, rewards: list[RewardFunction], noise: Noise, streams: Streams, centres: FloatArray
    ) -> None:
        super().__init__(source, rewards[0], noise, streams, len(rewards))
        self._rewards, self._centres = rewards, centres

    def reward_of(self, agent: int) -> RewardFunction:
        return self._rewards[agent]

    def shift_arms(self, agent: int, arms: FloatArray) -> FloatArray:
        shifted: FloatArray = arms + self._centres[agent]
        return shifted


class FixedNetworkWorld(Measured, FixedArmsWorld):
    """One arm set for all turns of all agents; every agent has its own reward function."""


class NetworkProblem(Problem):
    """Every agent has its own task: f_v(x) = F(z_v, x), with F from the RKHS of K."""

    kind: Literal["network"]
    """Agents with network contexts and different tasks."""
    arms: ArmSpec
    """How the arm set of a turn is drawn."""
    contexts: ContextSpec = SameContext(kind="same")
    """The agents' network contexts z_v."""
    kernel: AnyKernel
    """K_x, the kernel of arms."""
    network_kernel: AnyKernel | None = None
    """K_z, the kernel of contexts; null: K_z = 1."""
    composition: Literal["product", "sum"] = "product"
    """product: K = K_z K_x; sum: K = K_z + K_x."""
    norm: float = Field(default=1.0, gt=0)
    """||F||_K."""
    centres: int = Field(default=100, ge=1)
    """Number of centres (z_j, x_j) of F."""
    shift: float = Field(default=0.0, ge=0)
    """Distance from the origin to the centre of an agent's arms, for a context that is a unit vector of an axis, as
    those of clusters; of others it is shift ||sum_i z_i u_i||, with random unit vectors u_i."""
    noise: NoiseSpec = Field(default=0.1)
    """Noise of a reward; a number is the standard deviation of Gaussian noise."""

    def build(self, streams: Streams, agents: int, base: Path | None = None) -> World:
        return self._world(None, streams, agents)

    def build_on(self, distances: Distances, streams: Streams, agents: int, base: Path | None = None) -> World:
        """Draw contexts, F and centres from the streams (world, 0, contexts | reward | shift).

        Raises:
            DataError: F is zero on the arms' domain, so it cannot be scaled to `norm`.
        """
        return self._world(distances, streams, agents)

    def _world(self, distances: Distances | None, streams: Streams, agents: int) -> World:
        source = self.arms.build(streams)
        contexts = read_only(self.contexts.draw(streams("world", 0, "contexts"), agents, distances))
        rewards = self._rewards(streams("world", 0, "reward"), source, contexts)
        noise = as_noise(self.noise)
        world: NetworkWorld | FixedNetworkWorld
        if source.fixed is not None and self.shift > 0:
            raise DataError(
                "problem.shift: all agents have one arm set, which has no centre of theirs; give arms.count"
            )
        if source.fixed is not None:
            means = np.array([means_of(reward, source.fixed[None])[0] for reward in rewards])
            truth = {**rewards[0].describe(), "contexts": contexts.tolist()}
            world = FixedNetworkWorld(source.fixed, means, noise, streams, truth)
        else:
            directions = uniform_sphere(streams("world", 0, "shift"), (contexts.shape[1],), source.dimension)
            world = NetworkWorld(source, rewards, noise, streams, self.shift * (contexts @ directions))
        world.contexts, world.network_kernel = contexts, self.network_kernel
        return world

    def _rewards(self, rng: np.random.Generator, source: ArmSource, contexts: FloatArray) -> list[RewardFunction]:
        tasks = contexts[:, :0] if self.network_kernel is None else contexts
        check_columns(self.kernel, source.dimension, "problem.kernel")
        if self.network_kernel is not None:
            check_columns(self.network_kernel, tasks.shape[1], "problem.network_kernel")
        kernel = augmented(self.kernel, self.network_kernel, tasks.shape[1], source.dimension, self.composition)
        arms = np.ascontiguousarray(source.domain(rng, self.centres))
        of_agents = tasks[rng.integers(len(tasks), size=self.centres)]
        points = kernel.points(of_agents, arms)
        function = RkhsFunction(kernel.kernel, points, rng.standard_normal(self.centres))
        if not function.norm > 0.0:
            raise DataError(f"problem.norm(={self.norm}) is out of reach: the kernels vanish on the arms' domain")
        function = RkhsFunction(kernel.kernel, points, function.weights * (self.norm / function.norm))
        return [TaskFunction(kernel, function, task) for task in tasks]


PROBLEM = ProblemEntry(
    name="network",
    config=NetworkProblem,
    summary="agents with network contexts: f_v(x) = F(z_v, x), F drawn from the RKHS of a kernel of both",
    reference="Dubey and Pentland 2020 (Kernel Methods for Cooperative Multi-Agent Contextual Bandits), sections 3, 5",
    cites=("dubey2020kernel",),
    metrics=(
        Metric("heterogeneity", "tasks", "Upsilon_z = rank(K_z), K_z the problem's kernel of all agents' contexts"),
    ),
)
