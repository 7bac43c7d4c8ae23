"""Worlds that lie about rewards to some agents, within a budget."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from coband.simulator.core.nodes.node import UnsupportedScenario
from coband.simulator.core.randomness.streams import Streams
from coband.simulator.core.wire.adversaries import Adversary
from coband.simulator.core.wire.behaviours import RewardPoisoning
from coband.simulator.core.world import World, in_batches


class PoisonedWorld:
    """A world whose rewards are false for some agents; all else is that of the world, regret included.

    Args:
        world: the truth.
        adversaries: those of a scenario; of several that poison one agent, the first.
        agents: how many there are.
        streams: of the replication.
        now: the simulated time.
    """

    def __init__(
        self, world: World, adversaries: Sequence[Adversary], agents: int, streams: Streams, now: Callable[[], float]
    ) -> None:
        if in_batches(world):
            raise UnsupportedScenario(
                "adversaries: reward_poisoning changes the reward of a pull, and this problem is pulled in batches; "
                "choose a behaviour that changes messages"
            )
        self._world, self._now = world, now
        self._of: dict[int, Adversary] = {}
        self._left: dict[int, float] = {}
        for number, one in enumerate(adversaries):
            if isinstance(one.behaviour, RewardPoisoning):
                for agent in one.drawn(number, agents, streams) - self._of.keys():
                    self._of[agent], self._left[agent] = one, one.behaviour.budget

    def __getattr__(self, name: str) -> Any:
        return getattr(self._world, name)

    def pull(self, agent: int, turn: int, arm: int) -> tuple[float, float]:
        """What the agent is told, and its true regret."""
        reward, regret = self._world.pull(agent, turn, arm)
        adversary = self._of.get(agent)
        if adversary is None or not adversary.acts(self._now()):
            return reward, regret
        assert isinstance(adversary.behaviour, RewardPoisoning)
        wanted = -(1.0 + adversary.behaviour.scale) * reward
        change = min(abs(wanted), self._left[agent])
        self._left[agent] -= change
        return reward + (change if wanted > 0 else -change), regret
