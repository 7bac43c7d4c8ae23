"""What drives a machine: frames as they come, and its events when the clock on the wall says so.

Simulated time is the time since the start in units of ``speed`` seconds. With a speed of 0 time is virtual: it stands
still until the hub says that it goes on, which it does when nothing is left to do at that time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from coband.simulator.live.codec import pack
from coband.simulator.live.frames import parts
from coband.simulator.live.journal import Journal
from coband.simulator.live.machine import Machine
from coband.simulator.live.schema import Advance, Passing, Start

SLICE = 0.02
"""Seconds after which other tasks get their turn."""


class Pump:
    """Drives one machine.

    Args:
        speed: seconds of one unit of simulated time; 0 for virtual time.
        after: called when all that is due is done.
        fail: called when an event of the machine raises an exception.
        journal: what the machine is given is written there first; None: nowhere.

    Attributes:
        epoch: time of the event loop at which the run began; None before.
    """

    def __init__(
        self,
        machine: Machine,
        speed: float,
        after: Callable[[], None],
        fail: Callable[[Exception], None],
        journal: Journal | None = None,
    ) -> None:
        self._machine, self._speed, self._after, self._fail, self._journal = machine, speed, after, fail, journal
        self.epoch: float | None = None
        self._timer: asyncio.Handle | None = None

    @property
    def now(self) -> float:
        """Simulated time, which never goes back."""
        known = self._machine.clock.now
        if self.epoch is None or not self._speed:
            return known
        return max(known, (asyncio.get_running_loop().time() - self.epoch) / self._speed)

    def frame(self, frame: Passing | Start | Advance) -> None:
        """Give the machine a frame.

        Raises:
            WireError: it is none that the machine takes.
        """
        now = frame.time if isinstance(frame, Advance) else 0.0 if isinstance(frame, Start) else self.now
        packet = self._machine.check(frame)
        if self._journal is not None:
            self._journal.write(now, pack(parts(frame)))
        try:
            self._machine.take(now, frame, packet)
        except Exception as error:
            self._fail(error)
        self.drain()

    def drain(self) -> None:
        """Run all events that are due, and come back when the next one is."""
        try:
            self._run()
        except Exception as error:
            self._fail(error)

    def _run(self) -> None:
        loop, machine = asyncio.get_running_loop(), self._machine
        until = loop.time() + SLICE
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while machine.next_due <= (now := self.now):
            if loop.time() > until:
                self._timer = loop.call_soon(self.drain)
                return
            if self._journal is not None:
                self._journal.write(now)
            machine.run_due(now)
        if self.epoch is not None and self._speed and machine.next_due < float("inf"):
            self._timer = loop.call_at(self.epoch + machine.next_due * self._speed, self.drain)
        self._after()

    def stop(self) -> None:
        """Run nothing any more."""
        if self._timer is not None:
            self._timer.cancel()
