"""Items as text, on a terminal and on a page: what an item holds is shown by its form alone.

An item is a mapping in JSON types with a ``kind``, a ``name`` and a ``text``; ``coband describe --json`` prints it.
"""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Callable, Iterator
from typing import Any

from coband.simulator.terminal import tables

Item = dict[str, Any]
Link = Callable[[str], str | None]
"""The address of what has a name; None if no page says anything of it."""
CODE = {"usage": "console", "example": "yaml", "paper": "bibtex"}
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
}
"""Headings, where a word of the item is not enough."""
_HEAD = ("kind", "name", "text", "summary", "reference")
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>|~$#])")
_QUOTED = re.compile(r"(``?)([^`]+)\1")
WIDTH = 100
PLACE = " place"
"""What the kind of an item ends with that is a mere place of a name."""


def in_yaml(value: Any) -> str:
    """A value as it is written in YAML on one line, without the keys of a mapping that are null."""
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key}: {in_yaml(part)}' for key, part in value.items() if part is not None)}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(in_yaml, value))}]"
    return json.dumps(value) if value is None or isinstance(value, bool) else str(value)


def _head(item: Item) -> list[str]:
    return [*str(item.get("text") or item["summary"]).splitlines(), *filter(None, [item.get("reference")])]


def _facts(item: Item) -> list[str]:
    """What can be said in a word."""
    return [f"{key}: {_cell(key, value)}" for key, value in item.items() if _is_fact(key, value)]


def _is_fact(key: str, value: Any) -> bool:
    if key == "default":
        return True
    shown = not isinstance(value, list | dict) and bool(_cell(key, value))
    return shown and key not in (*_HEAD, *CODE, *TITLES)


def _sections(item: Item) -> Iterator[tuple[str, str, Any]]:
    """Key, title and content of what takes more than a word."""
    for key, value in item.items():
        if value and key not in _HEAD and not _is_fact(key, value):
            yield key, TITLES.get(key, key.capitalize()), value


def _cell(key: str, value: Any) -> str:
    if key == "default":
        return in_yaml(value)
    if isinstance(value, list):
        return ", ".join(f"{one:.6g}" if isinstance(one, float) else str(one) for one in value)
    return "yes" if value is True else "" if value is None or value is False else str(value)


def _typed(entry: Item) -> str:
    """What follows the name of a parameter."""
    default = f" (default: {in_yaml(entry['default'])})" if "default" in entry else ""
    unit = f", {entry['unit']}" if entry.get("unit") else ""
    return f"{entry.get('type', '')}{unit}{' (required)' if entry.get('required') else default}"


def lines(item: Item) -> Iterator[str]:
    """An item on a terminal."""
    yield f"{item['name']} ({item['kind']})"
    yield from (f"  {line}".rstrip() for line in (*_head(item), *_facts(item)))
    for _, title, value in _sections(item):
        yield from ("", f"{title}:", *(f"  {line}".rstrip() for line in _plain(value)))


def _plain(value: Any) -> Iterator[str]:
    match value:
        case str():
            yield from value.splitlines()
        case dict():
            yield from (line for name, one in value.items() for line in _wrapped(_pair(name, one)))
        case [{"description": _}, *_]:
            for entry in value:
                yield f"{entry['name']}: {_typed(entry)}".removesuffix(": ")
                yield from [f"    {' '.join(entry['description'].split())}"] if entry["description"] else []
        case [dict(), *_]:
            header = [key for key in value[0] if any(_cell(key, row[key]) for row in value)]
            rows = [[_cell(key, row[key]) for key in header] for row in value]
            yield from tables.plain(header, rows, left=len(header)).splitlines()
        case _:
            yield from _wrapped(", ".join(value))


def _pair(name: str, value: Any) -> str:
    said = TITLES.get(name, name) if value is True else f"{name}: {_cell(name, value)}"
    return said.removesuffix(": ")


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


def markdown(item: Item, link: Link, label: str) -> Iterator[str]:
    """An item as a section of a page in Markdown (MyST), to which other pages link by its label."""
    yield f"({label})=\n## {code(item['name'])}\n"
    yield from (f"{prose(line)}\n" for line in filter(str.strip, _head(item)))
    yield "".join(f"* {prose(fact)}\n" for fact in _facts(item))
    for key, title, value in _sections(item):
        yield f"**{prose(title)}**\n"
        match value:
            case str():
                yield f"```{CODE[key]}\n{value.strip()}\n```" if key in CODE else prose(value)
            case [{"description": _}, *_]:
                for entry in value:
                    yield f"* {code(entry['name'])} {prose(_typed(entry))}<br>{prose(entry['description'])}"
            case [{"name": _, "summary": _, **more}, *_] if not more:
                yield from (f"* {named(row['name'], link)}: {prose(row['summary'])}" for row in value)
            case dict():
                yield from (f"* {prose(_pair(name, one))}" for name, one in value.items())
            case _:
                yield "\n".join(["```text", *_plain(value), "```"])
        yield ""


def named(name: str, link: Link) -> str:
    """A name as code, with a link to what is said of it."""
    address = link(name)
    return code(name) if address is None else f"[{code(name)}]({address})"


def code(text: str) -> str:
    """Text as it is typed."""
    return f"`{text.replace('|', chr(92) + '|')}`"


def prose(text: str) -> str:
    """Plain text in Markdown: what stands in backquotes is code, and all else is as it is."""
    found, end = "", 0
    for match in _QUOTED.finditer(text):
        found += _SPECIAL.sub(r"\\\1", text[end : match.start()]) + code(match[2])
        end = match.end()
    return " ".join((found + _SPECIAL.sub(r"\\\1", text[end:])).split())
