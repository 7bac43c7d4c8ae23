"""The fixed domain of a run, one object for all agents."""

from __future__ import annotations

from simulator.core.node import Setting
from simulator.maths.domain import Domain


def domain_of(setting: Setting) -> Domain | None:
    """The domain that all arms come from, with the algorithm's kernel; None when arm sets change."""
    points = setting.domain
    return None if points is None else setting.sharing.get("domain", lambda: Domain(setting.config.kernel, points))
