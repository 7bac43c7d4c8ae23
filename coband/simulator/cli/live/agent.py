"""``coband live agent``: take agents of a live run into this process."""

from __future__ import annotations

from pathlib import Path

import click

from coband.simulator.cli.options import FOLDER, AtLeast, BadInput, Finite
from coband.simulator.cli.runs import extra


@click.command
@click.argument("address", metavar="tcp://HOST:PORT")
@click.option(
    "--token",
    metavar="TOKEN",
    envvar="COBAND_LIVE_TOKEN",
    required=True,
    help="Token that `coband live run` was given or has printed. Also from the environment: COBAND_LIVE_TOKEN.",
)
@click.option("--agents", type=AtLeast(1), metavar="K", help="How many agents; by default as `coband live run` says.")
@click.option("--patience", type=Finite(0, 86_400), metavar="SECONDS", default=30.0, help="Seconds to connect.")
@click.option("--base", type=FOLDER, help="Where relative file names in the scenario are looked for.")
def agent(address: str, token: str, agents: int | None, patience: float, base: Path | None) -> None:
    """Take agents of the live run at tcp://HOST:PORT into this process, until the run has ended."""
    import asyncio

    with extra("live", "msgpack"):
        from coband.simulator.live.station import Invitation, Station
    host, port = _parsed(address)
    asyncio.run(Station(Invitation(host, port, token, agents, patience, base)).run())


def _parsed(address: str) -> tuple[str, int]:
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(address)
        scheme, host, port = parts.scheme, parts.hostname, parts.port
    except ValueError:
        scheme, host, port = "", None, None
    if scheme != "tcp" or not host or not port:
        raise BadInput(f"{address!r} is not an address; write tcp://HOST:PORT")
    return host, port
