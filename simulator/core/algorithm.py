"""How an algorithm introduces itself to the registry."""

from __future__ import annotations

from dataclasses import dataclass, field

from pydantic import BaseModel

from coband.simulator.core.node import Client


@dataclass(frozen=True)
class Needs:
    """What an algorithm cannot do without.

    Attributes:
        topologies: network topologies it can run on: star, graph (any of them), or the kinds of single graphs.
        reliable: every message must arrive; a lossy datagram network is refused.
        ordered: the messages of a pair must arrive in order; datagrams with a random latency are refused.
        fixed_arms: the arm set must be the same at every turn of every agent.
        problems: kinds of problem it can run on; empty for any that offers arms turn by turn.
        horizon: the number of turns must be known; a schedule with a duration needs the parameter ``horizon``.
        schedules: kinds of schedule it can run on.
    """

    topologies: tuple[str, ...] = ("star",)
    reliable: bool = True
    ordered: bool = False
    fixed_arms: bool = False
    problems: tuple[str, ...] = ()
    horizon: bool = False
    schedules: tuple[str, ...] = ("one_at_a_time", "rounds", "renewal", "trace")


@dataclass(frozen=True)
class Algorithm:
    """One registered algorithm.

    Attributes:
        name: what users write after ``algorithm:``.
        agent: the class that runs on each client.
        server: the server's class as ``"module:Class"``, or None for algorithms without a server.
        config: its parameters; defaults are the paper's.
        summary: one line.
        reference: paper, algorithm number.
        messages: (kind, direction, scalars) of every message, for ``coband describe``.
        counts: closed forms of the communication, for ``coband describe``.
        cites: what ``coband cite`` prints: keys of ``references.bib``, or whole BibTeX entries.
    """

    name: str
    agent: type[Client]
    server: str | None
    config: type[BaseModel]
    summary: str
    reference: str
    needs: Needs = field(default_factory=Needs)
    messages: tuple[tuple[str, str, str], ...] = ()
    counts: tuple[str, ...] = ()
    cites: tuple[str, ...] = ()
