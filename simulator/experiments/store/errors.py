"""What can be wrong with a stored run."""

from __future__ import annotations

from coband.simulator.scenario_errors import RequestError


class StoreError(RequestError):
    """Not a run, or not one that this version can read; the text says what to do."""


class DamagedStoreError(StoreError):
    """The file of a run is damaged; the text says where, which jobs are whole, and how to make the rest again."""
