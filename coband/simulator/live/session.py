"""A session between two processes: frames in order and exactly once, over connections that may break and come again.

Frames are numbered and kept until the other end has said that it has them. After a break each end says how many it has,
and the other sends the rest again.
"""

from __future__ import annotations

from asyncio import StreamWriter
from collections import deque

from coband.simulator.live.codec import WireError
from coband.simulator.live.frames import written
from coband.simulator.live.schema import Frame


class Session:
    """One end of a session.

    Attributes:
        sent: frames sent so far.
        received: frames received so far.
    """

    def __init__(self) -> None:
        self.sent = self.received = 0
        self._kept: deque[tuple[int, bytes]] = deque()
        self._writer: StreamWriter | None = None

    @property
    def connected(self) -> bool:
        return self._writer is not None

    def post(self, frame: Frame) -> None:
        """Send a frame, now or when there is a connection."""
        self.sent += 1
        raw = written(frame, self.sent)
        self._kept.append((self.sent, raw))
        self._write(raw)

    def say(self, frame: Frame) -> None:
        """Send a frame about the connection, if there is one."""
        self._write(written(frame))

    def _write(self, raw: bytes) -> None:
        if self._writer is not None and not self._writer.is_closing():
            self._writer.write(raw)

    def is_next(self, number: int) -> bool:
        """Whether a frame that has come is the one that is due; False if it had come before.

        Raises:
            WireError: frames are missing before it.
        """
        if number > self.received + 1:
            raise WireError(f"frame {number} where frame {self.received + 1} was due")
        return number > self.received

    def settle(self, received: int) -> None:
        """The other end has the frames up to this number.

        Raises:
            WireError: it cannot have so many.
        """
        if received > self.sent:
            raise WireError(f"{received} frames received of {self.sent} sent")
        while self._kept and self._kept[0][0] <= received:
            self._kept.popleft()

    def resume(self, writer: StreamWriter, received: int) -> None:
        """Go on over a new connection, whose other end has the frames up to this number."""
        self.settle(received)
        self._writer = writer
        for _, raw in self._kept:
            writer.write(raw)

    def broken(self) -> None:
        self._writer = None
