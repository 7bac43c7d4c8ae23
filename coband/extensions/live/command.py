"""``coband live``: run a scenario with processes that talk over sockets."""

from __future__ import annotations

import secrets
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from coband.extending import Group, options, progress, show_results

if TYPE_CHECKING:
    from coband.extending import Report, Study
    from coband.extensions.live.config import Terms

EXPOSED = (
    "warning: other machines can connect to {host}, and nothing that goes over the wire is encrypted: who can change "
    "it can take over the run. Unless you trust the network, leave --host out and let stations come through ssh "
    "(ssh -L) or a VPN"
)


@contextmanager
def _needs_msgpack() -> Iterator[None]:
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name != "msgpack":
            raise
        raise options.BadInput("this needs msgpack, which is not installed: pip install 'coband[live]'.") from error


@click.group(cls=Group)
def live() -> None:
    """Run a scenario with the server and its agents in several processes, over TCP."""


@live.command(epilog=options.SHIPPED, short_help="Run a scenario with processes that talk over sockets.")
@options.selection
@click.option(
    "--speed",
    type=options.Finite(min=0, max=3600),
    metavar="SECONDS",
    default=0.1,
    help="Seconds of one unit of simulated time; 0: as quick as possible, in virtual time.",
)
@click.option(
    "--agents-per-process",
    type=options.AtLeast(1),
    metavar="K",
    help="How many agents a process has; by default there is one process for each core.",
)
@click.option("--host", metavar="ADDRESS", default="127.0.0.1", help="Address on which other processes connect.")
@options.PORT
@click.option(
    "--token",
    metavar="TOKEN",
    envvar="COBAND_LIVE_TOKEN",
    help="Token that processes must show; by default drawn at random. Also from the environment: COBAND_LIVE_TOKEN.",
)
@click.option("--join", is_flag=True, help="Start no processes: all agents join with `coband live agent`.")
@click.option(
    "--max-frame", type=click.IntRange(1, 2047), metavar="MIB", default=64, help="Size of the largest frame in MiB."
)
@options.out_directory("Run directory, new or empty; by default runs/<name>-<number>.")
@click.pass_context
def run(
    context: click.Context,
    /,
    speed: float,
    agents_per_process: int | None,
    host: str,
    port: int,
    token: str | None,
    join: bool,
    max_frame: int,
    out: Path | None,
    **selected: Any,
) -> None:
    """Run the scenario in FILE with the server and its agents in several processes, over TCP.

    Compute times, latencies, bandwidth and loss are those of the scenario, in real time; arms and noise are those of
    the simulator. The run directory is like that of `coband run`; times in it are measured. Processes talk on this
    machine alone, unless --host says otherwise.
    """
    request = options.Request(**selected)
    with _needs_msgpack():
        from coband.extensions.live import deployment  # noqa: F401, needs the extra
    from coband.extending import executor
    from coband.extensions.live.config import Terms, refuse

    study = request.study()
    refuse(study)
    share = agents_per_process or -(-study.variants[0].scenario.agents.count // executor.cores())
    known = token or secrets.token_urlsafe(24)
    terms = Terms(speed, share, known, max_frame << 20, host, port, start=not join)
    report = _run(request, study, terms, out, drawn=token is None)
    progress.warn(report)
    show_results(report, study)
    context.exit(progress.exit_code(report))


def _run(request: options.Request, study: Study, terms: Terms, out: Path | None, *, drawn: bool) -> Report:
    """Run it; a token that was ``drawn`` is told to whom others are to join."""
    from coband.extending import Commands, directory, drive, executor
    from coband.extensions.live.config import check_token, is_exposed
    from coband.extensions.live.deployment import LivePool, LiveStudy

    check_token(terms.host, terms.token)
    if is_exposed(terms.host):
        click.echo(EXPOSED.format(host=terms.host), err=True)
    if drawn and not terms.start:
        click.echo(f"token: {terms.token}", err=True)
    processes = -(-study.variants[0].scenario.agents.count // terms.share)
    executor.check_open_files(processes, "processes", "give each more agents (--agents-per-process)")
    progress.announce(study)
    with progress.Bar(study.name) as bar:
        pool = LivePool(terms, lambda line: click.echo(line, err=True))
        how = ["--speed", str(terms.speed), "--agents-per-process", str(terms.share)]
        commands = Commands(["coband", "live", "run", *request.replay()[2:], *how], sys.argv)
        of, where = LiveStudy.of(study, terms), directory.create(study.name, out)
        return drive(of, where, workers=pool, commands=commands, listener=bar)


@live.command(short_help="Take agents of a live run into this process.")
@click.argument("address", metavar="tcp://HOST:PORT")
@click.option(
    "--token",
    metavar="TOKEN",
    envvar="COBAND_LIVE_TOKEN",
    required=True,
    help="Token that `coband live run` was given or has printed. Also from the environment: COBAND_LIVE_TOKEN.",
)
@click.option(
    "--agents", type=options.AtLeast(1), metavar="K", help="How many agents; by default as `coband live run` says."
)
@click.option("--patience", type=options.Finite(0, 86_400), metavar="SECONDS", default=30.0, help="Seconds to connect.")
@click.option("--base", type=options.FOLDER, help="Where relative file names in the scenario are looked for.")
def agent(address: str, token: str, agents: int | None, patience: float, base: Path | None) -> None:
    """Take agents of the live run at tcp://HOST:PORT into this process, until the run has ended."""
    import asyncio

    with _needs_msgpack():
        from coband.extensions.live.station import Invitation, Station
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
        raise options.BadInput(f"{address!r} is not an address; write tcp://HOST:PORT")
    return host, port
