"""``coband live``: run scenarios with processes that talk over sockets. One module per subcommand."""

from __future__ import annotations

import click

from coband.simulator.cli.lazy import LazyGroup

COMMANDS = {
    "run": "Run a scenario with processes that talk over sockets.",
    "agent": "Take agents of a live run into this process.",
}


@click.group(cls=LazyGroup, package="coband.simulator.cli.live", helps=COMMANDS)
def live() -> None:
    """Run a scenario with the server and its agents in several processes, over TCP."""
