"""``coband validate``."""

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from coband.simulator.cli.validate import validate
from coband.simulator.core.wire import accounting
from coband.simulator.experiments.registry.registry import Registry
from coband.simulator.experiments.runs import preflight
from tests.experiments.registry.plugins import REGISTRY, SCENARIO

SIZE = "1,000 turns of 5 agents together × 2 algorithms"


@pytest.fixture(autouse=True)
def _plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Registry, "installed", lambda: REGISTRY)


@pytest.fixture
def quick(tmp_path: Path) -> Path:
    file = tmp_path / "quick.yaml"
    file.write_text(SCENARIO)
    return file


def run(*arguments: object) -> Result:
    return CliRunner().invoke(validate, [str(argument) for argument in arguments])


def test_good(quick: Path) -> None:
    result = run(quick)
    assert (result.exit_code, result.output) == (0, f"{quick}: ok ({SIZE} × 3 replications = 6,000 pulls)\n")


def test_overrides(quick: Path) -> None:
    result = run(quick, "--set", "replications=1", "--set", "algorithms.Bold.alpha=2")
    assert result.output == f"{quick}: ok ({SIZE} × 1 replication = 2,000 pulls)\n"


def test_every_file_is_read(quick: Path) -> None:
    broken = quick.with_name("broken.yaml")
    broken.write_text(SCENARIO.replace("count: 5", "count: 0").replace("seed: 7", "seed: x"))
    result = run(broken, quick, quick.with_name("absent"))
    assert result.exit_code == 2
    assert result.stdout == f"{quick}: ok ({SIZE} × 3 replications = 6,000 pulls)\n"
    assert result.stderr.splitlines() == [
        f"{broken}:2:7: seed: 'x' is not allowed: must be a whole number >= 0 and < 9223372036854775808",
        f"{broken}:5:10: agents.count: 0 is not allowed: must be a whole number >= 1 and <= 1000000",
        f"{quick.with_name('absent')}: there is no such file",
    ]


def test_a_file_is_needed() -> None:
    assert run().exit_code == 2


def test_plugins_that_do_not_load_are_named(quick: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = Registry(REGISTRY.algorithms, REGISTRY.problems, {}, ("coband.algorithms: 'duets' is left out",))
    monkeypatch.setattr(Registry, "installed", lambda: broken)
    result = run(quick)
    assert (result.exit_code, result.stderr) == (0, "warning: coband.algorithms: 'duets' is left out\n")


REFUSED = {
    "a missing data file": (
        "fn_ucb/magic_quick.yaml",
        ["problem.data.path=nowhere.data"],
        "problem.data.path: dataset 'magic': magic04.data is missing. Looked for: ",
    ),
    "a missing graph": (
        "coop_kernel_ucb/facebook_quick.yaml",
        ["network.topology.file=nowhere.txt"],
        "network.topology.file: the graph's file 'nowhere.txt' is missing. Looked for: ",
    ),
    "fresh arms for an algorithm that needs fixed ones": (
        "coop_kernel_ucb/fixed_arms_quick.yaml",
        ["problem.arms={kind: ball, dimension: 3, count: 5}"],
        ":23:17: algorithms[0].algorithm: Dist: dist_kernel_ucb needs one arm set for all turns of all agents; this ",
    ),
    "samples that cannot be counted": (
        "cope_kb/fixed_budget_similar_quick.yaml",
        ["algorithms.CoKernelFB.budget=1000000000000000000"],
        ".algorithm: CoKernelFB: 1e+18 samples are wanted at once; 2^53 can be counted.",
    ),
    "a posterior that does not fit into memory": (
        "coop_kernel_ucb/erdos_renyi_rbf_quick.yaml",
        ["schedule.turns=10000000"],
        ".algorithm: Coop: there is no room for exact posteriors of ",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_a_run_would_refuse_is_refused(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()  # the installed plugins
    file, settings, message = REFUSED[case]
    place = Path(__file__).parents[2] / "scenarios" / file
    result = run(place, *(word for setting in settings for word in ("--set", setting)))
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stderr.startswith((f"{place}:", "--set "))


@pytest.mark.parametrize(
    ("topology", "warning"),
    [
        ("complete", "Coop: one clique holds at least 80 % of the agents, so Coop learns from nearly all that Eager "),
        ("{kind: star}", "Coop: there are almost as many cliques as agents, so most of them learn from their own "),
    ],
)
def test_a_cover_of_no_use_is_worth_a_warning(topology: str, warning: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    place = Path(__file__).parents[2] / "coband/scenarios/coop_kernel_ucb/erdos_renyi_rbf_quick.yaml"
    usual = run(place)
    assert (usual.exit_code, usual.stderr) == (0, "")
    result = run(place, "--set", f"network.topology={topology}")
    assert result.exit_code == 0
    assert result.stdout == usual.stdout
    assert result.stderr.startswith(f"warning: {warning}")
    assert result.stderr.endswith(", in the first replication\n")
    assert result.stderr.count("\n") == 1


def test_privacy_without_accountant_and_what_it_leaves_open_are_worth_warnings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    monkeypatch.setattr(accounting, "installed", lambda: False)
    result = run(Path(__file__).parents[2] / "coband/scenarios/adversity/privacy_quick.yaml")
    absent, leak = result.stderr.splitlines()
    assert (result.exit_code, absent) == (0, f"warning: dis_lin_ucb: {accounting.ABSENT}")
    assert leak.startswith("warning: dis_lin_ucb: leak: allow, so that epsilon does not cover time of sync_request (")


def test_a_mistake_in_a_plugin_is_named_with_its_place(quick: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise KeyError("alpha")

    monkeypatch.setattr(REGISTRY.algorithms["async_kernel_ucb"].agent, "__init__", broken)
    result = run(quick)
    place = f"{__file__}:{broken.__code__.co_firstlineno + 1}: KeyError: 'alpha'"
    assert (result.exit_code, place in result.stderr.splitlines()[0]) == (2, True)


def test_a_large_file_is_only_begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    monkeypatch.setattr(preflight, "MOST_BYTES", 10)
    file = tmp_path / "links.txt"
    file.write_text("1 2\n2 3\n" + "# more\n" * 2000 + "broken\n")
    place = Path(__file__).parents[2] / "coband/scenarios/coop_kernel_ucb/facebook_quick.yaml"
    settings = ("--set", f"network.topology.file={file}", "--set", "agents.count=3")
    good = run(place, *settings)
    assert (good.exit_code, good.stderr) == (0, "")
    assert "; only the first 1,000 lines of links.txt were read; agents and server were not made)" in good.stdout
    file.write_text("broken\n" + "1 2\n" * 10)
    bad = run(place, *settings)
    assert f"network.topology.file: {file}:1: 'broken' is not a link" in bad.stderr


def test_a_field_may_be_called_kind(quick: Path) -> None:
    assert run(quick, "--set", "messages.encoding.kinds={Upload: {kind: float64}}").exit_code in (0, 2)


def test_what_lies_between_world_and_agents_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    file = Path(__file__).parents[2] / "coband/scenarios/cope_kb/fixed_budget_same_quick.yaml"
    result = run(file, "--set", "messages.privacy={mechanism: laplace_local, epsilon: 1, leak: allow}")
    assert (result.exit_code, "this problem is pulled in batches" in result.stderr) == (2, True)


def test_an_epsilon_that_nobody_can_promise_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    file = Path(__file__).parents[2] / "coband/scenarios/adversity/privacy_quick.yaml"
    result = run(file, "--set", "schedule={kind: renewal, think: 1, duration: 5}")
    assert (result.exit_code, "nobody knows how many turns there will be" in result.stderr) == (2, True)


@pytest.mark.parametrize(("compute", "said"), [(0, True), (1, False)])
def test_stragglers_that_nothing_slows_are_worth_a_warning(quick: Path, compute: int, said: bool) -> None:
    slow = "agents.stragglers={fraction: 0.5, slowdown: 9}"
    result = run(quick, "--set", slow, "--set", f"agents.compute={compute}")
    assert (result.exit_code, "nobody is slow, as agents.compute" in result.stderr) == (0, said)


def test_the_directory_of_a_run_is_called_so(tmp_path: Path) -> None:
    (tmp_path / "run.sqlite").touch()
    result = run(tmp_path)
    assert result.exit_code == 2
    assert f"is the directory of a run; give its scenario, {tmp_path / 'scenario.yaml'}" in result.stderr


@pytest.mark.parametrize(("count", "key"), [("ran_out", "agents.energy"), ("honest_regret", "adversaries")])
def test_a_number_that_needs_a_section_is_refused_without_it(quick: Path, count: str, key: str) -> None:
    result = run(quick, "--set", f"expect=[{{label: Bold, count: {count}, equals: 0}}]")
    assert (result.exit_code, f"nothing counts '{count}' where {key} is left out" in result.stderr) == (2, True)
