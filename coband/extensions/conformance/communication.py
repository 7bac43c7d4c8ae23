"""Whether a run sends what the algorithm declares (sizes of messages, closed forms, names of metrics), whether payloads
are finite numbers and headers hold nothing learnt, and whether everything has come to an end.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from coband import SERVER, Address, ClosedForm, Declined, FloatArray, Message, MessageSize
from coband.extending import (
    BatchAgent,
    Server,
    Talks,
    attributes,
    by_name,
    formulas,
    in_batches,
    invariants,
    ledger,
    reals,
)
from coband.extending import trace as tr
from coband.extensions.conformance import graphs
from coband.extensions.conformance.demands import NonConformance, demand
from coband.extensions.conformance.runs import Run, algorithm, registry

HEADER = (bool, int, str, np.integer, np.bool_, type(None))
"""What a header field may hold, by itself or in a tuple."""


def stowaway(message: Message) -> str | None:
    """Return the name of an attribute that is not payload and carries more than a header may; None: there is none."""
    declared = {item.name: item.metadata.get("payload", False) for item in fields(message)}
    for name in (name for name, is_payload in declared.items() if not is_payload):
        value = getattr(message, name)
        if not all(isinstance(item, HEADER) for item in (value if isinstance(value, tuple) else (value,))):
            return name
    undeclared = [name for name in vars(message) if name not in declared and not hasattr(type(message), name)]
    return min(undeclared, default=None)


def unfinite(message: Message) -> str | None:
    """Return the name of a payload field that holds NaN, or an array with infinity; None: there is none.

    A single infinity is larger than all other numbers, as the loss of a model without data, and may be meant.
    """
    return next((name for name in message.payload_fields() if not _is_finite(getattr(message, name))), None)


def _is_finite(value: object) -> bool:
    if isinstance(value, tuple | list):
        return all(map(_is_finite, value))
    if is_dataclass(value):
        return all(_is_finite(getattr(value, item.name)) for item in fields(value))
    if isinstance(value, float):
        return not math.isnan(value)
    numbers = np.asarray(0.0 if value is None else value)
    return not np.issubdtype(numbers.dtype, np.inexact) or bool(np.isfinite(numbers).all())


IN_A_ROUND = {"uplink_scalars": ledger.UP, "downlink_scalars": ledger.DOWN, "peer_scalars": ledger.PEER}
"""What can be said of every communication round, and where to look for it."""
UNTOLD = (
    "no message carries pulls, so that what the server has applied cannot be checked; give uploads pulls=self.unshared"
)
Sent = tuple[Message, str, int, int]
"""A message that was sent: it, its direction, scalars of one copy, number of copies."""


def check_messages(name: str, run: Run) -> None:
    """Every message is declared, has the size that its formula says, and holds what it may."""
    for row, message in zip(run.events(tr.SEND), run.sent, strict=True):
        hidden, wrong = stowaway(message), unfinite(message)
        text = f"{hidden!r} of a {message.kind!r} of node {row.node} is not payload and more than a header may be"
        demand(hidden is None, text)
        demand(wrong is None, f"{type(message).__name__}.{wrong} of node {row.node} is not finite")
    entry, everywhere = algorithm(name), common(run)
    for message, direction, scalars, _ in sent(run):
        if isinstance(message, Declined):  # of every protocol in conversations; no payload
            continue
        what = f"a {message.kind!r} message that goes {direction}"
        values = entry.quantities(everywhere, run.engine.config, message)
        found = [size for size in entry.messages if _speaks_of(size, message, direction, values)]
        demand(bool(found), f"{what} was sent, of which Algorithm.messages of {name} says nothing")
        for size in found:
            expected = formulas.evaluate(size.size, values)
            if expected != scalars:
                explained = f"{size.size} = {expected:,} scalars ({_given(size.size, values)})"
                raise NonConformance(f"{what} has {scalars:,} scalars, but Algorithm.messages says {explained}")


def check_closed_forms(name: str, run: Run, schedule: str) -> None:
    """Every closed form that applies gives what the run counts."""
    entry = algorithm(name)
    totals = {**common(run), **run_quantities(run, schedule)}
    values = entry.quantities(totals, run.engine.config)
    for form in entry.counts:
        if form.when and not formulas.evaluate(form.when, values):
            continue
        if form.each == "round":
            _check_rounds(name, run, form)
        else:
            known = ", ".join(sorted(totals))
            demand(form.count in totals, f"Algorithm.counts of {name} names {form.count!r}; there is {known}")
            _check_form(f"the run counts {form.count} =", totals[form.count], form, values)


def check_sums(run: Run) -> None:
    """A server that takes in pulls can say how its statistics differ from the sum over the uploads."""
    server = run.engine.server
    uploads = [
        (row.node, message) for row, message in zip(run.events(tr.SEND), run.sent, strict=True) if row.peer == SERVER
    ]
    loaded = [place for place, (_, message) in enumerate(uploads) if message.pulls]
    demand(bool(loaded) or not any(message.scalars for _, message in uploads), UNTOLD)
    if server is None or not loaded:
        return
    name = type(server).__name__
    demand(
        type(server).discrepancies is not Server.discrepancies,
        f"{name} takes in pulls (Message.pulls) and has no discrepancies(uploads): let it yield a sentence for each "
        "way in which its statistics differ from the sum over the uploads, so that checks: full compares them",
    )
    found = any(_noticed(server, uploads[:place] + uploads[place + 1 :]) for place in reversed(loaded))
    demand(found, f"{name}.discrepancies says nothing when an upload is left out: does it look at the statistics?")


def _noticed(server: Server, uploads: list[tuple[Address, Message]]) -> bool:
    """Whether a server says that its statistics are not the sum over some uploads, or cannot even add them up."""
    try:
        return any(server.discrepancies(uploads))
    except (LookupError, ValueError, ArithmeticError):
        return True


def check_taken_back(run: Run) -> None:
    """News of pulls that were given up are in a later upload of the agent: its sums of squares are no less."""
    sends = {row.message: (row, message) for row, message in zip(run.events(tr.SEND), run.sent, strict=True)}
    for gone in run.events(tr.EXPIRE):
        lost = sends[gone.message][1]
        own = (found for row, found in sends.values() if row.node == gone.node and row.seq > gone.seq)
        later = [message for message in own if type(message) is type(lost)]
        if gone.peer != SERVER or not later or run.engine.agents[gone.node].unshared >= lost.pulls:
            continue
        for name, value in reals(lost).items():
            if lost.declared(name)["adds"] == "news" and lost.meaning(name) == "gram":
                demand(
                    any(_holds(reals(message)[name], value) for message in later),
                    f"{lost.kind}.{name} of agent {gone.node} was given up, and no later one has what was in it: the "
                    "agent must take back statistics as well as the number of their pulls",
                )


def _holds(whole: FloatArray, part: FloatArray) -> bool:
    """Whether a sum of squares, or its diagonal, can have another one in it, but for rounding."""
    left = whole - part
    least = float(np.linalg.eigvalsh(left)[0] if left.ndim == 2 else left.min(initial=0.0))
    return least >= -1e-9 * float(np.abs(part).max(initial=1.0))


def check_metrics(name: str, run: Run, problem: str) -> None:
    """Every number that nodes and problem report is a declared metric."""
    entry, engine = algorithm(name), run.engine
    own = by_name(entry.metrics)
    nodes = [*engine.agents, *([] if engine.server is None else [engine.server])]
    reported = {key: type(node).__name__ for node in nodes for key in node.report()}
    reported |= {key: f"{type(agent).__name__}.report_own" for agent in engine.agents for key in agent.report_own()}
    for key, where in reported.items():
        demand(key in own, _undeclared(key, where, f"Algorithm.metrics of {name}"))
    if problem not in registry().problems:
        return
    scored = by_name(registry().problems[problem].metrics)
    for key in getattr(engine.world, "measures", {}):
        demand(key in scored, _undeclared(key, f"problem {problem}", f"ProblemEntry.metrics of {problem}"))
    if in_batches(engine.world):
        answers = [agent.answer for agent in engine.agents if isinstance(agent, BatchAgent)]
        for key in {**engine.world.score(answers), **engine.world.score_of(0, answers[0])}:
            demand(key in scored, _undeclared(key, f"problem {problem}", f"ProblemEntry.metrics of {problem}"))


def _undeclared(key: str, where: str, place: str) -> str:
    return (
        f"{where} reports {key!r}, which nobody declares: add Metric({key!r}, unit, meaning) to {place}, so that it "
        "can be expected, locked, compared and described"
    )


def sent(run: Run) -> Iterator[Sent]:
    """Every message of a run, in the order of sending."""
    for row, message in zip(run.events(tr.SEND), run.sent, strict=True):
        direction = ledger.DOWN if row[3] == SERVER else ledger.UP if row[4] == SERVER else ledger.PEER
        yield message, direction, int(row[8]), int(row[12])


def common(run: Run) -> dict[str, int]:
    """`coband.simulator.core.algorithm.COMMON_QUANTITIES` of a run."""
    world = run.engine.world
    found = {"N": len(run.engine.agents), "d": world.dimension}
    if in_batches(world) or world.fixed_arms:
        found["arms"] = len(world.arms(0, 1))
    return found


def run_quantities(run: Run, schedule: str) -> formulas.Values:
    """`coband.simulator.core.algorithm.RUN_QUANTITIES` of a run, and every number of its result."""
    result, engine = run.result, run.engine
    found: dict[str, object] = {"turns": result.turns, "rounds": result.rounds, **result.totals}
    found |= {"T": result.turns, "schedule": schedule}
    if engine.server is not None:
        found["applied"] = engine.server.applied
        found["uploads"] = sum(direction == ledger.UP for _, direction, *_ in sent(run))
    if (graph := engine.graph) is None:
        return found
    pulling = [agent for agent, *_ in run.pulls]
    found["linked"] = sum(graph.degrees[agent] > 0 for agent in pulling)
    hops = int(result.totals.get("hops", 1))
    found["reach"] = sum(len(graph.ball(agent, hops)) - 1 for agent in pulling)
    found["copies"] = sum(_copies(graph.degrees, agent, graph.ball(agent, hops - 1)) for agent in pulling)
    return found


def _copies(degrees: tuple[int, ...], origin: int, passing: tuple[int, ...]) -> int:
    """Links that a message crosses: all of its origin's, and all but the one it came by of whoever passes it on."""
    return degrees[origin] + sum(degrees[node] - 1 for node in passing if node != origin)


def _speaks_of(size: MessageSize, message: Message, direction: str, values: formulas.Values) -> bool:
    fits = isinstance(message, size.message) and size.direction == direction
    return fits and (not size.when or bool(formulas.evaluate(size.when, values)))


def _check_rounds(name: str, run: Run, form: ClosedForm) -> None:
    demand(form.count in IN_A_ROUND, f"a closed form of each round is about {' or '.join(IN_A_ROUND)}")
    entry, direction = algorithm(name), IN_A_ROUND[form.count]
    counted: dict[int, int] = defaultdict(int)
    about: dict[int, dict[str, set[Any]]] = defaultdict(lambda: defaultdict(set))
    for message, way, scalars, copies in sent(run):
        for key, value in attributes(message).items():
            about[message.round][key].add(value)
        if way == direction:
            counted[message.round] += scalars * copies
    outside = counted.pop(-1, 0)
    demand(not outside, f"{outside:,} of the {form.count} belong to no round: the messages do not say which one")
    for number in sorted(about.keys() - {-1}):
        alike = {key: next(iter(found)) for key, found in about[number].items() if len(found) == 1}
        values = entry.quantities({**common(run), **alike}, run.engine.config)
        _check_form(f"round {number} counts {form.count} =", counted[number], form, values)


def _check_form(what: str, count: float, form: ClosedForm, values: Mapping[str, Any]) -> None:
    expected = formulas.evaluate(form.formula, values)
    explained = f"{form.formula} = {expected:,} ({_given(form.formula, values)})"
    close = math.isclose(count, expected, rel_tol=1e-12, abs_tol=1e-12)
    demand(close, f"{what} {count:,}, but Algorithm.counts says {explained}")


def _given(formula: str, values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} = {values[name]}" for name in formulas.names_in(formula))


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
    uncounted = invariants.UNCOUNTED if applied + unshared < turns else ""
    demand(
        applied + unshared == turns,
        f"the server has applied {applied} pulls (Server.applied) and agents keep {unshared} (Client.unshared); "
        f"together that must be the {turns} pulls of the run{uncounted}",
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
