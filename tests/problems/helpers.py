"""Streams and worlds for the tests of problems."""

import zlib
from typing import Any

import numpy as np

from coband.simulator.problems.contextual import ContextualProblem
from coband.simulator.problems.world import Streams, World

BALL = {"kind": "ball", "dimension": 5, "count": 7}
SPHERE = {"kind": "sphere", "dimension": 3, "count": 4, "radius": 2.0}
BOX = {"kind": "box", "dimension": 2, "count": 6, "low": [-1.0, 0.0], "high": 3.0}
POOL = {"kind": "pool", "dimension": 3, "size": 12, "count": 5}
WHOLE_POOL = {"kind": "pool", "dimension": 3, "size": 12, "from": "box"}
GAUSSIAN = {"kind": "gaussian", "gamma": 0.5}

ARMS = [BALL, SPHERE, BOX, POOL, WHOLE_POOL]
REWARDS = [
    {"kind": "cosine"},
    {"kind": "cubic", "form": "async", "theta": "sphere"},
    {"kind": "cubic", "form": "duets"},
    {"kind": "rkhs", "kernel": GAUSSIAN, "centres": 8},
]


def named_streams(seed: int = 0) -> Streams:
    """Streams that depend on their names and a seed alone."""

    def stream(role: str, entity: int, purpose: str) -> np.random.Generator:
        key = (zlib.crc32(role.encode()), entity, zlib.crc32(purpose.encode()))
        return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key))

    return stream


def problem(**parts: Any) -> ContextualProblem:
    return ContextualProblem.model_validate({"kind": "contextual", "arms": BALL, "reward": {"kind": "cosine"}, **parts})


def world(seed: int = 0, agents: int = 3, **parts: Any) -> World:
    return problem(**parts).build(named_streams(seed), agents)


def record(one: World, turns: list[tuple[int, int]], arm: int = 0) -> list[tuple[bytes, bytes, float, float]]:
    """Arms, means, reward and regret of the (agent, turn) pairs, exact to the last bit."""
    return [(one.arms(a, t).tobytes(), one.means(a, t).tobytes(), *one.pull(a, t, arm)) for a, t in turns]
