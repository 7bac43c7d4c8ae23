"""Files that must lie beside a stored scenario, such as arrays that its text only names by their digest."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from coband.simulator.experiments.registry.registry import Registry
from coband.simulator.problems.problem import Problem


def write(problems: Iterable[tuple[Problem, Path]], folder: Path) -> None:
    """Write the files of problems; what is there already is the same, since names have a digest of the content.

    Args:
        problems: each with the directory of the scenario that it comes from.

    Raises:
        DataError: the content is not to be had.
        OSError: a file cannot be written.
    """
    found: dict[str, Callable[[], bytes]] = {}
    for problem, base in problems:
        if (attachment := problem.attachment(base)) is not None:
            found.setdefault(*attachment)
    for name, content in found.items():
        if not (folder / name).exists():
            (folder / name).write_bytes(content())


def problems_in(document: object, base: Path) -> Iterator[tuple[Problem, Path]]:
    """The problems with a file beside them anywhere in a document, which need not be valid, as for `write`."""
    if isinstance(document, list):
        for item in document:
            yield from problems_in(item, base)
    elif isinstance(document, Mapping):
        if document.get("kind") == "arrays" and isinstance(content := document.get("content"), str):
            arrays = Registry.installed().problems["arrays"].config
            yield arrays.model_validate({"kind": "arrays", "content": content}), base
        for value in document.values():
            yield from problems_in(value, base)
