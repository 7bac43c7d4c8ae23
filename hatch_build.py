"""Puts the folders of a checkout into the package: files in a wheel, links in a checkout.

A wheel has `agents`, `server`, `simulator` and `scenarios` in `coband/`. A checkout has them beside it, and
`coband/__init__.py` finds them there. Type checkers and editors run neither that nor the finder of an editable install.
So such an install makes links that git ignores: the folders in `coband/`, and `coband` in `.editable/`, a folder on the
path. Programs run without them. ``python hatch_build.py`` makes them without an install.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ROOT = Path(__file__).parent
CODE = ("agents", "server", "simulator")
FOLDERS = (*CODE, "scenarios")
ALONE = ROOT / ".editable"
"""A folder with nothing but a link to `coband`."""


class Folders(BuildHookInterface):  # type: ignore[type-arg]
    """What hatchling calls before it builds a wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the folders to a wheel; for an editable install, make the links."""
        if version == "editable":
            link()
            if (ALONE / "coband").is_dir():
                (ALONE / "coband.pth").write_text(f"{ALONE}\n", encoding="utf-8")
                build_data["force_include_editable"][str(ALONE / "coband.pth")] = "_coband_for_type_checkers.pth"
        else:
            build_data["force_include"].update({str(ROOT / name): f"coband/{name}" for name in FOLDERS})


def link() -> None:
    """Make the links that are missing: symbolic ones, or junctions on Windows; none where there can be none."""
    ALONE.mkdir(exist_ok=True)
    links = {ROOT / "coband" / name: ROOT / name for name in CODE} | {ALONE / "coband": ROOT / "coband"}
    for place, target in links.items():
        if place.is_dir():
            continue
        try:
            if os.name == "nt":
                import _winapi

                _winapi.CreateJunction(str(target), str(place))
            else:
                place.symlink_to(Path("..", target.name), target_is_directory=True)
        except OSError as failure:
            print(f"no link {place}, so type checkers do not find all of coband: {failure}")


if __name__ == "__main__":
    link()
