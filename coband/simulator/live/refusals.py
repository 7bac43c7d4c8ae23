"""What cannot run live, in one sentence each."""

from __future__ import annotations

from coband.simulator.core.nodes.node import UnsupportedScenario
from coband.simulator.core.wire.encodings import Delta
from coband.simulator.experiments.runs.study import Study
from coband.simulator.experiments.runs.variant import Variant
from coband.simulator.experiments.scenario.scenario import Scenario
from coband.simulator.live.forms import EXACT_BITS


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
            "in a live run nodes go down when their processes are killed; agents.availability and network.outages are "
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
