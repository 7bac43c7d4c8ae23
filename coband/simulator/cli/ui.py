"""``coband ui``: browse all runs."""

from __future__ import annotations

from pathlib import Path

import click

from coband.simulator.cli.options import PORT, BadInput, Place


@click.command()
@click.argument("root", metavar="[DIR]", type=Place(path_type=Path), default=Path("runs"))
@PORT
def ui(root: Path, port: int) -> None:
    """Serve a page about all runs and sweeps below DIR, by default runs, until Ctrl-C.

    The page searches, filters and compares them, shows scenarios and reports, and follows runs that go on. It is open
    to this machine alone, to whoever has the address that is printed. Nothing is written.
    """
    if not root.is_dir():
        raise BadInput(f"there is no directory {root}; give the one that has your runs.")
    from coband.simulator.ui.server import RunServer

    try:
        server = RunServer(root, port)
    except OSError as error:
        raise BadInput(f"port {port} cannot be used: {error.strerror}; choose another --port, or 0.") from error
    with server:
        server.warm_up()
        click.echo(f"{server.gate.address}\nCtrl-C ends it.")
        try:
            server.serve_forever(poll_interval=0.1)
        except KeyboardInterrupt:
            click.echo("ended", err=True)
