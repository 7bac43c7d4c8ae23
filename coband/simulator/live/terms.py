"""How a live run is made, and what goes wrong with one."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from coband.simulator.core.nodes.node import UnsupportedScenario
from coband.simulator.experiments.runs.job import JobFailure
from coband.simulator.live import frames
from coband.simulator.scenario_errors import RequestError

PROTOCOL = 4
"""Version of what hub and stations say to each other."""
SHORTEST_TOKEN = 16
"""Characters of a token where other machines can connect."""


class LiveError(RequestError, JobFailure):
    """A live run cannot go on; the text says why."""


@dataclass(frozen=True)
class Terms:
    """How a run is made.

    Attributes:
        speed: seconds of one unit of simulated time; 0 for virtual time.
        share: agents of each station, unless it asks for another number.
        token: what stations show.
        rejoin: so many seconds a station that is lost is waited for.
        largest: bytes of the largest frame.
        host, port: where stations connect; port 0: any that is free.
        start: whether this machine's own stations are started; False: all come from elsewhere.
        journals: directory of journals, from which a hub that was killed goes on; None: it cannot.
    """

    speed: float
    share: int
    token: str
    rejoin: float = 30.0
    largest: int = frames.LARGEST
    host: str = "127.0.0.1"
    port: int = 0
    start: bool = True
    journals: Path | None = None

    def facts(self, scenario: str, algorithm: str, replication: int) -> dict[str, Any]:
        """What a journal says of its run; it goes on only where all of it is the same."""
        run = {"scenario": scenario, "algorithm": algorithm, "replication": replication}
        return {**run, "--speed": self.speed, "--agents-per-process": self.share}


def is_exposed(host: str) -> bool:
    """Whether other machines can connect to an address of this one."""
    try:
        return not ip_address(host).is_loopback
    except ValueError:
        return host != "localhost"


def check_token(host: str, token: str) -> None:
    """Refuse a token that can be guessed, where others may try.

    Raises:
        UnsupportedScenario: the text says why, and what to do.
    """
    if is_exposed(host) and len(token) < SHORTEST_TOKEN:
        raise UnsupportedScenario(
            f"--token has {len(token)} characters; with --host {host}, to which other machines can connect, it must "
            f"have {SHORTEST_TOKEN} or more: who overhears a greeting can try guesses at leisure. Without --token a "
            "good one is drawn, and printed with --join"
        )
