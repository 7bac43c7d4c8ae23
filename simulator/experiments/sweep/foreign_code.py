"""The code of other packages that results depend on: plugins, and every module that they import.

A plugin's module is followed to the modules that it imports, wherever in the file, and these to theirs. Of a package
that a distribution has installed every module counts, since it may import some by names made at run time. Packages
that plugins merely use, such as numpy, count by their version.
"""

from __future__ import annotations

import ast
import importlib.util
import site
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from functools import lru_cache
from importlib import metadata
from pathlib import Path

from coband.simulator.experiments.runs.code_version import sha256
from coband.simulator.plugins.entry_points import offering

OURS = "coband"
SITES = ("site-packages", "dist-packages")
"""How directories are called in which distributions are installed."""


def foreign(module: str) -> bool:
    """Whether a module belongs neither to coband nor to Python."""
    top = module.partition(".")[0]
    return top != OURS and top not in sys.stdlib_module_names


def of_a_plugin(module: str) -> bool:
    """Whether a module is of a plugin, or of the user's, and not of a library that is installed."""
    top = module.partition(".")[0]
    return foreign(module) and (top not in _distributions() or top in offering())


def code_of(modules: Iterable[str], used: bool = True) -> str:
    """Digest of the modules and of all that they import, but for coband and Python; empty where nothing is foreign.

    Args:
        modules: dotted names, or files that end in .py.
        used: whether the versions of packages that they merely use count.
    """
    return _digest(frozenset(filter(foreign, modules)), used)


def _digest(modules: frozenset[str], used: bool) -> str:
    plugins = {module.partition(".")[0] for module in modules}
    contents: dict[str, str] = {}
    versions: set[str] = set()
    waiting, seen = sorted(modules), set[str]()
    while waiting:
        module = waiting.pop()
        top = module.partition(".")[0]
        whole = top if top in _distributions() and not module.endswith(".py") else module  # all of its files count
        if whole in seen:
            continue
        seen.add(whole)
        found = _files(module)
        if found and top not in plugins and _is_installed(found[0]):
            versions.update(_versions(top) if used else ())
            seen.add(top)
            continue
        for file in found:
            if str(file) in contents:
                continue
            contents[str(file)], imported = _read(file, _package(module, file))
            waiting += filter(foreign, imported)
    return sha256(*(contents[file] for file in sorted(contents)), *sorted(versions)) if contents or versions else ""


def _files(module: str) -> list[Path]:
    """The files of a module: its own; all of its package where a distribution has installed it."""
    if module.endswith(".py"):
        return [Path(module)] if Path(module).is_file() else []
    top, *rest = module.split(".")
    try:
        spec = importlib.util.find_spec(top)
    except (ImportError, ValueError):
        return []
    if spec is None:
        return []
    roots = [Path(place) for place in spec.submodule_search_locations or ()]
    if not roots:
        return [Path(spec.origin)] if spec.origin is not None and Path(spec.origin).is_file() else []
    if top in _distributions():
        return sorted(file for root in roots for file in root.rglob("*.py"))
    return list(dict.fromkeys(file for root in roots for file in _on_the_way(root, rest)))


def _on_the_way(root: Path, names: list[str]) -> Iterator[Path]:
    """The files that importing a dotted name executes: those of its packages, and its own."""
    place = root
    for name in [*names, None]:
        if (place / "__init__.py").is_file():
            yield place / "__init__.py"
        if name is None:
            return
        if (place / f"{name}.py").is_file():
            yield place / f"{name}.py"
            return
        place /= name
        if not place.is_dir():
            return


def _package(module: str, file: Path) -> str:
    """The package that relative imports of a file of a module's package start from."""
    top = module.partition(".")[0]
    parts = list(file.parts[:-1])
    place = len(parts) - 1 - parts[::-1].index(top) if top in parts else len(parts)
    return ".".join(parts[place:])


def _read(file: Path, package: str) -> tuple[str, tuple[str, ...]]:
    state = file.stat()
    return _contents(file, package, state.st_mtime_ns, state.st_size)


@lru_cache(maxsize=4096)
def _contents(file: Path, package: str, changed: int, size: int) -> tuple[str, tuple[str, ...]]:
    """Digest of a file, and the dotted names that it imports; ``changed`` and ``size`` tell its states apart."""
    raw = file.read_bytes()
    try:
        tree = ast.parse(raw)
    except (SyntaxError, ValueError):
        return sha256(raw), ()
    return sha256(raw), tuple(dict.fromkeys(name for node in ast.walk(tree) for name in _imported(node, package)))


def _imported(node: ast.AST, package: str) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
        base = ".".join([*above, *([node.module] if node.module else [])])
        if base:
            yield from (f"{base}.{alias.name}" for alias in node.names)


def _is_installed(file: Path) -> bool:
    return any(file.resolve().is_relative_to(place) for place in _installed_in(tuple(sys.path)))


@lru_cache(maxsize=4)
def _installed_in(path: tuple[str, ...]) -> tuple[Path, ...]:
    """The directories of this interpreter in which distributions are installed: its own, the user's, and others on the
    path, which an environment may borrow."""
    own = [sysconfig.get_path("purelib"), sysconfig.get_path("platlib"), *site.getsitepackages()]
    borrowed = [one for one in path if Path(one).name in SITES or any(Path(one or ".").glob("*.dist-info"))]
    return tuple({Path(one).resolve(): None for one in (*own, site.getusersitepackages(), *borrowed)})


@lru_cache(maxsize=1)
def _distributions() -> dict[str, list[str]]:
    return dict(metadata.packages_distributions())


def _versions(top: str) -> Iterator[str]:
    for name in sorted(set(_distributions().get(top, ()))):
        yield f"{name} {metadata.version(name)}"
