"""The event loop and the trace."""

from __future__ import annotations

from benchmarks import textbook
from benchmarks.bandits import simulated
from benchmarks.measuring import Cases, Measured, seconds
from coband.simulator.core.clock.clock import DELIVERY, Clock


def messages(count: int) -> Measured:
    """Delayed messages: one bare event each against a process and a store."""

    def bare() -> int:
        clock, heard = Clock(), []
        for message in range(count):
            clock.at(1.0, DELIVERY, 0, heard.append, message)
        clock.run()
        return len(heard)

    fast, heard = seconds(bare)
    slow, _ = seconds(lambda: textbook.process_messages(count))
    return Measured(slow, fast, heard == count, f"{count / fast / 1e3:.0f}k messages/s")


def tracing(turns: int) -> Measured:
    """A run with its protocol trace handed to a sink against the same run with tracing off (ratio near 1 is good)."""
    config = {"alpha": 0.1, "kernel": {"kind": "gaussian", "gamma": 0.1}}
    off, first = seconds(lambda: simulated("async_kernel_ucb", config, 100, turns))
    on, second = seconds(lambda: simulated("async_kernel_ucb", config, 100, turns, "protocol"))
    return Measured(on, off, first.fingerprint == second.fingerprint, "textbook column: protocol trace")


CASES: Cases = {
    "messages": (lambda: messages(100_000), "delayed messages; target 400k/s"),
    "trace": (lambda: tracing(10_000), "protocol trace; target at most 1.15"),
}
