"""Where jobs run, and where progress shows."""

import multiprocessing
import sys
from types import ModuleType, SimpleNamespace

import pytest
from rich.console import Console

import coband
from coband.simulator.api import driving
from coband.simulator.api.errors import in_python
from coband.simulator.experiments.runs.executor import InProcess, Local
from coband.simulator.terminal import progress


def test_one_worker_is_this_process() -> None:
    assert coband.BLAS_IS_PINNED
    assert isinstance(driving.pool_of(1, 5), InProcess)
    assert isinstance(driving.pool_of(None, 1), InProcess)
    found = driving.pool_of(3, 1)
    assert isinstance(found, Local)
    assert found.size() == 3


def test_a_process_that_may_have_no_children_runs_jobs_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(multiprocessing, "current_process", lambda: SimpleNamespace(daemon=True))
    assert isinstance(driving.pool_of(4, 4), InProcess)


def test_bars_show_in_notebooks(monkeypatch: pytest.MonkeyPatch) -> None:
    bar = progress.Bar("study")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: False)
    assert not bar.visible()
    assert bar._console().file is sys.stderr
    monkeypatch.setitem(sys.modules, "ipykernel", ModuleType("ipykernel"))
    monkeypatch.setattr(progress, "find_spec", lambda name: None)
    assert not bar.visible()  # rich would print that ipywidgets are missing
    monkeypatch.setattr(progress, "find_spec", lambda name: object())
    assert not bar.visible()  # a kernel without a notebook
    monkeypatch.setattr(Console, "is_jupyter", True, raising=False)
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    assert bar.visible()
    assert bar._console().file is not sys.stderr


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("choose another --out DIR.", "choose another out=DIR."),
        ("go on with it by --resume, or", "go on with it by resume=True, or"),
        ("choose --label (A, B) and --replication (0, 1).", "choose label= (A, B) and replication= (0, 1)."),
        ("with --out, or replace it with --force.", "with out=, or replace it with force=True."),
        ("--cluster-option cores is given twice", "cluster_options= cores is given twice"),
        ("--agent 7 and --for-good", "agents=7 and for_good="),
        ("or with --workers 2; --cluster 'x' is none", "or with workers=2; cluster='x' is none"),
        ("a--b and x-o stay", "a--b and x-o stay"),
        (
            "such as `coband trace show RUN --event send` and --drop",
            "such as `coband trace show RUN --event send` and drop=",
        ),
    ],
)
def test_messages_name_arguments_for_options(text: str, expected: str) -> None:
    assert in_python(text) == expected
