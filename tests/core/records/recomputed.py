"""A run's numbers once more, from its stored events: what the ledger, the result and the receivers must agree with."""

import math
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np

from coband.extensions.conformance.runs import Run
from coband.simulator.core.nodes.node import SERVER
from coband.simulator.core.records import trace as tr
from coband.simulator.core.records.ledger import DOWN, PEER, UP

ROUNDING = 1e-9
COMPARED = 8
"""Pulls of two agents whose noise is compared."""
ENDS_A_TURN = (tr.TURN, tr.DELIVER, tr.TIMER)


def mismatches(run: Run, world: Any, turns: int) -> Iterator[str]:
    """Yield a sentence for each number of a run that its events do not give.

    Args:
        world: that of the run once more, of which nobody has asked anything yet.
        turns: that every agent has in its schedule, one a unit of time.
    """
    yield from _sent(run)
    yield from _received(run)
    yield from _pulled(run, world, turns)


def _way(row: tr.Row) -> str:
    return DOWN if row.node == SERVER else UP if row.peer == SERVER else PEER


def _sent(run: Run) -> Iterator[str]:
    """Everything that was put on links is in the ledger, and nothing else."""
    ledger, totals, sends = run.result.ledger, run.result.totals, run.events(tr.SEND)
    found: dict[str, Counter[Any]] = {
        "kinds": Counter(),
        "scalars": Counter(),
        "agents": Counter(),
        "rounds": Counter(),
    }
    for row in sends:
        way, copies = _way(row), int(row.value)
        found["kinds"][run.names[row.kind], way] += copies
        found["scalars"][run.names[row.kind], way] += copies * row.scalars
        found["rounds"][row.round] += copies * row.scalars
        if way == UP:
            found["agents"][row.node, way] += row.scalars
    for row in run.events(tr.SEND) if run.engine.graph is None else ():
        for agent in _receivers(run, row) if row.node == SERVER else ():
            found["agents"][agent, DOWN] += row.scalars
    for way, entry in ledger.by_kind.items():
        if (entry.messages, entry.scalars) != (found["kinds"][way], found["scalars"][way]):
            yield f"the ledger counts {entry.messages} of {way} with {entry.scalars} scalars"
    for agent in range(ledger.agents):
        for way, counted in ((UP, ledger.uplink_by_agent[agent]), (DOWN, ledger.downlink_by_agent[agent])):
            if counted != found["agents"][agent, way]:
                yield f"the ledger counts {counted} scalars {way} of agent {agent}"
    if +Counter(dict(ledger.by_round)) != +Counter({number: n for number, n in found["rounds"].items() if number >= 0}):
        yield f"the ledger's scalars by round are {dict(ledger.by_round)}"
    messages, scalars = found["kinds"].total(), found["scalars"].total()
    again, drops = run.events(tr.RETRANSMIT), run.events(tr.DROP)
    doubled = [row for row in run.events(tr.DUPLICATE) if run.names[row.reason] == "link"]
    expected: dict[str, float] = {
        "messages": messages,
        "scalars": scalars,
        "bits": scalars * ledger.scalar_bits + messages * ledger.header_bits,
        "dropped": len(drops),
        "expired": len(run.events(tr.EXPIRE)),
    }
    if run.engine.graph is None:
        expected["scalars_broadcast_once"] = sum(row.scalars for row in sends if row.value)
    for name, number in expected.items():
        if totals[name] != number:
            yield f"the result says {name} = {totals[name]}, the events {number}"
    if ledger.repeated_messages != len(again) or ledger.repeated_scalars != sum(row.scalars for row in again):
        yield f"the ledger counts {ledger.repeated_messages} repeated copies, the events {len(again)}"
    arrived = messages + len(again) + len(doubled) - len(drops)
    if run.engine.transport.mends and ledger.acknowledgements != arrived:
        yield f"the ledger counts {ledger.acknowledgements} acknowledgements of {arrived} copies that arrived"
    if ledger.deliveries is not None and ledger.deliveries != _copies(run.events(tr.DELIVER)):
        yield f"the ledger counts {ledger.deliveries} deliveries of LOCAL messages"


def _copies(rows: list[tr.Row]) -> int:
    return sum(int(row.value) if row.node == tr.EVERYONE else 1 for row in rows)


def _receivers(run: Run, row: tr.Row) -> list[int]:
    """For whom a message of the server is."""
    left_out = run._senders(row) if row.value < len(run.engine.agents) else ()
    everyone = [agent for agent in range(len(run.engine.agents)) if agent not in left_out]
    return everyone if row.peer == tr.EVERYONE else [row.peer]


def _received(run: Run) -> Iterator[str]:
    """In a star everybody is handed what was for it, once, and nothing else, unless it was given up."""
    if run.engine.graph is not None:
        return
    sends = {row.message: row for row in run.events(tr.SEND)}
    due = Counter((row.message, to) for row in sends.values() for to in _for_whom(run, row))
    gone = Counter((row.message, row.peer) for row in run.events(tr.EXPIRE))
    got = Counter((row.message, row.node) for row in run.events(tr.DELIVER))
    for (message, node), count in (got - due).items():
        kind = run.names[sends[message].kind]
        yield f"node {node} was handed a {kind!r} {count} times more often than it was sent to it"
    for message, node in due - got - gone:
        yield f"a {run.names[sends[message].kind]!r} never came to node {node}"


def _for_whom(run: Run, row: tr.Row) -> list[int]:
    return _receivers(run, row) if row.node == SERVER else [row.peer]


def _pulled(run: Run, world: Any, turns: int) -> Iterator[str]:
    """Turns, regret, rewards and curves are those of the pulls."""
    result = run.result
    taken, regrets = Counter[int](), list[float]()
    noise: dict[int, list[float]] = {}
    for choose, reward in zip(run.events(tr.CHOOSE), run.events(tr.REWARD), strict=True):
        taken[choose.node] += 1
        means = world.means(choose.node, taken[choose.node])
        regrets.append(float(means.max() - means[int(choose.value)]))
        noise.setdefault(choose.node, []).append(round(reward.value - float(means[int(choose.value)]), 9))
    rewards, last = run.events(tr.REWARD), max(row.time for row in run.events(tr.REWARD, tr.DELIVER))
    if set(taken.values()) != {turns}:
        yield f"agents take {dict(taken)} turns, of {turns} that their schedule has"
    if any(row.time < row.value for row in run.events(tr.TURN)):
        yield "a turn began before its round"
    numbers: dict[str, tuple[Any, Any]] = {
        "turns": (result.turns, sum(taken.values())),
        "regret": (result.regret, math.fsum(regrets)),
        "reward": (result.reward, math.fsum(row.value for row in rewards)),
        "simulated_time": (result.simulated_time, last),
        "times": (result.times, [row.time for row in rewards]),
        "regret curve": (result.regret_series, np.cumsum(regrets)),
        "scalars curve": (result.scalars_series, list(_scalars(run))) if run.engine.graph is None else (0, 0),
        "regret of agents": (
            [row["regret"] for row in result.by_agent],
            np.bincount([row.node for row in rewards], regrets, len(result.by_agent)),
        ),
    }
    for name, (said, expected) in numbers.items():
        if not np.allclose(said, expected, rtol=ROUNDING, atol=ROUNDING):
            yield f"the result says another {name} than its events"
    server = run.engine.server
    nodes = [*run.engine.agents, *([] if server is None else [server])]
    if result.rounds != max(node.rounds for node in nodes):  # type: ignore[attr-defined]
        yield f"the result says rounds = {result.rounds}"
    series = [tuple(values[:COMPARED]) for values in noise.values()]
    if any(any(values) for values in series) and len(set(series)) < len(series):
        yield "two agents have the same noise in their rewards"


def _scalars(run: Run) -> Iterator[int]:
    """Scalars that were sent until after each turn."""
    scalars, open_turn = 0, False
    for row in run.rows:
        if row.event in ENDS_A_TURN and open_turn:
            yield scalars
            open_turn = False
        open_turn = open_turn or row.event == tr.REWARD
        scalars += row.scalars * int(row.value) if row.event == tr.SEND else 0
    if open_turn:
        yield scalars
