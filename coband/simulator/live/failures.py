"""Errors of nodes in one sentence: a message from another process may be of the right types and make no sense."""

from __future__ import annotations

import traceback
from pathlib import Path
from typing import NoReturn

from coband.simulator.arrays import TooLarge
from coband.simulator.core.nodes.message import Message
from coband.simulator.core.nodes.mistakes import NodeMistake
from coband.simulator.core.nodes.node import SERVER, Address, Node, Outbox
from coband.simulator.core.records.invariants import InvariantViolation
from coband.simulator.experiments.runs.job import JobFailure
from coband.simulator.experiments.scenario.loading import BAD_INPUT
from coband.simulator.live.codec import WireError
from coband.simulator.live.terms import LiveError
from coband.simulator.scenario_errors import BrokenOff

TELLING: tuple[type[Exception], ...] = (InvariantViolation, JobFailure, BrokenOff, TooLarge, WireError, *BAD_INPUT)
"""Errors whose text says all that a user needs."""
LIBRARIES = {"numpy", "scipy"}


def explain(error: Exception, what: str) -> NoReturn:
    """Raise an error again, or, if a user would need a traceback to understand it, another one that tells it.

    Args:
        what: what failed.
    """
    if isinstance(error, TELLING) or (isinstance(error, NodeMistake) and error.placed):
        raise error
    places = traceback.extract_tb(error.__traceback__)
    place = next((one for one in reversed(places) if LIBRARIES.isdisjoint(Path(one.filename).parts)), places[-1])
    text = f"{type(error).__name__}: {error}".partition("\n")[0]
    where = f"{Path(place.filename).name}, line {place.lineno}"
    raise LiveError(f"{what}: {text} ({where}); if the algorithm is at fault, `coband run` shows more") from error


def guard(node: Node) -> None:
    """Let errors name the message in whose handling they happen, and its sender."""
    receive, own = node.receive, called(node.context.index)

    def guarded(message: Message, source: Address) -> Outbox:
        try:
            return receive(message, source)
        except Exception as error:
            explain(error, f"{own} cannot take the {message.kind} of {called(source)}")

    node.receive = guarded  # type: ignore[method-assign]


def called(node: Address) -> str:
    """How a node is called."""
    return "the server" if node == SERVER else f"agent {node}"
