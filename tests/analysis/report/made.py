"""Hand-made events, and small real runs for the report's tests."""

from pathlib import Path

import numpy as np
import pytest

from coband.simulator.analysis.traces.columns import EVENT_COLUMNS, Events
from coband.simulator.cli.main import main
from coband.simulator.core.records.trace import EVENTS, NOBODY, NONE, NUMERIC, Row

SCENARIO = """
name: tiny
description: A few agents, one of them slow.
seed: 5
replications: 3
agents:
  count: 5
  compute: {kind: shifted_exponential, shift: 0.2, rate: 2.0}
  stragglers: {fraction: 0.2, slowdown: 6}
schedule: {kind: rounds, turns: 8}
network: {latency: {kind: lognormal, median: 0.2, sigma: 0.5}, loss: 0.1}
problem: {kind: contextual, arms: {kind: ball, dimension: 3, count: 5}, reward: {kind: cosine}, noise: 0.1}
algorithms:
  - {algorithm: approx_dis_kernel_ucb, label: Sync, kernel: {kind: gaussian, gamma: 1}, threshold: 0.5}
  - {algorithm: async_kernel_ucb, label: "Async <b>&</b> $x$", kernel: {kind: gaussian, gamma: 1}, threshold: 0.5}
  - {algorithm: n_kernel_ucb, label: Alone, kernel: {kind: gaussian, gamma: 1}}
"""


def run(out: Path, *options: str, scenario: str = SCENARIO) -> Path:
    file = out.with_suffix(".yaml")
    file.write_text(scenario)
    with pytest.raises(SystemExit) as exit_:
        main(["run", str(file), "--out", str(out), "--workers", "1", *options])
    assert exit_.value.code == 0
    return out


class Made:
    """Events written by hand, numbered as they are added."""

    def __init__(self) -> None:
        self._rows: list[tuple[float, ...]] = []
        self._names: list[str] = []

    def add(
        self,
        time: float,
        event: str,
        node: int,
        cause: int = NONE,
        peer: int = NOBODY,
        kind: str | None = None,
        round: int = NONE,
        value: float = 0.0,
    ) -> int:
        if kind is not None and kind not in self._names:
            self._names.append(kind)
        code = NONE if kind is None else self._names.index(kind)
        self._rows.append((time, EVENTS.index(event), node, peer, NONE, cause, code, 0, 0, round, NONE, value, NONE))
        return len(self._rows) - 1

    def events(self) -> Events:
        return Events(np.array(self._rows, dtype=list(EVENT_COLUMNS.items())), EVENTS, tuple(self._names))


def from_rows(rows: list[Row], names: list[str]) -> Events:
    """The events of a run that was not stored."""
    columns = [row[1 : len(NUMERIC)] for row in rows]
    return Events(np.array(columns, dtype=list(EVENT_COLUMNS.items())), EVENTS, tuple(names))


def synchronisation() -> Events:
    """Two agents and a server; agent 1 is busy while the server waits for it, and the server takes 1 to sum up.

    Agent 0 asks at 3; both are told at 5; agent 0 answers at 5.5, agent 1 at 8.5 after its turn; the server has both at
    9 and sends a model at 10, which agent 0 has at 11 and has taken in at 11.5, and agent 1 has and takes in at 12.
    """
    made = Made()
    turn = made.add(1, "turn", 0)
    choose = made.add(3, "choose", 0, turn)
    reward = made.add(3, "reward", 0, choose)
    trigger = made.add(3, "trigger", 0, reward)
    request = made.add(3, "send", 0, trigger, peer=-1, kind="request", value=1)
    asked = made.add(4, "deliver", -1, request, peer=0, kind="request")
    start = made.add(4, "send", -1, asked, peer=-2, kind="start", round=1, value=2)
    busy = made.add(4.5, "turn", 1)
    told = [made.add(5, "deliver", agent, start, peer=-1, kind="start", round=1) for agent in (0, 1)]
    first = made.add(5.5, "send", 0, told[0], peer=-1, kind="answer", round=1, value=1)
    made.add(5.5, "wait", 0, told[0])
    made.add(6, "deliver", -1, first, peer=0, kind="answer", round=1)
    made.add(8, "reward", 1, made.add(8, "choose", 1, busy))
    second = made.add(8.5, "send", 1, told[1], peer=-1, kind="answer", round=1, value=1)
    made.add(8.5, "wait", 1, told[1])
    last = made.add(9, "deliver", -1, second, peer=1, kind="answer", round=1)
    made.add(10, "apply", -1, last, round=1)
    model = made.add(10, "send", -1, last, peer=-2, kind="model", round=1, value=2)
    early = made.add(11, "deliver", 0, model, peer=-1, kind="model", round=1)
    made.add(11.5, "resume", 0, early)
    late = made.add(12, "deliver", 1, model, peer=-1, kind="model", round=1)
    made.add(12, "resume", 1, late)
    return made.events()
