"""Graphs whose links come and go: how often they are there, for both directions; what is not sent, lost, refused."""

from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from coband.extensions.conformance.graphs import run
from coband.simulator.core.network.network import NetworkConfig, Presence
from coband.simulator.core.randomness.streams import Streams
from coband.simulator.core.records import trace as tr
from coband.simulator.experiments.scenario.loading import loads
from coband.simulator.experiments.scenario.overrides import to_yaml
from coband.simulator.scenario_errors import ScenarioError
from tests.every import every

ARMS = {"kind": "k_armed", "means": [0.9, 0.5, 0.4]}
SHARE: dict[str, Any] = {"sharing": "all"}


def topology(**more: Any) -> dict[str, Any]:
    return {"kind": "redrawn", "graph": "ring", "p": 0.4, **more}


def presence(seed: int = 0, **more: Any) -> Presence:
    network = NetworkConfig.model_validate({"topology": topology(**more)})
    assert network.redrawn is not None
    return Presence(network.redrawn, Streams(seed))


def test_a_link_is_there_with_probability_p_for_both_directions_and_apart_from_others() -> None:
    links, times = presence(), range(20_000)
    table = np.array([[links.has(0, other, time) for time in times] for other in (1, 2)])
    assert table.mean(axis=1) == pytest.approx(0.4, abs=0.015)
    assert (table[0] & table[1]).mean() == pytest.approx(0.16, abs=0.015)
    assert [presence().has(1, 0, time) for time in times[:600]] == table[0, :600].tolist()


def test_intervals_and_long_pauses() -> None:
    links, other = presence(interval=0.1), presence(interval=0.1)
    drawn = [links.has(0, 1, 0.1 * step) for step in range(2000)]
    assert drawn == [presence(interval=0.1).has(0, 1, 0.1 * step + 0.05) for step in range(2000)]
    assert other.has(0, 1, 199.9) == drawn[-1]
    assert [links.has(0, 1, 0.1 * step) for step in range(600)] == drawn[:600]  # a look back


def test_what_cannot_be_sent_is_not_counted_and_what_is_lost_is() -> None:
    schedule = {"kind": "rounds", "turns": 300}
    unsent = run("ucb1", SHARE, ARMS, topology=topology(), schedule=schedule)
    sent = unsent.result.totals["transmissions"]
    assert sent == pytest.approx(0.4 * 2 * 5 * 300, rel=0.1)
    assert unsent.result.totals["deliveries"] == sent
    lost = run(
        "ucb1", SHARE, ARMS, topology=topology(absent="lost"), schedule=schedule, network={"transport": "datagram"}
    )
    assert (lost.result.totals["transmissions"], lost.result.totals["deliveries"]) == (2 * 5 * 300, sent)
    assert {lost.names[row.reason] for row in lost.events(tr.DROP)} == {"absent"}


@every("absent", ["unsent", "lost"])
def test_a_reliable_transport_gets_everything_through_that_was_sent(absent: str) -> None:
    schedule, network = {"kind": "rounds", "turns": 30}, {"transport": "reliable", "retransmission": {"timeout": 0.7}}
    found = run("ucb_odc", {}, ARMS, topology=topology(absent=absent), schedule=schedule, network=network)
    assert found.result.totals["deliveries"] == found.result.totals["transmissions"] > 30


def scenario(**more: Any) -> str:
    document = {"name": "redrawn", "schedule": {"kind": "rounds", "turns": 3}, "agents": {"count": 4}, "problem": ARMS}
    return to_yaml({**document, **more})


def test_what_is_refused() -> None:
    with pytest.raises(ValidationError, match="Input tag 'redrawn' found"):
        presence(graph=topology())
    with pytest.raises(ScenarioError, match="dd_ucb needs every message, and absent links leave some unsent"):
        loads(scenario(network={"topology": topology()}, algorithms=[{"algorithm": "dd_ucb"}]))
    gaussian = {**ARMS, "reward": "gaussian"}
    with pytest.raises(ScenarioError, match="dec_ts needs rewards from 0 to 1, and this noise leads beyond"):
        loads(scenario(problem=gaussian, network={"topology": "ring"}, algorithms=[{"algorithm": "dec_ts"}]))
