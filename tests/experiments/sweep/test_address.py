"""What makes one job another one: the code that it executes, the files that it reads, the BLAS of numpy and scipy."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from coband.simulator.core.nodes.node import Server
from coband.simulator.experiments.runs import blas, code_version
from coband.simulator.experiments.scenario.loading import loads
from coband.simulator.experiments.sweep import foreign_code
from coband.simulator.experiments.sweep.address import Files, _modules, configuration_digest
from coband.simulator.experiments.sweep.foreign_code import code_of
from tests.problems.files import write_movielens

NUMPYS = "/site-packages/numpy.libs/libscipy_openblas64_-1.so"
FOREIGN = "/site-packages/solver.libs/libopenblas-2.so"


def controller(*libraries: tuple[str, str]) -> type:
    """Something that finds these (path, version)."""

    class Controller:
        def select(self, user_api: str) -> Controller:
            assert user_api == "blas"
            return self

        def info(self) -> list[dict[str, Any]]:
            known = {"internal_api": "openblas", "architecture": "Haswell"}
            return [{**known, "filepath": path, "version": version} for path, version in libraries]

    return Controller


@pytest.mark.parametrize(
    ("loaded", "found"),
    [
        ([(NUMPYS, "0.3.31"), (FOREIGN, "0.3.15")], ("openblas 0.3.31 Haswell",)),
        ([("/usr/lib/libopenblas.so", "0.3.21")], ("openblas 0.3.21 Haswell",)),
    ],
    ids=["another package's is left out", "the system's counts where numpy brings none"],
)
def test_kernels(loaded: list[tuple[str, str]], found: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blas.threadpoolctl, "ThreadpoolController", controller(*loaded))
    assert code_version.kernels.__wrapped__() == found


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A plugin of several modules in a folder that Python finds: agent, near, far, and one that nobody uses."""
    package = tmp_path / "plug_in_of_a_test"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "agent.py").write_text("from plug_in_of_a_test import near\nimport numpy\n")
    (package / "near.py").write_text(
        "def f():\n    from .deep import far\n    import helper_of_a_test\n    return far\n"
    )
    (package / "deep").mkdir()
    (package / "deep" / "__init__.py").write_text("")
    (package / "deep" / "far.py").write_text("VALUE = 1\n")
    (package / "unused.py").write_text("VALUE = 1\n")
    (tmp_path / "helper_of_a_test.py").write_text("VALUE = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


@pytest.mark.parametrize(
    ("file", "counts"),
    [
        ("plug_in_of_a_test/agent.py", True),
        ("plug_in_of_a_test/near.py", True),
        ("plug_in_of_a_test/deep/far.py", True),
        ("plug_in_of_a_test/deep/__init__.py", True),
        ("plug_in_of_a_test/__init__.py", True),
        ("helper_of_a_test.py", True),
        ("plug_in_of_a_test/unused.py", False),
    ],
)
def test_code_that_a_plugin_reaches_counts(plugin: Path, file: str, counts: bool) -> None:
    before = code_of(["plug_in_of_a_test.agent", "coband.agents.gp_ucb"])
    assert before == code_of(["plug_in_of_a_test.agent"]) != ""
    (plugin / file).write_text((plugin / file).read_text() + "# changed\n")
    assert (code_of(["plug_in_of_a_test.agent"]) != before) == counts


def test_of_an_installed_package_every_module_counts(plugin: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(foreign_code, "_distributions", lambda: {"plug_in_of_a_test": ["plug-in"]})
    before = code_of(["plug_in_of_a_test.agent"])
    (plugin / "plug_in_of_a_test" / "unused.py").write_text("VALUE = 2\n")
    assert code_of(["plug_in_of_a_test.agent"]) != before


def test_libraries_count_by_their_version(plugin: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = code_of(["plug_in_of_a_test.agent"])
    monkeypatch.setattr(foreign_code.metadata, "version", lambda name: "0.0")
    assert code_of(["plug_in_of_a_test.agent"]) != before


@pytest.mark.parametrize("place", ["site-packages", "dist-packages", "target"])
def test_libraries_count_by_their_version_wherever_they_are_installed(
    plugin: Path, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An environment may borrow the libraries of another one, as numpy of the system."""
    library = plugin / place / "library_of_a_test"
    library.mkdir(parents=True)
    (library / "__init__.py").write_text("")
    (library.parent / "library-1.0.dist-info").mkdir()
    monkeypatch.syspath_prepend(str(library.parent))
    monkeypatch.setattr(foreign_code, "_distributions", lambda: {"library_of_a_test": ["library"]})
    monkeypatch.setattr(foreign_code.metadata, "version", lambda name: "1.0")
    (plugin / "plug_in_of_a_test" / "near.py").write_text("import library_of_a_test\n")
    before = code_of(["plug_in_of_a_test.agent"])
    (library / "__init__.py").write_text("VALUE = 1\n")
    assert code_of(["plug_in_of_a_test.agent"]) == before
    monkeypatch.setattr(foreign_code.metadata, "version", lambda name: "1.1")
    assert code_of(["plug_in_of_a_test.agent"]) != before


def test_the_files_of_a_package_are_looked_for_once(plugin: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package, looked = plugin / "plug_in_of_a_test", list[str]()
    for number in range(20):
        (package / f"part_{number}.py").write_text("from plug_in_of_a_test import near, agent, unused\n")
    files = foreign_code._files
    monkeypatch.setattr(foreign_code, "_distributions", lambda: {"plug_in_of_a_test": ["plug-in"]})
    monkeypatch.setattr(foreign_code, "_files", lambda module: looked.append(module) or files(module))
    code_of(["plug_in_of_a_test.agent"])
    assert sum(module.startswith("plug_in_of_a_test") for module in looked) == 1


def test_our_own_code_is_not_foreign() -> None:
    assert code_of(["coband.agents.gp_ucb", "json"]) == ""


SCENARIO = """
name: files
agents: {count: 2}
schedule: {kind: rounds, turns: 3}
network: {latency: {kind: empirical, file: FILE}}
problem: {kind: contextual, arms: {kind: ball, dimension: 2, count: 4}, reward: {kind: cosine}}
algorithms: [{algorithm: gp_ucb}]
"""


def test_files_count_by_their_content_wherever_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    digests = []
    for number, content in enumerate(["1\n2\n", "1\n2\n", "1\n3\n"]):
        place = tmp_path / str(number)
        place.mkdir()
        (place / "delays.csv").write_text(content)
        monkeypatch.chdir(place)
        scenario = loads(SCENARIO.replace("FILE", "delays.csv"))
        digests.append(configuration_digest(scenario, Files(scenario.base))["gp_ucb"])
    assert digests[0] == digests[1] != digests[2]


@pytest.mark.parametrize("named", [True, False], ids=["by its name", "as a class"])
def test_the_module_of_a_server_counts(plugin: Path, named: bool) -> None:
    module = "plug_in_of_a_test.unused"
    server: Any = f"{module}:AServer" if named else type("AServer", (Server,), {"__module__": module})
    (plugin / "delays.csv").write_text("1\n")
    scenario = loads(SCENARIO.replace("FILE", str(plugin / "delays.csv")))
    (entry,) = scenario.algorithms
    entry = replace(entry, algorithm=replace(entry.algorithm, server=server))
    assert module in _modules(scenario, entry)


def test_a_file_that_a_plugin_names_by_any_key_counts(tmp_path: Path) -> None:
    files, table = Files(tmp_path), tmp_path / "table.csv"
    assert list(files.named("table.csv")) == []
    table.write_text("1")
    assert list(files.named("table.csv")) == [table]
    assert list(files.named("x" * 500)) == list(files.named("~nobody-of-that-name/x")) == list(files.named(3)) == []


RATINGS = """
name: ratings
agents: {count: 2}
schedule: {kind: one_at_a_time, turns: 3}
problem: {kind: recommender, data: {name: movielens, path: null}}
algorithms: [{algorithm: n_kernel_ucb}]
"""


def test_ratings_count_by_their_content_and_are_missed_where_they_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COBAND_DATA", str(tmp_path))
    scenario, digests = loads(RATINGS), []
    files = Files()
    configuration_digest(scenario, files)
    assert "ratings.csv is missing" in str(files.missing)
    for rating in (1.0, 1.0, 2.0):
        write_movielens(tmp_path, [("1", "7", rating)])
        files = Files()
        digests.append(configuration_digest(scenario, files)["n_kernel_ucb"])
        assert files.missing is None
    assert digests[0] == digests[1] != digests[2]
