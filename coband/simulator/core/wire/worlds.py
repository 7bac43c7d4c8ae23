"""Worlds that the wire changes: those that lie about rewards to some agents, within a budget, and those whose pulls are
bounded, so that noise can hide them, and noised if agents add the noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from coband.simulator.arms import ArmSet
from coband.simulator.arrays import FloatArray
from coband.simulator.core.nodes.node import UnsupportedScenario
from coband.simulator.core.randomness.streams import Streams
from coband.simulator.core.wire.adversaries import Adversary
from coband.simulator.core.wire.behaviours import RewardPoisoning
from coband.simulator.core.wire.noising import Noising
from coband.simulator.core.wire.privacy import Privacy
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


class VeiledArms(ArmSet):
    """What an agent learns of its arms after a pull: the point of the pulled one is noised.

    Attributes:
        offered: the arms that it has chosen from.
    """

    __slots__ = ("offered",)

    def __init__(self, features: FloatArray, offered: ArmSet) -> None:
        super().__init__(features)
        self.offered = offered


class PrivateWorld:
    """A world with clipped arms and rewards; the regret is that of the world.

    Args:
        world: the truth.
        privacy: what is asked for.
        noising: the noise of the run.
    """

    def __init__(self, world: World, privacy: Privacy, noising: Noising) -> None:
        self._world, self._clip, self._noising = world, privacy.clip, noising
        local = privacy.mechanism.local
        if in_batches(world):
            raise UnsupportedScenario(
                "messages.privacy clips the point and the reward of each pull, and this problem is pulled in batches; "
                "choose another problem"
            )
        if local and world.fixed_arms and self._clip.points is not None:
            raise UnsupportedScenario(
                "messages.privacy: laplace_local cannot hide which arm was pulled where all turns have the same arms, "
                "which everybody knows; set clip.points: null and leak: allow, so that only rewards are private"
            )
        self._noisy_points = self._clip.points if local else None
        self._noisy_rewards = self._clip.rewards if local else None
        self._over: dict[tuple[int, int], Any] = {}
        self._fixed: FloatArray | None = None
        upcoming = getattr(world, "upcoming", None)
        if upcoming is not None:
            self.upcoming = lambda agent, turn: self._ahead(upcoming(agent, turn), agent, turn)
        if self._noisy_points is not None:
            self.veiled = self._veiled

    def __getattr__(self, name: str) -> Any:
        return getattr(self._world, name)

    def arms(self, agent: int, turn: int) -> FloatArray:
        """Arms of a turn, none longer than the clip."""
        if not self._world.fixed_arms:
            return self._clipped(self._world.arms(agent, turn), agent, turn)
        if self._fixed is None:
            self._fixed = self._clipped(self._world.arms(agent, turn), 0, 0)
        return self._fixed

    def _ahead(self, arm_sets: FloatArray, agent: int, turn: int) -> FloatArray:
        return np.array([self._clipped(rows, agent, turn + number) for number, rows in enumerate(arm_sets)])

    def _clipped(self, rows: FloatArray, agent: int, turn: int) -> FloatArray:
        most = self._clip.points
        if most is None:
            return rows
        norms = np.linalg.norm(rows, axis=1)
        over = norms > most
        if not over.any():
            return rows
        self._over[agent, turn] = over
        shortened = rows * np.where(over, most / np.maximum(norms, most), 1.0)[:, None]
        shortened.flags.writeable = False
        return shortened

    def pull(self, agent: int, turn: int, arm: int) -> tuple[float, float]:
        """What the agent is told, and its true regret."""
        reward, regret = self._world.pull(agent, turn, arm)
        most = self._clip.rewards
        told = reward if most is None else max(-most, min(most, reward))
        over = self._over.get((0, 0)) if self._world.fixed_arms else self._over.pop((agent, turn), None)
        self._noising.pulled(agent, told != reward or (over is not None and bool(over[arm])))
        if self._noisy_rewards is not None:
            told += float(self._noising.on_pull(agent, turn, "reward", 1, self._noisy_rewards)[0])
        return told, regret

    def _veiled(self, agent: int, turn: int, arms: ArmSet, arm: int) -> ArmSet:
        """The arms with noise on the pulled one; of Euclidean norm r in d dimensions, its L1 norm is at most
        sqrt(d) r."""
        features = arms.features.copy()
        most = self._noisy_points
        assert most is not None
        size = features.shape[1]
        features[arm] += self._noising.on_pull(agent, turn, "point", size, math.sqrt(size) * most)
        return VeiledArms(features, arms)
