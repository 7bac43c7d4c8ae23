"""What is built and installed: everything that coband needs, under one name, next to whatever else is there.

Nothing is downloaded: hatchling builds, pip installs wheels alone, and the new environment sees this one's libraries.
"""

import os
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from importlib import metadata
from pathlib import Path

import pytest

pytest.importorskip("hatchling", reason="distributions are built with hatchling: pip install -e '.[dev]'")

from packaging.requirements import Requirement

from tests.everyday import everyday

ROOT = Path(__file__).parents[2]
LINKS = {"agents", "server", "simulator", "scenarios"}
"""Signs at the top of the checkout; what they point to is in ``coband``."""
OWNED_BY_OTHERS = ("agents", "server", "simulator")  # openai-agents, for one, installs a package `agents`
STUB = """
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "owner-of-common-names"
version = "1"

[tool.hatch.build.targets.wheel]
packages = ["agents", "server", "simulator"]
"""


def run(*command: object, where: Path) -> str:
    """Standard output of a program that knows nothing of this checkout."""
    environment = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "VIRTUAL_ENV")}
    done = subprocess.run(
        list(map(str, command)), cwd=where, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def build(project: Path, out: Path, kind: str) -> Path:
    run(sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", out, where=project)
    (built,) = out.iterdir()
    return built


def contents(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def sources(*folders: str, root: Path = ROOT) -> dict[str, bytes]:
    """What the checkout, or another tree, holds below some folders."""
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for folder in folders
        for path in sorted((root / folder).rglob("*"))
        if path.is_file() and not {"__pycache__", "_build"} & set(path.parts)
        if not path.is_relative_to(root / "docs" / "reference")  # written when the documentation is built
    }


LEFT_OUT = ("coband/extensions/evidence/papers/", "coband/extensions/evidence/results/")
"""What stays in the checkout."""


def packages(root: Path = ROOT) -> dict[str, bytes]:
    """What a wheel of a tree holds, but for what it says about itself."""
    return {name: data for name, data in sources("coband", root=root).items() if not name.startswith(LEFT_OUT)}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(ROOT, tmp_path_factory.mktemp("wheel"), "wheel")


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source distribution, unpacked."""
    place = tmp_path_factory.mktemp("unpacked")
    with tarfile.open(build(ROOT, tmp_path_factory.mktemp("sdist"), "sdist")) as archive:
        archive.extractall(place, filter="data")
    (project,) = place.iterdir()
    return project


@pytest.fixture(scope="module")
def stub(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel of somebody else, which owns the packages that coband's folders are named like."""
    project = tmp_path_factory.mktemp("stub")
    (project / "pyproject.toml").write_text(STUB)
    for name in OWNED_BY_OTHERS:
        (project / name).mkdir()
        (project / name / "__init__.py").write_text(f"OWNER = 'somebody else, {name}'\n")
    return build(project, tmp_path_factory.mktemp("stub_wheel"), "wheel")


@pytest.fixture(scope="module")
def python(wheel: Path, stub: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python of a new environment with both wheels, which sees this environment's libraries but not this coband."""
    return environment(tmp_path_factory.mktemp("environment"), [wheel, stub], Path(sysconfig.get_path("purelib")))


def environment(place: Path, wheels: list[Path], libraries: Path) -> Path:
    """The Python of a new environment with some wheels, which sees a folder of libraries."""
    venv.create(place, symlinks=os.name != "nt")
    scripts = {"base": str(place), "platbase": str(place)}
    found = Path(sysconfig.get_path("scripts", "venv", scripts)) / Path(sys.executable).name
    options = ["--quiet", "--no-deps", "--no-index", "--no-compile", "--disable-pip-version-check"]
    if wheels:
        run(sys.executable, "-m", "pip", "--python", found, "install", *options, *wheels, where=place)
    file = Path(sysconfig.get_path("purelib", "venv", scripts)) / "0_libraries_of_the_tests.pth"
    file.write_text(str(libraries))  # read first; a .pth file there, such as that of an editable coband, is not read
    return found


def test_the_wheel_installs_coband_and_nothing_beside_it(wheel: Path) -> None:
    names = {name.partition("/")[0] for name in contents(wheel)}
    assert sorted(names) == ["coband", f"{'-'.join(wheel.name.split('-')[:2])}.dist-info"]


def test_the_wheel_holds_everything(wheel: Path) -> None:
    packed = {name: data for name, data in contents(wheel).items() if name.startswith("coband/")}
    expected = packages()
    assert sorted(packed) == sorted(expected)
    assert packed == expected
    assert {
        "coband/py.typed",
        "coband/scenarios/duets/h1_quick.yaml",
        "coband/server/kernel/duets.py",
        "coband/simulator/maths/kernels/__init__.py",
        "coband/simulator/experiments/registry/references.bib",
    } <= set(packed)
    assert {Path(name).suffix for name in packed if "/report/" in name} >= {".py", ".css", ".js"}
    assert wheel.stat().st_size <= 1_600_000


def test_the_source_distribution_builds_the_same_wheel(
    wheel: Path, unpacked: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    again = build(unpacked, tmp_path_factory.mktemp("again"), "wheel")
    assert (again.name, contents(again)) == (wheel.name, contents(wheel))


def test_the_source_distribution_holds_tests_scenarios_and_documentation(unpacked: Path) -> None:
    expected = sources("coband", "tests", "docs", "benchmarks")
    missing = [name for name, data in expected.items() if (unpacked / name).read_bytes() != data]
    assert missing == []
    assert {"tests/golden_counts.json", "coband/scenarios/quickstart.yaml", "docs/tutorial.md"} <= set(expected)
    assert {"README.md", "constraints.txt", "pyproject.toml"} <= {path.name for path in unpacked.iterdir()}


@pytest.fixture(scope="module")
def clone(unpacked: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clone on a file system without symbolic links; where this is not a checkout, the source distribution."""
    place = tmp_path_factory.mktemp("clone") / "coband"
    if not (ROOT / ".git").exists():
        return unpacked
    run("git", "-c", "core.symlinks=false", "clone", "--quiet", "--depth", 1, f"file://{ROOT}", place, where=ROOT)
    assert not any((place / name).is_dir() for name in LINKS)
    return place


def test_an_editable_clone_exposes_one_name(clone: Path, stub: Path, tmp_path: Path) -> None:
    python = environment(tmp_path / "environment", [stub], Path(sysconfig.get_path("purelib")))
    options = ["--quiet", "--no-deps", "--no-index", "--no-build-isolation", "--disable-pip-version-check"]
    run(sys.executable, "-m", "pip", "--python", python, "install", *options, "-e", clone, where=tmp_path)
    code = "import agents, server, simulator; from importlib.util import find_spec as found; "
    code += "print(agents.OWNER, server.OWNER, simulator.OWNER, found('tests'), found('benchmarks'), sep='; ')"
    owners = "; ".join(f"somebody else, {name}" for name in OWNED_BY_OTHERS)
    assert run(python, "-c", code, where=tmp_path) == f"{owners}; None; None\n"
    code = "import coband.agents.kernel.duets as found, coband; print(found.__file__, coband.__version__)"
    file, version = run(python, "-c", code, where=tmp_path).split()
    assert Path(file).resolve() == (clone / "coband" / "agents" / "kernel" / "duets.py").resolve()
    assert run(python, "-m", "coband", "--version", where=tmp_path) == f"coband {version}\n"
    settings = ["--only", "Async", "--set", "schedule.turns=5", "--replications", 2, "--workers", 2]
    run(python.with_name("coband"), "run", "quickstart", *settings, "--out", tmp_path / "out", where=tmp_path)
    assert (tmp_path / "out" / "run.sqlite").is_file()
    few = [
        "tests/house/test_imports.py::test_no_effects",
        "tests/core/conversations/test_telling.py",
        "tests/scenarios/test_headers.py",
    ]
    assert " passed" in run(python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *few, where=clone)


def test_the_links_at_the_top_lead_into_the_package() -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("no checkout")
    files = run("git", "ls-files", "--stage", where=ROOT).splitlines()
    assert {line.partition("\t")[2] for line in files if line.startswith("120000")} == LINKS
    assert {name: os.readlink(ROOT / name) for name in LINKS} == {name: f"coband/{name}" for name in LINKS}


@pytest.fixture(scope="module")
def zipped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An unpacked zip of the files that git has."""
    place = tmp_path_factory.mktemp("zipped")
    if not (ROOT / ".git").exists():
        pytest.skip("no checkout")
    run("git", "archive", "--format=zip", "--output", place / "coband.zip", "HEAD", where=ROOT)
    with zipfile.ZipFile(place / "coband.zip") as archive:
        archive.extractall(place / "coband")
    return place / "coband"


def test_a_zip_of_the_checkout_makes_a_wheel_of_all_that_it_has(zipped: Path, tmp_path: Path) -> None:
    """Files that are not committed yet are in neither."""
    built = contents(build(zipped, tmp_path / "wheel", "wheel"))
    packed = {name: data for name, data in built.items() if name.startswith("coband/")}
    assert sorted(packed) == sorted(packages(zipped))
    assert packed == packages(zipped)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["unpacked", "zipped", "clone"])
def test_what_is_published_passes_its_tests(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    """The tests that read the tree, in an editable install of it; tests of other folders do not depend on the tree."""
    place = request.getfixturevalue(kind)
    python = environment(tmp_path / "environment", [], Path(sysconfig.get_path("purelib")))
    options = ["--quiet", "--no-deps", "--no-index", "--no-build-isolation", "--disable-pip-version-check"]
    run(sys.executable, "-m", "pip", "--python", python, "install", *options, "-e", place, where=tmp_path)
    folders = [f"tests/{name}" for name in ("house", "docs", "reference", "experiments/scenario", "scenarios", "cli")]
    run(python, "-m", "pytest", "-q", "-n", 2, "-p", "no:cacheprovider", *folders, where=place)


def test_results_that_stay_in_the_checkout_are_named(python: Path, tmp_path: Path) -> None:
    """Ranks of coband's own algorithms come along; claims of papers do not, which is said in one sentence."""
    code = "from coband.simulator.cli.main import exit_status as ended; "
    code += "print(ended(['suite', 'rank', '--json']), ended(['reproduce', 'duets']), ended(['reproduce', '--list']))"
    command = [python, "-c", code]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stdout.splitlines()[-1] == "0 2 2"
    (first, second) = done.stderr.splitlines()
    assert first == second
    assert first.startswith("coband: the claims of papers are in coband's checkout and not in its wheel: clone ")


def test_a_scenario_runs_where_others_own_common_names(python: Path, tmp_path: Path) -> None:
    settings = ["--set", "schedule.turns=20", "--set", "agents.count=2", "--replications", 1, "--workers", 1]
    output = run(python.with_name("coband"), "run", "quickstart", *settings, "--out", "out", where=tmp_path)
    assert output.splitlines()[-1] == "run directory: out"
    assert (tmp_path / "out" / "run.sqlite").is_file()
    assert run(python, "-m", "coband", "--version", where=tmp_path).startswith("coband 0.")


SCRIPT = """\
from importlib.util import find_spec

import coband
import numpy as np


def reward(arms):
    return np.sin(arms[:, 0])


def main():
    arms = np.random.default_rng(0).normal(size=(200, 3))
    scenario = {
        "name": "script",
        "agents": {"count": 2},
        "schedule": {"kind": "rounds", "turns": 5},
        "replications": 2,
        "algorithms": [{"algorithm": "lin_ucb"}],
    }
    given = coband.Problem.from_arrays(arms, reward(arms), noise=0.1)
    for problem in (given, coband.Problem.from_function(reward, arms)):
        run = coband.run(scenario, problem=problem, workers=2)
        print(run.status, len(run.results), len(list(run.path.glob("arrays-*.npz"))))
    print(run.results.to_latex()[:16])
    print(coband.sweep(scenario, problem=problem, workers=2).status)
    print(*(name for name in ("pyarrow", "dask") if find_spec(name)), sep=", ")


GUARDmain()
"""


@pytest.fixture(scope="module")
def bare_python(python: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python of a new environment with the other one's coband, which is compiled once, and the libraries that it
    cannot do without, and no other."""
    place, libraries = tmp_path_factory.mktemp("bare"), tmp_path_factory.mktemp("libraries")
    scripts = {"base": str(python.parents[1]), "platbase": str(python.parents[1])}
    for path in Path(sysconfig.get_path("purelib", "venv", scripts)).glob("coband*"):
        (libraries / path.name).symlink_to(path)
    for name in required("coband"):
        for top in {file.parts[0] for file in metadata.files(name) or () if ".." not in file.parts}:
            if not (libraries / top).exists():
                (libraries / top).symlink_to(Path(sysconfig.get_path("purelib")) / top)
    return environment(place, [], libraries)


def required(name: str) -> set[str]:
    """The distributions that one needs without any extra, and those that these need."""
    found: set[str] = set()
    waiting = [name]
    while waiting:
        needs = map(Requirement, metadata.requires(waiting.pop()) or ())
        new = {need.name for need in needs if need.marker is None or need.marker.evaluate({"extra": ""})} - found
        found |= new
        waiting += new
    return found


@pytest.mark.parametrize("guard", everyday(1, ["", 'if __name__ == "__main__":\n    ']), ids=["as it is", "guarded"])
def test_a_script_runs_its_own_arrays(bare_python: Path, tmp_path: Path, guard: str) -> None:
    """Far from the checkout, without the libraries of extras; worker processes do not import the script."""
    (tmp_path / "script.py").write_text(SCRIPT.replace("GUARD", guard))
    assert (
        run(bare_python, "script.py", where=tmp_path) == "finished 2 1\nfinished 2 1\n\\begin{tabular}{\nfinished\n\n"
    )


def test_the_wheel_says_what_it_is(wheel: Path) -> None:
    (text,) = [data.decode() for name, data in contents(wheel).items() if name.endswith(".dist-info/METADATA")]
    extras = {line.removeprefix("Provides-Extra: ") for line in text.splitlines() if line.startswith("Provides-Extra")}
    assert extras == set("all cluster data dev docs frontier jobqueue live mutants notebook parquet privacy".split())
    assert "Classifier: Typing :: Typed\n" in text


def test_common_names_stay_with_their_owner(python: Path, tmp_path: Path) -> None:
    code = "\n".join(
        [
            "import coband.simulator.cli.main, coband.agents.kernel.duets, coband.server.kernel.duets",
            f"import {', '.join(OWNED_BY_OTHERS)}, os, sys",
            f"print(*[sys.modules[name].OWNER for name in {OWNED_BY_OTHERS!r}], sep='; ')",
            "print(os.path.commonpath([coband.__file__, sys.prefix]) == sys.prefix)",
        ]
    )
    owners = "; ".join(f"somebody else, {name}" for name in OWNED_BY_OTHERS)
    assert run(python, "-c", code, where=tmp_path) == f"{owners}\nTrue\n"


NOT_FOLLOWED = """
[mypy]
[mypy-coband.simulator.api.*,coband.extensions.conformance.*,coband.simulator.problems.*]
follow_imports = skip
[mypy-matplotlib.*,networkx.*,rich.*,scipy.*]
follow_imports = skip
follow_imports_for_stubs = True
"""
"""A configuration that leaves out most of what mypy would read."""


def checked(python: Path, place: Path, configuration: str = "") -> list[str]:
    """What mypy says about plugins: the tutorial's, which imports from `coband` alone, and one with a mistake."""
    plugin = (ROOT / "coband/simulator/templates/own-algorithm/fed_ucb1.py").read_text(encoding="utf-8")
    assert "from coband." not in plugin
    (place / "plugin.py").write_text(plugin)
    (place / "wrong.py").write_text(
        "from coband import SERVER, Agent, ArmSet, Outbox\n\n\n"
        "class Wrong(Agent):\n"
        "    def observe(self, arms: ArmSet, arm: int, reward: float) -> Outbox:\n"
        "        return [(SERVER, arm)]\n"
    )
    (place / "mypy.ini").write_text(configuration)
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file", "mypy.ini", "--cache-dir", place / "cache"]
    done = subprocess.run(
        [*command, "--python-executable", python, "plugin.py", "wrong.py"],
        cwd=place,
        env={key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "MYPYPATH")},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout.splitlines()


@pytest.mark.parametrize(
    "configuration",
    [pytest.param("", id="everything", marks=pytest.mark.slow), pytest.param(NOT_FOLLOWED, id="what plugins need")],
)
def test_types_come_along(python: Path, tmp_path: Path, configuration: str) -> None:
    """The tutorial's plugin is right; a wrong one is found."""
    (mistake, summary) = checked(python, tmp_path, configuration)
    assert mistake.startswith("wrong.py:6: error: ")
    assert "Message" in mistake
    assert summary.startswith("Found 1 error in 1 file")
