"""Sheets as pages in Markdown (MyST)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from coband.simulator.experiments.registry.catalogue import Item
from coband.simulator.reference import sheets
from coband.simulator.reference.sheets import Sheet, in_yaml

Link = Callable[[str], str | None]
"""The address of the page of a name, from the page that is written; None if it has none."""
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>|~$#])")
_CODE = re.compile(r"(``?)([^`]+)\1")


def page(sheet: Sheet, link: Link, above: str) -> str:
    """The page of a sheet.

    Args:
        link: finds the pages of names in it.
        above: a line that leads back to the lists.
    """
    lines = ["---", "orphan: true", "---", "", f"# {code(sheet.name)}", "", above, ""]
    for line in sheet.head:
        lines += [prose(line), ""]
    for section in sheet.sections:
        if section.title:
            lines += [f"## {_title(section.title)}", ""]
        for block in section.blocks:
            lines += [*_block(block, link), ""]
    return "\n".join(lines).rstrip() + "\n"


def _title(title: str) -> str:
    return "Where" if title == "where" else prose(title)


def _block(block: object, link: Link) -> Iterator[str]:
    match block:
        case sheets.Text(lines):
            yield from ("\n\n".join(map(prose, lines)),)
        case sheets.Facts(pairs):
            yield from table(("", ""), [(f"**{name}**", prose(value)) for name, value in pairs])
        case sheets.Parameters(items):
            yield from _parameters(items, "")
        case sheets.Rows(header, rows, linked):
            names = linked or ("",) * len(rows)
            cells = [(named(row[0], name, link), *map(prose, row[1:])) for name, row in zip(names, rows, strict=True)]
            yield from table(header, cells)
        case sheets.Names(names):
            yield ", ".join(named(name, name, link) for name in names)
        case sheets.Code(text, language):
            yield from (f"```{language}", text, "```")


def _parameters(parameters: Sequence[Item], indent: str) -> Iterator[str]:
    """Parameters as nested lists."""
    for parameter in parameters:
        default = f", default {code(in_yaml(parameter['default']))}" if "default" in parameter else ""
        required = ", required" if parameter["required"] else ""
        text = f": {prose(parameter['description'])}" if parameter["description"] else ""
        yield f"{indent}* **{code(parameter['name'])}** ({prose(parameter['type'])}{required or default}){text}"
        for choice in parameter.get("choices", ()):
            if choice["parameters"] or "kind" in choice:
                yield f"{indent}  * {prose(sheets.choice_title(choice))}"
                yield from _parameters(choice["parameters"], f"{indent}    ")


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """A table; its cells are Markdown already."""
    yield f"| {' | '.join(header)} |"
    yield f"|{' --- |' * len(header)}"
    yield from (f"| {' | '.join(cell.replace(chr(10), ' ') for cell in row)} |" for row in rows)


def named(text: str, name: str, link: Link) -> str:
    """A name as code, with a link to its page if it has one."""
    address = link(name) if name else None
    return code(text) if address is None else f"[{code(text)}]({address})"


def code(text: str) -> str:
    """Text as it is typed."""
    return f"`{text.replace('|', chr(92) + '|')}`"


def prose(text: str) -> str:
    """Plain text in Markdown: what stands in backquotes is code, and all else is as it is."""
    found, end = "", 0
    for match in _CODE.finditer(text):
        found += _SPECIAL.sub(r"\\\1", text[end : match.start()]) + code(match[2])
        end = match.end()
    return " ".join((found + _SPECIAL.sub(r"\\\1", text[end:])).split())
