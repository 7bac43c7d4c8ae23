"""Algorithms and a registry for tests of scenario files; nothing here ever does anything."""

from typing import ClassVar, Literal

from pydantic import Field

from coband.simulator.arms import ArmSet
from coband.simulator.arrays import FloatArray
from coband.simulator.core.algorithm import Algorithm, ClosedForm, MessageSize, Needs
from coband.simulator.core.config import Config
from coband.simulator.core.nodes.message import Message, payload
from coband.simulator.core.nodes.node import Address, Agent, Outbox, Server
from coband.simulator.experiments.registry.registry import Registry
from coband.simulator.maths.kernels.library import Gaussian
from coband.simulator.maths.kernels.registry import AnyKernel
from coband.simulator.metrics import Metric
from coband.simulator.problems import classification, contextual


class Vector(Message):
    kind: ClassVar[str] = "upload"
    numbers: FloatArray = payload()


class Silent(Agent):
    def choose(self, arms: ArmSet) -> int:
        return 0

    def observe(self, arms: ArmSet, arm: int, reward: float) -> Outbox:
        return []

    def receive(self, message: Message, source: Address) -> Outbox:
        return []


class Quiet(Server):
    def receive(self, message: Message, source: Address) -> Outbox:
        return []


class AsyncConfig(Config):
    kernel: AnyKernel = Gaussian(gamma=1.0)
    """The kernel."""
    alpha: float = Field(default=1.0, ge=0)
    """Exploration."""
    transfer: Literal["full", "delta"] = "full"
    steps: int = Field(default=30, ge=1, le=100)
    blocking: bool = False
    dims: list[int] = Field(default=[], max_length=3)


class LocalConfig(Config):
    beta: float = Field(gt=0)


ASYNC = Algorithm(
    name="async_kernel_ucb",
    agent=Silent,
    server="tests.experiments.registry.plugins:Quiet",
    config=AsyncConfig,
    summary="Talks.",
    reference="Li et al. 2023, Algorithm 1",
    messages=(MessageSize(Vector, "up", "m + 1", "at each exchange"),),
    counts=(ClosedForm("uplink_scalars", "rounds*(m + 1)", "not blocking"),),
    where={"m": "2*d"},
    metrics=(Metric("naps", "naps", "how often an agent dozes", better="lower", locked=True),),
)
LOCAL = Algorithm(
    name="local_ucb",
    agent=Silent,
    server=None,
    config=LocalConfig,
    summary="Is silent.",
    reference="ours",
    needs=Needs(reliable=False, ordered=True, problems=("clusters",), fixed_arms=True),
)
PROBLEMS = {"clusters": classification.PROBLEM, "contextual": contextual.PROBLEM}
REGISTRY = Registry(
    algorithms={"async_kernel_ucb": ASYNC, "local_ucb": LOCAL},
    problems=PROBLEMS,
    broken={"duets": "ModuleNotFoundError: No module named 'torch'"},
)

SCENARIO = """\
name: quick
seed: 7
replications: 3
agents:
  count: 5
  compute: {kind: exponential, rate: 2}
schedule: {kind: one_at_a_time, turns: 1e3}
network:
  latency: 5e-2
  loss: 0.1
problem:
  kind: contextual
  arms: {kind: ball, dimension: 4, count: 3}
  reward: {kind: cosine}
algorithms:
  - {algorithm: async_kernel_ucb, label: Async, kernel: {kind: gaussian, gamma: 0.1}, alpha: 0.1}
  - {algorithm: async_kernel_ucb, label: Bold, alpha: 4}
expect:
  - {label: Async, count: uplink_scalars, at_most: 2e7}
"""
