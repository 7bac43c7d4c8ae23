"""One mechanism each, pinned so that the run differs as soon as the mechanism does: windows, streams of links,
acknowledgements, and the healing of a network."""

from collections import Counter
from typing import Any, ClassVar

import numpy as np
import pytest
from pydantic import ValidationError

from coband.simulator.core.network.bandwidth import BaseBandwidth, Passage
from coband.simulator.core.network.links import Link, LinkModel, LinkRule
from coband.simulator.core.network.network import Network, NetworkConfig
from coband.simulator.core.network.partitions import Outage, Partition
from coband.simulator.core.nodes.node import SERVER, Address, Outbox
from coband.simulator.core.randomness.distributions import Constant
from coband.simulator.core.randomness.streams import Streams
from coband.simulator.core.records import trace as tr
from tests.core.network.test_network_runs import plan, times
from tests.core.toys import News, ToyAgent, run

TURNS = 60


def datagrams(agents: int = 1, turns: int = TURNS, seed: int = 3, **network: Any) -> tuple[Any, list[tr.Row], Any]:
    return run(plan(agents=agents, turns=turns, network={"transport": "datagram", **network}), seed=seed)


def fates(rows: list[tr.Row], source: int, destination: int, event: int) -> list[bool]:
    """For each send of a node, whether the trace has ``event`` about its copy on one link."""
    about = {row.message for row in rows if (row.event, row.node, row.peer) == (event, source, destination)}
    return [row.message in about for row in rows if row.event == tr.SEND and row.node == source]


def drawn(seed: int, agent: int, purpose: str, share: float, copies: int) -> list[bool]:
    """What the stream at an address of the documentation decides for the first copies of a link."""
    values: list[bool] = (Streams(seed)("network", agent, purpose).random(copies) < share).tolist()
    return values


def test_a_partition_ends_before_its_end() -> None:
    partition = Partition(start=2.0, end=4.0, groups=((0,),))
    cut = [partition.cuts(0, SERVER, time) for time in (1.999, 2.0, 3.999, 4.0)]
    assert cut == [False, True, True, False]
    _, rows, _ = datagrams(turns=5, partitions=[{"start": 2.0, "end": 4.0, "groups": [[0]]}])
    assert times(rows, tr.DROP) == [2.0, 3.0]


def test_an_outage_ends_before_its_end() -> None:
    assert Outage(start=2.0, end=4.0, nodes=("server", 1)).addresses == (SERVER, 1)
    _, rows, _ = datagrams(turns=5, outages=[{"start": 2.0, "end": 4.0, "nodes": ["server"]}])
    assert times(rows, tr.DROP) == [2.0, 3.0]


def test_rules_too_may_give_each_link_a_bandwidth_of_its_own() -> None:
    class Own(BaseBandwidth):
        """As many as the number of the agent."""

        by_link: ClassVar[bool] = True

        def stage(self) -> Passage:
            raise TypeError

        def between(self, source: Address, destination: Address) -> float:
            return 1.0 + max(source, destination)

    config = NetworkConfig()
    rule = LinkRule().model_copy(update={"bandwidth": Own()})
    network = Network(config.model_copy(update={"links": (rule,)}), Streams(0))
    assert [network.model(agent, SERVER).bandwidth for agent in range(3)] == [1.0, 2.0, 3.0]


@pytest.mark.parametrize("agents", [1, 4])
def test_each_link_draws_its_losses_from_its_own_stream(agents: int) -> None:
    _, rows, _ = datagrams(agents, links=[{"direction": "up", "loss": 0.4, "latency": 0.01}])
    found = [fates(rows, agent, SERVER, tr.DROP) for agent in range(agents)]
    assert found == [drawn(3, agent, "loss up", 0.4, TURNS) for agent in range(agents)]
    assert len({tuple(losses) for losses in found}) == agents


@pytest.mark.parametrize("loss", [0.0, 0.3])
def test_copies_are_doubled_from_a_stream_of_their_own(loss: float) -> None:
    """Whatever is lost: the n-th copy is doubled where the n-th draw of the stream ``duplicate down`` says so."""
    _, rows, _ = datagrams(2, links=[{"direction": "down", "loss": loss, "duplicate": 0.4}])
    for agent in range(2):
        lost = drawn(3, agent, "loss down", loss, 2 * TURNS)
        twice = drawn(3, agent, "duplicate down", 0.4, 2 * TURNS)
        assert fates(rows, SERVER, agent, tr.DROP) == lost
        expected = [both and not gone for both, gone in zip(twice, lost, strict=True)]
        assert fates(rows, SERVER, agent, tr.DUPLICATE) == expected
        assert any(expected)


def test_latencies_of_first_and_second_copies_are_two_streams() -> None:
    latency = {"kind": "exponential", "rate": 1.0}
    _, rows, _ = datagrams(1, 20, links=[{"direction": "down", "duplicate": 1.0, "latency": latency}])
    at = {row.message: row.time for row in rows if row.event == tr.SEND and row.node == SERVER}
    delays: dict[int, set[float]] = {number: set() for number in at}
    for row in rows:
        if row.event == tr.DELIVER and row.node == 0:
            delays[row.message].add(round(row.time - at[row.message], 9))
    first, second = (
        Streams(3)("network", 0, purpose).standard_exponential(20).round(9).tolist()
        for purpose in ("latency down", "duplicate latency down")
    )
    assert list(delays.values()) == [set(pair) for pair in zip(first, second, strict=True)]


def acknowledged_while_down(down_until: float) -> tuple[Any, list[tr.Row], Any]:
    """A report leaves at 1 and arrives at 1.5; its acknowledgement is back at 2; repetition is due at 4."""
    network = {
        "latency": 0.5,
        "retransmission": {"timeout": 3.0},
        "outages": [{"start": 1.8, "end": down_until, "nodes": [0]}],
    }
    return run(plan(network=network))


@pytest.mark.parametrize(("down_until", "repeated"), [(1.9, []), (3.0, [4.0]), (5.0, [5.0])])
def test_an_acknowledgement_that_finds_its_node_down_is_lost(down_until: float, repeated: list[float]) -> None:
    result, rows, engine = acknowledged_while_down(down_until)
    assert [row.time for row in rows if row.event == tr.RETRANSMIT and row.node == 0] == repeated
    assert engine.server.order == [(0, 1.0)]
    assert result.audit.copies["report"].duplicates == len(repeated)


def test_an_acknowledgement_after_the_last_attempt_leaves_no_timer() -> None:
    """A report arrives at 2, its only wait ends at 2.5, and its acknowledgement comes at 3: no timer is left then."""
    late = {"start": 50.0, "end": 51.0, "groups": [[0]]}  # where nothing can be lost nothing is acknowledged
    network = {"latency": 1.0, "retransmission": {"timeout": 1.5, "max_attempts": 1}, "partitions": [late]}
    result, _, engine = run(plan(network=network))
    assert (result.totals["expired"], result.ledger.acknowledgements) == (0, 2)
    assert engine.transport.idle_timers == 0


def test_every_copy_that_arrives_is_acknowledged_in_the_ledger() -> None:
    """Without loss each message is acknowledged once: a header on the wire, and no scalars."""
    network = {"latency": 0.5, "duplicate": 0.5, "header_bits": 7}
    result, _, _ = run(plan(agents=2, turns=20, network=network), seed=1)
    copies = result.audit.copies
    arrived = sum(fate.delivered + fate.duplicates for fate in copies.values())
    assert result.ledger.acknowledgements == arrived > sum(fate.delivered for fate in copies.values())
    totals = result.totals
    assert totals["wire_messages"] == totals["messages"] + arrived
    assert totals["wire_scalars"] == totals["scalars"]
    assert totals["wire_bits"] == 64 * totals["scalars"] + 7 * (totals["messages"] + arrived)


def test_repetitions_and_their_acknowledgements_are_in_the_ledger() -> None:
    result, rows, _ = run(plan(turns=30, network={"latency": 0.5, "loss": 0.4}), seed=1)
    fates_of = result.audit.copies.values()
    assert result.ledger.acknowledgements == sum(fate.delivered + fate.duplicates for fate in fates_of)
    repetitions = [row for row in rows if row.event == tr.RETRANSMIT]
    assert result.ledger.repeated_messages == len(repetitions) > 0
    assert result.ledger.repeated_scalars == sum(row.scalars for row in repetitions)


def test_messages_from_agent_to_agent_are_their_senders(monkeypatch: pytest.MonkeyPatch) -> None:
    def observe(self: ToyAgent, arms: Any, arm: int, reward: float) -> Outbox:
        self.unshared += 1
        return [((self.context.index + 1) % 3, News(total=1.0, round=4))] if self.context.index else []

    monkeypatch.setattr(ToyAgent, "observe", observe)
    result, rows, engine = run(plan(agents=3, turns=5, checks="full"))
    assert result.ledger.peer_by_agent == [0, 5, 5]
    assert dict(result.ledger.by_round) == {4: 10}
    entry = result.ledger.by_kind["news", "peer"]
    assert (entry.sends, entry.messages, entry.scalars, entry.scalars_broadcast_once) == (10, 10, 10, 10)
    assert {(row.node, row.peer) for row in rows if row.event == tr.SEND} == {(1, 2), (2, 0)}
    assert [len(agent.heard) for agent in engine.agents] == [5, 0, 5]


def test_sends_are_numbered_from_0() -> None:
    """In the order of sending; each delivery has the number of its send."""
    _, rows, _ = run(plan(agents=2, turns=3))
    numbers = [row.message for row in rows if row.event == tr.SEND]
    assert numbers == list(range(12))
    delivered = [row.message for row in rows if row.event == tr.DELIVER]
    assert sorted(delivered) == sorted([*range(2), *range(4, 6), *range(8, 10)] + 2 * [2, 3, 6, 7, 10, 11])


def link_that_heals(at: float, **model: Any) -> Link:
    parts = {"latency": Constant(value=1.0), "bandwidth": None, "loss": 0.0, "duplicate": 0.0, "reorder": "free"}
    return Link(LinkModel.model_construct(**{**parts, **model}), Streams(0), 0, "up", at)


def test_a_link_is_sound_from_the_moment_at_which_it_heals() -> None:
    losing, doubling = link_that_heals(5.0, loss=1.0), link_that_heals(5.0, duplicate=1.0)
    assert [losing.carry(time, 1, 64)[1] for time in (0.0, 4.999, 5.0, 9.0)] == [(), (), (6.0,), (10.0,)]
    assert [losing.loses(time) for time in (4.999, 5.0)] == [True, False]
    assert [len(doubling.carry(time, 1, 64)[1]) for time in (4.999, 5.0)] == [2, 1]


def test_a_copy_is_lost_by_when_it_enters_the_link_not_by_when_it_leaves() -> None:
    """Bandwidth 1, 3 scalars: the copy that enters at 4 leaves at 7 and is lost; that of 5 waits for it and arrives."""
    link = link_that_heals(5.0, loss=1.0, bandwidth=1.0)
    assert link.carry(4.0, 3, 192) == (7.0, ())
    assert link.carry(5.0, 3, 192) == (10.0, (11.0,))


def test_draws_go_on_after_healing() -> None:
    """A link draws for every copy, before and after it has healed, so that the number of the copy is enough."""
    early, late = (link_that_heals(at, loss=0.5) for at in (3.0, np.inf))
    found = [[link.carry(float(time), 1, 64)[1] == () for time in range(40)] for link in (early, late)]
    assert found[0] == [lost and time < 3 for time, lost in enumerate(found[1])]
    assert early._loses._rng.bit_generator.state == late._loses._rng.bit_generator.state  # type: ignore[union-attr]


def test_partitions_end_when_the_network_heals() -> None:
    config = {"partitions": [{"start": 0.0, "end": 100.0, "groups": [[0]]}], "heals": 5.0}
    network = Network(NetworkConfig.model_validate(config), Streams(0))
    assert [network.cut_off(0, SERVER, time) for time in (0.0, 4.999, 5.0, 50.0)] == ["partition", "partition", "", ""]


def test_what_was_on_its_way_when_the_network_heals_arrives_with_the_next_repetition() -> None:
    """Copies are lost up to 5; the report of turn 1 was repeated at 2, 4 and 8, and arrives then, as do all others."""
    links = [{"direction": "up", "loss": 0.999999}]
    network = {"links": links, "heals": 5.0, "retransmission": {"timeout": 1.0}, "latency": 0.1}
    result, rows, engine = run(plan(turns=6, network=network, checks="full"))
    assert engine.server.order == [(0, float(turn)) for turn in range(1, 7)]
    assert [row.time for row in rows if row.event == tr.DELIVER and row.node == SERVER] == pytest.approx([8.1] * 6)
    assert max(times(rows, tr.DROP)) < 5.0
    assert not result.audit.lost_for_good


def test_nobody_goes_down_once_the_network_has_healed() -> None:
    agent = {"availability": {"kind": "markov_on_off", "mean_up": 2.0, "mean_down": 1.0}}
    _, rows, _ = run(plan(agents=3, turns=40, agent=agent, network={"heals": 10.0}), seed=1)
    assert 0 < max(times(rows, tr.DOWN)) < 10.0
    assert len(times(rows, tr.DOWN)) == len(times(rows, tr.UP))


def test_an_agent_is_in_one_group_of_a_partition() -> None:
    assert Partition(start=0.0, end=1.0, groups=((0, 1), (2,))).groups == ((0, 1), (2,))
    with pytest.raises(ValidationError, match="an agent must not be in two groups"):
        Partition(start=0.0, end=1.0, groups=((0, 1), (1,)))


def test_from_the_moment_at_which_links_heal_nothing_is_lost() -> None:
    """Copies and acknowledgements leave at 5 exactly; all checks draw anew what each link must do."""
    network = {"latency": 1.0, "loss": 0.5, "duplicate": 0.5, "heals": 5.0, "retransmission": {"timeout": 1.0}}
    arrived = Counter[float]()
    for seed in range(6):
        _, rows, _ = run(plan(agents=4, turns=8, network=network, checks="full"), seed)
        arrived.update(times(rows, tr.DELIVER))
    assert arrived[5.0] > 10
