"""Documents as text: both parsers of YAML read it back, and it does not depend on the library that writes it."""

import runpy
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from coband.simulator.experiments.scenario import overrides
from coband.simulator.experiments.scenario.yaml_nodes import plain, read

ROOT = Path(__file__).parents[3]
SHIPPED = sorted((ROOT / "coband" / "scenarios").rglob("*.yaml"))
NAMES = st.text("abz_0.:- #", min_size=1, max_size=4).filter(lambda name: name == name.strip())
PLAIN = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8)
VALUES = st.recursive(PLAIN, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3))


@pytest.fixture
def in_python(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The function as it is where PyYAML comes without libyaml."""
    monkeypatch.setattr(yaml, "__with_libyaml__", False)
    module = runpy.run_path(str(overrides.__file__))
    assert module["_Dumper"].__bases__ == (yaml.SafeDumper,)
    return module["to_yaml"]


def test_both_libraries_write_the_same(in_python: Any) -> None:
    for file in SHIPPED:
        document = yaml.load(file.read_text(encoding="utf-8"), yaml.CSafeLoader)
        assert overrides.to_yaml(document) == in_python(document)


@given(document=st.dictionaries(NAMES, VALUES, min_size=1, max_size=4))
def test_what_is_written_is_read(document: dict[str, Any]) -> None:
    text = overrides.to_yaml(document)
    assert yaml.safe_load(text) == document
    node, problems = read(text, "written")
    assert not problems
    assert plain(node) == document
