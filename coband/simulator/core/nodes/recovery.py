"""How long nodes wait, and how often they try, after the transport has given a message up."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import Field

from coband.simulator.core.config import Config

MOST_BACKOFFS = 6
"""Waits grow so often: without an end, a node that comes and goes would be waited for nearly for ever."""


class Recovery(Config):
    """What nodes do about messages that the transport has given up; without such a message nothing of it matters."""

    timeout: float | None = Field(default=None, gt=0)
    """Wait before a message is sent again, and before its receiver notices that it is missing; null for the transport's
    first wait for an acknowledgement."""
    backoff: float = Field(default=2.0, ge=1)
    """Each further wait is longer by this factor, up to its sixth power."""
    attempts: int = Field(default=12, ge=0)
    """So often a message is sent again; then its sender goes on without it."""
    patience: float | None = Field(default=None, gt=0)
    """A node that waits goes on so long after it last noticed that something is missing; null for the longest time
    between two attempts."""


@dataclass(frozen=True)
class RetryPolicy:
    """The waits of one run, in simulated time.

    Attributes:
        timeout: before a message that was given up is sent again for the first time.
        backoff: each further wait is longer by this factor, up to `MOST_BACKOFFS` times.
        attempts: how often a message is sent again.
        patience: how long a node waits for what may come again before it goes on without it.
    """

    timeout: float = 1.0
    backoff: float = 2.0
    attempts: int = 12
    patience: float = 128.0

    def delay(self, tries: int) -> float:
        """Wait before a message is sent again that was sent again so often already."""
        return self.timeout * self.backoff ** min(tries, MOST_BACKOFFS)
