"""The pages of the reference, written before Sphinx looks for its sources, and those of suites: a Sphinx extension.

They are made from the program that is installed; none is kept in the repository.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from coband.simulator.analysis.suite.page import page
from coband.simulator.analysis.suite.submission import read
from coband.simulator.analysis.suite.suites import suite, suites
from coband.simulator.cli.main import cli
from coband.simulator.experiments.registry.registry import Registry
from coband.simulator.reference.pages import Pages, write

FOLDER = "reference"
BEFORE_THE_THEME = 400
ONE_NAVIGATION = "one_navigation"
"""A tag (``sphinx -t``) with which all pages have the navigation of the first one: for tests of everything else."""


def generate(app: Any) -> None:
    """Write the pages to ``docs/reference``."""
    write(Path(app.srcdir) / FOLDER, Pages(cli, Registry.installed()).all())


def show_suites(app: Any, failure: Exception | None) -> None:
    """Write the page of each suite and size that comes with results, such as ``core-1-quick.html``."""
    for found in map(suite, suites()) if failure is None else ():
        for size, files in found.results.items():
            text = page(found, [read(file) for file in files])
            (Path(app.outdir) / f"{found.name}-{size}.html").write_text(text, encoding="utf-8")


class SharedNavigation:
    """Makes the navigation beside pages once for all that have the same.

    Single pages of the reference stand in no table of contents, so that those of one folder have the same links around
    them. Sphinx copies the whole tree for each page, which is almost half of the time that building takes.
    """

    def __init__(self) -> None:
        self._made: dict[tuple[str, str], str] = {}

    def __call__(self, app: Any, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
        folder, _, name = page.rpartition("/")
        if app.tags.has(ONE_NAVIGATION):
            context["toctree"] = self._remembering("", context["toctree"])
        elif folder.startswith(f"{FOLDER}/") and name != "index":
            context["toctree"] = self._remembering(folder, context["toctree"])

    def _remembering(self, folder: str, make: Callable[..., str]) -> Callable[..., str]:
        def toctree(**options: Any) -> str:
            key = folder, repr(sorted(options.items()))
            if key not in self._made:
                self._made[key] = make(**options)
            return self._made[key]

        return toctree


def setup(app: Any) -> dict[str, Any]:
    """Connect with Sphinx."""
    app.connect("builder-inited", generate)
    app.connect("build-finished", show_suites)
    app.connect("html-page-context", SharedNavigation(), priority=BEFORE_THE_THEME)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
