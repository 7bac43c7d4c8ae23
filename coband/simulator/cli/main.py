"""The program ``coband``: finds commands without importing them, and reports errors in the input with one message.

Exit status: 0 success; 1 a check or a job failed; 2 bad input; 70 a defect of coband; 130 interrupted; 141 the reader
of the output has closed the pipe.
"""

from __future__ import annotations

import errno
import gc
import os
import signal
import sys
import threading
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

import click

from coband.simulator.cli.lazy import LazyGroup, ReaderGoneError
from coband.simulator.terminal import output

BAD_INPUT, DEFECT, INTERRUPTED, BROKEN_PIPE = 2, 70, 130, 141
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
"""Errors of the system, not defects of coband: a full disk, a quota, a limit on the size of files, a bad disk."""
YOUNG_OBJECTS = 100_000
"""So many new objects are made before the garbage collector looks at them; imports make many, and no garbage."""

GROUPED: Mapping[str, Mapping[str, str]] = {
    "Start": {
        "run": "Run a scenario and keep its results.",
        "init": "Write a project that runs at once.",
        "show": "Print the results of a stored run again, or what to cite.",
        "compare": "Compare the algorithms of one or several runs.",
        "report": "Write an HTML report about one or several runs.",
        "trace": "Analyse the events of a run, and export them.",
    },
    "Study": {
        "sweep": "Run a scenario at every point of its grid, here or on a cluster.",
        "frontier": "Search for the Pareto front of regret and communication.",
        "check": "Check what a scenario expects or promises, or a lock file.",
        "counts": "Keep communication counts in a lock file.",
        "plot": "Draw the figures of a report as PDF, SVG or PNG.",
        "list": "List algorithms, problems, datasets and scenarios.",
        "describe": "Describe an algorithm, problem, dataset or scenario.",
        "validate": "Check scenario files for mistakes, or print their JSON Schema.",
    },
}
"""Title of a list -> command -> its help in one line, which is here so that ``--help`` imports nothing."""


def _print_version(ctx: click.Context, parameter: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        from importlib.metadata import version

        click.echo(f"coband {version('coband')}")
        ctx.exit()


@click.group(
    cls=LazyGroup,
    lists=GROUPED,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "show_default": True},
)
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_print_version, help="Print the version."
)
@click.pass_context
def cli(ctx: click.Context) -> None:
    """A discrete-event simulator for collaborative bandits: regret, communication and time on one clock."""
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the program and exit; SIGTERM ends it as Ctrl-C does.

    Args:
        arguments: the command line without the program's name; None for that of this process.
    """
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")  # it would look for them in every installed package
    gc.set_threshold(YOUNG_OBJECTS, *gc.get_threshold()[1:])
    try:
        with _ended_like_ctrl_c():
            status = exit_status(arguments)
    finally:
        gc.freeze()  # else Python would look through all objects several times when it ends
    sys.exit(status)


@contextmanager
def _ended_like_ctrl_c() -> Iterator[None]:
    """SIGTERM, which queues send at their time limit, interrupts as Ctrl-C does."""
    if threading.current_thread() is not threading.main_thread():  # signals are not for others
        yield
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        if before is not None:  # a handler in another language, which Python cannot set again
            signal.signal(signal.SIGTERM, before)


def exit_status(arguments: Sequence[str] | None) -> int:
    """Run the program and return the exit status; every error becomes one message on standard error.

    Args:
        arguments: the command line without the program's name; None for that of this process.
    """
    output.open_closed()
    with output.safe():
        status = _status(arguments)
        try:
            sys.stdout.flush()
        except (output.OutputLostError, BrokenPipeError):
            output.discard(sys.stdout)
        return status


def _status(arguments: Sequence[str] | None) -> int:
    try:
        returned: Any = cli.main(
            args=None if arguments is None else list(arguments), prog_name="coband", standalone_mode=False
        )
        sys.stdout.flush()
        return returned if isinstance(returned, int) else 0
    except click.UsageError as error:
        command = "coband" if error.ctx is None else error.ctx.command_path
        return _complain(f"{error.format_message().rstrip()} (`{command} --help` explains)", BAD_INPUT)
    except click.ClickException as error:
        return _complain(error.format_message(), error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        return _complain("interrupted", INTERRUPTED)
    except (ReaderGoneError, BrokenPipeError):
        output.discard(sys.stdout)
        return BROKEN_PIPE
    except output.OutputLostError as error:
        output.discard(sys.stdout)
        return _complain(str(error), BAD_INPUT)
    except (Exception, SystemExit) as error:
        if isinstance(error, SystemExit) and "_COBAND_COMPLETE" in os.environ:
            return int(error.code or 0)  # click has told the shell what may follow
        return _explain(error)


def _explain(error: BaseException) -> int:
    """Print a message for errors in the input and for unusable files, and a traceback for defects of coband."""
    from coband.simulator.scenario_errors import RequestError

    if isinstance(error.__context__, KeyboardInterrupt):  # a library has made an error of its own of it
        return _complain("interrupted", INTERRUPTED)
    if isinstance(error, RequestError):
        return _complain(str(error), BAD_INPUT)
    from coband.simulator.experiments.scenario.loading import BAD_INPUT as MISTAKES

    if isinstance(error, MISTAKES):
        return _complain(str(error), BAD_INPUT, prefix="")
    if isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE):
        return _complain("too many files are open; raise the limit (such as ulimit -n 256)", BAD_INPUT)
    if isinstance(error, OSError) and error.filename is not None:
        return _complain(f"{error.filename}: {error.strerror}", BAD_INPUT)
    if isinstance(error, OSError) and error.errno in NO_ROOM:
        return _complain(f"{error.strerror}; what is finished is kept", BAD_INPUT)
    from coband.simulator.experiments.runs.attempt import mistake

    said = mistake(error)
    if isinstance(error, MemoryError) and not said:
        reason = f" ({error})" if str(error) else ""
        return _complain(f"out of memory{reason}; what is finished is kept", BAD_INPUT)
    traceback.print_exception(error)
    if said:
        return _complain(f"this is not a defect of coband's own code: {said}", DEFECT)
    return _complain("this is a defect of coband, not of your input; please report it with the lines above", DEFECT)


def _complain(message: str, status: int, prefix: str = "coband: ") -> int:
    click.echo(f"{prefix}{message}", err=True)
    return status
