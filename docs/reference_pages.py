"""The pages of the reference, written before Sphinx looks for its sources: a Sphinx extension.

They are made from the program that is installed; none is kept in the repository.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from coband.simulator.cli.main import cli
from coband.simulator.experiments.registry.registry import Registry
from coband.simulator.reference.pages import Pages, write


def generate(app: Any) -> None:
    """Write the pages to ``docs/reference``."""
    write(Path(app.srcdir) / "reference", Pages(cli, Registry.installed()).all())


def setup(app: Any) -> dict[str, Any]:
    """Connect with Sphinx."""
    app.connect("builder-inited", generate)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
