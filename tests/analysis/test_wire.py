"""The panels of liars, privacy and bits."""

from pathlib import Path

from coband.simulator.analysis.comparison import data
from coband.simulator.analysis.comparison.analysis import Analysis
from coband.simulator.analysis.report.catalogue import panel
from coband.simulator.analysis.report.drawing import inline_figures
from coband.simulator.analysis.report.style import Styles
from coband.simulator.analysis.wire import lies
from coband.simulator.experiments.store.store import open_run
from tests.analysis.report.made import run

SCENARIO = """
name: lies
seed: 5
replications: 2
agents: {count: 5}
schedule: {kind: rounds, turns: 20}
network: {latency: 0.1}
problem: {kind: contextual, arms: {kind: ball, dimension: 3, count: 5}, reward: {kind: linear}, noise: 0.1}
messages: {privacy: {mechanism: gaussian, sigma: 4, leak: allow}}
adversaries:
  - {agents: [1, 3], behaviour: {kind: sign_flip, scale: 3}, start: 5}
algorithms:
  - {algorithm: dis_lin_ucb, label: Lin, threshold: 1}
  - {algorithm: n_kernel_ucb, label: Alone}
"""


def test_who_lied_when_what_was_spent_and_bits(tmp_path: Path) -> None:
    with open_run(run(tmp_path / "run", scenario=SCENARIO)) as made:
        analysis = Analysis(data.load([made]))
        lin, alone = analysis.contenders
        found = lies(lin.jobs[0])
        assert {lie.agent for lie in found} == {1, 3}
        assert {lie.behaviour for lie in found} == {"sign_flip"}
        assert all(lie.time >= 5.0 for lie in found)
        assert lies(alone.jobs[0]) == []
        frames = {name: panel(name).numbers(analysis) for name in ("lies", "dishonest", "epsilon", "privacy", "bits")}
        assert frames["lies"]["time"].tolist() == [lie.time for lie in found]
        (strip,) = inline_figures(panel("lies"), panel("lies").parts(frames["lies"]), Styles(analysis))
        assert [text.get_text() for text in strip.axes[0].get_yticklabels()] == ["Lin, agent 1", "Lin, agent 3"]
        assert sum(len(one.get_segments()) for one in strip.axes[0].collections) == len(found)
        record = lin.records[0]
        assert frames["epsilon"].query("label == 'Lin'")["mean"].iloc[-1] == sum(lin.values("epsilon").values()) / 2
        bits = sum(sum(lin.values(name).values()) for name in ("gram_bits", "moment_bits")) / 2
        assert frames["bits"]["mean"].sum() == bits
        row = frames["dishonest"].query("label == 'Lin' and replication == 0").iloc[0]
        assert (row["dishonest"], row["lies"]) == ("1, 3", len(found))
        assert (row["first"], row["last"]) == (found[0].time, found[-1].time)
        assert row["regret of an honest agent"] == record["honest_regret_per_agent"]
        assert frames["privacy"]["label"].tolist() == ["Lin", "Lin", "Alone", "Alone"]


def shown(analysis: Analysis) -> list[str]:
    names = ("lies", "dishonest", "epsilon", "privacy", "bits")
    return [name for name in names if len(panel(name).numbers(analysis))]


def test_no_figure_where_all_are_honest_and_nothing_is_private(tmp_path: Path) -> None:
    honest = "\n".join(line for line in SCENARIO.splitlines() if "sign_flip" not in line and "privacy" not in line)
    with open_run(run(tmp_path / "run", scenario=honest.replace("adversaries:\n", ""))) as made:
        assert shown(Analysis(data.load([made]))) == []


def test_of_nodes_that_are_private_by_themselves_no_course_is_known(tmp_path: Path) -> None:
    """Where the run has an epsilon of each agent alone, there is no course to draw."""
    text = SCENARIO.replace("messages:", "# ").replace("adversaries:", "# ").replace("  - {agents:", "# ")
    own = text.replace("dis_lin_ucb, label: Lin, threshold: 1", "fed_ucb, label: Lin")
    with open_run(run(tmp_path / "run", scenario=own)) as made:
        analysis = Analysis(data.load([made]))
        lin, _ = analysis.contenders
        assert all("epsilon" in agent for record in lin.records.values() for agent in record["agents"])
        assert shown(analysis) == []
