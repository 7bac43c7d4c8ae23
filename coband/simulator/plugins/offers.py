"""Which installed packages have entry points of coband's groups, found without reading about all the other packages.

`importlib.metadata.entry_points` reads those of every package of the environment. This looks for coband's name in them.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from typing import NamedTuple

OWN = "coband"
GROUP = b"[coband."
METADATA = (".dist-info", ".egg-info")


class Offer(NamedTuple):
    """The entry points of one package.

    Attributes:
        package: its name, as `importlib.metadata` normalises it.
        folder: where its metadata is.
        text: its file ``entry_points.txt``.
    """

    package: str
    folder: str
    text: bytes


def offers() -> list[Offer] | None:
    """The packages with entry points of coband's groups, in the order in which Python finds them.

    Returns:
        None if packages are installed in a way that needs `importlib.metadata`: in archives, or behind other finders.
    """
    if any(hasattr(finder, "find_distributions") and not _is_python_s(finder) for finder in sys.meta_path):
        return None
    found: dict[str, Offer | None] = {}
    for place in sys.path:
        if os.path.isfile(place) or place.endswith(".egg"):
            return None
        for package, folder in _packages(place or "."):
            if package not in found:  # a later one of the same name is not installed
                text = _read(os.path.join(folder, "entry_points.txt"))
                found[package] = Offer(package, folder, text) if GROUP in text else None
    return [offer for offer in found.values() if offer is not None]


def of_others(found: list[Offer]) -> bool:
    """Whether some of them are not coband's own."""
    return any(offer.package != OWN for offer in found)


def _is_python_s(finder: object) -> bool:
    return getattr(finder, "__module__", "").startswith("_frozen_importlib")


def _packages(place: str) -> Iterator[tuple[str, str]]:
    """Normalised name and folder of the metadata of each package in a folder."""
    try:
        names = os.listdir(place)
    except OSError:
        return
    for name in names:
        if name.lower().endswith(METADATA):
            stem = name.lower().rpartition(".")[0].partition("-")[0]
            yield re.sub(r"[-_.]+", "-", stem), os.path.join(place, name)


def _read(file: str) -> bytes:
    try:
        with open(file, "rb") as opened:
            return opened.read()
    except OSError:
        return b""
