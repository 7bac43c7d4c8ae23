"""The critical path of a round, in words."""

from __future__ import annotations

from dataclasses import dataclass

from coband.simulator.analysis.report.analysis import Timing
from coband.simulator.analysis.report.diagram import key_of, title_of
from coband.simulator.analysis.report.events import Events
from coband.simulator.analysis.report.rounds import Round
from coband.simulator.analysis.traces.reading import address_name

VERBS = {
    "turn": "starts a turn",
    "choose": "chooses",
    "reward": "sees its reward",
    "trigger": "triggers",
    "send": "sends",
    "deliver": "receives",
    "apply": "applies its data",
    "model": "adopts the model",
    "wait": "begins to wait",
    "resume": "resumes",
    "eliminate": "eliminates arms",
    "stop": "stops",
}


@dataclass(frozen=True)
class CriticalPath:
    """The critical path of one round, in words.

    Attributes:
        job: key of its job in the diagram.
        steps: descriptions of the events, in order.
        event: seq of the last event.
    """

    label: str
    job: str
    round: Round
    steps: tuple[str, ...]
    event: int


def path(environment: str, timing: Timing, found: Round) -> CriticalPath:
    """The critical path of a round of the first replication."""
    steps = tuple(_step(timing.first, index) for index in reversed(found.chain))
    job = key_of(environment, timing.contender, timing.contender.jobs[0].replication)
    return CriticalPath(title_of(environment, timing.contender), job, found, steps, found.chain[0])


def _step(events: Events, index: int) -> str:
    """An event in words, such as "12.5: agent 3 sends upload to server"."""
    word, kind = events.words[int(events["event"][index])], int(events["kind"][index])
    node, peer = (address_name(int(events[name][index])) or "" for name in ("node", "peer"))
    head = f"{float(events['time'][index]):,.6g}: {node} {VERBS.get(word, word)}"
    return head if kind < 0 else f"{head} {events.names[kind]} {'to' if word == 'send' else 'from'} {peer}"
