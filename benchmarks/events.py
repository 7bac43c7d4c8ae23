"""The event loop and the trace."""

from __future__ import annotations

import simpy

from benchmarks import textbook
from benchmarks.bandits import run
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

    def timeouts() -> None:
        env, heard = simpy.Environment(), []
        for message in range(count):
            env.timeout(1.0, message).callbacks.append(heard.append)
        env.run()

    fast, heard = seconds(bare)
    slow, _ = seconds(lambda: textbook.process_messages(count))
    idiom, _ = seconds(timeouts)
    note = f"{count / fast / 1e3:.0f}k messages/s, {idiom / fast:.2f} times SimPy's timeouts"
    return Measured(slow, fast, heard == count, note)


def tracing(turns: int) -> Measured:
    """A run with its protocol trace handed to a sink against the same run with tracing off (ratio near 1 is good)."""
    config = {"alpha": 0.1, "kernel": {"kind": "gaussian", "gamma": 0.1}}
    off, first = seconds(lambda: run("async_kernel_ucb", config, 100, turns))
    on, second = seconds(lambda: run("async_kernel_ucb", config, 100, turns, trace="protocol"))
    return Measured(on, off, first.fingerprint == second.fingerprint, "textbook column: protocol trace")


CASES: Cases = {
    "messages": (lambda: messages(100_000), "delayed messages; target 450k/s"),
    "trace": (lambda: tracing(10_000), "protocol trace; target at most 1.15"),
}
