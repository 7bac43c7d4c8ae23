"""How several test processes share the tests (pytest-xdist)."""

from xdist.scheduler import LoadScopeScheduling

ONE_BY_ONE = ("tests/scenarios/", "tests/docs/test_pages.py")
"""Where tests share nothing and take long."""


def unit(name: str) -> str:
    """What goes to one process together with a test: its module, which makes its fixtures once, or nothing else."""
    return name if name.startswith(ONE_BY_ONE) else name.partition("::")[0]


class Spread(LoadScopeScheduling):
    """Hands out units of tests in the order of the tests.

    Groups of pytest-xdist 3.8 (``xdist_group``) have no effect under pytest 9.2, which does not read names they set.
    """

    def _split_scope(self, nodeid: str) -> str:
        return unit(nodeid)
