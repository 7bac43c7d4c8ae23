"""The pages of the reference: one of each section, list of kinds and family of algorithms."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from coband.simulator.experiments.registry.registry import Registry
from coband.simulator.reference.entries import index
from coband.simulator.reference.items import Items, algorithm_item
from coband.simulator.reference.text import Item, code, markdown


def _label(family: str, name: str) -> str:
    """What links name; letters are small in it, and names that differ by these alone have different ones."""
    return re.sub("[A-Z]", lambda letter: f"-{letter[0].lower()}", f"{family}-{name}".replace(" ", "-"))


def pages(registry: Registry) -> Mapping[str, str]:
    """The text of every page by its name, a path without its ending."""
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
    labels = {one["name"]: _label(page.partition("/")[0], one["name"]) for page in content for one in content[page]}
    texts = {}
    for page, inside in content.items():
        family, _, title = page.partition("/")
        lines = ["---\norphan: true\n---\n", f"# {family.capitalize()} of {code(title)}\n"]
        lines += [line for one in inside for line in markdown(one, labels)]
        texts[page] = "\n".join(lines)
    return texts


def write(folder: Path, pages: Mapping[str, str]) -> None:
    """Write pages that have changed, and remove those that are no more."""
    wanted = {folder / f"{name}.md": text for name, text in pages.items()}
    for file in folder.rglob("*.md"):
        if file not in wanted:
            file.unlink()
    for file, text in wanted.items():
        if not file.is_file() or file.read_text(encoding="utf-8") != text:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
