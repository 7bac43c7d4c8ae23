"""Conversations of hub and stations in which one frame is nearly right: nobody crashes, hangs or shows a traceback."""

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from coband.extensions.live.codec import WireError, pack
from coband.extensions.live.config import Terms
from coband.extensions.live.frames import FROM_HUB, FROM_STATION, framed
from coband.extensions.live.schema import Copy
from coband.simulator.experiments.scenario import loading
from tests.extensions.live.tampering import DOWN, UP, Proxied, Tampering, decoded, recorded, tampered
from tests.extensions.live.test_equality import LOSS
from tests.extensions.live.together import SERIAL, TOKEN, Live, live

SHARES = (2, 1)
Make = Callable[[], Live]


def serial() -> Live:
    return live(SERIAL, "Async", ("schedule={kind: one_at_a_time, turns: 9}",), share=2)


def lossy() -> Live:
    """With acknowledgements, repetitions, and messages that are given up."""
    changes = (*LOSS, "network.loss=0.4", "network.retransmission.max_attempts=2", "schedule={kind: rounds, turns: 4}")
    return live(SERIAL, "Async", changes, share=2)


def sums() -> Live:
    """With sums of squares, in real time."""
    return live(SERIAL, "DisLin", ("schedule={kind: rounds, turns: 6}",), share=2, speed=0.002)


def phases() -> Live:
    """With messages from agent to agent."""
    scenario = loading.load("cope_kb/fixed_budget_same_quick", ["agents.count=3", "replications=1"])
    return Live(scenario, "CoKernelFB", Terms(0.0, 2, TOKEN, start=False))


@pytest.fixture(autouse=True)
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("coband.extensions.live.station.RETRY_SECONDS", 0.02)


def said_in(make: Make) -> dict[str, list[bytes]]:
    """What is said in a run that nobody disturbs."""
    said: dict[str, list[bytes]] = {UP: [], DOWN: []}
    run = Proxied(make(), recorded(said))
    asyncio.run(run.run(*SHARES))
    assert run.words == []
    return said


def kind_of(body: bytes) -> str:
    value = decoded(body)
    return str(value[2] if value[0] == "f" else value[0])


def place_in(bodies: list[bytes], rng: np.random.Generator) -> int:
    """The number of a frame; every kind is as likely as any other."""
    kinds = sorted({kind_of(body) for body in bodies})
    kind = kinds[rng.integers(len(kinds))]
    return int(rng.choice([number for number, body in enumerate(bodies) if kind_of(body) == kind]))


def fuzz(makes: list[Make], seeds: range) -> Counter[str]:
    """Tamper with one frame of one run for each seed; returns how many runs came to which end.

    Raises:
        AssertionError: something happened that must not; the text says by what.
    """
    said, faults, ends = [said_in(make) for make in makes], list[str](), Counter[str]()
    room = asyncio.Semaphore(8)

    async def one(seed: int) -> None:
        rng, done = np.random.default_rng(seed), list[str]()
        which, way = int(rng.integers(len(makes))), UP if rng.random() < 0.6 else DOWN
        change = tampered(seed, way, place_in(said[which][way], rng), said[which][way], done)
        run = Proxied(makes[which](), change)
        async with room:
            try:
                await run.run(*SHARES)
            except TimeoutError:
                faults.append(f"seed {seed}: no end; {run.one.said} after {done}")
                return
        faults.extend(f"seed {seed}: {fault} after {done}" for fault in run.faults())
        ends["as ever" if run.ends[0] is None else "put out" if run.complaints else "lost"] += 1

    async def main() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: faults.append(f"asyncio: {context}"))
        await asyncio.gather(*map(one, seeds))

    asyncio.run(main())
    assert not faults, "\n".join(faults)
    return ends


def test_one_frame_that_is_nearly_right() -> None:
    ends = fuzz([serial, lossy], range(24))
    assert ends.total() == 24
    assert min(ends["put out"], ends["lost"], ends["as ever"]) > 0


@pytest.mark.slow
def test_many_frames_that_are_nearly_right() -> None:
    ends = fuzz([serial, lossy, sums, phases], range(1000, 1600))
    assert ends.total() == 600


def test_what_is_read_is_a_frame_or_refused_in_a_sentence() -> None:
    one = lossy()
    said: dict[str, list[bytes]] = {UP: [], DOWN: []}
    asyncio.run(Proxied(one, recorded(said)).run(*SHARES))
    assert one.hub is not None
    machine = one.hub._machine
    found, odd = Counter[str](), list[str]()
    for seed in range(4000):
        tampering = Tampering(seed, [])
        way = tampering.pick((UP, DOWN))
        body = tampering.pick(said[way])
        raw = (
            tampering.flipped(body)
            if seed % 5 == 0
            else tampering.body(tampering.pick(("value", "list", "kind")), body)[1]
        )
        try:
            _, frame = (FROM_STATION if way == UP else FROM_HUB).read(raw)
            if isinstance(frame, Copy):
                machine.transport.packet_of(frame)
            found["taken"] += 1
        except WireError as error:
            found["refused"] += 1
            odd += [str(error)] if len(str(error)) > 400 or not str(error).isprintable() else []
    assert odd == []
    assert found["refused"] > 2000
    assert found["taken"] > 100


LAST_WORDS: list[tuple[str, Callable[[list[Any]], list[Any]], str]] = [
    ("rows", lambda fields: [[[1, 2], "x"]], "rows whose rows.0.2 is wrong: field required"),
    ("rows", lambda fields: [fields[0][1:]], "rows with event 1099511627777 where event 1099511627776 was due"),
    ("report", lambda fields: [{"a": 1}], "a report with 1 fields instead of 13"),
    ("report", lambda fields: [[], *fields[1:]], "a report without names that its events have"),
    ("report", lambda fields: [*fields[:3], [*fields[3][:5], fields[3][5][1:]], *fields[4:]], "differ in length"),
    (
        "report",
        lambda fields: [*fields[:3], [*fields[3][:5], [0] * len(fields[3][5])], *fields[4:]],
        "without their events",
    ),
    ("report", lambda fields: [*fields[:9], fields[9][1:], *fields[10:]], "or not about all of this one's"),
    ("report", lambda fields: [fields[0], [*fields[1][:2], [0], *fields[1][3:]], *fields[2:]], "not one of 3 agents"),
    ("report", lambda fields: [*fields[:10], [[1.0, 2, 1.0]], *fields[11:]], "about the privacy of other agents"),
    ("report", lambda fields: [*fields[:11], [0], fields[12]], "about the privacy of other agents"),
    ("report", lambda fields: [*fields[:12], [[1, 2], [0, 1]]], "a report whose steps go back"),
]


def test_a_report_that_does_not_fit_together_loses_its_station_and_the_run_goes_on() -> None:
    """And not the hub, which would wait forever for a report, or find out when it puts all of them together."""

    async def last_words(kind: str, change: Callable[[list[Any]], list[Any]]) -> Proxied:
        def other(way: str, body: bytes) -> list[bytes]:
            value = decoded(body)
            if way == UP and kind_of(body) == kind and value[3:] and origin_of(value) == 1:
                value[3:] = change(value[3:])
            return [framed(pack(value))]

        run = Proxied(serial(), other)
        await run.run(*SHARES)
        return run

    for kind, change, wrong in LAST_WORDS:
        run = asyncio.run(last_words(kind, change))
        assert list(run.faults()) == []
        (complaint,) = run.complaints
        assert complaint.startswith("agents 0 to 1 (process ")
        assert complaint.endswith(wrong)
        assert run.ends[0] is None
        assert str(run.ends[1]) == f"the hub refuses: {complaint.partition('closed: ')[2]}"


def origin_of(value: list[Any]) -> int:
    """Number of the process that has recorded rows, or a report of pulls or agents; 0 where none are in it."""
    if value[2] == "rows":
        return int(value[3][0][0]) >> 40
    marks, agents = value[6][5], value[12]
    return int(marks[0]) >> 40 if marks else int(bool(agents) and agents[0][0] == 0)
