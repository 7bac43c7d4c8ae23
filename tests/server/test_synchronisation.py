"""Servers of synchronisations, by what comes of them: for whom they wait, what agents get that missed a model."""

from typing import Any

import pytest

from coband.extensions.conformance.runs import Run, run
from coband.simulator.core.nodes.node import SERVER
from coband.simulator.core.records import trace as tr


def answers_by_round(result: Run) -> list[int]:
    """How many agents' uploads each finished synchronisation had in time."""
    came: dict[int, set[int]] = {}
    counts = []
    for row in result.rows:
        if row.node == SERVER and row.event == tr.DELIVER and result.names[row.kind] == "upload":
            came.setdefault(row.round, set()).add(row.peer)
        elif row.node == SERVER and row.event == tr.APPLY:
            counts.append(len(came[row.round]))
    return counts


@pytest.mark.parametrize(
    ("agents", "quorum", "needed"),
    [(4, 0.6, 3), (5, 0.5, 3), (7, 0.3, 3), (3, 0.01, 1), (5, 0.6, 3), (3, 1.0, 3), (25, 0.28, 7)],
)
def test_a_quorum_is_the_smallest_number_of_agents_that_has_the_share(agents: int, quorum: float, needed: int) -> None:
    """Answers come one after the other, all but the first long after the timeout."""
    links: list[dict[str, Any]] = [{"agents": [index], "latency": 40.0 * index} for index in range(1, agents)]
    result = run(
        "dis_lin_ucb",
        {"threshold": 1e-9, "wait": {"quorum": quorum, "timeout": 1.0}},
        agents=agents,
        network={"latency": 0.1, "links": links},
        schedule={"kind": "rounds", "turns": 3},
    )
    counts = answers_by_round(result)
    assert min(counts) == needed
    assert counts[0] == needed
