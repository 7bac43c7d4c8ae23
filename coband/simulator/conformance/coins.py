"""Whether nodes draw random numbers from anything but their own streams.

``np.random.default_rng(0)`` in an agent passes every comparison of a run with itself: the run can be repeated. But all
replications, and all agents, draw the same numbers, and a mean over replications says nothing about chance. So

* nobody may make a generator while a node is at work, however it is spelled: numpy takes a lock for each bit generator
  that it makes, and Python's ``random.Random`` is a class whose ``__init__`` can be watched;
* no generator that was there before the run may be drawn from: numpy's and Python's global ones, and those that modules
  and objects hold.
"""

from __future__ import annotations

import gc
import random
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import compress
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
from numpy.random import bit_generator

from coband.simulator.conformance.demands import demand
from coband.simulator.core.nodes.node import Node
from coband.simulator.core.randomness import streams

ADVICE = (
    "other replications, or other agents, draw the same numbers from it, or no run can be repeated. Draw from "
    "self.context.rng, the node's own stream; what wants a RandomState may have "
    "np.random.RandomState(self.context.rng.bit_generator)"
)
LOCK = next((name for name in ("RLock", "Lock") if hasattr(bit_generator, name)), None)
"""What numpy calls for each bit generator that it makes; None: a numpy that does not, whose making is not noticed."""


@contextmanager
def own_coins_only() -> Iterator[None]:
    """Refuse other random numbers than those of the streams in a run that takes place while this is entered.

    Raises:
        NonConformance: a node has made a generator, or drawn from one that was there before.
    """
    made: list[str] = []
    before = [(generator, _state(generator)) for generator in _generators()]
    with _watched(bit_generator, LOCK, made), _watched(random.Random, "__init__", made):
        yield
    demand(not made, f"a random generator of its own is made in {' and in '.join(dict.fromkeys(made))}: {ADVICE}")
    drawn = {type(generator).__name__ for generator, state in before if _state(generator) != state}
    found = " and ".join(sorted(drawn))
    demand(not drawn, f"nodes draw from a generator of the whole program or of a module ({found}): {ADVICE}")


@contextmanager
def _watched(owner: Any, name: str | None, made: list[str]) -> Iterator[None]:
    """Note where nodes are at work when something is called."""
    if name is None:
        yield
        return
    usual: Callable[..., Any] = getattr(owner, name)

    def called(*args: Any, **keywords: Any) -> Any:
        place = _place(sys._getframe(1))
        if place is not None:
            made.append(place)
        return usual(*args, **keywords)

    setattr(owner, name, called)
    try:
        yield
    finally:
        setattr(owner, name, usual)


def _place(frame: FrameType | None) -> str | None:
    """The innermost method of a node that a frame belongs to; None: of none, or it is the streams that are at work."""
    if frame is not None and frame.f_code.co_filename == streams.__file__:
        return None
    while frame is not None:
        code = frame.f_code
        owner = frame.f_locals.get(code.co_varnames[0]) if code.co_argcount else None
        kind = owner if isinstance(owner, type) else type(owner)
        if issubclass(kind, Node):
            return f"{kind.__name__}.{code.co_name} ({Path(code.co_filename).name}:{frame.f_lineno})"
        frame = frame.f_back
    return None


def _generators() -> list[np.random.BitGenerator | random.Random]:
    """All generators that there are; numpy's Generator and RandomState hold a BitGenerator."""
    kinds = _kinds_of(np.random.BitGenerator) | _kinds_of(random.Random) - _kinds_of(random.SystemRandom)
    set_aside = gc.get_freeze_count() > 0
    if set_aside:  # those that somebody has set aside are not listed
        gc.collect()
        gc.unfreeze()
    things = gc.get_objects()
    if set_aside:
        gc.freeze()
    return list(compress(things, map(kinds.__contains__, map(type, things))))  # of half a million, without a loop


def _kinds_of(kind: type[Any]) -> set[type[Any]]:
    """A class and all that are derived from it."""
    return {kind}.union(*map(_kinds_of, kind.__subclasses__()))


def _state(generator: np.random.BitGenerator | random.Random) -> str:
    return repr(generator.getstate() if isinstance(generator, random.Random) else generator.state)
