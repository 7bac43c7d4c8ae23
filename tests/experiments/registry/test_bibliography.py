"""What to cite: every registered name has BibTeX, and runs print what they used."""

import re
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from coband.simulator.cli.main import main
from coband.simulator.experiments.registry import bibliography
from coband.simulator.experiments.registry.registry import Registry
from coband.simulator.experiments.store.store import open_run
from coband.simulator.problems.datasets import DATASETS, GRAPH_DATASETS
from coband.simulator.problems.ratings import RATINGS
from tests.analysis.traces import runs

OWN = "@misc{me2030,\n  title = {Mine},\n  year = {2030}\n}"


def test_every_entry_cites_something_known_and_every_reference_is_cited() -> None:
    registry = Registry.installed()
    data = [*DATASETS.values(), *RATINGS.values(), *GRAPH_DATASETS.values()]
    entries = [*registry.algorithms.values(), *registry.problems.values(), *data]
    cited = {key for entry in entries for key in entry.cites} | {bibliography.OURS}
    assert [entry.name for entry in entries if not entry.cites] == ["arrays", "table"]  # the user's own data
    assert cited == set(bibliography.library())


def test_entries_are_whole() -> None:
    for key, text in bibliography.library().items():
        assert bibliography.key_of(text) == key
        assert text.count("{") == text.count("}")
        assert text.endswith("\n}")
        assert re.search(r"^  title = \{.+\}", text, flags=re.MULTILINE)
        if text.startswith("@inproceedings"):
            assert {"author", "booktitle", "year"} <= set(re.findall(r"^  (\w+) = ", text, flags=re.MULTILINE))


def test_a_run_prints_each_entry_once_with_its_uses(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs.perform(runs.STAR, tmp_path / "run", "schedule.turns=2", only=("Async", "One", "Sync"))
    with pytest.raises(SystemExit) as exit_:
        main(["show", str(tmp_path / "run"), "--bibtex"])
    output, errors = capsys.readouterr()
    assert (exit_.value.code, errors) == (0, "")
    assert output.count("@inproceedings{li2023asynchronous,") == 1
    assert output.startswith(
        "% algorithm async_kernel_ucb (Async); algorithm one_kernel_ucb (One); problem contextual\n"
    )
    assert "% algorithm approx_dis_kernel_ucb (Sync)\n@inproceedings{li2022communication,\n" in output
    assert "dubey2020kernel" not in output
    assert "% simulator\n@software{coband,\n" in output


def test_coband_names_itself_by_its_version() -> None:
    root = Path(__file__).parents[3]
    cff = yaml.safe_load((root / "CITATION.cff").read_text(encoding="utf-8"))
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert cff["version"] == project["version"]
    assert f"version = {{{project['version']}}}" in bibliography.library()[bibliography.OURS]


def test_a_plugin_brings_its_own_entry_and_unknown_names_are_said(tmp_path: Path) -> None:
    runs.perform(runs.STAR, tmp_path / "run", "schedule.turns=2", only=("One", "Alone"))
    installed = Registry.installed()
    mine = replace(installed.algorithms["one_kernel_ucb"], cites=(OWN, "valko2013finite", "nobody1999"))
    with open_run(tmp_path / "run") as run:
        found = bibliography.uses(run, replace(installed, algorithms={"one_kernel_ucb": mine}))
    assert [(use.what, use.known) for use in found] == [
        ("algorithm one_kernel_ucb (One)", True),
        ("algorithm n_kernel_ucb (Alone)", False),
        ("problem contextual", True),
        ("simulator", True),
    ]
    printed = {citation.key: citation.text for citation in bibliography.citations(found)}
    assert printed["me2030"] == OWN
    assert "valko2013finite" in printed
    assert "nobody1999" not in printed


def test_data_and_graphs_are_cited() -> None:
    class Run:
        labels = {"A": "coop_kernel_ucb"}  # noqa: RUF012
        scenario = (
            "problem: {kind: classification, data: {name: magic, path: null}}\n"
            "network: {topology: {kind: edge_list, file: /data/musae_ENGB_edges.csv}}\n"
        )

    found = bibliography.uses(Run(), Registry.installed())  # type: ignore[arg-type]
    assert [use.what for use in found] == [
        "algorithm coop_kernel_ucb (A)",
        "problem classification",
        "dataset magic",
        "graph musae_ENGB_edges.csv",
        "simulator",
    ]
    assert {"bock2004magic", "rozemberczki2019multiscale"} <= {item.key for item in bibliography.citations(found)}
