"""What the number of an event means, in words: ``value``, or what a node has noted, which only its algorithm knows."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache

from coband.simulator.core.nodes.node import Node
from coband.simulator.experiments.registry.registry import Registry
from coband.simulator.experiments.store.store import Event

WITHOUT_NUMBER = {
    "wait": "waits for messages",
    "resume": "goes on",
    "down": "is down, since {} ago",
    "up": "is up again, since {} ago",
    "violation": "an invariant does not hold",
    "expire": "given up after copy {}",
}
NUMBERS = {"turn": "turn {}", "choose": "arm {}", "reward": "reward {}", **WITHOUT_NUMBER}
COPIES = ("deliver", "drop", "duplicate", "retransmit")
NOTES = ("trigger", "apply", "model", "eliminate", "stop")
"""Events that nodes note themselves; their number is in ``detail``."""


def meaning(event: Event, algorithm: str) -> str:
    """What an event's number means; empty if it has none."""
    found = _number(event, algorithm)
    return f"{found}, because: {event.reason}" if event.reason else found


def _number(event: Event, algorithm: str) -> str:
    value = f"{event.value or 0.0:.6g}"
    if event.event in NOTES:
        return _noted(event, algorithm)
    if event.event == "send":
        return f"to {value} receiver{'' if value == '1' else 's'}"
    if event.event in COPIES:
        return f"{value} copies" if event.node == "everyone" else f"copy {value}"
    text = NUMBERS.get(event.event, "").format(value).replace(", since 0 ago", " from now on" * (event.event == "down"))
    pulls = _detail(event).get("pulls")
    return text if pulls is None else f"{text}, {'mean of ' if event.event == 'reward' else ''}{pulls} pulls"


def content(event: Event) -> str:
    """What ``trace: full`` keeps of an event beside its numbers, as JSON; empty if there is nothing."""
    kept = bool(event.detail) and event.event not in NOTES and "pulls" not in _detail(event)
    return f"{'arms' if event.event == 'choose' else 'content'}: {event.detail}" if kept else ""


def _noted(event: Event, algorithm: str) -> str:
    title = meanings(algorithm).get(event.event)
    if title is None:
        return "" if event.detail in (None, "0") else f"noted: {event.detail}"
    return f"{title}: {event.detail}"


def _detail(event: Event) -> dict[str, object]:
    try:
        found = json.loads(event.detail or "{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


@cache
def meanings(algorithm: str) -> Mapping[str, str]:
    """What the nodes of an algorithm note, by event; nothing if it is not installed."""
    found = Registry.installed().algorithms.get(algorithm)
    if found is None:
        return {}
    nodes: list[type] = [found.agent]
    if (server := found.server_class) is not None:
        nodes.append(server)
    bases = [base for node in nodes for base in reversed(node.__mro__) if issubclass(base, Node)]
    return {event: text for base in bases for event, text in vars(base).get("noted", {}).items()}
