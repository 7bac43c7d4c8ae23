"""Arrays that a machine cannot hold are refused before they are made; memory that runs out is told in one sentence."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest

from coband.simulator import arrays
from coband.simulator.arms import ArmSet
from coband.simulator.arrays import GIB, TooLarge, require_room
from coband.simulator.cli.main import exit_status
from coband.simulator.core.making import nodes
from coband.simulator.core.nodes.graphs import Graph
from coband.simulator.experiments.runs import job as jobs
from coband.simulator.experiments.runs.attempt import Outcome, attempt
from coband.simulator.experiments.runs.job import Job
from coband.simulator.experiments.scenario.loading import loads
from coband.simulator.maths.kernels.library import Gaussian
from coband.simulator.maths.linalg.cholesky import GrowingCholesky
from coband.simulator.maths.posteriors.finite_domain import Domain

POOL = {"kind": "pool", "dimension": 100, "size": 50_000_000}
LARGE = {"kind": "ball", "dimension": 100_000, "count": 1_000_000}
BOX = {"kind": "box", "dimension": 100, "points": 50_000_000}
EAGER = {"algorithm": "eager_kernel_ucb", "label": "E", "kernel": {"kind": "gaussian", "gamma": 1.0}}
GRAPH = {"network": {"topology": {"kind": "erdos_renyi", "p": 0.7}}, "algorithms": [EAGER]}


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine of 16 GiB."""
    monkeypatch.setattr(arrays, "machine_memory", lambda: 16 * GIB)


def scenario(**changed: Any) -> str:
    ball = {"kind": "ball", "dimension": 2, "count": 3}
    return json.dumps(
        {
            "name": "m",
            "agents": {"count": 2},
            "schedule": {"kind": "rounds", "turns": 30},
            "problem": {"kind": "contextual", "arms": ball, "reward": {"kind": "cosine"}},
            "algorithms": [{"algorithm": "n_kernel_ucb", "label": "N", "kernel": {"kind": "gaussian", "gamma": 1.0}}],
            **changed,
        }
    )


def ended(text: str) -> Outcome:
    found = loads(text)
    entry = found.algorithms[0]
    return attempt(Job(0, entry.label, entry.algorithm.name, 0, 0, "off"), found, lambda result: None)


def test_what_fits_is_not_refused_and_what_does_not_is_with_its_size(small: None) -> None:
    require_room("a table", 2**31, instead="take less")
    with pytest.raises(TooLarge, match=r"^there is no room for a table: about 32 GiB, and this machine has 16 GiB of "):
        require_room("a table", 2**16, 2**16, instead="take less")


def test_the_memory_of_this_machine_is_known_and_asked_for_only_by_what_is_large(tmp_path: Path) -> None:
    assert 2**28 < arrays.machine_memory() < 2**50
    code = "import sys; from coband.simulator.cli.main import exit_status as run; assert run(sys.argv[1:]) == 0; "
    code += "assert 'psutil' not in sys.modules"
    (tmp_path / "m.yaml").write_text(scenario())
    words = ["run", "m.yaml", "--workers", "1"]
    subprocess.run([sys.executable, "-c", code, *words], check=True, capture_output=True, cwd=tmp_path)


@pytest.mark.usefixtures("small")
def test_dense_arrays_that_grow_with_products_of_sizes_ask_for_room() -> None:
    with pytest.raises(TooLarge, match="distances between 100,000 agents"):
        Graph(((),) * 100_000).distances  # noqa: B018
    with pytest.raises(TooLarge, match="all pairs of 100,000 points"):
        Domain(Gaussian(gamma=1.0), ArmSet.fixed(np.arange(100_000.0)[:, None])).gram  # noqa: B018
    factor = GrowingCholesky(1.0)
    factor.size = 100_000
    with pytest.raises(TooLarge, match="the exact posterior of 100,001 observations: about 37 GiB"):
        factor._write(np.zeros((1, 100_001)))


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        (
            {"agents": {"count": 200}, "schedule": {"kind": "rounds", "turns": 100}, **GRAPH},
            "E: there is no room for exact posteriors of 200 groups of agents with up to 1",
        ),
        (
            {"algorithms": [{"algorithm": "neural_ucb", "label": "E", "width": 20_000}]},
            "E: there is no room for a matrix for the gradients of 100,000 weights: about 75 GiB, and this machine",
        ),
        (
            {"problem": {"kind": "contextual", "arms": POOL, "reward": {"kind": "cosine"}}},
            "N: there is no room for a pool of 50,000,000 points of dimension 100: about 37 GiB, and this machine",
        ),
        (
            {"problem": {"kind": "contextual", "arms": LARGE, "reward": {"kind": "cosine"}}},
            "N: there is no room for the arms of one turn, 1,000,000 of dimension 100,000: about 745 GiB",
        ),
        ({"schedule": {"kind": "rounds", "turns": 10**15}}, "N: there is no room for the curves of "),
        (
            {"problem": {"kind": "fixed_domain", "domain": BOX, "reward": {"kind": "cosine"}}},
            "N: there is no room for 50,000,000 points of dimension 100: about 37 GiB, and this machine",
        ),
    ],
)
@pytest.mark.usefixtures("small")
def test_a_run_that_does_not_fit_is_refused_and_so_by_validate(
    changed: dict[str, Any],
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("m.yaml").write_text(scenario(**changed))
    assert exit_status(["run", "m.yaml", "--workers", "1", "--out", "run"]) == 2
    *_, said = capsys.readouterr().err.splitlines()
    assert said.startswith(words)
    assert not Path("run").exists()
    assert exit_status(["validate", "m.yaml"]) == 2
    assert words in capsys.readouterr().err


def test_an_array_that_grows_too_large_fails_its_job(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrays, "SMALL", 0.0)
    monkeypatch.setattr(arrays, "machine_memory", lambda: 1000.0)
    monkeypatch.setattr(nodes, "KEPT_PER_TURN", 0)
    outcome = ended(scenario())
    assert outcome.status == "failed"
    assert str(outcome.error).startswith("there is no room for the exact posterior of 17 observations: about ")


def test_memory_that_runs_out_in_coband_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "graph_and_world", Mock(side_effect=MemoryError("Unable to allocate 7.45 GiB")))
    outcome = ended(scenario())
    assert (outcome.status, outcome.error) == (
        "failed",
        "out of memory (Unable to allocate 7.45 GiB); take fewer agents, turns or arms, or fewer --workers",
    )


REWARD = "import numpy\n\ndef reward(arms):\n    return numpy.empty(2**59)[:3]\n"


def test_memory_that_runs_out_in_a_function_of_the_users_names_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("greedy.py").write_text(REWARD)
    problem = {**json.loads(scenario())["problem"], "reward": {"kind": "python", "function": "greedy.py:reward"}}
    Path("m.yaml").write_text(scenario(problem=problem))
    assert exit_status(["run", "m.yaml", "--workers", "1", "--out", "run"]) == 1
    said = capsys.readouterr().err
    assert 'greedy.py", line 4, in reward' in said
    assert "fewer agents" not in said
