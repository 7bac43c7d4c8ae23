from pathlib import Path

import pytest

from coband.extensions.data import fetch as data_fetch
from tests.cli.fake_cli import Program


def test_list_says_what_is_here(coband: Program, tmp_path: Path) -> None:
    (tmp_path / "magic04.data").write_text("1,2\n")
    status, output, errors = coband("data", "list", "--dir", tmp_path)
    lines = {line.split()[0]: line for line in output.splitlines()}
    assert (status, errors) == (0, "")
    assert "here, but not the official file" in lines["magic"]
    assert "not here" in lines["mushroom"]
    assert "8,124" in lines["mushroom"]


def test_fetch_prints_the_file(coband: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data_fetch, "fetch", lambda name, directory: directory / f"{name}.data")
    assert coband("data", "fetch", "magic", "--dir", tmp_path) == (0, f"{tmp_path}/magic.data\n", "")


def test_an_unknown_dataset_names_the_nearest(coband: Program) -> None:
    status, output, errors = coband("data", "fetch", "mushrooms")
    assert (status, output) == (2, "")
    assert "unknown dataset 'mushrooms'; did you mean mushroom?" in errors
