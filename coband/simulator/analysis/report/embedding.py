"""What pages are made of: templates and files of a package."""

from __future__ import annotations

from importlib import resources
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined


def templates(package: str, **known: Any) -> Environment:
    """The templates of a package; ``known``: what all of them know."""
    found = Environment(
        loader=PackageLoader(package), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    found.globals |= known
    return found


def static(package: str, name: str) -> str:
    """A file of a package's folder ``static``."""
    return resources.files(package).joinpath("static", *name.split("/")).read_text(encoding="utf-8")
