"""``coband list``, ``coband describe`` and ``coband validate --schema``."""

import json

import pytest
from click.testing import CliRunner

from coband.simulator.cli.describe import describe
from coband.simulator.cli.list import KINDS, list_
from coband.simulator.cli.validate import validate
from coband.simulator.experiments.registry.registry import OPEN_LISTS, Registry
from coband.simulator.experiments.scenario.document import json_schema
from coband.simulator.reference.items import UnknownNameError, look_up
from tests.experiments.registry.plugins import REGISTRY


@pytest.fixture(autouse=True)
def _plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Registry, "installed", lambda: REGISTRY)


def test_list() -> None:
    lines = CliRunner().invoke(list_).output.splitlines()
    assert lines[:4] == ["algorithms", "async_kernel_ucb  Talks.", "local_ucb         Is silent.", ""]
    assert [line for line in lines if line.startswith("magic")] == [
        "magic         MAGIC Gamma Telescope: 19,020 rows, 10 features"
    ]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("movielens", ("grouplens.org", "user, item, rating", "@article{harper2015movielens,")),
        ("magic", ("licence: CC BY 4.0", "19,020 rows", "Paper:\n  @")),
    ],
)
def test_describe_a_dataset(name: str, said: tuple[str, ...]) -> None:
    output = CliRunner().invoke(describe, [name]).output
    assert f"{name} (dataset)" in output
    assert [one for one in said if one not in output] == []


def test_list_one_kind() -> None:
    expected = ["algorithms", "async_kernel_ucb  Talks.", "local_ucb         Is silent."]
    assert CliRunner().invoke(list_, ["algorithms"]).output.splitlines() == expected


def test_list_as_json() -> None:
    everything = json.loads(CliRunner().invoke(list_, ["--json"]).output)
    assert tuple(everything) == KINDS
    assert [one.name for one in OPEN_LISTS[:-1]] == list(KINDS[:-3])
    assert everything["algorithms"][1] == {"name": "local_ucb", "summary": "Is silent.", "reference": "ours"}


def test_list_scenarios() -> None:
    lines = CliRunner().invoke(list_, ["scenarios"]).output.splitlines()
    assert lines[0].split() == ["scenarios", "data"]
    (line,) = [line for line in lines if line.startswith("fn_ucb/magic_quick")]
    assert line.split(maxsplit=2)[1:] == [
        "magic",
        "Dai et al. 2023, section 5.2, figure 2b: MAGIC Gamma Telescope, 2 arms in R^20; m = 20, full matrices; N = 2.",
    ]
    found = json.loads(CliRunner().invoke(list_, ["scenarios", "--json"]).output)["scenarios"]
    assert [item for item in found if item["name"] == "quickstart"] == [
        {
            "name": "quickstart",
            "summary": "Five algorithms on a small problem: which one learns fastest, and how much does it send?",
            "data": None,
        }
    ]


def test_describe_a_scenario() -> None:
    lines = CliRunner().invoke(describe, ["fn_ucb/magic_quick"]).output.splitlines()
    assert lines[0] == "fn_ucb/magic_quick (scenario)"
    assert lines[1].startswith("  Dai et al. 2023, section 5.2")
    assert lines[-3].startswith("  Quick variant: ")
    assert lines[-2] == "  data: magic"
    assert lines[-1].endswith("scenarios/fn_ucb/magic_quick.yaml")


def test_describe_an_algorithm() -> None:
    text = CliRunner().invoke(describe, ["async_kernel_ucb"]).output
    start = text.index("  alpha")
    assert text.startswith(
        "async_kernel_ucb (algorithm)\n  Talks.\n  Li et al. 2023, Algorithm 1\n  scenario: quickstart\n"
        "  liars: server.aggregate is refused: nothing that agents of async_kernel_ucb send says that it adds up over "
        "agents (payload(adds=...))\n  server: yes\n\nParameters:\n"
        "  kernel: {kind: gaussian | linear | matern | polynomial | product | sum, ...} (default: {gamma:\n"
        "    1.0, kind: gaussian})\n      The kernel.\n  alpha"
    )
    assert text[start:] == (
        "  alpha: a number >= 0 (default: 1.0)\n      Exploration.\n"
        "  transfer: one of full, delta (default: full)\n"
        "  steps: a whole number >= 1 and <= 100 (default: 30)\n"
        "  blocking: true or false (default: false)\n"
        "  dims: a list of at most 3 (each a whole number) (default: [])\n\n"
        "Messages:\n  kind    direction  scalars  to\n  upload  up         m + 1    at each exchange\n\n"
        "Communication (without delays and losses, with all agents up):\n"
        "  count           formula         when          each\n"
        "  uplink_scalars  rounds*(m + 1)  not blocking  run\n\n"
        "Where:\n  d: arm dimension\n  m: = 2*d\n  rounds: communication rounds completed\n\n"
        "Metrics:\n  name  summary                   unit  better  locked\n"
        "  naps  how often an agent dozes  naps  lower   yes\n\n"
        "Needs:\n  topologies: star\n  every message delivered (transport: reliable, or no loss)\n"
    )


def test_describe_an_algorithm_as_json() -> None:
    found = json.loads(CliRunner().invoke(describe, ["local_ucb", "--json"]).output)
    assert found["parameters"] == [{"name": "beta", "type": "a number > 0", "required": True, "description": ""}]
    assert found["needs"]["problems"] == ["clusters"]
    assert found["server"] is False
    said = CliRunner().invoke(describe, ["local_ucb"]).output
    assert "\n  one arm set for all turns of all agents\n  problems: clusters\n" in said


def test_describe_a_problem() -> None:
    assert "Parameters:\n  arms: {kind: ball | sphere | box | normalised_cube | pool, ...} (required)\n" in (
        CliRunner().invoke(describe, ["contextual"]).output
    )


def test_list_and_describe_kernels_and_rewards() -> None:
    assert "matern      Matern kernel of order nu" in CliRunner().invoke(list_, ["kernels"]).output
    assert "square    f(x) = 10 (x . theta)^2." in CliRunner().invoke(list_, ["rewards"]).output
    kernel = CliRunner().invoke(describe, ["matern"]).output
    assert kernel.startswith("matern (kernel)\n  Matern kernel of order nu in {0.5, 1.5, 2.5}")
    assert "\n  length_scale: a number > 0 (default: 1.0)\n" in kernel
    assert "\n  norm: a number > 0 (default: 1.0)\n" in CliRunner().invoke(describe, ["rkhs"]).output


def test_list_and_describe_metrics() -> None:
    metrics = CliRunner().invoke(list_, ["metrics"]).output
    assert "\nnaps                      how often an agent dozes\n" in metrics
    assert "  metric.regret   metric  sum over all pulls" in CliRunner().invoke(describe, ["regret"]).output
    assert CliRunner().invoke(describe, ["naps"]).output.startswith("naps (metric)\n  how often an agent dozes\n")
    assert CliRunner().invoke(describe, ["metric.regret"]).output == (
        "regret (metric)\n  sum over all pulls of (best mean reward - mean reward of the arm pulled)\n"
        "  unit: units of the reward\n  better: lower\n"
    )


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "async_kernel",
            "nothing is called 'async_kernel'; did you mean async_kernel_ucb or async_kernel_ucb/yelp or "
            "async_kernel_ucb/magic? `coband list` shows algorithms, problems and more; keys of scenario files are "
            "written like network.topology",
        ),
        ("duets", "'duets' is installed but could not be loaded: ModuleNotFoundError: No module named 'torch'"),
    ],
)
def test_describe_an_unknown_name(name: str, message: str) -> None:
    with pytest.raises(UnknownNameError) as caught:
        look_up(name, REGISTRY)
    assert str(caught.value) == message


def test_schema() -> None:
    assert json.loads(CliRunner().invoke(validate, ["--schema"]).output) == json_schema(REGISTRY)
    for arguments in (["--schema", "quickstart"], []):
        assert CliRunner().invoke(validate, arguments).exit_code == 2
