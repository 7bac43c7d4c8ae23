"""Who may import whom, and what the mathematics and the protocols may not do."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import networkx as nx
import pytest

import coband
from coband import extending
from tests.every import every

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "coband"
OURS = ("simulator", "agents", "server", "extensions")

# What each part may import of ours; a name covers everything below it. A part is a folder with all folders below it.
PREFIX = "coband."
EVERYWHERE = (
    "simulator.arms",
    "simulator.arrays",
    "simulator.metrics",
    "simulator.plugins",
    "simulator.scenario_errors",
)
NODE_SIDE = (
    "simulator.core.nodes",
    "simulator.core.conversations",
    "simulator.core.algorithm",
    "simulator.core.config",
    "simulator.maths",
)
ALLOWED = {
    "simulator/plugins": ("simulator.plugins",),
    "simulator/maths": ("simulator.maths",),
    # A problem fills in the engine's World and is a part of a scenario, so it may import what says what these are.
    "simulator/problems": (
        "simulator.problems",
        "simulator.maths",
        "simulator.core.world",
        "simulator.core.config",
        "simulator.core.reading",
    ),
    "simulator/core": ("simulator.core",),
    "simulator/experiments": (
        "simulator.experiments",
        "simulator.core",
        "simulator.problems",
        "simulator.maths.kernels.registry",  # what is installed; kernels themselves are the problems' and agents'
    ),
    "simulator/analysis": ("simulator.analysis", "simulator.experiments", "simulator.core"),
    "simulator/analysis/report": ("simulator.analysis", "simulator.experiments"),
    "simulator/reference": ("simulator.reference", "simulator.experiments", "simulator.terminal", "simulator.core"),
    "simulator/terminal": ("simulator.terminal", "simulator.experiments"),
    "simulator/cli": (
        "simulator.cli",
        "simulator.terminal",
        "simulator.analysis",
        "simulator.experiments",
        "simulator.reference",
    ),
    # What a terminal shows of a run's progress, a notebook shows too.
    "simulator/api": ("simulator.api", "simulator.terminal", "simulator.analysis", "simulator.experiments"),
    "agents": ("agents", *NODE_SIDE),
    "server": ("server", "agents.messages", *NODE_SIDE),
    "extensions": ("extensions", "extending", *coband.__all__),
}
MATHS_LIBRARIES = {"numpy", "scipy", "annotated_types"}
PURE = ("simulator/maths", "simulator/problems", "agents", "server")
READERS = {Path(f"simulator/problems/{name}.py") for name in ("array_files", "datasets")}
"""Of the pure parts, the modules that read files."""
FORBIDDEN_MODULES = {"simpy", "time", "datetime", "random", "secrets", "uuid", "socket", "subprocess", "threading"}
GENERATORS = {"Generator", "SeedSequence", "PCG64", "default_rng", "BitGenerator"}
FILE_METHODS = set("open read_text read_bytes write_text write_bytes tofile fromfile loadtxt savetxt".split())


def files(part: str) -> list[Path]:
    return sorted((PACKAGE / part).rglob("*.py"))


def parse(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))


@cache
def imports(file: Path) -> list[tuple[int, str]]:
    """(line, dotted name) of everything that a file imports; it is read once for all tests."""
    return list(imported(parse(file)))


def imported(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """(line, dotted name) of everything imported; `from a import b` may mean the module a.b."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: imports are absolute here"
            yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)


def covered(name: str, allowed: tuple[str, ...]) -> bool:
    return any(name == module or name.startswith(f"{module}.") for module in allowed)


def place(file: Path, line: int) -> str:
    return f"{file.relative_to(PACKAGE)}:{line}"


@every("part", ALLOWED)
def test_layers(part: str) -> None:
    assert files(part)
    everywhere = () if part == "extensions" else EVERYWHERE
    wrong = [
        f"{place(file, line)} imports {name}"
        for file in files(part)
        for line, name in imports(file)
        if name.startswith(PREFIX) and not covered(name.removeprefix(PREFIX), (*everywhere, *ALLOWED[part]))
    ]
    assert wrong == []


MOST_NAMES = 129
"""Names in `coband.extending`."""


def test_nothing_imports_an_extension_but_itself() -> None:
    """Templates, which become files of users, import the conformance kit as users do."""
    wrong = [
        f"{place(file, line)} imports {name}"
        for file in sorted({*PACKAGE.rglob("*.py"), *PACKAGE.glob("*.pyi")})
        for line, name in imports(file)
        if name.startswith(f"{PREFIX}extensions.")
        if not name.startswith(f"{PREFIX}{'.'.join(file.relative_to(PACKAGE).parts[:2])}.")
        if not file.is_relative_to(PACKAGE / "simulator" / "templates")
    ]
    assert wrong == []


def test_the_interface_for_extensions_is_small_and_documented() -> None:
    assert len(extending.__all__) <= MOST_NAMES
    found = {name: getattr(extending, name) for name in extending.__all__}
    documented = (inspect.isclass, inspect.isfunction, inspect.ismodule)
    assert [name for name, one in found.items() if any(kind(one) for kind in documented) and not one.__doc__] == []


def dotted(file: Path) -> str:
    """The name by which a file is imported."""
    parts = file.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(part for part in ("coband", *parts) if part != "__init__")


@cache
def module_graph() -> nx.DiGraph[str]:
    """Which module imports which, in the whole program; what only type checkers import counts too."""
    modules = {dotted(file): file for part in OURS for file in files(part)}
    graph: nx.DiGraph[str] = nx.DiGraph()
    for name, file in modules.items():
        graph.add_node(name)
        for _, found in imports(file):
            target = found if found in modules else found.rpartition(".")[0]
            if target in modules and target != name:
                graph.add_edge(name, target)
    return graph


def circles(graph: nx.DiGraph[str]) -> set[tuple[str, ...]]:
    """Sets of nodes that reach each other."""
    return {tuple(sorted(found)) for found in nx.strongly_connected_components(graph) if len(found) > 1}


def test_modules_do_not_import_each_other_in_a_circle() -> None:
    graph = module_graph()
    assert graph.number_of_edges() > 1000
    assert circles(graph) == set()


def test_the_rooms_of_the_core_are_built_on_each_other() -> None:
    """No circle among clock, network, nodes, conversations, hosts, records, twins, randomness, wire and making."""
    prefix = "coband.simulator.core."
    modules = {name: name.removeprefix(prefix).split(".") for name in module_graph() if name.startswith(prefix)}
    room_of = {name: path[0] for name, path in modules.items() if len(path) > 1}
    edges = ((room_of.get(one), room_of.get(other)) for one, other in module_graph().edges)
    rooms = nx.DiGraph([(one, other) for one, other in edges if one and other and one != other])
    known = set("clock network nodes conversations hosts records twins randomness wire populations making".split())
    assert set(rooms) == known
    assert circles(rooms) == set()


def test_every_package_has_a_rule() -> None:
    packages = {
        str(path.parent.relative_to(PACKAGE)) for name in OURS for path in (PACKAGE / name).rglob("__init__.py")
    }
    assert [
        name for name in packages - {"simulator"} if not any(f"{name}/".startswith(f"{part}/") for part in ALLOWED)
    ] == []


def test_imports_go_through_the_import_name() -> None:
    """The links at the top are signs for readers; what is imported is ``coband.agents`` and so on."""
    wrong = [
        f"{file.relative_to(ROOT)}:{line} imports {name}"
        for folder in ("coband", "tests", "benchmarks", "docs")
        for file in sorted((ROOT / folder).rglob("*.py"))
        for line, name in imports(file)
        if name.split(".")[0] in OURS
    ]
    assert wrong == []


def test_the_root_package_imports_the_standard_library_alone() -> None:
    tree = parse(PACKAGE / "__init__.py")
    assert isinstance(tree, ast.Module)
    used = {name.split(".")[0] for _, name in imported(tree)}
    assert used <= {"__future__", "ast", "importlib", "os", "sys", "typing"}


def test_only_the_core_imports_simpy() -> None:
    users = {
        str(file.relative_to(PACKAGE))
        for part in ALLOWED
        for file in files(part)
        for _, name in imports(file)
        if name.split(".")[0] == "simpy"
    }
    assert users == {"simulator/core/clock/clock.py"}


def test_what_talks_over_sockets_is_in_its_rooms() -> None:
    """asyncio, msgpack and hmac: live runs, and the command that joins one."""
    users = {
        str(file.relative_to(PACKAGE).parent)
        for part in OURS
        for file in files(part)
        for _, name in imports(file)
        if name.split(".")[0] in ("asyncio", "msgpack", "hmac")
    }
    assert users == {"extensions/live"}


def test_nothing_that_crosses_processes_live_is_pickled() -> None:
    wrong = [
        f"{place(file, line)} imports {name}"
        for file in files("extensions/live")
        for line, name in imports(file)
        if name.split(".")[0] in ("pickle", "cloudpickle", "marshal", "shelve", "joblib", "dill")
    ]
    assert wrong == []


def test_mathematics_needs_no_other_library() -> None:
    import sys

    wrong = [
        f"{place(file, line)} imports {name}"
        for file in files("simulator/maths")
        for line, name in imports(file)
        if (top := name.split(".")[0]) not in MATHS_LIBRARIES | {"coband"} and top not in sys.stdlib_module_names
    ]
    assert wrong == []


def test_the_packages_of_the_mathematics_have_no_circle() -> None:
    """Each package of maths, or module beside them, imports only such as do not lead back to it."""
    root = "simulator/maths"
    needs: dict[str, set[str]] = {}
    for file in files(root):
        own = file.relative_to(PACKAGE / root).parts[0].removesuffix(".py")
        named = (name.removeprefix("coband.simulator.maths.") for _, name in imports(file))
        needs.setdefault(own, set()).update(name.split(".")[0] for name in named if not name.startswith("coband"))
    inside = {name: {other for other in others & set(needs) if other != name} for name, others in needs.items()}
    TopologicalSorter(inside).prepare()  # raises CycleError with the circle
    assert inside["posteriors"] == {"kernels", "linalg"}


def effects(file: Path) -> Iterator[str]:
    """Clocks, files, output and global random streams."""
    for line, name in imports(file):
        if name.split(".")[0] in FORBIDDEN_MODULES:
            yield f"{place(file, line)} imports {name}"
        if name.startswith("numpy.random.") and name.rpartition(".")[2] not in GENERATORS:
            yield f"{place(file, line)} imports {name}"
    for node in ast.walk(parse(file)):
        if isinstance(node, ast.Attribute):
            owner = ast.unparse(node.value)
            if owner in ("np.random", "numpy.random") and node.attr not in GENERATORS:
                yield f"{place(file, node.lineno)} uses {owner}.{node.attr}"
        if isinstance(node, ast.Call):
            called = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
            if called in ("print", "input", "hash") and isinstance(node.func, ast.Name):
                yield f"{place(file, node.lineno)} calls {called}"
            if called in FILE_METHODS and file.relative_to(PACKAGE) not in READERS:
                yield f"{place(file, node.lineno)} calls {called}"


@pytest.mark.parametrize("part", PURE)
def test_no_effects(part: str) -> None:
    assert [effect for file in files(part) for effect in effects(file)] == []


def test_effects_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "bad.py"
    file.write_text(
        "import time\nimport numpy as np\nfrom numpy.random import normal\nnp.random.rand(3)\n"
        "np.random.default_rng(1)\nprint(1)\nopen('x')\n"
    )
    monkeypatch.setitem(globals(), "PACKAGE", tmp_path)
    assert list(effects(file)) == [
        "bad.py:1 imports time",
        "bad.py:3 imports numpy.random.normal",
        "bad.py:6 calls print",
        "bad.py:7 calls open",
        "bad.py:4 uses np.random.rand",
    ]
