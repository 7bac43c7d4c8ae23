"""Which versions of libraries a test has."""

from importlib.metadata import version

from packaging.version import Version


def at_least(library: str, wanted: str) -> bool:
    """Whether an installed library has this version or a later one."""
    return Version(version(library)) >= Version(wanted)
