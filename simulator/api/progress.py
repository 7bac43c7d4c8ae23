"""Progress in Python: a bar on a terminal or in a notebook, and silence elsewhere."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING

from coband.simulator.cli.progress import Bar
from coband.simulator.cli.sweep_view import View

if TYPE_CHECKING:
    from rich.console import Console


def in_notebook() -> bool:
    """Whether this is a notebook that can show a bar, for which rich needs ipywidgets."""
    if "ipykernel" not in sys.modules or find_spec("ipywidgets") is None:
        return False
    from rich.console import Console

    return Console().is_jupyter


class RunBar(Bar):
    """Follows a run."""

    def visible(self) -> bool:
        return super().visible() or in_notebook()

    def _console(self) -> Console:
        return _console()


class SweepBars(View):
    """Follows a sweep."""

    def visible(self) -> bool:
        return super().visible() or in_notebook()

    def _console(self) -> Console:
        return _console()


def _console() -> Console:
    from rich.console import Console

    return Console() if in_notebook() else Console(stderr=True)
