"""Random numbers from anything but a node's own stream are noticed, however a protocol comes by them."""

import gc
import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.random import default_rng as early

from coband.agents.kernel.one_kernel_ucb import ALGORITHM, OneKernelUCB
from coband.extensions.conformance import NonConformance, kit
from coband.simulator.arms import ArmSet
from coband.simulator.core.algorithm import Algorithm
from coband.simulator.core.nodes.node import NodeContext

OF_THE_MODULE = np.random.default_rng(0)
Draw = Callable[[Any], float]


def drawing(draw: Draw, prepare: Callable[[Any], Any] = lambda agent: None) -> Algorithm:
    """An algorithm whose agents choose by a number in [0, 1)."""

    class Drawing(OneKernelUCB):
        def __init__(self, context: NodeContext) -> None:
            super().__init__(context)
            self.own = prepare(self)

        def choose(self, arms: ArmSet) -> int:
            super().choose(arms)
            return int(draw(self) * len(arms))

    return replace(ALGORITHM, agent=Drawing)


MADE = (
    r"a random generator of its own is made in Drawing\..* \(test_coins.py:\d+\): other replications, or other agents"
)
ELSEWHERE = r"nodes draw from a generator of the whole program or of a module \({}\)"
NUMPY, PYTHON, PCG64 = (ELSEWHERE.format(name) for name in ("MT19937", "Random", "PCG64"))
OTHERS: dict[str, tuple[Algorithm, str]] = {
    "kept": (drawing(lambda agent: agent.own.random(), lambda agent: np.random.default_rng(0)), MADE),
    "by index": (drawing(lambda agent: np.random.default_rng(agent.context.index).random()), MADE),
    "imported": (drawing(lambda agent: early(agent.context.index).random()), MADE),
    "bit generator": (drawing(lambda agent: np.random.Generator(np.random.PCG64(1)).random()), MADE),
    "old": (drawing(lambda agent: np.random.RandomState(1).rand()), MADE),
    "python": (drawing(lambda agent: random.Random(1).random()), MADE),
    "global": (drawing(lambda agent: np.random.rand()), NUMPY),  # noqa: NPY002
    "global, seeded": (drawing(lambda agent: np.random.rand(), lambda agent: np.random.seed(0)), NUMPY),  # noqa: NPY002
    "global, python": (drawing(lambda agent: random.random()), PYTHON),
    "module": (drawing(lambda agent: OF_THE_MODULE.random()), PCG64),
}


@pytest.fixture
def new_ones_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Going through all objects in memory takes long, and shows only generators that were there before a run."""
    monkeypatch.setattr(kit, "_generators", list)


def check(algorithm: Algorithm, install: Callable[[Algorithm], str]) -> None:
    (case,) = [case for case in kit.cases(install(algorithm)) if isinstance(case, kit.Deterministic)]
    case.check()


@pytest.mark.parametrize("draws", [draws for draws, (_, sentence) in OTHERS.items() if sentence == MADE])
def test_generators_that_a_node_makes_are_refused(
    draws: str, install: Callable[[Algorithm], str], new_ones_only: None
) -> None:
    algorithm, sentence = OTHERS[draws]
    with pytest.raises(NonConformance, match=sentence):
        check(algorithm, install)


@pytest.mark.parametrize("draws", [draws for draws, (_, sentence) in OTHERS.items() if sentence != MADE])
def test_numbers_that_are_not_a_nodes_own_are_refused(draws: str, install: Callable[[Algorithm], str]) -> None:
    algorithm, sentence = OTHERS[draws]
    gc.freeze()  # as programs do that want fewer searches for garbage
    with pytest.raises(NonConformance, match=sentence):
        check(algorithm, install)
    assert gc.get_freeze_count() > 0


@pytest.mark.parametrize(
    "draw",
    [
        lambda agent: agent.context.rng.random(),
        lambda agent: np.random.RandomState(agent.context.rng.bit_generator).rand(),
        lambda agent: np.random.default_rng(agent.context.rng).random(),
    ],
)
def test_a_node_may_draw_from_its_own_stream(draw: Draw, install: Callable[[Algorithm], str]) -> None:
    check(drawing(draw), install)
