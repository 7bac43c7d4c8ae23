"""JSON inside a page."""

from __future__ import annotations

import json
from typing import Any

from coband.simulator.experiments.visible import visible


def json_text(value: Any) -> str:
    """JSON that is safe inside a script element; characters that deceive stay spelled out when it is read."""
    return json.dumps(_spelled(value), allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")


def _spelled(value: Any) -> Any:
    """The value with texts that cannot deceive a reader; lists that begin with a number hold numbers alone."""
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, dict):
        return {key: _spelled(item) for key, item in value.items()}
    return (
        [_spelled(item) for item in value]
        if isinstance(value, list) and isinstance(next(iter(value), 0), (str, dict, list))
        else value
    )
