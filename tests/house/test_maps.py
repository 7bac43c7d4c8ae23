"""The maps of the code, the list of decisions and the checks of each place agree with the tree.

``python -m tests.house.test_maps`` draws the floors in docs/house.md again.
"""

import re
import tomllib
from pathlib import Path

import networkx as nx
import pytest
import yaml

import coband
from tests.house.test_imports import EVERYWHERE, PACKAGE, module_graph

ROOT = Path(__file__).parents[2]
FOLDERS = ("agents", "server", "simulator", "coband", "tests", "docs", "scenarios", "benchmarks")
ROOMS = sorted(path.parent.relative_to(PACKAGE).as_posix() for path in PACKAGE.glob("*/**/__init__.py"))
FLOORS = re.compile(r"(?<=tests.house.test_maps` writes this part. -->\n).*(?=<!-- end of floors)", re.DOTALL)
A_PLACE = re.compile(r"`([\w.-]+(?:/[\w.-]+)*/?)`")
MOST_LOOSE = {"simulator": 4, "simulator/core": 14}
"""Folder -> how many modules it may have beside its rooms."""


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("page", ["docs/house.md", "CONTRIBUTING.md"])
def test_a_map_names_what_there_is(page: str) -> None:
    """Paths may leave out the folders above them; NAME stands for any."""
    found = [path for folder in (*FOLDERS, ".github") for path in [ROOT / folder, *(ROOT / folder).rglob("*")]]
    there = {f"/{path.relative_to(ROOT).as_posix()}" for path in [*found, *ROOT.iterdir()]}
    named = {place for place in A_PLACE.findall(text(page)) if "/" in place or place.endswith((".py", ".md", ".toml"))}
    missing = [
        place
        for place in sorted(named)
        if "NAME" not in place and not any(one.endswith(f"/{place.rstrip('/')}") for one in there)
    ]
    assert len(named) > 15
    assert missing == []


def floors() -> str:
    """Draw the packages, each with what it imports, in such an order that it only imports what stands below it."""
    tops = {"agents", "server", *(path.parent.name for path in (PACKAGE / "simulator").glob("*/__init__.py"))}
    tops -= {name.removeprefix("simulator.") for name in EVERYWHERE}

    def top(module: str) -> str:
        name = module.removeprefix("coband.").removeprefix("simulator.").split(".")[0]
        return name if name in tops else ""

    edges = {(top(one), top(other)) for one, other in module_graph().edges}
    graph = nx.DiGraph([(one, other) for one, other in edges if one and other and one != other])
    levels = list(nx.topological_generations(graph.reverse()))
    rows = [f"{room:<12} {' '.join(sorted(graph[room]))}".rstrip() for level in levels[::-1] for room in sorted(level)]
    return "\n".join(["```text", *rows, "```", ""])


def test_the_floors_are_drawn_as_they_are() -> None:
    (drawn,) = FLOORS.findall(text("docs/house.md"))
    assert drawn == floors(), "python -m tests.house.test_maps draws them again"


def test_the_tour_has_every_room() -> None:
    listed = re.findall(r"^\| `([\w/]+)` \|", text("docs/house.md").split("## Which check?")[0], re.MULTILINE)
    short = {room if room.count("/") < 2 else room.removeprefix("simulator/") for room in ROOMS}
    assert sorted(listed) == sorted(short)
    assert [folder for folder in FOLDERS if f"`{folder}`" not in text("docs/house.md")] == []


@pytest.mark.parametrize("folder", MOST_LOOSE)
def test_few_modules_are_in_no_room(folder: str) -> None:
    loose = sorted(path.name for path in (ROOT / folder).glob("*.py") if path.name != "__init__.py")
    assert len(loose) <= MOST_LOOSE[folder], loose


def test_every_decision_is_listed_under_its_number() -> None:
    row = re.compile(r"^\| \[(\d+)\. [^]]+\]\((\d{4}-[\w-]+\.md)\) \| \S", re.MULTILINE)
    listed = row.findall(text("docs/decisions/index.md"))
    records = sorted(path.name for path in (ROOT / "docs" / "decisions").glob("0*.md"))
    assert [name for _, name in listed] == records
    for number, name in listed:
        assert int(name[:4]) == int(number)
        assert text(f"docs/decisions/{name}").startswith(f"# {number}. "), name


def test_every_place_has_the_same_checks() -> None:
    """`make check`, the hooks of pre-commit and the jobs of the public CI."""
    checks = re.search(r"^check: (.*)$", text("Makefile"), re.MULTILINE)
    assert checks is not None
    (hooks,) = [one["hooks"] for one in yaml.safe_load(text(".pre-commit-config.yaml"))["repos"]]
    assert [hook["entry"] for hook in hooks] == [f"make {name}" for name in checks[1].split()]
    jobs = yaml.safe_load(text(".github/workflows/ci.yml"))["jobs"]
    steps = [step["run"] for job in jobs.values() for step in job["steps"] if "run" in step]
    assert {"make lint types", "make docs"} <= set(steps)


def test_the_public_ci_runs_on_what_is_promised() -> None:
    project = tomllib.loads(text("pyproject.toml"))["project"]
    promised = re.findall(r":: (3\.\d+)", "\n".join(project["classifiers"]))
    matrix = yaml.safe_load(text(".github/workflows/ci.yml"))["jobs"]["tests"]["strategy"]["matrix"]
    assert project["requires-python"] == f">={matrix['python'][0]}"
    assert set(promised) <= set(matrix["python"])
    rows = [{"dependencies": "newest", "os": matrix["os"][0]}, *matrix["include"]]
    assert {row["dependencies"] for row in rows} == {"newest", "constrained", "oldest"}
    assert {row["os"].partition("-")[0] for row in rows} == {"ubuntu", "macos", "windows"}


def test_every_dependency_has_a_lower_bound() -> None:
    """Otherwise the oldest that is allowed is one from years ago."""
    project = tomllib.loads(text("pyproject.toml"))["project"]
    every = [*project["dependencies"], *(one for group in project["optional-dependencies"].values() for one in group)]
    assert [one for one in every if ">=" not in one and not one.startswith("coband[")] == []


def test_where_to_get_it_is_said_once() -> None:
    """README, metadata and citation name one address."""
    address = tomllib.loads(text("pyproject.toml"))["project"]["urls"]["Repository"]
    assert f"git clone {address}" in text("README.md")
    assert yaml.safe_load(text("CITATION.cff"))["repository-code"] == address


def test_what_is_promised_can_be_imported() -> None:
    """docs/stability.md: every name of ``from coband import ...`` that the stub lists is there."""
    listed = re.findall(r"\b(\w+) as \1\b", text("coband/__init__.pyi"))
    assert [name for name in listed if not hasattr(coband, name)] == []
    assert len(listed) > 20


if __name__ == "__main__":
    page = ROOT / "docs" / "house.md"
    page.write_text(FLOORS.sub(lambda _: floors(), page.read_text(encoding="utf-8")), encoding="utf-8")
