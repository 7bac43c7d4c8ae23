"""``coband describe``: the full description of an algorithm, problem, dataset, scenario or other named item."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import click

from coband.simulator.cli import tables
from coband.simulator.cli.plugins import warn_of_plugins
from coband.simulator.experiments.registry.remembered import remembered

Item = dict[str, Any]


@click.command()
@click.argument("name")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def describe(name: str, as_json: bool) -> None:
    """Print all that is known of NAME: algorithm, problem, kernel, reward, dataset, metric or shipped scenario."""
    found: list[Item] = remembered(f"describe {name}", lambda: _look_up(name))
    if as_json:
        click.echo(json.dumps(found if len(found) > 1 else found[0], indent=2, ensure_ascii=False))
    else:
        click.echo("\n\n".join("\n".join(_lines(item)) for item in found))


def _look_up(name: str) -> list[Item]:
    from coband.simulator.experiments.registry.catalogue import describe as look_up
    from coband.simulator.experiments.registry.registry import Registry

    warn_of_plugins()
    return look_up(name, Registry.installed())


def _lines(item: Item) -> Iterator[str]:
    yield f"{item['name']} ({item['kind']})"
    yield from (f"  {line}" for line in item.get("header", [item["summary"]]))
    if item.get("reference"):
        yield f"  {item['reference']}"
    if item["kind"] == "metric":
        yield f"  {_direction(item)}"
    for key in ("url", "licence", "data", "file"):
        if item.get(key) is not None:
            yield f"  {key}: {item[key]}"
    if item.get("parameters"):
        yield from ("", "Parameters:")
        yield from _parameters(item["parameters"], "  ")
    if item.get("messages"):
        yield from ("", "Messages:")
        rows = [[message["kind"], message["direction"], _size(message)] for message in item["messages"]]
        yield from _indented(tables.plain(["kind", "direction", "scalars"], rows, left=3))
    if item.get("counts"):
        yield from ("", "Communication:", *(f"  {_count(form)}" for form in item["counts"]))
    if item.get("memory"):
        yield from (
            "",
            "Memory (in numbers of 8 bytes; N agents, T pulls in all, t of each agent, d dimensions, M fixed arms):",
        )
        yield from (f"  {part['what']}: {part['numbers']}" for part in item["memory"])
    if item.get("where"):
        yield from ("", "where", *(_quantity(*pair) for pair in item["where"].items()))
    if item.get("metrics"):
        rows = [[metric["name"], metric["summary"], _direction(metric)] for metric in item["metrics"]]
        yield from ("", "Metrics:", *_indented(tables.plain(["name", "meaning", "unit"], rows, left=3)))
    if "needs" in item:
        yield from ("", f"Needs: {_needs(item['needs'])}")


def _size(message: Item) -> str:
    """A formula, who gets it, and when the size is that."""
    words = " ".join(filter(None, (message["scalars"], message["to"])))
    return f"{words}, if {message['when']}" if message["when"] else words


def _count(form: Item) -> str:
    words = f"{'each round: ' if form['each'] == 'round' else ''}{form['count']} = {form['formula']}"
    return f"{words}, if {form['when']}" if form["when"] else words


def _quantity(name: str, meaning: str) -> str:
    return f"  {name} {meaning}" if meaning.startswith("= ") else f"  {name}: {meaning}"


def _direction(metric: Item) -> str:
    """Unit of a metric, which end wins, and whose it is."""
    words = [metric["unit"]]
    if metric["better"]:
        words.append(f"{metric['better']} is better")
    if metric["of_each_agent"]:
        words.append("of each agent")
    return ", ".join(words)


def _parameters(parameters: list[Item], indent: str) -> Iterator[str]:
    for parameter in parameters:
        default = f" (default: {_value(parameter['default'])})" if "default" in parameter else ""
        required = " (required)" if parameter["required"] else ""
        yield f"{indent}{parameter['name']}: {parameter['type']}{required or default}"
        if parameter["description"]:
            yield f"{indent}    {_one_line(parameter['description'])}"
        for choice in parameter.get("choices", ()):
            if not choice["parameters"] and "kind" not in choice:
                continue
            title = f"kind: {choice['kind']}" if "kind" in choice else "mapping with"
            yield f"{indent}  - {title}"
            yield from _parameters(choice["parameters"], f"{indent}      ")


def _value(value: Any) -> str:
    """A default as it is written in YAML, without null values."""
    if isinstance(value, dict):
        inner = ", ".join(f"{key}: {_value(part)}" for key, part in value.items() if part is not None)
        return f"{{{inner}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    return json.dumps(value) if value is None or isinstance(value, bool) else str(value)


def _needs(needs: Item) -> str:
    words = [f"topology {' or '.join(needs['topologies'])}"]
    if needs["reliable"]:
        words.append("every message delivered (transport: reliable, or no loss)")
    if needs["ordered"]:
        words.append("messages in order (transport: reliable, or constant latencies)")
    if needs["horizon"]:
        words.append("a known number of turns (horizon, or a schedule without duration)")
    words.append(f"problems {', '.join(needs['problems'])}" if needs["problems"] else "any problem")
    return "; ".join(words)


def _indented(text: str) -> Iterator[str]:
    yield from (f"  {line}" for line in text.splitlines())


def _one_line(text: str) -> str:
    return " ".join(text.split())
