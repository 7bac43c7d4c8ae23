"""The pages of the reference, written before Sphinx looks for its sources: a Sphinx extension.

They are made from the program that is installed; none is kept in the repository.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from coband.simulator.experiments.registry.registry import Registry
from coband.simulator.reference.entries import index
from coband.simulator.reference.items import Item, Items, algorithm_item
from coband.simulator.reference.text import lines


def pages(registry: Registry) -> Mapping[str, str]:
    """The text of every page by its name, a path without its ending: what the terminal says, in sections."""
    found = index(registry)
    items, content = Items(found, registry), dict[str, list[Item]]()
    for entry in found.entries.values():
        section = entry.paths[0][0]
        has_keys = entry.is_kind or len(entry.paths[0]) > 1 or found.inside(found.keys("")[section])
        page = f"{'kinds' if entry.is_kind else 'keys'}/{section if has_keys else 'file'}"
        content.setdefault(page, []).append(items.item(entry))
    for algorithm in registry.algorithms.values():
        family = algorithm.agent.__module__.removeprefix("coband.agents.").partition(".")[0]
        content.setdefault(f"algorithms/{family}", []).append(algorithm_item(algorithm))
    texts = {}
    for page, inside in content.items():
        family, _, title = page.partition("/")
        sections = ["\n".join((f"## `{one['name']}`\n", "```text", *lines(one), "```\n")) for one in inside]
        texts[page] = "\n".join(["---\norphan: true\n---\n", f"# {family.capitalize()} of `{title}`\n", *sections])
    return texts


def generate(app: Any) -> None:
    """Write the pages to ``docs/reference``: those that have changed, and remove those that are no more."""
    folder = Path(app.srcdir) / "reference"
    wanted = {folder / f"{name}.md": text for name, text in pages(Registry.installed()).items()}
    for file in folder.rglob("*.md"):
        if file not in wanted:
            file.unlink()
    for file, text in wanted.items():
        if not file.is_file() or file.read_text(encoding="utf-8") != text:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")


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
