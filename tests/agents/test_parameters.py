"""What may be said in a scenario of algorithms, agents, server, schedule and network: each key, its default and limits.

They are promised to users, and pinned in a file; ``python -m tests.agents.test_parameters`` writes it again on purpose.
"""

import json
from pathlib import Path
from typing import Any

from pydantic import BaseModel, TypeAdapter

from coband.simulator.core.clock.schedule import Schedule
from coband.simulator.core.hosts.speed import AgentsConfig, ServerConfig
from coband.simulator.core.network.network import NetworkConfig
from coband.simulator.experiments.registry.registry import Registry
from tests.every import every

FILE = Path(__file__).with_name("parameters.json")
SIGNS = {"minimum": ">=", "exclusiveMinimum": ">", "maximum": "<=", "exclusiveMaximum": "<"}
LENGTHS = {"minItems": "at least", "maxItems": "at most", "minLength": "at least", "maxLength": "at most"}
CORE: dict[str, Any] = {"agents": AgentsConfig, "server": ServerConfig, "schedule": Schedule, "network": NetworkConfig}


def models() -> dict[str, Any]:
    algorithms = Registry.installed().algorithms.values()
    return CORE | {algorithm.name: algorithm.config for algorithm in algorithms}


def parameters(model: Any) -> dict[str, dict[str, str]]:
    """Of each class of a model, its keys with what is allowed."""
    schema = model.model_json_schema() if _is_model(model) else TypeAdapter(model).json_schema()
    classes = {**schema.get("$defs", {}), **({model.__name__: schema} if _is_model(model) else {})}
    return {
        name: {key: described(one) for key, one in sorted(found["properties"].items())}
        for name, found in sorted(classes.items())
        if "properties" in found
    }


def _is_model(model: Any) -> bool:
    return isinstance(model, type) and issubclass(model, BaseModel)


def described(found: dict[str, Any]) -> str:
    """For instance: ``number > 0 or null; default null``."""
    text = " or ".join(_allowed(one) for one in found.get("anyOf", found.get("oneOf", [found])))
    return f"{text}; default {json.dumps(found['default'])}" if "default" in found else text


def _allowed(found: dict[str, Any]) -> str:
    kind = found.get("const", found.get("enum", found.get("$ref", found.get("type", "anything"))))
    limits = [f" {sign} {found[key]:g}" for key, sign in SIGNS.items() if key in found]
    limits += [f" {word} {found[key]} items" for key, word in LENGTHS.items() if key in found]
    items = f" of {_allowed(found['items'])}" if isinstance(found.get("items"), dict) else ""
    return f"{kind if isinstance(kind, str) else json.dumps(kind)}{''.join(limits)}{items}"


def pinned() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    return found


@every("name", sorted(models()))
def test_keys_defaults_and_limits_change_on_purpose_alone(name: str) -> None:
    assert parameters(models()[name]) == pinned().get(name), "python -m tests.agents.test_parameters writes the file"


def test_nothing_is_pinned_that_is_gone() -> None:
    assert set(pinned()) == set(models())


if __name__ == "__main__":
    found = {name: parameters(model) for name, model in sorted(models().items())}
    FILE.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
