"""How a live run is made, what cannot run live, and what goes wrong with one, each in one sentence."""

from __future__ import annotations

import traceback
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import NoReturn

from coband import Address, Message, Node, Outbox, UnsupportedScenario
from coband.extending import (
    RAISED,
    BrokenOff,
    Delta,
    JobFailure,
    NodeMistake,
    RequestError,
    Scenario,
    Study,
    TooLarge,
    Variant,
    called,
    invariants,
    loading,
)
from coband.extensions.live import frames
from coband.extensions.live.codec import WireError
from coband.extensions.live.payloads import EXACT_BITS

TELLING: tuple[type[Exception], ...] = (
    invariants.InvariantViolation,
    JobFailure,
    BrokenOff,
    TooLarge,
    WireError,
    *loading.BAD_INPUT,
)
"""Errors whose text says all that a user needs."""
LIBRARIES = {"numpy", "scipy"}


def explain(error: BaseException, what: str) -> NoReturn:
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
        except RAISED as error:
            explain(error, f"{own} cannot take the {message.kind} of {called(source)}")

    node.receive = guarded  # type: ignore[method-assign]


PROTOCOL = 6
"""Version of what hub and stations say to each other."""
SHORTEST_TOKEN = 16
"""Characters of a token where other machines can connect."""


class LiveError(RequestError, JobFailure):
    """A live run cannot go on; the text says why."""


@dataclass(frozen=True)
class Terms:
    """How a run is made.

    Attributes:
        speed: seconds of one unit of simulated time; 0 for virtual time.
        share: agents of each station, unless it asks for another number.
        token: what stations show.
        largest: bytes of the largest frame.
        host, port: where stations connect; port 0: any that is free.
        start: whether this machine's own stations are started; False: all come from elsewhere.
    """

    speed: float
    share: int
    token: str
    largest: int = frames.LARGEST
    host: str = "127.0.0.1"
    port: int = 0
    start: bool = True


def is_exposed(host: str) -> bool:
    """Whether other machines can connect to an address of this one."""
    try:
        return not ip_address(host).is_loopback
    except ValueError:
        return host != "localhost"


def check_token(host: str, token: str) -> None:
    """Refuse a token that can be guessed, where others may try.

    Raises:
        UnsupportedScenario: the text says why, and what to do.
    """
    if is_exposed(host) and len(token) < SHORTEST_TOKEN:
        raise UnsupportedScenario(
            f"--token has {len(token)} characters; with --host {host}, to which other machines can connect, it must "
            f"have {SHORTEST_TOKEN} or more: who overhears a greeting can try guesses at leisure. Without --token a "
            "good one is drawn, and printed with --join"
        )


def refuse(study: Study) -> None:
    """Refuse a study that cannot run live.

    Raises:
        UnsupportedScenario: the text says why, and what to do.
    """
    for variant in study.variants:
        if (reason := refusal(variant)) is not None:
            raise UnsupportedScenario(f"{variant.entry}: {reason}")


def refusal(variant: Variant) -> str | None:
    """Why a variant cannot run live; None if it can."""
    scenario = variant.scenario
    if scenario.network.graph is not None:
        return "live runs have a star; messages that agents of a graph pass on hop by hop are for `coband run`"
    if getattr(scenario.problem, "drift", None) is not None:
        return (
            "live every agent's process has its own copy of the world and a clock of its own, so they would meet "
            "different parameters; problem.drift is for `coband run` (--set problem.drift=null, or leave it out)"
        )
    if scenario.agents.population is not None:
        return (
            "live the agents are processes on machines, which have the speed, the links and the availability that they "
            "have; agents.population is for `coband run` (--set agents.population=null, or leave it out)"
        )
    if scenario.agents.changing:
        return (
            "live an agent is there while its process runs; agents.joins and agents.leaves are for `coband run` "
            "(--set agents.joins=null --set agents.leaves=null, or leave them out)"
        )
    if scenario.agents.energy is not None:
        return (
            "live the agents are processes on machines, whose batteries no simulator empties; agents.energy is for "
            "`coband run` (--set agents.energy=null, or leave it out)"
        )
    if scenario.agents.intermittent or scenario.network.outages:
        return (
            "in a live run agents are lost when processes are killed; agents.availability and network.outages are "
            "for `coband run` (--set agents.availability=null, or leave them out)"
        )
    if scenario.checks == "full":
        return "checks: full looks into all nodes at once, which live are in different processes; use checks: cheap"
    return _of_wire(scenario)


def _of_wire(scenario: Scenario) -> str | None:
    """Why what is done to messages cannot be done live."""
    messages, defence = scenario.messages, scenario.server.aggregate
    for adversary in scenario.adversaries:
        if adversary.behaviour.colludes:
            return (
                f"adversaries: {adversary.behaviour.kind} knows what honest agents send, "  # type: ignore[attr-defined]
                "who live are in other processes; choose another behaviour, or use `coband run`"
            )
    privacy, bits = messages.privacy, scenario.network.scalar_bits
    if privacy is not None and (privacy.adversary, privacy.unit) == ("others", "agent"):
        return (
            "messages.privacy: live the server's process does not know how many pulls agents have made, on which what "
            "adversary: others spends of unit: agent depends; use unit: pull, or `coband run`"
        )
    if any(isinstance(one, Delta) and one.of.acknowledged for one in messages.encoding.used):
        return "messages.encoding: live a delta of a delta is not taken apart; use one delta"
    wired = not messages.plain or scenario.adversaries or not defence.sums
    if wired and bits != EXACT_BITS:
        return (
            f"network.scalar_bits is {bits}, and on a socket an exact number takes {EXACT_BITS}; leave it out, and "
            "have numbers shortened by messages.encoding"
        )
    return None
