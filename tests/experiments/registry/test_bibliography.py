"""What to cite: every registered name has BibTeX."""

import re
import tomllib
from pathlib import Path

import yaml

from coband.simulator.experiments.registry import bibliography
from coband.simulator.experiments.registry.registry import Registry
from coband.simulator.problems.datasets import DATASETS, GRAPH_DATASETS
from coband.simulator.problems.ratings import RATINGS

OWN = "@misc{me2030,\n  title = {Mine},\n  year = {2030}\n}"


def test_every_entry_cites_something_known_and_every_reference_is_cited() -> None:
    registry = Registry.installed()
    data = [*DATASETS.values(), *RATINGS.values(), *GRAPH_DATASETS.values()]
    entries = [*registry.algorithms.values(), *registry.problems.values(), *data]
    cited = {key for entry in entries for key in entry.cites} | {"coband"}
    assert [entry.name for entry in entries if not entry.cites] == ["arrays", "table"]  # the user's own data
    assert cited == set(bibliography.library())


def test_entries_are_whole() -> None:
    for key, text in bibliography.library().items():
        assert re.match(rf"@\w+\{{{key},\n", text)
        assert text.count("{") == text.count("}")
        assert text.endswith("\n}")
        assert re.search(r"^  title = \{.+\}", text, flags=re.MULTILINE)
        if text.startswith("@inproceedings"):
            assert {"author", "booktitle", "year"} <= set(re.findall(r"^  (\w+) = ", text, flags=re.MULTILINE))


def test_coband_names_itself_by_its_version() -> None:
    root = Path(__file__).parents[3]
    cff = yaml.safe_load((root / "CITATION.cff").read_text(encoding="utf-8"))
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert cff["version"] == project["version"]
    assert f"version = {{{project['version']}}}" in bibliography.library()["coband"]


def test_a_plugin_brings_its_own_entry_and_unknown_keys_are_left_out() -> None:
    found = bibliography.bibtex((OWN, "valko2013finite", "nobody1999"))
    assert found.startswith(f"{OWN}\n\n@inproceedings{{valko2013finite,\n")
    assert found.count("@") == 2
