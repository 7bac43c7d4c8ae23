"""Steps that Ctrl-C does not cut in two."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def finished_first() -> Iterator[None]:
    """Let a Ctrl-C, and a SIGTERM that this process handles, wait until the block has ended.

    A second one does not wait. Signals reach the main thread alone; in others this does nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before: dict[int, Any] = {number: handler for number in SIGNALS if callable(handler := signal.getsignal(number))}
    waiting: list[int] = []

    def later(number: int, frame: FrameType | None) -> None:
        if waiting:
            before[number](number, frame)
        waiting.append(number)

    for number in before:
        signal.signal(number, later)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if waiting:
            before[waiting[0]](waiting[0], None)
