"""What pages are made of: templates and files of a package."""

from __future__ import annotations

from importlib import resources


def static(package: str, name: str) -> str:
    """A file of a package's folder ``static``."""
    return resources.files(package).joinpath("static", *name.split("/")).read_text(encoding="utf-8")
