"""A run without delays beside its oracle: what tests of several algorithms have in common."""

from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from coband.extensions.conformance.runs import Run, algorithm, plan_of, problem_of, run, world
from coband.simulator.core.engine import Engine
from coband.simulator.core.randomness.streams import Streams
from tests.oracles import with_ties
from tests.oracles.kernels import plain


def beside(
    name: str, oracle: ModuleType, config: dict[str, Any], plan: dict[str, Any], **further: Any
) -> tuple[Run, Any]:
    """A run of a plan with ``agents``, ``seed``, ``problem`` and ``schedule``, and the oracle's on the same world.

    The oracle is given all parameters, and as ``T`` the turns of an agent where the algorithm knows them, or what
    ``horizon`` says if that is less.

    Args:
        further: what it is given beside the parameters.
    """
    simulated = run(name, config, **{"checks": "cheap", **plan})
    return simulated, oracle_of(name, oracle, config, plan, simulated, **further)


def oracle_of(
    name: str, oracle: ModuleType, config: dict[str, Any], plan: dict[str, Any], simulated: Run, **further: Any
) -> Any:
    """What an oracle does on the world and the turns of a run."""
    agents, streams, schedule = plan["agents"], Streams(plan["seed"]), plan["schedule"]
    steps = [[agent] for agent, *_ in simulated.pulls]
    if schedule["kind"] == "rounds":
        steps = [list(range(agents))] * schedule["turns"]
    given = dict(algorithm(name).config.model_validate(config))
    if "horizon" in algorithm(name).facts:
        known = simulated.engine.agents[0].context.horizon
        given["T"] = min(known, given["horizon"] or known) if "horizon" in given else known
    kernel = plain(config["kernel"]) if "kernel" in config else None
    drawn = with_ties(world(plan["problem"], plan["seed"], agents), streams.ties)
    return oracle.run(steps, drawn, kernel, SimpleNamespace(**given | further), streams.coin, agents)


def assert_equal(simulated: Run, expected: Any) -> None:
    """The same pulls, regret, messages, scalars and rounds; between two nodes messages are in the same order."""
    assert simulated.pulls == [pull[:4] for pull in expected.pulls]
    assert simulated.result.regret == pytest.approx(sum(pull[4] for pull in expected.pulls), abs=1e-9)
    assert _by_link(simulated.messages) == _by_link(expected.messages)
    totals = simulated.result.totals
    assert (totals["uplink_scalars"], totals["downlink_scalars"]) == (expected.uplink, expected.downlink)
    assert simulated.result.rounds == expected.rounds


def _by_link(messages: Any) -> list[Any]:
    return sorted(messages, key=lambda message: (str(message[1]), str(message[2])))


def schedule_of(kind: int, agents: int, turns: int) -> dict[str, Any]:
    """Rounds (1), or one agent at a time (0), with so many turns of each agent."""
    return {"kind": "rounds", "turns": turns} if kind else {"kind": "one_at_a_time", "turns": turns * agents}


def agent_of(name: str, config: dict[str, Any], **further: Any) -> Any:
    """An agent that has not pulled yet; ``further``: parameters as well."""
    plan = plan_of({"agents": {"count": 2}, "schedule": {"kind": "rounds", "turns": 30}, "network": {}})
    entry = algorithm(name)
    given = entry.config.model_validate({**config, **further})
    return Engine(plan, entry, given, world(problem_of(name), 0, 2), Streams(0)).agents[0]
