"""Processes that are killed and started again: nothing is lost, and nothing counted twice."""

import asyncio
import errno
import re
import resource
import socket
from contextlib import closing, suppress
from itertools import pairwise
from pathlib import Path

import pytest

from coband.agents.kernel.dis_kernel_ucb import DisKernelUCB
from coband.server.kernel.dis_kernel_ucb import DisKernelUCBServer
from coband.simulator.core.nodes.message import Message
from coband.simulator.core.nodes.node import Address, Node, Outbox
from coband.simulator.core.records import trace as tr
from coband.simulator.core.result import RunResult
from coband.simulator.experiments.runs.job import JobFailure
from coband.simulator.live import frames
from coband.simulator.live.journal import Journal
from tests.everyday import everyday
from tests.live.test_equality import DELAYS, LOSS
from tests.live.together import SERIAL, Live, live, run, simulated


def run_with_kills(one: Live, journals: Path, kills: dict[int, int]) -> RunResult:
    """Run with a station for each agent; ``kills``: after so many pulls, which station is killed and started again."""
    left = dict(kills)

    async def kill(number: int) -> None:
        one.tasks[number].cancel()
        with suppress(asyncio.CancelledError):
            await one.tasks[number]
        one.join(journals / f"{number}.journal")
        one.tasks[number] = one.tasks.pop()

    killing: set[asyncio.Task[None]] = set()

    def pulls(made: int) -> None:
        for at in [at for at in left if made >= at]:
            killing.add(asyncio.create_task(kill(left.pop(at))))

    async def main() -> RunResult:
        one.pulls = pulls
        await one.open()
        for number in range(one.scenario.agents.count):
            one.join(journals / f"{number}.journal")
        return await one.result()

    result = asyncio.run(main())
    assert not left
    return result


@pytest.mark.parametrize("label", everyday(1, ["Async", "Approx-Dis", "Dis"]))
def test_agents_that_are_killed_again_and_again_do_what_the_simulated_ones_do(label: str, tmp_path: Path) -> None:
    one = live(SERIAL, label)
    measured = run_with_kills(one, tmp_path, {10: 0, 11: 1, 25: 0, 26: 2, 40: 0})
    predicted, rows = simulated(one.scenario, label)
    assert measured.by_agent == predicted.by_agent
    assert measured.totals | predicted.totals == measured.totals
    comings = [row for row in one.rows if row.event in (tr.DOWN, tr.UP)]
    assert len(comings) == 10
    assert len(one.rows) == len(rows) + len(comings)
    assert sum(line.endswith("is back") for line in one.said) == 5


def test_also_between_losses_and_delays(tmp_path: Path) -> None:
    """What reaches a killed process is lost and sent again, so that times are not those of the simulator."""
    one = live(SERIAL, "Async", LOSS)
    measured = run_with_kills(one, tmp_path, {8: 1, 20: 0})
    predicted, _ = simulated(one.scenario, "Async")
    assert measured.turns == predicted.turns
    assert sum(agent["turns"] or 0 for agent in measured.by_agent) == 45
    assert measured.stalled == 0


def test_in_real_time(tmp_path: Path) -> None:
    one = live(SERIAL, "Dis", DELAYS, speed=0.03)
    measured = run_with_kills(one, tmp_path, {10: 1, 30: 2})
    assert measured.turns == 45
    assert measured.stalled == 0


def run_with_restarts(one: Live, folder: Path, restarts: list[int]) -> RunResult:
    """Run while the hub is killed and made again from its journal after so many pulls."""
    made = asyncio.Queue[int]()

    async def main() -> RunResult:
        one.pulls = made.put_nowait
        await one.open(folder / "hub.journal")
        for number in range(one.scenario.agents.count):
            one.join(folder / f"{number}.journal")
        for at in restarts:
            async with asyncio.timeout(30):
                while await made.get() < at:
                    pass
            assert one.hub is not None
            await one.hub.close()
            await one.open(folder / "hub.journal")
        return await one.result()

    return asyncio.run(main())


@pytest.mark.parametrize("label", everyday(2, ["Dis", "Async", "Approx-Dis", "One"]))
def test_a_server_that_is_killed_again_and_again_does_what_the_simulated_one_does(label: str, tmp_path: Path) -> None:
    one = live(SERIAL, label)
    measured = run_with_restarts(one, tmp_path, [5, 17, 18, 40, 59])
    predicted, rows = simulated(one.scenario, label)
    assert measured.by_agent == predicted.by_agent
    assert measured.totals | predicted.totals == measured.totals
    states = [row for row in one.rows if row.event in (tr.DOWN, tr.UP)]
    assert {row.node for row in states} == {-1}
    assert len(states) == 10
    assert len(one.rows) == len(rows) + 10


@pytest.mark.parametrize("speed", [0.0, 0.03])
def test_a_server_that_is_killed_between_losses(speed: float, tmp_path: Path) -> None:
    one = live(SERIAL, "Async", LOSS, speed=speed)
    measured = run_with_restarts(one, tmp_path, [10, 25])
    assert measured.turns == 45
    assert measured.stalled == 0


def run_with_interrupts(
    one: Live, folder: Path, interrupts: list[int], pause: float = 0.0
) -> tuple[RunResult, list[list[tr.Row]]]:
    """Run while the hub is interrupted after so many pulls, and all are started again; also returns what was kept."""
    made, kept = asyncio.Queue[int](), list[list[tr.Row]]()

    async def begin() -> None:
        await one.open(folder / "hub.journal")
        one.tasks = []
        for number in range(one.scenario.agents.count):
            one.join(folder / f"{number}.journal")

    async def main() -> RunResult:
        one.pulls = made.put_nowait
        for at in interrupts:
            await begin()
            assert one.hub is not None
            kept.append([])
            running = asyncio.create_task(one.hub.run(tr.keep(kept[-1])))
            async with asyncio.timeout(30):
                while await made.get() < at:
                    pass
                running.cancel()
                await asyncio.gather(*one.tasks)
            with pytest.raises(asyncio.CancelledError):
                await running
            await one.hub.close()
            await asyncio.sleep(pause)
        await begin()
        return await one.result()

    return asyncio.run(main()), kept


def assert_consistent(rows: list[tr.Row]) -> None:
    sends = {row.seq for row in rows if row.event == tr.SEND}
    assert {row.cause for row in rows if row.event == tr.DELIVER} <= sends


@pytest.mark.parametrize("label", everyday(2, ["Approx-Dis", "One", "Async", "Dis"]))
def test_a_run_that_is_interrupted_again_and_again_goes_on_as_the_simulated_one(label: str, tmp_path: Path) -> None:
    one = live(SERIAL, label)
    measured, kept = run_with_interrupts(one, tmp_path, [5, 17, 40])
    predicted, rows = simulated(one.scenario, label)
    assert measured.by_agent == predicted.by_agent
    assert measured.totals | predicted.totals == measured.totals
    states = [(row.node, row.event) for row in one.rows if row.event in (tr.DOWN, tr.UP)]
    nodes = range(-1, one.scenario.agents.count)
    assert sorted(states) == sorted((node, event) for node in nodes for event in (tr.DOWN, tr.UP) for _ in range(3))
    assert len(one.rows) == len(rows) + len(states)
    for part in kept:
        assert sum(row.event == tr.TURN for row in part) >= 5
        assert_consistent(part)


def test_time_stands_still_while_a_run_is_interrupted(tmp_path: Path) -> None:
    one = live(SERIAL, "Dis", DELAYS, speed=0.02)
    measured, kept = run_with_interrupts(one, tmp_path, [10, 30], pause=1.2)  # 60 units of simulated time
    assert (measured.turns, measured.stalled) == (45, 0)
    assert max(later.time - row.time for row, later in pairwise(one.rows)) < 50
    for part in kept:
        assert_consistent(part)


def test_what_is_kept_of_an_interrupted_run_without_its_stations_is_consistent(tmp_path: Path) -> None:
    one, kept = live(SERIAL, "Async"), list[tr.Row]()
    made = asyncio.Queue[int]()

    async def main() -> None:
        one.pulls = made.put_nowait
        await one.open(tmp_path / "hub.journal")
        for _ in range(3):
            one.join()
        async with asyncio.timeout(30):
            while await made.get() < 20:
                pass
        for task in one.tasks:
            task.cancel()
        assert one.hub is not None
        await one.hub.close()
        await one.open(tmp_path / "hub.journal")
        running = asyncio.create_task(one.hub.run(tr.keep(kept)))
        await asyncio.sleep(0)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        await one.hub.close()

    asyncio.run(main())
    assert_consistent(kept)


def test_an_entry_that_was_being_written_is_cut_off(tmp_path: Path) -> None:
    file = tmp_path / "x.journal"
    journal = Journal(file)
    journal.begin({"origin": 3})
    journal.write(1.5, b"frame")
    journal.write(2.0)
    journal.close()
    whole = file.read_bytes()
    for end in range(len(whole) - 17, len(whole)):
        file.write_bytes(whole[:end])
        journal = Journal(file)
        facts, entries = journal.read()
        journal.close()
        expected = [(1.5, b"frame")] if end >= len(whole) - 12 else []
        assert (facts, list(entries)) == ({"origin": 3}, expected)
        assert file.stat().st_size <= end


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


def test_a_journal_has_one_writer_and_whole_entries(tmp_path: Path) -> None:
    file = tmp_path / "x.journal"
    with closing(Journal(file)) as journal:
        with pytest.raises(JobFailure, match=r"x.journal is the journal of a process that runs; wait for its end, or"):
            Journal(file)
        journal.begin({"origin": 3})
        before, (_, hard) = file.read_bytes(), resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 5, hard))
        try:
            with pytest.raises(JobFailure, match=r"x.journal cannot be written: No space left on device; what is in"):
                journal.write(1.5, b"frame")
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
        assert file.read_bytes() == before
        journal.write(2.0)
    with closing(Journal(file)) as journal:
        assert list(journal.read()[1]) == [(2.0, b"")]


def test_a_file_that_is_no_journal_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    for content in (b"not a journal at all", b"{}", bytes(8) + b"\x00\x00\x00\x02{}"):
        file.write_bytes(content)
        journal = Journal(file)
        with pytest.raises(JobFailure, match="notes.txt is no journal of this version of coband; give another"):
            journal.read()
        journal.close()
        assert file.read_bytes() == content


def test_a_journal_of_another_run_has_no_place_where_its_number_is_free(tmp_path: Path) -> None:
    earlier, one = live(SERIAL, "Async"), live(SERIAL, "Dis")

    async def begun(run: Live, journal: str) -> None:
        await run.open()
        station = run.join(tmp_path / journal)
        await asyncio.sleep(0.3)
        station.cancel()
        await asyncio.wait([station])

    async def main() -> None:
        await begun(earlier, "earlier.journal")
        assert earlier.hub is not None
        await earlier.hub.close()
        await begun(one, "0.journal")
        with pytest.raises(JobFailure, match=r"runs something else than earlier.journal has begun; give another --jou"):
            await one.join(tmp_path / "earlier.journal")
        for number in range(3):
            one.join(tmp_path / f"{number}.journal")
        await one.result()

    asyncio.run(main())


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


def test_a_station_that_does_not_come_back_fails_the_run() -> None:
    one = live(SERIAL, "Dis", rejoin=0.2)

    async def main() -> None:
        await one.open()
        for _ in range(3):
            one.join()
        one.pulls = lambda made: one.tasks[1].cancel() if made > 10 else None  # type: ignore[assignment, return-value]
        await one.result()

    with pytest.raises(JobFailure, match=r"agent 1 .* was lost, and did not come back within 0.2 s"):
        asyncio.run(main())


def test_a_station_of_another_run_is_refused(tmp_path: Path) -> None:
    other = Journal(tmp_path / "other.journal")
    one = live(SERIAL, "Dis")

    async def main() -> None:
        await one.open()
        first = one.join(tmp_path / "0.journal")
        await asyncio.sleep(0.3)
        first.cancel()
        await asyncio.wait([first])  # which ends its journal
        for number in range(1, 3):
            one.join(tmp_path / f"{number}.journal")
        one.join(tmp_path / "0.journal")
        with pytest.raises(JobFailure, match="all agents have a process already"):
            await one.join(tmp_path / "late.journal")
        await one.result()

    other.close()
    asyncio.run(main())
    assert any("a station was refused: all agents have a process already" in line for line in one.said)
