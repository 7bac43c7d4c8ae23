"""What the algorithms of paper 004 ("Kernel Methods for Cooperative Multi-Agent Contextual Bandits") have in common:
their parameters, and the posterior of what an agent knows about several agents' tasks (equation 9)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BeforeValidator, Field

from agents.messages import Pull
from agents.parameters import AnyKernel
from simulator.core.config import Config
from simulator.core.node import FloatArray, Refusal, Setting
from simulator.maths.augmented import Augmented, Table, augmented
from simulator.maths.canonical import CanonicalPosterior
from simulator.maths.exact import SharedLog
from simulator.maths.growing_nystrom import GrowingNystrom
from simulator.maths.kernels import Gaussian, Kernel, KernelSpec, Linear, Matern, Polynomial, Product, Sum
from simulator.maths.mean_embeddings import PairMeans, similarities
from simulator.maths.primal import PrimalPosterior
from simulator.maths.versions import Recent

PRIMAL_FEATURES = 256
"""Largest number of features with which a linear kernel is computed in the primal."""
GIB = 2.0**30


def _by_kind(value: Any) -> Any:
    return {"kind": value} if isinstance(value, str) else value


class Mmd(Config):
    """K_z is estimated from the arms seen of two agents: exp(-MMD^p / (2 sigma^2)), equations 11 and 12."""

    kind: Literal["mmd"]
    sigma: float = Field(default=1.0, gt=0)
    """Width sigma_z."""
    mmd_power: Literal[1, 2] = 1
    """p: 1 as in equation 11; 2: the Gaussian kernel of the mean embeddings."""
    refresh: int = Field(default=25, ge=1)
    """Trials between two estimates; one is made at once when somebody is heard for the first time."""
    kernel: AnyKernel | None = None
    """The kernel of the mean embeddings; null for the kernel of the arms."""


class Exact(Config):
    """The posterior of equation 9 itself, with a growing factor."""

    kind: Literal["exact"]
    memory: float = Field(default=12.0, gt=0)
    """GiB that the factors of all agents may take together; a scenario that needs more is refused."""


class Nystrom(Config):
    """Statistics over a dictionary of the first points that an agent knows."""

    kind: Literal["nystrom"]
    size: int = Field(default=256, ge=1)
    """Points in the dictionary."""


NetworkKernel = Annotated[Gaussian | Matern | Linear | Polynomial | Product | Sum | Mmd, Field(discriminator="kind")]
Posterior = Annotated[Exact | Nystrom, Field(discriminator="kind")]


class Cooperative(Config):
    """Parameters of all algorithms on a graph."""

    kernel: AnyKernel = Gaussian(gamma=1.0)
    """The kernel K_x of arms."""
    eta: float = Field(default=1.0, ge=0)
    """Exploration: arms are chosen by f_hat + (eta / sqrt(lam)) sigma."""
    lam: float = Field(default=1.0, gt=0)
    """Ridge parameter lambda."""
    hops: Annotated[int, Field(ge=1)] | Literal["half_diameter"] = 1
    """gamma: messages go so many links far; half_diameter: half the graph's diameter, rounded down, at least 1."""
    arm_similarity: float = Field(default=1.0, ge=0, le=1)
    """K_arm of arms in different places of an arm set: 1 pools all arms, 0 learns each place apart (appendix D.1)."""
    posterior: Annotated[
        Posterior, BeforeValidator(_by_kind, json_schema_input_type=Literal["exact", "nystrom"] | Posterior)
    ] = Exact(kind="exact")
    """exact, or {kind: nystrom, size: m}; linear kernels are exact in the primal whatever it says."""


class WithTasks(Cooperative):
    """Parameters of algorithms that tell tasks apart."""

    network_kernel: Annotated[
        NetworkKernel | None, BeforeValidator(_by_kind, json_schema_input_type=Literal["mmd"] | NetworkKernel | None)
    ] = None
    """The kernel K_z of network contexts; mmd: estimated; null: K_z = 1, all agents have the same task."""
    composition: Literal["product", "sum"] = "product"
    """How K_z and K_x make K."""


def network_kernel(config: Cooperative) -> KernelSpec | Mmd | None:
    """K_z: a kernel of contexts, how to estimate it, or None for 1."""
    return config.network_kernel if isinstance(config, WithTasks) else None


class Knowledge:
    """The posterior of one agent on its own pulls and those that it has accepted.

    Args:
        setting: the agent's.
        members: the agents whose pulls it accepts, itself among them, in ascending order.
    """

    def __init__(self, setting: Setting, members: tuple[int, ...]) -> None:
        self._setting, self._members = setting, members
        self._config: Cooperative = setting.config
        self._network = network_kernel(self._config)
        self.estimates = isinstance(self._network, Mmd)
        if self._network is not None and not self.estimates and setting.context is None:
            raise Refusal(
                "network_kernel needs a problem that tells agents their contexts (problem.kind: network); with others "
                "use network_kernel: mmd, or null"
            )
        self.tells_context = self._network is not None and not self.estimates
        self._task = self._task_of(setting.index, setting.context)
        self._seen: list[Pull] = []
        self._heard: set[int] = set()
        self._posterior: CanonicalPosterior | PrimalPosterior | GrowingNystrom
        self._age = 0
        self._foreseen: tuple[FloatArray, FloatArray] | None = None
        if not self.estimates:
            self._start(self._network, ())

    def primal(self) -> bool:
        """Whether the kernel is computed in the primal, where data take no memory."""
        return is_primal(self._setting, self._members)

    def learn(self, pulls: Sequence[Pull]) -> None:
        """Take in new observations, all at once."""
        pulls = sorted(pulls, key=lambda pull: (pull.trial, pull.agent))
        if self.estimates:
            pulls = self._estimate(pulls)
        if pulls:
            self._add(pulls)

    def foresee(self, X: FloatArray) -> None:
        """The arms X (n, d) that ``moments`` will be asked about next."""
        if isinstance(self._posterior, CanonicalPosterior):
            P = self._points(X)
            self._foreseen = (X, P)
            self._posterior.log.foresee(P)

    def moments(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean and variance sigma^2/lam of the agent's own task at the arms X (n, d), each (n,)."""
        if isinstance(self._posterior, PrimalPosterior):
            return self._posterior.moments(np.repeat(self._task[None], len(X), axis=0), X)
        if self._foreseen is not None and self._foreseen[0] is X:
            return self._posterior.moments(self._foreseen[1])
        return self._posterior.moments(self._points(X))

    def _points(self, X: FloatArray) -> FloatArray:
        tasks = np.repeat(self._task[None], len(X), axis=0)
        return self._augmented.points(tasks, X, np.arange(len(X)))

    def _task_of(self, agent: int, context: FloatArray | None) -> FloatArray:
        if self.estimates:
            return np.array([float(agent)])
        return np.empty(0) if self._network is None or context is None else context

    def _estimate(self, pulls: list[Pull]) -> list[Pull]:
        """Estimate K_z anew when it is time to; then all observations are new to the posterior."""
        self._age += 1
        senders = {pull.agent for pull in pulls}
        first_heard = not senders <= self._heard
        self._seen += pulls
        self._heard |= senders
        assert isinstance(self._network, Mmd)
        if self._age < self._network.refresh and not first_heard:
            return pulls
        self._age = 0
        self._seen.sort(key=lambda pull: (pull.trial, pull.agent))
        keys = tuple((pull.trial, pull.agent) for pull in self._seen)
        recent: Recent[FloatArray] = self._setting.sharing.get(("similarities", self._members), Recent)
        self._start(recent.get(keys, self._similarities), keys)
        if isinstance(self._posterior, PrimalPosterior):
            begun: Recent[PrimalPosterior] = self._setting.sharing.get(("begun", self._members), Recent)
            self._posterior = begun.get(keys, self._begun).copied()
            return []
        return self._seen

    def _begun(self) -> PrimalPosterior:
        """The posterior that has just been started, with all that is known."""
        self._add(self._seen)
        assert isinstance(self._posterior, PrimalPosterior)
        return self._posterior

    def _similarities(self) -> FloatArray:
        assert isinstance(self._network, Mmd)
        kernel = self._config.kernel if self._network.kernel is None else self._network.kernel
        means = self._setting.sharing.get("pair means", lambda: PairMeans(kernel))
        pulls: dict[int, list[Pull]] = {}
        for pull in self._seen:
            pulls.setdefault(pull.agent, []).append(pull)
        seen = {
            agent: (tuple(pull.trial for pull in own), np.array([pull.point for pull in own]))
            for agent, own in pulls.items()
        }
        return similarities(means, seen, self._setting.agents, self._network.sigma, self._network.mmd_power)

    def _start(self, network: Any, first: tuple[tuple[int, int], ...]) -> None:
        """Begin a posterior with the kernel K_z ``network``; ``first``: keys of what it will be given at once."""
        config, dimension = self._config, self._setting.dimension
        composition = config.composition if isinstance(config, WithTasks) else "product"
        self._augmented = augmented(
            config.kernel, network, len(self._task), dimension, composition, config.arm_similarity
        )
        if self.primal():
            assert isinstance(config.kernel, Linear)
            kernel: Kernel | None = Table(network, 0) if isinstance(network, np.ndarray) else network
            self._posterior = PrimalPosterior(config.kernel, kernel, dimension, config.lam, composition == "sum")
        elif isinstance(config.posterior, Nystrom):
            self._posterior = GrowingNystrom(self._augmented.kernel, config.lam, config.posterior.size)
        else:
            self._posterior = self._canonical(self._augmented, first)

    def _canonical(self, kernel: Augmented, first: tuple[tuple[int, int], ...]) -> CanonicalPosterior:
        """On the log that all agents share who accept the same observations, and began with the same ones."""
        logs: Recent[SharedLog] = self._setting.sharing.get(("logs", self._members), Recent)
        log = logs.get(first, lambda: SharedLog(kernel.kernel, self._config.lam))
        if first:
            log.extend(0, *self._arrays(self._seen)[1:])
        return CanonicalPosterior(log, self._members, first)

    def _arrays(self, pulls: Sequence[Pull]) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Tasks (n, s), augmented points (n, .) and rewards (n,) of observations."""
        tasks = np.array([self._task_of(pull.agent, pull.context) for pull in pulls])
        X = np.array([pull.point for pull in pulls])
        places = np.array([pull.place or 0 for pull in pulls])
        return tasks, self._augmented.points(tasks, X, places), np.array([pull.reward for pull in pulls])

    def _add(self, pulls: Sequence[Pull]) -> None:
        tasks, P, y = self._arrays(pulls)
        posterior = self._posterior
        if isinstance(posterior, PrimalPosterior):
            posterior.add(tasks, np.array([pull.point for pull in pulls]), y)
        elif isinstance(posterior, GrowingNystrom):
            posterior.add(P, y)
        elif pulls is not self._seen:  # those that a posterior begins with are in its log
            posterior.add([(pull.trial, pull.agent) for pull in pulls], P, y)


def is_primal(setting: Setting, members: tuple[int, ...]) -> bool:
    """Whether a linear K_x with so many tasks has few enough features."""
    config: Cooperative = setting.config
    if not isinstance(config.kernel, Linear) or config.arm_similarity < 1.0:
        return False
    network, tasks = network_kernel(config), len(members)
    if network is None:
        tasks = 1
    elif isinstance(network, Linear) and setting.context is not None:
        tasks = min(tasks, len(setting.context) + 1)
    adds_up = isinstance(config, WithTasks) and config.composition == "sum"
    per_task = 1 if adds_up else setting.dimension + 1
    return tasks * per_task + setting.dimension <= PRIMAL_FEATURES


def check_memory(setting: Setting, groups: Sequence[tuple[int, ...]]) -> None:
    """Refuse exact factors that do not fit.

    Args:
        setting: of any of the agents.
        groups: whose observations each agent accepts; agents with the same group share a factor.

    Raises:
        Refusal: with the estimate, 4 n^2 bytes for each factor of n observations.
    """
    config: Cooperative = setting.config
    if setting.horizon is None or not isinstance(config.posterior, Exact):
        return
    factors = list(groups) if not setting.sharing.on else list(dict.fromkeys(groups))
    factors = [group for group in factors if not is_primal(setting, group)]
    needed = sum(4.0 * (len(group) * setting.horizon) ** 2 for group in factors) / GIB
    if needed > config.posterior.memory:
        largest = max(len(group) for group in factors) * setting.horizon
        raise Refusal(
            f"exact posteriors of {len(factors)} groups of agents with up to {largest:,} observations need about "
            f"{needed:,.0f} GiB, more than posterior.memory allows ({config.posterior.memory:g}); use posterior: "
            "{kind: nystrom, size: 256}, fewer turns, or a sparser graph"
        )
