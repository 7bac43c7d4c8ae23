"""``coband trace``: analyse the events of a stored run. One module per subcommand."""

from __future__ import annotations

import click

from coband.simulator.cli.lazy import LazyGroup

COMMANDS = {
    "show": "Print events, in order.",
    "follow": "Print the history of a message: copies, hops, losses, effects.",
    "why": "Print the causes of an event, back to the turn that started the chain.",
    "stats": "Count events, messages and scalars.",
    "diff": "Find the first event in which two runs differ.",
    "query": "Run a read-only SQL query.",
    "export": "Write events for Perfetto or a table.",
    "verify": "Check a trace against its fingerprint and the ledger.",
    "hash": "Print the fingerprint of each job.",
}


@click.group(cls=LazyGroup, package="coband.simulator.cli.trace", helps=COMMANDS)
def trace() -> None:
    """Analyse the events of a run, and export them."""
