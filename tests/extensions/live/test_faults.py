"""Processes that are killed: their agents are gone, as if they had left, and the others go on."""

import asyncio
import errno
import multiprocessing
import os
import re
import signal
import socket

import numpy as np
import pytest

from coband.agents.kernel.dis_kernel_ucb import DisKernelUCB
from coband.extensions.live import frames
from coband.extensions.live.station import Invitation, Station
from coband.server.kernel.dis_kernel_ucb import DisKernelUCBServer
from coband.simulator.core.nodes.message import Message
from coband.simulator.core.nodes.node import Address, Node, Outbox
from coband.simulator.core.records import trace as tr
from coband.simulator.core.result import RunResult
from coband.simulator.experiments.runs.job import JobFailure
from tests.everyday import everyday
from tests.extensions.live.test_equality import DELAYS, LOSS
from tests.extensions.live.together import SERIAL, TOKEN, Live, live, run, simulated


def _take_part(port: int) -> None:
    asyncio.run(Station(Invitation("127.0.0.1", port, TOKEN, 1, 10.0)).run())


def run_with_a_kill(one: Live, at: int) -> tuple[RunResult, Address]:
    """Run with a process for each agent; after so many pulls one is killed. Also returns its agent."""

    async def main() -> tuple[RunResult, Address]:
        await one.open()
        processes = [multiprocessing.get_context("spawn").Process(target=_take_part, args=(one.port,))]
        processes[0].start()
        assert one.hub is not None
        while not one.hub._peers.here:
            await asyncio.sleep(0.02)
        for _ in range(2):
            one.join()
        killed = False

        def pulls(made: int) -> None:
            nonlocal killed
            if made >= at and not killed:
                killed = True
                os.kill(processes[0].pid or 0, signal.SIGKILL)

        one.pulls = pulls
        try:
            return await one.result(), 0
        finally:
            assert killed
            processes[0].join()

    return asyncio.run(main())


def assert_gone(one: Live, measured: RunResult, agent: Address, turns: list[int]) -> None:
    """One agent was lost, the others have taken all their turns, and the trace says so."""
    (down,) = [row for row in one.rows if row.event in (tr.DOWN, tr.UP)]
    assert (down.event, down.node) == (tr.DOWN, agent)
    assert not [row for row in one.rows if row.event == tr.TURN and row.node == agent and row.seq > down.seq]
    made = [found["turns"] for found in measured.by_agent]
    assert made[:agent] + made[agent + 1 :] == turns[:agent] + turns[agent + 1 :]
    begun = sum(row.event == tr.TURN and row.node == agent for row in one.rows)
    assert begun - 1 <= (made[agent] or 0) <= begun
    assert (made[agent] or 0) < turns[agent]
    assert measured.stalled == 0
    assert sum(line.endswith("is lost; the run goes on without it") for line in one.said) == 1
    for kind, copies in measured.audit.copies.items():
        assert copies.in_flight == 0, kind


@pytest.mark.parametrize("label", ["Async", "Approx-Dis", "Dis", "One", "DisLin", "FedLin"])
@pytest.mark.parametrize("changes", [DELAYS, LOSS], ids=["delays", "losses"])
def test_a_process_that_is_killed_at_any_moment_leaves_the_run_to_the_others(
    label: str, changes: tuple[str, ...]
) -> None:
    at = int(np.random.default_rng(len(label) + len(changes)).integers(3, 30))
    one = live(SERIAL, label, changes)
    measured, agent = run_with_a_kill(one, at)
    assert_gone(one, measured, agent, [15, 15, 15])


def test_in_real_time() -> None:
    one = live(SERIAL, "Dis", DELAYS, speed=0.03)
    measured, agent = run_with_a_kill(one, 12)
    assert_gone(one, measured, agent, [15, 15, 15])


@pytest.mark.parametrize("at", everyday(3, range(1, 20)))
def test_on_a_serial_schedule(at: int) -> None:
    one = live(SERIAL, "Async")
    measured, agent = run_with_a_kill(one, at)
    predicted, _ = simulated(one.scenario, "Async")
    assert_gone(one, measured, agent, [found["turns"] or 0 for found in predicted.by_agent])


def test_a_run_whose_stations_are_all_lost_fails() -> None:
    one = live(SERIAL, "Dis", share=3)

    async def main() -> None:
        await one.open()
        one.join()
        one.pulls = lambda made: one.tasks[0].cancel() if made > 10 else None  # type: ignore[assignment, return-value]
        await one.result()

    with pytest.raises(JobFailure, match=r"agents 0 to 2 .* was lost, as all others"):
        asyncio.run(main())


def test_a_station_that_comes_late_is_refused() -> None:
    one = live(SERIAL, "Dis")

    async def main() -> None:
        await one.open()
        for _ in range(3):
            one.join()
        await asyncio.sleep(0.1)
        with pytest.raises(JobFailure, match="all agents have a process already"):
            await one.join()
        await one.result()

    asyncio.run(main())
    assert any("a station was refused: all agents have a process already" in line for line in one.said)


def test_both_ends_notice_that_the_other_machine_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    found, watch = list[int](), frames.watch

    def noted(writer: asyncio.StreamWriter) -> None:
        watch(writer)
        found.append(writer.get_extra_info("socket").getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE))

    async def read() -> None:
        reader = asyncio.StreamReader()
        reader.set_exception(OSError(errno.EHOSTUNREACH, "No route to host"))
        await frames.read(reader, frames.LARGEST)

    monkeypatch.setattr(frames, "watch", noted)
    run(live(SERIAL, "Alone"))
    assert found == [1] * 6
    with pytest.raises(ConnectionError, match="No route to host"):
        asyncio.run(read())


@pytest.mark.parametrize(
    ("node", "words"),
    [
        (DisKernelUCBServer, r"the server cannot take the sync_request of agent \d"),
        (DisKernelUCB, r"agent \d \(process .*\): agent \d cannot take the .* of the server"),
    ],
)
def test_a_node_that_cannot_take_a_message_ends_the_run_with_a_sentence_about_it(
    node: type[Node], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(self: Node, message: Message, source: Address) -> Outbox:
        return [][message.version + 7]

    monkeypatch.setattr(node, "receive", fails)
    with pytest.raises(JobFailure) as failure:
        run(live(SERIAL, "Dis", share=1))
    (line,) = str(failure.value).splitlines()
    assert re.match(
        words + r": IndexError: list index out of range \(test_faults.py, line \d+\); if the algorithm", line
    )
