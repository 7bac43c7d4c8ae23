"""``schema_version``: which form of scenario files a document is written in."""

from __future__ import annotations

from coband.simulator.experiments.scenario.input_problems import ScenarioError
from coband.simulator.experiments.scenario.nodes import MappingNode, ScalarNode, child, given

KEY = "schema_version"
CURRENT = 1
"""The newest form of scenario files that this coband reads; `docs/stability.md` says when it grows."""


def check_version(root: MappingNode) -> None:
    """Refuse a document of a newer form, whose other mistakes would mislead, and a version that is none.

    Raises:
        ScenarioError: with this one problem.
    """
    found = child(root, KEY)
    if found is None:
        return
    node = found[1]
    version = node.value if isinstance(node, ScalarNode) else None
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        message = f"{given(node)} is not allowed: must be a whole number; this coband reads {CURRENT}"
    elif version > CURRENT:
        message = f"this file says {KEY} {version}; this coband reads {CURRENT}: upgrade with pip install -U coband"
    else:
        return
    raise ScenarioError([node.mark.problem((KEY,), message)])
