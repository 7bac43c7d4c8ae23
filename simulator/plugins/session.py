"""What was registered in one session of Python, such as a notebook: how it travels to workers.

Workers cannot import what a cell of a notebook defines. It goes to them by value, pickled by cloudpickle.
"""

from __future__ import annotations

import pickle
from typing import Any

from coband.simulator.plugins.kinds import adopt, registered


def pickled(content: object) -> bytes:
    """An object with all that is registered, for `unpickled` in another process."""
    found = registered()
    if not found:
        return pickle.dumps((content, found))
    import cloudpickle  # slow to import, and most scenarios need nothing that is not installed

    packed: bytes = cloudpickle.dumps((content, found))
    return packed


def unpickled(packed: bytes) -> Any:
    """The object again; what came with it is registered here."""
    content, found = pickle.loads(packed)
    adopt(found)
    return content
