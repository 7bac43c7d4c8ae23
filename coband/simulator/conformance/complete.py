"""Whether everything in a run has come to an end: turns, pulls, waits and copies of messages."""

from __future__ import annotations

from collections import Counter

from coband.simulator.conformance import graphs
from coband.simulator.conformance.demands import demand
from coband.simulator.conformance.runs import Run
from coband.simulator.core.conversations import Talks
from coband.simulator.core.records import trace as tr


def check_complete(result: Run, turns: int | None) -> None:
    """All turns were taken, every pull is with the server or still with its agent, every copy accounted for.

    ``turns``: how many; None for an algorithm that stops by its own rule, and then every agent must have stopped.
    """
    run_result, clients = result.result, result.engine.agents
    waits = [
        sentence for agent in clients if isinstance(agent, Talks) and agent.waiting for sentence in agent.blocked_on
    ]
    where = f": {'; '.join(waits)}" if waits else ""
    if turns is None:
        turns = run_result.turns
        demand(all(agent.done for agent in clients), "an agent has not stopped, though nothing is going on any more")
    demand(run_result.turns == turns, f"{run_result.turns} turns were taken, not {turns}")
    demand(run_result.stalled == 0, f"{run_result.never_taken}{where}")
    server = result.engine.server
    applied = server.applied if server is not None else 0
    unshared = sum(agent.unshared for agent in clients)
    demand(
        applied + unshared == turns,
        f"the server has applied {applied} pulls (Server.applied) and agents keep {unshared} (Client.unshared); "
        f"together that must be the {turns} pulls of the run",
    )
    demand(not any(agent.waiting for agent in clients), f"an agent still waits at the end of the run{where}")
    for kind, copies in run_result.audit.copies.items():
        made, fates = copies.sent + copies.duplicated, copies.delivered + copies.dropped + copies.duplicates
        demand(made == fates, f"{made} copies of {kind!r} were sent or doubled, but {fates} have come to an end")


def check_ledger(result: Run) -> None:
    """The ledger's totals are the sums over the trace's sends."""
    if result.engine.graph is not None:
        graphs.check_conservation(result)
        return
    totals = result.result.totals
    sends = result.events(tr.SEND)
    counted = {
        "scalars": sum(row.scalars * row.value for row in sends),
        "messages": sum(row.value for row in sends),
        "scalars_broadcast_once": sum(row.scalars for row in sends if row.value),
    }
    for name, count in counted.items():
        demand(totals[name] == count, f"the ledger counts {totals[name]} {name}, the trace {count}")
    delivered = Counter(row.message for row in result.events(tr.DELIVER))
    sent = Counter({row.message: int(row.value) for row in sends if row.value})
    demand(delivered == sent, "a message was not delivered exactly once to each of its receivers")
