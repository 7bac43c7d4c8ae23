"""``coband trace``: look at the events of a stored run. One module per subcommand."""

from __future__ import annotations

import click

from coband.simulator.cli.lazy import LazyGroup

COMMANDS = {
    "show": ("coband.simulator.cli.trace.show:show", "Print events, in order."),
    "follow": (
        "coband.simulator.cli.trace.follow:follow",
        "Print the life of a message: copies, hops, losses, effects.",
    ),
    "why": ("coband.simulator.cli.trace.why:why", "Print what led to an event, back to the pull that set it off."),
    "stats": ("coband.simulator.cli.trace.stats:stats", "Count events, messages and scalars."),
    "diff": ("coband.simulator.cli.trace.diff:diff", "Find the first event in which two runs differ."),
    "query": ("coband.simulator.cli.trace.query:query", "Answer a question in SQL, reading only."),
    "export": ("coband.simulator.cli.trace.export:export", "Write events for Perfetto, ShiViz or a table."),
    "verify": ("coband.simulator.cli.trace.verify:verify", "Check a trace against fingerprint and ledger."),
    "hash": ("coband.simulator.cli.trace.hash:hash_", "Print the fingerprint of each job."),
}


@click.group(cls=LazyGroup, places=COMMANDS)
def trace() -> None:
    """Look at the events of a run; RUN is a run directory or its run.sqlite."""
