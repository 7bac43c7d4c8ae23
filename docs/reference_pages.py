"""The pages of the reference, written before Sphinx looks for its sources: a Sphinx extension.

They are made from the program that is installed; none is kept in the repository.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from coband.simulator.experiments.registry.registry import Registry
from coband.simulator.reference.text import pages, write


def generate(app: Any) -> None:
    """Write the pages to ``docs/reference``."""
    write(Path(app.srcdir) / "reference", pages(Registry.installed()))


NAVIGATION: dict[str, str] = {}


def share_navigation(app: Any, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """With ``sphinx -t one_navigation``, give all pages that of the first: each takes long, and tests do without."""
    make = context["toctree"]

    def toctree(**options: Any) -> str:
        key = repr(sorted(options.items()))
        if key not in NAVIGATION:
            NAVIGATION[key] = make(**options)
        return NAVIGATION[key]

    if app.tags.has("one_navigation"):
        context["toctree"] = toctree


def setup(app: Any) -> dict[str, Any]:
    """Connect with Sphinx."""
    app.connect("builder-inited", generate)
    app.connect("html-page-context", share_navigation, priority=400)  # before the theme
    return {"parallel_read_safe": True, "parallel_write_safe": True}
