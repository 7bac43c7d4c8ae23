"""A cohort: agents whose turns fall on one instant, and take them one right after the other.

Where turns take no time and no node goes down, nothing happens between the first and the last turn of an instant, and
what they send arrives after all of them. So one event of the clock stands for all these turns, agents that know the
same can choose together (``Agent.choose_together``), and the accounts are kept of many turns at once. All else is as
with one event per turn: the order of draws and of messages, and every event of the trace with its number.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from coband.simulator.core.hosts.agent_host import AgentHost, Turn
from coband.simulator.core.network.direct import Direct
from coband.simulator.core.network.local import Local
from coband.simulator.core.nodes.node import Agent
from coband.simulator.core.records import trace as tr
from coband.simulator.core.records.progress import Progress
from coband.simulator.core.run_context import RunContext

FEW = 8
"""Turns from which on keeping the accounts of all at once takes less time than one by one."""


class Cohort:
    """Takes the turns of an instant.

    Args:
        local: carries LOCAL messages; None in a star.
        together: whether agents may choose together.
        watched: whether somebody looks at every turn, so that the accounts are kept turn by turn.
    """

    def __init__(
        self, run: RunContext, progress: Progress, local: Local | None, together: bool, watched: bool = False
    ) -> None:
        self._clock, self._trace, self._ledger = run.clock, run.trace, run.ledger
        self._progress, self._together, self._watched = progress, together, watched
        self._floods = local if isinstance(local, Direct) else None

    def tick(self, hosts: Sequence[AgentHost]) -> None:
        """The schedule allows one more turn to each of these agents, which are in ascending order."""
        alike: list[Turn] = []
        turns = self._taken([host for host in hosts if host.admits()])
        if self._watched:
            for turn in turns:
                turn.host.enter(turn)
            return
        for turn in turns:
            outbox = turn.outbox
            if alike and bool(alike[0].outbox) != bool(outbox):
                self._enter(alike)
                alike = []
            if outbox is not None and turn.uneventful and (not outbox or (self._floods is not None and turn.floods)):
                alike.append(turn)
            else:
                self._enter(alike)
                alike = []
                turn.host.enter(turn)
        self._enter(alike)

    def _taken(self, hosts: Sequence[AgentHost]) -> Iterator[Turn]:
        kind = type(hosts[0].node) if hosts else Agent
        if self._together and chooses_together(kind):
            arm_sets = [host.begin() for host in hosts]
            arms = kind.choose_together([host.node for host in hosts], arm_sets)
            for host, arm_set, arm in zip(hosts, arm_sets, arms, strict=True):
                yield host.pull(arm_set, arm)
        else:
            for host in hosts:
                arm_set = host.begin()
                yield host.pull(arm_set, host.node.choose(arm_set))

    def _enter(self, turns: Sequence[Turn]) -> None:
        """Keep the accounts of uneventful turns, all of which send nothing, or all a LOCAL message."""
        if len(turns) < FEW or not (self._progress.realised or all(turn.regret >= 0 for turn in turns)):
            for turn in turns:
                turn.host.enter(turn)
            return
        now, trace, floods = self._clock.now, self._trace, bool(turns[0].outbox)
        agents = [turn.host.address for turn in turns]
        block = trace.block(now, (len(turns), 4 if floods else 3))
        block["node"] = np.array(agents)[:, None]
        block["cause"][:, 0] = [turn.host.resumed() for turn in turns]
        block["cause"][:, 1:] = block["seq"][:, :-1]
        block["event"][:, :3] = tr.TURN, tr.CHOOSE, tr.REWARD
        block["value"][:, 0] = [turn.number for turn in turns]
        block["value"][:, 1] = [turn.arm for turn in turns]
        block["value"][:, 2] = [turn.reward for turn in turns]
        scalars = [self._ledger.scalars] * len(turns)
        if floods:
            assert self._floods is not None
            scalars = self._floods.send_together(agents, [turn.outbox[0] for turn in turns], block[:, 3])
        trace.record_block(block)
        in_model = [turn.in_model for turn in turns if turn.in_model is not None]
        if len(in_model) == len(turns):
            decisions = self._progress.decisions
            decisions.in_model.extend(in_model)
            decisions.newest.extend(turn.host.newest for turn in turns)
            decisions.events.extend(block["seq"][:, 1].tolist())
        self._progress.pulled_together(agents, now, [(turn.reward, turn.regret) for turn in turns], scalars)


def chooses_together(kind: type[Agent]) -> bool:
    """Whether agents of a class have a way to choose together that goes with the way in which they choose alone."""
    ways = {"choose", "choose_together"}
    deciding = next(ancestor for ancestor in kind.__mro__ if ancestor is Agent or ways & vars(ancestor).keys())
    return deciding is not Agent and "choose_together" in vars(deciding)
