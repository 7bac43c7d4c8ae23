"""What a resolved scenario says about the setting that theorems are about."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def facts(scenario: Mapping[str, Any]) -> dict[str, Any]:
    """N, d where the arms have a dimension, and whether there are delays and losses.

    Args:
        scenario: with all defaults, as it is stored.
    """
    agents, network = scenario.get("agents") or {}, scenario.get("network") or {}
    found = {"N": agents.get("count", 1), "delays": _delays(scenario), "losses": _losses(agents, network)}
    dimension = _dimension(scenario.get("problem") or {})
    return found if dimension is None else {**found, "d": dimension}


def _dimension(problem: Mapping[str, Any]) -> int | None:
    """The dimension of the arms, where the problem says it or lists them; None where a file does."""
    for key in ("arms", "domain"):
        found = problem.get(key)
        if isinstance(found, Mapping) and isinstance(found.get("dimension"), int):
            return int(found["dimension"])
        if isinstance(found, list) and found and isinstance(found[0], list):
            return len(found[0])
    return None


def _delays(scenario: Mapping[str, Any]) -> bool:
    agents, network, server = (scenario.get(key) or {} for key in ("agents", "network", "server"))
    times = [*map(agents.get, ("compute", "handling", "reward_delay")), server.get("handling"), network.get("latency")]
    rates = [network.get("bandwidth"), *(network.get("server") or {}).values()]
    rules = network.get("links") or []
    times += [rule.get("latency") for rule in rules]
    rates += [rule.get("bandwidth") for rule in rules]
    again = _loses(network) and network.get("transport") == "reliable"  # what is lost is sent again later
    slow = bool(agents.get("population")) or any(map(_takes_time, times)) or any(rate is not None for rate in rates)
    return slow or again


def _loses(network: Mapping[str, Any]) -> bool:
    """Whether links lose copies."""
    return any(bool(part.get("loss")) for part in (network, *(network.get("links") or [])))


def _takes_time(distribution: Any) -> bool:
    """Whether a duration is not 0 for certain."""
    if isinstance(distribution, Mapping):
        return distribution.get("kind") != "constant" or bool(distribution.get("value"))
    return bool(distribution)


def _losses(agents: Mapping[str, Any], network: Mapping[str, Any]) -> bool:
    up = (agents.get("availability") or {}).get("kind", "always") == "always"
    lost = _loses(network) and network.get("transport") != "reliable"
    up = up and not any(map(agents.get, ("population", "energy", "joins", "leaves", "restart")))
    return bool(lost or not up or network.get("partitions") or network.get("outages"))
