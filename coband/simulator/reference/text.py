"""Items as text: what an item holds is shown by its form."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator
from typing import Any

from coband.simulator.reference.items import Item
from coband.simulator.terminal import tables

TITLES = {
    "counts": "Communication (without delays and losses, with all agents up)",
    "places": "Where it can stand",
    "rate": "Rate (T pulls of N agents, d dimensions, maximum information gain γ_T)",
    "sources": "Sources (several numbers are quantiles at equal steps of probability)",
    "knows": "Is told in addition to arms and rewards",
    "reliable": "every message delivered (transport: reliable, or no loss)",
    "ordered": "messages in order (transport: reliable, or constant latencies)",
    "horizon": "a known number of turns (horizon, or a schedule without duration)",
    "connected": "a graph with a path between any two agents",
    "fixed_arms": "one arm set for all turns of all agents",
    "steady_arms": "the same arms for all turns of an agent",
    "unit_rewards": "rewards from 0 to 1",
    "prompt_rewards": "the reward of each pull before the next turn (no agents.reward_delay)",
}
"""Headings, where a word of the item is not enough."""
_HEAD = ("kind", "name", "text", "summary", "reference")
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


def lines(item: Item) -> Iterator[str]:
    """What a terminal shows of an item: first what can be said in a word, then a section for what takes more."""
    yield f"{item['name']} ({item['kind']})"
    head = [*str(item.get("text") or item["summary"]).splitlines(), *filter(None, [item.get("reference")])]
    sections: dict[str, Any] = {}
    for key, value in item.items():
        if key == "default":
            head.append(f"default: {in_yaml(value)}")
        elif key == "paper" or isinstance(value, list | dict):
            sections |= {key: value} if value else {}
        elif key not in _HEAD and _cell(value):
            head.append(f"{key}: {_cell(value)}")
    yield from (f"  {line}".rstrip() for line in head)
    for key, value in sections.items():
        yield from ("", f"{TITLES.get(key, key.capitalize())}:", *_section(value))


def _section(value: Any) -> Iterator[str]:
    match value:
        case str():  # BibTeX
            yield from (f"  {line}".rstrip() for line in value.strip().splitlines())
        case dict():
            for key, one in value.items():
                yield from _wrapped(str(TITLES.get(key, key)) if one is True else f"{key}: {_cell(one)}")
        case [{"description": _}, *_]:
            for entry in value:
                yield from _wrapped(": ".join(filter(None, [entry["name"], _typed(entry)])))
                yield from _wrapped(entry["description"], "      ", "      ")
        case [{"name": _, "summary": _, **more}, *_] if not more:
            for entry in value:
                yield from _wrapped(": ".join(filter(None, [entry["name"], entry["summary"]])))
        case [dict(), *_]:
            header = [key for key in value[0] if any(_cell(row[key]) for row in value)]
            rows = [[_cell(row[key]) for key in header] for row in value]
            yield from (f"  {line}".rstrip() for line in tables.plain(header, rows, left=len(header)).splitlines())
        case _:
            yield from _wrapped(", ".join(value))


def _typed(entry: Item) -> str:
    """What follows the name of a parameter."""
    default = f" (default: {in_yaml(entry['default'])})" if "default" in entry else ""
    unit = f", {entry['unit']}" if entry.get("unit") else ""
    return f"{entry['type']}{unit}{' (required)' if entry.get('required') else default}"


def _wrapped(text: str, first: str = "  ", further: str = "    ") -> list[str]:
    wrapper = textwrap.TextWrapper(WIDTH, first, further, break_long_words=False, break_on_hyphens=False)
    return wrapper.wrap(text)
