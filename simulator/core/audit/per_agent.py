"""What a run gives for each agent alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from coband.simulator.core.audit.ledger import Ledger
from coband.simulator.core.nodes.node import Client

AgentMetrics = dict[str, int | float | None]
"""One agent's numbers: ``agent``, its turns, regret, rounds and scalars, what it reports, and its score."""


def per_agent_metrics(
    agents: Sequence[Client],
    pulls: tuple[Sequence[int], Sequence[int], Sequence[float]],
    ledger: Ledger,
    score_of: Callable[[int], AgentMetrics],
) -> list[AgentMetrics]:
    """The numbers of all agents, in order.

    Args:
        agents: at the end of the run.
        pulls: of each pull or batch, which agent's it was, how many pulls, and their regret.
        ledger: scalars; those of LOCAL messages are not counted by agent, since agents pass
            them on for each other, so that there ``peer_scalars`` is None.
        score_of: what the problem says of an agent's result.
    """
    whose, counts, regrets = pulls
    turns = np.bincount(whose, counts, len(agents)).astype(np.int64).tolist()
    regret = np.bincount(whose, regrets, len(agents)).tolist()
    return [
        {
            "agent": index,
            "turns": turns[index],
            "regret": regret[index],
            "rounds": agent.rounds,
            "uplink_scalars": ledger.uplink_by_agent[index],
            "downlink_scalars": ledger.downlink_by_agent[index],
            "peer_scalars": ledger.peer_by_agent[index] if ledger.deliveries is None else None,
            **agent.report_own(),
            **score_of(index),
        }
        for index, agent in enumerate(agents)
    ]
