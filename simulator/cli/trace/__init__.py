"""``coband trace``: analyse the events of a stored run. One module per subcommand."""

from __future__ import annotations

import click

from coband.simulator.cli.lazy import LazyGroup

COMMANDS = {
    "show": ("coband.simulator.cli.trace.show:show", "Print events, in order."),
    "follow": (
        "coband.simulator.cli.trace.follow:follow",
        "Print the history of a message: copies, hops, losses, effects.",
    ),
    "why": (
        "coband.simulator.cli.trace.why:why",
        "Print the causes of an event, back to the turn that started the chain.",
    ),
    "stats": ("coband.simulator.cli.trace.stats:stats", "Count events, messages and scalars."),
    "diff": ("coband.simulator.cli.trace.diff:diff", "Find the first event in which two runs differ."),
    "query": ("coband.simulator.cli.trace.query:query", "Run a read-only SQL query."),
    "export": ("coband.simulator.cli.trace.export:export", "Write events for Perfetto, ShiViz or a table."),
    "verify": ("coband.simulator.cli.trace.verify:verify", "Check a trace against its fingerprint and the ledger."),
    "hash": ("coband.simulator.cli.trace.hash:hash_", "Print the fingerprint of each job."),
}


@click.group(cls=LazyGroup, places=COMMANDS)
def trace() -> None:
    """Analyse the events of a run, and export them."""
