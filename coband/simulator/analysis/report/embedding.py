"""What pages are made of: templates and files of a package, and JSON inside them."""

from __future__ import annotations

import json
from importlib import resources
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from coband.simulator.experiments.safe_text import visible


def templates(package: str, **known: Any) -> Environment:
    """The templates of a package; ``known``: what all of them know."""
    found = Environment(
        loader=PackageLoader(package), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    found.globals |= known
    return found


def static(package: str, name: str) -> str:
    """A file of a package's folder ``static``."""
    return resources.files(package).joinpath("static", *name.split("/")).read_text(encoding="utf-8")


def json_text(value: Any) -> str:
    """JSON that is safe inside a script element; characters that deceive stay spelled out when it is read."""
    return json.dumps(_spelled(value), allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")


def _spelled(value: Any) -> Any:
    """The value with texts that cannot deceive a reader; lists that begin with a number hold only numbers."""
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, dict):
        return {key: _spelled(item) for key, item in value.items()}
    return (
        [_spelled(item) for item in value]
        if isinstance(value, list) and isinstance(next(iter(value), 0), (str, dict, list))
        else value
    )
