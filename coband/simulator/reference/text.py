"""Items as text, on a terminal and on pages: what an item holds is shown by its form.

There is a page of each section, list of kinds and family of algorithms.
"""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from coband.simulator.experiments.registry.registry import Registry
from coband.simulator.reference.entries import index
from coband.simulator.reference.items import Item, Items, algorithm_item
from coband.simulator.terminal import tables

Row = tuple[str, str, str]
"""A name, what is said of it, and what stands below."""
CODE = {"example": "yaml", "paper": "bibtex"}
"""What is code, and its language."""
TITLES = {
    "counts": "Communication",
    "places": "Where it can stand",
    "rate": "Rate (T pulls of N agents, d dimensions, maximum information gain γ_T)",
    "fields": "Fields (packed: scalars with messages.counting: packed)",
    "sources": "Sources (several numbers are quantiles at equal steps of probability)",
    "knows": "Is told in addition to arms and rewards",
    "reliable": "every message delivered (transport: reliable, or no loss)",
    "ordered": "messages in order (transport: reliable, or constant latencies)",
    "horizon": "a known number of turns (horizon, or a schedule without duration)",
    "fixed_arms": "one arm set for all turns of all agents",
    "steady_arms": "the same arms for all turns of an agent",
    "unit_rewards": "rewards from 0 to 1",
}
"""Headings, where a word of the item is not enough."""
_HEAD = ("kind", "name", "text", "summary", "reference")
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>|~$#])")
_QUOTED = re.compile(r"(``?[^`]+``?)")
WIDTH = 100


def in_yaml(value: Any) -> str:
    """A value as it is written in YAML on one line, without the keys of a mapping that are null."""
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key}: {in_yaml(part)}' for key, part in value.items() if part is not None)}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(in_yaml, value))}]"
    return json.dumps(value) if value is None or isinstance(value, bool) else str(value)


def _cell(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(f"{one:.6g}" if isinstance(one, float) else str(one) for one in value)
    return "yes" if value is True else "" if value is None or value is False else str(value)


def _head(item: Item) -> list[str]:
    return [*str(item.get("text") or item["summary"]).splitlines(), *filter(None, [item.get("reference")])]


def _facts(item: Item) -> Iterator[str]:
    """What can be said in a word."""
    for key, value in item.items():
        if key == "default":
            yield f"default: {in_yaml(value)}"
        elif key not in (*_HEAD, *CODE) and not isinstance(value, list | dict) and _cell(value):
            yield f"{key}: {_cell(value)}"


def _sections(item: Item) -> Iterator[tuple[str, str, str | list[Row]]]:
    """Key and title of what takes more than a word; its rows, or text that is laid out already."""
    for key, value in item.items():
        if value and key not in (*_HEAD, "default") and (key in CODE or isinstance(value, list | dict)):
            yield key, TITLES.get(key, key.capitalize()), _content(value)


def _content(value: Any) -> str | list[Row]:
    match value:
        case str():
            return value.strip()
        case dict():
            said = [str(TITLES.get(key, key)) if one is True else f"{key}: {_cell(one)}" for key, one in value.items()]
            return [("", text, "") for text in said]
        case [{"description": _}, *_]:
            return [(entry["name"], _typed(entry), entry["description"]) for entry in value]
        case [{"name": _, "summary": _, **more}, *_] if not more:
            return [(entry["name"], entry["summary"], "") for entry in value]
        case [dict(), *_]:
            header = [key for key in value[0] if any(_cell(row[key]) for row in value)]
            return tables.plain(header, [[_cell(row[key]) for key in header] for row in value], left=len(header))
        case _:
            return [("", ", ".join(value), "")]


def _typed(entry: Item) -> str:
    """What follows the name of a parameter."""
    default = f" (default: {in_yaml(entry['default'])})" if "default" in entry else ""
    unit = f", {entry['unit']}" if entry.get("unit") else ""
    return f"{entry['type']}{unit}{' (required)' if entry.get('required') else default}"


def lines(item: Item) -> Iterator[str]:
    """An item on a terminal."""
    yield f"{item['name']} ({item['kind']})"
    yield from (f"  {line}".rstrip() for line in (*_head(item), *_facts(item)))
    for _, title, content in _sections(item):
        yield from ("", f"{title}:")
        if isinstance(content, str):
            yield from (f"  {line}".rstrip() for line in content.splitlines())
            continue
        for name, said, below in content:
            yield from _wrapped(": ".join(filter(None, [name, said])), "  ", "    ")
            yield from _wrapped(below, "      ", "      ")


def _wrapped(text: str, first: str, further: str) -> list[str]:
    wrapper = textwrap.TextWrapper(WIDTH, first, further, break_long_words=False, break_on_hyphens=False)
    return wrapper.wrap(text)


def markdown(item: Item, labels: Mapping[str, str]) -> Iterator[str]:
    """An item as a section of a page in Markdown (MyST), which has a label, as what it names may have."""
    yield f"({labels[item['name']]})=\n## {code(item['name'])}\n"
    yield from (f"{prose(line)}\n" for line in filter(str.strip, _head(item)))
    yield "".join(f"* {prose(fact)}\n" for fact in _facts(item))
    for key, title, content in _sections(item):
        yield f"**{prose(title)}**\n"
        if isinstance(content, str):
            yield f"```{CODE.get(key, 'text')}\n{content}\n```"
            content = []
        for name, said, below in content:
            shown = f"[{code(name)}](#{labels[name]})" if name in labels else code(name) * bool(name)
            yield f"* {': '.join(filter(None, [shown, prose(said)]))}{'<br>' * bool(below)}{prose(below)}"
        yield ""


def code(text: str) -> str:
    """Text as it is typed."""
    return f"`{text.replace('|', chr(92) + '|')}`"


def prose(text: str) -> str:
    """Plain text in Markdown: what stands in backquotes is code, and all else is as it is."""
    parts = [code(one.strip("`")) if one[:1] == "`" else _SPECIAL.sub(r"\\\1", one) for one in _QUOTED.split(text)]
    return " ".join("".join(parts).split())


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
