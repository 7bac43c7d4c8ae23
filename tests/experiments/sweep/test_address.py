"""What makes one job another one: the code that it executes, the files that it reads, the BLAS of numpy and scipy."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import pytest

from coband.simulator.core.nodes.node import Server
from coband.simulator.experiments.runs import address, code_version
from coband.simulator.experiments.runs.address import Files, ForeignCode, _modules, configuration_digest
from coband.simulator.experiments.scenario.loading import loads
from tests.problems.files import write_movielens

NUMPYS = "/site-packages/numpy.libs/libscipy_openblas64_-1.so"
FOREIGN = "/site-packages/solver.libs/libopenblas-2.so"


def controller(*libraries: tuple[str, str]) -> type:
    """Something that finds these (path, version)."""

    class Controller:
        def select(self, user_api: str) -> Self:
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
    monkeypatch.setattr(code_version.threadpoolctl, "ThreadpoolController", controller(*loaded))
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


def code_of(*modules: str) -> str:
    return ForeignCode().digest(modules)


def installed(folder: Path, *files: str) -> None:
    """Say that a distribution has installed some files of a folder."""
    place = folder / "plug_in-1.0.dist-info"
    place.mkdir()
    (place / "METADATA").write_text("Metadata-Version: 2.1\nName: plug-in\nVersion: 1.0\n")
    (place / "top_level.txt").write_text("plug_in_of_a_test\n")
    (place / "RECORD").write_text("".join(f"{file},,\n" for file in files))


@pytest.mark.parametrize("file", ["agent.py", "near.py", "deep/far.py", "unused.py", "../helper_of_a_test.py", "x.csv"])
def test_all_files_of_the_folder_count(plugin: Path, file: str) -> None:
    before = code_of("plug_in_of_a_test.agent", "coband.agents.alone.gp_ucb")
    assert before == code_of("plug_in_of_a_test.agent") == code_of("helper_of_a_test") != ""
    place = plugin / "plug_in_of_a_test" / file
    place.write_text((place.read_text() if place.exists() else "") + "# changed\n")
    assert code_of("plug_in_of_a_test.agent") != before


@pytest.mark.parametrize("file", [".hidden/x.py", "__pycache__/x.pyc", "out/run.sqlite", "runs/lock", "env/pyvenv.cfg"])
def test_what_is_no_code_of_the_folder_does_not_count(plugin: Path, file: str) -> None:
    before = code_of("plug_in_of_a_test.agent")
    (plugin / file).parent.mkdir(exist_ok=True)
    for name in {"run.sqlite": ["run.sqlite", "manifest.json"], "lock": ["lock", "lock.owner"]}.get(
        Path(file).name, [Path(file).name]
    ):
        (plugin / file).with_name(name).write_text("")
    (plugin / file).with_name("more.txt").write_text("")
    assert code_of("plug_in_of_a_test.agent") == before


@pytest.mark.parametrize("file", ["runs/x.py", "data/manifest.json", "data/lock", "linked/x.py"])
def test_what_looks_like_a_run_counts_and_what_is_linked(plugin: Path, file: str) -> None:
    for name in ("runs", "data", ".elsewhere"):
        (plugin / name).mkdir()
    (plugin / "linked").symlink_to(plugin / ".elsewhere")
    (plugin / ".elsewhere" / "round").symlink_to(plugin)
    before = code_of("plug_in_of_a_test.agent")
    (plugin / file).write_text("")
    assert code_of("plug_in_of_a_test.agent") != before


@pytest.mark.parametrize(
    "line", ["import far", "    from far.deep import x", "import json, far as f", "if 1: import far"]
)
def test_what_code_imports_counts_wherever_it_is(
    plugin: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    first, second = (tmp_path_factory.mktemp(name) for name in ("first", "second"))
    monkeypatch.syspath_prepend(str(first))
    monkeypatch.syspath_prepend(str(second))
    (plugin / "helper_of_a_test.py").write_text(line.replace("far", "far_from_a_test") + "\n")
    (first / "far_from_a_test.py").write_text("import numpy, farther_from_a_test\n")
    (second / "farther_from_a_test").mkdir()  # a namespace package
    for number, file in enumerate([first / "x.csv", second / "farther_from_a_test" / "x.py"]):
        before = code_of("plug_in_of_a_test.agent")
        file.write_text(str(number))
        assert code_of("plug_in_of_a_test.agent") != before


def test_of_an_installed_package_its_distribution_s_files_count(plugin: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known = {**address.distributions(), "plug_in_of_a_test": ["plug-in"]}
    monkeypatch.setattr(address, "distributions", lambda: known)
    installed(plugin, *(f"plug_in_of_a_test/{name}.py" for name in ("__init__", "agent", "unused")), "data.csv")
    digests = [code_of("plug_in_of_a_test.agent")]
    for file in ("plug_in_of_a_test/unused.py", "data.csv", "helper_of_a_test.py"):
        (plugin / file).write_text("VALUE = 2\n")
        digests.append(code_of("plug_in_of_a_test.agent"))
    assert len(set(digests)) == 3
    assert digests[-1] == digests[-2], "another distribution, or none, has installed it"


def test_a_package_used_from_its_sources_counts_by_its_folder(plugin: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = code_of("plug_in_of_a_test.agent")
    known = {**address.distributions(), "plug_in_of_a_test": ["plug-in"]}
    monkeypatch.setattr(address, "distributions", lambda: known)
    installed(plugin, "plug_in.pth")
    assert code_of("plug_in_of_a_test.agent") != before  # the metadata lies in the folder
    before = code_of("plug_in_of_a_test.agent")
    (plugin / "helper_of_a_test.py").write_text("VALUE = 2\n")
    assert code_of("plug_in_of_a_test.agent") != before


def test_code_in_no_file_is_never_the_same(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    main, code = sys.modules["__main__"], ForeignCode()
    monkeypatch.setattr(main, "__file__", None, raising=False)
    assert code.digest(["__main__"]) == code.digest(["__main__"]) != code_of("__main__")
    assert len(code.unknown) == 1
    (tmp_path / "script.py").write_text("")
    monkeypatch.setattr(main, "__file__", str(tmp_path / "script.py"))
    before = code_of("__main__")
    assert before == code_of("__main__")
    (tmp_path / "script.py").write_text("# changed\n")
    assert code_of("__main__") != before


def test_our_own_code_is_not_foreign() -> None:
    assert code_of("coband.agents.alone.gp_ucb", "json") == ""


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


def test_ratings_count_by_content_and_are_missed_if_absent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
