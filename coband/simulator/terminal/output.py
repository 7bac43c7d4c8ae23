"""Standard output and error: closed or full ones, names that no encoding has, characters that deceive a reader;
warnings about plugins that could not be loaded.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal, TextIO

import click

from coband.simulator.experiments.safe_text import visible


def warn_of_plugins() -> None:
    """Print a warning for every plugin that could not be loaded."""
    from coband.simulator.experiments.registry.registry import Registry

    for warning in Registry.installed().warnings:
        click.echo(f"warning: {warning}", err=True)


class OutputLostError(Exception):
    """Standard output cannot be written; the text says why. Not an `OSError`, which click would turn into status 1."""


class SafeStream:
    """A text stream that shows characters that would act on a terminal.

    Args:
        stream: where the text goes.
        vital: True if an error ends the program; False if what cannot be written is left out.
    """

    encoding = "utf-8"  # else click would look for another way to the terminal; the stream itself replaces characters

    def __init__(self, stream: TextIO, vital: bool) -> None:
        self.stream, self._vital = stream, vital

    def write(self, text: str) -> int:
        """Write text.

        Raises:
            OutputLostError: it cannot be written.
            BrokenPipeError: the reader has gone.
        """
        with self._handled():
            self.stream.write(visible(text))
        return len(text)

    def flush(self) -> None:
        """Write what is still in memory.

        Raises:
            OutputLostError: it cannot be written.
            BrokenPipeError: the reader has gone.
        """
        with self._handled():
            self.stream.flush()

    @contextmanager
    def _handled(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            if not self._vital:
                return
            if isinstance(error, BrokenPipeError):
                raise
            raise OutputLostError(f"standard output cannot be written: {error.strerror or error}") from error

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


@contextmanager
def safe() -> Iterator[None]:
    """Let everything that is printed go through :class:`SafeStream`."""
    before = sys.stdout, sys.stderr
    for stream in before:
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    streams: Any = SafeStream(before[0], vital=True), SafeStream(before[1], vital=False)
    sys.stdout, sys.stderr = streams
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def raw(stream: Any) -> Any:
    """The stream below, for text with codes of the terminal; its writer makes its parts visible."""
    return getattr(stream, "stream", stream)


def colours() -> Literal["auto"] | None:
    """For a console of rich: no codes at all where the user wants no colours, not even bold ones."""
    return None if os.environ.get("NO_COLOR") else "auto"


def open_closed() -> None:
    """Open standard streams that are closed, so that no file of coband's takes their place."""
    closed = [name for name in ("stdin", "stdout", "stderr") if getattr(sys, name) is None]
    for name in closed:
        descriptor = os.open(os.devnull, os.O_RDWR)
        if descriptor > 2:  # something else has the place already
            os.close(descriptor)
        else:
            os.set_inheritable(descriptor, True)  # for worker processes
        setattr(sys, name, open(os.devnull, "r" if name == "stdin" else "w", encoding="utf-8"))  # noqa: SIM115
    if "stdout" in closed:
        print("coband: standard output is closed, so results are not printed", file=sys.stderr)


def discard(stream: Any) -> None:
    """Drop what a stream still holds, which Python would try to write at its end."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, raw(stream).fileno())
    os.close(null)
